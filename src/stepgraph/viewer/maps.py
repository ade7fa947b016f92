"""Norms of tasks for the page: from the mined graph, or from the results themselves."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import Segment
from stepgraph.export import drawing
from stepgraph.export.layout import lay_out
from stepgraph.export.maps import of_names
from stepgraph.graph.comparing import Norm, deviations
from stepgraph.graph.maps import END, START, Procedure, ProcedureStep, Succession
from stepgraph.graph.shares import NEXT, PRECEDENCE, SHOWN, Share, shares_of, shortest_intervals

NO_TASK = "all videos"
"""Name of the group of videos without a task."""

Line = Mapping[str, Any]
"""Summary of a video on the overview: see :func:`stepgraph.viewer.pages.summary`."""

# Limit on the keysteps of a task: a larger picture is unreadable, and its pairs take long.
_MOST_KEYSTEPS = 300


def task_of(line: Line) -> str:
    """Return the task that a video is grouped under."""
    return line["task"] or NO_TASK


def norms_of(lines: Iterable[Line], mined: Mapping[str, Norm]) -> dict[str, Norm]:
    """Compute the norm of each task of some videos, the task of most videos first."""
    groups = defaultdict(list)
    for line in lines:
        groups[task_of(line)].append(line)
    ranked = sorted(groups.items(), key=lambda one: (-len(one[1]), one[0]))
    return {task: mined.get(task) or norm_in(task, some) for task, some in ranked}


def norm_in(task: str, lines: Sequence[Line]) -> Norm:
    """Compute the norm of a task from the recognised steps of its videos."""
    often = Counter(
        chain.from_iterable({step[2]: None for step in line["steps"]} for line in lines)
    )
    names = sorted(often, key=lambda name: -often[name])[:_MOST_KEYSTEPS]
    at = {name: number for number, name in enumerate(names)}
    size = len(names)
    shown = np.array([often[name] for name in names])
    seconds, where, done = [0.0] * size, [0.0] * size, [0] * size
    follows = Counter[tuple[int, int]]()
    before = np.zeros((size, size), dtype=np.int64)
    earlier = np.triu(np.ones_like(before), 1)
    for line in lines:
        trace, length = [], max(line["duration"], 1e-9)
        for start, end, name, _ in line["steps"]:
            if (one := at.get(name)) is not None:
                trace.append(one)
                seconds[one] += end - start
                done[one] += 1
                where[one] += (start + end) / 2 / length
        # One place more than there are keysteps stands for the start and for the end.
        follows.update(pairwise([size, *trace, size] if trace else []))
        begun = np.array([*dict.fromkeys(trace)], dtype=np.intp)
        before[begun[:, None], begun] += earlier[: len(begun), : len(begun)]
    often_done = np.maximum(done, 1)
    place = np.array(where) / often_done
    length_of = np.array(seconds) / np.maximum(shown, 1)
    steps = tuple(
        _step(int(one), len(lines), shown, place, length_of)
        for one in np.argsort(place, kind="stable")
    )
    arrows = sorted(
        _arrows(_table(follows, size + 1)), key=lambda one: (-one.share, one.first, one.second)
    )
    procedure = Procedure(task, len(lines), steps, tuple(arrows), of_names(names))
    times = dict(enumerate((often_done / np.maximum(shown, 1)).tolist()))
    return Norm(procedure, _before(before), times)


def _table(counts: Mapping[tuple[int, int], int], size: int) -> NDArray[np.int64]:
    """Count each pair of different keysteps, as a square table."""
    table = np.zeros((size, size), dtype=np.int64)
    for (first, second), count in counts.items():
        table[first, second] = count * (first != second)
    return table


def _step(one: int, videos: int, shown: Any, where: Any, seconds: Any) -> ProcedureStep:
    salient = int(shown[one])
    [share, _] = shares_of(SHOWN.weigh((salient, videos - salient), (0.0, 0.0)))
    return ProcedureStep(one, salient, *share, min(1.0, float(where[one])), float(seconds[one]))


def _arrows(following: Any) -> Iterable[Succession]:
    size = len(following) - 1
    for first, counts in enumerate(following):
        [others] = np.nonzero(counts)
        shares = (
            shares_of(NEXT.weigh(counts[others], np.zeros(len(others)))) if len(others) else []
        )
        for other, share in zip(others.tolist(), shares, strict=True):
            ends = (START if first == size else first, END if other == size else other)
            yield Succession(*ends, int(counts[other]), *share)


def _before(before: NDArray[np.int64]) -> dict[tuple[int, int], Share]:
    """Return pairs whose first keystep precedes the second, with 90 % intervals above one half."""
    pairs = np.argwhere(before > before.T)
    if not len(pairs):
        return {}
    first, second = pairs.T
    # In few videos most pairs have equal counts, and an interval takes long: compute each once.
    counts, place = np.unique(
        [before[first, second], before[second, first]], axis=1, return_inverse=True
    )
    one, other = PRECEDENCE.weigh(counts, np.zeros(counts.shape))
    low, high = shortest_intervals(one, other)
    shares = [Share(*each) for each in np.array([one / (one + other), low, high]).T.tolist()]
    found = zip(pairs.tolist(), place.ravel().tolist(), strict=True)
    return {(a, b): shares[at] for (a, b), at in found if shares[at].low > 0.5}


def deviation_rows(norm: Norm, line: Line) -> list[tuple[float | None, str, str, str]]:
    """List the deviations of a video from the norm: time, kind, text, and reason."""
    if not norm.procedure.videos:
        return []  # transitions between neighbouring rows give no norm for whole videos
    place = {name: at for at, name in enumerate(norm.procedure.vocabulary.keysteps)}
    steps = [Segment(s, e, place[name]) for s, e, name, *_ in line["steps"] if name in place]
    found = deviations(norm, steps)
    return [(one.start, one.kind, one.what, one.why) for one in found]


def picture(norm: Norm) -> dict[str, Any]:
    """Convert the procedure of a task to boxes and arrows for the page."""
    found, layout = norm.procedure, lay_out(norm.procedure)
    most = max([1, *(edge.arrow.seen for edge in layout.edges)])
    steps = {step.keystep: step for step in found.steps}
    nodes, edges = [], []
    for node in layout.nodes:
        step = steps.get(node.keystep)
        nodes.append(
            {
                "name": drawing.name_of(found, node.keystep),
                "end": node.keystep < 0,
                "optional": step is not None and step.optional,
                "description": drawing.describe_step(found, step) if step else "",
                "box": [round(one, 1) for one in (node.x, node.y, node.width, node.height)],
                "notes": found.vocabulary.notes.get(node.keystep, ()),
                "lines": node.lines,
                "note": node.note,
            }
        )
    for edge in layout.edges:
        line, tip, wide, beside = drawing.drawn(edge, most)
        seen = edge.arrow.seen
        edges.append(
            {
                "kind": drawing.kind_of(edge.arrow) + " back" * edge.back,
                "ends": [drawing.name_of(found, end) for end in edge.arrow[:2]],
                "line": line,
                "tip": tip,
                "wide": round(wide, 1),
                "share": f"{100 * edge.arrow.share:.0f}\u00a0%" if seen else "",
                "beside": [round(one, 1) for one in beside],
                "description": drawing.describe_succession(edge.arrow, found),
            }
        )
    return {
        "task": found.task,
        "made": drawing.made_of(found),
        "size": [round(layout.width), round(layout.height)],
        "nodes": nodes,
        "edges": edges,
        "left_out": len(found.steps) + 2 - len(nodes),
    }
