"""What is said in a video, held against the keysteps of tasks: moments by keysteps.

A sentence lasts for many rows; here it is one moment with the weight of its rows.  What is asked
of many tasks is computed in pieces, so that memory does not grow with rows times keysteps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import FREE, Scores
from stepgraph.core.rows import pin
from stepgraph.scoring.products import Products, pieces

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Tasks: TypeAlias = Mapping[str, tuple[int, ...]]


class Closeness(NamedTuple):
    """How close each moment is to a task.

    Attributes
    ----------
    keysteps : shape (N, n)
        To each of its keysteps; minus infinity where one may not be.
    title : shape (N,) or None
        To the task as a whole, where its title is known.
    """

    keysteps: Floats
    title: Floats | None


@dataclass(frozen=True, eq=False)
class Heard:
    """The moments of some rows of a video.

    Attributes
    ----------
    scores
        Of the whole video.
    moment : shape (T,)
        Which moment each row shows, -1 where nothing is said.
    said : shape (N,)
        Where each moment is among the parts or the rows of the scores.
    weight : shape (N,)
        How many rows each moment lasts.
    """

    scores: Scores
    moment: Integers
    said: Integers
    weight: Floats

    @cached_property
    def fixed(self) -> Integers:
        """What a person says is done in each moment, else ``FREE``, shape (N,)."""
        if isinstance(self.scores, Products):
            return self.scores.known[self.said]
        fixed = self.scores.fixed
        return np.full(len(self.said), FREE) if fixed is None else fixed[self.said]

    @property
    def fixed_rows(self) -> Integers:
        """The same of each row, shape (T,)."""
        return np.append(self.fixed, FREE)[self.moment]

    @property
    def open_weight(self) -> Floats:
        """How many rows each moment lasts, none where what is done was decided."""
        return np.where(self.fixed == FREE, self.weight, 0.0)

    def runs(self) -> tuple[Integers, Integers]:
        """How many rows go on alike, and which moment they show, -1 where nothing is said."""
        starts = np.flatnonzero(np.diff(self.moment, prepend=-2))
        return np.diff(starts, append=len(self.moment)), self.moment[starts]

    def vectors(self) -> NDArray[np.float32] | None:
        """Vectors of the moments, shape (N, D), where scores are made of such."""
        return self.scores.vectors[self.said] if isinstance(self.scores, Products) else None

    def closeness(self, task: str, members: tuple[int, ...]) -> Closeness:
        """Hold every moment against one task."""
        scores, keysteps = self.scores, list(members)
        if not isinstance(scores, Products):
            values = scores.values[self.said][:, keysteps]
            return Closeness(values.astype(np.float64), None)
        vectors, title = scores.vectors[self.said], None
        own = scores.tasks is not None and task in scores.tasks.blocks
        if own and scores.tasks is not None:
            block = scores.tasks.vectors[scores.tasks.blocks[task]]
            found, title = vectors @ block[:-1].T, (vectors @ block[-1]).astype(np.float64)
        else:
            found = vectors @ scores.keysteps[keysteps].T
        found = np.where(scores.allowed[keysteps], found, np.float32(-np.inf))
        found = pin(found, self.fixed, np.array(keysteps))
        return Closeness(found.astype(np.float64), title)

    def evidence(self, tasks: Tasks) -> Floats:
        """What speaks for each task, shape (Z,): does the list explain the video, and it the list?

        The mean over rows of the closest keystep, plus the mean over keysteps of the closest row;
        the title of a task counts as one more keystep.  The first alone would prefer long lists,
        the second short ones.  Minus infinity where no keystep of a task may be.  A moment whose
        keystep was decided is as far from a task without it as nothing said is.
        """
        targets = targets_of(self.scores, tasks)
        ever = np.full(len(targets.keysteps), -np.inf)
        explained, rows = np.zeros(len(tasks)), np.zeros(len(tasks))
        for piece, found in self._pieces(targets):
            ever = np.maximum(ever, found.max(axis=0))
            closest = np.maximum.reduceat(found, targets.first, axis=1)
            possible = np.isfinite(closest)
            explained += self.weight[piece] @ np.where(possible, closest, 0.0)
            decided = self.fixed[piece, None] >= 0
            rows += self.weight[piece] @ (possible | decided)
        possible = np.isfinite(ever)
        heard = np.add.reduceat(np.where(possible, ever, 0.0), targets.first)
        keysteps = np.add.reduceat(possible.astype(np.float64), targets.first)
        total = explained / np.maximum(rows, 1) + heard / np.maximum(keysteps, 1)
        return np.where(rows > 0, total, -np.inf)

    def closest(self, tasks: Tasks) -> Floats:
        """How close each moment is to the closest keystep of each task, shape (N, Z)."""
        targets = targets_of(self.scores, tasks)
        found = [
            np.maximum.reduceat(one, targets.first, axis=1) for _, one in self._pieces(targets)
        ]
        return np.concatenate(found).astype(np.float64)

    def _pieces(self, targets: Targets) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """Closeness of some moments at a time to all targets."""
        for piece in pieces(len(self.said), len(targets.keysteps)):
            if targets.vectors is None:
                found = self.scores.values[self.said[piece]][:, targets.keysteps]
            else:
                assert isinstance(self.scores, Products), "only these have vectors"
                found = self.scores.vectors[self.said[piece]] @ targets.vectors.T
                found[:, ~targets.allowed] = -np.inf
                found = pin(found, self.fixed[piece], targets.keysteps)
            yield piece, found


def hear(scores: Scores, rows: slice = slice(None)) -> Heard:
    """Find the moments of a video or of some of its rows."""
    if isinstance(scores, Products):
        source = scores.part[rows]
    else:
        source = np.where(scores.observed, np.arange(len(scores)), -1)[rows]
    heard = source >= 0
    said, inverse, weight = np.unique(source[heard], return_inverse=True, return_counts=True)
    moment = np.full(len(source), -1, dtype=np.int64)
    moment[heard] = inverse
    return Heard(scores, moment, said, weight.astype(np.float64))


class Targets(NamedTuple):
    """All keysteps of all tasks, one task after the other.

    Attributes
    ----------
    keysteps : shape (S,), -1 for a title
    first : shape (Z,), where each task begins
    vectors : shape (S, D) or None
    allowed : shape (S,)
    """

    keysteps: Integers
    first: Integers
    vectors: NDArray[np.float32] | None
    allowed: NDArray[np.bool_]


def targets_of(scores: Scores, tasks: Tasks) -> Targets:
    """All that moments of a video are held against when its task is asked for."""
    known = scores.tasks if isinstance(scores, Products) else None
    lists = []
    for task, members in tasks.items():
        titled = known is not None and task in known.blocks
        lists.append(np.array([*members, *([-1] if titled else [])], dtype=np.int64))
    keysteps = np.concatenate(lists)
    sizes = np.array([len(one) for one in lists])
    first = np.cumsum(sizes) - sizes
    if not isinstance(scores, Products):
        return Targets(keysteps, first, None, np.ones(len(keysteps), dtype=bool))
    allowed = (keysteps >= 0) & scores.allowed[keysteps]
    # A title speaks for its task where any keystep of it may be.
    allowed |= (keysteps < 0) & np.repeat(np.logical_or.reduceat(allowed, first), sizes)
    if known is not None and [*known.blocks] == [*tasks]:
        return Targets(keysteps, first, known.vectors, allowed)
    vectors = scores.keysteps[keysteps]
    for task, start in zip(tasks, first, strict=True):
        if known is not None and task in known.blocks:
            block = known.vectors[known.blocks[task]]
            vectors[start : start + len(block)] = block
    return Targets(keysteps, first, vectors, allowed)
