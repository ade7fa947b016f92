"""Copies of video files: with their chapters inside, or cut into a clip for each chapter.

Nothing is decoded, so nothing is lost and it is quick.  Needs PyAV, the ``video`` extra.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from stepgraph.errors import DataError
from stepgraph.export.timeline import Told, on_one_line
from stepgraph.files.disk import replacing
from stepgraph.files.ids import file_in
from stepgraph.ingest.media import opened

# What can hold chapters, as FFmpeg calls it; all else is put into Matroska, which holds anything.
_CONTAINERS = {".mp4": "mp4", ".m4v": "mp4", ".mov": "mov", ".webm": "webm", ".mkv": "matroska"}
_COPIED = ("video", "audio", "subtitle")
_UNSAFE = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|\s]+')
_LONGEST_NAME = 80


def mux(timeline: Told, folder: Path) -> list[Path]:
    """Copy the video file with its chapters inside; pictures and sound stay as they are.

    In an MP4 or MOV file a chapter lasts until the next one begins: it can hold no gaps.
    """
    path = _media(timeline)
    target = file_in(folder, timeline.video.id, f".chapters{_suffix(path)}")
    chapters = [
        {
            "id": number,
            "start": round(1000 * one.start),
            "end": round(1000 * one.end),
            "time_base": Fraction(1, 1000),
            "metadata": {"title": on_one_line(one.keystep)},
        }
        for number, one in enumerate(timeline)
    ]
    with opened(path) as source, _writing(target, source) as (output, tracks):
        output.set_chapters(chapters)
        _copy(source.demux(list(tracks)), output, tracks)
    return [target]


def cut(timeline: Told, folder: Path) -> list[Path]:
    """Cut a clip for each chapter, without decoding: it begins with the last whole picture before.

    Pictures are stored as changes to those before them, so a clip may begin some seconds early.
    """
    path, written = _media(timeline), []
    for number, chapter in enumerate(timeline, 1):
        name = _UNSAFE.sub(" ", on_one_line(chapter.keystep))[:_LONGEST_NAME].strip(" .")
        target = file_in(folder, timeline.video.id, f"/{number:02} {name}{_suffix(path)}")
        with opened(path) as source, _writing(target, source) as (output, tracks):
            beginning = source.start_time or 0
            source.seek(beginning + round(1_000_000 * chapter.start))
            until = chapter.end + beginning / 1_000_000
            _copy(_clip(source, list(tracks), until), output, tracks)
        written.append(target)
    return written


def _suffix(path: Path) -> str:
    return path.suffix.lower() if path.suffix.lower() in _CONTAINERS else ".mkv"


def _media(timeline: Told) -> Path:
    path = timeline.video.path
    if path is None or not os.path.isfile(path):  # Path.is_file raises at a name that is too long
        got = "none" if path is None else f"{path}, where none is"
        raise DataError(
            f"video {timeline.video.id!r} must have a file to be copied, got {got}; "
            f"recognise the video file itself, or put it back there"
        )
    return path


@contextmanager
def _writing(target: Path, source: Any) -> Iterator[tuple[Any, dict[Any, Any]]]:
    """Open a file for copies of the tracks of another, which come with it."""
    import av

    with replacing(target) as partial:
        kind = _CONTAINERS[target.suffix]
        with av.open(str(partial.absolute()), "w", format=kind) as output:
            yield (
                output,
                {
                    track: output.add_stream_from_template(track)
                    for track in source.streams
                    if track.type in _COPIED and track.codec_context is not None
                },
            )


def _copy(packets: Iterable[Any], output: Any, tracks: dict[Any, Any]) -> None:
    for packet in packets:
        if packet.dts is not None:  # the last one of a track is empty
            packet.stream = tracks[packet.stream]
            output.mux(packet)


def _clip(source: Any, tracks: Sequence[Any], until: float) -> Iterator[Any]:
    """Packets from where a file stands up to a time, on a clock that begins with the first."""
    begun: float | None = None
    reached = 0.0
    open_tracks = {track.index for track in tracks}
    pictures = any(track.type == "video" for track in tracks)
    for packet in source.demux(list(tracks)):
        if packet.dts is None or packet.stream.index not in open_tracks:
            continue
        time = float(packet.dts * packet.time_base)
        shown = time if packet.pts is None else float(packet.pts * packet.time_base)
        # What a kept picture was told before is shown before it, and kept, too.
        if time >= until and shown >= reached:
            open_tracks.discard(packet.stream.index)
            if not open_tracks:
                break
            continue
        if begun is None and (not pictures or packet.stream.type == "video"):
            begun = time
        if begun is None or time < begun:
            continue
        reached = max(reached, shown)
        shift = round(begun / packet.time_base)
        packet.dts -= shift
        packet.pts = None if packet.pts is None else packet.pts - shift
        yield packet


COPIES: dict[str, Callable[[Told, Path], list[Path]]] = {"mux": mux, "cut": cut}
"""Copies of video files: name, and how they are written into a folder."""
