"""What the graph is worth to recognition: ``python -m benchmarks.graph_worth DATA``.

DATA is the folder with the data sets.  On CrossTask and the embedded corpus: path search beside
controls without a graph, and with a graph counted from the truth; stepgraph's own recogniser with
transitions from several sources, with parts of what it learns, and on narration that was thinned
out; which task the labels vote for, on HowTo100M as well.  Graphs are mined on the same videos
without their truth.  Every difference is paired over videos, with its 95 % interval (bootstrap,
1,000 resamples).  Prints one JSON object a line, numbers in percent;
``docs/does-the-graph-help.md`` shows them.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from benchmarks.suites import Suite, every_suite, suite
from stepgraph.core import BACKGROUND, Labels, Scores, Video
from stepgraph.datasets import build_vocabulary, open_source
from stepgraph.decoders import Argmax, Decoder, PathSearch, TaskMarkov
from stepgraph.decoders.baselines import linear_graph
from stepgraph.decoders.controls import AnchorsOnly, ArgmaxHold, HalvedGaps
from stepgraph.decoders.learning import learn_graph
from stepgraph.decoders.tasks import rank_tasks
from stepgraph.encoders import EncoderOptions, load_encoder
from stepgraph.evaluation.comparison import (
    PairedDifference,
    bootstrap_mean,
    compare_counts,
    count_videos,
)
from stepgraph.evaluation.counts import Counts
from stepgraph.evaluation.order import count_next
from stepgraph.graph import TaskGraph, mine_graph
from stepgraph.graph.order_statistics import END, blend_transitions
from stepgraph.scoring import score

Found: TypeAlias = Mapping[str, Mapping[str, Counts]]
"""Counts of each video, by method."""

SHOWN = ("accuracy", "iou", "segment_f1_50")
SHARES, SEEDS = (0.3, 0.1, 0.05), 5
RESULTS = Path(__file__).parent / "results" / "graph_worth.jsonl"
PATHS: dict[str, Decoder] = {
    "path search": PathSearch(),
    "halved gaps": HalvedGaps(),
    "anchors only": AnchorsOnly(),
    "argmax-hold": ArgmaxHold(),
    "argmax": Argmax(),
}


class Flat(TaskMarkov):
    """Leave every keystep for any other with the same probability: no counts, no order."""

    def transitions(self, members: Sequence[int], graph: TaskGraph) -> NDArray[np.float64]:
        """Give every other keystep the same share."""
        size = len(members)
        return blend_transitions(
            np.zeros((size, size), np.int64), np.ones((size, size)), self.self_transition
        )


def say(**result: object) -> None:
    print(json.dumps(result), flush=True)


def percent(found: PairedDifference) -> list[float]:
    return [round(100 * one, 2) for one in found]


def measured(counts: Mapping[str, Counts]) -> dict[str, float]:
    """Add up the counts of all videos; what is shown of them, in percent."""
    first, *others = counts.values()
    found = sum(others, first).metrics()
    return {metric: round(100 * found[metric], 2) for metric in SHOWN}


def compare(found: Found, name: str, base: str) -> dict[str, Any]:
    """Measure a method, and take its difference to another."""
    line: dict[str, Any] = {"method": name, "base": base} | measured(found[name])
    if name != base:
        differences = compare_counts([found[name]], [found[base]], SHOWN)
        line |= {f"{metric}_more": percent(one) for metric, one in differences.items()}
    return line


def counted(one: Suite, methods: Mapping[str, Callable[[Scores], Labels]]) -> dict[str, Any]:
    """Decode all videos with each method, and count."""
    return {
        name: count_videos(map(decode, one.scores), one.truth) for name, decode in methods.items()
    }


def as_the_paper(one: Suite) -> Suite:
    """The same videos, their sentences embedded alone, as the paper does."""
    encoder = load_encoder(EncoderOptions())
    return replace(one, scores=tuple(score(one.videos, one.vocabulary, encoder)))


def true_graph(one: Suite) -> TaskGraph:
    """A graph counted from the true labels as others are from preliminary ones."""
    sure = (
        Scores(
            true.video,
            (true.keysteps[:, None] == np.arange(len(one.vocabulary))).astype(np.float32),
            true.keysteps != BACKGROUND,
            one.vocabulary,
        )
        for true in one.truth.values()
    )
    return mine_graph(sure, one.vocabulary)


def search_paths(one: Suite) -> None:
    """Path search with several graphs, beside labels without one."""
    graph = mine_graph(one.scores, one.vocabulary)
    methods: dict[str, Callable[[Scores], Labels]] = {
        name: partial(decoder.decode, graph=graph) for name, decoder in PATHS.items()
    }
    graphs = {"listed order": linear_graph(one.vocabulary), "true": true_graph(one)}
    methods |= {
        f"path search, {name} graph": partial(PathSearch().decode, graph=other)
        for name, other in graphs.items()
    }
    own = [PathSearch().decode(each, graph) for each in one.scores]
    found = counted(one, methods)
    for name, decode in methods.items():
        pairs = zip(own, map(decode, one.scores), strict=True)
        same = np.concatenate([mine.keysteps == other.keysteps for mine, other in pairs])
        line = compare(found, name, "path search")
        say(measure="paths", corpus=one.name, **line, rows_equal=round(100 * same.mean(), 2))
    say(measure="gaps", corpus=one.name, **gaps(own, graph))


def gaps(labels: Iterable[Labels], graph: TaskGraph) -> dict[str, float]:
    """How many keysteps the paths have between two anchors that do not touch, in percent."""
    sizes = []
    for one in labels:
        assert one.anchors is not None, "path search says which rows are anchors"
        for first, last in pairwise(np.flatnonzero(one.anchors).tolist()):
            if last - first > 1:
                ends = int(one.keysteps[first]), int(one.keysteps[last])
                sizes.append(len(graph.path(*ends) or ends))
    many, found = len(sizes), np.bincount(sizes, minlength=4)
    return {
        "gaps": many,
        "same_keystep": round(100 * found[1] / many, 1),
        "two_keysteps": round(100 * found[2] / many, 1),
        "longer": round(100 * found[3:].sum() / many, 1),
    }


def next_counts(graph: TaskGraph, following: Mapping[tuple[int, int], int]) -> TaskGraph:
    """The same graph with other transitions: how often one keystep is the next after another."""
    size = len(graph.vocabulary)
    found = {pair: count for pair, count in following.items() if END not in pair}
    places = tuple(np.array([*found], dtype=np.int64).reshape(len(found), 2).T)
    counts = coo_array((np.array([*found.values()], dtype=np.int64), places), (size, size))
    return replace(graph, counts=csr_array(counts))


def next_of_map(graph: TaskGraph) -> Counter[tuple[int, int]]:
    """How often one keystep is the next after another in the recognised videos of each task."""
    found: Counter[tuple[int, int]] = Counter()
    statistics = graph.statistics
    assert statistics is not None, "narrated videos have courses"
    for counted in map(statistics.of_task, statistics.traces.tasks):
        for (place, other), count in np.ndenumerate(counted.following[:, :-1]):
            found[counted.keysteps[place], counted.keysteps[other]] += int(count)
    return found


def next_in_truth(one: Suite) -> dict[tuple[int, int], int]:
    """How often one keystep is the next after another in truth."""
    after = count_next(one.truth.values())
    return {(first, second): n for first, found in after.items() for second, n in found.items()}


def change_transitions(one: Suite, graph: TaskGraph) -> None:
    """Our own recogniser with transitions from several sources; all else is as it is."""
    mapped = next_counts(graph, next_of_map(graph))
    true = next_counts(graph, next_in_truth(one))
    calm, unordered = TaskMarkov(self_transition=0.97), TaskMarkov(order_prior_transitions=1.0)
    ways: dict[str, tuple[Decoder, TaskGraph]] = {
        "flat": (Flat(), graph),
        "listed order alone": (TaskMarkov(), next_counts(graph, {})),
        "neighbouring rows": (TaskMarkov(), graph),
        "map": (TaskMarkov(), mapped),
        "true": (TaskMarkov(), true),
        "map, hardly any listed order": (unordered, mapped),
        "true, hardly any listed order": (unordered, true),
        "map, self-transition 0.97": (calm, mapped),
        "true, self-transition 0.97": (calm, true),
    }
    found = counted(
        one, {k: partial(each.decode, graph=with_) for k, (each, with_) in ways.items()}
    )
    for name in found:
        say(measure="transitions", corpus=one.name, **compare(found, name, "flat"))


def take_parts_away(one: Suite, graph: TaskGraph) -> None:
    """Our own recogniser with some of what was learned."""
    parameters = graph.parameters
    assert parameters is not None, "they were just learned"
    nothing = replace(parameters, log_evidence={}, timing={}, classifiers={})
    prior = replace(nothing, log_evidence=parameters.log_evidence)
    known = {
        "nothing learned": nothing,
        "task prior": prior,
        "times": replace(nothing, timing=parameters.timing),
        "words": replace(nothing, classifiers=parameters.classifiers),
        "times and words": replace(parameters, log_evidence={}),
        "task prior and times": replace(parameters, classifiers={}),
        "task prior and words": replace(prior, classifiers=parameters.classifiers),
        "all": parameters,
    }
    decode = TaskMarkov().decode
    found = counted(
        one,
        {k: partial(decode, graph=replace(graph, parameters=part)) for k, part in known.items()},
    )
    for name in found:
        line = compare(found, name, "nothing learned")
        less = compare(found, name, "all").get("accuracy_more")
        say(measure="learned", corpus=one.name, **line, than_all_more=less)


def thin(video: Video, share: float, rng: np.random.Generator) -> Video:
    """The same video with some of its sentences."""
    kept = rng.random(len(video.transcript)) < share
    said = (one for one, stays in zip(video.transcript, kept, strict=True) if stays)
    return replace(video, transcript=tuple(said))


def thin_out(one: Suite, graph: TaskGraph) -> None:
    """Little narration, with the graph of all of it: the mean of some draws."""
    assert graph.parameters is not None, "they were just learned"
    bare = replace(graph, parameters=replace(graph.parameters, timing={}, classifiers={}))
    methods: dict[str, Callable[[Scores], Labels]] = {
        "path search": partial(PathSearch().decode, graph=graph),
        "halved gaps": partial(HalvedGaps().decode, graph=graph),
        "our own": partial(TaskMarkov().decode, graph=graph),
        "our own, transitions flat": partial(Flat().decode, graph=graph),
        "our own, no times and words": partial(TaskMarkov().decode, graph=bare),
    }
    for share in SHARES:
        draws = []
        for seed in range(SEEDS):
            rng = np.random.default_rng(seed)
            videos = tuple(thin(video, share, rng) for video in one.videos)
            scores = tuple(score(videos, one.vocabulary, load_encoder(TaskMarkov.encoder)))
            draws.append(counted(replace(one, videos=videos, scores=scores), methods))
        found = {
            name: {
                video: sum((draw[name][video] for draw in draws[1:]), counts)
                for video, counts in draws[0][name].items()
            }
            for name in methods
        }
        for name in methods:
            base = "path search" if name == "halved gaps" else "our own"
            each = [measured(draw[name])["accuracy"] for draw in draws]
            spread = round(float(np.std(each, ddof=1)), 2)
            row = {"corpus": one.name, "share": share, "draws": SEEDS, "accuracy_spread": spread}
            say(measure="thinned", **row, **compare(found, name, base))


def recognise_tasks(name: str, scores: Sequence[Scores], shown: Mapping[str, str]) -> None:
    """How often most votes of the labels are for the task that a video shows."""
    graph = mine_graph(scores, scores[0].vocabulary)
    known = [each for each in scores if shown.get(each.video) in each.vocabulary.tasks]
    right = {
        method: np.array(
            [
                rank_tasks(decoder.decode(each, graph))[:1] == (shown[each.video],)
                for each in known
            ],
            dtype=np.float64,
        )
        for method, decoder in PATHS.items()
    }
    for method, found in right.items():
        line = {"method": method, "base": "path search", "videos": len(known)}
        line["task"] = round(100 * float(found.mean()), 2)
        if method != "path search":
            line["task_more"] = percent(bootstrap_mean(found - right["path search"]))
        say(measure="tasks", corpus=name, **line)


def map_in_suites(data: Path) -> None:
    """Transitions of the map in place of neighbouring rows, on every suite: the mean of draws."""
    found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in (each for each in every_suite(data) if each.truth):
        graph = learn_graph(one.scores, one.vocabulary, decoder=one.decoder)
        graphs = {"rows": graph, "map": next_counts(graph, next_of_map(graph))}
        counts = counted(
            one, {name: partial(one.decoder.decode, graph=each) for name, each in graphs.items()}
        )
        found[one.name].append(compare(counts, "map", "rows") | measured(counts["rows"]))
    for name, draws in found.items():
        line: dict[str, Any] = {}
        for key in (*SHOWN, *(f"{metric}_more" for metric in SHOWN)):
            mean = np.mean([draw[key] for draw in draws], axis=0).round(2).tolist()
            # The mean of intervals is none.
            line[key] = mean[:1] if len(draws) > 1 and key.endswith("more") else mean
        say(measure="suites", corpus=name, draws=len(draws), **line)


def howto100m(data: Path) -> tuple[tuple[Scores, ...], dict[str, str]]:
    """HowTo100M as in the table of tasks: the videos whose task has an article, and 20 videos."""
    source = f"howto100m:{data}/howto100m"
    articles = data / "wikihow_articles.jsonl"
    vocabulary = build_vocabulary(source, articles=articles, min_videos=20)
    videos = tuple(open_source(source, vocabulary=vocabulary).videos)
    scores = tuple(score(videos, vocabulary, load_encoder(EncoderOptions())))
    return scores, {video.id: video.task or "" for video in videos}


def lines_of(measure: str) -> list[dict[str, Any]]:
    """What was measured, of one kind."""
    lines = map(json.loads, RESULTS.read_text("utf-8").splitlines())
    return [one for one in lines if one["measure"] == measure]


def difference(line: Mapping[str, Any], name: str) -> str:
    """A difference with its interval; in bold where zero is outside."""
    if not line.get(f"{name}_more"):
        return ""
    value, *ends = (end + 0.0 for end in line[f"{name}_more"])  # no minus before a zero
    if not ends:
        return f"{value:+.2f}"
    low, high = ends
    text = f"{value:+.2f} [{low:.2f}, {high:.2f}]"
    return text if low <= 0 <= high else f"**{text}**"


def row(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def methods_table(measure: str, second: tuple[str, str], **more: str) -> str:
    """One line a method, with its difference to the first of its corpus, and a second one."""
    lines = lines_of(measure)
    heads = ["", "", "Acc", "IoU", "F1@50", f"Acc, more than {lines[0]['base']}", second[1]]
    heads += more.values()
    table = [row(heads), f"| --- | --- |{' ---: |' * (len(heads) - 2)}"]
    for one in lines:
        numbers = [f"{one[name]:.1f}" for name in SHOWN]
        rest = [difference(one, name) for name in ("accuracy", second[0])]
        rest += [f"{one[name]:.1f}" for name in more]
        table.append(row([one["corpus"], one["method"], *numbers, *rest]))
    return "\n".join(table)


def thinned_table() -> str:
    """One line a method, one column a share of the sentences."""
    found = {(one["corpus"], one["method"], one["share"]): one for one in lines_of("thinned")}
    heads = ["", ""]
    for share in SHARES:
        heads += [f"Acc, {100 * share:g} % kept", "more"]
    table = [row(heads), f"| --- | --- |{' ---: |' * (len(heads) - 2)}"]
    for corpus, method in dict.fromkeys(key[:2] for key in found):
        cells, base = [], ""
        for one in (found[corpus, method, share] for share in SHARES):
            cells += [f"{one['accuracy']:.1f} ± {one['accuracy_spread']:.1f}"]
            cells += [difference(one, "accuracy")]
            base = f" (more than {one['base']})" if one["method"] != one["base"] else ""
        table.append(row([corpus, method + base, *cells]))
    return "\n".join(table)


def tasks_table() -> str:
    """One line a corpus and method: how often the votes of its labels are for the true task."""
    table = [row(["", "", "task right", "more than path search"]), "| --- | --- | ---: | ---: |"]
    for one in lines_of("tasks"):
        corpus = f"{one['corpus']}, {one['videos']} videos"
        table.append(row([corpus, one["method"], f"{one['task']:.1f}", difference(one, "task")]))
    return "\n".join(table)


def gaps_table() -> str:
    """How many keysteps the paths have between two anchors that do not touch."""
    names = {"gaps": "gaps", "same_keystep": "one keystep, %", "two_keysteps": "two, %"}
    names |= {"longer": "three or more, %"}
    table = [row(["", *names.values()]), f"| --- |{' ---: |' * len(names)}"]
    table += [row([one["corpus"], *(one[name] for name in names)]) for one in lines_of("gaps")]
    return "\n".join(table)


def suites_table() -> str:
    """One line a suite: neighbouring rows, and what the map in their place adds."""
    lines = lines_of("suites")
    heads = ["", "Acc", "IoU", "F1@50", "with the map: Acc, more", "IoU, more", "F1@50, more"]
    table = [row(heads), f"| --- |{' ---: |' * (len(heads) - 1)}"]
    for one in lines:
        numbers = [f"{one[name]:.1f}" for name in SHOWN]
        table.append(row([one["corpus"], *numbers, *(difference(one, name) for name in SHOWN)]))
    every = np.array([[one[f"{name}_more"][0] for name in SHOWN] for one in lines])
    real = np.array(["demo" not in one["corpus"] for one in lines])
    means = {"the mean of real videos": every[real].mean(axis=0), "the mean": every.mean(axis=0)}
    for name, values in (means | {"the worst": every.min(axis=0)}).items():
        table.append(row([f"**{name}**", "", "", "", *(f"{value:+.2f}" for value in values)]))
    return "\n".join(table)


def tables() -> dict[str, str]:
    """Every table of the page, by its mark."""
    iou = ("iou", "IoU, more")
    return {
        "paths": methods_table("paths", iou, rows_equal="rows as path search, %"),
        "gaps": gaps_table(),
        "suites": suites_table(),
        "transitions": methods_table("transitions", iou),
        "learned": methods_table("learned", ("than_all", "Acc, more than all")),
        "thinned": thinned_table(),
        "tasks": tasks_table(),
    }


def main() -> None:
    data = Path(sys.argv[1])
    for name, source in (("CrossTask", f"crosstask:{data}/crosstask"), ("demo", "demo")):
        own = suite(name, open_source(source))
        plain = as_the_paper(own)
        search_paths(plain)
        recognise_tasks(name, plain.scores, {one.id: one.task or "" for one in own.videos})
        graph = learn_graph(own.scores, own.vocabulary)
        change_transitions(own, graph)
        take_parts_away(own, graph)
        thin_out(own, graph)
    recognise_tasks("HowTo100M", *howto100m(data))
    map_in_suites(data)


if __name__ == "__main__":
    main()
