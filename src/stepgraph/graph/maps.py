"""How a task is done: its steps, what comes next after each, and how sure that is.

This is what pictures, tables and files for other programs are made of.  It is read from the
recognised videos of a task; a graph that holds none, such as one mined from stored scores, has
only its transitions of neighbouring rows to tell from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from stepgraph.core import Vocabulary
from stepgraph.graph.habits import listed_tasks
from stepgraph.graph.layers import CREDIBLE, Layers
from stepgraph.graph.order import partial_order
from stepgraph.graph.task_graph import TIMING_BINS, TaskGraph

START, END = -1, -2


class Step(NamedTuple):
    """A keystep of a task.

    Attributes
    ----------
    videos
        How many of the task's videos show it.
    share, low, high
        Expected share of the task's videos that show it, with its 90 % interval.
    place
        Where in a video it is done in the mean, from 0 to 1.
    seconds
        How long it takes in the mean where it is shown.
    """

    keystep: int
    videos: int
    share: float
    low: float
    high: float
    place: float
    seconds: float


class Arrow(NamedTuple):
    """What comes next: from a keystep or ``START`` to a keystep or ``END``.

    Attributes
    ----------
    count
        How often the one was next after the other in recognised videos.
    share, low, high
        Expected share of all that comes next after ``first``, with its 90 % interval.
    """

    first: int
    second: int
    count: int  # type: ignore[assignment]  # a field hides the method of tuples
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class TaskMap:
    """How a task is done: its steps in the order in which they are done, and what comes next.

    Attributes
    ----------
    videos
        How many videos of the task were recognised; 0 where all counts are of neighbouring rows.
    arrows
        The strongest first.
    """

    task: str
    videos: int
    steps: tuple[Step, ...]
    arrows: tuple[Arrow, ...]
    vocabulary: Vocabulary


def task_map(graph: TaskGraph, task: str, members: Sequence[int] | None = None) -> TaskMap:
    """Read from a graph how a task is done; ``members`` are its keysteps if not those listed."""
    wanted = listed_tasks(graph.vocabulary)[task] if members is None else members
    keysteps = list(dict.fromkeys(wanted))
    if graph.layers is None or not graph.layers.videos.get(task):
        return _of_rows(graph, task, keysteps)
    return _of_videos(graph, graph.layers, task, keysteps)


def _of_videos(graph: TaskGraph, layers: Layers, task: str, members: list[int]) -> TaskMap:
    videos, order = layers.videos[task], layers.order(members)
    places = np.minimum((graph.mean_times + 0.5) / TIMING_BINS, 1.0)
    steps = []
    for keystep in order:
        shown = min(int(layers.shown[keystep]), videos)  # other tasks may show it, too
        seconds = float(layers.rows[keystep] / max(1, layers.shown[keystep]))
        chance = _share(shown, videos, 0.5, 2.0)
        steps.append(Step(keystep, shown, *chance, float(places[keystep]), seconds))
    counts = _between(layers.following[members][:, members].toarray(), members)
    counts |= {(START, one): int(layers.first[one]) for one in members}
    counts |= {(one, END): int(layers.last[one]) for one in members}
    return TaskMap(task, videos, tuple(steps), _arrows(counts), graph.vocabulary)


def _of_rows(graph: TaskGraph, task: str, members: list[int]) -> TaskMap:
    """From transitions of neighbouring rows, which tell neither how many videos nor the ends."""
    between = graph.counts_between(members)
    earlier = [one.bit_count() for one in partial_order(between, 0.5)]
    ranked = sorted(zip(graph.mean_times[members], earlier, members, strict=True))
    steps = []
    for at, (time, _, keystep) in enumerate(ranked):
        place = (time if math.isfinite(time) else TIMING_BINS * at / len(ranked)) + 0.5
        steps.append(Step(keystep, 0, 1.0, 0.0, 1.0, min(place / TIMING_BINS, 1.0), 0.0))
    arrows = _arrows(_between(between, members))
    return TaskMap(task, 0, tuple(steps), arrows, graph.vocabulary)


def _between(counts: NDArray[np.int64], members: list[int]) -> dict[tuple[int, int], int]:
    """Counts by the two keysteps, without those of one with itself."""
    return {
        (members[first], members[second]): int(counts[first, second])
        for first, second in np.argwhere(counts)
        if first != second
    }


def _arrows(counts: dict[tuple[int, int], int]) -> tuple[Arrow, ...]:
    """Arrows that were seen; what comes next has one imagined sighting, spread over all."""
    totals: dict[int, int] = {}
    for (first, _), count in counts.items():
        totals[first] = totals.get(first, 0) + count
    size = len(totals) + 1
    found = [
        Arrow(first, second, count, *_share(count, totals[first], 1 / size, 1.0))
        for (first, second), count in counts.items()
        if count
    ]
    return tuple(sorted(found, key=lambda arrow: (-arrow.count, arrow.first, arrow.second)))


def _share(count: int, total: int, imagined: float, weight: float) -> tuple[float, float, float]:
    """Expected share and its interval, with ``weight`` imagined cases beside the counted."""
    one = count + imagined * weight
    other = total - count + (1 - imagined) * weight
    low, high = betaincinv(one, other, [(1 - CREDIBLE) / 2, (1 + CREDIBLE) / 2])
    return one / (one + other), float(low), float(high)
