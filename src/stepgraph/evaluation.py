"""Labels and truth in, a Report out: the numbers, and what they were measured on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from stepgraph import metrics
from stepgraph.core import BACKGROUND, Labels, Vocabulary, require_same_vocabulary
from stepgraph.errors import DataError

METRICS = {
    "accuracy": "Acc, pooled over rows",
    "accuracy_per_keystep": "Acc, mean over keysteps",
    "iou": "IoU, pooled over rows",
    "iou_per_keystep": "IoU, mean over keysteps",
}
"""Metrics of a report, with the names that people see."""


@dataclass(frozen=True)
class Report:
    """How well labels agree with the truth; all metrics are fractions.

    Attributes
    ----------
    rows
        Rows of the evaluated videos; ``keystep_rows`` of them have a true keystep.
    graph_mined_on
        Which videos the graph was counted on, in words.  Graphs mined on the evaluated
        videos and on others give numbers that are not comparable.
    """

    decoder: str
    videos: int
    rows: int
    keystep_rows: int
    accuracy: float
    accuracy_per_keystep: float
    iou: float
    iou_per_keystep: float
    graph_mined_on: str = ""

    def to_json(self) -> dict[str, object]:
        """Plain values; an undefined metric is null, since JSON has no nan."""
        return {
            key: None if isinstance(value, float) and math.isnan(value) else value
            for key, value in asdict(self).items()
        }


def evaluate(
    predicted: Iterable[Labels],
    truth: Mapping[str, Labels],
    *,
    decoder: str = "",
    graph_mined_on: str = "",
) -> Report:
    """Compare labels with the truth of the same videos.

    Parameters
    ----------
    predicted
        Labels of any number of videos; each must be in ``truth``.
    truth
        Labels by video id.
    """
    counts: metrics.Tally | None = None
    vocabulary: Vocabulary | None = None
    videos = rows = keystep_rows = 0
    for labels in predicted:
        if labels.video not in truth:
            raise DataError(f"video {labels.video!r} must have a truth to be evaluated, got none")
        true = truth[labels.video]
        vocabulary = vocabulary or labels.vocabulary
        require_same_vocabulary(vocabulary, labels.vocabulary, "labels of all videos")
        counted = metrics.tally(true, labels)
        counts = counted if counts is None else counts + counted
        videos += 1
        rows += len(labels)
        keystep_rows += int((true.keysteps != BACKGROUND).sum())
    counts = metrics.Tally.empty(1) if counts is None else counts
    return Report(
        decoder=decoder,
        videos=videos,
        rows=rows,
        keystep_rows=keystep_rows,
        accuracy=metrics.accuracy(counts),
        accuracy_per_keystep=metrics.accuracy_per_keystep(counts),
        iou=metrics.iou(counts),
        iou_per_keystep=metrics.iou_per_keystep(counts),
        graph_mined_on=graph_mined_on,
    )
