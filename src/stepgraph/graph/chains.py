"""Markov chains: the most likely path (Viterbi) and posterior marginals (forward-backward)."""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stepgraph.graph.compiling import compiled_later
from stepgraph.graph.shortest_paths import Matrix

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


class Edges(NamedTuple):
    """Transitions, grouped by state.

    Attributes
    ----------
    first : shape (K + 1,), index of the first edge of each state
    state : shape (E,), state at the other end of each edge
    log_p : shape (E,), log-probability of each edge, in nats
    """

    first: Integers
    state: Integers
    log_p: Floats


class Chain(NamedTuple):
    """Log-probabilities of transitions between states, in nats.

    Attributes
    ----------
    stay : shape (K,)
        Log-probability of each self-transition.
    out, into
        Stored transitions: the edges by source state, and the same edges by target state.
    floor
        Log-probability of every transition without an edge, and lower bound of all others.
    """

    stay: Floats
    out: Edges
    into: Edges
    floor: float

    @classmethod
    def of_edges(cls, stay: Floats, edges: Matrix, floor: float) -> Chain:
        """Make a chain from a sparse matrix of log-probabilities, shape (K, K)."""
        return cls(stay, _edges(edges), _edges(csr_array(edges.T)), floor)

    @classmethod
    def of_all(cls, log_transition: Floats) -> Chain:
        """Make a chain from a full matrix of log-probabilities, shape (K, K)."""
        size = len(log_transition)
        first, state = np.arange(0, size * size + 1, size), np.tile(np.arange(size), size)
        out = Edges(first, state, log_transition.ravel())
        into = Edges(first, state, log_transition.T.ravel())
        return cls(np.full(size, -math.inf), out, into, -math.inf)


def _edges(matrix: Matrix) -> Edges:
    first, state = (one.astype(np.int64) for one in (matrix.indptr, matrix.indices))
    return Edges(first, state, matrix.data.astype(np.float64))


def most_likely_path(log_emission: Floats, chain: Chain) -> Integers:
    """Find the most likely sequence of states (Viterbi), with a uniform initial distribution.

    O(T * edges + T * K) at worst; edges that cannot be better than the floor are skipped.  Ties
    between transitions into a state go to the self-transition, then to the edge from the lowest
    state, then to the floor.

    Parameters
    ----------
    log_emission : shape (T, K), in nats
        At least one finite value a row.

    Returns
    -------
    shape (T,)
        The state of every row.

    Examples
    --------
    >>> chain = Chain.of_all(np.log([[0.9, 0.1], [0.1, 0.9]]))
    >>> most_likely_path(np.log([[0.8, 0.2], [0.3, 0.7], [0.8, 0.2]]), chain).tolist()
    [0, 0, 0]
    """
    best = np.array(log_emission, dtype=np.float64, order="C")
    path = np.empty(len(best), dtype=np.int64)
    if len(best):
        highest = np.full(best.shape[1], -math.inf)
        [left] = np.nonzero(np.diff(chain.out.first))
        if left.size:
            highest[left] = np.maximum.reduceat(chain.out.log_p, chain.out.first[left])
        steps = len(best) * (len(highest) + len(chain.out.state))
        compiled_later(_search, steps)(best, chain, highest, path)
    return path


def _search(best: Floats, chain: Chain, highest: Floats, path: Integers) -> None:
    """Replace emissions by the score of the best path to each state, then write the best path.

    ``highest`` is the largest log-probability of the edges out of each state.
    """
    rows, size = best.shape
    stay, out, into, floor = chain
    arriving = np.empty(size)
    leader = np.empty(rows, dtype=np.int64)
    for row in range(rows):
        leader[row] = 0
        for state in range(size):
            if row:
                best[row, state] += arriving[state]
            if best[row, state] > best[row, leader[row]]:
                leader[row] = state
        # The floor is the same from everywhere, so only the best state can come by it.
        anywhere = best[row, leader[row]] + floor
        for state in range(size):
            arriving[state] = max(best[row, state] + stay[state], anywhere)
        for state in range(size):
            here = best[row, state]
            if here + highest[state] > anywhere:
                for edge in range(out.first[state], out.first[state + 1]):
                    there = out.state[edge]
                    arriving[there] = max(arriving[there], here + out.log_p[edge])
    path[-1] = leader[-1]
    for row in range(rows - 2, -1, -1):
        there = path[row + 1]
        source, top = there, best[row, there] + stay[there]
        for edge in range(into.first[there], into.first[there + 1]):
            along = best[row, into.state[edge]] + into.log_p[edge]
            if along > top:
                source, top = into.state[edge], along
        path[row] = leader[row] if best[row, leader[row]] + floor > top else source


def marginals(log_emission: Floats, transition: Floats) -> Floats:
    """Compute the posterior of each state on each row, given all rows (forward-backward).

    Parameters
    ----------
    log_emission : shape (T, K), in nats
    transition : shape (K, K), probabilities; the initial distribution is uniform

    Returns
    -------
    shape (T, K)

    Examples
    --------
    >>> sure = np.log(np.array([[0.9, 0.1], [0.5, 0.5], [0.9, 0.1]]))
    >>> marginals(sure, np.array([[0.9, 0.1], [0.1, 0.9]])).round(2)[:, 0].tolist()
    [0.97, 0.95, 0.97]
    """
    probability = np.empty_like(log_emission)
    if log_emission.size:
        # Only differences within a row matter; the largest becomes 1 so that none vanishes.
        likelihood = np.exp(log_emission - log_emission.max(axis=1, keepdims=True))
        steps = len(likelihood) * transition.size
        compiled_later(_weigh, steps)(likelihood, transition, probability)
    return probability


def _weigh(likelihood: Floats, transition: Floats, probability: Floats) -> None:
    """Write the result of :func:`marginals`."""
    rows, size = likelihood.shape
    for row in range(rows):
        for state in range(size):
            probability[row, state] = 0.0 if row else 1.0
        for source in range(size if row else 0):
            for state in range(size):
                came = probability[row - 1, source] * transition[source, state]
                probability[row, state] += came
        total = 0.0
        for state in range(size):
            probability[row, state] *= likelihood[row, state]
            total += probability[row, state]
        for state in range(size):
            probability[row, state] /= total
    backward, following = np.ones(size), np.empty(size)
    for row in range(rows - 1, -1, -1):
        total = 0.0
        for state in range(size):
            probability[row, state] *= backward[state]
            total += probability[row, state]
            following[state] = likelihood[row, state] * backward[state]
        for state in range(size):
            probability[row, state] /= total
        total = 0.0
        for state in range(size):
            backward[state] = 0.0
            for target in range(size):
                backward[state] += transition[state, target] * following[target]
            total += backward[state]
        for state in range(size):
            backward[state] /= total
