"""What is before the camera of the generated clips: a room, things, people, and what they do.

A scene stays the same throughout a clip; a stage is one shot of it, drawn for any time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stepgraph.datasets.generated.drawing import (
    HUES,
    MOTIONS,
    SHAPES,
    Picture,
    Place,
    colour_of,
    draw,
    draw_oval,
)
from stepgraph.datasets.generated.fiction import KEYSTEPS, View
from stepgraph.datasets.generated.scripts import Shot

WIDTH, HEIGHT = 160, 120
"""Size of the pictures."""

EDGE = 6
"""Pixels by which a camera may shake: the room is so much larger on all sides."""

Shift: TypeAlias = tuple[float, float]
"""Heights of the picture by which all is moved, right and down."""

# Share of moments at which an arm comes in between, by how well a keystep is to be seen.
_ARMS: dict[View, float] = {"clear": 0.1, "busy": 0.3, "hidden": 0.1}


class Thing(NamedTuple):
    """Something that is drawn: what, where at rest, and how it moves."""

    shape: str
    colour: Picture
    place: Place
    motion: str | None = None
    pace: float = 1.0


@dataclass(frozen=True)
class Scene:
    """What stays the same throughout a clip: the room, who is there, what lies about.

    Attributes
    ----------
    room : shape (HEIGHT + 2 * EDGE, WIDTH + 2 * EDGE, 3)
    hues
        Degrees of each colour; no two clips have quite the same.
    """

    room: Picture
    hues: dict[str, float]
    skin: Picture
    sweater: Picture
    about: tuple[Thing, ...]


def make_scene(seed: int) -> Scene:
    """Draw the scene of a clip."""
    rng = np.random.default_rng(seed)
    hues = {name: hue + float(rng.normal(0, 5)) for name, hue in HUES.items()}
    skin = colour_of(rng.uniform(15, 30), rng.uniform(0.2, 0.38), rng.uniform(0.5, 0.9))
    sweater = colour_of(rng.uniform(0, 360), rng.uniform(0.1, 0.45), rng.uniform(0.3, 0.8))
    about = tuple(_lying(rng, hues) for _ in range(int(rng.integers(1, 4))))
    return Scene(_room(rng), hues, skin, sweater, about)


def _room(rng: np.random.Generator) -> Picture:
    """A wall above a bench of planks, both dull."""
    height, width = HEIGHT + 2 * EDGE, WIDTH + 2 * EDGE
    wall = colour_of(rng.uniform(0, 360), rng.uniform(0.0, 0.15), rng.uniform(0.5, 0.85))
    bench = colour_of(rng.uniform(20, 45), rng.uniform(0.1, 0.3), rng.uniform(0.3, 0.6))
    room = np.empty((height, width, 3), np.float32)
    horizon = int(height * rng.uniform(0.3, 0.5))
    room[:horizon], room[horizon:] = wall, bench
    for plank in range(horizon, height, int(rng.integers(9, 15))):
        room[plank : plank + 1] *= np.float32(0.8)
    room *= _stains(rng, height, width)[..., None]
    return room


def _stains(rng: np.random.Generator, height: int, width: int) -> NDArray[np.float32]:
    """Soft patches of more and less light: a few random values with lines drawn between them."""
    coarse = rng.normal(1, 0.1, (9, 12))
    across = np.linspace(0, 11, width)
    rows = np.stack([np.interp(across, np.arange(12), row) for row in coarse])
    down = np.linspace(0, 8, height)
    columns = [np.interp(down, np.arange(9), column) for column in rows.T]
    return np.stack(columns, axis=1).astype(np.float32)


def _lying(rng: np.random.Generator, hues: dict[str, float]) -> Thing:
    """A small thing that has nothing to do with it, somewhere near the edge."""
    hue = hues[str(rng.choice(list(hues)))]
    side = float(rng.choice([-1, 1]))
    place = Place(
        side * rng.uniform(0.4, 0.62),
        rng.uniform(0.0, 0.45),
        rng.uniform(0.06, 0.1),
        rng.uniform(0, 6),
    )
    colour = colour_of(hue, rng.uniform(0.35, 0.65), rng.uniform(0.4, 0.8))
    return Thing(str(rng.choice(list(SHAPES))), colour, place)


def set_stage(
    scene: Scene, shot: Shot, rng: np.random.Generator
) -> Doing | Talking | LookingAround:
    """Prepare a shot; each kind is drawn into a picture of the room, for any time."""
    if shot.kind == "step":
        return Doing(scene, shot, rng)
    return Talking(scene, shot, rng) if shot.kind == "talk" else LookingAround(scene, rng)


class Doing:
    """A keystep is done; other things lie about, and arms may come in between."""

    def __init__(self, scene: Scene, shot: Shot, rng: np.random.Generator) -> None:
        assert shot.keystep is not None, "where something is done, it is a keystep"
        self._scene = scene
        look = KEYSTEPS[shot.keystep].look
        hue = scene.hues[look.colour] + rng.normal(0, 3)
        colour = colour_of(hue, rng.uniform(0.65, 0.9), rng.uniform(0.75, 1.0))
        size, pace = rng.uniform(0.17, 0.24), rng.uniform(0.85, 1.2)
        self._thing = Thing(look.shape, colour, Place(size=size), look.motion, pace)
        self._home: Shift = (rng.normal(0, 0.05), rng.normal(0, 0.03))
        length = shot.end - shot.start
        self._acts = list(_acts(length, rng))
        self._arms = list(_arms(length, _ARMS[shot.view], rng))
        self._passing: tuple[Thing, ...] = ()
        self._behind = False
        if shot.view == "busy":
            self._passing = _several(scene, rng, 1, 2)
        if shot.view == "hidden":
            self._hide(rng)

    def _hide(self, rng: np.random.Generator) -> None:
        """Move it nearly out of the picture, or put the presenter in front of it."""
        self._behind = bool(rng.random() < 0.5)
        if not self._behind:
            x, y = rng.uniform(0.7, 0.85), rng.uniform(0.55, 0.7)
            self._home = (x * rng.choice([-1, 1]), y * rng.choice([-1, 1]))

    def draw(self, picture: Picture, time: float, shift: Shift) -> None:
        """Draw what there is at a time."""
        for thing in (*self._scene.about, *self._passing):
            _draw_thing(picture, thing, time, shift)
        home = self._home[0] + shift[0], self._home[1] + shift[1]
        _draw_thing(picture, self._thing, _busy_time(self._acts, time), home)
        if self._behind:
            _draw_presenter(picture, self._scene, time, (home[0], shift[1] + 0.05), 1.5)
        for start, end in self._arms:
            if start <= time < end:
                _draw_arm(picture, self._scene, (time - start) / (end - start), home)


def _acts(length: float, rng: np.random.Generator) -> Iterator[tuple[float, float]]:
    """When something is done within a keystep; in between it is only looked at, or explained."""
    time = rng.uniform(0, 1)
    while time < length:
        end = time + rng.uniform(1.5, 3.0)
        yield time, end
        time = end + rng.uniform(0.8, 2.5)


def _arms(length: float, share: float, rng: np.random.Generator) -> Iterator[tuple[float, float]]:
    """When an arm is in the way."""
    for start in np.arange(0.0, length, 1.7):
        if rng.random() < share:
            yield start, start + rng.uniform(1.0, 2.0)


def _busy_time(acts: list[tuple[float, float]], time: float) -> float:
    """How long something has been done until now."""
    return sum(min(max(time - start, 0.0), end - start) for start, end in acts)


class Talking:
    """The presenter speaks, perhaps with a thing in his hand that is not used now."""

    def __init__(self, scene: Scene, shot: Shot, rng: np.random.Generator) -> None:
        self._scene = scene
        self._where = (rng.uniform(-0.2, 0.2), 0.12)
        self._held: Thing | None = None
        if shot.keystep is not None:
            look = KEYSTEPS[shot.keystep].look
            place = Place(0.35 * rng.choice([-1, 1]), 0.15, rng.uniform(0.1, 0.16))
            self._held = Thing(look.shape, colour_of(scene.hues[look.colour]), place)

    def draw(self, picture: Picture, time: float, shift: Shift) -> None:
        """Draw what there is at a time."""
        where = self._where[0] + shift[0], self._where[1] + shift[1]
        _draw_presenter(picture, self._scene, time, where, 1.0)
        if self._held is not None:
            sway = 0.03 * math.sin(4 * time)
            _draw_thing(picture, self._held, time, (shift[0] + sway, shift[1] + sway))


class LookingAround:
    """The camera looks around among things of all kinds."""

    def __init__(self, scene: Scene, rng: np.random.Generator) -> None:
        self._scene = scene
        self._things = _several(scene, rng, 2, 3)
        self._pan = rng.uniform(-0.1, 0.1, 2)

    def draw(self, picture: Picture, time: float, shift: Shift) -> None:
        """Draw what there is at a time."""
        moved = shift[0] + self._pan[0] * time, shift[1] + self._pan[1] * time
        for thing in (*self._scene.about, *self._things):
            _draw_thing(picture, thing, time, moved)


def _several(scene: Scene, rng: np.random.Generator, least: int, most: int) -> tuple[Thing, ...]:
    """Things that have nothing to do with it, some of which move."""
    found = []
    for _ in range(int(rng.integers(least, most + 1))):
        thing = _lying(rng, scene.hues)
        motion = str(rng.choice(["shake", "spin", "tap", "pump"])) if rng.random() < 0.3 else None
        place = thing.place._replace(size=rng.uniform(0.07, 0.11))
        found.append(thing._replace(place=place, motion=motion))
    return tuple(found)


def _draw_thing(picture: Picture, thing: Thing, time: float, shift: Shift) -> None:
    place = thing.place
    if thing.motion is not None:
        moved = MOTIONS[thing.motion](time * thing.pace, place.size)
        place = moved._replace(
            x=place.x + moved.x, y=place.y + moved.y, angle=place.angle + moved.angle
        )
    draw(
        picture,
        thing.shape,
        place._replace(x=place.x + shift[0], y=place.y + shift[1]),
        thing.colour,
    )


def _draw_presenter(
    picture: Picture, scene: Scene, time: float, where: Shift, size: float
) -> None:
    """A body, a head that nods, a mouth that opens and shuts, an arm that waves."""
    x, y = where
    nod = 0.012 * math.sin(5 * time)
    draw_oval(picture, (x, y + 0.42 * size), (0.27 * size, 0.42 * size), scene.sweater)
    draw_oval(picture, (x, y - 0.12 * size + nod), (0.13 * size, 0.17 * size), scene.skin)
    if math.sin(9 * time) > 0:
        mouth = scene.skin * np.float32(0.4)
        draw_oval(picture, (x, y - 0.05 * size + nod), (0.04 * size, 0.02 * size), mouth)
    hand = x + 0.3 * size, y + (0.25 + 0.08 * math.sin(3 * time)) * size
    draw_oval(picture, hand, (0.06 * size, 0.06 * size), scene.skin)


def _draw_arm(picture: Picture, scene: Scene, progress: float, home: Shift) -> None:
    """A sleeve and a hand that reach over the middle of things and away again."""
    reach = math.sin(math.pi * progress)
    x = home[0] + 0.7 - 0.7 * reach
    draw_oval(picture, (x + 0.45, home[1] + 0.12), (0.45, 0.13), scene.sweater)
    draw_oval(picture, (x, home[1] + 0.05), (0.2, 0.19), scene.skin)
