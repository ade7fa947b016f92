"""What executions teach: which keystep comes next, what is missing, what is done too early.

Everything is counted from finished executions, each a sequence of keysteps of one task; whether
they come from a truth, from corrections or from recognised videos is nothing to this module.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import without_repetitions
from stepgraph.graph.courses import Floats, Integers

# Chosen on CrossTask's training videos, each fifth held out; docs/assistant.md says so.
_VOTES, _SHARPNESS, _INSTEAD = 2.0, 3.0, 0.2
# Share of the executions that are precedents of what may be done already.
_PRECEDENTS = 0.1
START = -1
"""Stands where nothing was done before."""

Past = Sequence[int]


@dataclass(frozen=True, eq=False)
class Experience:
    """Finished executions of tasks, to be asked.

    Attributes
    ----------
    size
        How many keysteps there are.
    tasks
        Of each task its executions, repetitions collapsed.
    """

    size: int
    tasks: dict[str, list[tuple[int, ...]]]
    _after: dict[tuple[int, ...], Floats] = field(default_factory=dict, repr=False)
    _before: dict[str, tuple[Integers, Integers]] = field(default_factory=dict, repr=False)
    _ever: dict[str, NDArray[np.bool_]] = field(default_factory=dict, repr=False)
    _begun: dict[tuple[str, int], NDArray[np.float32]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, executions: Iterable[tuple[str, Past]], size: int) -> Experience:
        """Collect executions, each with the name of its task; empty ones tell nothing.

        >>> tea = Experience.of([("tea", [0, 1, 2]), ("tea", [0, 2])], 3)
        >>> tea.next([0]).round(1).tolist()
        [0.0, 0.5, 0.5]
        """
        tasks: defaultdict[str, list[tuple[int, ...]]] = defaultdict(list)
        for task, steps in executions:
            if len(steps):
                once = without_repetitions(np.array(steps, dtype=np.int64))
                tasks[task].append(tuple(once.tolist()))
        return cls(size, dict(tasks))

    @cached_property
    def names(self) -> list[str]:
        """The tasks, in their order."""
        return list(self.tasks)

    @cached_property
    def shown(self) -> Floats:
        """Share of the executions of each task that show each keystep, (Z, K)."""
        found = np.zeros((len(self.names), self.size))
        for row, task in zip(found, self.names, strict=True):
            for steps in self.tasks[task]:
                row[list({*steps})] += 1
            row /= len(self.tasks[task])
        return found

    def task_shares(self, past: Past, task: str | None = None) -> Floats:
        """How probable each task is after what was done, (Z,)."""
        if task is not None and task in self.tasks:
            return np.array([float(name == task) for name in self.names])
        number = np.array([len(self.tasks[name]) for name in self.names], dtype=np.float64)
        # One execution in a thousand strays into another task.
        done = np.log(self.shown[:, [*{*past}]] + 1e-3).sum(axis=1) + np.log(number)
        weights = np.exp(done - done.max(initial=-np.inf))
        return np.asarray(weights / weights.sum())

    @cached_property
    def _grams(self) -> list[dict[tuple[int, ...], Counter[int]]]:
        """Of each task, what followed each of the last two, one or no keysteps."""
        found = []
        for name in self.names:
            counts: defaultdict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
            for steps in self.tasks[name]:
                padded = (START, START, *steps)
                for at in range(2, len(padded)):
                    for order in range(3):
                        counts[padded[at - order : at]][padded[at]] += 1
            found.append(dict(counts))
        return found

    def after(self, place: int, last: Past) -> Floats:
        """What comes next in a task after the last two keysteps, or one, or none (K,).

        Counts of longer pasts where there are any, else of shorter ones (Witten and Bell).
        """
        if (key := (place, *last)) not in self._after:
            self._after[key] = self._backed_off(place, tuple(last))
        return self._after[key]

    def _backed_off(self, place: int, last: tuple[int, ...]) -> Floats:
        grams = self._grams[place]
        probability = (self.shown[place] + 1e-6) / (self.shown[place] + 1e-6).sum()
        for order in range(len(last) + 1):
            counts = grams.get(last[len(last) - order :])
            if counts:
                kinds, total = len(counts), counts.total()
                probability = probability * (kinds / (kinds + total))
                for keystep, count in counts.items():
                    probability[keystep] += count / (kinds + total)
        return np.asarray(probability)

    @cached_property
    def _moments(self) -> dict[int, tuple[NDArray[np.float32], Integers, Integers]]:
        """By the last keystep: what had been done, (M, K), what came next or -1, of which task."""
        found: defaultdict[int, list[tuple[set[int], int, int]]] = defaultdict(list)
        for place, name in enumerate(self.names):
            for steps in self.tasks[name]:
                for at, after in enumerate((*steps[1:], -1), start=1):
                    found[steps[at - 1]].append(({*steps[:at]}, after, place))
        moments = {}
        for last, rows in found.items():
            done = np.zeros((len(rows), self.size), dtype=np.float32)
            for row, (before, _, _) in zip(done, rows, strict=True):
                row[list(before)] = 1
            after, place = np.array([row[1:] for row in rows], dtype=np.int64).T
            moments[last] = done, after, place
        return moments

    def _alike(self, past: Past, tasks: Floats) -> tuple[Floats, NDArray[np.float32], Integers]:
        """Moments after the same keystep: how alike their pasts are, these, and what was next."""
        if not past or past[-1] not in self._moments:
            return np.zeros(0), np.zeros((0, self.size), np.float32), np.zeros(0, np.int64)
        done, after, place = self._moments[past[-1]]
        mine = np.zeros(self.size, dtype=np.float32)
        mine[list({*past})] = 1
        both = done @ mine
        overlap = both / (done.sum(axis=1) + mine.sum() - both)
        return overlap**_SHARPNESS * tasks[place], done, after

    def next(self, past: Past, task: str | None = None) -> Floats:
        """How probable each keystep is to come next, (K,); the last one is not done again."""
        tasks = self.task_shares(past, task)
        found = np.zeros(self.size)
        for place in np.flatnonzero(tasks > 1e-4).tolist():
            found += tasks[place] * self.after(place, (START, START, *past)[-2:])
        weight, _, after = self._alike(past, tasks)
        votes = np.bincount(after[after >= 0], weight[after >= 0], minlength=self.size)
        found += _VOTES * votes / max(votes.sum(), 1e-12)
        if past:
            found[past[-1]] = 0
        return np.asarray(found / max(found.sum(), 1e-300))

    def missing(self, past: Past, task: str | None = None) -> Floats:
        """How probable it is that each keystep should have been done by now, (K,); 0 if it was.

        The share of similar moments at which it had been done, and a fifth of how probable it was
        to come in the place of the last; after a keystep of which nothing is known, nothing is
        missed.
        """
        weight, done, _ = self._alike(past, self.task_shares(past, task))
        if not len(weight):
            return np.zeros(self.size)
        found = np.asarray(weight @ done, dtype=np.float64) / max(weight.sum(), 1e-12)
        found += _INSTEAD * (self.next(past[:-1], task) - found)
        found[list({*past})] = 0
        return np.asarray(found)

    def before(self, task: str) -> tuple[Integers, Integers]:
        """Executions of a task that begin one keystep before another, (K, K), and that do it."""
        if task not in self._before:
            counts = np.zeros((self.size, self.size), dtype=np.int64)
            shown = np.zeros(self.size, dtype=np.int64)
            for steps in self.tasks.get(task, []):
                first = list(dict.fromkeys(steps))
                shown[first] += 1
                for at, keystep in enumerate(first):
                    counts[first[:at], keystep] += 1
            self._before[task] = counts, shown
        return self._before[task]

    def ever_before(self, task: str) -> NDArray[np.bool_]:
        """Whether some execution of a task did one keystep at any time before another, (K, K)."""
        if task not in self._ever:
            found = np.zeros((self.size, self.size), dtype=bool)
            for steps in self.tasks.get(task, []):
                first = {keystep: at for at, keystep in reversed([*enumerate(steps)])}
                last = {keystep: at for at, keystep in enumerate(steps)}
                kinds = list(last)
                early = np.array([first[one] for one in kinds])
                late = np.array([last[one] for one in kinds])
                found[np.ix_(kinds, kinds)] |= early[:, None] < late
            self._ever[task] = found
        return self._ever[task]

    def _pasts(self, task: str, keystep: int) -> NDArray[np.float32]:
        """What each execution of a task had begun when it first did a keystep, (E, K)."""
        if (key := (task, keystep)) not in self._begun:
            runs = [one for one in self.tasks.get(task, []) if keystep in one]
            found = np.zeros((len(runs), self.size), dtype=np.float32)
            for row, steps in zip(found, runs, strict=True):
                row[list({*steps[: steps.index(keystep)]})] = 1
            self._begun[key] = found
        return self._begun[key]

    def too_early(self, past: Past, keystep: int, task: str) -> Floats:
        """How far each keystep should have been done before this one, and was not, (K,).

        The share of the executions with ``keystep`` that had begun the other before it, those
        with a more similar past counting more, and half a one imagined that had not; 0 for what
        is done, and for a keystep that is done again.
        """
        begun, mine = self._pasts(task, keystep), np.zeros(self.size)
        mine[list({*past})] = 1
        both = begun @ mine
        alike = (both + 0.5) / (begun.sum(axis=1) + mine.sum() - both + 0.5)
        weight = alike / alike.max(initial=1e-9)
        lacking = (weight @ begun) / (weight.sum() + 0.5)
        lacking[list({*past, keystep})] = 0
        return np.asarray(lacking * (keystep not in past), dtype=np.float64)

    def unready(self, past: Past, keystep: int, task: str) -> float:
        """How far a keystep is a mistake here, from 0 to 1.

        The mean of how far it lacks the one keystep that it lacks most (:meth:`too_early`), and
        of how much of all that was done before it is lacking, in the tenth of the executions in
        which least is.  The first knows single prerequisites, the second knows alternatives: what
        nobody needs who comes another way.
        """
        begun = self._pasts(task, keystep)
        if keystep in past or not len(begun):
            return 0.0
        lacking = begun.copy()
        lacking[:, list({*past})] = 0
        least = np.quantile(lacking.sum(axis=1) / (begun.sum(axis=1) + 1), _PRECEDENTS)
        return float(self.too_early(past, keystep, task).max() + least) / 2

    def out_of_order(self, steps: Past, task: str) -> Floats:
        """How far each of the steps of a finished execution came before what should come first.

        The greatest share of executions, of those that do both, in which one that comes later
        here came before it; half a one imagined each way.
        """
        counts, _ = self.before(task)
        here = counts[np.ix_(steps, steps)] + 0.5
        later = np.tril(here / (here + here.T), -1)
        return np.asarray(later.max(axis=0, initial=0.0))
