"""Statistics of executions: successors, missing keysteps, and keysteps done too early.

All of them are counted from finished executions, each a sequence of keysteps of one task, from
truth, annotation or recognised videos.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import without_repetitions
from stepgraph.graph.traces import Floats, Integers

# Chosen on CrossTask's training videos, each fifth held out; see docs/assistant.md.
_VOTES, _SHARPNESS, _INSTEAD = 2.0, 3.0, 0.2
# Quantile over executions of the share of their past that is lacking, as in ``unready``.
_PRECEDENTS = 0.1
START = -1
"""Placeholder for the keystep before the first one."""

Past = Sequence[int]


@dataclass(frozen=True, eq=False)
class Experience:
    """Finished executions of tasks, and statistics of them.

    Attributes
    ----------
    size
        Number of keysteps, K.
    tasks
        Executions of each task, repetitions collapsed.
    """

    size: int
    tasks: dict[str, list[tuple[int, ...]]]
    _after: dict[tuple[int, ...], Floats] = field(default_factory=dict, repr=False)
    _before: dict[str, tuple[Integers, Integers]] = field(default_factory=dict, repr=False)
    _ever: dict[str, NDArray[np.bool_]] = field(default_factory=dict, repr=False)
    _begun: dict[tuple[str, int], NDArray[np.float32]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, executions: Iterable[tuple[str, Past]], size: int) -> Experience:
        """Collect executions, each with the name of its task; empty ones are dropped.

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
        """Names of the tasks, in the order of all arrays."""
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
        """Posterior of each task, given the keysteps done or the task itself, (Z,)."""
        if task is not None and task in self.tasks:
            return np.array([float(name == task) for name in self.names])
        number = np.array([len(self.tasks[name]) for name in self.names], dtype=np.float64)
        # One execution in a thousand strays into another task.
        done = np.log(self.shown[:, [*{*past}]] + 1e-3).sum(axis=1) + np.log(number)
        weights = np.exp(done - done.max(initial=-np.inf))
        return np.asarray(weights / weights.sum())

    @cached_property
    def _grams(self) -> list[dict[tuple[int, ...], Counter[int]]]:
        """Successor counts of each task after the last two keysteps, the last one, or none."""
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
        """Probability of each successor in a task after the last two, one or no keysteps, (K,).

        Counts of longer pasts are interpolated with those of shorter ones (Witten and Bell).
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
    def _contexts(self) -> dict[int, tuple[NDArray[np.float32], Integers, Integers]]:
        """Pasts by their last keystep: the keysteps done (M, K), the successor or -1, the task."""
        found: defaultdict[int, list[tuple[set[int], int, int]]] = defaultdict(list)
        for place, name in enumerate(self.names):
            for steps in self.tasks[name]:
                for at, after in enumerate((*steps[1:], -1), start=1):
                    found[steps[at - 1]].append(({*steps[:at]}, after, place))
        contexts = {}
        for last, rows in found.items():
            done = np.zeros((len(rows), self.size), dtype=np.float32)
            for row, (before, _, _) in zip(done, rows, strict=True):
                row[list(before)] = 1
            after, place = np.array([row[1:] for row in rows], dtype=np.int64).T
            contexts[last] = done, after, place
        return contexts

    def _alike(self, past: Past, tasks: Floats) -> tuple[Floats, NDArray[np.float32], Integers]:
        """Pasts with the same last keystep: weights by similarity, keysteps done, successors."""
        if not past or past[-1] not in self._contexts:
            return np.zeros(0), np.zeros((0, self.size), np.float32), np.zeros(0, np.int64)
        done, after, place = self._contexts[past[-1]]
        mine = np.zeros(self.size, dtype=np.float32)
        mine[list({*past})] = 1
        both = done @ mine
        overlap = both / (done.sum(axis=1) + mine.sum() - both)
        return overlap**_SHARPNESS * tasks[place], done, after

    def next(self, past: Past, task: str | None = None) -> Floats:
        """Probability of each keystep to be the successor, (K,); 0 for the last one done."""
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
        """Probability that each keystep should have been done by now, (K,); 0 if it was.

        A mean of two: with weight 0.8, the share of pasts with the same last keystep, weighted by
        similarity, that contain it; with 0.2, its probability as successor in place of the last
        keystep.  All are 0 if no execution shows the last keystep.
        """
        weight, done, _ = self._alike(past, self.task_shares(past, task))
        if not len(weight):
            return np.zeros(self.size)
        found = np.asarray(weight @ done, dtype=np.float64) / max(weight.sum(), 1e-12)
        found += _INSTEAD * (self.next(past[:-1], task) - found)
        found[list({*past})] = 0
        return np.asarray(found)

    def before(self, task: str) -> tuple[Integers, Integers]:
        """Count executions that begin one keystep before another, (K, K), or that do it, (K,)."""
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
        """Mask of pairs: some execution of a task did one at any time before the other, (K, K)."""
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
        """Mask of the keysteps that each execution did before first doing this one, (E, K)."""
        if (key := (task, keystep)) not in self._begun:
            runs = [one for one in self.tasks.get(task, []) if keystep in one]
            found = np.zeros((len(runs), self.size), dtype=np.float32)
            for row, steps in zip(found, runs, strict=True):
                row[list({*steps[: steps.index(keystep)]})] = 1
            self._begun[key] = found
        return self._begun[key]

    def too_early(self, past: Past, keystep: int, task: str) -> Floats:
        """Estimated share of executions that do each keystep before this one, (K,).

        Executions with ``keystep`` are weighted by the similarity of their past to this one, and
        half a pseudo-execution that lacks the other is added.  The share is 0 for keysteps that
        are done, and all shares are 0 if ``keystep`` is a repetition.
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
        """Mistake score of a keystep after ``past``, from 0 to 1.

        The mean of two parts.  The first is the greatest share of :meth:`too_early`, for single
        prerequisites.  The second is the share of an execution's past that is lacking here, as the
        10 % quantile of executions, for alternatives: a keystep is no prerequisite if some
        executions do without it.
        """
        begun = self._pasts(task, keystep)
        if keystep in past or not len(begun):
            return 0.0
        lacking = begun.copy()
        lacking[:, list({*past})] = 0
        least = np.quantile(lacking.sum(axis=1) / (begun.sum(axis=1) + 1), _PRECEDENTS)
        return float(self.too_early(past, keystep, task).max() + least) / 2

    def out_of_order(self, steps: Past, task: str) -> Floats:
        """Score each step of a finished execution for coming too early, from 0 to 1.

        The greatest share of executions with both steps in which a step that is later here comes
        before it, with half a pseudo-execution each way.
        """
        counts, _ = self.before(task)
        here = counts[np.ix_(steps, steps)] + 0.5
        later = np.tril(here / (here + here.T), -1)
        return np.asarray(later.max(axis=0, initial=0.0))
