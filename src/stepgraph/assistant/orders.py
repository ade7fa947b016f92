"""Partial order of the keysteps of a task, learned from executions.

Without noise, a keystep first precedes another unless some execution contradicts it.  A greedy
search then drops pairs, since people pick the next keystep among those that are ready, and a pair
may have come in the same order every time by chance.  It minimises the description length of the
order and the executions.  An order costs its prerequisites, sets that several keysteps share only
once; an execution costs the log of the number of ready keysteps at each of its steps.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepgraph.errors import ConfigError
from stepgraph.graph import TaskGraph
from stepgraph.graph.order import partial_order
from stepgraph.graph.traces import Floats, Integers

RECOGNIZED = 0.1
"""Share of recognised keysteps that are taken to be out of place."""
Bools = NDArray[np.bool_]
Move = tuple[tuple[int, int], ...]
# Cost of a prerequisite, in nats; chosen so that no kind of simulated recipe is learned worse
# than without the search, on other seeds than those that are reported (docs/assistant.md).
_COST = math.log(3)
# Shares of executions that agree about a pair, for the first orders of noisy executions.
_MAJORITIES = (1.0, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6)


@dataclass(frozen=True, eq=False)
class Order:
    """Partial order of steps, learned from executions.

    Attributes
    ----------
    steps
        Steps in the order of their first appearance.
    before : shape (n, n), bool
        True where one must be done before another; transitive.
    counts : shape (n, n)
        Number of executions in which one came before another.
    shown : shape (n,)
        Number of the ``executions`` that did each step.
    """

    steps: tuple[Hashable, ...]
    before: Bools
    counts: Integers
    shown: Integers
    executions: int

    @property
    def edges(self) -> list[tuple[Hashable, Hashable]]:
        """Direct pairs (first, second) of the order; all other pairs follow from them."""
        pairs = np.argwhere(reduced(self.before))
        return [(self.steps[first], self.steps[second]) for first, second in pairs]

    def prerequisites(self, step: Hashable) -> list[Hashable]:
        """Steps that must be done directly before a step."""
        return [first for first, second in self.edges if second == step]

    @property
    def optional(self) -> list[Hashable]:
        """Steps that some executions leave out."""
        return [s for s, n in zip(self.steps, self.shown, strict=True) if n < self.executions]

    @property
    def alternatives(self) -> list[tuple[Hashable, Hashable]]:
        """Pairs of optional steps that never come together, though thrice or more is expected."""
        expected = np.outer(self.shown, self.shown) / max(1, self.executions)
        never = (self.counts + self.counts.T == 0) & (expected >= 3)
        pairs = np.argwhere(np.triu(never, 1))
        return [(self.steps[first], self.steps[second]) for first, second in pairs]


def learn_order(sequences: Iterable[Sequence[Hashable]], *, noise: float = 0.0) -> Order:
    """Learn a partial order from executions, each a sequence of steps.

    Only the first time that an execution does a step counts; steps may be left out.

    Parameters
    ----------
    noise
        Share of steps that are done although they are not ready, from 0 to below 1; with 0 the
        order contradicts no execution.

    Examples
    --------
    >>> order = learn_order([["boil", "leaves", "pour"], ["leaves", "boil", "pour"]] * 3)
    >>> order.edges
    [('boil', 'pour'), ('leaves', 'pour')]
    """
    if not 0 <= noise < 1:
        raise ConfigError(f"noise must be at least 0 and below 1, got {noise}")
    done = [list(dict.fromkeys(sequence)) for sequence in sequences]
    steps = tuple(dict.fromkeys(step for sequence in done for step in sequence))
    place = {step: at for at, step in enumerate(steps)}
    rows = [np.array([place[step] for step in sequence], dtype=np.int64) for sequence in done]
    counts = np.zeros((len(steps), len(steps)), dtype=np.int64)
    for row in rows:
        counts[row[:, None], row] += np.triu(np.ones((len(row), len(row)), dtype=np.int64), 1)
    shown = np.bincount(np.concatenate([*rows, np.zeros(0, np.int64)]), minlength=len(steps))
    majorities = _MAJORITIES if noise else (1.0,)
    begun = [_as_matrix(partial_order(counts, majority)) for majority in majorities]
    if steps:
        seen = _Seen(rows, len(steps), noise)
        # With noise, pairs that may be added: executions support them more often than not.
        likely = (counts > counts.T) if noise else np.zeros_like(counts, dtype=bool)
        # Among orders of equal cost, the one that began with more agreement.
        found = [_weighed(before, seen, likely) for before in begun]
        begun = [min(found, key=lambda one: one[1])[0]]
    return Order(steps, begun[0], counts, shown, len(rows))


def needs_of(graph: TaskGraph, task: str) -> dict[str, list[str]]:
    """Direct prerequisites of each keystep of a task, from the recognised videos of a graph.

    The listed order counts as half as many executions, times the weight that it has.
    """
    names, statistics, done = graph.vocabulary.keysteps, graph.statistics, list[Sequence[int]]()
    if statistics:
        written = statistics.of_task(task).keysteps
        done = [*statistics.sequences(task).values(), *[written] * statistics.written(task)]
    order = learn_order([[names[at] for at in steps] for steps in done], noise=RECOGNIZED)
    return {str(step): [str(one) for one in order.prerequisites(step)] for step in order.steps}


def _as_matrix(before: Sequence[int]) -> Bools:
    size = len(before)
    found = [[bool(one >> first & 1) for one in before] for first in range(size)]
    return np.array(found, dtype=bool).reshape(size, size)


def reduced(before: Bools) -> Bools:
    """Reduce transitive relations, shape (..., n, n), to the pairs that imply all others."""
    number = before.astype(np.float32)
    return np.asarray(before & ~(number @ number > 0))


class _Seen:
    """Executions as arrays: the place of each step, and the step at each place."""

    def __init__(self, rows: Sequence[Integers], size: int, noise: float) -> None:
        self.noise, longest = noise, max(map(len, rows))
        self.place = np.full((len(rows), size), -1)
        self.step = np.zeros((len(rows), longest), dtype=np.int64)
        self.valid = np.arange(longest) < np.array([[len(row)] for row in rows])
        for number, row in enumerate(rows):
            self.place[number, row] = np.arange(len(row))
            self.step[number, : len(row)] = row
        self.left = np.maximum(self.valid[:, ::-1].cumsum(axis=1)[:, ::-1], 1)

    def cost(self, before: Bools) -> Floats:
        """Description length of the executions, in nats, under orders of shape (m, n, n)."""
        placed = np.where(before[:, None], self.place[None, :, :, None], -1)
        ready_at = placed.max(axis=2) + 1  # shape (m, E, n)
        # A step adds one to the number of those ready from then on until it is done.
        change = np.zeros((*ready_at.shape[:2], self.step.shape[1] + 2))
        one, execution, step = np.nonzero(
            np.broadcast_to(self.place >= 0, ready_at.shape) & (ready_at <= self.place)
        )
        np.add.at(change, (one, execution, ready_at[one, execution, step]), 1)
        np.add.at(change, (one, execution, self.place[execution, step] + 1), -1)
        ready = np.maximum(change.cumsum(axis=2)[:, :, : self.step.shape[1]], 1)
        each = np.broadcast_to(self.step, ready.shape)
        right = np.take_along_axis(ready_at, each, axis=2) <= np.arange(self.step.shape[1])
        chance = np.where(right, (1 - self.noise) / ready, 0.0) + self.noise / self.left
        return np.asarray(-np.log(np.where(self.valid, np.maximum(chance, 1e-300), 1)).sum((1, 2)))


def _weighed(before: Bools, seen: _Seen, likely: Bools) -> tuple[Bools, float]:
    """Remove pairs, or add likely ones, greedily while that lowers the description length."""
    total = float(_COST * _explained(before[None])[0] + seen.cost(before[None])[0])
    while True:
        moves, added = _moves(reduced(before)), np.argwhere(likely & ~before & ~before.T)
        if not moves and not len(added):
            break
        orders = np.repeat(before[None], len(moves) + len(added), axis=0)
        for order, move in zip(orders, moves, strict=False):
            order[tuple(np.array(move).T)] = False
        for order, (first, second) in zip(orders[len(moves) :], added, strict=True):
            early, late = before[:, first].copy(), before[second].copy()
            early[first] = late[second] = True
            order |= np.outer(early, late)
        costs = _COST * _explained(orders) + seen.cost(orders)
        best = int(costs.argmin())
        if costs[best] >= total - 1e-9:
            break
        before, total = orders[best], float(costs[best])
    return before, total


def _moves(direct: Bools) -> list[Move]:
    """Direct pairs to remove: one, or one for all steps with equal prerequisites or successors."""
    moves: set[Move] = {((int(a), int(b)),) for a, b in np.argwhere(direct)}
    for turned, each in ((False, direct.T), (True, direct)):
        groups: dict[bytes, list[int]] = {}
        for step, row in enumerate(each):
            groups.setdefault(row.tobytes(), []).append(step)
        for group in groups.values():
            for other in np.flatnonzero(each[group[0]]).tolist():
                pairs = [(one, other) if turned else (other, one) for one in group]
                moves.add(tuple(pairs))
    return sorted(moves)


def _explained(before: Bools) -> Floats:
    """Count prerequisites of orders, shape (m, n, n); sets that steps share count once.

    The mean of two counts: of sets of direct predecessors, and of sets of direct successors.
    """
    direct, size = reduced(before), before.shape[1]
    marks = np.random.default_rng(0).integers(1, 2**40, (size,))
    total = np.zeros(len(before))
    for each in (direct, direct.transpose(0, 2, 1)):
        name = (each * marks[:, None]).sum(axis=1)
        order = np.argsort(name, axis=1)
        number = np.take_along_axis(each.sum(axis=1), order, axis=1)
        fresh = np.diff(np.take_along_axis(name, order, axis=1), axis=1, prepend=-1) != 0
        total += (number * fresh).sum(axis=1) / 2
    return total
