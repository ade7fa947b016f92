"""How far the mined map tells the truth: ``python -m benchmarks.graph DATA``.

DATA is the folder with the data sets.  Graphs are mined from narration alone; the truth of
CrossTask's two narrated tasks and of the embedded corpus is used for judging, with the written
order and without it, and with 10 to 250 videos of a task; so is YouCook2, of whose 174 lists most
have one video, which is the least that a map can be made of.  Then what counts are worth
(:mod:`stepgraph.graph.shares`) is fitted anew, each time on the truth of the other tasks, and held
against the one that was left out.  Prints one JSON object a line.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import gammaln

from benchmarks.suites import Suite, suite
from stepgraph.core import Labels
from stepgraph.datasets import open_source
from stepgraph.decoders import TaskMarkov
from stepgraph.decoders.learning import learn_graph
from stepgraph.evaluation.order import (
    OrderCheck,
    check_order,
    count_before,
    count_next,
    majority_pairs,
)
from stepgraph.graph.order_statistics import END, TaskStatistics
from stepgraph.graph.shares import NEXT, PRECEDENCE, SHOWN, DirichletPrior, shortest_intervals

SIZES, DRAWS = (10, 20, 50, 100, 250), 5
LEAST = {"CrossTask": 10, "demo": 3, "YouCook2": 1}
TRUSTS = {"precedence": PRECEDENCE, "next": NEXT, "shown": SHOWN}


class Case(NamedTuple):
    """Counts of possibilities, what the listed order says of them, and the truth; (n,) each."""

    counts: NDArray[np.float64]
    order: NDArray[np.float64]
    truth: NDArray[np.float64]


def say(**result: object) -> None:
    print(json.dumps(result), flush=True)


def numbers(check: OrderCheck) -> dict[str, float | None]:
    """All shares of a check in percent."""
    shares = {name: getattr(check, name) for name in OrderCheck._fields[3:]}
    return {name: None if math.isnan(one) else round(100 * one, 1) for name, one in shares.items()}


def mined(one: Suite, videos: Sequence[str] | None = None, order: float = 1.0) -> TaskStatistics:
    """Order statistics of a graph of all videos, or of some."""
    scores = [each for each in one.scores if videos is None or each.video in videos]
    graph = learn_graph(scores, one.vocabulary, decoder=TaskMarkov(order_weight=order))
    assert graph.statistics is not None, "narrated videos have traces"
    return graph.statistics


def truth_of(one: Suite) -> dict[str, list[Labels]]:
    """True labels of the videos of each task."""
    found: defaultdict[str, list[Labels]] = defaultdict(list)
    for video in one.videos:
        if video.id in one.truth:
            found[video.task or ""].append(one.truth[video.id])
    return dict(found)


def check_all(one: Suite) -> None:
    """The whole corpus, with the listed order and without."""
    for order in (1.0, 0.0):
        statistics = mined(one, order=order)
        found = check_order(statistics, truth_of(one), least=LEAST[one.name])
        for check in found[-1:] if one.name == "YouCook2" else found:
            say(
                measure="map",
                corpus=one.name,
                order=bool(order),
                task=check.task,
                pairs=check.pairs,
                **numbers(check),
            )


def check_listed(one: Suite) -> None:
    """Hold the listed order alone, without any video, against the same truth."""
    found = []
    for task, labels in truth_of(one).items():
        own = one.vocabulary.tasks[task]
        following = dict(zip(own, (*own[1:], END), strict=True))
        rows = [np.where(np.isin(each.keysteps, own), each.keysteps, -1) for each in labels]
        only = [replace(each, keysteps=row) for each, row in zip(labels, rows, strict=True)]
        pairs = majority_pairs(count_before(only), LEAST[one.name])
        right = [own.index(first) < own.index(second) for first, second in pairs]
        after = count_next(only)
        hits = sum(true[following[keystep]] for keystep, true in after.items())
        found.append((np.mean(right), hits / sum(true.total() for true in after.values())))
    directions, successors = np.nanmean(np.array(found), axis=0)
    say(
        measure="listed order alone",
        corpus=one.name,
        right_directions=round(100 * float(directions), 1),
        next_share=round(100 * float(successors), 1),
    )


def show_strongest(one: Suite, limit: int = 10) -> None:
    """The strongest transitions of each task, beside how often each is true."""
    statistics, names = mined(one), one.vocabulary.keysteps
    for task, labels in truth_of(one).items():
        after = count_next(labels)
        true = Counter({(a, b): n for a, found in after.items() for b, n in found.items()})
        ranks = {pair: rank for rank, (pair, _) in enumerate(_keysteps(true).most_common(), 1)}
        said = [
            (found.share, keystep, found.keystep)
            for keystep in statistics.of_task(task).keysteps
            for found in statistics.successors_of(keystep, len(names), tasks=[task])
            if found.keystep != END
        ]
        for share, first, second in sorted(said, reverse=True)[:limit]:
            say(
                measure="edge",
                task=task,
                first=names[first],
                second=names[second],
                share=round(100 * share, 1),
                true=true[first, second],
                rank=ranks.get((first, second)),
            )


def _keysteps(pairs: Counter[tuple[int, int]]) -> Counter[tuple[int, int]]:
    return Counter({pair: count for pair, count in pairs.items() if END not in pair})


def check_sizes(one: Suite) -> None:
    """Each task with few and with many videos, random ones, in the mean of some draws."""
    for task, truth in truth_of(one).items():
        videos = [video.id for video in one.videos if video.task == task]
        for size in (size for size in SIZES if size <= len(videos)):
            for order in (1.0, 0.0):
                found = []
                for draw in range(DRAWS):
                    rng = np.random.default_rng(draw)
                    chosen = set(rng.choice(videos, size, replace=False).tolist())
                    statistics = mined(one, chosen, order)
                    found.append(check_order(statistics, {task: truth}, least=LEAST[one.name])[0])
                means = {
                    name: round(100 * float(np.mean([getattr(each, name) for each in found])), 1)
                    for name in ("right_directions", "next_share", "strongest")
                }
                say(measure="videos", task=task, videos=size, order=bool(order), **means)


def cases(
    statistics: TaskStatistics, truth: dict[str, list[Labels]], least: int
) -> dict[str, list[Case]]:
    """What was counted beside what is true, of all that was seen often enough."""
    found: dict[str, list[Case]] = {name: [] for name in TRUSTS}
    for task, labels in truth.items():
        counted, before, after = statistics.of_task(task), count_before(labels), count_next(labels)
        for (one, first), (other, second) in combinations(enumerate(counted.keysteps), 2):
            true = np.array([before[first, second], before[second, first]], dtype=np.float64)
            counts = np.array([counted.before[one, other], counted.before[other, one]])
            found["precedence"].append(Case(counts, np.array([1.0, 0.0]), true))
        for place, keystep in enumerate(counted.keysteps):
            others = [*counted.keysteps, END]
            true = np.array([after.get(keystep, {}).get(one, 0) for one in others], np.float64)
            order = replace(counted, ordered=1.0).next_weights(place)
            parts = (counted.following[place].astype(np.float64), order, true)
            found["next"].append(Case(*(np.delete(part, place) for part in parts)))
            listed = np.array([1.0, 0.0])
            shown = sum(bool((one.keysteps == keystep).any()) for one in labels)
            salient = counted.salient[place]
            seen = np.array([salient, counted.videos - salient], np.float64)
            found["shown"].append(Case(seen, listed, np.array([shown, len(labels) - shown])))
    return {
        name: [case for case in every if case.truth.sum() >= least]
        for name, every in found.items()
    }


def surprise(trust: DirichletPrior, some: Sequence[Case], order: float) -> float:
    """Mean negative log-likelihood of the truth (Dirichlet-multinomial)."""
    total = 0.0
    for case in some:
        weights = trust.weigh(case.counts, order * case.order)
        total -= gammaln(weights.sum()) - gammaln(weights.sum() + case.truth.sum())
        total -= (gammaln(weights + case.truth) - gammaln(weights)).sum()
    return float(total / len(some))


def fit(groups: Sequence[Sequence[Case]], orders: Sequence[float]) -> DirichletPrior:
    """What makes the truth of some groups most probable, each group counting the same."""

    def cost(logs: NDArray[np.float64]) -> float:
        trust = DirichletPrior(*np.exp(logs).tolist())
        return sum(surprise(trust, some, order) for some in groups for order in orders)

    found = minimize(cost, np.log([0.1, 1.0]), method="Nelder-Mead")
    return DirichletPrior(*np.exp(found.x).tolist())


def held(trust: DirichletPrior, some: Sequence[Case], order: float) -> tuple[float, float]:
    """Share of true shares that lie in their intervals, and how wide these are in the mean."""
    inside: list[bool] = []
    widths: list[float] = []
    for case in some:
        weights = trust.weigh(case.counts, order * case.order)
        low, high = shortest_intervals(weights, weights.sum() - weights)
        share = case.truth / case.truth.sum()
        inside += ((low <= share) & (share <= high)).tolist()
        widths += (high - low).tolist()
    return round(100 * float(np.mean(inside)), 1), round(100 * float(np.mean(widths)), 1)


def check_intervals(suites: Sequence[Suite]) -> None:
    """Fit on all groups but one, and see how many true shares of that one are held."""
    groups: dict[str, dict[str, list[Case]]] = {}
    for one in suites:
        statistics, truth = mined(one), truth_of(one)
        parts = {one.name: truth} if one.name == "demo" else {t: {t: truth[t]} for t in truth}
        groups |= {name: cases(statistics, part, LEAST[one.name]) for name, part in parts.items()}
    for name, default in TRUSTS.items():
        orders = (1.0,) if name == "shown" else (0.0, 1.0)
        every = {group: found[name] for group, found in groups.items()}
        best = fit([*every.values()], orders)
        say(measure="fit", what=name, fitted=_rounded(best), default=default._asdict())
        for group, some in every.items():
            others = fit([one for each, one in every.items() if each != group], orders)
            for order in orders:
                share, width = held(others, some, order)
                own, _ = held(default, some, order)
                say(
                    measure="intervals",
                    what=name,
                    left_out=group,
                    order=bool(order),
                    cases=len(some),
                    held=share,
                    width=width,
                    held_by_default=own,
                    fitted=_rounded(others),
                )


def _rounded(trust: DirichletPrior) -> dict[str, float]:
    return {name: float(f"{number:.2g}") for name, number in trust._asdict().items()}


def main() -> None:
    data = Path(sys.argv[1])
    crosstask = suite("CrossTask", open_source(f"crosstask:{data}/crosstask"))
    suites = (crosstask, suite("demo", open_source("demo")))
    youcook = suite("YouCook2", open_source(f"{data}/youcook2/videos.jsonl"))
    for one in (*suites, youcook):
        check_all(one)
        check_listed(one)
    show_strongest(crosstask)
    check_intervals(suites)
    check_sizes(crosstask)


if __name__ == "__main__":
    main()
