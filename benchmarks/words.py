"""Whether the words of two steps tell which is done first: ``python -m benchmarks.words DATA``.

DATA is the folder with COIN and CrossTask.  An antisymmetric logistic model of words, verbs and
sentence vectors says how probable it is that one step is done before another when no execution was
seen; it is asked of tasks that it was not taught.  Then orders are learned from few executions of
such tasks, where a prerequisite costs as much less (or more) as the words speak for it.
Prints one JSON object a line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

import stepgraph as sg
from benchmarks.assistant import JUDGED, auc, counted, judge, say
from benchmarks.recipes import swapped
from stepgraph.assistant import open_executions
from stepgraph.assistant.orders import Order, _as_matrix, _Seen, _weighed, learn_order, reduced
from stepgraph.graph.order import partial_order

Floats = NDArray[np.float64]
Runs = dict[str, list[list[str]]]
FOLDS, SHRINKING, DRAWS = 10, 10.0, {"CrossTask": 8, "COIN": 2}
# Executions in which two steps must come together to teach, and what is clear.
TAUGHT, CLEAR = 5, 0.75
WEIGHTS = (0.25, 0.5, 1.0)


class Pair(NamedTuple):
    source: str
    task: str
    steps: tuple[str, str]
    share: float


def first_times(source: str, data: str) -> Runs:
    found: Runs = {}
    for one in open_executions(f"{source.lower()}:{data}/{source.lower()}").done:
        found.setdefault(one.task, []).append(list(dict.fromkeys(one.steps)))
    return found


def pairs_of(source: str, tasks: Runs) -> Iterator[Pair]:
    for task, runs in tasks.items():
        counts = counted(runs)
        for a, b in sorted({(min(pair), max(pair)) for pair in counts}):
            together = counts[a, b] + counts[b, a]
            if together >= TAUGHT:
                yield Pair(source, task, (a, b), counts[a, b] / together)


def said_in(names: Sequence[str]) -> dict[str, Floats]:
    """Which words and verbs each name holds: verbs mostly begin it, or follow 'and' or a slash."""
    words = {name: re.findall("[a-z]+", name) for name in names}
    verbs = {name: re.findall(r"(?:^|/|,| and | or )\s*([a-z]+)", name) for name in names}
    marks = {name: {*words[name], *(f"{verb}!" for verb in verbs[name])} for name in names}
    every = sorted(set().union(*marks.values()))
    return {name: np.array([mark in marks[name] for mark in every], float) for name in names}


def turned_round(pairs: Sequence[Pair], told: Mapping[str, Floats]) -> Floats:
    """What speaks for each pair: the opposite where the pair is turned round."""
    return np.stack([told[one.steps[0]] - told[one.steps[1]] for one in pairs])


def features(pairs: Sequence[Pair]) -> dict[str, Floats]:
    names = sorted({step for pair in pairs for step in pair.steps})
    vectors = 3.0 * sg.load_encoder("text:minilm").encode_texts(names)
    words = turned_round(pairs, said_in(names))
    sentences = turned_round(pairs, dict(zip(names, vectors, strict=True)))
    return {"words": words, "sentences": sentences, "both": np.hstack([words, sentences])}


def fitted(told: Floats, share: Floats) -> Floats:
    """Weights of a logistic regression without a constant, shrunk towards none."""

    def loss(weights: Floats) -> tuple[float, Floats]:
        odds = told @ weights
        off = 1 / (1 + np.exp(-odds)) - share
        value = (np.logaddexp(0, odds) - share * odds).sum() + SHRINKING * (weights @ weights) / 2
        return float(value), told.T @ off + SHRINKING * weights

    start = np.zeros(told.shape[1])
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B").x)


def held_out(told: Floats, share: Floats, group: Sequence[object]) -> Floats:
    """Log odds of each pair by a model that was taught the other groups."""
    found, groups = np.zeros(len(share)), np.array(group)
    for one in sorted({*groups.tolist()}):
        rest = groups != one
        found[~rest] = told[~rest] @ fitted(told[rest], share[rest])
    return found


def figures(odds: Floats, share: Floats) -> dict[str, float | int]:
    clear = np.abs(share - 0.5) >= CLEAR - 0.5
    right, is_first = odds[clear], share[clear] > 0.5
    both_ways = [*right, *-right], [*is_first, *~is_first]
    return {
        "pairs": len(share),
        "accuracy": 100 * float(np.mean((right > 0) == is_first)),
        "auc": auc(list(map(bool, both_ways[1])), both_ways[0]),
        "log_loss": f"{np.mean(np.logaddexp(0, odds) - share * odds):.3f}",
    }


class WordedExecutions(_Seen):
    """Executions of which an order costs less where words speak for its direct pairs."""

    odds: Floats

    def cost(self, before: NDArray[np.bool_]) -> Floats:
        return super().cost(before) - (reduced(before) * self.odds).sum(axis=(1, 2))


def uses_text(order: Order, runs: Sequence[Sequence[str]], odds: Floats, noise: float) -> Order:
    """The order as it is learned from the same executions with the words besides."""
    place = {step: at for at, step in enumerate(order.steps)}
    seen = WordedExecutions([np.array([place[s] for s in one]) for one in runs], len(place), noise)
    seen.odds = odds
    likely = (order.counts > order.counts.T) & (noise > 0)
    begun = [order.before, plain(order).before]
    before, _ = min((_weighed(one, seen, likely) for one in begun), key=lambda one: one[1])
    return Order(order.steps, before, order.counts, order.shown, order.executions)


def plain(order: Order) -> Order:
    """Before, unless some execution says otherwise."""
    before = _as_matrix(partial_order(order.counts, 1.0))
    return Order(order.steps, before, order.counts, order.shown, order.executions)


def measure_orders(
    source: str, tasks: Runs, odds: Mapping[tuple[str, str, str], float], size: int, share: float
) -> dict[str, float]:
    """Means over tasks of at least so many executions, each drawn some times."""
    random, noise = np.random.default_rng(0), 0.1 if share else 0.0
    found: dict[str, list[tuple[float, float]]] = {}
    for task, runs in tasks.items():
        counts = counted(runs)
        for _ in range(DRAWS[source] if len(runs) >= max(JUDGED, size) else 0):
            some = [runs[at] for at in random.permutation(len(runs))[:size]]
            some = [[one[at] for at in swapped(random, range(len(one)), share)] for one in some]
            order = learn_order(some, noise=noise)
            told = [
                [odds.get((task, str(a), str(b)), 0.0) for b in order.steps] for a in order.steps
            ]
            orders = {"no_parameter": plain(order), "without": order}
            for weight in WEIGHTS:
                orders[f"words_{weight}"] = uses_text(order, some, weight * np.array(told), noise)
            for name, one in orders.items():
                if figures := judge(one, counts):
                    found.setdefault(name, []).append(figures)
    means = {name: np.mean(rows, axis=0).tolist() for name, rows in found.items()}
    return {
        f"{kind}_{name}": row[at]
        for at, kind in enumerate(("before", "direct"))
        for name, row in means.items()
    }


def main() -> None:
    data = sys.argv[1]
    sources = {name: first_times(name, data) for name in DRAWS}
    pairs = [pair for name, tasks in sources.items() for pair in pairs_of(name, tasks)]
    share, where = np.array([one.share for one in pairs]), np.array([one.source for one in pairs])
    tasks = sorted({(one.source, one.task) for one in pairs})
    fold = dict(zip(tasks, np.random.default_rng(0).permutation(len(tasks)) % FOLDS, strict=True))
    by_task = [int(fold[one.source, one.task]) for one in pairs]
    for kind, told in features(pairs).items():
        odds = held_out(told, share, by_task)
        across = held_out(told, share, [one.source for one in pairs])
        for name in sources:
            here = where == name
            say(
                words=name, features=kind, taught="other tasks", **figures(odds[here], share[here])
            )
            result = figures(across[here], share[here])
            say(words=name, features=kind, taught="other data set", **result)
    settings = [*((size, 0.0) for size in (1, 2, 4, 8, 16)), (4, 0.2), (8, 0.2)]
    for taught, of_both in (("other tasks", odds), ("other data set", across)):
        found = {}
        for pair, one in zip(pairs, of_both.tolist(), strict=True):
            found[pair.task, pair.steps[0], pair.steps[1]] = one
            found[pair.task, pair.steps[1], pair.steps[0]] = -one
        for name, runs in sources.items():
            for size, swaps in settings:
                head = {"order": name, "taught": taught, "executions": size}
                result = measure_orders(name, runs, found, size, swaps)
                say(**head, swapped=f"{swaps:.0%}", **result)


if __name__ == "__main__":
    main()
