"""From a script to a video file: set every shot, film it, encode the frames, embed the narration.

A scene has the constant parts of a clip; a stage is one shot of it, drawn for any time.
Cameras shake, light changes, the air is dusty and pictures are noisy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stepgraph.datasets.generated import drawing
from stepgraph.datasets.generated.captions import Captions
from stepgraph.datasets.generated.drawing import ObjectPlace, Picture, color_of
from stepgraph.datasets.generated.scripts import HUES, KEYSTEPS, Script, Shot, View

WIDTH, HEIGHT = 160, 120
"""Size of the pictures."""

EDGE = 6  # pixels by which a camera may shake: the room is so much larger on all sides
RATE = 10  # frames a second
CODECS = {
    "libx264": {"crf": "29", "preset": "superfast", "threads": "1"},
    "mpeg4": {"qmin": "4", "qmax": "8", "threads": "1"},
}
"""Encoders in order of preference; one thread, so that the same pictures give the same file."""

Shift: TypeAlias = tuple[float, float]
"""Heights of the picture by which all is moved, right and down."""

Stage: TypeAlias = Callable[[Picture, float, Shift], None]
"""Draws a shot at any time into a picture of the room, all of it moved."""

_DUST = np.float32(150)  # the grey of dust in the air
_NOISES = 6  # different patterns of noise, in random order
# Share of the time at which an arm comes in between, by how well a keystep can be seen.
_ARMS: dict[View, float] = {"clear": 0.1, "busy": 0.3, "hidden": 0.1}


class Thing(NamedTuple):
    """A thing that is drawn: its shape and colour, its place at rest, and its motion."""

    shape: str
    color: Picture
    place: ObjectPlace
    motion: str | None = None
    pace: float = 1.0


class Scene(NamedTuple):
    """Constant parts of a clip: the room, the presenter, and the things that lie about."""

    room: Picture  # larger than the pictures by EDGE on all sides
    hues: dict[str, float]  # degrees of each colour; no two clips have quite the same
    skin: Picture
    sweater: Picture
    about: tuple[Thing, ...]


def make_scene(seed: int) -> Scene:
    """Draw the scene of a clip."""
    rng = np.random.default_rng(seed)
    hues = {name: hue + float(rng.normal(0, 5)) for name, hue in HUES.items()}
    skin = color_of(rng.uniform(15, 30), rng.uniform(0.2, 0.38), rng.uniform(0.5, 0.9))
    sweater = color_of(rng.uniform(0, 360), rng.uniform(0.1, 0.45), rng.uniform(0.3, 0.8))
    about = tuple(_lying(rng, hues) for _ in range(int(rng.integers(1, 4))))
    return Scene(_room(rng), hues, skin, sweater, about)


def _room(rng: np.random.Generator) -> Picture:
    """A wall above a bench of planks, both dull, with soft patches of more and less light."""
    height, width = HEIGHT + 2 * EDGE, WIDTH + 2 * EDGE
    wall = color_of(rng.uniform(0, 360), rng.uniform(0.0, 0.15), rng.uniform(0.5, 0.85))
    bench = color_of(rng.uniform(20, 45), rng.uniform(0.1, 0.3), rng.uniform(0.3, 0.6))
    room = np.empty((height, width, 3), np.float32)
    horizon = int(height * rng.uniform(0.3, 0.5))
    room[:horizon], room[horizon:] = wall, bench
    for plank in range(horizon, height, int(rng.integers(9, 15))):
        room[plank : plank + 1] *= np.float32(0.8)
    # A few random values with lines drawn between them.
    across, down = np.linspace(0, 11, width), np.linspace(0, 8, height)
    rows = [np.interp(across, np.arange(12), row) for row in rng.normal(1, 0.1, (9, 12))]
    columns = [np.interp(down, np.arange(9), column) for column in np.transpose(rows)]
    room *= np.transpose(columns).astype(np.float32)[..., None]
    return room


def _lying(rng: np.random.Generator, hues: dict[str, float]) -> Thing:
    """Make a small thing, unrelated to the task, near the edge."""
    hue = hues[str(rng.choice(list(hues)))]
    side = float(rng.choice([-1, 1]))
    x, y = side * rng.uniform(0.4, 0.62), rng.uniform(0.0, 0.45)
    place = ObjectPlace(x, y, rng.uniform(0.06, 0.1), rng.uniform(0, 6))
    color = color_of(hue, rng.uniform(0.35, 0.65), rng.uniform(0.4, 0.8))
    return Thing(str(rng.choice(list(drawing.SHAPES))), color, place)


def _doing(scene: Scene, shot: Shot, rng: np.random.Generator) -> Stage:
    """Stage of a keystep: it is done; other things lie about, and arms may come in between."""
    assert shot.keystep is not None, "where something is done, it is a keystep"
    look = KEYSTEPS[shot.keystep]
    hue = scene.hues[look.color] + rng.normal(0, 3)
    color = color_of(hue, rng.uniform(0.65, 0.9), rng.uniform(0.75, 1.0))
    size, pace = rng.uniform(0.17, 0.24), rng.uniform(0.85, 1.2)
    thing = Thing(look.shape, color, ObjectPlace(size=size), look.motion, pace)
    x, y = rng.normal(0, 0.05), rng.normal(0, 0.03)
    length = shot.end - shot.start
    acts = list(_acts(length, rng))
    arms = list(_arms(length, _ARMS[shot.view], rng))
    passing = _several(scene, rng, 1, 2) if shot.view == "busy" else ()
    behind = bool(shot.view == "hidden" and rng.random() < 0.5)
    if shot.view == "hidden" and not behind:  # nearly out of the picture
        x, y = rng.uniform(0.7, 0.85), rng.uniform(0.55, 0.7)
        x, y = x * rng.choice([-1, 1]), y * rng.choice([-1, 1])

    def draw_at(picture: Picture, time: float, shift: Shift) -> None:
        for other in (*scene.about, *passing):
            _draw_thing(picture, other, time, shift)
        home = x + shift[0], y + shift[1]
        busy = sum(min(max(time - start, 0.0), end - start) for start, end in acts)
        _draw_thing(picture, thing, busy, home)
        if behind:
            _draw_presenter(picture, scene, time, (home[0], shift[1] + 0.05), 1.5)
        for start, end in arms:
            if start <= time < end:
                _draw_arm(picture, scene, (time - start) / (end - start), home)

    return draw_at


def _acts(length: float, rng: np.random.Generator) -> Iterator[tuple[float, float]]:
    """Yield start and end of each motion within a keystep; in between the thing stands still."""
    time = rng.uniform(0, 1)
    while time < length:
        end = time + rng.uniform(1.5, 3.0)
        yield time, end
        time = end + rng.uniform(0.8, 2.5)


def _arms(length: float, share: float, rng: np.random.Generator) -> Iterator[tuple[float, float]]:
    """Yield start and end, in seconds, of each time an arm is in the way."""
    for start in np.arange(0.0, length, 1.7):
        if rng.random() < share:
            yield start, start + rng.uniform(1.0, 2.0)


def _talking(scene: Scene, shot: Shot, rng: np.random.Generator) -> Stage:
    """Stage of talk: the presenter speaks, perhaps with a thing in hand that is not used now."""
    x = rng.uniform(-0.2, 0.2)
    held: Thing | None = None
    if shot.keystep is not None:
        look = KEYSTEPS[shot.keystep]
        place = ObjectPlace(0.35 * rng.choice([-1, 1]), 0.15, rng.uniform(0.1, 0.16))
        held = Thing(look.shape, color_of(scene.hues[look.color]), place)

    def draw_at(picture: Picture, time: float, shift: Shift) -> None:
        _draw_presenter(picture, scene, time, (x + shift[0], 0.12 + shift[1]), 1.0)
        if held is not None:
            sway = 0.03 * math.sin(4 * time)
            _draw_thing(picture, held, time, (shift[0] + sway, shift[1] + sway))

    return draw_at


def _looking_around(scene: Scene, _: Shot, rng: np.random.Generator) -> Stage:
    """Stage of clutter: the camera looks around among things of all kinds."""
    things = _several(scene, rng, 2, 3)
    pan = rng.uniform(-0.1, 0.1, 2)

    def draw_at(picture: Picture, time: float, shift: Shift) -> None:
        moved = shift[0] + pan[0] * time, shift[1] + pan[1] * time
        for thing in (*scene.about, *things):
            _draw_thing(picture, thing, time, moved)

    return draw_at


def _several(scene: Scene, rng: np.random.Generator, least: int, most: int) -> tuple[Thing, ...]:
    """Make several things, unrelated to the task, some of which move."""
    found = []
    for _ in range(int(rng.integers(least, most + 1))):
        thing = _lying(rng, scene.hues)
        motion = str(rng.choice(["shake", "spin", "tap", "pump"])) if rng.random() < 0.3 else None
        place = thing.place._replace(size=rng.uniform(0.07, 0.11))
        found.append(thing._replace(place=place, motion=motion))
    return tuple(found)


def _draw_thing(picture: Picture, thing: Thing, time: float, shift: Shift) -> None:
    x, y, size, angle, _ = thing.place
    moved = ObjectPlace(size=size)
    if thing.motion:
        moved = drawing.MOTIONS[thing.motion](time * thing.pace, size)
    x, y = x + moved.x + shift[0], y + moved.y + shift[1]
    place = moved._replace(x=x, y=y, angle=angle + moved.angle)
    drawing.draw(picture, thing.shape, place, thing.color)


def _draw_presenter(
    picture: Picture, scene: Scene, time: float, where: Shift, size: float
) -> None:
    """A body, a head that nods, a mouth that opens and shuts, an arm that waves."""
    x, y = where
    nod = 0.012 * math.sin(5 * time)
    drawing.draw_oval(picture, (x, y + 0.42 * size), (0.27 * size, 0.42 * size), scene.sweater)
    drawing.draw_oval(picture, (x, y - 0.12 * size + nod), (0.13 * size, 0.17 * size), scene.skin)
    if math.sin(9 * time) > 0:
        mouth = scene.skin * np.float32(0.4)
        drawing.draw_oval(picture, (x, y - 0.05 * size + nod), (0.04 * size, 0.02 * size), mouth)
    hand = x + 0.3 * size, y + (0.25 + 0.08 * math.sin(3 * time)) * size
    drawing.draw_oval(picture, hand, (0.06 * size, 0.06 * size), scene.skin)


def _draw_arm(picture: Picture, scene: Scene, progress: float, home: Shift) -> None:
    """A sleeve and a hand that reach over the middle of things and away again."""
    reach = math.sin(math.pi * progress)
    x = home[0] + 0.7 - 0.7 * reach
    drawing.draw_oval(picture, (x + 0.45, home[1] + 0.12), (0.45, 0.13), scene.sweater)
    drawing.draw_oval(picture, (x, home[1] + 0.05), (0.2, 0.19), scene.skin)


class _Camera:
    """Shakes, and sees the light change, in its own way in each shot."""

    def __init__(self, rng: np.random.Generator, *, bad: bool) -> None:
        self._sway = rng.uniform(0.5, 2.0)
        self._phases = rng.uniform(0, 2 * math.pi, 3)
        level = rng.uniform(0.5, 0.7) if bad else rng.uniform(0.8, 1.1)
        self._light = (level * rng.normal(1, 0.04, 3)).astype(np.float32)
        self._flicker = rng.uniform(0.0, 0.08)
        self._dust = np.float32(rng.uniform(0.15, 0.45) if bad else 0.0)
        noises = rng.normal(0, rng.uniform(2, 6), (_NOISES, HEIGHT, WIDTH, 1))
        self._noises = noises.astype(np.float32)
        self._rng = rng

    def offset(self, time: float) -> tuple[int, int]:
        """Pixels right and down by which the picture is moved."""
        x = self._sway * math.sin(3.1 * time + self._phases[0])
        y = 0.6 * self._sway * math.sin(4.3 * time + self._phases[1])
        return round(x), round(y)

    def expose(self, picture: Picture, time: float) -> NDArray[np.uint8]:
        """Add dust, the light at a time, and noise to a picture."""
        if self._dust:
            picture += self._dust * (_DUST - picture)
        wave = 1 + self._flicker * math.sin(2.3 * time + self._phases[2])
        picture *= self._light * np.float32(wave)
        picture += self._noises[self._rng.integers(_NOISES)]
        return np.clip(picture, 0, 255, out=picture).astype(np.uint8)


def film(scene: Scene, shot: Shot) -> Iterator[NDArray[np.uint8]]:
    """Draw the frames of a shot, shape (HEIGHT, WIDTH, 3)."""
    rng = np.random.default_rng(shot.seed)
    bad = shot.kind == "step" and shot.view == "busy" and rng.random() < 0.6
    stages = {"step": _doing, "talk": _talking, "clutter": _looking_around}
    draw_at = stages[shot.kind](scene, shot, rng)
    camera = _Camera(rng, bad=bad)
    for frame in range(round((shot.end - shot.start) * RATE)):
        time = frame / RATE
        x, y = camera.offset(time)
        picture = scene.room[EDGE - y : EDGE - y + HEIGHT, EDGE - x : EDGE - x + WIDTH].copy()
        draw_at(picture, time, (x / HEIGHT, y / HEIGHT))
        yield camera.expose(picture, time)


def render(script: Script, path: Path, *, captions: bool = False) -> None:
    """Write a clip as a video file with its narration as a text track inside, or as captions."""
    import av

    scene = make_scene(script.seed)
    written = Captions(script, WIDTH, HEIGHT) if captions else None
    with av.open(str(path), "w") as container:
        codec = next(name for name in CODECS if name in av.codecs_available)
        pictures: Any = container.add_stream(codec, rate=RATE, options=CODECS[codec])
        pictures.width, pictures.height, pictures.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        if written is None:
            words = container.add_stream("mov_text")
            words.codec_context.subtitle_header = b"[Script Info]\n"
        else:
            pictures.width, pictures.height = written.width, written.height
        for shot in script.shots:
            for number, picture in enumerate(film(scene, shot)):
                if written is not None:
                    picture = written.write(picture, shot.start + number / RATE)
                frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
                container.mux(pictures.encode(frame))
        container.mux(pictures.encode())
        for sentence in script.narration if written is None else ():
            text = sentence.text.encode()
            packet = av.Packet(len(text).to_bytes(2, "big") + text)  # as such tracks want it
            packet.stream, packet.time_base = words, Fraction(1, 1000)
            packet.pts = packet.dts = round(1000 * sentence.start)
            packet.duration = round(1000 * (sentence.end - sentence.start))
            container.mux(packet)
