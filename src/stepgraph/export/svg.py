"""SVG elements of pictures, and the colours of light and dark pages.

A picture in a page uses the page's colours.  A picture file contains them as plain values, because
not every program that shows SVG supports CSS variables.  Names are untrusted and become text only.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.resources import files
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from stepgraph.errors import ConfigError, DataError, reason
from stepgraph.export.layout import CHARACTER, LINE, MARGIN, wrap
from stepgraph.files.disk import replacing, write_text

# Each colour of a light and of a dark page.
COLORS = {
    "page": ("#f7f6f3", "#121316"),
    "surface": ("#ffffff", "#1a1c20"),
    "ink": ("#1c1d21", "#e9e9ec"),
    "quiet": ("#676972", "#9a9ca6"),
    "line": ("#e3e1dc", "#2c2f36"),
    "track": ("#f1f0ec", "#23262c"),
    "accent": ("#3552c8", "#93a8ff"),
    "sure": ("#2446c0", "#a9baff"),
    "likely": ("#7d93dd", "#6d82cf"),
    "rare": ("#bcc0ce", "#555a6e"),
}

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")
"""Programs that can turn a picture into pixels, by the names under which they are installed."""
# No picture of more pixels a side can be made; few are high enough to lose their fineness by it.
_FINE, _PIXELS = 2.0, 16_000

# Characters that XML cannot hold, not even as a numeric reference.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NARROWEST = 340.0


class SvgPart(NamedTuple):
    """Drawn elements with their height and width."""

    height: float
    content: Sequence[str] = ()
    width: float = 0.0


class Sign(NamedTuple):
    """A line of a legend: a sample of 44 by 16 pixels, and its meaning."""

    sample: str
    meaning: str


def page_colors() -> str:
    """Return the colours of a page as CSS variables, for the reader's choice of light or dark."""
    light, dark = (
        "".join(f"--{name}:{both[side]};" for name, both in COLORS.items()) for side in (0, 1)
    )
    return (
        f":root{{{light}color-scheme:light}}@media screen and (prefers-color-scheme:dark)"
        f'{{:root:not([data-theme="light"]){{{dark}color-scheme:dark}}}}'
        f'@media screen{{:root[data-theme="dark"]{{{dark}color-scheme:dark}}}}'
    )


def picture_style() -> str:
    """Return the style of pictures, in the colours of a page."""
    return (files("stepgraph.export") / "static" / "drawing.css").read_text(encoding="utf-8")


def xml_text(text: str) -> str:
    r"""Replace characters that XML cannot hold by a replacement character.

    >>> xml_text("salt\x08 & pepper")
    'salt� & pepper'
    """
    return _NOT_XML.sub("\ufffd", text)


def escape(text: str) -> str:
    """Escape text for an element or an attribute."""
    return html.escape(xml_text(text))


def label(text: str, x: float, y: float, kind: str = "") -> str:
    """Draw a line of text, aligned by the style of its kind."""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def labels(lines: Sequence[str], x: float, y: float, kind: str = "", step: float = LINE) -> str:
    """Draw lines of text one under the other, with their middle at ``y``."""
    first = y + 4.5 - step * (len(lines) - 1) / 2
    return "".join(label(line, x, first + step * at, kind) for at, line in enumerate(lines))


def stacked(parts: Sequence[SvgPart]) -> SvgPart:
    """Stack parts one under the other."""
    *tops, height = accumulate((part.height for part in parts), initial=0.0)
    moved = (f'<g transform="translate(0 {top:.1f})">' for top in tops)
    content = [f"{a}{''.join(part.content)}</g>" for a, part in zip(moved, parts, strict=True)]
    return SvgPart(height, content, max(part.width for part in parts))


def inline(title: str, part: SvgPart) -> str:
    """Make a picture for a page that has the style; it shrinks a little where room is short."""
    size = f"width:{part.width:.0f}px;min-width:{0.8 * part.width:.0f}px"
    return _svg(title, part, f'style="{size}" role="group" aria-label="{escape(title)}"')


def alone(title: str, notes: Sequence[str], part: SvgPart, legend: Sequence[Sign] = ()) -> str:
    """Make a picture file, with its title above and a legend below."""
    width = max(part.width, _NARROWEST)
    fits = (width - 2 * MARGIN) / CHARACTER
    parts = [_lines(wrap(title, 0.68 * fits), "title", MARGIN, 22)]
    parts += [_lines(wrap(note, fits), "note", MARGIN, LINE) for note in notes]
    # In the middle where the title or the legend is wider.
    centered = f'<g transform="translate({(width - part.width) / 2:.1f} 0)">'
    parts += [SvgPart(part.height, [centered, *part.content, "</g>"])]
    for sign in legend:
        words = _lines(wrap(sign.meaning, fits - 8), "note", MARGIN + 56, LINE)
        sample = f'<g transform="translate({MARGIN} 4)">{sign.sample}</g>'
        parts.append(words._replace(height=words.height + 4, content=[sample, *words.content]))
    whole = stacked([SvgPart(MARGIN), *parts, SvgPart(MARGIN)])
    light, dark = (
        re.sub(r"var\(--(\w+)\)", lambda found: COLORS[found[1]][side], picture_style())  # noqa: B023
        for side in (0, 1)
    )
    style = f"<style>{light}@media (prefers-color-scheme:dark){{{dark}}}</style>"
    backdrop = '<rect class="ground" width="100%" height="100%"/>'
    drawn = SvgPart(whole.height, [style, backdrop, *whole.content], width)
    size = f'width="{width:.0f}" height="{whole.height:.0f}" role="img"'
    return _svg(title, drawn, f'xmlns="http://www.w3.org/2000/svg" {size}') + "\n"


def _svg(title: str, part: SvgPart, attributes: str) -> str:
    content = "".join(part.content)
    box = f"0 0 {part.width:.0f} {part.height:.0f}"
    heading = f"<title>{escape(title)}</title>" if "xmlns" in attributes else ""
    return f'<svg class="picture" viewBox="{box}" {attributes}>{heading}{content}</svg>'


def _lines(lines: Sequence[str], kind: str, x: float, step: float) -> SvgPart:
    written = [label(line, x, step * (at + 0.8), kind) for at, line in enumerate(lines)]
    return SvgPart(step * len(lines), written)


def write_picture(picture: str, path: Path) -> None:
    """Write a picture file as ``.svg``, or as ``.png`` where a Chromium is installed."""
    if path.suffix.lower() == ".svg":
        return write_text(path, picture)
    if path.suffix.lower() != ".png":
        ending = path.suffix or "no ending"
        raise ConfigError(f"{path}: must end in .svg or .png, got {ending}; rename it")
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise ConfigError(
            f"{path}: must end in .svg where no Chromium is installed, got .png; write "
            f"{path.with_suffix('.svg').name}, which browsers and office programs show"
        )
    with replacing(path) as partial:
        partial.write_bytes(_pixels(picture, browser, path))
    return None


def _pixels(picture: str, browser: str, path: Path) -> bytes:
    """Render a picture as PNG, by a headless browser with its own profile."""
    width, height = (int(one) for one in re.findall(r' (?:width|height)="(\d+)"', picture)[:2])
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "picture.svg"), Path(folder, "picture.png")
        source.write_text(picture, encoding="utf-8")
        command = [
            *(browser, "--headless", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
            f"--user-data-dir={folder}/profile",
            f"--force-device-scale-factor={min(_FINE, _PIXELS / max(width, height)):.3f}",
            *(f"--window-size={width},{height}", f"--screenshot={target}", source.as_uri()),
        ]
        if hasattr(os, "geteuid") and not os.geteuid():
            command.insert(1, "--no-sandbox")  # otherwise it refuses to run as root
        try:
            subprocess.run(command, capture_output=True, timeout=120, check=True)
            return target.read_bytes()
        except (OSError, subprocess.SubprocessError) as error:
            raise DataError(
                f"{path}: cannot be made by {browser}: {reason(error)}; write .svg instead"
            ) from error
