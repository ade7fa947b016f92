"""Drawings of the mined transitions of all tasks: as a heat map, and as a circle."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import cos, pi, sin

import numpy as np
from numpy.typing import NDArray

from stepgraph.errors import ConfigError, DataError
from stepgraph.export.drawing import share_text
from stepgraph.export.layout import CHARACTER, MARGIN, text_width, wrap
from stepgraph.export.report import keystep_colors
from stepgraph.export.svg import Sign, SvgPart, alone, escape, label, labels
from stepgraph.graph import TaskGraph, Transition
from stepgraph.graph.parameters import listed_tasks
from stepgraph.graph.ties import TIED, Ties, ties_of

# Sides of a cell, room between two tasks, and widths of a small letter, a name and a task's.
_CELL, _GAP, _SMALL, _NAME, _TASK = 11.0, 3.0, 0.7 * CHARACTER, 36.0, 22.0
# Opacity of a cell by its least share; a transition with a single count is not drawn.
_SHADES = {0.4: 1.0, 0.2: 0.72, 0.1: 0.48, 0.05: 0.28, 0.02: 0.12}
_SEEN = 2
# Pixels between two keysteps of the circle, and its least radius.
_APART, _RADIUS = 26.0, 220.0


def draw_transitions(graph: TaskGraph, most: int = 200) -> str:
    """Draw the shares of transitions between the keysteps with most transitions.

    Tasks are blocks; tasks that are joined more than by chance are neighbours.
    """
    ties = ties_of(graph)
    blocks = _blocks(graph, ties, most)
    place: dict[int, float] = {}
    for at, members in enumerate(blocks.values()):
        place |= {
            keystep: _CELL * (len(place) + n) + _GAP * at for n, keystep in enumerate(members)
        }
    ends = {at: (place[members[0]], place[members[-1]] + _CELL) for at, members in blocks.items()}
    names = {keystep: _cut(graph.vocabulary.keysteps[keystep]) for keystep in place}
    tasks = {at: wrap(ties.tasks[at], _TASK) for at in blocks}
    wide = 10 + _SMALL * max(map(text_width, names.values()))
    edge = (
        MARGIN
        + wide
        + 14
        + _SMALL * max(text_width(line) for one in tasks.values() for line in one)
    )
    content = [f'<g transform="translate({edge:.1f} {edge:.1f})">', *_cells(graph, place)]
    content += _frames(ties.ratio >= TIED, ends)
    for sign, kind, turn in ((-1, "small row", 0), (1, "small column", -90)):
        content.append(f'<g transform="rotate({turn})">')
        content += [label(names[one], 5 * sign, y + 8.5, kind) for one, y in place.items()]
        for at, (low, high) in ends.items():
            lines = tasks[at][: max(1, int((high - low) / _CELL))]
            content.append(labels(lines, sign * (wide + 6), (low + high) / 2 - 1, kind, _CELL))
            content.append(f'<path class="brace" d="M{sign * wide:.1f} {low:.1f}V{high:.1f}"/>')
        content.append("</g>")
    size = edge + max(place.values()) + _CELL + MARGIN
    notes = [
        f"In each row, what follows a keystep; {_made_of(graph)} Seen once is not drawn.",
        f"Blocks along the diagonal are tasks; {share_text(ties.share)} of {ties.changes:,} "
        f"transitions from one keystep to another join keysteps that no task shares.",
    ]
    if ties.members.nnz > len(graph.vocabulary):
        notes.append("A keystep of several tasks stands in the first of them.")
    if len(place) < len(graph.vocabulary):
        notes.append(f"Shown are the {len(place):,} keysteps with most transitions.")
    part = SvgPart(size, [*content, "</g>"], size)
    return alone("Which keystep follows which", notes, part, _shades())


def _made_of(graph: TaskGraph) -> str:
    return (
        f"mined from neighbouring rows of {len(graph.mined_on):,} videos, wrong matches included."
    )


def _frames(tied: NDArray[np.bool_], ends: dict[int, tuple[float, float]]) -> Iterator[str]:
    """Draw frames of the tasks along the diagonal, and of joined pairs of tasks beside it."""
    for (one, (top, bottom)), (other, (left, right)) in product(ends.items(), repeat=2):
        if one == other or tied[one, other]:
            kind = "block" if one == other else "block tied"
            size = f'width="{right - left:.1f}" height="{bottom - top:.1f}"'
            yield f'<rect class="{kind}" x="{left:.1f}" y="{top:.1f}" {size}/>'


def _shades() -> list[Sign]:
    signs = []
    for least, dark in _SHADES.items():
        sample = f'<g class="cell"><rect x="10" width="24" height="14" fill-opacity="{dark}"/></g>'
        meaning = f"{share_text(least)} or more of all that follows, the keystep itself left out"
        signs.append(Sign(sample, meaning))
    framed = '<rect class="block tied" x="10" y="1" width="24" height="13"/>'
    return [*signs, Sign(framed, f"tasks joined at least {TIED:g} times as often as by chance")]


def _cells(graph: TaskGraph, place: dict[int, float]) -> list[str]:
    """Draw the cells of each shade as one path, which keeps the file small."""
    squares: dict[float, list[str]] = {dark: [] for dark in _SHADES.values()}
    for keystep, y in place.items():
        for found, share in changes_from(graph, keystep, len(graph.vocabulary)):
            dark = next((dark for least, dark in _SHADES.items() if share >= least), None)
            if dark and found.count >= _SEEN and found.keystep in place:
                squares[dark].append(f"M{place[found.keystep]:g} {y:g}h10v10h-10z")
    drawn = {dark: "".join(path) for dark, path in squares.items()}
    paths = [f'<path d="{path}" fill-opacity="{dark}"/>' for dark, path in drawn.items()]
    return ['<g class="cell">', *paths, "</g>"]


def changes_from(graph: TaskGraph, keystep: int, limit: int) -> list[tuple[Transition, float]]:
    """List transitions from a keystep to others, each with its share of them all."""
    every = graph.following(keystep, limit=len(graph.vocabulary))
    total = sum(one.count for one in every)
    return [(one, one.count / total) for one in every[:limit]]


def most_used_keysteps(graph: TaskGraph, limit: int) -> list[int]:
    """List the keysteps with most transitions to or from them, self-transitions left out."""
    counts = graph.counts
    use = counts.sum(axis=0) + counts.sum(axis=1) - 2 * counts.diagonal()
    return [int(one) for one in np.argsort(-use, kind="stable")[:limit] if use[one]]


def _blocks(graph: TaskGraph, ties: Ties, most: int) -> dict[int, list[int]]:
    """Group the most used keysteps by task; a shared keystep belongs to the first task."""
    drawn = set(most_used_keysteps(graph, most))
    if not drawn:
        raise DataError("a graph must have transitions between keysteps to be drawn, got none")
    found: dict[int, list[int]] = {}
    tasks = [*listed_tasks(graph.vocabulary).values()]
    for at in ties.order():
        if members := [one for one in tasks[at] if one in drawn]:
            found[at] = members
            drawn.difference_update(members)
    return found


def draw_circle(graph: TaskGraph, keysteps: int = 35, top: int = 5) -> str:
    """Draw the keysteps with most transitions in a circle, with ``top`` transitions from each."""
    if keysteps < 2 or top < 1:
        raise ConfigError(
            f"a circle must have at least 2 keysteps and 1 transition of each, "
            f"got {keysteps} and {top}"
        )
    ties = ties_of(graph)
    blocks = _blocks(graph, ties, keysteps)
    order = [keystep for members in blocks.values() for keystep in members]
    step = 2 * pi / len(order)
    radius = max(_RADIUS, _APART / step)
    turn = {keystep: step * n - pi / 2 for n, keystep in enumerate(order)}
    names = {keystep: _cut(graph.vocabulary.keysteps[keystep]) for keystep in order}
    reach = {one: radius + 20 + 0.85 * CHARACTER * text_width(names[one]) for one in order}
    x = MARGIN + max(reach[one] * abs(cos(turn[one])) for one in order)
    y = MARGIN + max(reach[one] * abs(sin(turn[one])) for one in order)
    drawn: dict[str, list[str]] = {"rare": [], "sure": []}
    for keystep in order:
        every = changes_from(graph, keystep, len(graph.vocabulary))
        for found, share in [one for one in every if one[0].keystep in turn][:top]:
            kind = "rare" if ties.between[keystep, found.keystep] else "sure"
            ends = f"{names[keystep]} → {names[found.keystep]}"
            words = f"<title>{escape(ends)}: {share_text(share)}, {found.count:,}×</title>"
            chord = _chord((turn[keystep], turn[found.keystep]), radius, step, 0.8 + 10 * share)
            drawn[kind].append(f'<g class="edge {kind}">{words}{chord}</g>')
    # Those within a task lie above the others.
    content = [f'<g transform="translate({x:.1f} {y:.1f})">', *drawn["rare"], *drawn["sure"]]
    signs = [_arrow_sign("sure", "within a task"), _arrow_sign("rare", "between tasks")]
    for at, color in zip(blocks, keystep_colors(len(blocks), [range(len(blocks))]), strict=True):
        content += [_spoke(names[one], turn[one], radius, color) for one in blocks[at]]
        dot = f'<circle cx="22" cy="8" r="6" style="fill:{color}"/>'
        signs.append(Sign(dot, ties.tasks[at]))
    notes = [
        f"Of each the {top} that most often follow it among these, self-loops left out; "
        f"{_made_of(graph)} The wider an arrow, the larger its share of all that follows."
    ]
    title = f"The {len(order)} keysteps with most transitions, of {len(graph.vocabulary):,}"
    return alone(title, notes, SvgPart(2 * y, [*content, "</g>"], 2 * x), signs)


def _chord(ends: tuple[float, float], radius: float, step: float, wide: float) -> str:
    """Draw an arrow through the circle; outgoing and incoming ones of a keystep lie apart."""
    start, end = ends[0] - 0.14 * step, ends[1] + 0.14 * step
    (x0, y0), (x1, y1) = ((radius * cos(one), radius * sin(one)) for one in (start, end))
    # Neighbours are joined near the rim, others further inside.
    pull = 0.35 + 0.45 * max(0.0, cos((start - end) / 2) ** 2)
    cx, cy = pull * (x0 + x1) / 2, pull * (y0 + y1) / 2
    length = ((x1 - cx) ** 2 + (y1 - cy) ** 2) ** 0.5
    ux, uy = (x1 - cx) / length, (y1 - cy) / length
    half = 2.5 + wide / 2
    bx, by = x1 - 9 * ux, y1 - 9 * uy
    tip = (
        f"M{x1:.1f} {y1:.1f}L{bx - half * uy:.1f} {by + half * ux:.1f}"
        f"L{bx + half * uy:.1f} {by - half * ux:.1f}Z"
    )
    return (
        f'<path d="M{x0:.1f} {y0:.1f}Q{cx:.1f} {cy:.1f} {bx:.1f} {by:.1f}" '
        f'stroke-width="{wide:.1f}"/><path class="tip" d="{tip}"/>'
    )


def _spoke(name: str, turn: float, radius: float, color: str) -> str:
    """Draw a keystep at the rim, and its name, which is never upside down."""
    degrees, right = turn * 180 / pi, cos(turn) >= 0
    x, kind, flip = (radius + 16, "column", 0) if right else (-radius - 16, "row", 180)
    dot = f'<circle cx="{radius + 7:.1f}" r="5" style="fill:{color}"/>'
    name = f'<g transform="rotate({flip})">{label(name, x, 4, f"medium {kind}")}</g>'
    return f'<g transform="rotate({degrees:.2f})">{dot}{name}</g>'


def _arrow_sign(kind: str, meaning: str) -> Sign:
    tip = '<path class="tip" d="M44 8l-9 -5v10Z"/>'
    return Sign(f'<g class="edge {kind}"><path d="M0 8h36" stroke-width="3"/>{tip}</g>', meaning)


def _cut(name: str) -> str:
    """Cut a name to one line."""
    first, *rest = wrap(name, _NAME)
    return f"{first}…" if rest else first
