"""What whole videos tell about order: which keystep is done before which, and which next.

Neighbouring seconds of preliminary labels, which the transitions count, carry what belongs
together rather than what comes first: people announce, recall and repeat.  Here the courses of
whole videos are recognised, each as one of its task, with what the corpus tells about times and
transitions and without the written order.  So a count is one of labels that were found, not of
truth; what it is worth is said by :mod:`stepgraph.graph.shares`, and the written order, where it
is believed, comes in there.
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
from stepgraph.graph.courses import TIMING_BINS, Course, Courses, Floats, Integers
from stepgraph.graph.habits import listed_tasks
from stepgraph.graph.order import linear_order
from stepgraph.graph.shares import CREDIBLE, NEXT, PRECEDENCE, shares_of

STAY = 0.9
"""Probability that a keystep goes on for another row."""
START, END = -1, -2
"""Stand for the beginning and the end of a video where a keystep could stand."""
IMAGINED_VIDEOS, IMAGINED_VOTES = 10.0, 100.0
"""Videos, and transitions, that are imagined beside those of the corpus."""


class Precedence(NamedTuple):
    """How often one keystep is done before another.

    Attributes
    ----------
    before, after
        Recognised videos in which it is done before the other, or after it, each as far as both
        are certain to be done at all.
    share, low, high
        Expected share of the former among true ones, and between what it lies with a probability
        of 90 %; the written order counts, where it is believed.
    tasks
        Tasks that agree about it.
    """

    before: float
    after: float
    share: float
    low: float
    high: float
    tasks: tuple[str, ...]


class Next(NamedTuple):
    """What comes next after a keystep: another one, or ``END``; how often, and its share."""

    keystep: int
    seen: int
    share: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Layer:
    """Counts of the recognised videos of one task.

    Attributes
    ----------
    keysteps
        Of the task, in their written order; all arrays have this order.
    videos
        How many videos were counted.
    clear, shown, first : shape (n,)
        In how many of them a keystep is spoken of clearly, is done at all, is done first.
    seconds : shape (n,)
        How long it is done, all videos together.
    place : shape (n,)
        Where in a video it is done in the mean, from 0 to 1.
    before : shape (n, n)
        In how many videos one is done before another, as far as both are certain to be done.
    following : shape (n, n + 1)
        How often one was the next after another; in the last column, how often nothing was.
    ordered
        How far the written order is believed.
    """

    keysteps: tuple[int, ...]
    videos: int
    clear: Integers
    shown: Integers
    first: Integers
    seconds: Floats
    place: Floats
    before: Floats
    following: Integers
    ordered: float

    def precedence(self) -> Floats:
        """Expected share of videos in which one keystep is done before another, shape (n, n)."""
        ahead = np.triu(np.full_like(self.before, self.ordered), 1)
        before, after = PRECEDENCE.weigh([self.before, self.before.T], [ahead, ahead.T])
        return np.asarray(before / (before + after))

    def order(self) -> list[int]:
        """Keysteps in the order in which they are done, as far as they have one."""
        return [self.keysteps[place] for place in linear_order(self.precedence())]

    def places(self) -> dict[int, tuple[float, float]]:
        """Between which places of the order each keystep is done in nine of ten videos.

        As many come before it as precede it, each with its own probability.
        """
        before = self.precedence()
        np.fill_diagonal(before, 0.0)
        middle = 1 + before.sum(axis=0)
        spread = ndtri((1 + CREDIBLE) / 2) * np.sqrt((before * (1 - before)).sum(axis=0))
        low, high = np.clip([middle - spread, middle + spread], 1, len(before)).round()
        ends = zip(low.tolist(), high.tolist(), strict=True)
        return dict(zip(self.keysteps, ends, strict=True))

    def next_weights(self, place: int) -> Floats:
        """How far the written order speaks for each keystep, and the end, to come next, (n + 1,).

        In full for the one below, half as much for the one after that, and so on: some are left
        out.
        """
        ahead = np.arange(len(self.keysteps) + 1) - place
        return np.where(ahead > 0, self.ordered * 0.5 ** (ahead - 1.0), 0.0)


def count_layer(
    keysteps: tuple[int, ...], courses: Mapping[str, Course], counts: Integers, order: float
) -> Layer:
    """Recognise the courses of a task twice, and count what is done.

    The transitions of neighbouring rows hardly know a direction; those that are recognised with
    them do, and are what the second pass takes in their place.

    Parameters
    ----------
    counts : shape (n, n)
        Transitions of neighbouring rows.
    """
    size = len(keysteps)
    due = _due(courses, size)
    sums = _recognise(courses, due, _recognise(courses, due, counts).following[:, :-1])
    place = sums.middle / np.maximum(sums.certain, 1e-9)
    counted = sums.clear, sums.shown, sums.first, sums.seconds, place, sums.before, sums.following
    return Layer(keysteps, len(courses), *counted, order)


def _due(courses: Mapping[str, Course], size: int) -> Floats:
    """When keysteps are due, as the videos of a task tell, (n, 20)."""
    timing = sum((one.clear_times() for one in courses.values()), np.zeros((size, TIMING_BINS)))
    return log_due(IMAGINED_VIDEOS / TIMING_BINS, timing)


def _recognise(courses: Mapping[str, Course], due: Floats, transitions: Integers) -> _Sums:
    """Tell which keystep is done on each row of each video, and add that up."""
    sums = _Sums(len(due))
    for video, probability in _followed(courses, due, transitions):
        sums.add(probability, courses[video])
    return sums


def _followed(
    courses: Mapping[str, Course], due: Floats, transitions: Integers
) -> Iterator[tuple[str, Floats]]:
    """How probable each keystep is on each row of each video, (T, n)."""
    size = len(due)
    imagined = np.full((size, size), IMAGINED_VOTES / max(1, size - 1))
    chain = blend_transitions(transitions, imagined)
    for video, course in sorted(courses.items()):
        rows = course.log_emission()
        if len(rows):
            when = np.arange(len(rows)) * TIMING_BINS // len(rows)
            yield video, marginals(rows + due[:, when].T, chain)


class _Sums:
    """What is added up over the videos of a task of ``size`` keysteps."""

    def __init__(self, size: int) -> None:
        self.clear, self.shown, self.first = np.zeros((3, size), dtype=np.int64)
        self.seconds, self.middle, self.certain = np.zeros((3, size))
        self.before = np.zeros((size, size))
        self.following = np.zeros((size, size + 1), dtype=np.int64)

    def add(self, probability: Floats, course: Course) -> None:
        """Add a video whose rows show each keystep with some probability, shape (T, n)."""
        labels = probability.argmax(axis=1)
        sequence = without_repetitions(labels)
        rows = np.bincount(labels, minlength=len(self.clear))
        self.clear += course.clear
        self.shown += rows > 0
        self.first[sequence[0]] += 1
        self.seconds += rows * course.hop
        np.add.at(self.following, (sequence, [*sequence[1:], -1]), 1)
        certain, share = probability.max(axis=0), probability / probability.sum(axis=0)
        self.certain += certain
        self.middle += certain * (((np.arange(len(share)) + 0.5) / len(share)) @ share)
        # Half of a row is before the row itself.
        before = (np.cumsum(share, axis=0) - share / 2).T @ share
        np.fill_diagonal(before, 0.0)
        self.before += np.outer(certain, certain) * before


def log_due(imagined: Floats | float, counted: Floats) -> Floats:
    """Log of how much more a keystep is due in each twentieth than in the mean, shape (n, 20)."""
    times = imagined + gaussian_filter1d(counted, 1.0, axis=1, mode="nearest")
    ratio = TIMING_BINS * times / times.sum(axis=1, keepdims=True)
    return np.asarray(np.log(np.maximum(ratio, 1e-300)))


def blend_transitions(counts: Integers, imagined: Floats, stay: float = STAY) -> Floats:
    """Probabilities between keysteps: those counted, those imagined, and that of going on."""
    if len(counts) == 1:
        return np.ones((1, 1))
    votes: Floats = counts + imagined
    np.fill_diagonal(votes, 0)
    votes *= (1 - stay) / votes.sum(axis=1, keepdims=True)
    np.fill_diagonal(votes, stay)
    return votes


@dataclass(frozen=True, eq=False)
class Layers:
    """Counts of the recognised videos of every task, each made when it is first asked for.

    Attributes
    ----------
    transitions
        Gives the counts of neighbouring rows between some keysteps.
    """

    vocabulary: Vocabulary
    courses: Courses
    transitions: Callable[[tuple[int, ...]], Integers]
    _made: dict[str, Layer] = field(default_factory=dict, repr=False)

    @property
    def videos(self) -> dict[str, int]:
        """How many videos of each task are counted."""
        return {task: len(videos) for task, videos in self.courses.tasks.items()}

    def of_task(self, task: str) -> Layer:
        """Count the videos of one task."""
        if task not in self._made:
            keysteps = listed_tasks(self.vocabulary)[task]
            order = self.courses.order if any(self.vocabulary.tasks.values()) else 0.0
            videos, counts = self.courses.tasks[task], self.transitions(keysteps)
            self._made[task] = count_layer(keysteps, videos, counts, order)
        return self._made[task]

    def sequences(self, task: str) -> dict[str, list[int]]:
        """What is done in each video of a task, in which order, as it was recognised."""
        layer, courses = self.of_task(task), self.courses.tasks[task]
        followed = _followed(courses, _due(courses, len(layer.keysteps)), layer.following[:, :-1])
        return {
            video: [layer.keysteps[one] for one in without_repetitions(rows.argmax(axis=1))]
            for video, rows in followed
        }

    def written(self, task: str) -> int:
        """How many executions in the written order say as much as it is worth, where believed.

        Half as many as were recognised, as everywhere (:meth:`.Trust.weigh`).
        """
        layer = self.of_task(task)
        return math.ceil(layer.ordered * layer.videos / 2)

    def _showing(self, *keysteps: int) -> Iterable[str]:
        listed = listed_tasks(self.vocabulary)
        return [task for task in self.courses.tasks if {*keysteps} <= {*listed[task]}]

    def precedences(
        self, first: int, second: int, tasks: Iterable[str] | None = None
    ) -> list[Precedence]:
        """Say whether one keystep is done before another; the most frequent answer first.

        Tasks that agree are put together; where they do not, there are two answers.
        """
        agree: dict[bool, list[tuple[str, Floats]]] = {}
        for task in self._showing(first, second) if tasks is None else tasks:
            layer = self.of_task(task)
            one, other = layer.keysteps.index(first), layer.keysteps.index(second)
            order = (layer.ordered * (one < other), layer.ordered * (one > other))
            found = np.array([(layer.before[one, other], layer.before[other, one]), order])
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

    def next_after(
        self, keystep: int, limit: int = 4, *, tasks: Iterable[str] | None = None
    ) -> list[Next]:
        """Keysteps that most probably come next, in all tasks that have this one or in some."""
        among = list(self._showing(keystep) if tasks is None else tasks)
        # The end is the last place, behind those of the vocabulary.
        counts, order = np.zeros((2, len(self.vocabulary) + 1))
        possible = np.zeros(len(counts), dtype=bool)
        for layer in map(self.of_task, among):
            members, place = [*layer.keysteps, -1], layer.keysteps.index(keystep)
            counts[members] += layer.following[place]
            order[members] += layer.next_weights(place) / len(among)
            possible[members] = True
        possible[keystep] = False
        [others] = np.nonzero(possible)
        names = np.append(np.arange(len(self.vocabulary)), END)[others]
        return _ranked(names, counts[others], order[others])[:limit]

    def first_of(self, task: str) -> list[Next]:
        """Keysteps with which a task most probably begins: those that come before all others.

        What is said first in a video often announces what will be done last, so that how often a
        keystep was recognised as the first is only told, and counts nothing.
        """
        layer = self.of_task(task)
        chances = np.exp(np.log(layer.precedence()).sum(axis=1))
        counts = layer.videos * chances / chances.sum()
        found = _ranked(np.array(layer.keysteps), counts, np.zeros(len(counts)))
        seen = dict(zip(layer.keysteps, layer.first.tolist(), strict=True))
        return [one._replace(seen=seen[one.keystep]) for one in found]


def _ranked(keysteps: NDArray[np.intp], counts: NDArray[Any], order: Floats) -> list[Next]:
    """Possibilities, the most probable first; of equals, the one that comes first."""
    shares = shares_of(NEXT.weigh(counts, order))
    found = zip(keysteps.tolist(), counts.tolist(), shares, strict=True)
    ranked = [Next(keystep, int(seen), *share) for keystep, seen, share in found]
    return sorted(ranked, key=lambda one: -one.share)
