"""From a script to a video file: film every shot, encode the frames, embed the narration.

Cameras shake, light changes, the air is dusty and pictures are noisy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.datasets.generated.drawing import Picture
from stepgraph.datasets.generated.scripts import Script, Shot
from stepgraph.datasets.generated.stage import EDGE, HEIGHT, WIDTH, Scene, make_scene, set_stage

RATE = 10
"""Frames a second."""

CODECS = {
    "libx264": {"crf": "29", "preset": "superfast", "threads": "1"},
    "mpeg4": {"qmin": "4", "qmax": "8", "threads": "1"},
}
"""Encoders in order of preference; one thread, so that the same pictures give the same file."""

_DUST = np.float32(150)  # the grey of dust in the air
_NOISES = 6  # different patterns of noise, in random order


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
        """See a picture through dust, in the light of the moment, with noise."""
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
    draw_at = set_stage(scene, shot, rng)
    camera = _Camera(rng, bad=bad)
    for frame in range(round((shot.end - shot.start) * RATE)):
        time = frame / RATE
        x, y = camera.offset(time)
        picture = scene.room[EDGE - y : EDGE - y + HEIGHT, EDGE - x : EDGE - x + WIDTH].copy()
        draw_at(picture, time, (x / HEIGHT, y / HEIGHT))
        yield camera.expose(picture, time)


def render(script: Script, path: Path) -> None:
    """Write a clip as a video file with its narration as a text track inside."""
    import av

    scene = make_scene(script.seed)
    with av.open(str(path), "w") as container:
        codec = next(name for name in CODECS if name in av.codecs_available)
        pictures: Any = container.add_stream(codec, rate=RATE, options=CODECS[codec])
        pictures.width, pictures.height, pictures.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        words = container.add_stream("mov_text")
        words.codec_context.subtitle_header = b"[Script Info]\n"
        for shot in script.shots:
            for picture in film(scene, shot):
                frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
                container.mux(pictures.encode(frame))
        container.mux(pictures.encode())
        for sentence in script.narration:
            text = sentence.text.encode()
            packet = av.Packet(len(text).to_bytes(2, "big") + text)  # as such tracks want it
            packet.stream, packet.time_base = words, Fraction(1, 1000)
            packet.pts = packet.dts = round(1000 * sentence.start)
            packet.duration = round(1000 * (sentence.end - sentence.start))
            container.mux(packet)
