"""Differences between two graphs, and deviations of a video from the norm of its task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from stepgraph.core import Segment
from stepgraph.graph.maps import Procedure, ProcedureStep
from stepgraph.graph.order_statistics import TaskStatistics, order_statistics
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


class Deviation(NamedTuple):
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


def compare(one: TaskStatistics, other: TaskStatistics) -> list[Difference]:
    """Find the significant differences between two graphs, the greatest first.

    Tasks and keysteps are matched by name.  Recognised videos are not independent of one another:
    each pass over them amplifies chance majorities.  So random splits of the pooled videos, which
    are recognised in the same way, estimate the differences that are due to chance.
    """
    compared = [_both(one, other, task) for task in one.videos if task in other.videos]
    random, by_chance, found = np.random.default_rng(0), 0.0, []
    for both in compared * _SPLITS:
        _, distance = _distances(both, random.permutation(len(both.videos)))
        by_chance = max(by_chance, distance.max(initial=0.0))
    for both in compared:
        shares, distance = _distances(both, np.arange(len(both.videos)))
        questions = [f"{name!r} occurs" for name in both.names]
        questions += [f"{a!r} before {b!r}" for a, b in combinations(both.names, 2)]
        answers = zip(questions, *shares.tolist(), distance > by_chance, strict=True)
        found += [Difference(both.task, *answer) for *answer, differs in answers if differs]
    return sorted(found, key=lambda each: -abs(each.first - each.second))


def _both(one: TaskStatistics, other: TaskStatistics, task: str) -> _Both:
    graphs = [
        (statistics, listed_tasks(statistics.vocabulary)[task]) for statistics in (one, other)
    ]
    lists = [[statistics.vocabulary.keysteps[each] for each in own] for statistics, own in graphs]
    place = {name: at for at, name in enumerate(dict.fromkeys([*lists[0], *lists[1]]))}
    counts, videos = np.zeros((len(place), len(place)), dtype=np.int64), list[EmissionTrace]()
    for (statistics, own), names in zip(graphs, lists, strict=True):
        theirs = [place[name] for name in names]
        counts[np.ix_(theirs, theirs)] += statistics.transitions(own)
        traces = statistics.traces.tasks[task].values()
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
        counted = order_statistics((*range(len(both.counts)),), traces, both.counts, 0.0)
        salient = counted.salient[both.places]
        votes[part, 0] = [*salient, *(counted.before[a, b] for a, b in pairs)]
        votes[part, 1] = [*(len(chosen) - salient), *(counted.before[b, a] for a, b in pairs)]
    # Means and variances of Beta distributions.
    number = votes.sum(axis=1)
    shares = (votes[:, 0] + 1) / (number + 2)
    spread = np.sqrt((shares * (1 - shares) / (number + 3)).sum(axis=0))
    return shares, np.abs(shares[0] - shares[1]) / spread


class Norm(NamedTuple):
    """Norm of a task, to compare a video with.

    Attributes
    ----------
    before
        Pairs of keysteps whose first credibly precedes the second, and in what share of videos.
    times
        Mean number of segments of each keystep in the videos that show it.
    """

    procedure: Procedure
    before: Mapping[tuple[int, int], Share]
    times: Mapping[int, float]


def norm_of(statistics: TaskStatistics, procedure: Procedure) -> Norm:
    """Compute the norm of a task from the order statistics of its videos."""
    counted = statistics.of_task(procedure.task)
    before = {}
    for one, other in np.argwhere(counted.precedence() > 0.5):
        first, second = counted.keysteps[one], counted.keysteps[other]
        [found] = statistics.precedences(first, second, [procedure.task])
        if found.low > 0.5:
            before[first, second] = Share(found.share, found.low, found.high)
    done = counted.following.sum(axis=1) / np.maximum(1, counted.shown)
    return Norm(procedure, before, dict(zip(counted.keysteps, done.tolist(), strict=True)))


def deviations(norm: Norm, segments: Sequence[Segment]) -> list[Deviation]:
    """Find the deviations of a video from the norm: missing, misordered and repeated keysteps.

    Parameters
    ----------
    segments
        Segments of the video, in order of time.
    """
    begun: dict[int, float] = {}
    for segment in segments:
        begun.setdefault(segment.keystep, segment.start)
    names = norm.procedure.vocabulary.keysteps
    found = [
        Deviation(
            None,
            "missing",
            f"no {names[step.keystep]!r}",
            f"done in {_percent(step)} of videos",
        )
        for step in norm.procedure.steps
        if step.keystep not in begun and not step.optional
    ]
    found += _misordered(norm, begun)
    found += _repeated(norm, segments)
    return sorted(found, key=lambda one: -1.0 if one.start is None else one.start)


def _misordered(norm: Norm, begun: dict[int, float]) -> Iterator[Deviation]:
    """Yield a deviation for each pair of keysteps done against a credible precedence."""
    names = norm.procedure.vocabulary.keysteps
    for first, second in combinations(sorted(begun, key=lambda one: begun[one]), 2):
        other_way = norm.before.get((second, first))
        if other_way is not None and begun[first] != begun[second]:
            yield Deviation(
                begun[first],
                "order",
                f"{names[first]!r} before {names[second]!r}",
                f"the other way round in {_percent(other_way)} of videos",
            )


def _percent(one: ProcedureStep | Share) -> str:
    return f"{100 * one.share:.0f} % ({100 * one.low:.0f} to {100 * one.high:.0f} %)"


def _repeated(norm: Norm, segments: Sequence[Segment]) -> Iterator[Deviation]:
    """Yield a deviation for each keystep with at least two segments more than the mean."""
    last = {segment.keystep: segment.start for segment in segments}
    often = Counter(segment.keystep for segment in segments)
    for keystep, mean in norm.times.items():
        if often[keystep] >= mean + 2:
            yield Deviation(
                last[keystep],
                "repeated",
                f"{norm.procedure.vocabulary.keysteps[keystep]!r} {often[keystep]} times",
                f"{mean:.1f} times in the mean of recognised videos",
            )
