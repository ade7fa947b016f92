"""What each part of our own recogniser is worth: ``python -m benchmarks.recognizer SOURCE``.

Nothing is tuned on the truth of the videos it is reported on.  Options are chosen on the videos
of one task and reported on those of the others, for every task in turn; the table of parts
takes one part away at a time, with the default options.  Standard errors are over five random
parts of the videos.  Prints one JSON object a line.
"""

from __future__ import annotations

import json
import sys
import timeit
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.stats import spearmanr

from stepgraph.core import BACKGROUND, Dataset, Labels, Scores, Vocabulary
from stepgraph.datasets import open_source
from stepgraph.decoders import Argmax, PathSearch, TaskMarkov
from stepgraph.encoders import EncoderOptions, load_encoder
from stepgraph.evaluation.report import calibration_error, evaluate, over_splits, task_accuracy
from stepgraph.graph import TaskGraph, mine_graph
from stepgraph.scoring import score

GRID = {
    "temperature": (0.05, 0.1, 0.2),
    "common": (0.0, 0.5, 1.0),
    "stay": (0.95, 0.98),
    "spread": (0.18, 0.25, 0.35),
}


def say(**result: object) -> None:
    print(json.dumps(result), flush=True)


def prepare(dataset: Dataset, options: EncoderOptions) -> tuple[list[Scores], TaskGraph]:
    scores = list(score(dataset.videos, dataset.vocabulary, load_encoder(options)))
    return scores, mine_graph(scores, dataset.vocabulary, encoder=options)


def measured(labels: Sequence[Labels], dataset: Dataset) -> dict[str, object]:
    by_video = {one.video: one for one in labels}
    report = evaluate(labels, dataset.truth)
    result: dict[str, object] = {"videos": report.videos}
    for metric in ("accuracy", "iou"):

        def value(videos: Sequence[str], metric: str = metric) -> float:
            part = evaluate([by_video[video] for video in videos], dataset.truth)
            return float(getattr(part, metric))

        spread = over_splits(value, list(by_video), parts=5, seed=0)
        result[metric] = round(100 * getattr(report, metric), 2)
        result[f"{metric}_standard_error"] = round(100 * spread.standard_error, 2)
    return result


def extras(labels: Sequence[Labels], dataset: Dataset) -> dict[str, object]:
    return {
        "task_accuracy": round(100 * task_accuracy(labels, dataset.videos), 2),
        "calibration_error": round(calibration_error(labels, dataset.truth), 4),
    }


def known_task(scores: Sequence[Scores], dataset: Dataset) -> list[Scores]:
    task_of = {video.id: video.task for video in dataset.videos}
    return [one.restrict(dataset.vocabulary.tasks[task_of[one.video]]) for one in scores]


def parts(dataset: Dataset) -> None:
    """The whole recogniser, and without each of its parts."""
    whole = TaskMarkov.encoder
    plain = EncoderOptions()
    scores, graph = prepare(dataset, whole)
    rows = {
        "whole": (TaskMarkov(), whole),
        "sentence alone": (TaskMarkov(), replace(whole, context=0, blend=False)),
        "sentence with neighbours only": (TaskMarkov(), replace(whole, blend=False)),
        "keystep without its task's name": (TaskMarkov(), replace(whole, task_names=False)),
        "no common score taken away": (TaskMarkov(common=0.0), whole),
        "no place in the order": (TaskMarkov(spread=1e6), whole),
        "graph hardly used": (TaskMarkov(order_votes=1e9), whole),
        "order of transitions hardly used": (TaskMarkov(order_votes=1e-6), whole),
        "path search, same scores": (PathSearch(), whole),
        "argmax, same scores": (Argmax(), whole),
        "path search, as in the paper": (PathSearch(), plain),
        "argmax, as in the paper": (Argmax(), plain),
    }
    for name, (decoder, options) in rows.items():
        one, mined = (scores, graph) if options == whole else prepare(dataset, options)
        labels = [decoder.decode(each, mined) for each in one]
        result = measured(labels, dataset)
        if isinstance(decoder, TaskMarkov):
            result |= extras(labels, dataset)
        say(part=name, **result)
    labels = [TaskMarkov().decode(one, graph) for one in known_task(scores, dataset)]
    say(part="task known", **measured(labels, dataset))


def inductive(dataset: Dataset) -> None:
    """Graphs mined on other videos: two halves, each labelled with the other's graph."""
    scores, _ = prepare(dataset, TaskMarkov.encoder)
    halves = scores[::2], scores[1::2]
    labels = [
        TaskMarkov().decode(one, mine_graph(other, dataset.vocabulary))
        for half, other in (halves, halves[::-1])
        for one in half
    ]
    say(part="graph mined on other videos", **measured(labels, dataset))


def swap(dataset: Dataset) -> None:
    """Choose options on the videos of one task, report on those of the others, and swap."""
    scores, graph = prepare(dataset, TaskMarkov.encoder)
    task_of = {video.id: video.task for video in dataset.videos}
    for known in (False, True):
        given = known_task(scores, dataset) if known else scores
        chosen: list[Labels] = []
        for task in sorted(set(task_of.values())):
            own = [one for one in given if task_of[one.video] == task]
            others = [one for one in given if task_of[one.video] != task]
            options = best_options(others, graph, dataset)
            say(reported_on=task, task_known=known, chosen_on="the other tasks", **options)
            chosen += [TaskMarkov(**options).decode(one, graph) for one in own]
        result = measured(chosen, dataset)
        if not known:
            result |= extras(chosen, dataset)
        say(part="swap, task known" if known else "swap, task unknown", **result)


def best_options(scores: Sequence[Scores], graph: TaskGraph, dataset: Dataset) -> dict[str, float]:
    """Options of most accuracy, then the calibration that makes the truth most probable."""
    grid = [dict(zip(GRID, values, strict=True)) for values in product(*GRID.values())]

    def accuracy(options: dict[str, float]) -> float:
        labels = [TaskMarkov(**options).decode(one, graph) for one in scores]
        return evaluate(labels, dataset.truth).accuracy

    best = max(grid, key=accuracy)
    raw = TaskMarkov(**best, slope=1.0, bias=0.0)
    slope, bias = fit_confidence([raw.decode(one, graph) for one in scores], dataset)
    return best | {"slope": slope, "bias": bias}


def fit_confidence(labels: Sequence[Labels], dataset: Dataset) -> tuple[float, float]:
    """Slope and bias of the log odds, by logistic regression on rows with a true keystep."""
    confidence, right = [], []
    for one in labels:
        true = dataset.truth[one.video].keysteps
        judged = true != BACKGROUND
        confidence.append(one.confidence[judged])
        right.append((one.keysteps == true)[judged])
    odds = np.clip(np.concatenate(confidence), 1e-6, 1 - 1e-6)
    hits = np.concatenate(right)
    logit = np.log(odds / (1 - odds))

    def cost(parameters: NDArray[np.float64]) -> float:
        value = parameters[0] * logit + parameters[1]
        return float(np.mean(np.logaddexp(0, value) - hits * value))

    slope, bias = minimize(cost, np.array([1.0, 0.0])).x
    return round(float(slope), 3), round(float(bias), 3)


def order(source: str) -> None:
    """How far true keysteps come in their written order: all annotated tasks of CrossTask."""
    folder = Path(source.partition(":")[2])
    for block in (folder / "tasks_primary.txt").read_text().strip().split("\n\n"):
        task, name, _, size, _ = block.split("\n")
        times: list[list[float]] = [[] for _ in range(int(size))]
        for path in (folder / "annotations").glob(f"{task}_*.csv"):
            lines = [tuple(map(float, line.split(","))) for line in path.read_text().split()]
            for step, start, end in lines:
                times[int(step) - 1].append((start + end) / 2 / max(line[2] for line in lines))
        if any(times):
            means = [float(np.mean(one)) for one in times]
            rank = spearmanr(range(len(means)), means)[0]
            say(task=name, keysteps=len(means), spearman=round(float(rank), 2))


def speed(dataset: Dataset) -> None:
    """Decoding beside path search, and at the size of HowTo100M; best of five."""
    scores, graph = prepare(dataset, TaskMarkov.encoder)
    seconds = {}
    for decoder in (PathSearch(), TaskMarkov()):
        name = type(decoder).__name__
        seconds[name] = best_of(lambda one=decoder: [one.decode(each, graph) for each in scores])
    ratio = round(seconds["TaskMarkov"] / seconds["PathSearch"], 2)
    say(bench="decoding", videos=len(scores), ratio=ratio, **seconds)
    size, rng = 10_588, np.random.default_rng(0)
    tasks = {f"task {k}": tuple(range(k, min(k + 10, size))) for k in range(0, size, 10)}
    vocabulary = Vocabulary(tuple(map(str, range(size))), tasks)
    values = 0.6 * rng.random((600, size), dtype=np.float32)
    large = Scores("large", values, np.ones(600, dtype=bool), vocabulary)
    source = np.repeat(np.arange(size), 20)
    counts = (np.ones(len(source), np.int64), (source, rng.integers(0, size, len(source))))
    chain = TaskGraph(vocabulary, csr_array(counts, shape=(size, size)))
    took = best_of(lambda: TaskMarkov().decode(large, chain))
    say(bench="decoding, 600 rows x 10,588 keysteps", seconds=took)


def best_of(work: Callable[[], object]) -> float:
    work()
    return round(min(timeit.repeat(work, number=1, repeat=5)), 4)


def main(source: str, *, only_speed: bool = False) -> None:
    dataset = open_source(source)
    if not only_speed:
        parts(dataset)
        inductive(dataset)
        swap(dataset)
        if source.startswith("crosstask:"):
            order(source)
    speed(dataset)


if __name__ == "__main__":
    main(sys.argv[1], only_speed="--speed" in sys.argv)
