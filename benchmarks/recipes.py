"""Simulated recipes: true orders of several shapes, and people who follow them by habit or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Bools = NDArray[np.bool_]


class Recipe(NamedTuple):
    """What comes before what, transitive, and executions of it."""

    before: Bools
    executions: list[list[int]]


def closure(direct: Bools) -> Bools:
    found = direct.copy()
    for middle in range(len(found)):
        found |= np.outer(found[:, middle], found[middle])
    return found


def sparse(random: Generator, size: int) -> Bools:
    """Any earlier step is needed with the same chance."""
    return closure(np.triu(random.random((size, size)) < random.uniform(0.08, 0.25), 1))


def tree(random: Generator, size: int) -> Bools:
    """Every step is needed by one later step, mostly one that is near: parts come together."""
    direct = np.zeros((size, size), dtype=bool)
    for step in range(size - 1):
        direct[step, min(size - 1, step + int(random.geometric(0.45)))] = True
    return closure(direct)


def strands(random: Generator, size: int) -> Bools:
    """Two to four things are made side by side, then put together and finished."""
    last = size - int(random.integers(2, max(3, size // 3) + 1))
    cuts = np.sort(random.choice(np.arange(1, last), int(random.integers(1, 4)), replace=False))
    direct = np.eye(size, k=1, dtype=bool)
    for cut in cuts:
        direct[cut - 1, cut], direct[cut - 1, last] = False, True
    return closure(direct)


def chain(random: Generator, size: int) -> Bools:
    """One after the other, but for some pairs that may be swapped."""
    direct, here, former = np.zeros((size, size), dtype=bool), 0, list[int]()
    while here < size:
        now = list(range(here, min(size, here + 1 + int(random.random() < 0.4))))
        direct[np.ix_(former, now)] = True
        former, here = now, here + len(now)
    return closure(direct)


SHAPES = {"sparse": sparse, "tree": tree, "strands": strands, "chain": chain}
HABITS = {"any ready step": (0.0, 0.0), "habit": (1.0, 0.0), "strong habit": (3.0, 0.0)}
HABITS |= {"goes on": (0.0, 0.7), "habit, goes on": (1.0, 0.5)}
"""How unequal steps are to who picks one (log-normal), and how often one goes on from the last."""


def execute(
    random: Generator, before: Bools, worth: Sequence[float], going_on: float
) -> list[int]:
    direct, done = before & ~((before.astype(int) @ before) > 0), list[int]()
    while len(done) < len(before):
        left = [step for step in range(len(before)) if step not in done]
        ready = [step for step in left if not before[left, step].any()]
        after = [step for step in ready if done and direct[done[-1], step]]
        choice = after if after and random.random() < going_on else ready
        share = np.array([worth[step] for step in choice])
        done.append(choice[int(random.choice(len(choice), p=share / share.sum()))])
    return done


def recipes(
    seed: int,
    shapes: Sequence[str],
    habit: str,
    *,
    count: int,
    size: int = 20,
    executions: int = 8,
) -> Iterator[Recipe]:
    """So many recipes, the shapes in turn."""
    random = np.random.default_rng(seed)
    spread, going_on = HABITS[habit]
    for number in range(count):
        before = SHAPES[shapes[number % len(shapes)]](random, size)
        worth = np.exp(spread * random.normal(size=size)).tolist()
        yield Recipe(before, [execute(random, before, worth, going_on) for _ in range(executions)])


def swapped(random: Generator, steps: Sequence[int], share: float) -> list[int]:
    """Neighbours change places with this chance, from the first on."""
    found = list(steps)
    for at in range(len(found) - 1):
        if random.random() < share:
            found[at], found[at + 1] = found[at + 1], found[at]
    return found
