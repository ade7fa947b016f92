"""Read the pictures of a video file as clips, one for every row.

A file is decoded once and in order, and an incomplete one is refused.
Only pictures that a clip keeps are scaled, and only clips that are not complete yet are held, so
an hour needs no more memory than a minute.  Needs PyAV, the ``video`` extra.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from heapq import merge
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import rows_in
from stepgraph.errors import ConfigError, DataError
from stepgraph.ingest.media import end_of, media_duration, opened, packets_of

CUT_OFF_SECONDS = 2.0
CUT_OFF_SHARE = 0.05
"""A picture that ends this much before its stated end, by both measures, is cut off.

The end that a file states is often a few frames wrong; a copy that broke off misses more.
"""

BROKEN_SHARE = 0.05  # share of the packets that may be undecodable; players pass over them, too
# Times carry float noise, and containers state their start to the microsecond.
_NOISE = 1e-6
# The decoder's threads hold a picture each: of 8K pictures 5, of 4K and smaller all 16.
_BYTES_IN_FLIGHT = 256 * 2**20
_MOST_THREADS = 16


class PictureTrack:
    """Pictures of an open file, read once; a tick is the unit in which the file counts time."""

    def __init__(self, container: Any, path: Path) -> None:
        self.path = path
        self._container = container
        self._stream = shown_track(container, path)
        self._tick = float(self._stream.time_base)
        self._count = self._damaged = 0
        self._begun = False
        self._stream.thread_type = "AUTO"
        codec = self._stream.codec_context
        threads = _BYTES_IN_FLIGHT // max(1, codec.width * codec.height * 3 // 2)
        if threads < min(_MOST_THREADS, os.cpu_count() or 1):
            codec.thread_count = max(1, threads)

    @property
    def stretch(self) -> float:
        """Width of a stored pixel as shown, as a multiple of its height."""
        return float(self._stream.sample_aspect_ratio or 1)

    def tick_at(self, time: float) -> int:
        """Return the last tick that is not after a time (seconds since the start)."""
        start = (self._container.start_time or 0) / 1_000_000
        return math.floor((time + (start + _NOISE)) / self._tick)

    def pictures(self) -> Iterator[tuple[int, Any]]:
        """Yield the tick at which each picture begins, and the picture; ticks never decrease."""
        stream = self._stream
        rate = stream.average_rate or stream.guessed_rate or 25
        step = max(1, round(1 / (float(rate) * self._tick)))
        latest = None
        expected: int = stream.start_time or 0
        lag: int | None = None
        for frame in self._decoded():
            ticks = expected
            # AVI has one number for what is decoded next and what is shown next; it is the former.
            if frame.pts is not None and self._container.format.name != "avi":
                ticks = int(frame.pts)
            elif frame.dts is not None:
                # Pictures leave the decoder in order, but some packets after their own went in.
                lag = frame.dts - expected if lag is None else lag
                ticks = int(frame.dts - lag)
            # Where times run backwards, any of them may be wrong; the picture is the next.
            latest = ticks if latest is None or ticks > latest else latest
            expected = latest + (frame.duration or step)
            yield latest, frame
        self.require_undamaged()
        if latest is None:
            raise DataError(
                f"{self.path}: must hold pictures, got none that can be decoded; "
                f"play it to see whether it is whole"
            )
        self._require_end(expected * self._tick)

    def _decoded(self) -> Iterator[Any]:
        import av

        # The end of the picture decides whether too much is missing after damage.
        for packet in packets_of(self._container, self._stream):
            self._count += 1
            try:
                frames = self._stream.decode(packet)
            except av.error.FFmpegError:
                # A recording may begin between two whole pictures; that is no damage.
                self._damaged += self._begun
                continue
            self._begun = self._begun or bool(frames)
            yield from frames

    def require_undamaged(self) -> None:
        """Refuse a file if too much of it could not be decoded so far."""
        if self._damaged > BROKEN_SHARE * self._count:
            raise DataError(
                f"{self.path}: must hold pictures that can be decoded, got {self._damaged} of "
                f"{self._count} damaged; fetch or copy it again"
            )

    def _require_end(self, end: float) -> None:
        """Refuse a file whose picture breaks off; one that ends before its sound is whole."""
        stream = self._stream
        if stream.duration:
            stated = float((stream.start_time or 0) + stream.duration) * self._tick
        else:
            stated = (self._container.duration or 0) / 1_000_000
        if not _is_short(end, stated):
            return
        # The stated end may be that of the sound where the picture has none of its own.
        if not stream.duration:
            with opened(self.path) as container:
                tracks = container.streams.audio
                packets = container.demux(*tracks) if tracks else ()
                if not _is_short(max(map(end_of, packets), default=0.0), stated):
                    return
        raise DataError(
            f"{self.path}: picture must last the {stated:.1f} s that the file states, got "
            f"{end:.1f} s; the file is cut off, fetch or copy it again"
        )


def _is_short(end: float, stated: float) -> bool:
    return stated - end > max(CUT_OFF_SECONDS, CUT_OFF_SHARE * stated)


def shown_track(container: Any, path: Path) -> Any:
    """Choose the video track that players show; cover art is none."""
    from av.stream import Disposition

    tracks = [
        track
        for track in container.streams.video
        if not track.disposition & Disposition.attached_pic
    ]
    if not tracks:
        art, sound = container.streams.video, container.streams.audio
        got = "only cover art" if art else "only sound" if sound else "none"
        raise DataError(
            f"{path}: must contain a picture track, got {got}; "
            f"give the video itself, or recognise by its transcript alone"
        )
    default = [track for track in tracks if track.disposition & Disposition.default]
    track = (default or tracks)[0]
    if track.codec_context is None:
        raise DataError(
            f"{path}: must be in a format that PyAV decodes, got one that it does not; "
            f"convert it, for example to H.264"
        )
    return track


@dataclass(frozen=True)
class ClipOptions:
    """Selection of the pictures that make the clip of a row, and their size.

    Row ``t`` begins at ``t * stride`` seconds.  Its clip is the ``window`` seconds from there on,
    cut into ``frames`` equal parts: the picture on screen in the middle of each.  With ``crop``
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

    ``start`` and ``end`` are the seconds they were chosen from, up to the end of the video.
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

    ``duration`` is the number of seconds to read, by default that of the file.  A row that starts
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


def read_pictures(path: Path, side: int) -> Iterator[Clip]:
    """Yield the picture in the middle of each second, its shorter side ``side`` pixels long.

    A picture keeps the shape in which it is shown, also where that changes in the midst of the
    file.
    """
    path = Path(path)
    with opened(path) as container:
        track = PictureTrack(container, path)
        duration = (container.duration or 0) / 1_000_000 or media_duration(path)
        scaler, rows = _Scaler(ClipOptions(), track.stretch), ClipOptions(crop=False)
        for row, frame in _on_screen(track, _samples(track, duration, rows)):
            wide, high = frame.width * track.stretch, float(frame.height)
            if _upright(frame)[0]:
                wide, high = high, wide
            scale = side / min(wide, high)
            # What is very long is no picture to be read, and would not fit into the memory.
            width, height = (min(round(length * scale), 4 * side) for length in (wide, high))
            rows = replace(rows, height=height, width=width)
            if scaler.options != rows:
                scaler = _Scaler(rows, track.stretch)
            yield Clip(row, min(row + 1.0, duration), scaler.picture(frame)[None])
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

        self.options = options
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
        self._picture: NDArray[np.uint8] = np.empty(0, np.uint8)

    def picture(self, frame: Any) -> NDArray[np.uint8]:
        """Return the picture as it is shown, shape (H, W, 3); not to be written to."""
        if frame is not self._frame:
            self._frame, self._picture = frame, self._scaled(frame)
        return self._picture

    def _scaled(self, frame: Any) -> NDArray[np.uint8]:
        """Cut out the middle of a picture, scale it and put it upright."""
        swap, reverse_rows, reverse_columns = _upright(frame)
        size = (self.options.height, self.options.width)
        height, width = size[::-1] if swap else size
        part = self._middle(frame, width / height) if self.options.crop else frame
        planar = self._reformatter.reformat(part, height=height, width=width, **self._how)
        picture = np.empty((*size, 3), np.uint8)
        for channel, plane in zip((1, 2, 0), planar.planes, strict=True):
            lines = np.frombuffer(memoryview(plane), np.uint8).reshape(height, plane.line_size)
            stored = lines[:, :width].T if swap else lines[:, :width]
            rows, columns = -1 if reverse_rows else 1, -1 if reverse_columns else 1
            picture[..., channel] = stored[::rows, ::columns]
        return picture

    def _middle(self, frame: Any, shape: float) -> Any:
        """Cut out the largest part in the middle that is ``shape`` times as wide as high."""
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
        time_base=Fraction(1),  # of no consequence
    )
    crop = graph.add("crop", f"{width}:{height}:exact=1")
    graph.link_nodes(entry, crop, graph.add("buffersink")).configure()
    return graph


def _upright(frame: Any) -> tuple[bool, bool, bool]:
    """Flags to swap the axes of a picture, then to reverse its rows, then its columns."""
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
