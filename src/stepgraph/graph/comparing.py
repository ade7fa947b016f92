"""Differences between two graphs, and deviations of a video from the norm of its task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from stepgraph.core import Segment
from stepgraph.graph.layers import Layers, count_layer
from stepgraph.graph.maps import ProcedureStep, TaskMap
from stepgraph.graph.parameters import listed_tasks
from stepgraph.graph.shares import Share
from stepgraph.graph.traces import EmissionTrace, Floats, Integers

# Random splits of the pooled videos (a permutation test): the largest difference in any of them
# is the threshold, so that chance yields any result at all in one comparison of twenty at most.
_SPLITS = 19


class Difference(NamedTuple):
    """Property of videos whose share differs between two graphs.

    Attributes
    ----------
    first, second
        Expected share in each graph: of all videos for a keystep, of those with both for an order.
    """

    task: str
    what: str
    first: float
    second: float


class Departure(NamedTuple):
    """Deviation of a video from the norm: start in seconds, kind, description, and the norm."""

    start: float | None
    kind: str
    what: str
    why: str


class _Both(NamedTuple):
    """Traces of one task in two graphs, those of the first graph before those of the second.

    Their columns are the keysteps of either list; ``places`` are those of the shared ``names``.
    """

    task: str
    names: list[str]
    places: list[int]
    counts: Integers
    videos: list[EmissionTrace]
    first: int


def compare(one: Layers, other: Layers) -> list[Difference]:
    """Find the significant differences between two graphs, the greatest first.

    Tasks and keysteps are matched by name.  Recognised videos are not independent of one another:
    each pass over them amplifies chance majorities.  So random splits of the pooled videos, which
    are recognised in the same way, estimate the differences that are due to chance.
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
    counts, videos = np.zeros((len(place), len(place)), dtype=np.int64), list[EmissionTrace]()
    for (layers, own), names in zip(graphs, lists, strict=True):
        theirs = [place[name] for name in names]
        counts[np.ix_(theirs, theirs)] += layers.transitions(own)
        traces = layers.traces.tasks[task].values()
        videos += [trace.among(theirs, len(place)) for trace in traces]
    shared = [name for name in lists[0] if name in lists[1]]
    places = [place[name] for name in shared]
    return _Both(task, shared, places, counts, videos, one.videos[task])


def _distances(both: _Both, order: Integers) -> tuple[Floats, Floats]:
    """Expected shares in two parts, (2, q), and their differences in standard deviations, (q,).

    The q properties are the salience of each shared keystep, and the precedence of each pair.
    """
    pairs = [*combinations(both.places, 2)]
    votes = np.empty((2, 2, len(both.places) + len(pairs)))
    for part, chosen in enumerate((order[: both.first], order[both.first :])):
        traces = {f"{at}": both.videos[at] for at in chosen}
        layer = count_layer((*range(len(both.counts)),), traces, both.counts, 0.0)
        spoken = layer.salient[both.places]
        votes[part, 0] = [*spoken, *(layer.before[a, b] for a, b in pairs)]
        votes[part, 1] = [*(len(chosen) - spoken), *(layer.before[b, a] for a, b in pairs)]
    # Means and variances of Beta distributions.
    number = votes.sum(axis=1)
    shares = (votes[:, 0] + 1) / (number + 2)
    spread = np.sqrt((shares * (1 - shares) / (number + 3)).sum(axis=0))
    return shares, np.abs(shares[0] - shares[1]) / spread


class Usual(NamedTuple):
    """Norm of a task, to compare a video with.

    Attributes
    ----------
    before
        Pairs of keysteps whose first credibly precedes the second, and in what share of videos.
    times
        Mean number of segments of each keystep in the videos that show it.
    """

    known: TaskMap
    before: Mapping[tuple[int, int], Share]
    times: Mapping[int, float]


def usual_of(layers: Layers, known: TaskMap) -> Usual:
    """Compute the norm of a task from the order statistics of its videos."""
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
    """Find the deviations of a video from the norm: missing, misordered and repeated keysteps.

    Parameters
    ----------
    segments
        Segments of the video, in order of time.
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
    """Yield a deviation for each pair of keysteps done against a credible precedence."""
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


def _percent(one: ProcedureStep | Share) -> str:
    return f"{100 * one.share:.0f} % ({100 * one.low:.0f} to {100 * one.high:.0f} %)"


def _repeated(usual: Usual, segments: Sequence[Segment]) -> Iterator[Departure]:
    """Yield a deviation for each keystep with at least two segments more than the mean."""
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
