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

from stepgraph.errors import DataError, reason
from stepgraph.export.timeline import AnyTimeline, on_one_line
from stepgraph.files.disk import replacing
from stepgraph.files.ids import file_in
from stepgraph.ingest.formats import MEDIA_SUFFIXES
from stepgraph.ingest.media import opened

# Formats that hold chapters, by FFmpeg's names; all else goes into Matroska, which holds anything.
_CONTAINERS = {".mp4": "mp4", ".m4v": "mp4", ".mov": "mov", ".webm": "webm", ".mkv": "matroska"}
_COPIED = ("video", "audio", "subtitle")
_UNSAFE = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|\s]+')
_LONGEST_NAME = 80
_WANTED = "a file to be copied"


def mux(timeline: AnyTimeline, folder: Path) -> list[Path]:
    """Copy the video file with its chapters inside; pictures and sound stay as they are.

    In an MP4 or MOV file a chapter lasts until the next one begins: it can hold no gaps.
    Subtitles of a kind that a file of its name cannot hold are left out.
    """
    path = media_of(timeline, _WANTED)
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


def cut(timeline: AnyTimeline, folder: Path) -> list[Path]:
    """Cut a clip for each chapter, without decoding, from the last keyframe before it.

    A clip may begin some seconds early, since other frames depend on the frames before them.
    """
    path, written = media_of(timeline, _WANTED), list[Path]()
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


def media_of(timeline: AnyTimeline, wanted: str) -> Path:
    """Return the video file of a result; files of other types are never opened.

    Parameters
    ----------
    wanted
        Purpose of the file for the error, such as ``a file to be copied``.
    """
    path = timeline.video.path
    if path is None:
        got = "none"
    elif path.suffix.lower() not in MEDIA_SUFFIXES:
        got = f"{path}, which has none of the endings {' '.join(MEDIA_SUFFIXES)}"
    elif not os.path.isfile(path):  # Path.is_file raises at a name that is too long
        got = f"{path}, which does not exist"
    else:
        return path
    raise DataError(
        f"video {timeline.video.id!r} must have {wanted}, got {got}; recognise the video file "
        f"itself, or put it back there"
    )


def _suffix(path: Path) -> str:
    return path.suffix.lower() if path.suffix.lower() in _CONTAINERS else ".mkv"


@contextmanager
def _writing(target: Path, source: Any) -> Iterator[tuple[Any, dict[Any, Any]]]:
    """Open a file for writing, with a copy of each track of another file."""
    import av

    with replacing(target) as partial:
        kind = _CONTAINERS[target.suffix]
        with av.open(str(partial.absolute()), "w", format=kind) as output:
            copies = ((track, _copy_of(track, output)) for track in source.streams)
            yield output, {track: copy for track, copy in copies if copy is not None}


def _copy_of(track: Any, output: Any) -> Any:
    """Add a copy of a track to a file; None for a kind that is left out."""
    if track.type not in _COPIED or track.codec_context is None:
        return None
    try:
        return output.add_stream_from_template(track)
    except ValueError as error:
        if track.type == "subtitle":
            return None
        raise DataError(
            f"{track.type} of a file must be of a kind that its container can hold, got: "
            f"{reason(error)}; does its ending match its content?"
        ) from error


def _copy(packets: Iterable[Any], output: Any, tracks: dict[Any, Any]) -> None:
    for packet in packets:
        if packet.dts is not None:  # the last one of a track is empty
            packet.stream = tracks[packet.stream]
            output.mux(packet)


def _clip(source: Any, tracks: Sequence[Any], until: float) -> Iterator[Any]:
    """Yield packets from the current position to a time, on a clock that begins with the first."""
    begun: float | None = None
    reached = 0.0
    open_tracks = {track.index for track in tracks}
    pictures = any(track.type == "video" for track in tracks)
    for packet in source.demux(list(tracks)):
        if packet.dts is None or packet.stream.index not in open_tracks:
            continue
        time = float(packet.dts * packet.time_base)
        shown = time if packet.pts is None else float(packet.pts * packet.time_base)
        # Frames that a kept frame depends on are shown before it, and kept, too.
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


COPIES: dict[str, Callable[[AnyTimeline, Path], list[Path]]] = {"mux": mux, "cut": cut}
"""Copies of video files: name, and the function that writes them into a folder."""
