"""Argmax labels, and gaps filled along the most probable paths of the graph.

*Video-Mined Task Graphs for Keystep Recognition in Instructional Videos*, section 3.
``docs/method.md`` documents the choices that the paper leaves open.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import BACKGROUND, Labels, Scores
from stepgraph.errors import ConfigError
from stepgraph.graph import TaskGraph


@dataclass(frozen=True)
class Argmax:
    """Label each observed row with its best keystep, and every other row background."""

    def decode(self, scores: Scores, graph: TaskGraph) -> Labels:
        """See :class:`~stepgraph.decoders.Decoder`; the graph is not consulted."""
        return Labels(scores.video, best_keysteps(scores), scores.vocabulary, scores.hop)


@dataclass(frozen=True)
class PathSearch:
    """Keep the labels of anchors; fill the gaps along the graph's most probable paths.

    Attributes
    ----------
    threshold
        Least score of an anchor, a row that keeps its best keystep (the paper's gamma).

    Examples
    --------
    >>> from stepgraph.core import Vocabulary
    >>> tea = Vocabulary(("boil", "pour", "stir"))
    >>> graph = TaskGraph.from_order(tea, [(0, 1, 2)])
    >>> values = np.array([[0.9, 0, 0], [0.1, 0, 0.2], [0, 0, 0.8]], dtype=np.float32)
    >>> scores = Scores("v", values, np.ones(3, dtype=bool), tea)
    >>> PathSearch(threshold=0.5).decode(scores, graph).keysteps.tolist()
    [0, 1, 2]
    """

    threshold: float = 0.4

    def __post_init__(self) -> None:
        if math.isnan(self.threshold):
            raise ConfigError("threshold must be a number, got nan")

    def decode(self, scores: Scores, graph: TaskGraph) -> Labels:
        """See :class:`~stepgraph.decoders.Decoder`."""
        graph.require_vocabulary_of(scores)
        keysteps, anchors = self.find_anchors(scores)
        if anchors.any():
            # Paths skip the rows on which every keystep is excluded.
            rows = (keysteps != BACKGROUND) | ~scores.observed
            keysteps[rows] = fill_gaps(
                keysteps[rows], anchors[rows], partial(self.find_path, graph)
            )
        return Labels(scores.video, keysteps, scores.vocabulary, scores.hop, anchors)

    def find_anchors(self, scores: Scores) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Find the best keystep of each row, and the rows whose score reaches the threshold."""
        best, score = scores.best()
        possible = scores.observed & (score > -math.inf)
        return np.where(possible, best, BACKGROUND), possible & (score >= self.threshold)

    def find_path(self, graph: TaskGraph, start: int, end: int) -> tuple[int, ...] | None:
        """Find the most probable path between two anchors, or None where there is none."""
        return graph.path(start, end)


def best_keysteps(scores: Scores) -> NDArray[np.int64]:
    """Preliminary labels: the best keystep of each observed row, else ``BACKGROUND``."""
    best, score = scores.best()
    return np.where(scores.observed & (score > -math.inf), best, BACKGROUND)


def fill_gaps(
    keysteps: NDArray[np.int64],
    anchors: NDArray[np.bool_],
    find_path: Callable[[int, int], tuple[int, ...] | None],
) -> NDArray[np.int64]:
    """Replace all rows but the anchors by the paths that are found between them.

    Parameters
    ----------
    keysteps : shape (T,)
        Only its values on anchors are used.
    anchors : shape (T,)
        At least one must be True.
    """
    rows = np.flatnonzero(anchors)
    first, last = rows[0], rows[-1]
    filled = np.full_like(keysteps, keysteps[first])
    filled[last:] = keysteps[last]
    for before, after in pairwise(rows.tolist()):
        start, end = int(keysteps[before]), int(keysteps[after])
        path = find_path(start, end) or (start, end)
        filled[before : after + 1] = spread(path, after - before + 1)
    return filled


def spread(path: tuple[int, ...], rows: int) -> NDArray[np.int64]:
    """Give each keystep of a path an equal share of the rows, in order.

    The supplement's example: anchors at rows 1 and 10 and three keysteps between give two
    rows to each of the five.

    >>> spread((7, 1, 2, 3, 9), 10).tolist()
    [7, 7, 1, 1, 2, 2, 3, 3, 9, 9]
    """
    if len(path) <= rows:
        positions = np.arange(rows) * len(path) // rows
    else:
        positions = np.linspace(0, len(path) - 1, rows).round().astype(np.int64)
    return np.asarray(path, dtype=np.int64)[positions]
