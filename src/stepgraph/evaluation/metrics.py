"""Metrics as pure functions over counts of rows.

Metrics of segments and of their order are in :mod:`stepgraph.evaluation.segments`, the standard
error of any metric in :mod:`stepgraph.evaluation.report`; ``docs/metrics.md`` says whose
convention each is.

Conventions
-----------
- A *row* is one prediction, a second by default.
- *Background* is no keystep.  Rows whose truth is background never count as right or wrong
  in accuracy; a keystep predicted on one enlarges that keystep's union in IoU.
- The keysteps that count are those that occur in the truth of the evaluated videos.  Another
  one predicted makes its row wrong, but has no union of its own.  Precision alone counts every
  row that was given a keystep, whichever it was.
- *Pooled* metrics add up the rows of these keysteps first; *per keystep* ones are computed for
  each of them and then averaged, so that rare ones weigh the same; *per video* ones are pooled
  within each video, with the keysteps of its own truth, and then averaged over the videos.
- A metric that is undefined (no row with a true keystep) is ``nan``, never 0, and a mean is
  over the videos or keysteps for which its metric is defined.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
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


def tally(truth: Labels, predicted: Labels, *, background_rows: bool = True) -> Tally:
    """Count the rows of one video.

    Parameters
    ----------
    background_rows
        False leaves out the rows whose truth is background, so that a keystep predicted on
        one harms neither IoU nor precision.
    """
    require_comparable(truth, predicted)
    size = len(truth.vocabulary)
    true, found = truth.keysteps, predicted.keysteps
    if not background_rows:
        true, found = true[truth.keysteps != BACKGROUND], found[truth.keysteps != BACKGROUND]
    return Tally(*(_histogram(x, size) for x in (true, found, true[true == found])))


def require_comparable(truth: Labels, predicted: Labels) -> None:
    """Refuse truth and labels of different vocabularies or lengths."""
    require_same_vocabulary(
        truth.vocabulary, predicted.vocabulary, f"truth and labels of video {truth.video!r}"
    )
    if len(truth) != len(predicted):
        raise DataError(
            f"truth and labels of video {truth.video!r} must have equal length, "
            f"got {len(truth)} and {len(predicted)} rows"
        )


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


def precision(counts: Tally) -> float:
    """Fraction of rows given a keystep, any keystep, that have it in the truth.

    >>> precision(Tally(np.array([3, 0]), np.array([2, 2]), np.array([2, 0])))
    0.5
    """
    return _ratio(counts.hits.sum(), counts.predicted.sum())


def f1(counts: Tally) -> float:
    """Harmonic mean of precision and accuracy, both pooled over keysteps (*micro*).

    Accuracy is the recall.  Labels that are all background score 0: their recall is.

    >>> f1(Tally(np.array([3, 1, 0]), np.array([2, 0, 2]), np.array([2, 0, 0])))
    0.5
    """
    true = counts.true.sum()
    return _ratio(2 * counts.hits.sum(), true and true + counts.predicted.sum())


def f1_per_keystep(counts: Tally) -> float:
    """F1 of each true keystep, averaged (*macro*).

    >>> f1_per_keystep(Tally(np.array([3, 1, 0]), np.array([1, 1, 5]), np.array([1, 1, 0])))
    0.75
    """
    true = counts.true > 0
    return _mean(2 * counts.hits[true] / (counts.true + counts.predicted)[true])


def accuracy_per_video(tallies: Iterable[Tally]) -> float:
    """Accuracy of each video, averaged; videos without a true keystep are left out.

    >>> good = Tally(np.array([4, 0]), np.array([4, 0]), np.array([4, 0]))
    >>> bad = Tally(np.array([2, 2]), np.array([4, 0]), np.array([2, 0]))
    >>> accuracy_per_video([good, bad, Tally.empty(2)])
    0.75
    """
    return mean_defined(map(accuracy, tallies))


def iou_per_video(tallies: Iterable[Tally]) -> float:
    """Pooled IoU of each video, averaged; videos without a true keystep are left out.

    >>> good = Tally(np.array([4, 0]), np.array([4, 0]), np.array([4, 0]))
    >>> bad = Tally(np.array([2, 2]), np.array([4, 0]), np.array([2, 0]))
    >>> iou_per_video([good, bad])
    0.6666666666666666
    """
    return mean_defined(map(iou, tallies))


def mean_defined(values: Iterable[float]) -> float:
    """Mean of the values that are defined; ``nan`` where none is.

    >>> mean_defined([1.0, math.nan, 0.5])
    0.75
    """
    return _mean(_defined(values))


def split_standard_error(values: Sequence[float]) -> float:
    """Standard error of the mean of a metric over several parts of the test videos.

    The sample standard deviation over the square root of the number of parts.  Parts for which
    the metric is undefined are left out; of fewer than two there is no standard error.

    >>> split_standard_error([0.25, 0.75])
    0.25
    """
    defined = _defined(values)
    if defined.size < 2:
        return math.nan
    return float(defined.std(ddof=1) / math.sqrt(defined.size))


def true_labels(truth: Mapping[str, Labels], video: str) -> Labels:
    """The truth of a video, which it must have."""
    if video not in truth:
        raise DataError(f"video {video!r} must have a truth to be evaluated, got none")
    return truth[video]


def _union(counts: Tally) -> NDArray[np.int64]:
    return counts.true + counts.predicted - counts.hits


def _ratio(part: np.int64, whole: np.int64) -> float:
    return float(part / whole) if whole else math.nan


def _defined(values: Iterable[float]) -> NDArray[np.float64]:
    given = np.fromiter(values, dtype=np.float64)
    return given[~np.isnan(given)]


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if values.size else math.nan
