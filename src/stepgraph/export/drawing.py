"""Drawings of a task graph: procedures, successors, and the use of keysteps by tasks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from statistics import fmean
from typing import NamedTuple

import numpy as np

from stepgraph.decoders.tasks import tasks_of
from stepgraph.export.layout import (
    CHARACTER,
    LINE,
    MARGIN,
    Edge,
    Node,
    box_size,
    lay_out,
    text_width,
    wrap,
)
from stepgraph.export.svg import Sign, SvgPart, alone, escape, inline, label, labels, stacked
from stepgraph.graph import TaskGraph
from stepgraph.graph.maps import END, START, Procedure, ProcedureStep, Succession, procedure_of

NEXT = 4
"""Number of successors that are listed for each keystep."""

MOST_DRAWN = 300
"""Limit on the keysteps of all tasks in one page or picture."""

# Limit on the tasks with a fan of successors, and on the letters of the line above each.
_FANS, _HEAD = 8, 44

HEAT_NOTE = "Numbers: percentage of a task’s videos with a confident match of the keystep."
BOX_NOTE = "Each box counts the videos with a confident match of the keystep."

# The colour of an arrow depends on the lower end of its interval.
_COMMON, _USUAL = 0.05, 0.2
_MEANINGS = {
    "sure": "next in at least 20\u00a0% of cases (with 90\u00a0% certainty)",
    "likely": "next in at least 5\u00a0% of cases (with 90\u00a0% certainty)",
    "rare": "perhaps next in fewer than 5\u00a0% of cases",
    "back": "dashed: leads back to an earlier keystep",
    "unseen": "dotted: never seen as next; only the order is known",
    "optional": "pale: few confident matches, perhaps optional",
}


def task_maps(graph: TaskGraph) -> list[Procedure]:
    """List the procedure of every task of a graph, those of most videos first.

    A graph without tasks and recognised videos is divided into communities of its 300 most used
    keysteps, since those of all keysteps take too long to find.
    """
    counts = graph.counts
    use = counts.sum(axis=0) + counts.sum(axis=1) - 2 * counts.diagonal()
    drawn = (
        graph if graph.statistics else graph.restrict(np.argsort(-use, kind="stable")[:MOST_DRAWN])
    )
    maps = [procedure_of(graph, task, members) for task, members in tasks_of(drawn).items()]
    seen = {found.task: sum(arrow.seen for arrow in found.successions) for found in maps}
    return sorted(maps, key=lambda found: (-found.videos, -seen[found.task]))


def most_used(maps: Sequence[Procedure]) -> list[Procedure]:
    """Select the tasks of most videos, up to the limit of a page."""
    keysteps = accumulate(len(found.steps) for found in maps)
    return [found for found, sum_of in zip(maps, keysteps, strict=True) if sum_of <= MOST_DRAWN]


def draw_task(found: Procedure, colors: Sequence[str] | None = None) -> str:
    """Draw how a task is done, from START at the top to END at the bottom.

    Parameters
    ----------
    colors
        A colour for each keystep of the vocabulary, for a picture in a page that uses them.
        Without colours the picture is a file of its own, with a title and a legend.
    """
    layout = lay_out(found)
    most = max(1, *(edge.arrow.seen for edge in layout.edges))
    steps = {step.keystep: step for step in found.steps}
    content = [_edge(edge, found, most) for edge in layout.edges]
    content += [_share(edge, most) for edge in layout.edges if edge.arrow.seen]
    content += [_node(node, found, steps.get(node.keystep), colors) for node in layout.nodes]
    part = SvgPart(layout.height, content, layout.width)
    if colors is not None:
        return inline(f"How “{found.task}” is done", part)
    notes = [f"{made_of(found).capitalize()}.", *[BOX_NOTE] * bool(found.videos)]
    left_out = len(found.steps) - len(layout.nodes) + 2
    notes += [f"Left out: the {left_out} keysteps of the fewest videos."] if left_out else []
    return alone(found.task, notes, part, legend([found]))


def made_of(found: Procedure) -> str:
    """Describe the data of a procedure."""
    if not found.videos:
        return "estimated from neighbouring rows; no video of this task was recognised"
    return f"estimated from {found.videos:,} recognised video{'' if found.videos == 1 else 's'}"


def name_of(found: Procedure, keystep: int) -> str:
    """Return the name of a keystep, or of START or END."""
    return {START: "START", END: "END"}.get(keystep) or found.vocabulary.keysteps[keystep]


def describe_arrow(arrow: Succession) -> str:
    """Describe the proportion, its interval if any, and the count of a transition."""
    interval = f" ({_range(arrow)})" if arrow.low < arrow.high else ""
    return f"{share_text(arrow.share)}{interval}, {arrow.seen:,}×" if arrow.seen else "–"


def describe_succession(arrow: Succession, found: Procedure) -> str:
    """Describe a transition: both ends, proportion and count."""
    ends = f"{name_of(found, arrow.first)} → {name_of(found, arrow.second)}"
    return f"{ends}: {describe_arrow(arrow)}"


def describe_step(found: Procedure, step: ProcedureStep) -> str:
    """Describe a step: videos with a salient mention, proportion, position and duration."""
    place = f"on average {share_text(step.position)} through a video"
    if not found.videos:
        return place
    match = f"confident match in {step.videos:,} of {found.videos:,} videos"
    shown = f"{match}, done in {_range(step)}"
    return f"{shown}, {place}, {step.seconds:.0f}\u00a0s long" if step.seconds else shown


def share_text(share: float) -> str:
    """Format a share in percent for pictures."""
    return f"{100 * share:.0f}\u00a0%"


def _range(one: Succession | ProcedureStep) -> str:
    return f"{100 * one.low:.0f} to {share_text(one.high)}"


def legend(maps: Sequence[Procedure]) -> list[Sign]:
    """List the signs that occur in pictures of tasks, with their meaning."""
    edges = [edge for found in maps for edge in lay_out(found).edges]
    used = {kind_of(edge.arrow) for edge in edges} | {"back" for edge in edges if edge.back}
    used |= {"optional" for found in maps for step in found.steps if step.optional}
    wide = "how often this comes next; a wider arrow was seen more often"
    signs = [Sign(label("46\u00a0%", 6, 12, "share"), wide)]
    for kind, meaning in _MEANINGS.items():
        tip = '<path class="tip" d="M44 8l-9 -5v10Z"/>'
        sample = f'<g class="edge {kind}"><path d="M0 8h36" stroke-width="3"/>{tip}</g>'
        if kind == "optional":
            sample = (
                f'<g class="node {kind}"><rect x="1" y="1" width="42" height="14" rx="5"/></g>'
            )
        signs += [Sign(sample, meaning)] if kind in used else []
    return signs


def kind_of(arrow: Succession) -> str:
    """Classify an arrow by its lower bound: ``sure``, ``likely``, ``rare``, or ``unseen``."""
    if not arrow.seen:
        return "unseen"
    return "sure" if arrow.low >= _USUAL else "likely" if arrow.low >= _COMMON else "rare"


class Drawn(NamedTuple):
    """Geometry of an arrow: line, tip, width, and position of its share."""

    line: str
    tip: str
    wide: float
    beside: tuple[float, float]


def drawn(edge: Edge, most: int) -> Drawn:
    """Compute the geometry of an arrow; ``most`` is the largest count of the picture."""
    *before, (x, y) = edge.points
    wide = _thickness(edge.arrow, most)
    up = 1 if edge.back else -1
    path = [f"M{before[0][0]:.1f} {before[0][1]:.1f}"]
    for (x0, y0), (x1, y1) in pairwise([*before, (x, y + up * 7)]):
        bend = (y0 + y1) / 2
        curve = f"C{x0:.1f} {bend:.1f} {x1:.1f} {bend:.1f} {x1:.1f} {y1:.1f}"
        path.append(f"V{y1:.1f}" if x0 == x1 else curve)
    half = 3 + wide / 2
    tip = f"M{x:.1f} {y:.1f}l{-half:.1f} {up * 9}h{2 * half:.1f}Z"
    (x0, y0), (x1, y1) = edge.points[:2]
    # A third of the way along the curve, which bends later than it falls.
    aside = x0 + 0.22 * (x1 - x0) + 4 + wide / 2
    return Drawn("".join(path), tip, wide, (aside, y0 + 0.34 * (y1 - y0) + 4))


def _edge(edge: Edge, found: Procedure, most: int) -> str:
    """Draw an arrow along its points."""
    return _arrow(edge.arrow, found, drawn(edge, most)[:3], " back" * edge.back)


def _arrow(
    arrow: Succession, found: Procedure, drawn: tuple[str, str, float], more: str = ""
) -> str:
    path, tip, wide = drawn
    kind, ends = (
        f"edge {kind_of(arrow)}{more}",
        f'data-from="{arrow.first}" data-to="{arrow.second}"',
    )
    return (
        f'<g class="{kind}" {ends}><title>{escape(describe_succession(arrow, found))}</title>'
        f'<path d="{path}" stroke-width="{wide:.1f}"/><path class="tip" d="{tip}"/></g>'
    )


def _share(edge: Edge, most: int) -> str:
    """Draw the share of an arrow, in percent, beside the line where it leaves its box."""
    x, y = drawn(edge, most).beside
    ends = f'data-from="{edge.arrow.first}" data-to="{edge.arrow.second}"'
    return f'<g class="edge" {ends}>{label(share_text(edge.arrow.share), x, y, "share")}</g>'


def _thickness(arrow: Succession, most: int) -> float:
    """Compute the width of an arrow from its count, relative to the largest."""
    return 1.2 + 5 * arrow.seen / most


def _node(
    node: Node,
    found: Procedure,
    step: ProcedureStep | None = None,
    colors: Sequence[str] | None = None,
) -> str:
    left, top = node.x - node.width / 2, node.y - node.height / 2
    kind = "end" if node.keystep < 0 else "optional" if step and step.optional else ""
    words = name_of(found, node.keystep)
    words += f": {describe_step(found, step)}" if step else ""
    inside = labels(node.lines, node.x, node.y - 0.45 * LINE * bool(node.note))
    if node.note:
        inside += label(node.note, node.x, node.y + node.height / 2 - 8, "shown")
    if colors is not None and node.keystep >= 0:
        swatch = f'x="{left + 4:.1f}" y="{top + 5:.1f}" width="4" height="{node.height - 10:.1f}"'
        inside += f'<rect class="hue" {swatch} rx="2" style="fill:{colors[node.keystep]}"/>'
    focus = f' tabindex="0" role="img" aria-label="{escape(words)}"' if colors is not None else ""
    rounded = node.height / 2 if kind == "end" else 8
    return (
        f'<g class="node {kind}" data-k="{node.keystep}"{focus}><title>{escape(words)}</title>'
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{node.width:.1f}" height="{node.height:.1f}" '
        f'rx="{rounded:.1f}"/>{inside}</g>'
    )


def draw_next(maps: Sequence[Procedure], keystep: int) -> str:
    """Draw the most probable successors of a keystep, in every task that has it."""
    parts = []
    for found in maps[:_FANS]:
        lines = wrap(f"in “{found.task}”, {made_of(found)}", _HEAD)
        head = [label(line, MARGIN, LINE * (at + 1), "quiet") for at, line in enumerate(lines)]
        parts += [SvgPart(LINE * len(lines) + 14, head), fan(found, keystep), SvgPart(20)]
    notes = [f"Shown for {_FANS} of the {len(maps):,} tasks that use it."] if maps[_FANS:] else []
    return alone(f"What comes next after “{name_of(maps[0], keystep)}”", notes, stacked(parts))


def fan(found: Procedure, keystep: int) -> SvgPart:
    """Draw a keystep, and arrows to its successors, the most probable at the top."""
    arrows = found.successions_from(keystep)[:NEXT]
    lines = [wrap(name_of(found, keystep), 16)]
    lines += [wrap(name_of(found, arrow.second)) for arrow in arrows]
    (wide, tall), *sizes = (box_size(one) for one in lines)
    together = sum(height + 12 for _, height in sizes) - 12
    high = max(tall, together)
    right = MARGIN + wide
    left, top = right + 100, (high - together) / 2
    content = []
    for arrow, box, (width, height) in zip(arrows, lines[1:], sizes, strict=True):
        y, thick = top + height / 2, 1 + 9 * arrow.share
        path = f"M{right:.1f} {high / 2:.1f}c50 0 20 {y - high / 2:.1f} 92 {y - high / 2:.1f}"
        tip = f"M{left:.1f} {y:.1f}l-9 {-3 - thick / 2:.1f}v{6 + thick:.1f}Z"
        content += [
            _arrow(arrow, found, (path, tip, thick)),
            label(share_text(arrow.share), left - 44, y - 4 - thick / 2, "share"),
            _node(Node(arrow.second, left + width / 2, y, width, height, box), found),
        ]
        top += height + 12
    content.append(_node(Node(keystep, right - wide / 2, high / 2, wide, tall, lines[0]), found))
    if not arrows:
        content.append(label("no next keystep was seen", right + 12, high / 2 + 4, "quiet"))
    return SvgPart(high, content, left + max([180, *(width for width, _ in sizes)]) + MARGIN)


def draw_heat(maps: Sequence[Procedure], *, page: bool = False) -> str:
    """Draw the use of keysteps by tasks, with the share of videos that mention each saliently."""
    ordered = _by_kinship(most_used(maps) or maps[:1])
    rows = list(dict.fromkeys(step.keystep for found in ordered for step in found.steps))
    names = [wrap(maps[0].vocabulary.keysteps[keystep], 34) for keystep in rows]
    heads = [wrap(found.task, 28) for found in ordered]
    left, top = (
        MARGIN + 8 + CHARACTER * max(text_width(line) for lines in side for line in lines)
        for side in (names, heads)
    )
    tops = list(accumulate((14 * len(lines) + 8 for lines in names), initial=top))
    lefts = list(accumulate((max(26, 14 * len(lines) + 6) for lines in heads), initial=left))
    content = [
        labels(lines, left - 8, fmean(ends), "row", 14)
        for lines, ends in zip(names, pairwise(tops), strict=True)
    ]
    content += [
        f'<g transform="translate({fmean(sides):.1f} {top - 8:.1f}) rotate(-90)">'
        f"{labels(lines, 0, 0, 'column', 14)}</g>"
        for lines, sides in zip(heads, pairwise(lefts), strict=True)
    ]
    place = {keystep: at for at, keystep in enumerate(rows)}
    for column, found in enumerate(ordered):
        for step in found.steps:
            row = place[step.keystep]
            content.append(_cell(found, step, lefts[column : column + 2], tops[row : row + 2]))
    part = SvgPart(tops[-1] + MARGIN, content, lefts[-1] + MARGIN)
    title = "Which task uses which keystep"
    notes = [HEAT_NOTE]
    if len(ordered) < len(maps):
        notes.append(f"Shown: the {len(ordered):,} of {len(maps):,} tasks with the most videos.")
    return inline(title, part) if page else alone(title, notes, part)


def _by_kinship(maps: Sequence[Procedure]) -> list[Procedure]:
    """Order tasks greedily so that neighbours share keysteps, beginning with the first."""
    members = {found.task: {step.keystep for step in found.steps} for found in maps}
    waiting, ordered, last = list(maps), [], set[int]()
    while waiting:
        nearest = max(waiting, key=lambda one: len(members[one.task] & last))
        waiting.remove(nearest)
        ordered.append(nearest)
        last = members[nearest.task]
    return ordered


def _cell(
    found: Procedure, step: ProcedureStep, sides: Sequence[float], ends: Sequence[float]
) -> str:
    """Draw one task's use of one keystep; an empty frame for a listed one without videos."""
    words = f"{name_of(found, step.keystep)}, {found.task}: {describe_step(found, step)}"
    box = f'x="{sides[0] + 1:.1f}" y="{ends[0] + 1:.1f}" '
    box += f'width="{sides[1] - sides[0] - 2:.1f}" height="{ends[1] - ends[0] - 2:.1f}"'
    inside = f'<rect class="listed" {box}/>'
    if found.videos:
        share = step.videos / found.videos
        inside = f'<rect {box} fill-opacity="{0.06 + 0.94 * share:.2f}"/>'
        kind = "on" if share > 0.5 else ""
        inside += labels([f"{100 * share:.0f}"], fmean(sides), fmean(ends) - 0.5, kind)
    return f'<g class="cell"><title>{escape(words)}</title>{inside}</g>'
