"""Align a video with the keysteps of one task, in their order, dropping rows that fit none.

:class:`DropDTW` aligns with one order (Dvornik et al., NeurIPS 2021), :class:`Graph2Vid` with the
best of all orders that a partial order allows (Dvornik et al., ECCV 2022).  ``docs/method.md``
lists the parts of both papers that are used, and the choices that they leave open.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import BACKGROUND, Labels, Scores
from stepgraph.errors import ConfigError, DataError
from stepgraph.graph import DIRECTIONAL_SHARE, TaskGraph
from stepgraph.graph.compiling import compiled
from stepgraph.graph.order import partial_order

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class DropDTW:
    """Align the rows with one order of keysteps, read from a graph that is a chain.

    Attributes
    ----------
    percentile
        Percentile of the match costs of a video that is the cost of dropping a row.
    temperature
        Divisor of the scores before the softmax.
    drop_keysteps
        Allow keysteps to be dropped as well as rows.
    """

    percentile: float = 30.0
    temperature: float = 0.1
    drop_keysteps: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.percentile <= 100:
            raise ConfigError(f"percentile must be between 0 and 100, got {self.percentile}")
        if not 0 < self.temperature < math.inf:
            raise ConfigError(f"temperature must be more than 0, got {self.temperature}")

    def decode(self, scores: Scores, graph: TaskGraph) -> Labels:
        """See :class:`~stepgraph.decoders.Decoder`; the graph must have an order to align with."""
        graph.require_vocabulary_of(scores)
        values = scores.values[scores.observed]
        wrong = values[~(values < np.inf)]
        if wrong.size:
            raise DataError(
                f"scores of video {scores.video!r} must be below infinity, got {wrong[0]}"
            )
        candidates = np.flatnonzero(np.isfinite(values).any(axis=0))
        costs = match_costs(values[:, candidates], self.temperature)
        finite = costs[np.isfinite(costs)]
        drop = float(np.percentile(finite, self.percentile)) if finite.size else 0.0
        droppable = self.drop_keysteps or len(costs) < len(candidates)
        keystep_drops = np.full(len(candidates), drop) if droppable else None
        counts = graph.counts_between(candidates)
        np.fill_diagonal(counts, 0)
        states = self._states(counts, scores.video)
        columns, _ = align(costs, np.full(len(costs), drop), states, keystep_drops)
        keysteps = np.full(len(scores), BACKGROUND, dtype=np.int64)
        matched = columns != BACKGROUND
        keysteps[np.flatnonzero(scores.observed)[matched]] = candidates[columns[matched]]
        return Labels(scores.video, keysteps, scores.vocabulary, scores.hop)

    def _states(self, counts: Integers, video: str) -> States:
        """Build the states of the one order in which a graph chains its candidates."""
        links = counts > 0
        [starts] = np.nonzero(~links.any(axis=0))
        order = list(starts[:1])
        while order and len(order) < len(links) and links[order[-1]].any():
            order.append(links[order[-1]].argmax())
        # A chain visits every keystep, and has no transition beside those between neighbours.
        if len(set(order)) < len(links) or links.sum() > len(order[1:]):
            raise DataError(
                f"the graph for video {video!r} must chain its {len(links)} candidate keysteps in "
                f"one order, got {links.sum()} transitions between them; take "
                f"TaskGraph.from_order of the task's keysteps, and restrict the scores to these"
            )
        return ordered_states(np.array(order, dtype=np.int64))


@dataclass(frozen=True)
class Graph2Vid(DropDTW):
    """Align the rows with the best of all topological orders of a graph's keysteps.

    The first three options are those of :class:`DropDTW`; the published method drops rows only.
    Cycles of the graph are broken first.

    Attributes
    ----------
    majority
        Least share of the transitions between two keysteps in one direction that orders them.
    max_states
        Largest number of sets of finished keysteps: 2 to the n for n keysteps without order.
    """

    majority: float = DIRECTIONAL_SHARE
    max_states: int = 10_000

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.majority <= 1:
            raise ConfigError(f"majority must be between 0 and 1, got {self.majority}")
        if not self.max_states >= 2:
            raise ConfigError(f"max_states must be at least 2, got {self.max_states}")

    def _states(self, counts: Integers, video: str) -> States:
        return topological_states(partial_order(counts, self.majority), int(self.max_states))


def match_costs(values: NDArray[np.float32], temperature: float) -> Floats:
    """Negative log-softmax of each row, in nats; a score of minus infinity costs infinity."""
    # Shifting a row changes nothing in theory, and keeps the exponentials finite.
    best = values.max(axis=1, keepdims=True, initial=np.finfo(values.dtype).min)
    logits = np.subtract(values, best, dtype=np.float64) / temperature
    # The best keystep adds 1; only a row without any finite score adds up to less.
    total = np.maximum(np.exp(logits).sum(axis=1, keepdims=True), 1.0)
    return np.asarray(np.log(total) - logits, dtype=np.float64)


class States(NamedTuple):
    """Sets of keysteps that may be finished at one time, and the steps between the sets.

    Each path from the first state, the empty set, to the last is a topological order, and each
    order is a path.  The steps are the nodes of the published *tSort graph*: a keystep and those
    done before it.  The continuation depends on the state alone, so that one cost is stored for
    each state.

    Attributes
    ----------
    source, target, keystep : shape (E,), ordered by target
        Each step does ``keystep`` and leads from one state to another.
    """

    source: Integers
    target: Integers
    keystep: Integers

    @property
    def number(self) -> int:
        """Number of states."""
        return int(self.target.max(initial=0)) + 1


def ordered_states(keysteps: Integers) -> States:
    """Build the states of keysteps in one order."""
    first = np.arange(len(keysteps))
    return States(first, first + 1, keysteps)


@lru_cache(maxsize=64)
def topological_states(before: tuple[int, ...], max_states: int) -> States:
    """Enumerate the states of a partial order, as :func:`partial_order` gives it."""
    states, steps = [0], []
    position: dict[int, int] = {}
    # The list grows while it is read: smaller sets come first, and the full one comes last.
    for number, over in enumerate(states):
        for keystep, needed in enumerate(before):
            if over >> keystep & 1 or needed & ~over:
                continue
            reached = over | 1 << keystep
            if reached not in position:
                position[reached] = len(states)
                states.append(reached)
            steps.append((position[reached], number, keystep))
        if len(states) > max_states:
            raise DataError(
                f"a graph of {len(before)} keysteps must have at most {max_states} topological "
                f"states, got more; raise max_states, allow fewer keysteps or order more of them"
            )
    target, source, keysteps = np.array(sorted(steps), np.int64).reshape(len(steps), 3).T.copy()
    return States(source, target, keysteps)


def align(
    costs: Floats, row_drops: Floats, states: States, keystep_drops: Floats | None = None
) -> tuple[Integers, float]:
    """Find the cheapest alignment of all rows with any order that the states allow.

    Returns the column of each row in the costs, or ``BACKGROUND``; and the total cost.

    Parameters
    ----------
    costs : shape (T, K), of matching each row with each keystep
    row_drops : shape (T,), of dropping each row
    keystep_drops : shape (K,), of dropping each keystep; None where all must be matched

    Examples
    --------
    >>> costs = np.array([[0.0, 9.0], [0.1, 9.0], [7.0, 6.0], [9.0, 0.2]])
    >>> align(costs, np.ones(4), ordered_states(np.arange(2)))[0].tolist()
    [0, 0, -1, 1]
    """
    costs = np.ascontiguousarray(costs)
    drops = np.full(costs.shape[1], math.inf) if keystep_drops is None else keystep_drops
    keysteps = np.full(len(costs), BACKGROUND, dtype=np.int64)
    best = np.full(states.number, math.inf)
    cost = float(compiled(_align)(costs, row_drops, drops, states, best, keysteps))
    if not cost < math.inf:
        raise DataError(
            f"an alignment must match each keystep with a row of its own, got {costs.shape[0]} "
            f"rows for {costs.shape[1]} keysteps and no finite cost; let keysteps be dropped"
        )
    return keysteps, cost


def _align(
    costs: Floats,
    row_drops: Floats,
    keystep_drops: Floats,
    states: States,
    best: Floats,
    keysteps: Integers,
) -> np.float64:
    """Write the keystep of each row, and return the total cost; ``best`` is overwritten."""
    source, target, keystep = states
    # best[s]: the keysteps of state s are finished.  run[e]: step e matched the last row.
    best[0] = 0.0
    run = np.full(len(source), np.inf)
    stayed = np.empty((len(costs), len(source)), np.bool_)
    none, shape = len(source), (len(costs) + 1, len(best))
    entered, skipped = np.full(shape, none, np.int32), np.full(shape, none, np.int32)
    for over in range(len(costs) + 1):
        if over:
            for step in range(len(source)):
                started = best[source[step]]
                stayed[over - 1, step] = run[step] <= started
                run[step] = costs[over - 1, keystep[step]] + min(run[step], started)
            for state in range(len(best)):
                best[state] += row_drops[over - 1]
            for step in range(len(source)):
                if run[step] <= best[target[step]]:
                    best[target[step]] = run[step]
                    entered[over, target[step]] = step
        # Steps are ordered, so one pass is enough however many keysteps are dropped at once.
        for step in range(len(source)):
            dropped = best[source[step]] + keystep_drops[keystep[step]]
            if dropped < best[target[step]]:
                best[target[step]] = dropped
                skipped[over, target[step]] = step
    # Follow the choices back from the last row.
    state, step = len(best) - 1, none
    for over in range(len(costs), 0, -1):
        while step == none and skipped[over, state] != none:
            state = source[skipped[over, state]]
        if step == none:
            step = entered[over, state]
        if step != none:
            keysteps[over - 1] = keystep[step]
            if not stayed[over - 1, step]:
                state, step = source[step], none
    return np.float64(best[-1])
