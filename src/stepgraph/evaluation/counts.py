"""Counts that every metric of a video is computed from, and that add up over videos."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import BACKGROUND, Labels
from stepgraph.evaluation import metrics, segments
from stepgraph.evaluation.metrics import Tally

PER_VIDEO = ("accuracy_per_video", "iou_per_video", "edit_distance")
"""Metrics that are means over videos."""

OF_ROWS = ("accuracy", "accuracy_per_keystep", "iou", "iou_per_keystep", "f1", "f1_per_keystep")
"""Metrics of :mod:`~stepgraph.evaluation.metrics` that a tally of rows gives."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Counts of one video, or their sums over many.

    Attributes
    ----------
    rows : shape (3, K)
        True, predicted and correct rows per keystep, as in a tally of rows.
    segments : shape (3, 3)
        The same for segments, one column for each least overlap.
    background, chapters : shape (8,)
        Background tallies of the labels, and of their chapters.
    means : shape (2, 3)
        Sums of the metrics of :data:`PER_VIDEO`, and the number of videos that define them.
    size : shape (3,)
        Videos, rows, and rows with a true keystep.
    """

    rows: NDArray[Any]
    segments: NDArray[Any]
    background: NDArray[Any]
    chapters: NDArray[Any]
    means: NDArray[Any]
    size: NDArray[Any]

    @classmethod
    def of(cls, truth: Labels, predicted: Labels, *, background_rows: bool = True) -> Counts:
        """Count one video.

        Parameters
        ----------
        background_rows
            False leaves out the rows whose truth is background, before anything is counted.
        """
        metrics.compared(truth, predicted)
        outline = predicted.outline()
        if not background_rows:
            rows = truth.keysteps != BACKGROUND
            truth, predicted, outline = (
                Labels(one.video, one.keysteps[rows], one.vocabulary, one.hop)
                for one in (truth, predicted, outline)
            )
        counted = metrics.tally(truth, predicted)
        values = np.array(
            [
                metrics.accuracy(counted),
                metrics.iou(counted),
                segments.edit_distance(truth, predicted),
            ]
        )
        return cls(
            _stacked(counted),
            _stacked(segments.segment_tally(truth, predicted)),
            metrics.background_tally(truth, predicted),
            metrics.background_tally(truth, outline),
            np.stack([np.nan_to_num(values), ~np.isnan(values)]),
            np.array([1, len(predicted), (truth.keysteps != BACKGROUND).sum()]),
        )

    @classmethod
    def empty(cls, keysteps: int = 0) -> Counts:
        """Make counts of zero."""
        shapes = ((3, keysteps), (3, len(segments.OVERLAPS)), 8, 8, (2, len(PER_VIDEO)), 3)
        return cls(*(np.zeros(shape, dtype=np.int64) for shape in shapes))

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(one + another for one, another in zip(self, other, strict=True)))

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return iter(vars(self).values())

    def metrics(self) -> dict[str, float]:
        """Compute every metric of a report, by name."""
        tally = Tally(*self.rows)
        overlapping = segments.segment_f1(Tally(*self.segments)).tolist()
        defined = self.means[1] > 0
        means = np.where(defined, self.means[0] / np.maximum(self.means[1], 1), math.nan)
        return {
            **{name: getattr(metrics, name)(tally) for name in OF_ROWS},
            **{
                f"segment_f1_{100 * overlap:.0f}": value
                for overlap, value in zip(segments.OVERLAPS, overlapping, strict=True)
            },
            **metrics.background_metrics(self.background),
            "empty_chapters": metrics.background_metrics(self.chapters)["empty_segments"],
            **dict(zip(PER_VIDEO, means.tolist(), strict=True)),
        }


def weighted_sums(counts: Sequence[Counts], weights: NDArray[np.int64]) -> Iterator[Counts]:
    """Sum the counts of videos with the weights of each row.

    Parameters
    ----------
    weights : shape (R, V)
    """
    stacks = [np.stack(arrays) for arrays in zip(*counts, strict=True)]
    for row in weights:
        yield Counts(*(np.tensordot(row, stack, 1) for stack in stacks))


def _stacked(tally: Tally) -> NDArray[np.int64]:
    return np.stack([tally.true, tally.predicted, tally.hits])
