"""The graph as a Markov chain: a filter that looks back only, and the best sequence of all.

Both decoders read scores in the same way where the paper is silent:

- minus infinity forbids a keystep on its row, heard or not, so restricted scores stay restricted;
- a row that forbids every keystep is background, and says nothing about the others;
- a keystep that the graph never leaves goes on;
- a video in which nothing was observed is all background.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, diags_array

from stepgraph.core import BACKGROUND, Labels, Scores, require_same_vocabulary
from stepgraph.errors import ConfigError
from stepgraph.graph import TaskGraph

Matrix: TypeAlias = "csr_array[Any, tuple[int, int]]"
Vector: TypeAlias = NDArray[np.float64]

# Up to so many edges a sweep over all takes no longer than asking which of them can matter, and
# up to this share of all, following those that can is quicker than a sweep.
_SMALL = 4000
_FEW = 0.15


@dataclass(frozen=True)
class BayesFilter:
    """Update the belief in each keystep row by row; causal, as if the video were still running.

    The recursion of the paper's supplement, with the graph's probabilities as ``A``: ``B(0) = s``
    and ``B(t) = s * (A.T B(t-1)) + epsilon * s``; a row's label is the keystep most believed in.

    ``s`` is the score where it is positive and zero elsewhere: cosines can be negative, and the
    recursion multiplies.  A belief is a probability distribution in the paper's words, so it is
    divided by its sum after each row; without that, epsilon would cancel out.  A row without
    narration, or without a positive score, only moves the belief along the graph, ``A.T B(t-1)``,
    or leaves it in place where all it would move to is forbidden.  Where nothing believed in leads
    to what was measured, belief begins anew with ``s``.  Rows before the first measurement are
    background.

    Attributes
    ----------
    epsilon
        Weight of the measurement alone, beside what the graph expects.
    """

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon < math.inf:
            raise ConfigError(f"epsilon must be a number from 0 on, got {self.epsilon}")

    def decode(self, scores: Scores, graph: TaskGraph) -> Labels:
        """See :class:`~stepgraph.decoders.Decoder`; no label depends on a later row."""
        _require_one_vocabulary(scores, graph)
        backward = csr_array(_transitions(graph, None).T)
        keysteps = np.full(len(scores), BACKGROUND, dtype=np.int64)
        belief = np.zeros(len(scores.vocabulary))
        for row, (values, observed) in enumerate(zip(scores.values, scores.observed, strict=True)):
            measured = np.where(observed, np.maximum(values, 0), 0).astype(np.float64)
            allowed = values != -math.inf
            moved = np.where(allowed, updated(belief, measured, backward, self.epsilon), 0)
            believed = moved if moved.any() else np.where(allowed, belief, 0)
            if believed.any():
                belief = believed / believed.sum()
                keysteps[row] = belief.argmax()
        return Labels(scores.video, keysteps, scores.vocabulary, scores.hop)


def updated(belief: Vector, measured: Vector, backward: Matrix, epsilon: float) -> Vector:
    """Take one step of the filter; the result is not divided by its sum.

    Parameters
    ----------
    belief : shape (K,)
        All zero before the first measurement.
    measured : shape (K,)
        All zero where nothing was measured.
    backward : shape (K, K)
        Row ``j`` holds the probabilities of coming to ``j`` from each keystep.
    """
    expected: Vector = backward @ belief
    if not measured.any():
        return expected
    posterior: Vector = measured * expected + epsilon * measured
    return posterior if posterior.any() else measured


@dataclass(frozen=True)
class Viterbi:
    """Label with the most probable sequence of keysteps, all rows considered.

    A row is emitted by a keystep with ``softmax(scores / temperature)``; one without narration by
    all alike.  Keysteps follow one another as in the graph, with two changes: a keystep goes on
    with probability ``stay`` whatever the graph says, and may with a small probability be followed
    by any other, so that no row is impossible.

    Attributes
    ----------
    temperature
        The lower, the more a score counts against the graph.
    stay
        Probability that a keystep goes on for another row; None takes the mined one.
    floor
        Probability of ignoring the graph, spread evenly over all keysteps.
    """

    temperature: float = 0.1
    stay: float | None = 0.97
    floor: float = 1e-3

    def __post_init__(self) -> None:
        if not 0 < self.temperature < math.inf:
            raise ConfigError(f"temperature must be a number above 0, got {self.temperature}")
        if self.stay is not None and not 0 <= self.stay <= 1:
            raise ConfigError(f"stay must be between 0 and 1 or None, got {self.stay}")
        if not 0 < self.floor <= 1:
            raise ConfigError(
                f"floor must be above 0 and at most 1, got {self.floor}; "
                f"without it some keysteps cannot be reached"
            )

    def decode(self, scores: Scores, graph: TaskGraph) -> Labels:
        """See :class:`~stepgraph.decoders.Decoder`."""
        _require_one_vocabulary(scores, graph)
        allowed = scores.values != -math.inf
        possible = allowed.any(axis=1)
        keysteps = np.full(len(scores), BACKGROUND, dtype=np.int64)
        if (possible & scores.observed).any():
            # What softmax divides by is the same for all sequences, so it is left out.
            values = scores.values.astype(np.float64) / self.temperature
            emission = np.where(scores.observed[:, None], values, 0.0)
            emission[~allowed] = -math.inf
            emission[~possible] = 0.0
            path = most_likely_path(emission, make_chain(graph, self.stay, self.floor))
            keysteps = np.where(possible, path, BACKGROUND)
        return Labels(scores.video, keysteps, scores.vocabulary, scores.hop)


class Chain(NamedTuple):
    """Log-probabilities of a Markov chain that can go from everywhere to everywhere.

    Attributes
    ----------
    stay : shape (K,)
        Of each keystep going on.
    edges : shape (K, K)
        Of other transitions, where they are above ``floor``; nothing on the diagonal.
    floor
        Of every transition that is not stored.
    """

    stay: Vector
    edges: Matrix
    floor: float


def make_chain(graph: TaskGraph, stay: float | None, floor: float) -> Chain:
    """Mix the graph's transitions with ``floor`` of an even spread over all keysteps."""
    size = len(graph.vocabulary)
    even = floor / size
    transitions = _transitions(graph, stay)
    edges = coo_array(transitions)
    kept = edges.coords[0] != edges.coords[1]
    log_p = np.log((1 - floor) * edges.data[kept] + even)
    source, target = (one[kept] for one in edges.coords)
    return Chain(
        np.log((1 - floor) * transitions.diagonal() + even),
        csr_array(coo_array((log_p, (source, target)), shape=(size, size))),
        math.log(even),
    )


def _transitions(graph: TaskGraph, stay: float | None) -> Matrix:
    """Probabilities with self-loops of ``stay``; what has no other way out stays for good."""
    mined = graph.probabilities
    loops = mined.diagonal()
    others = mined - diags_array(loops)
    leaving = np.asarray(others.sum(axis=1)).ravel()
    if stay is not None:
        others = diags_array((1 - stay) / np.where(leaving > 0, leaving, 1)) @ others
        loops = np.full(len(loops), stay)
    return csr_array(others + diags_array(np.where(leaving > 0, loops, 1.0)))


def most_likely_path(log_emission: Vector, chain: Chain) -> NDArray[np.int64]:
    """Viterbi decoding from an even start: O(T * edges + T * K), not O(T * K**2).

    Of equally likely sequences it is the same one every time.

    Parameters
    ----------
    log_emission : shape (T, K)
        At least one finite value a row.

    Returns
    -------
    shape (T,)
        The keystep of every row.

    Examples
    --------
    >>> stay = np.log([0.9, 0.9])
    >>> chain = Chain(stay, csr_array((2, 2)), np.log(0.1))
    >>> most_likely_path(np.log([[0.8, 0.2], [0.3, 0.7], [0.8, 0.2]]), chain).tolist()
    [0, 0, 0]
    """
    best = np.array(log_emission, dtype=np.float64)
    edges = _sort_edges(chain.edges)
    for row in range(1, len(best)):
        before = best[row - 1]
        # The floor is the same from everywhere, so only the best keystep can come by it.
        arriving = np.maximum(before + chain.stay, before.max() + chain.floor)
        _arrive_by_edges(arriving, before, edges)
        best[row] += arriving
    return _walk_back(best, chain, edges)


class _Edges(NamedTuple):
    """The edges twice: by source, to follow a few; by target, to sweep over all."""

    first: NDArray[np.int64]
    target: NDArray[np.int64]
    log_p: Vector
    highest: Vector
    first_into: NDArray[np.int64]
    source_into: NDArray[np.int64]
    log_p_into: Vector
    entered: NDArray[np.int64]
    begin_into: NDArray[np.int64]


def _sort_edges(edges: Matrix) -> _Edges:
    into = csr_array(edges.T)
    left, entered = (np.flatnonzero(np.diff(one.indptr)) for one in (edges, into))
    highest = np.full(edges.shape[0], -math.inf)
    if left.size:
        highest[left] = np.maximum.reduceat(edges.data, edges.indptr[left])
    return _Edges(
        edges.indptr.astype(np.int64),
        edges.indices.astype(np.int64),
        edges.data,
        highest,
        into.indptr.astype(np.int64),
        into.indices.astype(np.int64),
        into.data,
        entered,
        into.indptr[entered].astype(np.int64),
    )


def _arrive_by_edges(arriving: Vector, before: Vector, edges: _Edges) -> None:
    """Raise ``arriving`` to what comes by edges, passing over keysteps whose edges raise none."""
    if len(edges.target) <= _SMALL:
        _arrive_by_all(arriving, before, edges)
        return
    leaving = np.flatnonzero(before + edges.highest > arriving.min())
    lengths = edges.first[leaving + 1] - edges.first[leaving]
    total = int(lengths.sum())
    if total > _FEW * len(edges.target):
        _arrive_by_all(arriving, before, edges)
    elif total:
        skipped = edges.first[leaving] - (np.cumsum(lengths) - lengths)
        edge = np.repeat(skipped, lengths) + np.arange(total)
        along = np.repeat(before[leaving], lengths) + edges.log_p[edge]
        np.maximum.at(arriving, edges.target[edge], along)


def _arrive_by_all(arriving: Vector, before: Vector, edges: _Edges) -> None:
    if edges.entered.size:
        along = before.take(edges.source_into)
        along += edges.log_p_into
        best = np.maximum.reduceat(along, edges.begin_into)
        arriving[edges.entered] = np.maximum(arriving[edges.entered], best)


def _walk_back(best: Vector, chain: Chain, edges: _Edges) -> NDArray[np.int64]:
    """Ask each keystep on the path, from the last, by what it was reached best."""
    path = np.empty(len(best), dtype=np.int64)
    if not len(best):
        return path
    path[-1] = here = int(best[-1].argmax())
    for row in range(len(best) - 1, 0, -1):
        before = best[row - 1]
        first, last = edges.first_into[here], edges.first_into[here + 1]
        ways = [(before[here] + chain.stay[here], here)]
        if first < last:
            sources = edges.source_into[first:last]
            along = before[sources] + edges.log_p_into[first:last]
            ways.append((along.max(), int(sources[along.argmax()])))
        anywhere = int(before.argmax())
        ways.append((before[anywhere] + chain.floor, anywhere))
        path[row - 1] = here = max(ways, key=itemgetter(0))[1]
    return path


def _require_one_vocabulary(scores: Scores, graph: TaskGraph) -> None:
    require_same_vocabulary(
        scores.vocabulary, graph.vocabulary, f"scores of video {scores.video!r} and the graph"
    )
