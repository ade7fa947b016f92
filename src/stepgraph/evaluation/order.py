"""Compare the order that a graph estimates with the order in the truth of videos.

The *right directions* count pairs of keysteps whose true order has a majority: at least
ten videos show both, and three quarters or more begin one before the other.  A successor is
measured by how often it is the true one, beside the best constant guess.  Intervals are measured
by the share of true proportions that they contain.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from stepgraph.core import BACKGROUND, Labels, without_repetitions
from stepgraph.graph.order_statistics import END, Precedence, Successor, TaskStatistics

MAJORITY, LEAST = 0.75, 10
"""Least share and number of videos for a majority of one order."""

_COVERING, _STRONGEST = 4, 10


class OrderCheck(NamedTuple):
    """Agreement of a graph with the truth about the order of one task, or of all tasks.

    Attributes
    ----------
    pairs
        Pairs of keysteps whose true order has a majority.
    right_directions
        Share of these pairs that the graph orders in the same way.
    next_share
        Share of true transitions to the graph's most probable successor.
    next_share_possible
        The same share for the most frequent true successor of each keystep: the upper bound.
    covered
        Share of true transitions to one of the graph's four most probable successors.
    strongest, strongest_precision
        Share of the graph's ten most probable transitions that are among the most frequent
        true ones (a quarter of all ordered pairs), and the average precision of the ranking.
    precedence_held, next_held
        Share of true proportions that lie in the graph's intervals: of precedence, and of the
        successor.
    """

    task: str
    videos: int
    pairs: int
    right_directions: float
    next_share: float
    next_share_possible: float
    covered: float
    strongest: float
    strongest_precision: float
    precedence_held: float
    next_held: float


def check_order(
    statistics: TaskStatistics, truth: Mapping[str, Iterable[Labels]], *, least: int = LEAST
) -> list[OrderCheck]:
    """Check the statistics of each task; the last line is the mean of the tasks.

    Parameters
    ----------
    truth
        True labels of the videos of each task.  Tasks without mined videos are left out.
    least
        Least number of videos that must show both keysteps of a pair.
    """
    shared = {task: list(labels) for task, labels in truth.items() if task in statistics.videos}
    found = [_check_task(statistics, task, labels, least) for task, labels in shared.items()]
    names = OrderCheck._fields[3:]
    means = {
        name: _mean([getattr(one, name) for one in found if not math.isnan(getattr(one, name))])
        for name in names
    }
    videos, pairs = (sum(getattr(one, name) for one in found) for name in ("videos", "pairs"))
    return [*found, OrderCheck("mean of the tasks", videos, pairs, **means)]


def _check_task(
    statistics: TaskStatistics, task: str, labels: list[Labels], least: int
) -> OrderCheck:
    # Keysteps of other tasks are outside the task's statistics.
    own = statistics.of_task(task).keysteps
    rows = [np.where(np.isin(one.keysteps, own), one.keysteps, BACKGROUND) for one in labels]
    labels = [replace(one, keysteps=row) for one, row in zip(labels, rows, strict=True)]
    before, after = count_before(labels), count_next(labels)
    pairs = majority_pairs(before, least)
    right = [_precedence(statistics, task, *pair).share > 0.5 for pair in pairs]
    held = []
    for first, second in combinations(own, 2):
        both = before[first, second] + before[second, first]
        if both >= least:
            precedence = _precedence(statistics, task, first, second)
            held.append(_holds(precedence, before[first, second] / both))
    successors = {one: statistics.successors_of(one, len(own) + 1, tasks=[task]) for one in own}
    next_held = [
        _holds(one, true[one.keystep] / true.total())
        for keystep, true in after.items()
        for one in successors[keystep]
        if true.total() >= least
    ]
    return OrderCheck(
        *(task, len(labels), len(pairs), _mean(right), *_judge_next(after, successors)),
        *(*_strongest(after, successors), _mean(held), _mean(next_held)),
    )


def _precedence(statistics: TaskStatistics, task: str, first: int, second: int) -> Precedence:
    [found] = statistics.precedences(first, second, [task])
    return found


def _judge_next(
    after: Mapping[int, Counter[int]], successors: Mapping[int, Sequence[Successor]]
) -> tuple[float, float, float]:
    """Share of right first guesses, their upper bound, and share covered by four guesses."""
    hits = possible = covered = total = 0
    for keystep, true in after.items():
        keysteps = Counter({one: count for one, count in true.items() if one != END})
        guesses = [one.keystep for one in successors[keystep] if one.keystep != END]
        first, *_ = guessed = guesses[:_COVERING] or [END]
        hits += keysteps[first]
        covered += sum(keysteps[one] for one in guessed)
        possible += max(keysteps.values(), default=0)
        total += keysteps.total()
    return (hits / total, possible / total, covered / total) if total else (math.nan,) * 3


def _strongest(
    after: Mapping[int, Counter[int]], successors: Mapping[int, Sequence[Successor]]
) -> tuple[float, float]:
    """Precision of the ten most probable transitions, and average precision of all of them."""
    ranked = [
        (one.share, keystep, one.keystep)
        for keystep, following in successors.items()
        for one in following
        if one.keystep != END
    ]
    true = [
        (count, keystep, one)
        for keystep, counts in after.items()
        for one, count in counts.items()
        if one != END
    ]
    quarter = len(successors) * (len(successors) - 1) // 4
    best = {pair[1:] for pair in sorted(true, reverse=True)[:quarter]}
    right = [pair[1:] in best for pair in sorted(ranked, reverse=True)]
    precision = [sum(right[:rank]) / rank for rank, one in enumerate(right, 1) if one]
    return _mean(right[:_STRONGEST]), _mean(precision)


def count_before(labels: Iterable[Labels]) -> Counter[tuple[int, int]]:
    """Count the videos in which one keystep begins before another in the truth."""
    before: Counter[tuple[int, int]] = Counter()
    for one in labels:
        begun = list(dict.fromkeys(without_repetitions(one.keysteps).tolist()))
        before.update(combinations(begun, 2))
    return before


def count_next(labels: Iterable[Labels]) -> dict[int, Counter[int]]:
    """Count the true transitions from each keystep to the next one, or to the end."""
    found: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for one in labels:
        sequence = without_repetitions(one.keysteps).tolist()
        for first, second in pairwise([*sequence, END]):
            found[first][second] += 1
    return dict(found)


def majority_pairs(before: Counter[tuple[int, int]], least: int = LEAST) -> list[tuple[int, int]]:
    """List pairs whose first keystep begins before the second in a majority of videos."""
    return [
        (first, second)
        for (first, second), count in sorted(before.items())
        if count + before[second, first] >= least
        and count >= MAJORITY * (count + before[second, first])
    ]


def _holds(successors: Precedence | Successor, share: float) -> bool:
    return successors.low <= share <= successors.high


def _mean(values: Iterable[float]) -> float:
    shared = list(values)
    return sum(shared) / len(shared) if shared else math.nan
