"""Emission traces: log-emissions of the keysteps of a task in single videos, compressed.

A graph keeps a bounded sample of traces.  All order statistics are computed from them, so that
merged graphs give the same numbers as one graph that is mined at once.
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
_Item = TypeVar("_Item")

TIMING_BINS = 20
"""Number of bins of a timing histogram: equal parts of a video."""

# Most traces of a task, and of all tasks: more of them add little, since recognition makes the
# same errors in most videos.
_VIDEOS, _ALL_VIDEOS = 400, 10_000
# Keysteps of a task, and rows times keysteps, beyond which no trace is kept: the cost grows as the
# square of the former, and as the latter.
MOST_KEYSTEPS, _ROWS = 400, 10_000_000
# Most numbers of a trace, and runs that it may always have; longer traces are merged.
_NUMBERS, _RUNS = 40_000, 50
# A log-emission is stored in tenths of a nat, in one byte.
_PARTS, _LEAST = 10, -127
LEAST_EMISSION = _LEAST / _PARTS
"""Least log-emission that a trace stores, in nats."""


class EmissionTrace(NamedTuple):
    """Emission trace of one video: log-emissions of the keysteps of its task, by runs of rows.

    Attributes
    ----------
    rows : shape (M,)
        Number of rows of each run; the rows of a run share their log-emissions.
    emissions : shape (M, n), int8
        Log-emission of each keystep (a log-softmax over the task), in tenths of a nat; equal for
        all keysteps where the rows are unobserved.
    salient : shape (n,), bool
        True for salient keysteps, whose best similarity is in the top decile of the video.
    hop
        Length of a row in seconds.
    """

    rows: Integers
    emissions: NDArray[np.int8]
    salient: NDArray[np.bool_]
    hop: float

    @classmethod
    def of_runs(
        cls, rows: Integers, log_emission: Floats, salient: NDArray[np.bool_], hop: float
    ) -> EmissionTrace:
        """Quantise log-emissions, shape (M, n), to 0.1 nat; merge runs if there are too many."""
        most = max(_RUNS, _NUMBERS // max(1, log_emission.shape[1]))
        starts = np.arange(0, len(rows), -(-len(rows) // most) or 1)
        if len(starts) < len(rows):
            sums = np.add.reduceat(log_emission * rows[:, None], starts)
            rows = np.add.reduceat(rows, starts)
            log_emission = sums / rows[:, None]
        emissions = np.maximum(np.rint(log_emission * _PARTS), _LEAST).astype(np.int8)
        return cls(rows, emissions, salient, hop)

    def log_emission(self) -> Floats:
        """Log-emission of each keystep on each row, in nats, shape (T, n)."""
        return np.repeat(self.emissions.astype(np.float64) / _PARTS, self.rows, axis=0)

    def among(self, places: Sequence[int], size: int) -> EmissionTrace:
        """Extend the trace to a longer list, whose other keysteps get the least log-emission."""
        emissions = np.full((len(self.rows), size), _LEAST, dtype=np.int8)
        emissions[:, places], salient = self.emissions, np.zeros(size, dtype=bool)
        salient[places] = self.salient
        return self._replace(emissions=emissions, salient=salient)

    def margin_timing(self) -> Floats:
        """See :func:`margin_timing`."""
        return margin_timing(self.rows, self.emissions / _PARTS)


def is_traceable(rows: int, keysteps: int) -> bool:
    """Check that a trace of so many rows and keysteps is small enough to be kept."""
    return keysteps <= MOST_KEYSTEPS and rows * keysteps <= _ROWS


def margin_timing(rows: Integers, log_emission: Floats) -> Floats:
    """Timing histogram of a video, weighted by squared margins, shape (n, 20).

    A row counts for its best keystep, with the squared margin over the second best: a high score
    alone is no sign of timing.  The sum over the histogram is the effective number of keysteps
    in the video, estimated by the perplexity of their shares.

    >>> emissions = np.array([[-0.1, -2.1], [-2.1, -0.1]])
    >>> margin_timing(np.array([10, 10]), emissions)[:, [0, 9, 10, 19]].round(1).tolist()
    [[0.1, 0.1, 0.0, 0.0], [0.0, 0.0, 0.1, 0.1]]
    """
    counts = np.zeros((log_emission.shape[1], TIMING_BINS))
    if log_emission.shape[1] < 2:
        return counts
    second, first = np.partition(log_emission, -2, axis=1)[:, -2:].T
    run = np.repeat(np.arange(len(rows)), rows)
    when = np.arange(len(run)) * TIMING_BINS // len(run)
    margins = (first - second)[run] ** 2
    np.add.at(counts, (log_emission.argmax(axis=1)[run], when), margins)
    shares = counts.sum(axis=1) / max(counts.sum(), 1e-9)
    counts *= np.exp(entr(shares).sum()) / max(counts.sum(), 1e-9)
    return counts


@dataclass(frozen=True, eq=False)
class EmissionTraces:
    """Emission traces of a sample of the videos of each task.

    Attributes
    ----------
    tasks
        Traces of each task, by video id.
    population
        Number of videos of each task in the corpus, sampled or not.
    order
        Weight of the listed order, from 0 to 1.
    """

    tasks: Mapping[str, Mapping[str, EmissionTrace]]
    population: Mapping[str, int]
    order: float = 1.0

    def merge(self, other: EmissionTraces) -> EmissionTraces:
        """Add the traces of other videos, and keep the sample that one joint corpus would have."""
        names = sorted({*self.population, *other.population})
        population = {
            task: self.population.get(task, 0) + other.population.get(task, 0) for task in names
        }
        most = videos_each(population.values())
        tasks = {
            task: first_by_hash({**self.tasks.get(task, {}), **other.tasks.get(task, {})}, most)
            for task in names
        }
        return EmissionTraces(tasks, population, min(self.order, other.order))


def videos_each(population: Iterable[int], most: int = _VIDEOS, of_all: int = _ALL_VIDEOS) -> int:
    """Compute the quota of videos of each task: the more tasks there are, the fewer, at least 1.

    >>> videos_each([3, 50, 60], most=40, of_all=33)
    15
    """
    sizes = sorted(population)
    left, tasks = of_all, len(sizes)
    for size in sizes:
        if size * tasks > left:
            return min(most, max(1, left // tasks))
        left, tasks = left - size, tasks - 1
    return most


def first_by_hash(videos: Mapping[str, _Item], most: int) -> dict[str, _Item]:
    """Sample videos by the hashes of their ids: independent of their order and of shards."""
    chosen = sorted(videos, key=lambda video: sha256(video.encode()).digest())[:most]
    return {video: videos[video] for video in sorted(chosen)}


class Sample(Generic[_Item]):
    """Bounded sample of the videos of each task, independent of the order in which they come."""

    def __init__(self, most: int = _VIDEOS, of_all: int = _ALL_VIDEOS) -> None:
        self._limits = most, of_all
        self._items: defaultdict[str, dict[str, _Item]] = defaultdict(dict)
        self._held = 0
        self.population: Counter[str] = Counter()

    def add(self, task: str, video: str, item: _Item) -> None:
        """Add the item of a video; a later thinning may drop it."""
        self._items[task][video] = item
        self.population[task] += 1
        self._held += 1
        # Thinning takes time, so it is done rarely.
        if self._held > 2 * self._limits[1] or len(self._items[task]) > 2 * self._limits[0]:
            self._items = defaultdict(dict, self.chosen())
            self._held = sum(map(len, self._items.values()))

    def chosen(self) -> dict[str, dict[str, _Item]]:
        """Return the sampled items, by task and video."""
        most = videos_each(self.population.values(), *self._limits)
        return {task: first_by_hash(self._items[task], most) for task in sorted(self._items)}
