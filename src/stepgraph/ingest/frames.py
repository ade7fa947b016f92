"""Read the pictures of a video file as clips, one for every row.

A file is decoded once and in order, whatever is asked of it.  Only pictures that a clip keeps are
scaled, and only clips that are not complete yet are held, so an hour needs no more memory than a
minute.  Needs PyAV, the ``video`` extra.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from heapq import merge
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import rows_in
from stepgraph.errors import ConfigError
from stepgraph.ingest.media import media_duration, opened
from stepgraph.ingest.picture_track import PictureTrack


@dataclass(frozen=True)
class ClipOptions:
    """Which pictures make the clip of a row, and their size.

    Row ``t`` begins at ``t * stride`` seconds.  Its clip is the ``window`` seconds from there on,
    cut into ``frames`` equal parts: of each part, what is on screen in its middle.  With ``crop``
    a picture is scaled until it covers height and width and its middle is cut out, else all of it
    is squeezed into them.
    """

    frames: int = 1
    window: float = 1.0
    stride: float = 1.0
    height: int = 224
    width: int = 224
    crop: bool = True

    def __post_init__(self) -> None:
        for name in ("frames", "height", "width"):
            value = getattr(self, name)
            if not isinstance(value, int) or not 1 <= value <= 8192:
                raise ConfigError(f"{name} of a clip must be between 1 and 8192, got {value!r}")
        for name in ("window", "stride"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise ConfigError(f"{name} of a clip must be more than 0 seconds, got {value!r}")


class Clip(NamedTuple):
    """The pictures of one row: RGB, shape (F, H, W, 3).

    ``start`` and ``end`` are the seconds they were chosen from, as far as the video lasts.
    """

    start: float
    end: float
    frames: NDArray[np.uint8]


def read_clips(
    path: Path, options: ClipOptions, *, duration: float | None = None
) -> Iterator[Clip]:
    """Yield the clip of each row of a video file, in order.

    On screen at a time is the last picture that begins at it or before; before the first one, the
    first, and after the last one, the last.  Time 0 is the start of the file as players show it.

    ``duration`` is how many seconds to read, by default those of the file.  A row that starts
    after the last picture repeats it, so that there are as many rows as of the transcript.  Where
    there is no picture, or it breaks off, is an error; clips before that are good.
    """
    path = Path(path)
    with opened(path) as container:
        track = PictureTrack(container, path)
        if duration is None:
            stated = container.duration  # where there is none the file is opened once more
            duration = stated / 1_000_000 if stated else media_duration(path)
        scaler = _Scaler(options, track.stretch)
        kept = defaultdict[int, list[NDArray[np.uint8]]](list)
        for row, frame in _on_screen(track, _samples(track, duration, options)):
            kept[row].append(scaler.picture(frame))
            if len(kept[row]) == options.frames:
                start = row * options.stride
                end = min(start + options.window, duration)
                yield Clip(start, end, np.stack(kept.pop(row)))
        track.require_undamaged()


def _samples(
    track: PictureTrack, duration: float, options: ClipOptions
) -> Iterator[tuple[int, int]]:
    """Tick at which a picture is wanted, and for which row; in order of both."""

    # Windows may overlap; in ticks of the stream their times compare exactly.
    def of_part(offset: float) -> Iterator[tuple[int, int]]:
        for row in range(rows_in(duration, options.stride)):
            yield track.tick_at(row * options.stride + offset), row

    parts = range(options.frames)
    return merge(*(of_part((n + 0.5) * (options.window / options.frames)) for n in parts))


def _on_screen(
    track: PictureTrack, samples: Iterator[tuple[int, int]]
) -> Iterator[tuple[int, Any]]:
    """Yield the row of each sample and its picture; nothing is decoded after the last."""
    sample = next(samples, None)
    held: Any = None
    for begin, frame in track.pictures() if sample else ():
        while sample and sample[0] < begin:
            yield sample[1], frame if held is None else held
            sample = next(samples, None)
        if sample is None:
            return
        held = frame
    while sample:
        yield sample[1], held
        sample = next(samples, None)


class _Scaler:
    """Turns decoded pictures into RGB arrays of one size; the last one is kept."""

    def __init__(self, options: ClipOptions, stretch: float) -> None:
        import av
        from av.video.reformatter import VideoReformatter

        self._options = options
        self._stretch = stretch
        self._reformatter = VideoReformatter()
        # From 17 on PyAV would cut each picture into as many parts as there are processors.
        several = int(av.__version__.partition(".")[0]) >= 17
        # Bicubic, as the published models were trained with.  By way of planes, since only into
        # these swscale is quick without halving the resolution of colours.
        self._how: dict[str, Any] = {"format": "gbrp", "interpolation": "BICUBIC"}
        self._how |= {"threads": 1} if several else {}
        self._cutter: Any = None
        self._cuts: tuple[int, int, str] | None = None  # what the cutter is made for
        self._frame: Any = None
        self._picture: NDArray[np.uint8] = np.zeros((0, 0, 3), np.uint8)

    def picture(self, frame: Any) -> NDArray[np.uint8]:
        """Return the picture as it is shown, shape (H, W, 3); not to be written to."""
        if frame is not self._frame:
            self._frame, self._picture = frame, self._scaled(frame)
        return self._picture

    def _scaled(self, frame: Any) -> NDArray[np.uint8]:
        """Cut out the middle of a picture, scale it and put it upright."""
        swap, reverse_rows, reverse_columns = _upright(frame)
        size = (self._options.height, self._options.width)
        height, width = size[::-1] if swap else size
        part = self._middle(frame, width / height) if self._options.crop else frame
        planar = self._reformatter.reformat(part, height=height, width=width, **self._how)
        picture = np.empty((*size, 3), np.uint8)
        for channel, plane in zip((1, 2, 0), planar.planes, strict=True):
            lines = np.frombuffer(memoryview(plane), np.uint8).reshape(-1, plane.line_size)
            stored = lines[:height, :width].T if swap else lines[:height, :width]
            rows, columns = -1 if reverse_rows else 1, -1 if reverse_columns else 1
            picture[..., channel] = stored[::rows, ::columns]
        return picture

    def _middle(self, frame: Any, shape: float) -> Any:
        """Cut out the largest part in the middle that is so many times as wide as high."""
        shape /= self._stretch
        width = max(1, min(frame.width, round(frame.height * shape)))
        height = max(1, min(frame.height, round(frame.width / shape)))
        if (width, height) == (frame.width, frame.height):
            return frame
        kind = frame.width, frame.height, frame.format.name
        if self._cuts != kind:
            self._cuts, self._cutter = kind, _cutter(frame, width, height)
        self._cutter.push(frame)
        return self._cutter.pull()


def _cutter(frame: Any, width: int, height: int) -> Any:
    """Make a filter that cuts the middle out of such pictures without copying them."""
    from av.filter import Graph

    graph = Graph()
    entry = graph.add_buffer(
        width=frame.width,
        height=frame.height,
        format=frame.format.name,
        time_base=Fraction(1, 1000),  # of no consequence
    )
    crop = graph.add("crop", f"{width}:{height}:exact=1")
    graph.link_nodes(entry, crop, graph.add("buffersink")).configure()
    return graph


def _upright(frame: Any) -> tuple[bool, bool, bool]:
    """Whether to swap the axes of a picture, then reverse its rows, then its columns."""
    try:
        matrix = frame.side_data.get("DISPLAYMATRIX")
    except ValueError:  # beside it are side data that this PyAV does not know
        quarters = round(frame.rotation / 90) % 4
        return quarters in (1, 3), quarters in (1, 2), quarters in (2, 3)
    if matrix is None:
        return False, False, False
    # A pixel at (x, y) is shown at (a x + c y, b x + d y).
    a, b, _, c, d = np.frombuffer(matrix, np.int32)[:5].astype(int).tolist()
    if abs(a) + abs(d) >= abs(b) + abs(c):
        return False, d < 0, a < 0
    return True, b < 0, c < 0
