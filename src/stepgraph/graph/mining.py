"""Mine a task graph from many scored videos.

Each video is reduced to the sequence of its best keysteps; every pair of neighbours in such a
sequence adds one to the count of its transition.  Neither truth nor the identity of the encoder
enters the counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from stepgraph.core import Scores, Vocabulary, require_same_vocabulary
from stepgraph.encoders import EncoderOptions
from stepgraph.graph.shortest_paths import Matrix
from stepgraph.graph.task_graph import MiningOptions, TaskGraph
from stepgraph.graph.traces import TIMING_BINS

# Transitions buffered before they are summed, so that a long corpus costs few additions.
_BUFFER = 1_000_000


def mine_graph(
    videos: Iterable[Scores],
    vocabulary: Vocabulary,
    *,
    min_score: float = -math.inf,
    max_gap: float = math.inf,
    encoder: EncoderOptions | None = None,
) -> TaskGraph:
    """Count the transitions between keysteps, over all videos.

    Videos are taken one at a time, so a generator over a large corpus is fine.

    Parameters
    ----------
    videos
        Scores over ``vocabulary``, one video each.
    min_score, max_gap
        See :class:`~stepgraph.graph.MiningOptions`.
    encoder
        Options to store in the graph, so that recognition uses the same encoder.

    Returns
    -------
    TaskGraph
        Raw counts; its ``probabilities`` are the normalised view.

    Examples
    --------
    >>> tea = Vocabulary(("boil", "pour"))
    >>> values = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.7]], dtype=np.float32)
    >>> graph = mine_graph([Scores("v", values, np.ones(3, dtype=bool), tea)], tea)
    >>> graph.counts.toarray().tolist()
    [[1, 1], [0, 0]]
    """
    options = MiningOptions(min_score, max_gap)
    size = len(vocabulary)
    total = csr_array((size, size), dtype=np.int64)
    timing = np.zeros((size, TIMING_BINS), dtype=np.int64)
    held: list[NDArray[np.int64]] = []
    mined_on: list[str] = []
    for scores in videos:
        require_same_vocabulary(
            scores.vocabulary, vocabulary, f"scores of video {scores.video!r} and the graph"
        )
        rows, best = _counted(scores, min_score)
        held.append(_transitions(rows, best, scores.hop, max_gap))
        timing += _when(rows, best, len(scores), size)
        mined_on.append(scores.video)
        if sum(map(len, held)) > _BUFFER:
            total = total + _count(held, size)
            held = []
    counts = total + _count(held, size)
    return TaskGraph(vocabulary, counts, tuple(mined_on), encoder, options, timing)


def transitions(
    scores: Scores, *, min_score: float = -math.inf, max_gap: float = math.inf
) -> NDArray[np.int64]:
    """Pairs of best keysteps of neighbouring observed rows, shape (N, 2)."""
    return _transitions(*_counted(scores, min_score), scores.hop, max_gap)


def _transitions(
    rows: NDArray[np.int64], best: NDArray[np.int64], hop: float, max_gap: float
) -> NDArray[np.int64]:
    # Times carry float noise (3 * 0.1 is more than 0.3).
    close = (np.diff(rows) - 1) * hop <= max_gap + 1e-9
    return np.stack([best[:-1], best[1:]], axis=1)[close]


def _when(
    rows: NDArray[np.int64], best: NDArray[np.int64], length: int, size: int
) -> NDArray[np.int64]:
    """Count the rows of each best keystep in each twentieth of the video, shape (K, 20)."""
    counts = np.zeros((size, TIMING_BINS), dtype=np.int64)
    np.add.at(counts, (best, rows * TIMING_BINS // length), 1)
    return counts


def _counted(scores: Scores, min_score: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the rows that are counted, and their best keysteps."""
    best, score = scores.best()
    # A row on which every keystep is excluded is not counted.
    rows = np.flatnonzero(scores.observed & (score >= min_score) & (score > -math.inf))
    return rows, best[rows]


def _count(pairs: list[NDArray[np.int64]], size: int) -> Matrix:
    if not pairs:
        return csr_array((size, size), dtype=np.int64)
    source, target = np.concatenate(pairs).T
    ones = np.ones(len(source), dtype=np.int64)
    return csr_array(coo_array((ones, (source, target)), shape=(size, size)))
