"""How graphs differ from one another, and how a video differs from its graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import Segment
from stepgraph.graph.courses import Course, Floats
from stepgraph.graph.habits import listed_tasks
from stepgraph.graph.layers import Layers, count_layer
from stepgraph.graph.maps import TaskMap

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
    """The videos of a task in two graphs, over the keysteps that either lists.

    ``names`` are those of both; ``places`` are theirs.
    """

    task: str
    names: list[str]
    places: list[int]
    counts: NDArray[np.int64]
    first: list[Course]
    second: list[Course]


def compare(one: Layers, other: Layers) -> list[Difference]:
    """Tell in what two graphs differ, the greatest difference first.

    Tasks and keysteps are the same where their names are.  Recognised videos are not independent
    of one another: each pass over them makes more of what they happen to begin with.  So how far
    two graphs differ by chance is told by random splits of their videos, which go the same way.
    """
    asked = [_both(one, other, task) for task in one.videos if task in other.videos]
    random, by_chance = np.random.default_rng(0), 0.0
    for _ in range(_SPLITS):
        for both in asked:
            _, distance = _distances(_shuffled(both, random))
            by_chance = max([by_chance, *distance])
    found = []
    for both in asked:
        shares, distance = _distances(both)
        questions = [f"{name!r} is spoken of" for name in both.names]
        questions += [f"{a!r} before {b!r}" for a, b in combinations(both.names, 2)]
        answers = zip(questions, *shares.tolist(), distance > by_chance, strict=True)
        found += [Difference(both.task, *answer) for *answer, differs in answers if differs]
    return sorted(found, key=lambda each: -abs(each.first - each.second))


def _both(one: Layers, other: Layers, task: str) -> _Both:
    graphs = [(layers, listed_tasks(layers.vocabulary)[task]) for layers in (one, other)]
    lists = [[layers.vocabulary.keysteps[each] for each in own] for layers, own in graphs]
    place = {name: at for at, name in enumerate(dict.fromkeys([*lists[0], *lists[1]]))}
    counts, videos = np.zeros((len(place), len(place)), dtype=np.int64), []
    for (layers, own), names in zip(graphs, lists, strict=True):
        theirs = [place[name] for name in names]
        counts[np.ix_(theirs, theirs)] += layers.transitions(own)
        courses = layers.courses.tasks[task].values()
        videos.append([course.among(theirs, len(place)) for course in courses])
    shared = [name for name in lists[0] if name in lists[1]]
    return _Both(task, shared, [place[name] for name in shared], counts, *videos)


def _shuffled(both: _Both, random: np.random.Generator) -> _Both:
    """The same videos, split at random into as many and as many."""
    videos = [*both.first, *both.second]
    mixed = [videos[at] for at in random.permutation(len(videos))]
    return both._replace(first=mixed[: len(both.first)], second=mixed[len(both.first) :])


def _distances(both: _Both) -> tuple[Floats, Floats]:
    """Shares of each part in which something is so, shape (2, q), and by how many spreads they
    differ, (q,): of each keystep that it is spoken of, of each pair that one is done first.
    """
    votes = np.array([_votes(both, videos) for videos in (both.first, both.second)])
    votes = votes.reshape(2, -1, 2)
    # Expected of Beta distributions, with their variances.
    number = votes.sum(axis=2)
    shares = (votes[..., 0] + 1) / (number + 2)
    spread = np.sqrt((shares * (1 - shares) / (number + 3)).sum(axis=0))
    return shares, np.abs(shares[0] - shares[1]) / spread


def _votes(both: _Both, videos: list[Course]) -> list[tuple[float, float]]:
    """How often what is asked is so, and how often it is not."""
    named = {f"{at}": course for at, course in enumerate(videos)}
    layer = count_layer((*range(len(both.counts)),), named, both.counts, 0.0)
    spoken, before = layer.clear[both.places], layer.before
    votes = [(float(often), float(len(videos) - often)) for often in spoken]
    return votes + [(before[a, b], before[b, a]) for a, b in combinations(both.places, 2)]


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
