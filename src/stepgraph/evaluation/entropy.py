"""Accuracy by the predictability of the next keystep: the supplement's split by entropy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import BACKGROUND, Labels, require_same_vocabulary
from stepgraph.errors import DataError
from stepgraph.evaluation.metrics import _ratio, compared, true_labels
from stepgraph.graph import TaskGraph


class EntropySplit(NamedTuple):
    """Accuracy where transitions are predictable (``low`` entropy), and where they are not.

    Attributes
    ----------
    threshold
        Highest entropy that counts as low, in bits.
    low_rows, high_rows
        Rows with a true keystep on either side: the denominators of the accuracies.
    """

    low: float
    high: float
    threshold: float
    low_rows: int
    high_rows: int


def transition_entropy(graph: TaskGraph, *, self_loop: bool = False) -> NDArray[np.float64]:
    """Compute the entropy in bits of the successors of each keystep; ``nan`` where it has none.

    A self-transition counts as an outcome only with ``self_loop``.

    Examples
    --------
    >>> from stepgraph.core import Vocabulary
    >>> graph = TaskGraph.from_order(Vocabulary(("boil", "pour", "stir")), [(0, 1), (0, 2)])
    >>> transition_entropy(graph).tolist()
    [1.0, nan, nan]
    """
    size = len(graph.vocabulary)
    source = np.repeat(np.arange(size), np.diff(graph.counts.indptr))
    used = self_loop | (source != graph.counts.indices)
    source, counts = source[used], graph.counts.data[used]
    totals = np.bincount(source, weights=counts, minlength=size)
    shares = counts / totals[source]
    entropy = np.bincount(source, weights=-shares * np.log2(shares), minlength=size)
    # Equal distributions must have equal entropies, in whatever order their terms are added.
    return np.where(totals > 0, entropy.round(12), np.nan)


def accuracy_by_entropy(
    predicted: Iterable[Labels],
    truth: Mapping[str, Labels],
    graph: TaskGraph,
    *,
    starts: Mapping[str, Labels] | None = None,
    self_loop: bool = False,
    anchors_too: bool = False,
) -> EntropySplit:
    """Split accuracy by the entropy of the transitions from the last anchor.

    ``docs/metrics.md`` defines the rows and how they are halved.

    Parameters
    ----------
    starts
        Labels by video that the anchors are taken from, so that methods without anchors are
        measured on the same rows.
    self_loop
        See :func:`transition_entropy`.
    anchors_too
        Count all rows from the first anchor on; else only the rows that are no anchors.
    """
    how = {"self_loop": self_loop, "anchors_too": anchors_too}
    counts, threshold = count_by_entropy(predicted, truth, graph, starts=starts, **how)
    [[low, low_rows], [high, high_rows]] = counts.sum(axis=0)
    return EntropySplit(
        _ratio(low, low_rows), _ratio(high, high_rows), threshold, int(low_rows), int(high_rows)
    )


def count_by_entropy(
    predicted: Iterable[Labels],
    truth: Mapping[str, Labels],
    graph: TaskGraph,
    *,
    starts: Mapping[str, Labels] | None = None,
    self_loop: bool = False,
    anchors_too: bool = False,
) -> tuple[NDArray[np.int64], float]:
    """Count hits and rows on either side of the median entropy; return the threshold too.

    Returns
    -------
    shape (V, 2, 2)
        For each video, low then high entropy: the number of right rows, and of rows that have a
        true keystep.
    """
    entropies = transition_entropy(graph, self_loop=self_loop)
    # Begin with nothing, so that no videos need no special case.
    gathered = [(np.empty(0), np.empty(0, dtype=bool), np.empty(0, dtype=bool))]
    for labels in predicted:
        require_same_vocabulary(labels.vocabulary, graph.vocabulary, "labels and the graph")
        anchored = labels if starts is None else starts.get(labels.video)
        if anchored is None:
            raise DataError(f"video {labels.video!r} must have labels among starts, got none")
        true = true_labels(truth, labels.video)
        gathered.append(_rows_after_anchors(true, labels, anchored, entropies, anchors_too))
    sizes = [len(entropy) for entropy, _, _ in gathered]
    video = np.repeat(np.arange(len(gathered)), sizes) - 1
    entropy, annotated, hit = (np.concatenate(parts) for parts in zip(*gathered, strict=True))
    lower = _lower_half(entropy)
    counts = np.zeros((len(gathered) - 1, 2, 2), dtype=np.int64)
    for side, rows in enumerate((annotated & lower, annotated & ~lower)):
        np.add.at(counts, (video[rows], side, 0), hit[rows])
        np.add.at(counts, (video[rows], side, 1), 1)
    return counts, float(entropy[lower].max()) if lower.any() else math.nan


def _lower_half(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark values below the median, or up to it where that is closer to half of them."""
    if not values.size:
        return np.empty(0, dtype=bool)
    middle = np.median(values)
    below, at_most = values < middle, values <= middle
    closer = abs(below.mean() - 0.5) < abs(at_most.mean() - 0.5)
    return below if closer else at_most


def _rows_after_anchors(
    truth: Labels,
    predicted: Labels,
    anchored: Labels,
    entropies: NDArray[np.float64],
    anchors_too: bool,
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return entropy, true keystep or not, and right or not, of each row that has an entropy."""
    true, found = compared(truth, predicted)
    compared(truth, anchored)
    if anchored.anchors is None:
        raise DataError(
            f"labels of video {anchored.video!r} must have anchors to be split by entropy, got "
            f"none; pass the labels of a decoder that has them, such as path search, as starts"
        )
    # A row starts from the keystep of the last anchor up to it, if any.
    last = np.maximum.accumulate(np.where(anchored.anchors, np.arange(len(anchored)), -1))
    start = anchored.keysteps[last]
    begun = (last >= 0) & (anchors_too | ~anchored.anchors) & (start != BACKGROUND)
    entropy = np.where(begun, entropies[start], np.nan)
    rows = ~np.isnan(entropy)
    annotated, hit = true != BACKGROUND, true == found
    return entropy[rows], annotated[rows], hit[rows]
