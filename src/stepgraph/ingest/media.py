"""Read the duration and the text track of a video or sound file, which need no decoding.

Needs PyAV, the ``video`` extra.  Pictures and sound are read elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from stepgraph.core import Sentence
from stepgraph.errors import DataError, MissingExtraError
from stepgraph.files.disk import require_file
from stepgraph.ingest.cleaning import Cue, checked, clean
from stepgraph.ingest.timed_text import said_in_ass
from stepgraph.problems import Problems

_TEXT_CODECS = frozenset({"mov_text", "srt", "subrip", "ass", "ssa", "webvtt", "text"})
_FIELDS_BEFORE_TEXT = 8  # ReadOrder,Layer,Style,Name,MarginL,MarginR,MarginV,Effect

_UNLIKELY_REST = 60.0  # seconds by which a video may well be longer than twice its sound


class NoTextTrackError(DataError):
    """A video file without a text track."""


def media_duration(path: Path, sound: float = 0.0) -> float:
    """Return the duration of a video file in seconds.

    A file that does not state it, such as a recording cut off, is read to its end; so is one
    whose stated duration contradicts the end of its ``sound`` in seconds, if that is given.
    """
    with opened(path) as container:
        seconds = (container.duration or 0) / 1_000_000  # always in microseconds
        misstated = sound and not sound - 1 <= seconds <= 2 * sound + _UNLIKELY_REST
        if container.duration is None or misstated:
            packets = _until_damage(container.demux()) if misstated else container.demux()
            seconds = max(map(end_of, packets), default=0.0)
    if seconds <= 0:
        raise DataError(f"{path}: must last longer than 0 s, got {seconds}; is it cut off?")
    return float(seconds)


def read_embedded_transcript(
    path: Path, *, problems: Problems | None = None
) -> tuple[Sentence, ...]:
    """Return the clean sentences of the first text track inside a video file."""
    with opened(path) as container:
        stream = _text_track(container, Path(path))
        beginning = (container.start_time or 0) / 1_000_000  # where players show 0:00
        cues = [
            cue
            for packet in container.demux(stream)
            # The packet after the last one has no time and only flushes the decoder.
            if packet.pts is not None
            for cue in _cues_of(packet, str(path), beginning)
        ]
    return clean(checked(cues, str(path), problems, in_order=False))


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Open a video file and give every failure of the library one form."""
    path = Path(path)
    try:
        import av
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: reading a video file needs the 'video' extra; run: pip install av"
        ) from error
    require_file(path, "video file")
    try:
        # FFmpeg takes what stands before a colon in a relative path for a protocol.
        with av.open(str(path.absolute()), metadata_errors="replace") as container:
            yield container
    except (av.error.FFmpegError, OSError) as error:
        raise DataError(
            f"{path}: must be a readable video file, got {error.strerror or error}; "
            f"play it to see whether it is whole"
        ) from error


def packets_of(container: Any, stream: Any) -> Iterator[Any]:
    """Yield the packets of a track while they can be read, and None at the end."""
    for packet in _until_damage(container.demux(stream)):
        if packet.dts is None and not packet.size:
            break
        yield packet
    yield None


def _until_damage(packets: Iterator[Any]) -> Iterator[Any]:
    import av

    # An IndexError is PyAV's own, at the end of a file that has more tracks than it announced.
    with suppress(av.error.InvalidDataError, IndexError):
        yield from packets


def end_of(packet: Any) -> float:
    """Seconds up to which a packet lasts, 0 for one without a time."""
    if packet.pts is None:
        return 0.0
    return float((packet.pts + (packet.duration or 0)) * packet.time_base)


def _text_track(container: Any, path: Path) -> Any:
    codecs = [
        stream.codec_context.name if stream.codec_context else "unknown"
        for stream in container.streams.subtitles
    ]
    for stream, codec in zip(container.streams.subtitles, codecs, strict=True):
        if codec in _TEXT_CODECS:
            return stream
    got = f"only tracks of pictures ({', '.join(codecs)})" if codecs else "none"
    raise NoTextTrackError(
        f"{path}: must contain a text track, got {got}; put a transcript beside it, "
        f"such as {path.stem}.srt, or allow speech recognition"
    )


def _cues_of(packet: Any, origin: str, beginning: float) -> Iterator[Cue]:
    start = max(0.0, float(packet.pts * packet.time_base) - beginning)
    end = start + float((packet.duration or 0) * packet.time_base)
    for item in packet.decode():
        fields = item.ass.split(b",", _FIELDS_BEFORE_TEXT)
        said = said_in_ass(fields[-1].decode("utf-8", errors="replace"))
        if said is not None:
            yield Cue(start, end, said, f"{origin}: cue at {start:.3f} s")
