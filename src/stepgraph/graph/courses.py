"""How single videos go through their tasks: what they say of every keystep, moment by moment.

A graph keeps a bounded number of them.  Whatever is counted on whole videos is counted from these,
so that graphs that are added up give the same numbers as one that is mined at once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
_Kept = TypeVar("_Kept")

TIMING_BINS = 20
"""Parts of a video's length in which keysteps are counted."""

# Videos of a task, and of all tasks, that are kept: more of them tell little more, since what is
# wrong with one is wrong with most.
_VIDEOS, _ALL_VIDEOS = 400, 10_000
# Keysteps of a task, and rows times keysteps, beyond which no video is followed: the cost grows as
# the square of the former, and as the latter.
MOST_KEYSTEPS, _ROWS = 400, 10_000_000
# Numbers that are kept of a video; the moments of a very long one are put together.
_NUMBERS, _MOMENTS = 40_000, 50
# A number is kept as so many parts of a nat, in one byte.
_PARTS, _LEAST = 10, -127
LEAST_HEARD = _LEAST / _PARTS
"""The log of the least probability that is kept of a keystep, in nats."""


class Course(NamedTuple):
    """What one video says of the keysteps of its task.

    Attributes
    ----------
    rows : shape (M,)
        How many rows each moment lasts.
    heard : shape (M, n), int8
        How well each keystep explains it: the log of its probability among those of the task, in
        tenths; the same for all where nothing is said.
    clear : shape (n,), bool
        Which keysteps are spoken of as clearly as the clearest tenth of all that is said.
    hop
        Seconds of a row.
    """

    rows: Integers
    heard: NDArray[np.int8]
    clear: NDArray[np.bool_]
    hop: float

    @classmethod
    def of_moments(
        cls, rows: Integers, log_emission: Floats, clear: NDArray[np.bool_], hop: float
    ) -> Course:
        """Keep what is said, shape (M, n), with so much precision as tells anything."""
        most = max(_MOMENTS, _NUMBERS // max(1, log_emission.shape[1]))
        together = np.arange(0, len(rows), -(-len(rows) // most) or 1)
        if len(together) < len(rows):
            sums = np.add.reduceat(log_emission * rows[:, None], together)
            rows = np.add.reduceat(rows, together)
            log_emission = sums / rows[:, None]
        heard = np.maximum(np.rint(log_emission * _PARTS), _LEAST).astype(np.int8)
        return cls(rows, heard, clear, hop)

    def log_emission(self) -> Floats:
        """What is said on each row, shape (T, n)."""
        return np.repeat(self.heard.astype(np.float64) / _PARTS, self.rows, axis=0)

    def among(self, places: Sequence[int], size: int) -> Course:
        """The same in a longer list, of whose other keysteps nothing is said."""
        heard = np.full((len(self.rows), size), _LEAST, dtype=np.int8)
        heard[:, places], clear = self.heard, np.zeros(size, dtype=bool)
        clear[places] = self.clear
        return self._replace(heard=heard, clear=clear)

    def clear_times(self) -> Floats:
        """See :func:`clear_times`."""
        return clear_times(self.rows, self.heard / _PARTS)


def can_follow(rows: int, keysteps: int) -> bool:
    """Whether the course of so long a video through so long a list can be kept."""
    return keysteps <= MOST_KEYSTEPS and rows * keysteps <= _ROWS


def clear_times(rows: Integers, log_emission: Floats) -> Floats:
    """When keysteps are said clearly: where the best leads the second, squared, shape (n, 20).

    A row that leads clearly tells time; one that only scores high does not.  A video counts once
    for each keystep that it speaks of; how many these are, is told by how evenly it speaks (the
    perplexity of their shares).

    >>> said = np.array([[-0.1, -2.1], [-2.1, -0.1]])
    >>> clear_times(np.array([10, 10]), said)[:, [0, 9, 10, 19]].round(1).tolist()
    [[0.1, 0.1, 0.0, 0.0], [0.0, 0.0, 0.1, 0.1]]
    """
    counts = np.zeros((log_emission.shape[1], TIMING_BINS))
    if log_emission.shape[1] < 2:
        return counts
    second, first = np.partition(log_emission, -2, axis=1)[:, -2:].T
    moment = np.repeat(np.arange(len(rows)), rows)
    when = np.arange(len(moment)) * TIMING_BINS // len(moment)
    clear = (first - second)[moment] ** 2
    np.add.at(counts, (log_emission.argmax(axis=1)[moment], when), clear)
    shares = counts.sum(axis=1) / max(counts.sum(), 1e-9)
    counts *= np.exp(entr(shares).sum()) / max(counts.sum(), 1e-9)
    return counts


@dataclass(frozen=True, eq=False)
class Courses:
    """Courses of some videos of each task.

    Attributes
    ----------
    tasks
        Of each task its videos, by their ids.
    met
        How many videos of each task there were, kept or not.
    order
        How far the written order is believed, from 0 to 1.
    """

    tasks: Mapping[str, Mapping[str, Course]]
    met: Mapping[str, int]
    order: float = 1.0

    def merge(self, other: Courses) -> Courses:
        """Add those of other videos, and keep what one corpus of all of them would have kept."""
        names = sorted({*self.met, *other.met})
        met = {task: self.met.get(task, 0) + other.met.get(task, 0) for task in names}
        most = videos_each(met.values())
        tasks = {
            task: first_by_hash({**self.tasks.get(task, {}), **other.tasks.get(task, {})}, most)
            for task in names
        }
        return Courses(tasks, met, min(self.order, other.order))


def videos_each(met: Iterable[int], most: int = _VIDEOS, of_all: int = _ALL_VIDEOS) -> int:
    """Videos that every task may keep: the more tasks there are, the fewer, but at least one.

    >>> videos_each([3, 50, 60], most=40, of_all=33)
    15
    """
    sizes = sorted(met)
    left, tasks = of_all, len(sizes)
    for size in sizes:
        if size * tasks > left:
            return min(most, max(1, left // tasks))
        left, tasks = left - size, tasks - 1
    return most


def first_by_hash(videos: Mapping[str, _Kept], most: int) -> dict[str, _Kept]:
    """Keep the same videos in whatever order, and in whatever parts, they came."""
    chosen = sorted(videos, key=lambda video: sha256(video.encode()).digest())[:most]
    return {video: videos[video] for video in sorted(chosen)}


class Sample(Generic[_Kept]):
    """Of each task a bounded number of videos, the same ones in whatever order they come."""

    def __init__(self, most: int = _VIDEOS, of_all: int = _ALL_VIDEOS) -> None:
        self._limits = most, of_all
        self._kept: defaultdict[str, dict[str, _Kept]] = defaultdict(dict)
        self._held = 0
        self.met: Counter[str] = Counter()

    def add(self, task: str, video: str, kept: _Kept) -> None:
        """Keep something of a video for now."""
        self._kept[task][video] = kept
        self.met[task] += 1
        self._held += 1
        # Thinned out now and then only, since that takes time.
        if self._held > 2 * self._limits[1] or len(self._kept[task]) > 2 * self._limits[0]:
            self._kept = defaultdict(dict, self.chosen())
            self._held = sum(map(len, self._kept.values()))

    def chosen(self) -> dict[str, dict[str, _Kept]]:
        """What is kept in the end, by task and video."""
        most = videos_each(self.met.values(), *self._limits)
        return {task: first_by_hash(self._kept[task], most) for task in sorted(self._kept)}
