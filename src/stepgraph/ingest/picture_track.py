"""The picture track of an open video file: its pictures in order, each with its time.

Decides what counts as a whole file.  What of the pictures is kept is decided elsewhere.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from stepgraph.errors import DataError
from stepgraph.ingest.media import end_of, opened

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
        self._stream = _shown_track(container, path)
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
        """How wide a stored pixel is shown, as a multiple of its height."""
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
            # Where times run backwards, nothing tells which is right; the picture is the next.
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

        for packet in self._packets():
            self._count += 1
            try:
                frames = self._stream.decode(packet)
            except av.error.FFmpegError:
                # A recording may begin between two whole pictures; that is no damage.
                self._damaged += self._begun
                continue
            self._begun = self._begun or bool(frames)
            yield from frames

    def _packets(self) -> Iterator[Any]:
        """Yield what the file holds as far as it can be read, and None to end with."""
        import av

        packets = self._container.demux(self._stream)
        # Whether too much is missing after damage is told by where the picture ends.  An
        # IndexError is PyAV's own, at the end of a file that has more tracks than it announced.
        with suppress(av.error.InvalidDataError, IndexError):
            for packet in packets:
                if packet.dts is None and not packet.size:
                    break
                yield packet
        yield None

    def require_undamaged(self) -> None:
        """Refuse a file of which much could not be decoded up to here."""
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
        if not stream.duration and not _is_short(_end_of_sound(self.path), stated):
            return
        raise DataError(
            f"{self.path}: picture must last the {stated:.1f} s that the file states, got "
            f"{end:.1f} s; the file is cut off, fetch or copy it again"
        )


def _is_short(end: float, stated: float) -> bool:
    return stated - end > max(CUT_OFF_SECONDS, CUT_OFF_SHARE * stated)


def _shown_track(container: Any, path: Path) -> Any:
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
            f"{path}: must be in a format that PyAV decodes, got one it does not know; "
            f"convert it, for example to H.264"
        )
    return track


def _end_of_sound(path: Path) -> float:
    with opened(path) as container:
        tracks = container.streams.audio
        return max(map(end_of, container.demux(*tracks)), default=0.0) if tracks else 0.0
