"""A report of labels measured against the truth: the metrics, and what they were measured on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from stepgraph.core import Labels, Video, Vocabulary, require_same_vocabulary
from stepgraph.errors import ConfigError, DataError
from stepgraph.evaluation import metrics
from stepgraph.evaluation.counts import Counts


def _metric(name: str) -> Any:
    """Declare a field of the report that is a metric, with its name for people."""
    return field(default=math.nan, metadata={"name": name})


@dataclass(frozen=True)
class Report:
    """Agreement of labels with the truth; all metrics are fractions from 0 to 1.

    Attributes
    ----------
    rows
        Rows of the evaluated videos; ``keystep_rows`` of them have a true keystep.
    graph_mined_on
        Description of the videos that the graph was mined on.  Graphs mined on the evaluated
        videos and on others give numbers that are not comparable.
    background_rows
        Rows whose truth is background count: a keystep predicted there lowers IoU and F1.
    """

    decoder: str
    videos: int
    rows: int
    keystep_rows: int
    accuracy: float = _metric("Acc, pooled over rows")
    accuracy_per_keystep: float = _metric("Acc, mean over keysteps")
    iou: float = _metric("IoU, pooled over rows")
    iou_per_keystep: float = _metric("IoU, mean over keysteps")
    graph_mined_on: str = ""
    accuracy_per_video: float = _metric("Acc, mean over videos")
    iou_per_video: float = _metric("IoU, mean over videos")
    edit_distance: float = _metric("ED, mean over videos")
    f1: float = _metric("F1, pooled over rows")
    f1_per_keystep: float = _metric("F1, mean over keysteps")
    segment_f1_10: float = _metric("F1@10, of segments")
    segment_f1_25: float = _metric("F1@25, of segments")
    segment_f1_50: float = _metric("F1@50, of segments")
    frame_accuracy: float = _metric("Acc, background as a class")
    background_share: float = _metric("Rows called background")
    background_precision: float = _metric("Of these, rightly")
    empty_segments: float = _metric("Segments in which nothing is done")
    empty_chapters: float = _metric("Chapters in which nothing is done")
    background_rows: bool = True
    task_accuracy: float = math.nan
    calibration_error: float = math.nan

    def to_json(self) -> dict[str, object]:
        """Convert to plain values; an undefined metric is null, since JSON has no nan."""
        return {
            key: None if isinstance(value, float) and math.isnan(value) else value
            for key, value in asdict(self).items()
        }


ALL_METRICS = {one.name: one.metadata["name"] for one in fields(Report) if one.metadata}
"""Metrics of a report, with the names shown to people; ``docs/metrics.md`` defines them."""

ROWS = {True: "over all rows", False: "without the rows whose truth is background"}
"""Names of the two protocols, by whether rows of true background count; see docs/metrics.md."""

METRICS = {name: ALL_METRICS[name] for name in list(ALL_METRICS)[:4]}
"""Metrics that are always shown."""


def evaluate(
    predicted: Iterable[Labels],
    truth: Mapping[str, Labels],
    *,
    decoder: str = "",
    graph_mined_on: str = "",
    background_rows: bool = True,
) -> Report:
    """Compare labels with the truth of the same videos.

    Parameters
    ----------
    predicted
        Labels of any number of videos; each must be in ``truth``.
    truth
        Labels by video id.
    background_rows
        False leaves out the rows whose truth is background, as the paper's table 2 does.

    Examples
    --------
    >>> tea = Vocabulary(("boil", "pour"))
    >>> true = Labels("v", np.array([0, 0, 1, -1]), tea)
    >>> report = evaluate([Labels("v", np.array([0, 1, 1, 1]), tea)], {"v": true})
    >>> report.videos, round(report.accuracy, 2), report.iou
    (1, 0.67, 0.4)
    """
    counts: Counts | None = None
    vocabulary: Vocabulary | None = None
    for labels in predicted:
        true = metrics.true_labels(truth, labels.video)
        vocabulary = vocabulary or labels.vocabulary
        require_same_vocabulary(vocabulary, labels.vocabulary, "labels of all videos")
        counts = counts or Counts.empty(len(vocabulary))
        counts += Counts.of(true, labels, background_rows=background_rows)
    counts = counts or Counts.empty()
    videos, rows, keystep_rows = counts.size.tolist()
    return Report(
        decoder=decoder,
        videos=videos,
        rows=rows,
        keystep_rows=keystep_rows,
        graph_mined_on=graph_mined_on,
        background_rows=background_rows,
        **counts.metrics(),
    )


class Spread(NamedTuple):
    """Metric over several parts of the test videos: mean, standard error of the mean, values."""

    mean: float
    standard_error: float
    values: tuple[float, ...]


def split_videos(videos: Iterable[str], parts: int, *, seed: int = 0) -> list[tuple[str, ...]]:
    """Divide videos at random into parts whose sizes differ by one at most.

    The result depends on the set of videos and the seed, not on the order of the videos.

    >>> [len(part) for part in split_videos("abcdefg", 3)]
    [3, 2, 2]
    """
    ids = sorted(videos)
    if len(set(ids)) != len(ids):
        repeated = sorted({video for video in ids if ids.count(video) > 1})
        raise DataError(f"videos to divide must differ, got {repeated[:5]} repeatedly")
    if not 1 <= parts <= len(ids):
        raise ConfigError(
            f"parts must be at least 1 and at most the {len(ids)} videos, got {parts}"
        )
    order = np.random.default_rng(seed).permutation(len(ids))
    return [tuple(ids[at] for at in part) for part in np.array_split(order, parts)]


def over_splits(
    metric: Callable[[tuple[str, ...]], float],
    videos: Iterable[str],
    *,
    parts: int = 5,
    seed: int = 0,
) -> Spread:
    """Measure each of several random parts of the videos, with the standard error of the mean.

    Parameters
    ----------
    metric
        Function of the ids of some videos that returns a number.
    parts
        Number of parts; the paper does not state its own.

    Examples
    --------
    >>> lengths = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}
    >>> found = over_splits(lambda ids: sum(lengths[i] for i in ids), lengths, parts=4)
    >>> found.mean, sorted(found.values)
    (2.5, [1.0, 2.0, 3.0, 4.0])
    """
    values = tuple(metric(part) for part in split_videos(videos, parts, seed=seed))
    return Spread(metrics.mean_defined(values), metrics.split_standard_error(values), values)


def task_accuracy(predicted: Iterable[Labels], videos: Iterable[Video]) -> float:
    """Share of videos whose most probable task is the true one; nan without task posteriors."""
    shown = {video.id: video.task for video in videos if video.task}
    right = [
        max(labels.tasks, key=labels.tasks.__getitem__, default=None) == shown[labels.video]
        for labels in predicted
        if labels.tasks is not None and labels.video in shown
    ]
    return sum(right) / len(right) if right else math.nan


def calibration_error(
    predicted: Iterable[Labels], truth: Mapping[str, Labels], *, bins: int = 10
) -> float:
    """Expected calibration error of the confidence, over all rows, background included.

    Rows are binned into equal intervals of confidence.  The error is the mean distance of an
    interval's mean confidence from its accuracy, weighted by its rows (Naeini et al., 2015).
    """
    confidence, right = [np.empty(0)], [np.empty(0, dtype=bool)]
    for labels in predicted:
        if labels.confidence is None:
            return math.nan
        true, found = metrics.compared(metrics.true_labels(truth, labels.video), labels)
        confidence.append(labels.confidence)
        right.append(found == true)
    sure, correct = np.concatenate(confidence), np.concatenate(right)
    if not sure.size:
        return math.nan
    interval = np.minimum((sure * bins).astype(np.int64), bins - 1)
    # The weight of an interval and the mean over its rows cancel.
    return float(np.abs(np.bincount(interval, sure - correct)).sum() / sure.size)
