"""Small pictures of video files, one of each chapter, decoded on request.

Needs PyAV, the ``video`` extra; without it, and for sound alone, there are no pictures.
"""

from __future__ import annotations

import threading
from fractions import Fraction
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from stepgraph.errors import StepgraphError
from stepgraph.ingest.formats import SOUND_SUFFIXES
from stepgraph.ingest.frames import shown_track
from stepgraph.ingest.media import opened

WIDTH = 240
"""Width of a picture in pixels: twice its width on the page, for fine screens."""
_KEPT = 4000  # pictures, some 6 KB each
_LATEST = 300  # pictures that are decoded for one, from the whole one before it
_TURN = threading.Semaphore(2)


def has_pictures(path: Path | None) -> bool:
    """Check whether a file may contain pictures that can be decoded."""
    return path is not None and path.suffix.lower() not in SOUND_SUFFIXES and _can_decode()


@lru_cache
def _can_decode() -> bool:
    return find_spec("av") is not None


def thumbnail(path: Path, seconds: float) -> bytes | None:
    """Decode the picture at a time as a small JPEG; None where there is none."""
    return _thumbnail(path.absolute(), path.stat().st_mtime_ns, seconds)


@lru_cache(maxsize=_KEPT)
def _thumbnail(path: Path, _changed: int, seconds: float) -> bytes | None:
    import av

    with _TURN:
        try:
            return _jpeg(_frame_at(path, seconds))
        except (StepgraphError, av.error.FFmpegError, OSError, ValueError):
            return None  # a player says what is wrong with the file


def _frame_at(path: Path, seconds: float) -> Any:
    with opened(path) as container:
        track = shown_track(container, path)
        track.thread_type = "AUTO"
        beginning = container.start_time or 0
        container.seek(beginning + round(1_000_000 * seconds))
        last = None
        for number, frame in enumerate(container.decode(track)):
            last = frame
            at_time = frame.time is None or frame.time >= seconds + beginning / 1_000_000
            if at_time or number >= _LATEST:
                break
        if last is None:
            raise ValueError("no picture was decoded")
        return last


def _jpeg(frame: Any) -> bytes:
    import av

    height = max(2, round(WIDTH * frame.height / frame.width / 2) * 2)
    small = frame.reformat(WIDTH, min(height, 2 * WIDTH), "yuvj420p")
    encoder = av.CodecContext.create("mjpeg", "w")
    encoder.width, encoder.height, encoder.pix_fmt = small.width, small.height, "yuvj420p"
    encoder.time_base = Fraction(1, 25)
    encoder.options = {"qscale": "5", "flags": "+qscale"}
    small.pts = 0
    return b"".join(bytes(one) for one in (*encoder.encode(small), *encoder.encode(None)))
