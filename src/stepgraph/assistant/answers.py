"""Successors, missing steps, mistakes and plans by name, each with its support."""

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

# Percentage of the steps of correct executions that may count as mistakes when a fifth of the
# executions is scored against the others: it sets the threshold, between bounds.
_FALSE_ALARMS, _FOLDS, _BOUNDS, _USUAL = 8, 5, (0.2, 0.6), 0.45
# Executions that are scored for it.
_MOST = 1000


class AssistantAnswer(NamedTuple):
    """Step with the kind of answer, its score from 0 to 1, and its support in words."""

    step: str
    kind: str
    score: float
    why: str


@dataclass(frozen=True, eq=False)
class Assistant:
    """Statistics of executions, with steps by name.

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
        """Statistics of all executions, with steps by position."""
        return self._of(self.done)

    @cached_property
    def _watched(self) -> Experience:
        """Statistics of observed executions, without pseudo-executions of the listed order."""
        done = [one for one in self.done if not one.written]
        return self._of(done) if len(done) < len(self.done) else self.experience

    def _of(self, done: Sequence[Execution]) -> Experience:
        return Experience.of(
            [(one.task, self._places(one.steps)) for one in done], len(self.names)
        )

    @cached_property
    def _pooled(self) -> Experience:
        """Statistics of all executions, pooled into one task."""
        runs = [("", one) for some in self.experience.tasks.values() for one in some]
        return Experience.of(runs, len(self.names))

    def listed_task(self, task: str | None) -> str | None:
        """Check that ``task`` is None or a task of the executions, and return it."""
        if task is not None and task not in self.experience.tasks:
            some = ", ".join(map(quoted, self.experience.names[:5]))
            raise ConfigError(
                f"task must be a task of the executions ({some}, …), got {quoted(task)}"
            )
        return task

    def listed(self, steps: Sequence[str]) -> list[int]:
        """Positions of the steps that occur in executions; others are dropped."""
        listed = {*self.names.keysteps}
        return [self.names.index(step) for step in steps if step in listed]

    def next(
        self, done: Sequence[str], *, task: str | None = None, top: int = 5
    ) -> list[AssistantAnswer]:
        """Most probable successors; steps of ``done`` that no execution shows are ignored."""
        shares = self.experience.next(self.listed(done), self.listed_task(task))
        best = [at for at in np.argsort(-shares, kind="stable").tolist()[:top] if shares[at] > 0]
        return [
            AssistantAnswer(self.names.keysteps[at], "next", float(shares[at]), "") for at in best
        ]

    def missing(
        self, done: Sequence[str], *, task: str | None = None, threshold: float = 0.5
    ) -> list[AssistantAnswer]:
        """Steps that should have been done by now, the most probable first."""
        past = self.listed(done)
        found, task = self.experience.missing(past, self.listed_task(task)), self._task(past, task)
        return [
            AssistantAnswer(
                self.names.keysteps[at], "missing", float(found[at]), self._why(at, past, task)
            )
            for at in np.argsort(-found, kind="stable").tolist()
            if found[at] >= max(threshold, 1e-9)
        ]

    def mistakes(
        self, done: Sequence[str], *, task: str | None = None, threshold: float | None = None
    ) -> list[AssistantAnswer]:
        """Mistakes in the order of the steps: unknown, too early, or repeated."""
        threshold = self.threshold if threshold is None else threshold
        found, past = [], list[int]()
        about = self._task(self.listed(done), self.listed_task(task))
        for step, score, lacking in self.judge(done, about):
            if lacking is None and score == 1:
                found.append(AssistantAnswer(step, "unknown", score, "in no execution"))
                continue
            [place] = self.listed([step])
            if lacking is not None and score >= threshold:
                found.append(
                    AssistantAnswer(step, "too early", score, self._pair(lacking, place, about))
                )
            elif place in past:
                runs = self._watched.tasks.get(about, [])
                again = sum(one.count(place) > 1 for one in runs)
                does = sum(place in one for one in runs)
                # Rare among executions that do it; a repetition hinders less than a missing step.
                score = (1 - again / (does + 1.0)) / 2
                if score >= max(threshold, _USUAL) and past[-1] != place:
                    why = f"{again} of {does} executions do it more than once"
                    found.append(AssistantAnswer(step, "repeated", score, why))
            past.append(place)
        return found

    @cached_property
    def threshold(self) -> float:
        """Score from which on a step counts as a mistake, set without labels.

        The executions are taken to be correct: it is the score that 8 % of their steps exceed
        when each fifth is scored against the others, kept between 0.2 and 0.6.
        """
        observed = [(one, (one.task, self._places(one.steps))) for one in self.done if one.steps]
        done = [steps for one, steps in observed if not one.written]
        written = [steps for one, steps in observed if one.written]
        every, scores = _FOLDS * (1 + len(done) // _MOST), list[float]()
        for fold in range(_FOLDS):
            rest = [one for at, one in enumerate(done) if at % _FOLDS != fold]
            others = Experience.of([*rest, *written], len(self.names))
            for task, places in done[fold::every]:
                if task in others.tasks:
                    listed = [at for at in places if others.before(task)[1][at]]
                    scores += [score for score, _ in _judge(others, listed, task)]
        if not scores:
            return _USUAL
        return float(np.clip(np.percentile(scores, 100 - _FALSE_ALARMS), *_BOUNDS))

    def _places(self, steps: Sequence[str]) -> list[int]:
        return [self.names.index(step) for step in steps]

    def judge(self, done: Sequence[str], task: str) -> list[tuple[str, float, int | None]]:
        """Score each step as a mistake, from 0 to 1, and find the keystep that it lacks most.

        A step that no execution of the task does scores 1 and does not enter the past.  For an
        unknown task, the executions of all tasks are pooled.
        """
        is_listed = task in self.experience.tasks
        teacher, task = (self.experience, task) if is_listed else (self._pooled, "")
        _, shown = teacher.before(task)
        places = [next((at for at in self.listed([step]) if shown[at]), None) for step in done]
        judged = iter(_judge(teacher, [at for at in places if at is not None], task))
        return [
            (step, 1.0, None) if at is None else (step, *next(judged))
            for step, at in zip(done, places, strict=True)
        ]

    def plans(
        self, first: str, last: str, *, steps: int | None = None, task: str | None = None, top: int
    ) -> list[tuple[list[str], Plan]]:
        """Plans from one step to another, the most probable first."""
        ends = self.names.index(first), self.names.index(last)
        task = self.listed_task(task)
        found = make_plans(self.experience, *ends, steps=steps, task=task, top=top)
        return [([self.names.keysteps[at] for at in plan.keysteps], plan) for plan in found]

    def _task(self, past: Sequence[int], task: str | None) -> str:
        if task is not None:
            return task
        return self.experience.names[int(self.experience.task_shares(past).argmax())]

    def _why(self, keystep: int, past: Sequence[int], task: str) -> str:
        return self._pair(keystep, past[-1], task) if past else ""

    def _pair(self, first: int, second: int, task: str) -> str:
        every, _ = self.experience.before(task)
        counts, shown = self._watched.before(task)
        a, b = self.names.keysteps[first], self.names.keysteps[second]
        why = f"in {counts[first, second]} of {shown[second]} executions {a!r} comes before {b!r}"
        is_written = every[first, second] > counts[first, second]
        return f"{why}, as in the listed order" if is_written else why


def _judge(teacher: Experience, steps: Sequence[int], task: str) -> list[tuple[float, int | None]]:
    """Score each step as a mistake after those before it, and find the keystep it lacks most."""
    found: list[tuple[float, int | None]] = []
    for at, keystep in enumerate(steps):
        lacking = teacher.too_early(steps[:at], keystep, task)
        worst = int(lacking.argmax())
        score = teacher.unready(steps[:at], keystep, task)
        found.append((score, worst if lacking[worst] else None))
    return found
