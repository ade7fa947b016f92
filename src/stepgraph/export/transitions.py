"""Pictures of the mined transitions of all tasks: as a heat map, and as a circle."""

from __future__ import annotations

from math import cos, pi, sin

import numpy as np

from stepgraph.errors import ConfigError
from stepgraph.export.drawing import share_text
from stepgraph.export.layout import CHARACTER, MARGIN, text_width, wrap
from stepgraph.export.report import keystep_colours
from stepgraph.export.svg import Part, Sign, alone, escape, label, labels
from stepgraph.graph import TaskGraph, Transition
from stepgraph.graph.habits import listed_tasks
from stepgraph.graph.ties import TIED, Ties, ties_of

# Sides of a cell, room between two tasks, widths of a small letter and of a name.
_CELL, _GAP, _SMALL, _NAME = 11.0, 3.0, 0.7 * CHARACTER, 36.0
# From which share on a cell is as dark; a transition that was seen once is not drawn.
_SHADES = {0.4: 1.0, 0.2: 0.72, 0.1: 0.48, 0.05: 0.28, 0.02: 0.12}
_SEEN = 2
# Pixels between two keysteps of the circle, and its least radius.
_APART, _RADIUS = 26.0, 220.0


def draw_transitions(graph: TaskGraph, most: int = 150) -> str:
    """Draw how often each keystep follows each other, tasks in blocks, related ones side by side.

    Parameters
    ----------
    most
        Keysteps that are drawn: those with most transitions.
    """
    ties = ties_of(graph)
    blocks = _blocks(graph, ties, set(most_used_keysteps(graph, most)))
    rows = [(at, keystep) for at, members in blocks.items() for keystep in members]
    place = {
        keystep: _CELL * n + _GAP * [*blocks].index(at) for n, (at, keystep) in enumerate(rows)
    }
    sides = {at: (place[members[0]], place[members[-1]] + _CELL) for at, members in blocks.items()}
    names = [_cut(name, _NAME) for name in graph.vocabulary.keysteps]
    wide = max(_SMALL * text_width(names[keystep]) for keystep in place) + 10
    edge = (
        wide
        + max(_SMALL * text_width(line) for at in blocks for line in wrap(ties.tasks[at], 22))
        + 14
    )
    left = top = MARGIN + edge
    content = [f'<g transform="translate({left:.1f} {top:.1f})">', *_cells(graph, place)]
    for one, (start, end) in sides.items():
        for other, (low, high) in sides.items():
            tied = bool(ties.ratio[one, other] >= TIED)
            if tied or one == other:
                content.append(
                    f'<rect class="block{" tied" * tied}" x="{low:.1f}" y="{start:.1f}" '
                    f'width="{high - low:.1f}" height="{end - start:.1f}"/>'
                )
    for sign, turned in ((-1, ""), (1, ' transform="rotate(-90)"')):
        content.append(f"<g{turned}>")
        kind = "small row" if sign < 0 else "small column"
        content += [label(names[k], 5 * sign, y + 8.5, kind) for k, y in place.items()]
        for at, (start, end) in sides.items():
            lines = wrap(ties.tasks[at], 22)[: max(1, int((end - start) / _CELL))]
            content.append(labels(lines, sign * (wide + 6), (start + end) / 2 - 1, kind, _CELL))
            content.append(f'<path class="brace" d="M{sign * wide:.1f} {start:.1f}V{end:.1f}"/>')
        content.append("</g>")
    size = max(end for _, end in sides.values()) + MARGIN
    part = Part(top + size, [*content, "</g>"], left + size)
    return alone(
        "Which keystep follows which", _heat_notes(graph, ties, len(rows)), part, _shades()
    )


def _heat_notes(graph: TaskGraph, ties: Ties, drawn: int) -> list[str]:
    notes = [
        f"In each row, what follows a keystep: mined from neighbouring rows of "
        f"{len(graph.mined_on):,} videos, wrong matches included. Seen once is not drawn.",
        f"Blocks along the diagonal are tasks; {share_text(ties.share)} of {ties.changes:,} "
        f"transitions from one keystep to another join keysteps that no task shares.",
    ]
    if any(
        len(graph.vocabulary.tasks_of(keystep)) > 1 for keystep in range(len(graph.vocabulary))
    ):
        notes.append("A keystep of several tasks stands in the first of them.")
    if drawn < len(graph.vocabulary):
        notes.append(f"Shown are the {drawn:,} keysteps with most transitions.")
    return notes


def _shades() -> list[Sign]:
    signs = []
    for least, dark in _SHADES.items():
        sample = f'<g class="cell"><rect x="10" width="24" height="14" fill-opacity="{dark}"/></g>'
        meaning = f"{share_text(least)} or more of all that follows, the keystep itself left out"
        signs.append(Sign(sample, meaning))
    framed = '<rect class="block tied" x="10" y="1" width="24" height="13"/>'
    return [*signs, Sign(framed, f"tasks joined at least {TIED:g} times as often as by chance")]


def _cells(graph: TaskGraph, place: dict[int, float]) -> list[str]:
    """Squares of each shade in one path, which keeps the file small."""
    squares: dict[float, list[str]] = {dark: [] for dark in _SHADES.values()}
    for keystep, y in place.items():
        for found, share in changes_from(graph, keystep, len(graph.vocabulary)):
            dark = next((dark for least, dark in _SHADES.items() if share >= least), None)
            if dark and found.count >= _SEEN and found.keystep in place:
                squares[dark].append(f"M{place[found.keystep]:g} {y:g}h10v10h-10z")
    paths = [
        f'<path d="{"".join(drawn)}" fill-opacity="{dark}"/>' for dark, drawn in squares.items()
    ]
    return ['<g class="cell">', *paths, "</g>"]


def changes_from(graph: TaskGraph, keystep: int, limit: int) -> list[tuple[Transition, float]]:
    """What follows a keystep other than itself, and its share of all that does."""
    every = graph.following(keystep, limit=len(graph.vocabulary))
    total = sum(one.count for one in every)
    return [(one, one.count / total) for one in every[:limit]]


def most_used_keysteps(graph: TaskGraph, limit: int) -> list[int]:
    """The keysteps that most transitions lead to or from, self-loops left out."""
    counts = graph.counts
    use = counts.sum(axis=0) + counts.sum(axis=1) - 2 * counts.diagonal()
    return [int(one) for one in np.argsort(-use, kind="stable")[:limit] if use[one]]


def _blocks(graph: TaskGraph, ties: Ties, kept: set[int]) -> dict[int, list[int]]:
    """Keysteps of each task, in the order of the tasks; each once, where it is listed first."""
    found: dict[int, list[int]] = {}
    tasks = [*listed_tasks(graph.vocabulary).values()]
    for at in ties.order():
        found[at] = [one for one in tasks[at] if one in kept]
        kept = kept.difference(found[at])
    found = {at: members for at, members in found.items() if members}
    if not found:
        raise ConfigError("a graph must have transitions between keysteps to be drawn, got none")
    return found


def draw_circle(graph: TaskGraph, keysteps: int = 35, top: int = 5) -> str:
    """Draw the keysteps with most transitions in a circle, and what most often follows each.

    Parameters
    ----------
    keysteps
        How many are drawn.
    top
        Transitions that are drawn out of each, to others that are drawn.
    """
    if keysteps < 2 or top < 1:
        raise ConfigError(
            f"a circle must have at least 2 keysteps and 1 transition of each, "
            f"got {keysteps} and {top}"
        )
    ties = ties_of(graph)
    blocks = _blocks(graph, ties, set(most_used_keysteps(graph, keysteps)))
    order = [keystep for members in blocks.values() for keystep in members]
    task = {keystep: at for at, members in blocks.items() for keystep in members}
    radius = max(_RADIUS, _APART * len(order) / (2 * pi))
    turn = {keystep: 2 * pi * n / len(order) - pi / 2 for n, keystep in enumerate(order)}
    names = {keystep: _cut(graph.vocabulary.keysteps[keystep], _NAME) for keystep in order}
    lengths = {one: radius + 20 + 0.85 * CHARACTER * text_width(names[one]) for one in order}
    x = MARGIN + max(lengths[one] * abs(cos(turn[one])) for one in order)
    y = MARGIN + max(lengths[one] * abs(sin(turn[one])) for one in order)
    colours = dict(zip(blocks, keystep_colours(len(blocks), [range(len(blocks))]), strict=True))
    lines: list[tuple[bool, str]] = []
    inside = graph.restrict(order)
    for keystep in order:
        for found, _ in changes_from(inside, keystep, top):
            apart = bool(ties.between[keystep, found.keystep])
            share = found.count / (graph.counts[[keystep]].sum() - graph.counts[keystep, keystep])
            ends = turn[keystep], turn[found.keystep]
            words = (
                f"{names[keystep]} → {names[found.keystep]}: {share_text(share)}, {found.count:,}×"
            )
            drawn = _chord(ends, radius, 2 * pi / len(order), 0.8 + 10 * share)
            kind = "rare" if apart else "sure"
            lines.append(
                (apart, f'<g class="edge {kind}"><title>{escape(words)}</title>{drawn}</g>')
            )
    # Those within a task are drawn last, above the others.
    content = [f'<g transform="translate({x:.1f} {y:.1f})">']
    content += [line for apart, line in sorted(lines, key=lambda one: not one[0])]
    content += [_spoke(names[one], turn[one], radius, colours[task[one]]) for one in order]
    notes = [
        f"The {len(order)} of {len(graph.vocabulary):,} keysteps with most transitions, and of "
        f"each the {top} that most often follow it among these; self-loops are left out.",
        f"Mined from neighbouring rows of {len(graph.mined_on):,} videos, wrong matches included. "
        f"The wider an arrow, the larger its share of all that follows.",
    ]
    signs = [_arrow_sign("sure", "within a task"), _arrow_sign("rare", "between tasks")]
    for at, colour in colours.items():
        dot = f'<circle cx="22" cy="8" r="6" style="fill:{colour}"/>'
        signs.append(Sign(dot, ties.tasks[at]))
    title = f"What follows the {len(order)} keysteps with most transitions"
    return alone(title, notes, Part(2 * y, [*content, "</g>"], 2 * x), signs)


def _chord(ends: tuple[float, float], radius: float, step: float, wide: float) -> str:
    """An arrow through the circle; what leaves a keystep and what comes to it lie apart."""
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


def _spoke(name: str, turn: float, radius: float, colour: str) -> str:
    """A keystep at the rim, and its name, which is never upside down."""
    degrees, right = turn * 180 / pi, cos(turn) >= 0
    x, kind, flip = (radius + 16, "column", 0) if right else (-radius - 16, "row", 180)
    dot = f'<circle cx="{radius + 7:.1f}" r="5" style="fill:{colour}"/>'
    name = f'<g transform="rotate({flip})">{label(name, x, 4, f"medium {kind}")}</g>'
    return f'<g transform="rotate({degrees:.2f})">{dot}{name}</g>'


def _arrow_sign(kind: str, meaning: str) -> Sign:
    tip = '<path class="tip" d="M44 8l-9 -5v10Z"/>'
    return Sign(f'<g class="edge {kind}"><path d="M0 8h36" stroke-width="3"/>{tip}</g>', meaning)


def _cut(name: str, longest: float) -> str:
    """A name in one line."""
    first, *rest = wrap(name, longest)
    return f"{first}…" if rest else first
