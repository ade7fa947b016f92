"""Shapes, colours and motions of the generated clips.

A picture is an array of RGB floats from 0 to 255, drawn into in place.  Lengths are in heights of
the picture, measured from its middle, so that a scene looks the same at any size.
"""

from __future__ import annotations

import colorsys
import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Picture: TypeAlias = NDArray[np.float32]
Field: TypeAlias = NDArray[np.float32]


class ObjectPlace(NamedTuple):
    """Place of a thing: its middle, its size, its angle in radians, and whether it is lit."""

    x: float = 0.0
    y: float = 0.0
    size: float = 0.2
    angle: float = 0.0
    lit: bool = True


def color_of(hue: float, saturation: float = 0.85, value: float = 0.9) -> Picture:
    """RGB of a hue in degrees.

    >>> color_of(0, 1.0, 1.0).tolist()
    [255.0, 0.0, 0.0]
    """
    rgb = colorsys.hsv_to_rgb((hue % 360) / 360, saturation, value)
    return np.array(rgb, dtype=np.float32) * 255


# --- Shapes: distance from the edge, negative inside, in units of the thing's size


def _box(u: Field, v: Field, wide: float, high: float) -> Field:
    return np.maximum(np.abs(u) - wide, np.abs(v) - high)


def _ring(u: Field, v: Field) -> Field:
    """A hoop with a gap, without which nobody would see it turn."""
    hoop = np.abs(np.hypot(u, v) - 0.85) - 0.3
    return np.maximum(hoop, -_box(u - 0.85, v, 0.5, 0.3))


def _wheel(u: Field, v: Field) -> Field:
    """A rim, a hub and three spokes."""
    radius = np.hypot(u, v)
    rim = np.abs(radius - 1) - 0.17
    found: Field = np.minimum(rim, radius - 0.3)
    for turn in (0.0, 2 * math.pi / 3, 4 * math.pi / 3):
        along, across = _turned(u, v, turn)
        found = np.minimum(found, _box(along - 0.5, across, 0.5, 0.15))
    return found


def _wedge(u: Field, v: Field) -> Field:
    """A triangle that points down."""
    side = 0.894 * np.abs(u) + 0.447 * v - 0.55
    return np.asarray(np.maximum(side, -v - 0.9), dtype=np.float32)


def _star(u: Field, v: Field) -> Field:
    angle = np.arctan2(v, u)
    folded = np.abs((angle * (5 / (2 * math.pi))) % 1 - 0.5)
    edge = 0.5 + 1.5 * folded
    return np.asarray(np.hypot(u, v) - edge, dtype=np.float32)


SHAPES: dict[str, tuple[Callable[[Field, Field], Field], float]] = {
    "block": (lambda u, v: _box(u, v, 0.9, 0.9), 1.3),
    "rod": (lambda u, v: _box(u, v, 0.27, 1.5), 1.55),
    "plate": (lambda u, v: _box(u, v, 1.6, 0.42), 1.7),
    "ball": (lambda u, v: np.hypot(u, v) - 1, 1.0),
    "ring": (_ring, 1.2),
    "wheel": (_wheel, 1.2),
    "wedge": (_wedge, 1.5),
    "star": (_star, 1.3),
}
"""Distance of a point from the edge of each shape, and the reach of the shape from its middle."""


def _turned(u: Field, v: Field, angle: float) -> tuple[Field, Field]:
    cos, sin = math.cos(angle), math.sin(angle)
    return cos * u + sin * v, cos * v - sin * u


def draw(picture: Picture, shape: str, place: ObjectPlace, color: Picture) -> None:
    """Draw a thing with smooth edges; what lies outside of the picture is cut off."""
    height, width = picture.shape[:2]
    distance, reach = SHAPES[shape]
    size = max(place.size * height, 0.5)
    x, y = width / 2 + place.x * height, height / 2 + place.y * height
    part, u, v = _window(picture, (x, y), (reach * size + 1, reach * size + 1))
    along = (u - np.float32(x - 0.5)).astype(np.float32) / np.float32(size)
    down = (v - np.float32(y - 0.5)).astype(np.float32) / np.float32(size)
    along, down = _turned(along, down, place.angle)
    cover = np.clip(np.float32(0.5) - distance(along, down) * np.float32(size), 0, 1)
    if not place.lit:
        gray = color.mean() * 0.35
        color = gray + 0.12 * (color - gray)
    part += cover[..., None] * (color - part)


def draw_oval(
    picture: Picture, middle: tuple[float, float], radii: tuple[float, float], color: Picture
) -> None:
    """Draw an upright oval: heads, bodies, arms."""
    height, width = picture.shape[:2]
    x, y = width / 2 + middle[0] * height, height / 2 + middle[1] * height
    wide, high = radii[0] * height, radii[1] * height
    part, u, v = _window(picture, (x, y), (wide + 1, high + 1))
    across = ((u - (x - 0.5)) / wide).astype(np.float32)
    down = ((v - (y - 0.5)) / high).astype(np.float32)
    inside = (1 - np.hypot(across, down)) * min(wide, high)
    part += np.clip(inside + 0.5, 0, 1)[..., None] * (color - part)


def _window(
    picture: Picture, middle: tuple[float, float], reach: tuple[float, float]
) -> tuple[Picture, NDArray[np.int64], NDArray[np.int64]]:
    """The part of a picture that a thing may touch, and its columns and rows."""
    right, bottom = (int(at + far) + 2 for at, far in zip(middle, reach, strict=True))
    left, top = (max(0, int(at - far)) for at, far in zip(middle, reach, strict=True))
    part = picture[top : max(0, bottom), left : max(0, right)]
    v, u = np.ogrid[: part.shape[0], : part.shape[1]]
    return part, u + left, v + top


# --- Motions: where a thing is after so many seconds

_CYCLE = 2.0  # seconds
_TRAVEL = 0.75  # share of a cycle in which a thing travels; then it lies still, then again


def _progress(time: float) -> float:
    """Share of its way that a thing has made, from 0 to 1."""
    return min((time / _CYCLE) % 1 / _TRAVEL, 1.0)


def _wave(time: float, rate: float) -> float:
    return math.sin(2 * math.pi * rate * time)


MOTIONS: dict[str, Callable[[float, float], ObjectPlace]] = {
    "right": lambda time, size: ObjectPlace(-0.8 * (1 - _progress(time)), 0.05, size),
    "left": lambda time, size: ObjectPlace(0.8 * (1 - _progress(time)), 0.05, size),
    "down": lambda time, size: ObjectPlace(0.0, 0.15 - 0.75 * (1 - _progress(time)), size),
    "up": lambda time, size: ObjectPlace(0.0, -0.2 + 0.7 * (1 - _progress(time)), size),
    "spin": lambda time, size: ObjectPlace(0.0, 0.0, size, 2 * math.pi * 0.45 * time),
    "shake": lambda time, size: ObjectPlace(0.17 * _wave(time, 1.4), 0.05, size),
    "tap": lambda time, size: ObjectPlace(0.0, 0.12 - 0.24 * abs(_wave(time, 0.8)), size),
    "pump": lambda time, size: ObjectPlace(0.0, 0.0, size * (1 + 0.35 * _wave(time, 1.0))),
    "blink": lambda time, size: ObjectPlace(0.0, 0.0, size, lit=(time * 1.5) % 1 < 0.55),
}
"""Place of a thing of some size at a time in seconds, by the name of its motion."""
