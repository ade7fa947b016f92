"""Simulated mistakes in real and made-up executions, found by stepgraph and by the published rule.

An execution of the test ends with its mistake, as in the published protocol: a step that comes too
early (from anywhere, or one or two places ahead), one of elsewhere, or one that nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.random import Generator

from benchmarks.recipes import SHAPES, execute
from stepgraph.assistant import Execution, Executions
from stepgraph.assistant.answers import Assistant
from stepgraph.experiments.assistance import measure

Runs = dict[str, list[tuple[str, ...]]]
UNKNOWN = "what nobody knows"


def spoil(
    random: Generator, steps: Sequence[str], known: Sequence[str], farthest: int
) -> tuple[str, ...]:
    """An execution up to its mistake; as it is, where the step was done before."""
    if random.random() < 0.3:
        others = [UNKNOWN] if random.random() < 0.5 else [s for s in known if s not in steps]
        at = int(random.integers(1, len(steps) + 1))
        return (*steps[:at], str(random.choice(others or [UNKNOWN])))
    taken = int(random.integers(1, len(steps)))
    place = int(random.integers(max(0, taken - farthest), taken))
    return () if steps[taken] in steps[:place] else (*steps[:place], steps[taken])


def spoiled(random: Generator, train: Runs, test: Runs, farthest: int, share: float) -> Executions:
    """Correct executions to learn from, and others of which a share has a mistake."""
    done = [
        Execution(f"train {n}", task, "train", one)
        for task, runs in train.items()
        for n, one in enumerate(runs)
    ]
    for task, runs in test.items():
        known = sorted({step for one in train.get(task, []) for step in one})
        for number, one in enumerate(runs):
            wrong = spoil(random, one, known, farthest) if random.random() < share else ()
            marks = (*[False] * (len(wrong) - 1), True) if wrong else ()
            done.append(Execution(f"test {number}", task, "test", wrong or one, marks))
    return Executions("spoiled", tuple(done))


def toys(random: Generator, number: int) -> list[tuple[str, ...]]:
    """Executions of twelve toys of 6 to 12 out of 86 actions, some of which toys share."""
    made = np.random.default_rng(7)
    shapes = [SHAPES[name] for name in ("tree", "sparse", "strands")]
    kinds = []
    for toy in range(12):
        size, shared = int(made.integers(6, 13)), int(made.integers(2, 6))
        ours = [*made.choice(15, shared, replace=False)]
        ours += [*made.choice(np.arange(15, 86), size - shared, replace=False)]
        names = [f"action {one}" for one in made.permutation(ours)]
        kinds.append((names, shapes[toy % 3](made, size), np.exp(made.normal(size=size))))
    found = []
    while len(found) < number:
        names, before, worth = kinds[int(random.integers(len(kinds)))]
        one = [names[step] for step in execute(random, before, worth.tolist(), 0.0)]
        found.append(tuple(step for step in one if random.random() > 0.04))
    return found


def fewer(random: Generator, runs: Runs, most: int) -> Runs:
    return {
        task: [some[at] for at in random.permutation(len(some))[:most]]
        for task, some in runs.items()
    }


def pooled(runs: Runs) -> Runs:
    return {"": [one for some in runs.values() for one in some]}


def runs_of(done: Executions, split: str) -> Runs:
    found: Runs = {}
    for one in done.of_split(split):
        once = tuple(s for at, s in enumerate(one.steps) if not at or one.steps[at - 1] != s)
        if len(once) > 1:
            found.setdefault(one.task, []).append(once)
    return found


def published_rule(done: Executions) -> Executions:
    """Called a mistake: a step that lacks what all executions with it had done before it.

    Told as executions whose marks are what is said, in the order of those asked.
    """
    assistant = Assistant(tuple(done.of_split("train")))
    said = []
    for one in done.of_split("test"):
        counts, shown = assistant.experience.before(one.task)
        past, marks = list[int](), []
        for step in one.steps:
            known = [at for at in assistant.listed([step]) if shown[at]]
            lacking = known and np.flatnonzero(counts[:, known[0]] == shown[known[0]]).tolist()
            again = bool(known) and known[0] in past
            marks.append(not known or (not again and any(at not in past for at in lacking)))
            past += known
        said.append(Execution(one.id, one.task, "test", one.steps, tuple(marks)))
    return Executions("said", tuple(said))


def macro_f1(truth: Sequence[bool], said: Sequence[bool]) -> float:
    found = []
    for kind in (True, False):
        right = sum(a == b == kind for a, b in zip(truth, said, strict=True))
        found.append(200 * right / max(1, truth.count(kind) + said.count(kind)))
    return sum(found) / 2


def marks_of(done: Sequence[Execution]) -> list[bool]:
    return [m for one in done for m in one.mistakes or (False,) * len(one.steps)]


def settings(
    sources: dict[str, Executions], random: Generator
) -> Iterator[tuple[str, Runs, Runs]]:
    for name, done in sources.items():
        train, test = runs_of(done, "train"), runs_of(done, "test")
        train = {task: runs for task, runs in train.items() if len(runs) > 3 and task in test}
        test = {task: test[task] for task in train}
        yield name, train, test
        yield f"{name}, 13 executions a task", fewer(random, train, 13), test
        few = [str(task) for task in random.permutation(sorted(train))[:15]]
        some = fewer(random, pooled({task: train[task] for task in few}), 135)
        yield f"{name}, 15 tasks as one, 135 executions", some, pooled({t: test[t] for t in few})
    yield "12 toys as one, 135 executions", {"": toys(random, 135)}, {"": toys(random, 182)}


def measure_mistakes(sources: dict[str, Executions]) -> Iterator[dict[str, object]]:
    """Macro F1 with the default threshold, beside the published rule, one object a setting."""
    random = np.random.default_rng(2026)
    for name, train, test in settings(sources, random):
        for kind, farthest, share in (("any", 1000, 1.0), ("near", 2, 1.0), ("rare", 1000, 0.6)):
            done = spoiled(random, train, test, farthest, share)
            found = measure("mistakes", done).overall
            truth = marks_of(done.of_split("test"))
            rule = macro_f1(truth, marks_of(published_rule(done).done))
            yield {
                "mistakes": name,
                "moved": kind,
                "macro_f1": found["macro_f1"],
                "average_precision": found["average_precision"],
                "published_rule_macro_f1": rule,
                "share": 100 * sum(truth) / len(truth),
            }
