"""How good proposed lists are: ``python -m benchmarks.suggest DATA``.

DATA is the folder with the data sets.  Prints one JSON object a line: how videos are grouped into
tasks; steps proposed from narration against the true ones by time and by meaning, beside k-means
over sentence vectors and the most frequent phrases; whether a check finds what was taken out of a
list or put in.  ``--grouping``, ``--steps``, ``--articles`` and ``--check`` measure only that.

By time, as in unsupervised procedure learning (Elhamifar and Naing 2019, Kukleva et al. 2019,
Bansal et al. 2022): proposed steps are matched one to one to the true ones (Hungarian) by the rows
that they share over all videos of a task; precision, recall and F1 are of rows with a keystep, MoF
counts all rows, background as a class, and IoU is the mean over true keysteps.  ``f1_done`` is
F1 of only the rows on which a keystep is truly done.  By meaning: matched by the cosine of names;
a pair counts from 0.6 on; ``name_cosine`` is the mean of the matched pairs.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.metrics import adjusted_rand_score

from benchmarks.suites import lists_of_articles, recipe
from stepgraph.core import BACKGROUND, Dataset, Labels, Video, Vocabulary
from stepgraph.datasets import open_source
from stepgraph.decoders import TaskMarkov
from stepgraph.decoders.learning import learn_graph
from stepgraph.encoders import load_encoder
from stepgraph.errors import DataError
from stepgraph.pipeline.checking import check_steps
from stepgraph.pipeline.suggesting import listen, suggest_steps
from stepgraph.problems import Problems
from stepgraph.scoring import score
from stepgraph.scoring.lazy import part_of_row
from stepgraph.vocabulary import make_vocabulary
from stepgraph.vocabulary.grouping import group_videos
from stepgraph.vocabulary.phrases import content_words
from stepgraph.vocabulary.suggested import STEPS

MEANS_THE_SAME = 0.6
NONSENSE = (
    *("polish the trumpet", "feed the goldfish", "sign the contract", "knit a scarf"),
    *("install the printer driver", "water the tomatoes", "tune the guitar", "fold the laundry"),
    *("vaccinate the dog", "mow the lawn"),
)
# CrossTask's steps of changing a tyre, each as somebody would say it (*start loose*, *jack down*).
IN_PLAIN_WORDS = (
    *("put on the parking brake", "get the jack and spare out", "loosen the lug nuts"),
    *("jack up the car", "remove the lug nuts", "remove the wheel", "put on the spare"),
    *("screw on the lug nuts", "lower the car", "tighten the lug nuts", "put the tools back"),
)
# What is counted of checks, and seconds for which a phrase is said.
CHECKED = ("taken_out_found", "by_meaning", "by_time", "told_only_then", "nonsense_found")
SAID = 4
# Videos of a task, as many as the demo has.
FEW = 6
# Videos, and the lists that are held against them.
Part: TypeAlias = tuple[Dataset, dict[str, list[str]]]
ENCODER: Any = load_encoder("text:minilm")


def say(**result: object) -> None:
    print(json.dumps(result), flush=True)


def narrated(source: str) -> Dataset:
    dataset = open_source(source)
    return replace(dataset, videos=tuple(video for video in dataset.videos if video.transcript))


def vectors_of(videos: Iterable[Video]) -> list[NDArray[np.float32]]:
    """Sentence vectors of each video."""
    videos = list(videos)
    found = ENCODER.encode_texts([one.text for video in videos for one in video.transcript])
    ends = np.cumsum([len(video.transcript) for video in videos])[:-1]
    return np.split(found, ends)


def grouping(data: Path) -> None:
    """Adjusted Rand index of groups against true tasks, with their number told and not."""
    sources = {
        "HowTo100M": f"howto100m:{data}/howto100m",
        "CrossTask": f"crosstask:{data}/crosstask",
        "YouCook2": f"{data}/youcook2/videos.jsonl",
        "demo": "demo",
    }
    for name, source in sources.items():
        videos = narrated(source).videos
        true = [recipe(video.task or "") for video in videos]
        tasks = len(set(true))
        words = [content_words(video.transcript) for video in videos]
        means = np.array([one.mean(axis=0) for one in vectors_of(videos)])
        means /= np.linalg.norm(means, axis=1, keepdims=True)
        begin = time.process_time()
        told = group_videos(words, tasks)
        seconds = time.process_time() - begin
        alone = group_videos(words)
        kmeans = KMeans(tasks, n_init=10, random_state=0).fit_predict(means)
        rivals = {
            "ward": AgglomerativeClustering(tasks).fit_predict(means),
            "kmeans": kmeans,
        }
        say(
            grouping=name,
            videos=len(true),
            tasks=tasks,
            ari=_ari(true, told),
            right=round(100 * _purity(true, told), 1),
            found_tasks=int(alone.max()) + 1,
            ari_number_not_told=_ari(true, alone),
            **{f"ari_{rival}": _ari(true, found) for rival, found in rivals.items()},
            worst_half=_worst_half(words, true) if name == "HowTo100M" else None,
            cpu_seconds=round(seconds, 1),
        )


def _ari(true: Sequence[str], found: NDArray[Any]) -> float:
    return round(float(adjusted_rand_score(true, found)), 3)


def _purity(true: Sequence[str], found: NDArray[Any]) -> float:
    """Share of videos in the group that is matched to their task."""
    tasks = sorted(set(true))
    table = np.zeros((len(tasks), int(found.max()) + 1))
    np.add.at(table, ([tasks.index(one) for one in true], found), 1)
    return float(table[linear_sum_assignment(-table)].sum() / len(true))


def _worst_half(words: Sequence[Sequence[str]], true: Sequence[str], draws: int = 5) -> float:
    """The lowest index of random halves of the videos."""
    rng, found = np.random.default_rng(0), []
    for _ in range(draws):
        half = rng.permutation(len(true))[: len(true) // 2]
        names = [true[at] for at in half]
        found.append(_ari(names, group_videos([words[at] for at in half], len(set(names)))))
    return min(found)


# What is compared: lists of names, with the row labels that they lead to.


def recognised(names: Vocabulary, dataset: Dataset, order: float) -> list[Labels]:
    """Labels of the recogniser with a list, as a user would get them."""
    decoder = TaskMarkov(order_weight=order)
    scores = list(score(dataset.videos, names, load_encoder(TaskMarkov.encoder)))
    graph = learn_graph(scores, names, decoder=decoder)
    return [decoder.decode(one, graph) for one in scores]


def by_kmeans(dataset: Dataset, size: int) -> tuple[list[str], list[NDArray[np.int64]]]:
    """Clusters of sentences, each named by the sentence nearest to its middle."""
    parts = vectors_of(dataset.videos)
    texts = [one.text for video in dataset.videos for one in video.transcript]
    model = KMeans(size, n_init=10, random_state=0).fit(np.concatenate(parts))
    nearest = (np.concatenate(parts) @ model.cluster_centers_.T).argmax(axis=0)
    rows = []
    for video, vectors in zip(dataset.videos, parts, strict=True):
        intervals = np.array([[one.start, one.end] for one in video.transcript])
        length = len(dataset.truth[video.id].keysteps) if dataset.truth else 0
        part = part_of_row(intervals, length, 1.0)
        assigned = model.predict(vectors)
        rows.append(np.where(part >= 0, assigned[part], BACKGROUND))
    return [texts[at] for at in nearest], rows


def frequent_phrases(dataset: Dataset, size: int) -> list[str]:
    """The verb-object phrases of most videos."""
    return [kind.name for kind in listen(dataset, problems=Problems()).kinds()[:size]]


def by_time(truth: Sequence[NDArray[Any]], found: Sequence[NDArray[Any]], size: int, true: int):
    """Match steps by the rows they share, and measure."""
    table = np.zeros((true, size))
    for one, other in zip(truth, found, strict=True):
        both = (one >= 0) & (other >= 0)
        np.add.at(table, (one[both], other[both]), 1)
    rows, columns = linear_sum_assignment(-table)
    place = np.full(size + 1, BACKGROUND - 1)
    place[columns], place[-1] = rows, BACKGROUND
    truth_rows = np.concatenate(truth)
    mapped = np.concatenate([place[one] for one in found])
    right = (mapped == truth_rows) & (truth_rows >= 0)
    done = truth_rows >= 0
    predicted = np.concatenate(found) >= 0
    unions = [((mapped == k) | (truth_rows == k)).sum() for k in range(true)]
    iou = [(right & (truth_rows == k)).sum() / n for k, n in enumerate(unions) if n]
    precision, recall = right.sum() / predicted.sum(), right.sum() / done.sum()
    on_done = right.sum() / (done & predicted).sum()
    return {
        "precision": precision,
        "recall": recall,
        "f1": _f1(precision, recall),
        "f1_done": _f1(on_done, recall),
        "mof": (mapped == truth_rows).mean(),
        "iou": float(np.mean(iou)),
    }


def by_meaning(true: Sequence[str], found: Sequence[str]) -> dict[str, float]:
    """Match names by their cosine, and count those that mean the same."""
    if not found:
        return dict.fromkeys(("name_precision", "name_recall", "name_f1", "name_cosine"), 0.0)
    near = ENCODER.encode_texts(list(true)) @ ENCODER.encode_texts(list(found)).T
    matched = near[linear_sum_assignment(-near)]
    same = (matched >= MEANS_THE_SAME).sum()
    precision, recall = same / len(found), same / len(true)
    return {
        "name_precision": precision,
        "name_recall": recall,
        "name_f1": _f1(precision, recall),
        "name_cosine": float(matched.mean()),
    }


def _f1(precision: float, recall: float) -> float:
    return float(2 * precision * recall / max(precision + recall, 1e-9))


def percent(numbers: dict[str, float]) -> dict[str, float]:
    return {name: round(100 * float(value), 1) for name, value in numbers.items()}


def steps(data: Path) -> None:
    """Steps of CrossTask, of each task alone and of all videos together, and of the demo."""
    crosstask = narrated(f"crosstask:{data}/crosstask")
    tasks = sorted({video.task or "" for video in crosstask.videos})
    for task in tasks:
        own = tuple(video for video in crosstask.videos if video.task == task)
        compare(f"CrossTask, {task}", replace(crosstask, videos=own), [task], {"tasks": 1})
    compare("CrossTask, all videos", crosstask, tasks, {})
    demo = narrated("demo")
    every = sorted({video.task or "" for video in demo.videos})
    compare("demo, all videos", demo, every, {})
    compare("demo, number of tasks given", demo, every, {"tasks": len(every)})


def compare(name: str, dataset: Dataset, tasks: Sequence[str], options: dict[str, int]) -> None:
    """Our proposal, its rivals, and the written list, of the same videos."""
    words = dataset.vocabulary
    assert words is not None, "only what has a truth is compared"
    members = [*dict.fromkeys(keystep for task in tasks for keystep in words.tasks[task])]
    place = np.full(len(words) + 1, BACKGROUND)
    place[members] = np.arange(len(members))
    truth = [place[dataset.truth[video.id].keysteps] for video in dataset.videos]
    true = [words.keysteps[keystep] for keystep in members]
    begin = time.process_time()
    proposed = suggest_steps(replace(dataset, vocabulary=None, truth={}), **options)
    seconds = time.process_time() - begin
    ours = proposed.vocabulary
    size = len(ours)
    sentences, clusters = by_kmeans(dataset, size)
    frequent = frequent_phrases(dataset, size)
    written = make_vocabulary(
        [line for t in tasks for line in (f"# {t}", *(words.keysteps[k] for k in words.tasks[t]))]
    )
    lists = {
        "proposed": (ours.keysteps, recognised(ours, dataset, 1.0)),
        "frequent phrases": (frequent, recognised(Vocabulary(tuple(frequent)), dataset, 0.0)),
        "k-means, recognised": (
            sentences,
            recognised(Vocabulary(tuple(dict.fromkeys(sentences))), dataset, 0.0),
        ),
        "the written list": (written.keysteps, recognised(written, dataset, 1.0)),
    }
    found = {
        one: (names, [label.keysteps for label in rows]) for one, (names, rows) in lists.items()
    }
    found["k-means"] = (sentences, clusters)
    for method, (names, rows) in found.items():
        numbers = by_time(truth, rows, len(names), len(true)) | by_meaning(true, names)
        extra = {"cpu_seconds": round(seconds, 1)} if method == "proposed" else {}
        say(
            steps=name,
            method=method,
            listed=len(names),
            true=len(true),
            **percent(numbers),
            **extra,
        )


def articles(data: Path) -> None:
    """Steps against articles of HowTo100M's and CrossTask's tasks, and YouCook2: by meaning."""
    lists, shown = lists_of_articles(data)
    howto = narrated(f"howto100m:{data}/howto100m")
    groups: defaultdict[str, list[Video]] = defaultdict(list)
    for video in howto.videos:
        if video.id in shown:
            groups[shown[video.id]].append(video)
    _against("HowTo100M, articles", groups, {title: [lists[title]] for title in groups})
    crosstask = narrated(f"crosstask:{data}/crosstask")
    for task in sorted({video.task or "" for video in crosstask.videos} & lists.keys()):
        own = [video for video in crosstask.videos if video.task == task]
        _against(f"CrossTask, article: {task}", {task: own}, {task: [lists[task]]})
    tyre = crosstask.vocabulary
    assert tyre is not None, "CrossTask has a list"
    names = [tyre.keysteps[keystep] for keystep in tyre.tasks["Change a Tire"]]
    numbers = percent(by_meaning(names, IN_PLAIN_WORDS))
    say(steps="CrossTask, Change a Tire", method="the written list in plain words", **numbers)
    youcook = narrated(f"{data}/youcook2/videos.jsonl")
    recipes: defaultdict[str, list[Video]] = defaultdict(list)
    written: defaultdict[str, list[list[str]]] = defaultdict(list)
    assert youcook.vocabulary is not None, "YouCook2 has lists"
    for video in youcook.videos:
        title = recipe(video.task or "")
        recipes[title].append(video)
        members = youcook.vocabulary.tasks[video.task or ""]
        written[title].append([youcook.vocabulary.keysteps[keystep] for keystep in members])
    _against("YouCook2, recipe by recipe", recipes, written)
    _against("YouCook2, --min-videos 1", recipes, written, min_videos=1)


def _against(
    name: str,
    groups: dict[str, list[Video]],
    written: dict[str, list[list[str]]],
    **options: int,
) -> None:
    """Means over groups of how well names agree with what is written of each."""
    totals: defaultdict[str, list[dict[str, float]]] = defaultdict(list)
    silent = 0
    for title, videos in groups.items():
        dataset = Dataset(title, tuple(videos))
        try:
            proposed = suggest_steps(dataset, tasks=1, **options).vocabulary.keysteps
        except DataError:
            proposed, silent = (), silent + 1
        size = len(proposed) or STEPS
        lists = {
            "proposed": proposed,
            "frequent phrases": frequent_phrases(dataset, size),
            "k-means": by_kmeans(dataset, min(size, sum(len(v.transcript) for v in videos)))[0],
        }
        for method, found in lists.items():
            each = [by_meaning(one, found) for one in written[title]]
            totals[method].append({key: np.mean([one[key] for one in each]) for key in each[0]})
    for method, numbers in totals.items():
        means = {key: float(np.mean([one[key] for one in numbers])) for key in numbers[0]}
        say(articles=name, method=method, groups=len(numbers), silent=silent, **percent(means))


def checks(data: Path) -> None:
    """Take a step out of a list, put a foreign one in, and ask what is wrong with it.

    Two tasks of CrossTask are checked together, the lists of others one by one.
    """
    crosstask = narrated(f"crosstask:{data}/crosstask")
    proposed = suggest_steps(replace(crosstask, vocabulary=None, truth={}))
    lists = {task.name: [step.name for step in task.steps] for task in proposed.tasks}
    _check("proposed", [(crosstask, lists)])
    _check("written", [(crosstask, _lists_of(crosstask))])
    demo = narrated("demo")
    _check("demo, written", _task_by_task(demo, _lists_of(demo)))
    _check("demo, each step", _task_by_task(demo, _lists_of(demo)), draws=None)
    articles, shown = lists_of_articles(data)
    howto = narrated(f"howto100m:{data}/howto100m")
    videos = tuple(replace(one, task=shown[one.id]) for one in howto.videos if one.id in shown)
    lists = {title: articles[title] for title in dict.fromkeys(shown.values())}
    parts = _task_by_task(replace(howto, videos=videos), lists)
    _check("HowTo100M, articles", parts)
    few = [(replace(some, videos=some.videos[:FEW]), one) for some, one in parts]
    _check("HowTo100M, articles, six videos a task", few, draws=None)


def _lists_of(dataset: Dataset) -> dict[str, list[str]]:
    words = dataset.vocabulary
    assert words is not None, "it has a list"
    tasks = sorted({video.task or "" for video in dataset.videos})
    return {task: [words.keysteps[keystep] for keystep in words.tasks[task]] for task in tasks}


def _task_by_task(dataset: Dataset, lists: dict[str, list[str]]) -> list[Part]:
    """Each list with the videos of its task."""
    return [
        (
            replace(dataset, videos=tuple(v for v in dataset.videos if v.task == task)),
            {task: names},
        )
        for task, names in lists.items()
    ]


def _check(name: str, parts: Sequence[Part], draws: int | None = 10) -> None:
    """Draw steps that the check of the whole list does not call unheard, and take them out.

    Each of them once where no number is given.

    ``taken_out_found``: what is told to be missing means the same as its name (``by_meaning``), or
    is said while it is truly done rather than any other step (``by_time``, where there is truth).
    ``told_only_then``: such a phrase is not told to be missing of the whole list as well.
    """
    rng, counts = np.random.default_rng(0), Counter[str]()
    bare = [replace(dataset, vocabulary=None, truth={}) for dataset, _ in parts]
    wholes = [
        check_steps(_vocabulary(lists), videos)
        for videos, (_, lists) in zip(bare, parts, strict=True)
    ]
    every = [
        (part, task, step)
        for part, (_, lists) in enumerate(parts)
        for task, names in lists.items()
        for step in _vocabulary({task: names}).keysteps
        if (task, (step,)) not in [(one.task, one.keysteps) for one in wholes[part].of("unheard")]
    ]
    draws = draws or len(every)
    for draw, at in enumerate(rng.choice(len(every), draws, replace=False).tolist()):
        part, task, taken = every[at]
        dataset, lists = parts[part]
        foreign, own = NONSENSE[draw % len(NONSENSE)], [*_vocabulary({task: lists[task]}).keysteps]
        own.remove(taken)
        own.insert(int(rng.integers(len(own) + 1)), foreign)
        found = check_steps(_vocabulary(lists | {task: own}), bare[part])
        phrases = [one.keysteps[0] for one in found.of("missing") if one.task == task]
        near = ENCODER.encode_texts([taken]) @ ENCODER.encode_texts(phrases or [""]).T
        same = [p for p, value in zip(phrases, near[0], strict=False) if value >= MEANS_THE_SAME]
        while_done = [p for p in phrases if _done_while_said(p, dataset, task) == taken]
        always = {one.keysteps[0] for one in wholes[part].of("missing") if one.task == task}
        counts["by_meaning"] += bool(same)
        counts["by_time"] += bool(while_done)
        counts["taken_out_found"] += bool(same or while_done)
        counts["told_only_then"] += bool({*same, *while_done} - always)
        counts["nonsense_found"] += (foreign,) in [one.keysteps for one in found.of("unheard")]
    kinds = Counter(found.kind for whole in wholes for found in whole.findings)
    say(
        check=name,
        draws=draws,
        of_steps=len(every),
        **{key: counts[key] for key in CHECKED},
        **{f"whole_list_{kind}": n for kind, n in sorted(kinds.items())},
    )


def _done_while_said(phrase: str, dataset: Dataset, task: str) -> str:
    """The step of a task that is truly done for most seconds that begin with a phrase."""
    words, seconds = dataset.vocabulary, Counter[str]()
    if words is None or task not in words.tasks or not dataset.truth:
        return ""
    own = {words.keysteps[keystep] for keystep in words.tasks[task]}
    videos = tuple(video for video in dataset.videos if video.task == task)
    said = listen(replace(dataset, videos=videos), problems=Problems())
    for kind in said.kinds():
        if kind.name == phrase:
            for video, begin in kind.mentions:
                rows = dataset.truth[said.videos[video].id].keysteps
                some = rows[int(begin) : int(begin) + SAID]
                seconds.update(words.keysteps[row] for row in some if row >= 0)
    known = Counter({name: n for name, n in seconds.items() if name in own})
    return known.most_common(1)[0][0] if known else ""


def _vocabulary(lists: dict[str, list[str]]) -> Vocabulary:
    return make_vocabulary(
        [line for task, names in lists.items() for line in (f"# {task}", *names)]
    )


PARTS = {"--grouping": grouping, "--steps": steps, "--articles": articles, "--check": checks}


def main(arguments: Sequence[str]) -> None:
    places = [one for one in arguments if not re.match("--", one)]
    asked = [PARTS[one] for one in arguments if one in PARTS] or [*PARTS.values()]
    if len(places) != 1:
        sys.exit(__doc__)
    for part in asked:
        part(Path(places[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
