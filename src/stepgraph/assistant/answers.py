"""Answers of an assistant in names and with their evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from stepgraph.assistant.executions import Execution
from stepgraph.assistant.experience import Experience
from stepgraph.assistant.planning import Plan, make_plans
from stepgraph.core import Vocabulary
from stepgraph.errors import ConfigError, DataError, quoted

THRESHOLD = 0.45
"""Score from which on a step is called a mistake: see docs/assistant.md for how it was chosen."""


class Told(NamedTuple):
    """A step, what is said of it, how far that is so, and the evidence."""

    step: str
    kind: str
    score: float
    why: str


@dataclass(frozen=True, eq=False)
class Assistant:
    """Executions that can be asked in names.

    >>> tea = Assistant((Execution("a", "tea", "", ("boil", "steep", "pour")),) * 4)
    >>> tea.next(["boil"])[0].step
    'steep'
    >>> tea.mistakes(["boil", "pour"])[0].why
    "in 4 of 4 executions 'steep' comes before 'pour'"
    """

    done: tuple[Execution, ...]

    @cached_property
    def names(self) -> Vocabulary:
        """All steps, in the order of their first appearance."""
        steps = tuple(dict.fromkeys(step for one in self.done for step in one.steps))
        if len(steps) < 2:
            raise DataError(f"executions must show at least 2 steps, got {len(steps)}")
        return Vocabulary(steps)

    @cached_property
    def experience(self) -> Experience:
        """The executions with steps as numbers."""
        place = {step: at for at, step in enumerate(self.names.keysteps)}
        done = [(one.task, [place[step] for step in one.steps]) for one in self.done]
        return Experience.of(done, len(self.names))

    @cached_property
    def _pooled(self) -> Experience:
        """All executions as those of one task."""
        runs = [("", one) for some in self.experience.tasks.values() for one in some]
        return Experience.of(runs, len(self.names))

    def known_task(self, task: str | None) -> str | None:
        """The task of that name, which must be known."""
        if task is not None and task not in self.experience.tasks:
            some = ", ".join(map(quoted, self.experience.names[:5]))
            raise ConfigError(
                f"task must be one of the executions', got {quoted(task)}; {some}, …"
            )
        return task

    def known(self, steps: Sequence[str]) -> list[int]:
        """Numbers of the steps that are known."""
        known = {*self.names.keysteps}
        return [self.names.index(step) for step in steps if step in known]

    def next(self, done: Sequence[str], *, task: str | None = None, top: int = 5) -> list[Told]:
        """What most probably comes next; unknown steps of the past tell nothing."""
        shares = self.experience.next(self.known(done), self.known_task(task))
        best = np.argsort(-shares, kind="stable")[:top]
        return [Told(self.names.keysteps[at], "next", float(shares[at]), "") for at in best]

    def missing(
        self, done: Sequence[str], *, task: str | None = None, threshold: float = 0.5
    ) -> list[Told]:
        """What should have been done by now, the most certain first."""
        past = self.known(done)
        found, task = self.experience.missing(past, self.known_task(task)), self._task(past, task)
        return [
            Told(self.names.keysteps[at], "missing", float(found[at]), self._why(at, past, task))
            for at in np.argsort(-found, kind="stable").tolist()
            if found[at] >= max(threshold, 1e-9)
        ]

    def mistakes(
        self, done: Sequence[str], *, task: str | None = None, threshold: float = THRESHOLD
    ) -> list[Told]:
        """What went wrong, step by step: unknown, repeated, or before what it needs."""
        found, past = [], list[int]()
        about = self._task(self.known(done), self.known_task(task))
        for step, score, lacking in self.judge(done, about):
            if lacking is None and score == 1:
                found.append(Told(step, "unknown", score, "no execution does it"))
                continue
            [place] = self.known([step])
            if lacking is not None and score >= threshold:
                found.append(Told(step, "too early", score, self._pair(lacking, place, about)))
            elif place in past:
                runs = self.experience.tasks.get(about, [])
                again = sum(one.count(place) > 1 for one in runs)
                does = sum(place in one for one in runs)
                # Half as sure as that something is lacking: to do more than needed hinders less.
                score = (1 - again / (does + 1.0)) / 2
                if score >= threshold and past[-1] != place:
                    why = f"{again} of {does} executions do it more than once"
                    found.append(Told(step, "repeated", score, why))
            past.append(place)
        return found

    def judge(self, done: Sequence[str], task: str) -> list[tuple[str, float, int | None]]:
        """Of each step how far it is a mistake where it stands, and which keystep it lacks most.

        One that no execution of the task does is a mistake, and does not enter the past.  A task
        that is unknown is taken for all of them together.
        """
        is_known = task in self.experience.tasks
        teacher, task = (self.experience, task) if is_known else (self._pooled, "")
        found: list[tuple[str, float, int | None]] = []
        past = list[int]()
        _, shown = teacher.before(task)
        for step in done:
            known = [one for one in self.known([step]) if shown[one]]
            if not known:
                found.append((step, 1.0, None))
                continue
            lacking = teacher.too_early(past, known[0], task)
            worst = int(lacking.argmax())
            score = teacher.unready(past, known[0], task)
            found.append((step, score, worst if lacking[worst] else None))
            past += known
        return found

    def plans(
        self, first: str, last: str, *, steps: int | None = None, task: str | None = None, top: int
    ) -> list[tuple[list[str], Plan]]:
        """Ways from a step to another, the best first."""
        ends = self.names.index(first), self.names.index(last)
        task = self.known_task(task)
        found = make_plans(self.experience, *ends, steps=steps, task=task, top=top)
        return [([self.names.keysteps[at] for at in plan.keysteps], plan) for plan in found]

    def _task(self, past: Sequence[int], task: str | None) -> str:
        if task is not None:
            return task
        return self.experience.names[int(self.experience.task_shares(past).argmax())]

    def _why(self, keystep: int, past: Sequence[int], task: str) -> str:
        return self._pair(keystep, past[-1], task) if past else ""

    def _pair(self, first: int, second: int, task: str) -> str:
        counts, shown = self.experience.before(task)
        a, b = self.names.keysteps[first], self.names.keysteps[second]
        return f"in {counts[first, second]} of {shown[second]} executions {a!r} comes before {b!r}"
