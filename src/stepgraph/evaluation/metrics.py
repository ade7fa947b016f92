"""Metrics of rows, from two arrays or from counts over many videos.

``docs/metrics.md`` defines each, and the rules for all: background is -1 and never a class, the
keysteps that count are those of the truth, and an undefined metric is ``nan``, never 0.
Four metrics measure background: the labels of rows on which nothing is done.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stepgraph.core import BACKGROUND, Labels, require_same_vocabulary, runs
from stepgraph.errors import DataError

Rows: TypeAlias = "Labels | ArrayLike"
"""Labels of one video, or whole numbers: the keystep of each row, or -1 for background."""


@dataclass(frozen=True, eq=False)
class Tally:
    """Rows per keystep, each of shape (K,): true, predicted, and correct.

    Tallies of several videos add up.  Every metric of rows accepts one.
    """

    true: NDArray[np.int64]
    predicted: NDArray[np.int64]
    hits: NDArray[np.int64]

    def __add__(self, other: Tally) -> Tally:
        # Arrays do not show the number of keysteps beyond the highest that they hold.
        size = max(len(self.true), len(other.true))
        true, predicted, hits = (
            np.pad(one, (0, size - len(one))) + np.pad(another, (0, size - len(another)))
            for one, another in zip(vars(self).values(), vars(other).values(), strict=True)
        )
        return Tally(true, predicted, hits)

    @classmethod
    def empty(cls, keysteps: int = 0) -> Tally:
        """Make a tally of zero rows."""
        zeros = np.zeros(keysteps, dtype=np.int64)
        return cls(zeros, zeros, zeros)


def tally(
    truth: Rows | Tally, predicted: Rows | None = None, *, background_rows: bool = True
) -> Tally:
    """Count the rows of one video; return a tally unchanged.

    Parameters
    ----------
    background_rows
        False leaves out the rows whose truth is background, so that a keystep predicted there
        lowers neither IoU nor precision.

    Examples
    --------
    >>> tally([0, 0, 1, -1], [0, 2, 1, 1]).predicted.tolist()
    [1, 2, 1]
    """
    if isinstance(truth, Tally):
        return truth
    true, found = compared(truth, predicted)
    vocabulary_size = len(truth.vocabulary) if isinstance(truth, Labels) else 0
    size = np.concatenate([true, found]).max(initial=vocabulary_size - 1) + 1
    if not background_rows:
        true, found = true[true != BACKGROUND], found[true != BACKGROUND]
    return Tally(*(_histogram(x, size) for x in (true, found, true[true == found])))


def compared(
    truth: Rows | None, predicted: Rows | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of truth and labels as arrays, after checking that they match."""
    what = "truth and labels"
    if isinstance(truth, Labels) and isinstance(predicted, Labels):
        what += f" of video {truth.video!r}"
        require_same_vocabulary(truth.vocabulary, predicted.vocabulary, what)
    true, found = _rows(truth), _rows(predicted)
    if len(true) != len(found):
        raise DataError(f"{what} must have equal length, got {len(true)} and {len(found)} rows")
    return true, found


def _rows(given: Rows | None) -> NDArray[np.int64]:
    if isinstance(given, Labels):
        return given.keysteps
    rows = np.asarray(given)
    if rows.ndim != 1 or (rows.size and (rows.dtype.kind not in "iu" or rows.min() < BACKGROUND)):
        raise DataError(
            f"rows must be whole numbers from {BACKGROUND} (background) on, in one dimension, "
            f"got {rows.dtype} of shape {rows.shape}: {str(rows.ravel()[:5])[:80]}"
        )
    return rows.astype(np.int64)


def _histogram(keysteps: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    return np.bincount(keysteps[keysteps != BACKGROUND], minlength=size).astype(np.int64)


def accuracy(truth: Rows | Tally, predicted: Rows | None = None) -> float:
    """Share of rows with a true keystep that were given it, pooled over keysteps.

    >>> accuracy(np.array([0, 0, 1, -1]), np.array([0, 2, 1, 1]))
    0.6666666666666666
    """
    counts = tally(truth, predicted)
    return _ratio(counts.hits.sum(), counts.true.sum())


def accuracy_per_keystep(truth: Rows | Tally, predicted: Rows | None = None) -> float:
    """Accuracy of each true keystep, averaged.

    >>> accuracy_per_keystep([0, 0, 0, 0, 1], [0, 0, 1, 1, 1])
    0.75
    """
    counts = tally(truth, predicted)
    true = counts.true > 0
    return _mean(counts.hits[true] / counts.true[true])


def iou(truth: Rows | Tally, predicted: Rows | None = None) -> float:
    """Sum of intersections over sum of unions, pooled over keysteps.

    >>> iou([0, 0, 0, 1], [0, 0, 1, -1])
    0.4
    """
    counts = tally(truth, predicted)
    return _ratio(counts.hits.sum(), _union(counts)[counts.true > 0].sum())


def iou_per_keystep(truth: Rows | Tally, predicted: Rows | None = None) -> float:
    """Intersection over union of each true keystep, averaged.

    >>> iou_per_keystep([0, 0, -1, -1], [0, 1, 0, 1])
    0.3333333333333333
    """
    counts = tally(truth, predicted)
    true = counts.true > 0
    return _mean(counts.hits[true] / _union(counts)[true])


def precision(truth: Rows | Tally, predicted: Rows | None = None) -> float:
    """Share of rows labelled with a keystep that have it in the truth, pooled over keysteps.

    >>> precision([0, 0, 0, -1], [0, 0, 1, 1])
    0.5
    """
    counts = tally(truth, predicted)
    return _ratio(counts.hits.sum(), counts.predicted.sum())


def f1(truth: Rows | Tally, predicted: Rows | None = None) -> float:
    """Harmonic mean of precision and accuracy, both pooled over keysteps (*micro*).

    Accuracy is the recall.  Labels that are all background score 0, since their recall is 0.

    >>> f1([0, 0, 0, 1], [0, 0, 2, 2])
    0.5
    """
    counts = tally(truth, predicted)
    true = counts.true.sum()
    return _ratio(2 * counts.hits.sum(), true and true + counts.predicted.sum())


def f1_per_keystep(truth: Rows | Tally, predicted: Rows | None = None) -> float:
    """F1 of each true keystep, averaged (*macro*).

    >>> f1_per_keystep([0, 0, 0, 1], [0, -1, 2, 1])
    0.75
    """
    counts = tally(truth, predicted)
    true = counts.true > 0
    return _mean(2 * counts.hits[true] / (counts.true + counts.predicted)[true])


def mean_defined(values: Iterable[float]) -> float:
    """Average the values that are defined; ``nan`` where none is.

    >>> mean_defined([1.0, math.nan, 0.5])
    0.75
    """
    return _mean(_defined(values))


def split_standard_error(values: Sequence[float]) -> float:
    """Standard error of the mean of a metric over several parts of the test videos.

    The sample standard deviation over the square root of the number of parts.  Undefined parts are
    left out.  With fewer than two defined parts the result is ``nan``.

    >>> split_standard_error([0.25, 0.75])
    0.25
    """
    defined = _defined(values)
    if defined.size < 2:
        return math.nan
    return float(defined.std(ddof=1) / math.sqrt(defined.size))


def true_labels(truth: Mapping[str, Labels], video: str) -> Labels:
    """Return the truth of a video, or raise an error where it has none."""
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


OF_BACKGROUND = ("frame_accuracy", "background_share", "background_precision", "empty_segments")


def background_tally(truth: Rows, predicted: Rows) -> NDArray[np.int64]:
    """Count four kinds of hits, then the total of each, so that videos add up.

    >>> background_tally([-1, 0, 0, -1, -1], [-1, -1, 0, 1, 1]).tolist()
    [2, 2, 1, 1, 5, 5, 2, 2]
    """
    true, found = compared(truth, predicted)
    empty = found == BACKGROUND
    pieces = [slice(*run) for run in runs(found) if found[run[0]] != BACKGROUND]
    idle = sum((true[piece] == BACKGROUND).all() for piece in pieces)
    right = (true == found).sum(), empty.sum(), (empty & (true == BACKGROUND)).sum(), idle
    return np.array([*right, len(true), len(true), empty.sum(), len(pieces)], dtype=np.int64)


def background_metrics(counts: NDArray[np.int64]) -> dict[str, float]:
    """Compute the metrics of :data:`OF_BACKGROUND` from the summed tallies of any videos."""
    parts, wholes = counts[:4].tolist(), counts[4:].tolist()
    return {
        name: part / whole if whole else math.nan
        for name, part, whole in zip(OF_BACKGROUND, parts, wholes, strict=True)
    }
