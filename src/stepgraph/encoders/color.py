"""Encoder of colour and motion without any training: which colour moves, and how it moves.

Clips and keystep names share the same named axes, colours and motions: clips are measured, the
words of names are looked up.  The encoder distinguishes keysteps by such words only, and replaces
a learned one where there is none.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stepgraph.encoders import EncoderOptions
from stepgraph.encoders.vectors import unit
from stepgraph.encoders.visual import VisualEncoder
from stepgraph.errors import ConfigError
from stepgraph.ingest.frames import ClipOptions

Array: TypeAlias = NDArray[np.float32]

MODEL = "motion"
"""The only model of this kind."""

_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))

COLORS: dict[str, float] = _TABLE["hues"]
"""Typical hue of each colour word, in degrees."""

MOTIONS = tuple(_TABLE["motions"])
"""Names of the motions."""

AXES = (*COLORS, "nothing", *MOTIONS)
"""Names of the dimensions of a vector; ``nothing`` is large where little is visible."""

_PARTS = len(COLORS) + 1

_WORDS = _TABLE["colours"] | _TABLE["motions"]
_AXIS_OF = {word: AXES.index(axis) for axis, words in _WORDS.items() for word in words.split()}
# To puff something up is not to lift it.
_NO_LIFT = re.compile(r"\b(puff|pump|blow) up\b")

_CLIPS = ClipOptions(frames=8, window=1.0, stride=1.0, height=48, width=64, crop=False)
_BATCH = 16
_LEAST = 0.004  # share of the picture that a colour must cover to be a thing
_HARDLY = 0.03  # attention that counts as much as nothing: a small thing at rest
_JUMP = 0.2  # heights of the picture that nothing moves from one frame to the next
_AT_ONCE = 0.45  # share of a thing that comes or goes from one frame to the next if it blinks
_SWAY = 0.08  # motion of a thing at rest before a camera that is not quite still
_AT_REST = 0.3  # motion that counts as much as none


def make_color(options: EncoderOptions) -> VisualEncoder:
    """Encode a video by the colours that move in it and by how they move."""
    if options.model != MODEL:
        raise ConfigError(f"encoder of kind colour must be 'colour:{MODEL}', got {options.name!r}")
    return VisualEncoder(options, ColorModel, _BATCH)


class ColorModel:
    """Model that measures clips and looks up words."""

    clips = _CLIPS

    def encode_clips(self, frames: NDArray[np.uint8]) -> Array:
        """Unit vectors of clips, from shape (B, F, H, W, 3) to (B, axes)."""
        return _joined(*_measure(frames))

    def encode_texts(self, texts: Sequence[str]) -> Array:
        """Unit vectors of texts, shape (N, axes); zeros for a text without a listed word.

        >>> found = ColorModel().encode_texts(["drop the red ball", "be patient"])
        >>> [AXES[axis] for axis in found[0].nonzero()[0]], found[1].any().item()
        (['red', 'down'], False)
        """
        found = np.zeros((len(texts), len(AXES)), np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"[a-z]+", _NO_LIFT.sub(r"\1", text.lower())):
                if word in _AXIS_OF:
                    found[row, _AXIS_OF[word]] = 1
        return _joined(found[:, :_PARTS], found[:, _PARTS:])


def _joined(color: Array, motion: Array) -> Array:
    """Concatenate both as one unit vector; each counts for half unless the other is zero."""
    return unit(np.concatenate([unit(color), unit(motion)], axis=1))


def _measure(frames: NDArray[np.uint8]) -> tuple[Array, Array]:
    """Colour and motion of what moves in each clip: shapes (B, colours + 1) and (B, motions)."""
    masses = _masses(frames)
    things = _things(masses)
    going_on = ~_cuts(frames)[:, :, None]
    # Attention goes to what changes; what lies still counts a little.
    change = (np.abs(np.diff(masses, axis=1)).mean(axis=(2, 3)) * going_on).sum(axis=1)
    attention = change + np.float32(0.35) * things.area.mean(axis=1)
    attention = np.where(things.area.max(axis=1) >= _LEAST, attention, 0)
    shares = attention**2
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-12)
    motion = (shares[:, :, None] * _motion(things, change, going_on)).sum(axis=1)
    nothing = np.full((len(frames), 1), _HARDLY, np.float32)
    return np.concatenate([attention, nothing], axis=1), motion


def _cuts(frames: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Mask of cuts, where over 40 % of the picture changes between two frames: (B, F - 1)."""
    green = frames[..., 1].astype(np.int16)
    changed = np.abs(np.diff(green, axis=1)) > 8
    return np.asarray(changed.mean(axis=(2, 3)) > 0.4)


def _masses(frames: NDArray[np.uint8]) -> Array:
    """Membership of each pixel in each colour, 0 to 1: shape (B, F, H, W, colours)."""
    red, green, blue = (frames[..., channel].astype(np.float32) for channel in range(3))
    high = np.maximum(np.maximum(red, green), blue)
    spread = high - np.minimum(np.minimum(red, green), blue)
    saturation = spread / np.maximum(high, 1)
    vivid = np.clip((saturation - 0.4) / 0.25, 0, 1) * np.clip((high - 40) / 50, 0, 1)
    safe = np.maximum(spread, 1)
    sector = np.where(
        high == red,
        (green - blue) / safe,
        np.where(high == green, (blue - red) / safe + 2, (red - green) / safe + 4),
    )
    masses: Array = _NAMES[(sector * 60).astype(np.int64) % 360]
    masses *= vivid[..., None]
    return masses


def _names_of_hues() -> Array:
    """Share of each colour word in each degree of hue; between two words, some of both."""
    edges, degrees = np.array([*COLORS.values(), 360.0]), np.arange(360)
    after = np.searchsorted(edges, degrees, side="right")
    part = (degrees - edges[after - 1]) / (edges[after] - edges[after - 1])
    # Steeper than a straight line: most hues have one name.
    part = np.clip(2 * part - 0.5, 0, 1)
    table = np.zeros((len(degrees), len(COLORS)), np.float32)
    table[degrees, after - 1] += 1 - part
    table[degrees, after % len(COLORS)] += part
    return table


_NAMES = _names_of_hues()


class _Things(NamedTuple):
    """Area, centre and extent of each colour in each frame: arrays of shape (B, F, colours).

    Area is a share of the picture; centres and extents are in picture heights.
    """

    area: Array
    x: Array
    y: Array
    wide: Array
    high: Array


def _things(masses: Array) -> _Things:
    clips, frames, height, width, colors = masses.shape
    rows, columns = np.mgrid[:height, :width].reshape(2, -1)
    x = ((columns + 0.5) / height).astype(np.float32)
    y = ((rows + 0.5) / height).astype(np.float32)
    # One product sums what there is of each colour, weighted in each of these ways.
    basis = np.stack([np.ones_like(x), x, y, x * x, y * y])
    sums: Array = basis @ masses.reshape(clips * frames, height * width, colors)
    sums = sums.reshape(clips, frames, len(basis), colors)
    total = sums[:, :, 0]
    middle_x, middle_y, square_x, square_y = np.moveaxis(
        sums[:, :, 1:] / np.maximum(total[:, :, None], np.float32(1e-6)), 2, 0
    )
    # The side of a box with this variance.
    wide, high = (
        np.sqrt(np.maximum(12 * (square - middle**2), 0))
        for square, middle in ((square_x, middle_x), (square_y, middle_y))
    )
    return _Things(total / np.float32(height * width), middle_x, middle_y, wide, high)


def _motion(things: _Things, change: Array, going_on: NDArray[np.bool_]) -> Array:
    """Motion of the object of each colour: shape (B, colours, motions), of unit length."""
    area = things.area
    step_x, step_y = np.diff(things.x, axis=1), np.diff(things.y, axis=1)
    # What jumps did not move: it was put somewhere else, or something else came into sight.
    moving = (area[:, 1:] >= _LEAST) & (area[:, :-1] >= _LEAST) & going_on
    moving &= np.hypot(step_x, step_y) < _JUMP
    step_x, step_y = np.where(moving, step_x, 0), np.where(moving, step_y, 0)
    x, y = step_x.sum(axis=1), step_y.sum(axis=1)
    to_and_fro = np.abs(step_x).sum(axis=1) - np.abs(x)
    up_and_down = np.abs(step_y).sum(axis=1) - np.abs(y)
    largest = np.maximum(area.max(axis=1), 1e-6)
    growth = np.diff(area, axis=1) * going_on / largest[:, None]
    blinks = np.clip(np.abs(growth) - _AT_ONCE, 0, None).sum(axis=1)
    slowly = np.where(np.abs(growth) < _AT_ONCE, growth, 0)
    # What only shrinks or only grows is on its way out of sight, or into it.
    swell = np.abs(slowly).sum(axis=1) - np.abs(slowly.sum(axis=1))
    turning = change / largest - _explained(things, step_x, step_y) - np.abs(growth).sum(axis=1)
    seen = [x, -x, y, -y, turning / 4, to_and_fro, up_and_down, 0.3 * swell, 0.5 * blinks]
    still = np.full_like(x, _AT_REST)
    found = np.stack([*(np.clip(one - _SWAY, 0, None) for one in seen), still], axis=-1)
    return unit(found.reshape(-1, len(MOTIONS))).reshape(found.shape)


def _explained(things: _Things, step_x: Array, step_y: Array) -> Array:
    """Change of the picture, in areas of the object, that its translation explains.

    A moving object sweeps over the picture with its outer edges, and with those inside it.
    """
    swept = things.high[:, 1:] * np.abs(step_x) + things.wide[:, 1:] * np.abs(step_y)
    aspect = np.float32(_CLIPS.width / _CLIPS.height)
    largest = np.maximum(things.area.max(axis=1), 1e-6) * aspect
    return np.asarray(2.5 * swept.sum(axis=1) / largest, dtype=np.float32)
