"""TaskGraph: transition counts between keysteps, and the quantities derived from them.

The counts are the graph; probabilities, costs and paths are views derived from them on first
access.  None of them depends on the source of the counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, diags_array

from stepgraph.core import Scores, Vocabulary, require_same_vocabulary
from stepgraph.encoders import EncoderOptions
from stepgraph.errors import ConfigError, DataError
from stepgraph.graph.communities import find_communities
from stepgraph.graph.order import DIRECTIONAL_SHARE
from stepgraph.graph.order_statistics import TaskStatistics
from stepgraph.graph.parameters import RecognizerParameters
from stepgraph.graph.shortest_paths import Matrix, Network, cheapest_path, make_network
from stepgraph.graph.traces import TIMING_BINS, EmissionTraces

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True)
class Transition:
    """One edge out of a keystep: its target, its probability and its count."""

    keystep: int
    probability: float
    count: int


class Relation(NamedTuple):
    """Relation of two keysteps, with the counts and probabilities of both directions."""

    kind: Literal["directional", "connected", "unconnected"]
    first: int
    second: int
    forward: int
    backward: int
    forward_probability: float
    backward_probability: float


@dataclass(frozen=True)
class MiningOptions:
    """Options of counting transitions; a graph stores them.

    Attributes
    ----------
    min_score
        Least best score of a counted row; other rows are skipped, like unobserved rows.  The
        paper's equation counts every row, hence no limit.
    max_gap
        Longest gap between counted rows, in seconds, across which a transition counts.
        The paper's clips all carry narration and follow one another whatever lies between,
        hence no limit; 0 counts only rows that touch.
    """

    min_score: float = -math.inf
    max_gap: float = math.inf

    def __post_init__(self) -> None:
        if math.isnan(self.min_score):
            raise ConfigError("min_score must be a number, got nan")
        if not self.max_gap >= 0:
            raise ConfigError(f"max_gap must be at least 0 seconds, got {self.max_gap}")


@dataclass(frozen=True, eq=False)
class TaskGraph:
    """Transition counts between keysteps, over all tasks at once.

    Attributes
    ----------
    counts : shape (K, K), int64, compressed rows
        ``counts[i, j]`` is the number of transitions from keystep ``i`` to ``j``; the diagonal
        counts self-transitions.
    mined_on
        Ids of the videos that were counted.
    encoder
        Options of the encoder whose scores were counted, so that recognition uses the same.
    mining
        Options of the counting.
    timing : shape (K, 20), int64, or None
        Timing: number of rows on which each keystep was counted, in each twentieth of its
        video.
    parameters
        Parameters of stepgraph's recogniser, fitted on the corpus.
    traces
        Emission traces of a sample of the videos of each task.

    Examples
    --------
    >>> vocabulary = Vocabulary(("boil", "pour", "stir"))
    >>> counts = csr_array(np.array([[6, 2, 0], [0, 3, 3], [0, 0, 5]]))
    >>> graph = TaskGraph(vocabulary, counts)
    >>> graph.path(0, 2)
    (0, 1, 2)
    >>> graph.relation(0, 1).kind
    'directional'
    """

    vocabulary: Vocabulary
    counts: Matrix
    mined_on: tuple[str, ...] = ()
    encoder: EncoderOptions | None = None
    mining: MiningOptions | None = None
    timing: NDArray[np.int64] | None = None
    parameters: RecognizerParameters | None = None
    traces: EmissionTraces | None = None

    def __post_init__(self) -> None:
        size = len(self.vocabulary)
        if self.counts.shape != (size, size):
            raise DataError(
                f"counts of a task graph must have shape {(size, size)}, got {self.counts.shape}"
            )
        if self.timing is not None and self.timing.shape != (size, TIMING_BINS):
            raise DataError(
                f"timing of a task graph must have shape {(size, TIMING_BINS)}, "
                f"got {self.timing.shape}"
            )
        _check_counts(self.counts)
        counts: Matrix = self.counts.astype(np.int64, copy=True)
        counts.sum_duplicates()
        counts.eliminate_zeros()
        object.__setattr__(self, "counts", counts)

    def __getstate__(self) -> dict[str, Any]:
        # Derived views are computed again.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def probabilities(self) -> Matrix:
        """Transition probabilities: counts divided by row sums; an empty row stays empty."""
        totals = np.asarray(self.counts.sum(axis=1)).ravel()
        repeats = np.diff(self.counts.indptr)
        data = self.counts.data / np.repeat(totals, repeats)
        return csr_array((data, self.counts.indices, self.counts.indptr), shape=self.counts.shape)

    @cached_property
    def costs(self) -> Matrix:
        """Negative log of the probabilities, in nats; a certain transition is a stored zero."""
        probabilities = self.probabilities
        # Adding zero turns the -0.0 of a certain transition into 0.0.
        data = -np.log(probabilities.data) + 0.0
        return csr_array(
            (data, probabilities.indices, probabilities.indptr), shape=probabilities.shape
        )

    def following(
        self, keystep: int, limit: int = 4, *, self_loop: bool = False
    ) -> list[Transition]:
        """Most probable transitions from a keystep, the best first.

        Probabilities are those of the graph; they include the self-loop's share whether or
        not the self-loop is listed.
        """
        self._require(keystep)
        edges = slice(self.counts.indptr[keystep], self.counts.indptr[keystep + 1])
        found = [
            Transition(int(target), float(probability), int(count))
            for target, probability, count in zip(
                self.counts.indices[edges],
                self.probabilities.data[edges],
                self.counts.data[edges],
                strict=True,
            )
            if self_loop or target != keystep
        ]
        return sorted(found, key=lambda edge: (-edge.count, edge.keystep))[:limit]

    def path(self, start: int, end: int) -> tuple[int, ...] | None:
        """Find the most probable path, including both ends, or None where there is none.

        The least sum of ``-log p``, searched from both ends; from a keystep to itself it is that
        keystep alone.  Ties are resolved in the same way every time.
        """
        self._require(start, end)
        return cheapest_path(self._network, start, end)

    def counts_between(self, keysteps: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the counts of transitions between some keysteps, shape (N, N)."""
        rows = self.counts[list(keysteps)]
        return np.asarray(rows[:, list(keysteps)].toarray(), dtype=np.int64)

    @cached_property
    def mean_times(self) -> NDArray[np.float64]:
        """Mean twentieth, from 0, of the rows of each keystep, else infinity, shape (K,)."""
        if self.timing is None:
            return np.full(len(self.vocabulary), math.inf)
        rows = self.timing.sum(axis=1)
        total = self.timing @ np.arange(TIMING_BINS)
        return np.where(rows > 0, total / np.maximum(rows, 1), math.inf)

    @cached_property
    def statistics(self) -> TaskStatistics | None:
        """Order statistics of whole videos, or None where the graph has no emission traces."""
        if self.traces is None or not self.traces.tasks:
            return None
        return TaskStatistics(self.vocabulary, self.traces, self.counts_between)

    @cached_property
    def communities(self) -> list[list[int]]:
        """Communities of keysteps: see :func:`~stepgraph.graph.find_communities`."""
        return find_communities(self.counts)

    @cached_property
    def _network(self) -> Network:
        """Costs in the form that the path search takes."""
        return make_network(self.costs)

    def relation(self, first: int, second: int) -> Relation:
        """Classify a pair of keysteps as directional, connected or unconnected.

        A pair without transitions is *unconnected*.  A pair is *directional* when three quarters
        or more of its transitions go one way, after one pseudo-count each way, so that a single
        transition proves nothing; otherwise it is *connected*.
        """
        if first == second:
            raise DataError(
                f"a relation must be between two different keysteps, "
                f"got {self.vocabulary.keysteps[first]!r} twice"
            )
        forward, backward = int(self.counts[first, second]), int(self.counts[second, first])
        kind: Literal["directional", "connected", "unconnected"] = "unconnected"
        if forward or backward:
            share = (max(forward, backward) + 1) / (forward + backward + 2)
            kind = "directional" if share >= DIRECTIONAL_SHARE else "connected"
        return Relation(
            kind,
            first,
            second,
            forward,
            backward,
            float(self.probabilities[first, second]),
            float(self.probabilities[second, first]),
        )

    def require_vocabulary_of(self, scores: Scores) -> None:
        """Refuse scores over another vocabulary than the graph's."""
        what = f"scores of video {scores.video!r} and the graph"
        require_same_vocabulary(scores.vocabulary, self.vocabulary, what)

    def _require(self, *keysteps: int) -> None:
        for keystep in keysteps:
            if not 0 <= keystep < len(self.vocabulary):
                raise DataError(
                    f"a keystep must be between 0 and {len(self.vocabulary) - 1}, got {keystep}"
                )

    def restrict(self, keysteps: Iterable[int]) -> TaskGraph:
        """Keep only transitions between some keysteps; the vocabulary stays as it is."""
        allowed = np.zeros(len(self.vocabulary), dtype=bool)
        allowed[list(keysteps)] = True
        keep = diags_array(allowed, dtype=np.int64)
        counts = csr_array(keep @ self.counts @ keep)
        return replace(self, counts=counts)

    @classmethod
    def from_order(cls, vocabulary: Vocabulary, orders: Iterable[Sequence[int]]) -> TaskGraph:
        """Chain the keysteps of each order: a graph of listed orders instead of videos.

        >>> TaskGraph.from_order(Vocabulary(("boil", "pour", "stir")), [(0, 2)]).path(0, 2)
        (0, 2)
        """
        pairs = [pair for order in orders for pair in pairwise(order) if pair[0] != pair[1]]
        source, target = np.array(pairs, dtype=np.int64).reshape(len(pairs), 2).T
        ones = np.ones(len(pairs), dtype=np.int64)
        size = len(vocabulary)
        return cls(vocabulary, csr_array(coo_array((ones, (source, target)), (size, size))))

    def merge(self, other: TaskGraph) -> TaskGraph:
        """Merge with a graph of the same vocabulary that was mined on other videos."""
        require_same_vocabulary(self.vocabulary, other.vocabulary, "graphs to merge")
        twice = sorted(set(self.mined_on) & set(other.mined_on))
        if twice:
            raise DataError(
                f"graphs to merge must be mined on different videos, got {len(twice)} in both "
                f"({', '.join(map(repr, twice[:3]))}); their transitions would count twice"
            )
        if (self.encoder, self.mining) != (other.encoder, other.mining):
            raise DataError(
                f"graphs to merge must be mined in the same way, got {self.encoder}, "
                f"{self.mining} and {other.encoder}, {other.mining}"
            )
        timing = None
        if self.timing is not None and other.timing is not None:
            timing = self.timing + other.timing
        return replace(
            self,
            vocabulary=self.vocabulary if self.vocabulary.notes else other.vocabulary,
            counts=self.counts + other.counts,
            mined_on=self.mined_on + other.mined_on,
            timing=timing,
            parameters=self.parameters.merge(other.parameters)
            if self.parameters and other.parameters
            else None,
            traces=self.traces.merge(other.traces) if self.traces and other.traces else None,
        )

    def to_networkx(self) -> networkx.DiGraph[str]:
        """Convert to a networkx graph with keystep names as nodes.

        Edges carry ``count``, ``probability`` and ``cost``.
        """
        import networkx as nx

        names = self.vocabulary.keysteps
        graph: networkx.DiGraph[str] = nx.DiGraph()
        for keystep, name in enumerate(names):
            graph.add_node(name, tasks=self.vocabulary.tasks_of(keystep))
        columns = (self.counts, self.probabilities, self.costs)
        edges = zip(*coo_array(self.counts).coords, *(one.data for one in columns), strict=True)
        for start, end, count, probability, cost in edges:
            graph.add_edge(
                names[start],
                names[end],
                count=int(count),
                probability=float(probability),
                cost=float(cost),
            )
        return graph


def _check_counts(counts: Matrix) -> None:
    if not counts.nnz:
        return
    data = counts.data
    if data.dtype.kind not in "iu" and not np.array_equal(data, np.trunc(data)):
        raise DataError(f"counts must be whole numbers, got {data[data != np.trunc(data)][0]}")
    if data.min() < 0:
        raise DataError(f"counts must be at least 0, got {data.min()}")
    most = float(counts.astype(np.float64).sum(axis=1).max())
    if most > 2**53:
        raise DataError(f"counts of a keystep must add up to at most 2**53, got {most:.3g}")
