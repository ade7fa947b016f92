"""How graphs differ from one another, and how a video differs from its graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from stepgraph.core import Segment
from stepgraph.graph.courses import Course, Floats, Integers
from stepgraph.graph.habits import listed_tasks
from stepgraph.graph.layers import Layers, count_layer
from stepgraph.graph.maps import Step, TaskMap
from stepgraph.graph.shares import Share

# The videos of both graphs are also split at random, so many times: of what differs more than
# anything does then, one answer in twenty at most holds anything that is due to chance.
_SPLITS = 19


class Difference(NamedTuple):
    """Something that the videos of two graphs do differently.

    Attributes
    ----------
    first, second
        Share of the recognised videos of each in which it is so.
    """

    task: str
    what: str
    first: float
    second: float


class Departure(NamedTuple):
    """Something that a video does otherwise than most: when (seconds), what, and why it is odd."""

    start: float | None
    kind: str
    what: str
    why: str


class _Both(NamedTuple):
    """The videos of a task in two graphs, those of the first before those of the second.

    They are over the keysteps that either lists; ``places`` are those of the shared ``names``.
    """

    task: str
    names: list[str]
    places: list[int]
    counts: Integers
    videos: list[Course]
    first: int


def compare(one: Layers, other: Layers) -> list[Difference]:
    """Tell in what two graphs differ, the greatest difference first.

    Tasks and keysteps are the same where their names are.  Recognised videos are not independent
    of one another: each pass over them makes more of what they happen to begin with.  So how far
    two graphs differ by chance is told by random splits of their videos, which go the same way.
    """
    asked = [_both(one, other, task) for task in one.videos if task in other.videos]
    random, by_chance, found = np.random.default_rng(0), 0.0, []
    for both in asked * _SPLITS:
        _, distance = _distances(both, random.permutation(len(both.videos)))
        by_chance = max(by_chance, distance.max(initial=0.0))
    for both in asked:
        shares, distance = _distances(both, np.arange(len(both.videos)))
        questions = [f"{name!r} is spoken of" for name in both.names]
        questions += [f"{a!r} before {b!r}" for a, b in combinations(both.names, 2)]
        answers = zip(questions, *shares.tolist(), distance > by_chance, strict=True)
        found += [Difference(both.task, *answer) for *answer, differs in answers if differs]
    return sorted(found, key=lambda each: -abs(each.first - each.second))


def _both(one: Layers, other: Layers, task: str) -> _Both:
    graphs = [(layers, listed_tasks(layers.vocabulary)[task]) for layers in (one, other)]
    lists = [[layers.vocabulary.keysteps[each] for each in own] for layers, own in graphs]
    place = {name: at for at, name in enumerate(dict.fromkeys([*lists[0], *lists[1]]))}
    counts, videos = np.zeros((len(place), len(place)), dtype=np.int64), list[Course]()
    for (layers, own), names in zip(graphs, lists, strict=True):
        theirs = [place[name] for name in names]
        counts[np.ix_(theirs, theirs)] += layers.transitions(own)
        courses = layers.courses.tasks[task].values()
        videos += [course.among(theirs, len(place)) for course in courses]
    shared = [name for name in lists[0] if name in lists[1]]
    places = [place[name] for name in shared]
    return _Both(task, shared, places, counts, videos, one.videos[task])


def _distances(both: _Both, order: Integers) -> tuple[Floats, Floats]:
    """Shares of two parts in which something is so, (2, q), and by how many spreads they differ.

    It is asked of each keystep whether it is spoken of, and of each pair whether one is first.
    """
    pairs = [*combinations(both.places, 2)]
    votes = np.empty((2, 2, len(both.places) + len(pairs)))
    for part, chosen in enumerate((order[: both.first], order[both.first :])):
        courses = {f"{at}": both.videos[at] for at in chosen}
        layer = count_layer((*range(len(both.counts)),), courses, both.counts, 0.0)
        spoken = layer.clear[both.places]
        votes[part, 0] = [*spoken, *(layer.before[a, b] for a, b in pairs)]
        votes[part, 1] = [*(len(chosen) - spoken), *(layer.before[b, a] for a, b in pairs)]
    # Means and variances of Beta distributions.
    number = votes.sum(axis=1)
    shares = (votes[:, 0] + 1) / (number + 2)
    spread = np.sqrt((shares * (1 - shares) / (number + 3)).sum(axis=0))
    return shares, np.abs(shares[0] - shares[1]) / spread


class Usual(NamedTuple):
    """What most videos of a task do, to hold another one against.

    Attributes
    ----------
    before
        Pairs of keysteps of which the first credibly comes before the second.
    times
        How often each keystep is done in the mean of the videos that show it.
    """

    known: TaskMap
    before: Mapping[tuple[int, int], Share]
    times: Mapping[int, float]


def usual_of(layers: Layers, known: TaskMap) -> Usual:
    """What most videos of a task do, by what whole videos tell of it."""
    layer = layers.of_task(known.task)
    before = {}
    for one, other in np.argwhere(layer.precedence() > 0.5):
        first, second = layer.keysteps[one], layer.keysteps[other]
        [found] = layers.precedences(first, second, [known.task])
        if found.low > 0.5:
            before[first, second] = Share(found.share, found.low, found.high)
    done = layer.following.sum(axis=1) / np.maximum(1, layer.shown)
    return Usual(known, before, dict(zip(layer.keysteps, done.tolist(), strict=True)))


def departures(usual: Usual, segments: Sequence[Segment]) -> list[Departure]:
    """Tell how a video departs from the map of its task: what is missing, repeated, unusual.

    Parameters
    ----------
    segments
        What is done in the video, in order of time.
    """
    begun: dict[int, float] = {}
    for segment in segments:
        begun.setdefault(segment.keystep, segment.start)
    names = usual.known.vocabulary.keysteps
    found = [
        Departure(
            None,
            "missing",
            f"no {names[step.keystep]!r}",
            f"done in {_percent(step)} of videos",
        )
        for step in usual.known.steps
        if step.keystep not in begun and not step.optional
    ]
    found += _unusual_orders(usual, begun)
    found += _repeated(usual, segments)
    return sorted(found, key=lambda one: -1.0 if one.start is None else one.start)


def _unusual_orders(usual: Usual, begun: dict[int, float]) -> Iterator[Departure]:
    """Keysteps that are done before others that credibly come before them."""
    names = usual.known.vocabulary.keysteps
    for first, second in combinations(sorted(begun, key=lambda one: begun[one]), 2):
        other_way = usual.before.get((second, first))
        if other_way is not None and begun[first] != begun[second]:
            yield Departure(
                begun[first],
                "order",
                f"{names[first]!r} before {names[second]!r}",
                f"the other way round in {_percent(other_way)} of videos",
            )


def _percent(one: Step | Share) -> str:
    return f"{100 * one.share:.0f} % ({100 * one.low:.0f} to {100 * one.high:.0f} %)"


def _repeated(usual: Usual, segments: Sequence[Segment]) -> Iterator[Departure]:
    """Keysteps that are come back to twice more often than in the mean."""
    last = {segment.keystep: segment.start for segment in segments}
    often = Counter(segment.keystep for segment in segments)
    for keystep, mean in usual.times.items():
        if often[keystep] >= mean + 2:
            yield Departure(
                last[keystep],
                "repeated",
                f"{usual.known.vocabulary.keysteps[keystep]!r} {often[keystep]} times",
                f"{mean:.1f} times in the mean of recognised videos",
            )
