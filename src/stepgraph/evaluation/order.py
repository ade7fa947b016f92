"""Hold what a graph says about order against the truth of videos.

Right directions are those of pairs of keysteps whose true order is clear: of at least ten videos
that show both, three quarters or more begin one before the other.  The next keystep is judged by
how often it is the true one, beside what the best guess of all would reach.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import combinations, pairwise
from typing import NamedTuple

from stepgraph.core import Labels, without_repetitions
from stepgraph.graph import TaskGraph

CLEAR, LEAST = 0.75, 10
"""Share and number of videos from which on a true order is clear."""

_COVERING = 4


class OrderCheck(NamedTuple):
    """What a graph says about the order of one task, or of all, beside the truth.

    Attributes
    ----------
    pairs
        Pairs of keysteps whose true order is clear.
    right_directions
        Share of these that the graph orders in the same way.
    next_share
        How often the keystep that the graph calls next is the true next one.
    next_share_possible
        How often the best guess of all would be.
    covered
        Share of true transitions that are among the four most frequent of the graph.
    """

    task: str
    videos: int
    pairs: int
    right_directions: float
    next_share: float
    next_share_possible: float
    covered: float


def check_order(
    graph: TaskGraph, truth: Mapping[str, Iterable[Labels]], *, least: int = LEAST
) -> list[OrderCheck]:
    """Check the layers of a graph task by task; the last line is that of all tasks together.

    Parameters
    ----------
    truth
        True labels of the videos of each task.
    least
        Videos that must show both keysteps of a pair.
    """
    found = [_check_task(graph, task, list(labels), least) for task, labels in truth.items()]
    names = ("right_directions", "next_share", "next_share_possible", "covered")
    means = {
        name: _mean([getattr(one, name) for one in found if not math.isnan(getattr(one, name))])
        for name in names
    }
    videos, pairs = (sum(getattr(one, name) for one in found) for name in ("videos", "pairs"))
    return [*found, OrderCheck("mean of the tasks", videos, pairs, **means)]


def _check_task(graph: TaskGraph, task: str, labels: list[Labels], least: int) -> OrderCheck:
    layers = graph.layers
    assert layers is not None, "only a graph with layers says anything about order"
    pairs = clear_pairs(labels, least)
    right = [layers.precedence(first, second).share > 0.5 for first, second in pairs]
    hits = possible = covered = total = 0
    for keystep, following in _transitions(labels).items():
        guesses = [one for one, _ in layers.next_after(keystep, _COVERING)]
        hits += following[guesses[0]] if guesses else 0
        covered += sum(following[one] for one in guesses)
        possible += max(following.values())
        total += following.total()
    shares = (part / total if total else math.nan for part in (hits, possible, covered))
    return OrderCheck(task, len(labels), len(pairs), _mean(right), *shares)


def clear_pairs(labels: Iterable[Labels], least: int = LEAST) -> list[tuple[int, int]]:
    """Pairs of keysteps of which the first truly begins before the second."""
    before: Counter[tuple[int, int]] = Counter()
    for one in labels:
        begun = list(dict.fromkeys(without_repetitions(one.keysteps).tolist()))
        before.update(combinations(begun, 2))
    return [
        (first, second)
        for (first, second), count in sorted(before.items())
        if count + before[second, first] >= least
        and count >= CLEAR * (count + before[second, first])
    ]


def _transitions(labels: Iterable[Labels]) -> dict[int, Counter[int]]:
    found: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for one in labels:
        for first, second in pairwise(without_repetitions(one.keysteps).tolist()):
            found[first][second] += 1
    return found


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known) if known else math.nan
