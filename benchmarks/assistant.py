"""What executions teach, measured: ``python -m benchmarks.assistant DATA``.

DATA is the folder with COIN and CrossTask, whose true keysteps are read as executions: learned
from their training videos, asked of the others.  Beside each method a simple one: plain
transitions of the last keystep.  Orders are learned from simulated recipes, whose truth is known.
Prints one JSON object a line; ``--mined`` measures graphs mined from narration instead, beside
the truth of the same videos.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.random import Generator

from benchmarks.mistakes import measure_mistakes
from benchmarks.recipes import HABITS, SHAPES, Recipe, closure, recipes, swapped
from stepgraph.assistant import Executions, Experience, learn_order, make_plans, open_executions
from stepgraph.assistant.answers import Assistant
from stepgraph.assistant.executions import Edge, Execution, executions_of_graph
from stepgraph.assistant.orders import RECOGNIZED, Order
from stepgraph.datasets import open_source
from stepgraph.experiments.assistance import (
    agreement,
    average_precision,
    edges_of,
    measure,
    numbers,
)
from stepgraph.pipeline import mine

DRAWS = 3
# Executions in which two steps must come together to have a true order or none, and their share.
JUDGED, TRUE = 10, 0.95
SHAPES_REPORTED = ("sparse", "tree", "strands")
Next = Callable[[Sequence[int]], np.ndarray]


def say(**result: object) -> None:
    rounded = {k: round(v, 1) if isinstance(v, float) else v for k, v in result.items()}
    print(json.dumps(rounded), flush=True)


def transitions(sequences: Sequence[Sequence[int]], size: int) -> np.ndarray:
    """Shares of what followed each keystep, a little of everything."""
    counts = np.full((size, size), 1e-3)
    for steps in sequences:
        np.add.at(counts, (np.array(steps[:-1], int), np.array(steps[1:], int)), 1)
    return counts / counts.sum(axis=1, keepdims=True)


def hits(tests: Sequence[Sequence[int]], ask: Next) -> dict[str, float]:
    ranks = []
    for steps in tests:
        for at in range(1, len(steps)):
            shares = ask(steps[:at])
            ranks.append(int((shares > shares[steps[at]]).sum()))
    return {f"at{top}": 100 * float(np.mean([rank < top for rank in ranks])) for top in (1, 5)}


def missing(
    experience: Experience, tests: Sequence[Sequence[int]], random: Generator, *, online: bool
) -> float:
    """Average precision of what is said to be missing, the mean over executions.

    One step, never the last, is left out of each.  Online it is asked when the next step is done,
    else when all are; the task is unknown.
    """
    found = []
    for steps in tests:
        once = [at for at in range(len(steps) - 1) if steps.count(steps[at]) == 1]
        if len(steps) < 3 or not once:
            continue
        left_out = int(random.choice(once))
        done = [step for at, step in enumerate(steps) if at != left_out]
        shares = experience.missing(done[: left_out + 1] if online else done)
        truth = [step == steps[left_out] for step in range(experience.size)]
        found.append(average_precision(truth, shares.tolist()))
    return 100 * float(np.mean(found))


def auc(truth: Sequence[bool], scores: Sequence[float]) -> float:
    """Chance that a true one scores higher than another."""
    right, wrong = (
        np.array([s for s, one in zip(scores, truth, strict=True) if one == kind])
        for kind in (True, False)
    )
    below = np.searchsorted(np.sort(wrong), right, "left")
    equal = np.searchsorted(np.sort(wrong), right, "right") - below
    return 100 * float((below + equal / 2).sum() / (len(right) * len(wrong)))


def too_early(
    experience: Experience, tests: Sequence[tuple[str, Sequence[int]]], random: Generator
) -> float:
    """One step of each execution moved to an earlier place; the task is known."""
    truth, scores = list[bool](), list[float]()
    for task, steps in tests:
        once = [at for at in range(1, len(steps)) if steps.count(steps[at]) == 1]
        if len(steps) < 3 or not once:
            continue
        taken = int(random.choice(once))
        place = int(random.integers(taken))
        moved = [*steps[:place], steps[taken], *steps[place:taken], *steps[taken + 1 :]]
        scores += experience.out_of_order(moved, task).tolist()
        truth += [at == place for at in range(len(moved))]
    return auc(truth, scores)


def windows(sequences: Sequence[Sequence[int]], length: int) -> list[tuple[int, ...]]:
    return [
        tuple(steps[at : at + length])
        for steps in sequences
        for at in range(len(steps) - length + 1)
    ]


def padded(steps: Sequence[int], length: int) -> list[int]:
    """A sequence that is too short begins with its first step again and again (PDPP)."""
    return [*[steps[0]] * (length - len(steps)), *steps]


def by_transitions(chances: np.ndarray, first: int, last: int, length: int) -> tuple[int, ...]:
    """The way of so many steps that is most probable by what followed what (Viterbi)."""
    cost, back = np.full(len(chances), np.inf), []
    cost[first] = 0
    for _ in range(length - 1):
        total = cost[:, None] - np.log(chances)
        back.append(total.argmin(axis=0))
        cost = total.min(axis=0)
    way = [last]
    for step in reversed(back):
        way.append(int(step[way[-1]]))
    return tuple(reversed(way))


def compare(said: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]) -> dict[str, float]:
    """Success rate, mean accuracy and mean IoU of plans beside what was done."""
    right = [[a == b for a, b in zip(one, plan, strict=False)] for one, plan in said]
    return {
        "success": 100 * float(np.mean([one == plan for one, plan in said])),
        "accuracy": 100
        * float(np.mean([sum(r) / len(o) for r, (o, _) in zip(right, said, strict=True)])),
        "iou": 100 * float(np.mean([len({*o} & {*p}) / len({*o} | {*p}) for o, p in said])),
    }


Tests = Sequence[tuple[str, list[int]]]


def plan_all(name: str, size: int, once: tuple[Tests, Tests], whole: tuple[Tests, Tests]) -> None:
    """Plans of real windows, without and with repetitions, and of windows with padding."""
    for length in (3, 4, 5, 6):
        for kind in ("real", "real, repetitions kept", "padded"):
            train, tests = once if kind == "real" else whole
            taught, asked = list(train), [steps for _, steps in tests]
            if kind == "padded":
                taught = [(task, padded(steps, length)) for task, steps in train if steps]
                asked = [padded(steps, length) for steps in asked if steps]
            tasks: dict[str, list[tuple[int, ...]]] = {}
            for task, steps in taught:
                if steps:
                    tasks.setdefault(task, []).append(tuple(steps))
            experience, real = Experience(size, tasks), windows(asked, length)
            ends = {(one[0], one[-1]) for one in real}
            plans = {pair: make_plans(experience, *pair, steps=length, top=1) for pair in ends}
            said = [
                (one, found[0].keysteps if (found := plans[one[0], one[-1]]) else ())
                for one in real
            ]
            head = {"planning": name, "steps": length, "windows": kind}
            say(**head, method="stepgraph", number=len(real), **compare(said))
            chances = transitions([steps for _, steps in taught], size)
            ways = {pair: by_transitions(chances, *pair, length) for pair in ends}
            said = [(one, ways[one[0], one[-1]]) for one in real]
            say(**head, method="transitions", **compare(said))


def measure_source(name: str, done: Executions) -> None:
    assistant = Assistant(tuple(done.of_split("train")))
    experience, size = assistant.experience, len(assistant.names)
    tests = [(one.task, numbers(assistant, one)) for one in done.of_split("test")]
    sequences = [steps for _, steps in tests]
    train = [(task, list(one)) for task, runs in experience.tasks.items() for one in runs]
    say(next=name, method="stepgraph", **hits(sequences, experience.next))
    chances = transitions([steps for _, steps in train], size)
    say(next=name, method="transitions", **hits(sequences, lambda past: chances[past[-1]]))
    for online in (True, False):
        draws = [
            missing(experience, sequences, np.random.default_rng(draw), online=online)
            for draw in range(DRAWS)
        ]
        when = "online" if online else "offline"
        say(missing=name, asked=when, average_precision=float(np.mean(draws)))
    draws = [too_early(experience, tests, np.random.default_rng(draw)) for draw in range(DRAWS)]
    say(too_early=name, auc=float(np.mean(draws)), draws=DRAWS)
    whole = [
        [(one.task, assistant.listed(one.steps)) for one in done.of_split(split)]
        for split in ("train", "test")
    ]
    plan_all(name, size, (train, tests), (whole[0], whole[1]))


def plain_order(executions: Sequence[Sequence[int]]) -> np.ndarray:
    """Before, unless some execution says otherwise; all executions do all steps."""
    place = np.array([np.argsort(one) for one in executions])
    return np.asarray((place[:, :, None] < place[:, None]).all(axis=0))


def f1(before: np.ndarray, recipe: Recipe) -> float:
    return agreement(_edges(before), _edges(recipe.before))["f1"]


def _edges(before: np.ndarray) -> frozenset[Edge]:
    none = np.zeros(before.shape, int)
    return edges_of(Order(tuple(map(str, range(len(before)))), before, none, none[0], 0))


def counted(runs: Sequence[Sequence[str]]) -> Counter[tuple[str, str]]:
    """In how many executions one step comes before another."""
    return Counter((a, b) for one in runs for at, a in enumerate(one) for b in one[at + 1 :])


def judge(
    order: Order, counts: Mapping[tuple[str, str], int], least: int = JUDGED
) -> tuple[float, float] | None:
    """F1 of what comes before what, and of direct pairs with START and END; None without truth.

    True is what holds in 95 % of all executions, of those with both at least so many.
    """
    steps = [str(step) for step in order.steps]
    ahead = np.array([[counts.get((a, b), 0) for b in steps] for a in steps])
    judged = ahead + ahead.T >= least
    true = closure(judged & (ahead >= TRUE * (ahead + ahead.T)))
    if (true & true.T).any() or not judged.any():
        return None
    said = order.before & judged
    sums = said.sum() + (true & judged).sum()
    before = 200 * (said & true).sum() / sums if sums else 100.0
    truth = Order(order.steps, true, order.counts, order.shown, order.executions)
    return float(before), agreement(edges_of(order), edges_of(truth))["f1"]


def learned(executions: Sequence[Sequence[int]], noise: float = 0.0) -> np.ndarray:
    order = learn_order(executions, noise=noise)
    back = np.argsort(np.array(order.steps))
    return order.before[np.ix_(back, back)]


def measure_orders() -> None:
    kinds = {"recipes": SHAPES_REPORTED, **{shape: (shape,) for shape in SHAPES}}
    for name, shapes in kinds.items():
        for habit in HABITS:
            made = [one for seed in (1, 2, 3) for one in recipes(seed, shapes, habit, count=24)]
            begun = time.process_time()
            ours = [f1(learned(one.executions), one) for one in made]
            seconds = (time.process_time() - begun) / 3
            plain = [f1(plain_order(one.executions), one) for one in made]
            say(
                order=name,
                picked=habit,
                f1=float(np.mean(ours)),
                no_parameter_f1=float(np.mean(plain)),
                seconds=f"{seconds:.2f}",
            )
    made = [
        one for seed in (1,) for one in recipes(seed, SHAPES_REPORTED, "any ready step", count=24)
    ]
    for share in (0.0, 0.02, 0.05, 0.1, 0.2, 0.3):
        random = np.random.default_rng(0)
        noisy = [
            one._replace(executions=[swapped(random, e, share) for e in one.executions])
            for one in made
        ]
        found = {
            f"f1_noise_{noise}": float(
                np.mean([f1(learned(one.executions, noise), one) for one in noisy])
            )
            for noise in (0.0, 0.05, 0.1)
        }
        plain = float(np.mean([f1(plain_order(one.executions), one) for one in noisy]))
        say(order="swapped neighbours", share=f"{share:.0%}", no_parameter_f1=plain, **found)


def measure_mined(data: Path) -> None:
    """Taught by what was recognised in narrated videos, or by the truth of the same videos.

    What was recognised teaches with the listed order, which then is as good as half as many
    executions, and without it; and so does that order alone.
    """
    for name, source in (("CrossTask", f"crosstask:{data}/crosstask"), ("demo", "demo")):
        truth = [one for one in open_executions(source).done if one.steps]
        dataset = open_source(source)
        narrated = [video for video in dataset.videos if video.transcript]
        halves = narrated[::2], narrated[1::2]
        ids = [{video.id for video in half} for half in halves]
        tests = [one for one in truth if one.id in ids[1]]
        graph = mine(replace(dataset, videos=tuple(halves[0]), truth={}))
        mined = tuple(executions_of_graph(graph, name).done)
        for teacher, taught in (
            ("mined", mined),
            ("mined, no listed order", tuple(one for one in mined if not one.written)),
            ("listed order alone", tuple(one for one in mined if one.written)),
            ("truth", tuple(one for one in truth if one.id in ids[0])),
        ):
            true = [one for one in truth if one.id in ids[0] | ids[1]]
            ordered = order_f1(taught, true, JUDGED if name == "CrossTask" else 3)
            _ask(name, teacher, taught, tests, order_f1=ordered)


def order_f1(taught: Sequence[Execution], truth: Sequence[Execution], least: int) -> float:
    """F1 of what comes before what by the order of each task, the mean."""
    found = []
    for task in {one.task: None for one in taught}:
        counts = counted([[*dict.fromkeys(one.steps)] for one in truth if one.task == task])
        order = learn_order([one.steps for one in taught if one.task == task], noise=RECOGNIZED)
        if figures := judge(order, counts, least):
            found.append(figures[0])
    return float(np.mean(found))


def _ask(
    name: str,
    teacher: str,
    taught: Sequence[Execution],
    tests: Sequence[Execution],
    **others: float,
) -> None:
    done = [Execution(o.id, o.task, "train", o.steps) for o in taught]
    asked = [Execution(o.id, o.task, "test", o.steps) for o in tests]
    both = Executions(name, (*done, *asked))
    found = measure("next", both).overall
    plans = measure("planning", both).rows
    assistant = Assistant(tuple(taught))
    experience = assistant.experience
    asks = [(one.task, numbers(assistant, one)) for one in tests]
    steps = [one for _, one in asks]
    drawn = [np.random.default_rng(draw) for draw in range(2 * DRAWS)]
    lacking = [missing(experience, steps, random, online=True) for random in drawn[:DRAWS]]
    early = [too_early(experience, asks, random) for random in drawn[DRAWS:]]
    say(
        mined=name,
        teacher=teacher,
        executions=sum(not one.written for one in taught),
        at1=found["@1"],
        at5=found["@5"],
        plan3=plans["T3"]["success"],
        plan4=plans["T4"]["success"],
        missing=float(np.mean(lacking)),
        too_early=float(np.mean(early)),
        **others,
    )


def main() -> None:
    data = Path(sys.argv[1])
    if "--mined" in sys.argv:
        measure_mined(data)
        return
    measure_orders()
    sources = {
        "CrossTask": open_executions(f"crosstask:{data}/crosstask"),
        "COIN": open_executions(f"coin:{data}/coin"),
    }
    for found in measure_mistakes(sources):
        say(**found)
    for name, done in sources.items():
        measure_source(name, done)


if __name__ == "__main__":
    main()
