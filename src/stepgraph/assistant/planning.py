"""Plans from one keystep to another, of a given length or the shortest in executions.

The score of a plan in a task is the product of its successor probabilities, plus a weighted count
of the executions' subsequences that equal it.  It is cut to a thousandth for each pair of its
keysteps that at least three executions do, and always in the other order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from stepgraph.assistant.experience import Experience
from stepgraph.errors import ConfigError

# Partial plans of a task that are kept, and the longest plan that is looked for.
_BEAM, _LONGEST = 300, 12
# Weight of an equal subsequence beside successor probabilities; chosen on the training videos of
# CrossTask and COIN, each fifth held out.
_WHOLE = 3.0
# Factor of a plan for each pair that was always done the other way round, thrice or more.
_AGAINST = 1e-3


class Plan(NamedTuple):
    """Keysteps from the first to the last, share of the score of all plans found, and task."""

    keysteps: tuple[int, ...]
    probability: float
    task: str


def make_plans(
    experience: Experience,
    first: int,
    last: int,
    *,
    steps: int | None = None,
    task: str | None = None,
    top: int = 5,
) -> list[Plan]:
    """Find the most probable plans from one keystep to another, the best first.

    Parameters
    ----------
    steps
        Length of the plan, both ends counted, so 2 or more; if not given, the shortest that
        executions allow.
    task
        If not given, tasks with both ends are weighted by their executions of ``first``.

    Examples
    --------
    >>> tea = Experience.of([("tea", [0, 1, 2, 3]), ("tea", [0, 2, 3])], 4)
    >>> make_plans(tea, 0, 3, steps=4)[0].keysteps
    (0, 1, 2, 3)
    >>> make_plans(tea, 0, 3)[0].keysteps
    (0, 2, 3)
    """
    if steps is not None and steps < 2:
        raise ConfigError(f"steps must be at least 2, since both ends count, got {steps}")
    for length in (steps,) if steps else range(2, _LONGEST + 1):
        found = [
            (plan, score, name)
            for name in ([task] if task in experience.tasks else experience.names)
            for plan, score in _of_task(experience, name, (first, last), length, steps is None)
        ]
        if found:
            return _best(found, top)
    return []


def _best(found: list[tuple[tuple[int, ...], float, str]], top: int) -> list[Plan]:
    """Merge equal plans of several tasks under the task of the highest score, and rank them."""
    total = sum(score for _, score, _ in found)
    sums: defaultdict[tuple[int, ...], float] = defaultdict(float)
    tasks: dict[tuple[int, ...], tuple[float, str]] = {}
    for plan, score, name in found:
        sums[plan] += score / total
        tasks[plan] = max(tasks.get(plan, (0.0, "")), (score, name))
    ranked = sorted(sums, key=lambda plan: (-sums[plan], plan))
    return [Plan(plan, sums[plan], tasks[plan][1]) for plan in ranked[:top]]


def _of_task(
    experience: Experience, task: str, ends: tuple[int, int], length: int, shortest: bool
) -> Iterator[tuple[tuple[int, ...], float]]:
    """Yield the plans of one task with their scores."""
    place = experience.names.index(task)
    members, (first, last) = np.flatnonzero(experience.shown[place]), ends
    if not experience.shown[place, [first, last]].all():
        return
    starts = experience.shown[place, first] * len(experience.tasks[task])
    beam: list[tuple[float, tuple[int, ...]]] = [(float(np.log(starts)), (first,))]
    seen = _windows(experience, task, 2)
    for at in range(1, length):
        grown = []
        for score, plan in beam:
            following = experience.after(place, plan[-1:])
            for keystep in [last] if at == length - 1 else members.tolist():
                follows = (plan[-1], keystep) in seen
                if not follows and (shortest or keystep == plan[-1]):
                    continue
                grown.append((score + float(np.log(following[keystep])), (*plan, keystep)))
        beam = sorted(grown, reverse=True)[:_BEAM]
    whole = _windows(experience, task, length)
    never = ~experience.ever_before(task) & (experience.before(task)[0].T >= 3)
    for score, plan in beam:
        against = np.triu(never[np.ix_(plan, plan)], 1).sum()
        yield plan, (float(np.exp(score)) + _WHOLE * whole[plan]) * _AGAINST**against


def _windows(experience: Experience, task: str, length: int) -> Counter[tuple[int, ...]]:
    """Count the contiguous subsequences of ``length`` keysteps in the executions of a task."""
    done = experience.tasks[task]
    return Counter(one[at : at + length] for one in done for at in range(len(one) - length + 1))
