"""How graphs differ from one another, and how a video differs from its graph."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from stepgraph.core import Segment
from stepgraph.graph.habits import listed_tasks
from stepgraph.graph.layers import Layer, Layers, count_layers
from stepgraph.graph.maps import TaskMap

# Of all that is compared, hardly anything may differ by chance.
_CHANCE = 0.05


class Difference(NamedTuple):
    """Something that the videos of two graphs do differently.

    Attributes
    ----------
    first, second
        Share of the recognised videos of each in which it is so.
    certainty
        How probable it is that the shares differ, and not only those of the videos at hand.
    """

    task: str
    what: str
    first: float
    second: float
    certainty: float


class Departure(NamedTuple):
    """Something that a video does otherwise than most: when (seconds), what, and why it is odd."""

    start: float | None
    kind: str
    what: str
    why: str


def compare(one: Layers, other: Layers) -> list[Difference]:
    """Tell in what two graphs differ, the greatest difference first.

    Tasks and keysteps are the same where their names are.  The videos of both are recognised
    alike, so that what is wrong with their labels is the same, too, and counts can be compared.
    """
    asked = [
        (task, what, first, second)
        for task in one.videos
        if task in other.videos
        for what, first, second in _both(one, other, task)
    ]
    found = []
    for task, what, first, second in asked:
        (ours, theirs), certainty = _certainty(first, second)
        if certainty > 1 - _CHANCE / len(asked):
            found.append(Difference(task, what, ours, theirs, certainty))
    return sorted(found, key=lambda each: -abs(each.first - each.second))


_Votes = tuple[float, float]


def _both(one: Layers, other: Layers, task: str) -> Iterator[tuple[str, _Votes, _Votes]]:
    """What can be compared of a task: how often each graph says yes, and how often no."""
    lists = [
        [layers.vocabulary.keysteps[one] for one in listed_tasks(layers.vocabulary)[task]]
        for layers in (one, other)
    ]
    places = {name: place for place, name in enumerate(dict.fromkeys([*lists[0], *lists[1]]))}
    counts, parts = np.zeros((len(places), len(places)), dtype=np.int64), []
    for layers, names in zip((one, other), lists, strict=True):
        own = [places[name] for name in names]
        counts[np.ix_(own, own)] += layers.transitions(listed_tasks(layers.vocabulary)[task])
        videos = layers.courses.tasks[task]
        parts.append({video: videos[video].among(own, len(places)) for video in videos})
    both = count_layers((*places.values(),), parts, counts, order=0.0)
    shared = [name for name in lists[0] if name in lists[1]]
    for name in shared:
        ours, theirs = (_spoken(layer, places[name]) for layer in both)
        yield f"{name!r} is spoken of", ours, theirs
    for before, after in combinations(shared, 2):
        ours, theirs = (_before(layer, places[before], places[after]) for layer in both)
        yield f"{before!r} before {after!r}", ours, theirs


def _spoken(layer: Layer, place: int) -> _Votes:
    return float(layer.clear[place]), float(layer.videos - layer.clear[place])


def _before(layer: Layer, first: int, second: int) -> _Votes:
    return float(layer.before[first, second]), float(layer.before[second, first])


def _certainty(*votes: _Votes) -> tuple[list[float], float]:
    """Shares, and how probable it is that they differ (Beta distributions, taken as normal)."""
    shares = [(yes + 1) / (yes + no + 2) for yes, no in votes]
    spread = sum(p * (1 - p) / (sum(v) + 3) for p, v in zip(shares, votes, strict=True))
    return shares, float(2 * ndtr(abs(shares[0] - shares[1]) / math.sqrt(spread)) - 1)


def departures(layers: Layers, known: TaskMap, segments: Sequence[Segment]) -> list[Departure]:
    """Tell how a video departs from the map of its task: what is missing, repeated, unusual.

    Parameters
    ----------
    segments
        What is done in the video, in order of time.
    """
    begun: dict[int, float] = {}
    for segment in segments:
        begun.setdefault(segment.keystep, segment.start)
    names = layers.vocabulary.keysteps
    found = [
        Departure(
            None,
            "missing",
            f"no {names[step.keystep]!r}",
            f"spoken of clearly in {step.videos} of {known.videos} videos",
        )
        for step in known.steps
        if step.keystep not in begun and not step.optional
    ]
    found += _unusual_orders(layers, known.task, begun)
    found += _repeated(layers, known.task, segments)
    return sorted(found, key=lambda one: -1.0 if one.start is None else one.start)


def _unusual_orders(layers: Layers, task: str, begun: dict[int, float]) -> Iterator[Departure]:
    """Keysteps that are done before others that credibly come before them."""
    names = layers.vocabulary.keysteps
    for first, second in combinations(sorted(begun, key=lambda one: begun[one]), 2):
        if begun[first] == begun[second]:
            continue
        [usual] = layers.precedences(second, first, [task])
        if usual.low > 0.5:
            yield Departure(
                begun[first],
                "order",
                f"{names[first]!r} before {names[second]!r}",
                f"the other way round in {100 * usual.share:.0f} % of videos "
                f"({100 * usual.low:.0f} to {100 * usual.high:.0f} %)",
            )


def _repeated(layers: Layers, task: str, segments: Sequence[Segment]) -> Iterator[Departure]:
    """Keysteps that are come back to twice more often than in the mean."""
    layer = layers.of_task(task)
    for place, keystep in enumerate(layer.keysteps):
        times = [segment.start for segment in segments if segment.keystep == keystep]
        usual = float(layer.following[place].sum() / max(1, layer.shown[place]))
        if len(times) >= usual + 2:
            yield Departure(
                times[-1],
                "repeated",
                f"{layers.vocabulary.keysteps[keystep]!r} {len(times)} times",
                f"{usual:.1f} times in the mean of recognised videos",
            )
