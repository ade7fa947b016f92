"""Metrics as pure functions over counts of rows.

Conventions
-----------
- A *row* is one prediction, a second by default.
- *Background* is no keystep.  Rows whose truth is background never count as right or wrong
  in accuracy; a keystep predicted on one enlarges that keystep's union in IoU.
- The keysteps that count are those that occur in the truth of the evaluated videos.  Another
  one predicted makes its row wrong, but has no union of its own.
- *Pooled* metrics add up the rows of these keysteps first; *per keystep* ones are computed for
  each of them and then averaged, so that rare ones weigh the same.
- A metric that is undefined (no row with a true keystep) is ``nan``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import BACKGROUND, Labels, require_same_vocabulary
from stepgraph.errors import DataError


@dataclass(frozen=True, eq=False)
class Tally:
    """Rows per keystep, each of shape (K,): true, predicted, and both at once.

    Tallies of several videos add up.
    """

    true: NDArray[np.int64]
    predicted: NDArray[np.int64]
    hits: NDArray[np.int64]

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.true + other.true, self.predicted + other.predicted, self.hits + other.hits
        )

    @classmethod
    def empty(cls, keysteps: int) -> Tally:
        """Nothing counted yet."""
        zeros = np.zeros(keysteps, dtype=np.int64)
        return cls(zeros, zeros, zeros)


def tally(truth: Labels, predicted: Labels) -> Tally:
    """Count the rows of one video."""
    require_same_vocabulary(
        truth.vocabulary, predicted.vocabulary, f"truth and labels of video {truth.video!r}"
    )
    if len(truth) != len(predicted):
        raise DataError(
            f"truth and labels of video {truth.video!r} must have equal length, "
            f"got {len(truth)} and {len(predicted)} rows"
        )
    size = len(truth.vocabulary)
    hits = truth.keysteps[truth.keysteps == predicted.keysteps]
    return Tally(*(_histogram(x, size) for x in (truth.keysteps, predicted.keysteps, hits)))


def _histogram(keysteps: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    return np.bincount(keysteps[keysteps != BACKGROUND], minlength=size).astype(np.int64)


def accuracy(counts: Tally) -> float:
    """Fraction of rows with a true keystep that were given it, pooled over keysteps.

    >>> accuracy(Tally(np.array([3, 1]), np.array([2, 2]), np.array([2, 0])))
    0.5
    """
    return _ratio(counts.hits.sum(), counts.true.sum())


def accuracy_per_keystep(counts: Tally) -> float:
    """Accuracy of each true keystep, averaged.

    >>> accuracy_per_keystep(Tally(np.array([4, 1]), np.array([2, 3]), np.array([2, 1])))
    0.75
    """
    true = counts.true > 0
    return _mean(counts.hits[true] / counts.true[true])


def iou(counts: Tally) -> float:
    """Sum of intersections over sum of unions, pooled over keysteps.

    >>> iou(Tally(np.array([3, 1]), np.array([2, 2]), np.array([2, 0])))
    0.3333333333333333
    """
    return _ratio(counts.hits.sum(), _union(counts)[counts.true > 0].sum())


def iou_per_keystep(counts: Tally) -> float:
    """Intersection over union of each true keystep, averaged.

    >>> iou_per_keystep(Tally(np.array([2, 0]), np.array([2, 5]), np.array([1, 0])))
    0.3333333333333333
    """
    true = counts.true > 0
    return _mean(counts.hits[true] / _union(counts)[true])


def _union(counts: Tally) -> NDArray[np.int64]:
    return counts.true + counts.predicted - counts.hits


def _ratio(part: np.int64, whole: np.int64) -> float:
    return float(part / whole) if whole else float("nan")


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if values.size else float("nan")
