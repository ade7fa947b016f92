"""Ties across tasks: transitions between keysteps without a common task, and the joined tasks.

In a video of one task, one of two such keysteps is not of that task: it was matched wrongly, or
the task lists it under another name.  So ties show which tasks have similar keysteps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from stepgraph.core import Vocabulary
from stepgraph.graph.parameters import listed_tasks
from stepgraph.graph.shortest_paths import Matrix
from stepgraph.graph.task_graph import TaskGraph

Floats: TypeAlias = NDArray[np.float64]
Positions: TypeAlias = NDArray[np.integer[Any]]

TIED = 1.5
"""Least ratio of observed to expected transitions of two tasks that are called related."""

# Pairs of tasks with fewer expected transitions are left out: their ratio is noise.
_LEAST = 5.0
# Iterations in which the expected transitions converge.
_ROUNDS = 100


class Tie(NamedTuple):
    """Two tasks, with the transitions observed and expected between them; see :class:`Ties`.

    ``pairs`` are the keysteps that carry the tie, with their count, the most frequent first.
    """

    first: str
    second: str
    seen: float
    expected: float
    pairs: tuple[tuple[int, int, int], ...]

    @property
    def ratio(self) -> float:
        """Ratio of observed to expected transitions."""
        return self.seen / self.expected


@dataclass(frozen=True, eq=False)
class Ties:
    """Transitions of a graph that join keysteps without a common task.

    Attributes
    ----------
    changes
        Number of all transitions between different keysteps, within tasks and across them.
    between : shape (K, K)
        Counts of the transitions across tasks.
    members : shape (K, Z)
        Share of each keystep that belongs to each task, from 0 to 1.
    """

    tasks: tuple[str, ...]
    changes: int
    between: Matrix
    members: Matrix

    @property
    def share(self) -> float:
        """Share of all transitions from one keystep to another that join different tasks."""
        return float(self.between.sum() / self.changes) if self.changes else 0.0

    @cached_property
    def seen(self) -> Floats:
        """Observed transitions between each two tasks, both directions, shape (Z, Z).

        A keystep that several tasks list is divided evenly between them.
        """
        one_way = (self.members.T @ self.between @ self.members).toarray()
        return np.asarray(one_way + one_way.T, dtype=np.float64)

    @cached_property
    def expected(self) -> Floats:
        """Transitions expected by chance, given the total of each task, shape (Z, Z).

        The counts ``x[a] * x[b]`` of different tasks that have the observed marginal sums.
        """
        sums = self.seen.sum(axis=1)
        x = np.sqrt(sums)
        for _ in range(_ROUNDS):
            # Halfway, since the whole way is overshot where there are few tasks.
            x = np.sqrt(x * sums / np.maximum(x.sum() - x, 1e-12))
        by_chance = np.outer(x, x)
        np.fill_diagonal(by_chance, 0.0)
        return by_chance

    @property
    def ratio(self) -> Floats:
        """Ratio of observed to expected transitions, 0 where few are expected, shape (Z, Z)."""
        ratios: Floats = self.seen / np.maximum(self.expected, _LEAST)
        return np.where(self.expected < _LEAST, 0.0, ratios)

    def strongest(self, limit: int = 10, pairs: int = 3) -> list[Tie]:
        """Pairs of tasks with the largest ratio, each with its most frequent pairs of keysteps."""
        ratios = np.triu(self.ratio, 1)
        best = np.argsort(-ratios, axis=None, kind="stable")[:limit]
        places = np.stack(np.unravel_index(best, ratios.shape), axis=1)
        return [self._tie(a, b, pairs) for a, b in places.tolist() if ratios[a, b] > 0]

    def _tie(self, a: int, b: int, limit: int) -> Tie:
        of_a, of_b = self.members[:, [a, b]].toarray().T > 0
        joins = self.between.tocoo()
        first, second = joins.coords
        here = of_a[first] & of_b[second] | of_b[first] & of_a[second]
        carried = zip(first[here], second[here], joins.data[here], strict=True)
        found = [(int(one), int(other), int(count)) for one, other, count in carried]
        found.sort(key=lambda one: (-one[2], one))
        counts = float(self.seen[a, b]), float(self.expected[a, b])
        return Tie(self.tasks[a], self.tasks[b], *counts, tuple(found[:limit]))

    def order(self) -> list[int]:
        """Order the tasks so that those with a large ratio are neighbours.

        Leaves of an average-linkage tree in optimal order, by the expected part of transitions.
        """
        from scipy.cluster.hierarchy import leaves_list, linkage

        if len(self.tasks) < 3:
            return [*range(len(self.tasks))]
        # One pseudo-count each, so that tasks with few transitions do not seem related.
        apart = (self.expected + 1) / (self.expected + self.seen + 2)
        condensed = apart[np.triu_indices(len(apart), 1)]
        tree = linkage(condensed, "average", optimal_ordering=True)
        return [int(one) for one in leaves_list(tree)]


def ties_of(graph: TaskGraph) -> Ties:
    """Find the transitions of a graph that join different tasks."""
    tasks, members = _membership(graph.vocabulary)
    every = graph.counts.tocoo()
    first, second = every.coords
    apart = ~share_a_task(graph.vocabulary, first, second) & (first != second)
    kept = every.data[apart], (first[apart], second[apart])
    between = csr_array(coo_array(kept, shape=graph.counts.shape))
    changes = int(graph.counts.sum() - graph.counts.diagonal().sum())
    return Ties(tasks, changes, between, csr_array(members / members.sum(axis=1)[:, None]))


def share_a_task(vocabulary: Vocabulary, first: Positions, second: Positions) -> NDArray[np.bool_]:
    """Mark the pairs of keysteps that have a common task.

    >>> tea = Vocabulary(("boil", "pour", "whisk"), {"tea": (0, 1), "eggs": (0, 2)})
    >>> share_a_task(tea, np.array([0, 1]), np.array([2, 2])).tolist()
    [True, False]
    """
    _, members = _membership(vocabulary)
    shared = members[first].multiply(members[second]).sum(axis=1)
    return np.asarray(shared).ravel() > 0


def _membership(vocabulary: Vocabulary) -> tuple[tuple[str, ...], Matrix]:
    """Names of the tasks, and incidence matrix of keysteps and tasks, shape (K, Z)."""
    tasks = listed_tasks(vocabulary)
    rows = np.concatenate([np.array(members, dtype=np.int64) for members in tasks.values()])
    columns = np.repeat(np.arange(len(tasks)), [len(members) for members in tasks.values()])
    ones = np.ones(len(rows), dtype=np.int64)
    shape = len(vocabulary), len(tasks)
    return tuple(tasks), csr_array(coo_array((ones, (rows, columns)), shape=shape))
