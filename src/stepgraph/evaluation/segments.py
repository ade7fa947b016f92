"""Metrics of segments: edit distance, F1 by overlap, average precision and recall.

A *segment* is a run of rows with one keystep, never background.  The *overlap* of two segments of
one video and keystep is their intersection over union, in time.  A segment whose keystep is not in
the truth is a false positive.  ``docs/metrics.md`` defines each metric.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import (
    BACKGROUND,
    Labels,
    Scores,
    Segment,
    require_same_vocabulary,
    runs,
    without_repetitions,
)
from stepgraph.errors import ConfigError, DataError
from stepgraph.evaluation.metrics import Rows, Tally, compared, mean_defined, true_labels

OVERLAPS = (0.10, 0.25, 0.50)
"""Least overlaps of F1@{10,25,50} in temporal action segmentation."""

THUMOS = tuple(n / 10 for n in range(3, 8))
"""Least overlaps 0.3, 0.4, …, 0.7."""

ACTIVITYNET = tuple(n / 20 for n in range(10, 20))
"""Least overlaps 0.5, 0.55, …, 0.95."""


def edit_distance(truth: Rows, predicted: Rows) -> float:
    """Levenshtein distance of the sequences of keysteps, divided by the length of the longer one.

    A sequence leaves out background and then merges equal neighbours.  0 is best and 1 is worst;
    ``nan`` where the truth has no keystep.

    >>> edit_distance([0, 0, -1, 1, 2], [0, 1, 1, 1, 0])
    0.3333333333333333
    """
    true, found = (without_repetitions(one).tolist() for one in compared(truth, predicted))
    return levenshtein(true, found) / max(len(true), len(found)) if true else math.nan


def levenshtein(first: Sequence[int], second: Sequence[int]) -> int:
    """Count the fewest insertions, deletions and replacements from one sequence to the other.

    One step for each element of the first computes all of the second at once.

    >>> levenshtein([0, 1, 2, 3], [1, 2, 4, 3])
    2
    """
    others = np.array(second)
    # Distances from the beginning of the first to each of the second, less the length of that:
    # so an insertion costs nothing.
    row = np.zeros(len(second) + 1, dtype=np.int64)
    for element in first:
        row[1:] = np.minimum(row[1:] + 1, row[:-1] - (others == element))
        row[0] += 1
        row = np.minimum.accumulate(row)
    return int(row[-1]) + len(second)


def segment_tally(
    truth: Rows | Tally, predicted: Rows | None = None, overlaps: Sequence[float] = OVERLAPS
) -> Tally:
    """Count the segments of one video for each least overlap; return a tally unchanged.

    Hits are the true segments that were found (Lea et al. 2017, as ``docs/metrics.md`` says).

    >>> segment_tally([0, 0, 0, 0, 1, 1, -1], [0, 0, -1, 0, 1, 1, 1]).hits.tolist()
    [2, 2, 2]
    """
    if isinstance(truth, Tally):
        return truth
    least = _checked(overlaps)
    true, found = map(_segments, compared(truth, predicted))
    hits = np.zeros(len(least), dtype=np.int64)
    if len(true) and len(found):
        same = found[:, None, 2] == true[None, :, 2]
        overlap = np.where(same, _overlap(found[:, None], true[None]), 0.0)
        best, value = overlap.argmax(axis=1), overlap.max(axis=1)
        # Several predicted segments that match one true segment count as one hit.
        hits = np.array([np.unique(best[value >= one]).size for one in least], dtype=np.int64)
    return Tally(np.full_like(hits, len(true)), np.full_like(hits, len(found)), hits)


def segment_f1(
    truth: Rows | Tally, predicted: Rows | None = None, overlaps: Sequence[float] = OVERLAPS
) -> NDArray[np.float64]:
    """F1 of the segments of one video, or of a tally, for each least overlap.

    >>> segment_f1([0, 0, 0, 0, 1, 1, -1], [0, 0, -1, 0, 1, 1, 1]).tolist()
    [0.8, 0.8, 0.8]
    """
    counts = segment_tally(truth, predicted, overlaps)
    if not counts.true.sum():
        return np.full(len(counts.hits), np.nan)
    return 2 * counts.hits / (counts.true + counts.predicted)


def _segments(keysteps: NDArray[np.int64]) -> NDArray[np.int64]:
    """First row, past-the-last row and keystep of each segment, shape (N, 3)."""
    found = [(first, last, keysteps[first]) for first, last in runs(keysteps)]
    table: NDArray[np.int64] = np.array(found, dtype=np.int64).reshape(len(found), 3)
    return np.asarray(table[table[:, 2] != BACKGROUND])


def _overlap(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.float64]:
    """Intersection over union of segments (start, end, …); negative where they are apart."""
    common = np.minimum(one[..., 1], other[..., 1]) - np.maximum(one[..., 0], other[..., 0])
    union = one[..., 1] - one[..., 0] + other[..., 1] - other[..., 0] - common
    # Two segments without any length have no union, and nothing in common.
    ratio: NDArray[np.float64] = common / np.maximum(union, np.finfo(np.float64).tiny)
    return ratio


def _checked(overlaps: Sequence[float]) -> tuple[float, ...]:
    for overlap in overlaps:
        if not 0 < overlap <= 1:
            raise ConfigError(f"a least overlap must be above 0 and at most 1, got {overlap}")
    return tuple(overlaps)


_OneTrue: TypeAlias = "Segment | tuple[float, float, int]"
_OneFound: TypeAlias = "Detection | tuple[float, float, int, float]"
Truth: TypeAlias = "Iterable[_OneTrue] | Mapping[str, Iterable[_OneTrue]]"
Found: TypeAlias = "Iterable[_OneFound] | Mapping[str, Iterable[_OneFound]]"


class Detection(NamedTuple):
    """Predicted segment (seconds, half-open) and its confidence; higher is more certain."""

    start: float
    end: float
    keystep: int
    confidence: float


def detections(labels: Labels, scores: Scores) -> list[Detection]:
    """List the segments of labels; confidence is the keystep's mean score over observed rows.

    A segment without observed rows has the confidence minus infinity.
    """
    _require_aligned(labels, scores)
    found = []
    for first, last, keystep in _segments(labels.keysteps).tolist():
        values = scores.values[first:last, keystep][scores.observed[first:last]]
        confidence = float(values.mean(dtype=np.float64)) if values.size else -math.inf
        found.append(Detection(first * labels.hop, last * labels.hop, keystep, confidence))
    return found


def _require_aligned(labels: Labels, scores: Scores) -> None:
    what = f"labels and scores of video {labels.video!r}"
    require_same_vocabulary(labels.vocabulary, scores.vocabulary, what)
    if len(labels) != len(scores):
        raise DataError(f"{what} must have equal length, got {len(labels)} and {len(scores)} rows")


def mean_average_precision(
    truth: Truth, predicted: Found, overlaps: Sequence[float] = ACTIVITYNET
) -> float:
    """Average precision, averaged over the true keysteps and the least overlaps.

    >>> mean_average_precision([(0, 10, 0), (10, 20, 1)], [(0, 8, 0, 0.9)], (0.5, 0.9))
    0.25
    """
    values = average_precisions(truth, predicted, overlaps).values()
    return mean_defined(value for one in values for value in one.tolist())


def average_precisions(
    truth: Truth, predicted: Found, overlaps: Sequence[float] = ACTIVITYNET
) -> dict[int, NDArray[np.float64]]:
    """Average precision of each true keystep, for each least overlap (ActivityNet).

    Segments belong to one video, or are given by video.  Every video with detections must have a
    truth, which may be empty.

    Examples
    --------
    >>> truth = {"v": [Segment(0, 10, 3), Segment(20, 30, 3)]}
    >>> found = [Detection(40, 50, 3, 0.9), Detection(0, 8, 3, 0.8), Detection(20, 30, 3, 0.7)]
    >>> average_precisions(truth, {"v": found}, (0.5, 0.9))[3].tolist()
    [0.6666666666666666, 0.16666666666666666]
    """
    least = _checked(overlaps)
    truths = truth if isinstance(truth, Mapping) else {"": truth}
    true: dict[int, dict[str, list[Segment]]] = defaultdict(lambda: defaultdict(list))
    for video, segments in truths.items():
        for segment in segments:
            true[int(segment[2])][video].append(Segment(*segment))
    ranked = _ranked(truths, predicted if isinstance(predicted, Mapping) else {"": predicted})
    return {
        keystep: _average_precisions(true[keystep], ranked.get(keystep, []), least)
        for keystep in sorted(true)
    }


def _ranked(
    truth: Mapping[str, Any], predicted: Mapping[str, Iterable[tuple[float, float, int, float]]]
) -> dict[int, list[tuple[str, Detection]]]:
    """Collect the detections of each keystep, most confident first."""
    found: dict[int, list[tuple[str, Detection]]] = defaultdict(list)
    for video, ones in predicted.items():
        if video not in truth:
            raise DataError(f"video {video!r} must have a truth to be evaluated, got none")
        for one in (Detection(*given) for given in ones):
            if math.isnan(one.confidence):
                raise DataError(f"a confidence must be a number, got nan in video {video!r}")
            found[int(one.keystep)].append((video, one))
    for ranked in found.values():
        ranked.sort(key=lambda pair: -pair[1].confidence)
    return found


def _average_precisions(
    true: Mapping[str, list[Segment]],
    ranked: Sequence[tuple[str, Detection]],
    least: Sequence[float],
) -> NDArray[np.float64]:
    places = {video: np.array(segments, dtype=np.float64) for video, segments in true.items()}
    # Marks true segments that are not matched yet, for each least overlap.
    free = {video: np.ones((len(least), len(one)), dtype=bool) for video, one in places.items()}
    hits = np.zeros((len(ranked), len(least)), dtype=bool)
    for rank, (video, detection) in enumerate(ranked):
        if video not in places:
            continue
        overlap = _overlap(np.array(detection), places[video])
        open_to = np.where(free[video] & (overlap >= np.array(least)[:, None]), overlap, 0.0)
        best = open_to.argmax(axis=1)
        hits[rank] = open_to.max(axis=1) > 0
        free[video][hits[rank], best[hits[rank]]] = False
    precision = hits.cumsum(axis=0) / np.arange(1, len(ranked) + 1)[:, None]
    envelope = np.maximum.accumulate(precision[::-1], axis=0)[::-1]
    total = sum(map(len, true.values()))
    averages: NDArray[np.float64] = (envelope * hits).sum(axis=0) / total
    return averages


def recall_per_task(
    scores: Iterable[Scores],
    truth: Mapping[str, Labels],
    tasks: Mapping[str, str],
    *,
    ordered: bool = False,
) -> dict[str, float]:
    """Compute for each task the share of keysteps of its videos whose selected row is right.

    ``tasks`` maps each video to the name of its task.  With ``ordered``, the selected rows follow
    the order of the keysteps in the task's list.
    """
    counted: dict[str, tuple[int, int]] = {}
    for one in scores:
        task = tasks.get(one.video)
        if task is None or task not in one.vocabulary.tasks:
            raise DataError(
                f"task of video {one.video!r} must be one of the {len(one.vocabulary.tasks)} of "
                f"the vocabulary, got {task!r}"
            )
        hits, total = counted.get(task, (0, 0))
        true = true_labels(truth, one.video)
        hit, done = _pointed(one, true, one.vocabulary.tasks[task], ordered=ordered)
        counted[task] = hits + hit, total + done
    return {task: hits / total if total else math.nan for task, (hits, total) in counted.items()}


def crosstask_recall(
    scores: Iterable[Scores],
    truth: Mapping[str, Labels],
    tasks: Mapping[str, str],
    *,
    ordered: bool = False,
) -> float:
    """Recall of each task, averaged over the tasks (Zhukov et al. 2019).

    >>> from stepgraph.core import Vocabulary
    >>> names = Vocabulary(("boil", "pour"), {"tea": (0, 1)})
    >>> values = np.array([[0.9, 0.1], [0.5, 0.2], [0.1, 0.3]], dtype=np.float32)
    >>> scores = Scores("v", values, np.ones(3, dtype=bool), names)
    >>> truth = {"v": Labels("v", np.array([-1, 0, 1]), names)}
    >>> crosstask_recall([scores], truth, {"v": "tea"})
    0.5
    """
    return mean_defined(recall_per_task(scores, truth, tasks, ordered=ordered).values())


def _pointed(
    scores: Scores, truth: Labels, members: Sequence[int], *, ordered: bool
) -> tuple[int, int]:
    """Count right selected rows of a task's keysteps in one video, and its true keysteps."""
    _require_aligned(truth, scores)
    done = int(np.isin(members, truth.keysteps).sum())
    rows = np.flatnonzero(scores.observed)
    values = scores.values[rows][:, members].astype(np.float64)
    # A keystep that is excluded (minus infinity everywhere) has no selected row.
    allowed = np.isfinite(values).any(axis=0)
    keysteps, values = np.array(members)[allowed], values[:, allowed]
    if not keysteps.size or (ordered and len(rows) < keysteps.size):
        return 0, done
    points = rows[_in_order(values) if ordered else values.argmax(axis=0)]
    return int((truth.keysteps[points] == keysteps).sum()), done


def _in_order(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Select one row for each column, in increasing order, with the highest sum."""
    # The floor keeps every choice possible, if a poor one, where some rows are excluded.
    best = np.maximum(values, np.finfo(np.float32).min)
    for column in range(1, values.shape[1]):
        before = np.maximum.accumulate(best[:, column - 1])
        best[0, column] = -np.inf
        best[1:, column] += before[:-1]
    points = [len(values)]
    for column in reversed(range(values.shape[1])):
        points.append(int(best[: points[-1], column].argmax()))
    return np.array(points[:0:-1], dtype=np.int64)
