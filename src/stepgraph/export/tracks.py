"""Drawings of labels beside the truth: a bar for each method, with right and wrong rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stepgraph.core import BACKGROUND, Labels, runs
from stepgraph.export.layout import CHARACTER, LINE, MARGIN, text_width, wrap
from stepgraph.export.report import keystep_colors
from stepgraph.export.svg import Sign, SvgPart, alone, escape, label, stacked
from stepgraph.export.timeline import short_clock

# Width of a bar, its height, and that of the strip beneath it.
_WIDE, _BAR, _STRIP = 760.0, 16.0, 4.0
_RIGHT, _WRONG, _OTHERS = "#2f9e62", "#d6504a", "fill:#9a9ca6;fill-opacity:.45"


class VideoTracks(NamedTuple):
    """Video to draw: its heading, its truth, and labels by the name of a method."""

    heading: str
    truth: Labels
    labels: Mapping[str, Labels]


def draw_tracks(title: str, notes: Sequence[str], videos: Sequence[VideoTracks]) -> str:
    """Draw the truth and the labels of some videos, one under the other."""
    left = MARGIN + max(text_width(name) * CHARACTER for one in videos for name in one.labels) + 10
    parts = [part for one in videos for part in (SvgPart(14), _video(one, left))]
    signs = [
        Sign(f'<rect x="8" y="6" width="28" height="{_STRIP:g}" style="fill:{color}"/>', meaning)
        for color, meaning in ((_RIGHT, "the keystep of the truth"), (_WRONG, "another, or none"))
    ]
    other = f'<rect x="8" y="1" width="28" height="14" style="{_OTHERS}"/>'
    signs.append(Sign(other, "a keystep that is not in the truth of this video"))
    return alone(title, notes, stacked([*parts, SvgPart(10)]), signs)


def _video(shown: VideoTracks, left: float) -> SvgPart:
    names = shown.truth.vocabulary.keysteps
    true = [one for one in dict.fromkeys(shown.truth.keysteps.tolist()) if one != BACKGROUND]
    colors = dict(zip(true, keystep_colors(len(true), [range(len(true))]), strict=True))
    lines = wrap(shown.heading, (left + _WIDE) / CHARACTER)
    content = [label(line, MARGIN, LINE * (n + 0.8), "column") for n, line in enumerate(lines)]
    y = LINE * len(lines) + 4
    for name, one in [("truth", shown.truth), *shown.labels.items()]:
        content.append(label(name, left - 8, y + 12, "row"))
        content += _bar(one, colors, left, y)
        y += _BAR
        if one is not shown.truth:
            content += _strip(shown.truth, one, left, y + 1)
        y += _STRIP + 6
    row = 0.0
    for x, row, keystep in _flow([names[one] for one in true]):
        dot = _rect(left + x, y + row + 2, 11, 11, f'style="fill:{colors[true[keystep]]}"')
        content += [dot, label(names[true[keystep]], left + x + 16, y + row + 12, "column")]
    return SvgPart(y + row + LINE, content, left + _WIDE + MARGIN)


def _bar(labels: Labels, colors: Mapping[int, str], left: float, y: float) -> Iterator[str]:
    """Draw the segments of labels; adjacent keysteps without a colour of their own are merged."""
    scale = _WIDE / max(1, len(labels))
    listed = np.isin(labels.keysteps, [BACKGROUND, *colors])
    for first, last in runs(np.where(listed, labels.keysteps, -2)):
        keystep = int(labels.keysteps[first])
        if keystep != BACKGROUND:
            name = labels.vocabulary.keysteps[keystep] if keystep in colors else "another"
            words = f"<title>{escape(name)}, {short_clock(first * labels.hop)}</title>"
            fill = f"fill:{colors[keystep]}" if keystep in colors else _OTHERS
            box = left + first * scale, y, (last - first) * scale, _BAR
            yield _rect(*box, f'style="{fill}"', words)


def _strip(truth: Labels, found: Labels, left: float, y: float) -> Iterator[str]:
    """Draw strips beneath the keysteps of the truth: right or wrong."""
    true, scale = truth.keysteps != BACKGROUND, _WIDE / max(1, len(truth))
    right = truth.keysteps == found.keysteps
    for first, last in runs(np.where(true, right, BACKGROUND)):
        if true[first]:
            fill = f'style="fill:{_RIGHT if right[first] else _WRONG}"'
            yield _rect(left + first * scale, y, (last - first) * scale, _STRIP, fill)


def _flow(names: Sequence[str]) -> Iterator[tuple[float, float, int]]:
    """Yield positions of the names of keysteps, in lines that are as wide as a bar."""
    x = y = 0.0
    for at, name in enumerate(names):
        wide = 34 + CHARACTER * text_width(name)
        if x and x + wide > _WIDE:
            x, y = 0.0, y + LINE + 2
        yield x, y, at
        x += wide


def _rect(x: float, y: float, wide: float, high: float, more: str, inside: str = "") -> str:
    size = f'x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}"'
    return f"<rect {size} {more}>{inside}</rect>"
