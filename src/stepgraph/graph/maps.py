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
from stepgraph.graph.order import partial_order
from stepgraph.graph.order_statistics import END as END
from stepgraph.graph.order_statistics import START as START
from stepgraph.graph.order_statistics import TaskStatistics
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
    position
        Mean position in a video, from 0 to 1.
    seconds
        Mean duration in the videos that show it, in seconds.
    """

    keystep: int
    videos: int
    share: float
    low: float
    high: float
    position: float
    seconds: float

    @property
    def optional(self) -> bool:
        """True where fewer than half of the videos are expected to show it."""
        return self.share < 0.5


class Succession(NamedTuple):
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
class Procedure:
    """Procedure of a task: its steps in the order in which they are done, and successions.

    Attributes
    ----------
    videos
        Number of recognised videos of the task; 0 where all counts are of neighbouring rows.
    successions
        Successions, the largest share first.
    """

    task: str
    videos: int
    steps: tuple[ProcedureStep, ...]
    successions: tuple[Succession, ...]
    vocabulary: Vocabulary

    def successions_from(self, keystep: int) -> list[Succession]:
        """Successions from a keystep, the most probable first."""
        return [succession for succession in self.successions if succession.first == keystep]


def procedure_of(graph: TaskGraph, task: str, members: Sequence[int] | None = None) -> Procedure:
    """Derive the procedure of a task; ``members`` are its keysteps if not those listed."""
    if graph.statistics is not None and graph.statistics.videos.get(task):
        return _of_videos(graph.statistics, task)
    wanted = listed_tasks(graph.vocabulary)[task] if members is None else members
    return _of_rows(graph, task, list(wanted))


def _of_videos(statistics: TaskStatistics, task: str) -> Procedure:
    counted = statistics.of_task(task)
    steps = []
    for keystep in counted.order():
        place = counted.keysteps.index(keystep)
        salient, shown = int(counted.salient[place]), max(1, int(counted.shown[place]))
        # That a keystep is listed is a prior reason that it is done, as the listed order is.
        [share, _] = shares_of(SHOWN.weigh((salient, counted.videos - salient), (1.0, 0.0)))
        where, seconds = float(counted.position[place]), float(counted.seconds[place] / shown)
        steps.append(ProcedureStep(keystep, salient, *share, where, seconds))
    successions = [Succession(START, *one) for one in statistics.first_of(task)]
    for keystep in counted.keysteps:
        following = statistics.successors_of(keystep, len(counted.keysteps), tasks=[task])
        successions += [Succession(keystep, *one) for one in following]
    shown_ones = [one for one in successions if one.seen or one.share >= _EXPECTED]
    return Procedure(
        task, counted.videos, tuple(steps), _strongest_first(shown_ones), statistics.vocabulary
    )


def _of_rows(graph: TaskGraph, task: str, members: list[int]) -> Procedure:
    """Derive it from transitions of neighbouring rows, without video counts, start and end."""
    between = graph.counts_between(members)
    np.fill_diagonal(between, 0)
    earlier = [one.bit_count() for one in partial_order(between, 0.5)]
    ranked = sorted(zip(graph.mean_times[members], earlier, members, strict=True))
    steps = []
    for at, (time, _, keystep) in enumerate(ranked):
        place = (time if math.isfinite(time) else TIMING_BINS * at / len(ranked)) + 0.5
        steps.append(ProcedureStep(keystep, 0, 1.0, 0.0, 1.0, min(place / TIMING_BINS, 1.0), 0.0))
    successions = []
    for first, counts in zip(members, between, strict=True):
        shares = shares_of(NEXT.weigh(counts, np.zeros(len(counts))))
        found = zip(members, counts.tolist(), shares, strict=True)
        successions += [
            Succession(first, second, seen, *share) for second, seen, share in found if seen
        ]
    return Procedure(task, 0, tuple(steps), _strongest_first(successions), graph.vocabulary)


def _strongest_first(successions: list[Succession]) -> tuple[Succession, ...]:
    return tuple(sorted(successions, key=lambda one: (-one.share, one.first, one.second)))
