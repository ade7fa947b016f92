"""What was said so far, held against all tasks: sums that grow with each sentence.

The same evidence as :mod:`stepgraph.decoders.hearing` gathers from a whole video.  The last few
sentences stay open: what is said next completes their context and may end them sooner.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from stepgraph.decoders.hearing import Targets
from stepgraph.decoders.tasks import CANDIDATES, FLOOR, NAT, SOFTNESS, SWITCH_COST
from stepgraph.scoring.products import part_of_row

Floats: TypeAlias = NDArray[np.float64]
Vector: TypeAlias = NDArray[np.float32]

# Sentences in the sums of which it stays at hand how close they are: they may begin another task.
_AT_HAND = 256


@dataclass(eq=False)
class _Sums:
    """What is added up over moments, each as often as it has rows.

    Attributes
    ----------
    rows
    ever : shape (S,)
        How close the closest moment is to each keystep and title.
    total : shape (S,)
        Closeness, added up.
    explained, ahead, ahead_squared : shape (Z,)
        Closeness to the closest keystep or title of each task; and by how much its title is
        closer than its closest keystep, also squared; all added up.
    """

    rows: float
    ever: Floats
    total: Floats
    explained: Floats
    ahead: Floats
    ahead_squared: Floats


@dataclass(eq=False)
class Moment:
    """A sentence: when it is said, and how close it is to all keysteps and titles, shape (S,)."""

    start: float
    end: float
    vector: Vector
    found: Vector
    rows: int = 0


def hold_against(targets: Targets, vectors: Vector, where: slice = slice(None)) -> Vector:
    """How close moments are to keysteps and titles, all or some, shape (N, S).

    A moment that has scores of all keysteps in place of a vector is as close as these say.
    """
    if targets.vectors is None:
        return vectors[:, targets.keysteps[where]]
    found: Vector = vectors @ targets.vectors[where].T
    return found


class Ear:
    """All that was said so far, or since the task last changed.

    Parameters
    ----------
    targets
        All keysteps of all tasks.
    open_moments
        How many of the last sentences may still change.
    origin
        The row from which on it listens; rows count from there.
    """

    def __init__(self, targets: Targets, open_moments: int, origin: int = 0) -> None:
        self.targets, self.origin = targets, origin
        self.moments: list[Moment] = []
        self.part: list[int] = []
        self._open_moments = open_moments
        self._settled = 0  # so many moments are in the sums
        self._revised: set[int] = set()
        sizes = np.diff(targets.first, append=len(targets.keysteps))
        self._sizes, self._titles = sizes, targets.keysteps < 0
        size, tasks = len(targets.keysteps), len(sizes)
        self._sums = _Sums(0.0, np.full(size, -np.inf), np.zeros(size), *np.zeros((3, tasks)))
        self._best, self._since = np.zeros(tasks), np.zeros(tasks, dtype=np.int64)

    def hear(self, start: float, end: float, vector: Vector, found: Vector) -> None:
        """Take one more sentence, in seconds from the origin; it ends the one before."""
        if self.moments and self.moments[-1].end > start:
            self.moments[-1].end = start
        self.moments.append(Moment(start, end, vector, found))

    def revise(self, number: int, vector: Vector, found: Vector) -> None:
        """Put another vector in the place of that of a sentence that is still open."""
        if number >= self._settled:
            self.moments[number].vector, self.moments[number].found = vector, found
            self._revised.add(number)

    def advance(self, rows: int) -> int:
        """Let time go on to so many whole rows; say from which row on something is new.

        What was heard since the last call counts from here on.
        """
        # The last settled moment may hold a part of the first row that is open.
        first = max(0, self._settled - 1)
        near = self.moments[first:]
        opened = self.moments[self._settled :]
        base = min(len(self.part), floor(opened[0].start)) if opened else len(self.part)
        intervals = np.array([(one.start, one.end) for one in near]).reshape(-1, 2) - base
        part = part_of_row(intervals, rows - base, 1.0)
        part[part >= 0] += first
        old = np.full(len(part), -2)
        old[: len(self.part) - base] = self.part[base:]
        changed = np.flatnonzero((part != old) | np.isin(part, [*self._revised]))
        self.part[base:] = part.tolist()
        for number, one in enumerate(opened, self._settled):
            one.rows = int((part == number).sum())
        self._revised.clear()
        self._settle()
        return base + int(changed[0]) if len(changed) else rows

    def _settle(self) -> None:
        """Add up the moments that will not change any more."""
        last = max(self._settled, len(self.moments) - self._open_moments)
        for one in self.moments[self._settled : last]:
            if one.rows:
                self._turn(one)
                self._sums = self._with(self._sums, one)
        for one in self.moments[max(0, self._settled - _AT_HAND) : max(0, last - _AT_HAND)]:
            one.found = np.zeros(0, np.float32)  # it is in the sums
        self._settled = last

    def _turn(self, one: Moment) -> None:
        """Look for the best way through the tasks: see ``task_stretches``."""
        closest = np.maximum.reduceat(one.found, self.targets.first).astype(np.float64)
        shares = np.exp((closest - closest.max()) / SOFTNESS)
        among = np.partition(shares, -min(len(shares), CANDIDATES))[-CANDIDATES:].sum()
        other = self._best.max() - SWITCH_COST
        self._since[self._best < other] = floor(one.start)
        self._best = np.maximum(self._best, other) + one.rows * np.log(FLOOR + shares / among)

    def turned(self) -> int:
        """Since which row the task is what it is now."""
        return int(self._since[self._best.argmax()])

    def _with(self, sums: _Sums, one: Moment) -> _Sums:
        found, first = one.found.astype(np.float64), self.targets.first
        closest = np.maximum.reduceat(found, first)
        keysteps = np.maximum.reduceat(np.where(self._titles, -np.inf, found), first)
        last = found[first + self._sizes - 1]
        ahead = np.where(np.isfinite(keysteps), last - keysteps, 0.0)
        return _Sums(
            sums.rows + one.rows,
            np.maximum(sums.ever, found),
            sums.total + one.rows * found,
            sums.explained + one.rows * closest,
            sums.ahead + one.rows * ahead,
            sums.ahead_squared + one.rows * ahead**2,
        )

    def heard(self) -> Told:
        """All sums, those of the open moments included."""
        sums = self._sums
        for one in self.moments[self._settled :]:
            if one.rows:
                sums = self._with(sums, one)
        rows = max(sums.rows, 1.0)
        ever = np.add.reduceat(np.maximum(sums.ever, -1.0), self.targets.first) / self._sizes
        mean = sums.ahead / rows
        spread = np.sqrt(np.maximum(sums.ahead_squared / rows - mean**2, 0.0))
        evidence = (sums.explained / rows + ever) / NAT
        none = np.full(len(evidence), -np.inf)
        return Told(evidence if sums.rows else none, sums.total / rows, mean, spread)


@dataclass(frozen=True, eq=False)
class Told:
    """What the sums say.

    Attributes
    ----------
    evidence : shape (Z,)
        What speaks for each task, in nats.
    mean : shape (S,)
        Mean closeness to each keystep and title.
    ahead, spread : shape (Z,)
        Mean and standard deviation of how much closer each title is than the closest keystep.
    """

    evidence: Floats
    mean: Floats
    ahead: Floats
    spread: Floats
