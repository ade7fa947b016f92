"""Order statistics of tasks, from whole videos: precedences and successors of keysteps.

Transitions between neighbouring rows show which keysteps belong together rather than which comes
first: people announce, recall and repeat.  Here the emission traces of whole videos are decoded
by a hidden Markov model of their task, with the timing and the transitions of the corpus and
without the listed order.  So the counts are of predicted labels, not of truth.
:mod:`stepgraph.graph.shares` turns counts into expected shares, and adds the listed order there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d
from scipy.special import ndtri

from stepgraph.core import Vocabulary, without_repetitions
from stepgraph.graph.chains import marginals
from stepgraph.graph.order import linear_order
from stepgraph.graph.parameters import listed_tasks
from stepgraph.graph.shares import CREDIBLE, NEXT, PRECEDENCE, shares_of
from stepgraph.graph.traces import TIMING_BINS, EmissionTrace, EmissionTraces, Floats, Integers

SELF_TRANSITION = 0.9
"""Probability of a self-transition: a keystep goes on for another row."""
START, END = -1, -2
"""Pseudo-keysteps for the beginning and the end of a video."""
PRIOR_VIDEOS, PRIOR_TRANSITIONS = 10.0, 100.0
"""Prior weights as pseudo-counts: of timing in videos, of transitions out of each keystep."""


class Precedence(NamedTuple):
    """Precedence of one keystep over another, over the videos of one or more tasks.

    Attributes
    ----------
    before, after
        Expected number of recognised videos in which it is done before the other, or after it;
        each video is weighted by the probability that both are done.
    share, low, high
        Expected share of true videos in which it is done before the other, with its 90 %
        interval; the listed order counts by its weight.
    tasks
        Tasks that are pooled, since their majorities have the same direction.
    """

    before: float
    after: float
    share: float
    low: float
    high: float
    tasks: tuple[str, ...]


class Successor(NamedTuple):
    """Successor of a keystep, or ``END``: its count, and its share with a 90 % interval."""

    keystep: int
    seen: int
    share: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class OrderStatistics:
    """Order statistics of the recognised videos of one task.

    Attributes
    ----------
    keysteps
        Keysteps of the task in listed order; all arrays have this order.
    videos
        Number of videos that were counted.
    salient, shown, first : shape (n,)
        Number of videos in which a keystep is salient, is done at all, is done first.
    seconds : shape (n,)
        Total duration of each keystep over all videos, in seconds.
    position : shape (n,)
        Mean position of each keystep in a video, from 0 to 1.
    before : shape (n, n)
        Expected number of videos in which one precedes another, weighted by both probabilities.
    following : shape (n, n + 1)
        Number of times that one succeeded another; the last column counts ends of videos.
    ordered
        Weight of the listed order, from 0 to 1.
    """

    keysteps: tuple[int, ...]
    videos: int
    salient: Integers
    shown: Integers
    first: Integers
    seconds: Floats
    position: Floats
    before: Floats
    following: Integers
    ordered: float

    def precedence(self) -> Floats:
        """Expected share of videos in which one keystep precedes another, shape (n, n)."""
        ahead = np.triu(np.full_like(self.before, self.ordered), 1)
        before, after = PRECEDENCE.weigh([self.before, self.before.T], [ahead, ahead.T])
        return np.asarray(before / (before + after))

    def order(self) -> list[int]:
        """Keysteps in a linear order that contradicts few precedences (Kemeny's order)."""
        return [self.keysteps[place] for place in linear_order(self.precedence())]

    def position_ranges(self) -> dict[int, tuple[float, float]]:
        """Range of positions in the order, from 1, that holds each keystep in 90 % of videos.

        The predecessors of a keystep are independent Bernoulli variables (normal approximation).
        """
        before = self.precedence()
        np.fill_diagonal(before, 0.0)
        middle = 1 + before.sum(axis=0)
        spread = ndtri((1 + CREDIBLE) / 2) * np.sqrt((before * (1 - before)).sum(axis=0))
        low, high = np.clip([middle - spread, middle + spread], 1, len(before)).round()
        ends = zip(low.tolist(), high.tolist(), strict=True)
        return dict(zip(self.keysteps, ends, strict=True))

    def next_weights(self, place: int) -> Floats:
        """Prior weight of each keystep, and ``END``, as successor by the listed order, (n + 1,).

        It is ``ordered`` for the next one listed, half as much for the one after that, and so on,
        since some are left out.
        """
        ahead = np.arange(len(self.keysteps) + 1) - place
        return np.where(ahead > 0, self.ordered * 0.5 ** (ahead - 1.0), 0.0)


def order_statistics(
    keysteps: tuple[int, ...], traces: Mapping[str, EmissionTrace], counts: Integers, order: float
) -> OrderStatistics:
    """Decode the emission traces of a task twice, and compute its order statistics.

    Transitions of neighbouring rows carry hardly any direction.  The successions that the first
    pass decodes with them do, and replace them in the second pass.

    Parameters
    ----------
    counts : shape (n, n)
        Transition counts of neighbouring rows.
    """
    size = len(keysteps)
    due = _due(traces, size)
    sums = _recognize(traces, due, _recognize(traces, due, counts).following[:, :-1])
    place = sums.middle / np.maximum(sums.certain, 1e-9)
    counted = (
        sums.salient,
        sums.shown,
        sums.first,
        sums.seconds,
        place,
        sums.before,
        sums.following,
    )
    return OrderStatistics(keysteps, len(traces), *counted, order)


def _due(traces: Mapping[str, EmissionTrace], size: int) -> Floats:
    """Log-timing of the keysteps of a task, estimated from its videos, shape (n, 20)."""
    timing = sum((one.margin_timing() for one in traces.values()), np.zeros((size, TIMING_BINS)))
    return log_due(PRIOR_VIDEOS / TIMING_BINS, timing)


def _recognize(
    traces: Mapping[str, EmissionTrace], due: Floats, transitions: Integers
) -> _OrderSums:
    """Compute the posteriors of each video, and accumulate its order statistics."""
    sums = _OrderSums(len(due))
    for video, probability in _followed(traces, due, transitions):
        sums.add(probability, traces[video])
    return sums


def _followed(
    traces: Mapping[str, EmissionTrace], due: Floats, transitions: Integers
) -> Iterator[tuple[str, Floats]]:
    """Yield the posterior of each keystep on each row of each video, shape (T, n)."""
    size = len(due)
    pseudo_counts = np.full((size, size), PRIOR_TRANSITIONS / max(1, size - 1))
    chain = blend_transitions(transitions, pseudo_counts)
    for video, trace in sorted(traces.items()):
        rows = trace.log_emission()
        if len(rows):
            when = np.arange(len(rows)) * TIMING_BINS // len(rows)
            yield video, marginals(rows + due[:, when].T, chain)


class _OrderSums:
    """Accumulated statistics of the videos of a task of ``size`` keysteps."""

    def __init__(self, size: int) -> None:
        self.salient, self.shown, self.first = np.zeros((3, size), dtype=np.int64)
        self.seconds, self.middle, self.certain = np.zeros((3, size))
        self.before = np.zeros((size, size))
        self.following = np.zeros((size, size + 1), dtype=np.int64)

    def add(self, probability: Floats, trace: EmissionTrace) -> None:
        """Add a video, given the posterior of each keystep on each row, shape (T, n)."""
        labels = probability.argmax(axis=1)
        sequence = without_repetitions(labels)
        rows = np.bincount(labels, minlength=len(self.salient))
        self.salient += trace.salient
        self.shown += rows > 0
        self.first[sequence[0]] += 1
        self.seconds += rows * trace.hop
        np.add.at(self.following, (sequence, [*sequence[1:], -1]), 1)
        certain, share = probability.max(axis=0), probability / probability.sum(axis=0)
        self.certain += certain
        self.middle += certain * (((np.arange(len(share)) + 0.5) / len(share)) @ share)
        # Half of a row is before the row itself.
        before = (np.cumsum(share, axis=0) - share / 2).T @ share
        np.fill_diagonal(before, 0.0)
        self.before += np.outer(certain, certain) * before


def log_due(pseudo_counts: Floats | float, counted: Floats) -> Floats:
    """Log-ratio of the rate of each keystep in each twentieth to its mean rate, shape (n, 20)."""
    times = pseudo_counts + gaussian_filter1d(counted, 1.0, axis=1, mode="nearest")
    ratio = TIMING_BINS * times / times.sum(axis=1, keepdims=True)
    return np.asarray(np.log(np.maximum(ratio, 1e-300)))


def blend_transitions(
    counts: Integers, pseudo_counts: Floats, stay: float = SELF_TRANSITION
) -> Floats:
    """Transition probabilities from counts, pseudo-counts and the self-transition, (n, n)."""
    if len(counts) == 1:
        return np.ones((1, 1))
    votes: Floats = counts + pseudo_counts
    np.fill_diagonal(votes, 0)
    votes *= (1 - stay) / votes.sum(axis=1, keepdims=True)
    np.fill_diagonal(votes, stay)
    return votes


@dataclass(frozen=True, eq=False)
class TaskStatistics:
    """Order statistics of every task, each computed on first access.

    Attributes
    ----------
    transitions
        Returns the transition counts of neighbouring rows between some keysteps.
    """

    vocabulary: Vocabulary
    traces: EmissionTraces
    transitions: Callable[[tuple[int, ...]], Integers]
    _made: dict[str, OrderStatistics] = field(default_factory=dict, repr=False)

    @property
    def videos(self) -> dict[str, int]:
        """Number of videos of each task that are counted."""
        return {task: len(videos) for task, videos in self.traces.tasks.items()}

    def of_task(self, task: str) -> OrderStatistics:
        """Return the order statistics of one task."""
        if task not in self._made:
            keysteps = listed_tasks(self.vocabulary)[task]
            order = self.traces.order if any(self.vocabulary.tasks.values()) else 0.0
            videos, counts = self.traces.tasks[task], self.transitions(keysteps)
            self._made[task] = order_statistics(keysteps, videos, counts, order)
        return self._made[task]

    def sequences(self, task: str) -> dict[str, list[int]]:
        """Return the recognised execution of each video of a task: its sequence of keysteps."""
        counted, traces = self.of_task(task), self.traces.tasks[task]
        followed = _followed(
            traces, _due(traces, len(counted.keysteps)), counted.following[:, :-1]
        )
        return {
            video: [counted.keysteps[one] for one in without_repetitions(rows.argmax(axis=1))]
            for video, rows in followed
        }

    def written(self, task: str) -> int:
        """Number of executions in the listed order that are worth as much as its prior.

        At full weight they are half of the recognised videos, as in :meth:`.Trust.weigh`.
        """
        counted = self.of_task(task)
        return math.ceil(counted.ordered * counted.videos / 2)

    def _showing(self, *keysteps: int) -> Iterable[str]:
        listed = listed_tasks(self.vocabulary)
        return [task for task in self.traces.tasks if {*keysteps} <= {*listed[task]}]

    def precedences(
        self, first: int, second: int, tasks: Iterable[str] | None = None
    ) -> list[Precedence]:
        """Estimate the precedence of one keystep over another; the most frequent result first.

        Tasks whose majorities agree are pooled; where they differ, there are two results.
        """
        agree: dict[bool, list[tuple[str, Floats]]] = {}
        for task in self._showing(first, second) if tasks is None else tasks:
            counted = self.of_task(task)
            one, other = counted.keysteps.index(first), counted.keysteps.index(second)
            order = (counted.ordered * (one < other), counted.ordered * (one > other))
            found = np.array([(counted.before[one, other], counted.before[other, one]), order])
            weights = PRECEDENCE.weigh(*found)
            agree.setdefault(bool(weights[0] >= weights[1]), []).append((task, found))
        answers = []
        for group in agree.values():
            (before, after), order = (
                np.sum([votes for _, (votes, _) in group], axis=0),
                np.mean([order for _, (_, order) in group], axis=0),
            )
            [share, _] = shares_of(PRECEDENCE.weigh((before, after), order))
            names = tuple(task for task, _ in group)
            answers.append(Precedence(float(before), float(after), *share, names))
        return sorted(answers, key=lambda one: -(one.before + one.after))

    def successors_of(
        self, keystep: int, limit: int = 4, *, tasks: Iterable[str] | None = None
    ) -> list[Successor]:
        """Most probable successors of a keystep, in all tasks that list it or in some of them."""
        among = list(self._showing(keystep) if tasks is None else tasks)
        # The end is the last entry, after the keysteps of the vocabulary.
        counts, order = np.zeros((2, len(self.vocabulary) + 1))
        possible = np.zeros(len(counts), dtype=bool)
        for counted in map(self.of_task, among):
            members, place = [*counted.keysteps, -1], counted.keysteps.index(keystep)
            counts[members] += counted.following[place]
            order[members] += counted.next_weights(place) / len(among)
            possible[members] = True
        possible[keystep] = False
        [others] = np.nonzero(possible)
        names = np.append(np.arange(len(self.vocabulary)), END)[others]
        return _ranked(names, counts[others], order[others])[:limit]

    def first_of(self, task: str) -> list[Successor]:
        """Most probable first keysteps of a task: those that precede all others.

        The first sentences of a video often announce its last keystep.  So the number of times
        that a keystep was recognised as the first is reported, but does not enter its share.
        """
        counted = self.of_task(task)
        chances = np.exp(np.log(counted.precedence()).sum(axis=1))
        counts = counted.videos * chances / chances.sum()
        found = _ranked(np.array(counted.keysteps), counts, np.zeros(len(counts)))
        seen = dict(zip(counted.keysteps, counted.first.tolist(), strict=True))
        return [one._replace(seen=seen[one.keystep]) for one in found]


def _ranked(keysteps: NDArray[np.intp], counts: NDArray[Any], order: Floats) -> list[Successor]:
    """Rank possible successors, the most probable first; ties keep their order."""
    shares = shares_of(NEXT.weigh(counts, order))
    found = zip(keysteps.tolist(), counts.tolist(), shares, strict=True)
    ranked = [Successor(keystep, int(seen), *share) for keystep, seen, share in found]
    return sorted(ranked, key=lambda one: -one.share)
