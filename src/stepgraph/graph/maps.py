"""Procedure of a task: its steps and their successors, with the credible interval of each share.

Drawings, tables and exports are made from it.  It is derived from the order statistics of a task,
or from the transitions of neighbouring rows where a graph has no emission traces, such as one
that is mined from stored scores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stepgraph.core import Vocabulary
from stepgraph.graph.layers import END as END
from stepgraph.graph.layers import START as START
from stepgraph.graph.layers import Layers
from stepgraph.graph.order import partial_order
from stepgraph.graph.parameters import listed_tasks
from stepgraph.graph.shares import NEXT, SHOWN, shares_of
from stepgraph.graph.task_graph import TaskGraph
from stepgraph.graph.traces import TIMING_BINS

# Least share of a succession that was never counted, and that the listed order predicts.
_EXPECTED = 0.1


class ProcedureStep(NamedTuple):
    """A keystep of a task, with its frequency, position and duration.

    Attributes
    ----------
    videos
        Number of the task's videos in which it is salient.
    share, low, high
        Expected share of the task's videos that show it, with its 90 % interval.
    place
        Mean position in a video, from 0 to 1.
    seconds
        Mean duration in the videos that show it, in seconds.
    """

    keystep: int
    videos: int
    share: float
    low: float
    high: float
    place: float
    seconds: float

    @property
    def optional(self) -> bool:
        """True where fewer than half of the videos are expected to show it."""
        return self.share < 0.5


class Arrow(NamedTuple):
    """Succession: from a keystep or ``START`` to a keystep or ``END``.

    Attributes
    ----------
    seen
        Number of times that ``second`` followed ``first``, in recognised videos or rows.
    share, low, high
        Expected share among the successors of ``first``, with its 90 % interval.
    """

    first: int
    second: int
    seen: int
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class TaskMap:
    """Procedure of a task: its steps in the order in which they are done, and successions.

    Attributes
    ----------
    videos
        Number of recognised videos of the task; 0 where all counts are of neighbouring rows.
    arrows
        Successions, the largest share first.
    """

    task: str
    videos: int
    steps: tuple[ProcedureStep, ...]
    arrows: tuple[Arrow, ...]
    vocabulary: Vocabulary

    def arrows_from(self, keystep: int) -> list[Arrow]:
        """Successions from a keystep, the most probable first."""
        return [arrow for arrow in self.arrows if arrow.first == keystep]


def task_map(graph: TaskGraph, task: str, members: Sequence[int] | None = None) -> TaskMap:
    """Derive the procedure of a task; ``members`` are its keysteps if not those listed."""
    if graph.layers is not None and graph.layers.videos.get(task):
        return _of_videos(graph.layers, task)
    wanted = listed_tasks(graph.vocabulary)[task] if members is None else members
    return _of_rows(graph, task, list(wanted))


def _of_videos(layers: Layers, task: str) -> TaskMap:
    layer = layers.of_task(task)
    steps = []
    for keystep in layer.order():
        place = layer.keysteps.index(keystep)
        salient, shown = int(layer.salient[place]), max(1, int(layer.shown[place]))
        # That a keystep is listed is prior evidence that it is done, as the listed order is.
        [share, _] = shares_of(SHOWN.weigh((salient, layer.videos - salient), (1.0, 0.0)))
        where, seconds = float(layer.place[place]), float(layer.seconds[place] / shown)
        steps.append(ProcedureStep(keystep, salient, *share, where, seconds))
    arrows = [Arrow(START, *one) for one in layers.first_of(task)]
    for keystep in layer.keysteps:
        following = layers.next_after(keystep, len(layer.keysteps), tasks=[task])
        arrows += [Arrow(keystep, *one) for one in following]
    known = [one for one in arrows if one.seen or one.share >= _EXPECTED]
    return TaskMap(task, layer.videos, tuple(steps), _strongest_first(known), layers.vocabulary)


def _of_rows(graph: TaskGraph, task: str, members: list[int]) -> TaskMap:
    """Derive it from transitions of neighbouring rows, without video counts, start and end."""
    between = graph.counts_between(members)
    np.fill_diagonal(between, 0)
    earlier = [one.bit_count() for one in partial_order(between, 0.5)]
    ranked = sorted(zip(graph.mean_times[members], earlier, members, strict=True))
    steps = []
    for at, (time, _, keystep) in enumerate(ranked):
        place = (time if math.isfinite(time) else TIMING_BINS * at / len(ranked)) + 0.5
        steps.append(ProcedureStep(keystep, 0, 1.0, 0.0, 1.0, min(place / TIMING_BINS, 1.0), 0.0))
    arrows = []
    for first, counts in zip(members, between, strict=True):
        shares = shares_of(NEXT.weigh(counts, np.zeros(len(counts))))
        found = zip(members, counts.tolist(), shares, strict=True)
        arrows += [Arrow(first, second, seen, *share) for second, seen, share in found if seen]
    return TaskMap(task, 0, tuple(steps), _strongest_first(arrows), graph.vocabulary)


def _strongest_first(arrows: list[Arrow]) -> tuple[Arrow, ...]:
    return tuple(sorted(arrows, key=lambda one: (-one.share, one.first, one.second)))
