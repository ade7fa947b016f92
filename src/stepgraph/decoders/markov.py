"""The graph as a Markov chain: a causal Bayes filter, and the most likely sequence (Viterbi).

``docs/method.md`` documents how both use scores where the paper leaves it open.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from stepgraph.core import BACKGROUND, Labels, Scores
from stepgraph.errors import ConfigError
from stepgraph.graph import Matrix, TaskGraph
from stepgraph.graph.chains import Chain, most_likely_path

Vector: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class BayesFilter:
    """Update the posterior of each keystep row by row; causal, as if the video were running.

    The recursion of the paper's supplement, with the graph's probabilities as ``A``: ``B(0) = s``
    and ``B(t) = s * (A.T B(t-1)) + epsilon * s``; a row's label is the keystep of largest ``B``.

    ``s`` is the score where it is positive and zero elsewhere: cosines can be negative, and the
    recursion multiplies.  The paper calls ``B`` a probability distribution, so it is divided by
    its sum after each row; without that, epsilon would cancel out.  An unobserved row, or one
    without a positive score, only applies the transitions, ``A.T B(t-1)``, or keeps ``B`` where
    all successors are excluded.  Where ``B(t)`` would be zero everywhere, ``B`` restarts with
    ``s``.  Rows before the first positive score are background.

    Attributes
    ----------
    epsilon
        Weight of the score alone, beside the prediction of the graph.
    """

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon < math.inf:
            raise ConfigError(f"epsilon must be a number from 0 on, got {self.epsilon}")

    def decode(self, scores: Scores, graph: TaskGraph) -> Labels:
        """See :class:`~stepgraph.decoders.Decoder`; no label depends on a later row."""
        graph.require_vocabulary_of(scores)
        moves, stays = _transitions(graph, None)
        backward = csr_array((moves + diags_array(stays)).T)
        keysteps = np.full(len(scores), BACKGROUND, dtype=np.int64)
        belief = np.zeros(len(scores.vocabulary))
        for row, (values, observed) in enumerate(zip(scores.values, scores.observed, strict=True)):
            measured = np.where(observed, np.maximum(values, 0), 0).astype(np.float64)
            expected = backward @ belief
            if measured.any():
                posterior = measured * expected + self.epsilon * measured
                expected = posterior if posterior.any() else measured
            allowed = values != -math.inf
            moved = np.where(allowed, expected, 0)
            reached = moved if moved.any() else np.where(allowed, belief, 0)
            if reached.any():
                belief = reached / reached.sum()
                keysteps[row] = belief.argmax()
        return Labels(scores.video, keysteps, scores.vocabulary, scores.hop)


@dataclass(frozen=True)
class Viterbi:
    """Label with the most probable sequence of keysteps, given all rows.

    The emission of a row is ``softmax(scores / temperature)``, and uniform on an unobserved row.
    Transitions are those of the graph, with two changes: the self-transition has probability
    ``self_transition``, and any keystep follows with a small one, so that no row is impossible.

    Attributes
    ----------
    temperature
        Temperature of the softmax of the scores: the lower, the less the graph counts.
    self_transition
        Probability that a keystep goes on for another row; None takes the mined one.
    floor
        Probability that the graph does not apply, and any keystep is equally probable.
    """

    temperature: float = 0.1
    self_transition: float | None = 0.97
    floor: float = 1e-3

    def __post_init__(self) -> None:
        if not 0 < self.temperature < math.inf:
            raise ConfigError(f"temperature must be a number above 0, got {self.temperature}")
        if self.self_transition is not None and not 0 <= self.self_transition <= 1:
            raise ConfigError(
                f"self_transition must be between 0 and 1 or None, got {self.self_transition}"
            )
        if not 0 < self.floor <= 1:
            raise ConfigError(
                f"floor must be above 0 and at most 1, got {self.floor}; "
                f"without it some keysteps cannot be reached"
            )

    def decode(self, scores: Scores, graph: TaskGraph) -> Labels:
        """See :class:`~stepgraph.decoders.Decoder`."""
        graph.require_vocabulary_of(scores)
        allowed = scores.values != -math.inf
        possible = allowed.any(axis=1)
        keysteps = np.full(len(scores), BACKGROUND, dtype=np.int64)
        if (possible & scores.observed).any():
            # The normaliser of the softmax is the same for all sequences, so it is left out.
            values = scores.values.astype(np.float64) / self.temperature
            emission = np.where(scores.observed[:, None], values, 0.0)
            emission[~allowed] = -math.inf
            emission[~possible] = 0.0
            path = most_likely_path(emission, make_chain(graph, self.self_transition, self.floor))
            keysteps = np.where(possible, path, BACKGROUND)
        return Labels(scores.video, keysteps, scores.vocabulary, scores.hop)


def make_chain(graph: TaskGraph, self_transition: float | None, floor: float) -> Chain:
    """Mix the graph's transitions with a uniform distribution of weight ``floor``."""
    even = floor / len(graph.vocabulary)
    moves, stays = _transitions(graph, self_transition)
    moves.data = np.log((1 - floor) * moves.data + even)
    return Chain.of_edges(np.log((1 - floor) * stays + even), moves, math.log(even))


def _transitions(graph: TaskGraph, self_transition: float | None) -> tuple[Matrix, Vector]:
    """Transition probabilities between keysteps, and self-transitions, mined unless given.

    A keystep without another transition has a self-transition of 1.
    """
    mined = graph.probabilities
    source = np.repeat(np.arange(len(graph.vocabulary)), np.diff(mined.indptr))
    others = source != mined.indices
    first = np.concatenate([[0], np.cumsum(others)])[mined.indptr]
    moves = csr_array((mined.data[others], mined.indices[others], first), shape=mined.shape)
    leaving = np.asarray(moves.sum(axis=1)).ravel()
    stays = mined.diagonal()
    if self_transition is not None:
        moves.data *= (1 - self_transition) / leaving[source[others]]
        stays = np.full_like(stays, self_transition)
    return moves, np.where(leaving > 0, stays, 1.0)
