"""Captions of a generated clip: its narration, drawn into its pictures, fading in and out.

Clips differ in where captions stand and what they look like; in some, a channel's name stays at
the other edge.  The pictures are enlarged, since in so small ones nobody could read.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import Sentence
from stepgraph.datasets.generated.scripts import Script
from stepgraph.errors import MissingExtraError

SCALE = 2
"""Factor by which the pictures are enlarged."""

_FADE = 0.3  # seconds in which a caption comes or goes
_CHANNEL = Sentence(-1.0, math.inf, "Workshop Weekly")


class _Style(NamedTuple):
    """Style of a text: font size in pixels, colour, with a box or without, at the top or not."""

    size: int
    color: tuple[int, int, int]
    boxed: bool
    top: bool


class _Overlay(NamedTuple):
    """A text, its start and end in seconds, and the share of each pixel that it covers."""

    start: float
    end: float
    color: NDArray[np.uint8]
    cover: NDArray[np.float32]


class Captions:
    """Writes the captions of a clip into its pictures, which are of one size."""

    def __init__(self, script: Script, width: int, height: int, scale: int = SCALE) -> None:
        rng = np.random.default_rng([script.seed, 1])
        self._scale, self.width, self.height = scale, scale * width, scale * height
        size, colors = round(self.height * rng.uniform(0.06, 0.08)), rng.integers(120, 256, 2)
        color = (255, int(colors.max()), int(colors.min()))
        style = _Style(size, color, bool(rng.integers(2)), bool(rng.random() < 0.3))
        self._overlays = [self._overlay(sentence, style) for sentence in script.narration]
        if rng.integers(2):
            edge = _Style(size * 3 // 4, (220, 220, 220), boxed=False, top=not style.top)
            self._overlays.append(self._overlay(_CHANNEL, edge))

    def _overlay(self, sentence: Sentence, style: _Style) -> _Overlay:
        try:
            from PIL import Image, ImageDraw, ImageFont
        except ImportError as error:
            raise MissingExtraError(
                "writing captions needs the 'ocr' extra; run: pip install pillow"
            ) from error
        font = ImageFont.load_default(style.size)
        text = ""
        for word in sentence.text.split():
            line = f"{text} {word}".rpartition("\n")[2]
            text += f" {word}" if font.getlength(line) <= 0.9 * self.width else f"\n{word}"
        text = text.strip()
        image = Image.new("RGBA", (self.width, self.height))
        draw, pad = ImageDraw.Draw(image), style.size // 2
        place, anchor = (self.width // 2, self.height - pad), "md"
        if style.top:
            place, anchor = (self.width // 2, pad), "ma"
        if style.boxed:
            box = draw.multiline_textbbox(place, text, font, anchor, align="center")
            draw.rectangle((box[0] - 4, box[1] - 4, box[2] + 4, box[3] + 4), (0, 0, 0, 170))
        draw.multiline_text(
            place, text, style.color, font, anchor, align="center", stroke_width=1, stroke_fill=0
        )
        drawn = np.asarray(image)
        cover = drawn[..., 3:].astype(np.float32) / np.float32(255)
        return _Overlay(sentence.start, sentence.end, drawn[..., :3], cover)

    def write(self, picture: NDArray[np.uint8], time: float) -> NDArray[np.uint8]:
        """Enlarge a picture and draw the captions of a time (seconds) into it."""
        large = picture.repeat(self._scale, axis=0).repeat(self._scale, axis=1)
        for start, end, color, cover in self._overlays:
            shown = min(1.0, (time - start) / _FADE, (end - time) / _FADE)
            if shown > 0:
                change = cover * np.float32(shown) * (color - large.astype(np.float32))
                large = (large + change).astype(np.uint8)
        return large
