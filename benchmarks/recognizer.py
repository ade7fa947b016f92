"""How far our own recogniser holds: ``python -m benchmarks.recognizer DATA``.

DATA is the folder with the data sets.  Every suite is decoded with the defaults, with a graph
mined on its own videos without their truth, beside path search on the same scores.  Then the
parts of the recogniser are taken away one at a time, options are chosen on one task of CrossTask
and reported on the other, chapters are made fewer and longer, and the speed is measured.  Prints
one JSON object a line; ``--speed`` measures only that, ``--suites`` only the suites, and
``--chapters`` only the chapters.  With ``--alone`` sentences are embedded without their
neighbours, as ``--context 0`` does.
"""

from __future__ import annotations

import json
import sys
import timeit
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array

from benchmarks.suites import Suite, every_suite, recipe, suite
from stepgraph.core import BACKGROUND, OVERLAP, Labels, Scores, Vocabulary, runs
from stepgraph.datasets import open_source
from stepgraph.decoders import Decoder, PathSearch, TaskMarkov
from stepgraph.decoders.learning import learn_graph
from stepgraph.evaluation.report import calibration_error, evaluate, over_splits
from stepgraph.graph import TaskGraph, mine_graph

SHOWN = (
    *("accuracy", "iou", "frame_accuracy", "segment_f1_10", "segment_f1_25", "segment_f1_50"),
    *("background_share", "background_precision", "empty_segments", "empty_chapters"),
)
WORST_IS_MOST = ("calibration_error", "empty_segments", "empty_chapters")
GRID = {
    "temperature": (0.07, 0.1, 0.15),
    "mean_subtraction": (0.0, 0.5),
    "self_transition": (0.9, 0.95),
    "background": (0.1, 0.13, 0.16),
}


def say(**result: object) -> None:
    print(json.dumps(result), flush=True)


def measure(one: Suite, labels: Sequence[Labels]) -> dict[str, float]:
    """All numbers of a suite, in percent."""
    task_of = {video.id: video.task for video in one.videos}
    told = [(next(iter(found.tasks or {}), ""), task_of[found.video]) for found in labels]
    numbers = {}
    if one.vocabulary.tasks and labels[0].tasks is not None:
        numbers["task"] = 100 * float(np.mean([guess == task for guess, task in told]))
        if one.name.startswith("YouCook2"):
            alike = [recipe(guess) == recipe(task or "") for guess, task in told]
            numbers["recipe"] = 100 * float(np.mean(alike))
    if one.truth:
        report = evaluate(labels, one.truth)
        numbers |= {name: 100 * getattr(report, name) for name in SHOWN}
        told = chapters_of(labels, one, OVERLAP)
        numbers |= {name: told[name] for name in ("chapters", "true_segments_found")}
        if labels[0].confidence is not None:
            numbers["calibration_error"] = calibration_error(labels, one.truth)
    return numbers


def run_suites(data: Path) -> None:
    """Every suite, its draws averaged; the worst draw is told beside."""
    found: defaultdict[str, list[dict[str, float]]] = defaultdict(list)
    for one in every_suite(data):
        graph = learn_graph(one.scores, one.vocabulary, decoder=one.decoder)
        numbers = measure(one, [one.decoder.decode(each, graph) for each in one.scores])
        if one.truth:
            rival = measure(one, [PathSearch().decode(each, graph) for each in one.scores])
            numbers |= {f"path_search_{name}": rival[name] for name in ("accuracy", "iou")}
        found[one.name].append(numbers)
        if one.name in ("CrossTask", "YouCook2", "HowTo100M"):
            found[f"{one.name}, graph of other videos"].append(elsewhere(one))
        if one.name == "CrossTask":
            found["CrossTask, one video and no other"].append(alone(one))
    for name, draws in found.items():
        result: dict[str, object] = {"suite": name, "draws": len(draws)}
        for number in draws[0]:
            values = [draw[number] for draw in draws]
            result[number] = rounded(float(np.mean(values)), number)
            if len(values) > 1:
                worst = max if number in WORST_IS_MOST else min
                result[f"worst_{number}"] = rounded(worst(values), number)
        say(**result)


def rounded(value: float, name: str) -> float:
    return round(value, 3 if "calibration" in name else 1)


def elsewhere(one: Suite) -> dict[str, float]:
    """One video at a time, with a graph mined on the other half of the videos."""
    halves = one.scores[::2], one.scores[1::2]
    labels = []
    for half, other in (halves, halves[::-1]):
        graph = learn_graph(other, one.vocabulary, decoder=one.decoder)
        labels += [one.decoder.decode(each, graph) for each in half]
    return measure(one, labels)


def alone(one: Suite) -> dict[str, float]:
    """Each video with a graph of itself alone: nothing is known of any corpus."""
    labels = [one.decoder.decode(each, learn_graph([each], one.vocabulary)) for each in one.scores]
    return measure(one, labels)


def parts(one: Suite) -> None:
    """The whole recogniser, and without each of its parts, with standard errors."""
    graph = learn_graph(one.scores, one.vocabulary)
    parameters = graph.parameters
    assert parameters is not None, "they were just learned"
    even = replace(parameters, log_evidence={})
    plain = Suite(**{**vars(one), "scores": tuple(map(without_titles, one.scores))})
    known = {video.id: one.vocabulary.tasks[video.task or ""] for video in one.videos}
    rows: dict[str, tuple[Decoder, TaskGraph, Sequence[Scores]]] = {
        "whole": (TaskMarkov(), graph, one.scores),
        "task given": (TaskMarkov(), graph, [s.restrict(known[s.video]) for s in one.scores]),
        "every row labelled": (TaskMarkov(background=0.0), graph, one.scores),
        "no sentence classifiers": (
            TaskMarkov(),
            replace(graph, parameters=replace(parameters, classifiers={})),
            one.scores,
        ),
        "no timing, no sentence classifiers": (
            TaskMarkov(),
            replace(graph, parameters=replace(parameters, timing={}, classifiers={})),
            one.scores,
        ),
        "no task prior": (TaskMarkov(), replace(graph, parameters=even), one.scores),
        "nothing learned": (TaskMarkov(), replace(graph, parameters=None), one.scores),
        "no titles": (TaskMarkov(), learn_graph(plain.scores, one.vocabulary), plain.scores),
        "no mean subtracted": (TaskMarkov(mean_subtraction=0.0), graph, one.scores),
        "graph hardly used": (TaskMarkov(order_prior_transitions=1e9), graph, one.scores),
        "changes cost nothing": (TaskMarkov(change_cost=0.0), graph, one.scores),
        "path search, same scores": (PathSearch(), graph, one.scores),
    }
    for name, (decoder, mined, scores) in rows.items():
        labels = [decoder.decode(each, mined) for each in scores]
        by_video = {each.video: each for each in labels}
        result: dict[str, object] = {
            key: rounded(value, key) for key, value in measure(one, labels).items()
        }
        result |= standard_errors(by_video, one)
        say(part=name, **result)


def standard_errors(labels: dict[str, Labels], one: Suite) -> dict[str, float]:
    """Of accuracy and IoU, over five random parts of the videos, in percent."""
    errors = {}
    for metric in ("accuracy", "iou"):

        def value(videos: Sequence[str], metric: str = metric) -> float:
            part = evaluate([labels[video] for video in videos], one.truth)
            return float(getattr(part, metric))

        spread = over_splits(value, list(labels), parts=5, seed=0)
        errors[f"{metric}_standard_error"] = round(100 * spread.standard_error, 2)
    return errors


def without_titles(scores: Scores) -> Scores:
    return scores.with_values(scores.values)


def swap(one: Suite) -> None:
    """Choose options on the videos of one task, report on those of the other."""
    graph = learn_graph(one.scores, one.vocabulary)
    task_of = {video.id: video.task for video in one.videos}
    chosen: list[Labels] = []
    for task in sorted({task or "" for task in task_of.values()}):
        others = [each for each in one.scores if task_of[each.video] != task]
        options = best_options(others, graph, one)
        say(reported_on=task, chosen_on="the other task", **options)
        own = [each for each in one.scores if task_of[each.video] == task]
        found = [TaskMarkov(**options).decode(each, graph) for each in own]
        say(reported_on=task, calibration_error=round(calibration_error(found, one.truth), 3))
        chosen += found
    numbers = {key: rounded(value, key) for key, value in measure(one, chosen).items()}
    say(suite="CrossTask, swap", draws=1, **numbers)


def best_options(scores: Sequence[Scores], graph: TaskGraph, one: Suite) -> dict[str, float]:
    """Options of most accuracy plus IoU, then the maps that make the truth most probable."""
    grid = [dict(zip(GRID, values, strict=True)) for values in product(*GRID.values())]

    def worth(options: dict[str, float]) -> float:
        labels = [TaskMarkov(**options).decode(each, graph) for each in scores]
        report = evaluate(labels, one.truth)
        return report.accuracy + report.iou

    best = max(grid, key=worth)
    raw = TaskMarkov(
        **best,
        calibration_slope=1.0,
        calibration_intercept=0.0,
        background_slope=1.0,
        background_intercept=0.0,
    )
    labels = [raw.decode(each, graph) for each in scores]
    slope, bias = fit(labels, one, empty=False)
    background_slope, background_bias = fit(labels, one, empty=True)
    found = {"slope": slope, "bias": bias}
    return (
        best | found | {"background_slope": background_slope, "background_bias": background_bias}
    )


def fit(labels: Sequence[Labels], one: Suite, *, empty: bool) -> tuple[float, float]:
    """Slope and bias of the log odds of keysteps or of background, by logistic regression."""
    sure = np.concatenate([each.confidence for each in labels])
    found = np.concatenate([each.keysteps for each in labels])
    true = np.concatenate([one.truth[each.video].keysteps for each in labels])
    judged = (found == BACKGROUND) == empty
    odds = np.clip(sure[judged], 1e-6, 1 - 1e-6)
    logit, hits = np.log(odds / (1 - odds)), (found == true)[judged]

    def cost(parameters: NDArray[np.float64]) -> float:
        value = parameters[0] * logit + parameters[1]
        return float(np.mean(np.logaddexp(0, value) - hits * value))

    slope, bias = minimize(cost, np.array([1.0, 0.0])).x
    return max(0.01, round(float(slope), 3)), round(float(bias), 3)


def chapters_of(labels: Sequence[Labels], one: Suite, overlap: float) -> dict[str, float]:
    """How many chapters a video has, and what they and the truth have of each other."""
    outlines = [each.outline(overlap) for each in labels]
    report = evaluate(outlines, one.truth)
    right = sum(population(each, one.truth[each.video]) for each in outlines)
    found = sum(population(one.truth[each.video], each) for each in outlines)
    # The same chapters, held against a truth that begins anywhere and goes on at the start.
    rng, moved = np.random.default_rng(0), {}
    for each in outlines:
        true = one.truth[each.video]
        turned = np.roll(true.keysteps, rng.integers(len(true)))
        moved[each.video] = replace(true, keysteps=turned)
    return {
        "chapters": right[1] / len(outlines),
        "true_segments": found[1] / len(outlines),
        "empty": 100 * report.empty_segments,
        "empty_by_chance": 100 * evaluate(outlines, moved).empty_segments,
        "of_another_keystep": 100 * (1 - right[0] / right[1]),
        "true_segments_found": 100 * found[0] / found[1],
        **{f"f1_{k}": 100 * getattr(report, f"segment_f1_{k}") for k in (10, 25, 50)},
    }


def population(some: Labels, other: Labels) -> NDArray[np.int64]:
    """How many segments share a row with other labels of their keystep, of how many."""
    same = some.keysteps == other.keysteps
    pieces = [slice(*run) for run in runs(some.keysteps) if some.keysteps[run[0]] != BACKGROUND]
    return np.array([sum(same[piece].any() for piece in pieces), len(pieces)])


def chapters(data: Path) -> None:
    """The same labels told in fewer and longer chapters, then labels that change less."""
    crosstask = open_source(f"crosstask:{data}/crosstask")
    sources = (crosstask, open_source(f"{data}/youcook2/videos.jsonl"), open_source("demo"))
    for name, source in zip(("CrossTask", "YouCook2", "demo"), sources, strict=True):
        one = suite(name, source)
        graph = learn_graph(one.scores, one.vocabulary)
        shown = {video.id: video.task for video in one.videos} if source is crosstask else {}
        settings = [(TaskMarkov(), overlap) for overlap in (0.0, 0.2, 0.3, 0.4, 0.5, 0.6)]
        settings += [(TaskMarkov(background=0.3), OVERLAP)]
        settings += [(TaskMarkov(change_cost=rows), OVERLAP) for rows in (7.0, 20.0)]
        for decoder, overlap in settings:
            labels = [decoder.decode(each, graph) for each in one.scores]
            for task in sorted({shown.get(each.video) or "" for each in labels}):
                own = [each for each in labels if (shown.get(each.video) or "") == task]
                told = chapters_of(own, one, overlap)
                options = {"background": decoder.background, "change_cost": decoder.change_cost}
                numbers = {key: rounded(value, key) for key, value in told.items()}
                say(chapters_in=task or name, overlap=overlap, **options, **numbers)


def speed(one: Suite) -> None:
    """Decoding beside path search, mining with and without habits, and a large vocabulary."""
    graph = learn_graph(one.scores, one.vocabulary)
    seconds = {}
    for decoder in (PathSearch(), TaskMarkov()):
        name = type(decoder).__name__
        seconds[name] = best_of(lambda it=decoder: [it.decode(each, graph) for each in one.scores])
    ratio = round(seconds["TaskMarkov"] / seconds["PathSearch"], 2)
    say(bench="decoding", videos=len(one.scores), ratio=ratio, **seconds)
    plain = best_of(lambda: mine_graph(one.scores, one.vocabulary))
    learned = best_of(lambda: learn_graph(one.scores, one.vocabulary))
    say(bench="mining, scored already", videos=len(one.scores), plain=plain, with_habits=learned)
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


def main(data: str, *asked: str) -> None:
    if "--alone" in asked:
        TaskMarkov.encoder = replace(TaskMarkov.encoder, context=0, blend=False)
    if "--chapters" in asked:
        chapters(Path(data))
        return
    crosstask = suite("CrossTask", open_source(f"crosstask:{data}/crosstask"))
    if "--speed" not in asked:
        run_suites(Path(data))
        if "--suites" not in asked:
            parts(crosstask)
            swap(crosstask)
            chapters(Path(data))
    if "--suites" not in asked:
        speed(crosstask)


if __name__ == "__main__":
    main(*sys.argv[1:])
