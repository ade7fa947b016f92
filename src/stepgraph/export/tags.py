"""Tags for CVAT, which stores annotations by frame: the keystep of each frame.

Frames are counted by the times stored in the video file, so nothing is decoded and any frame rate
is right.  Needs PyAV, the ``video`` extra.
"""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from stepgraph.errors import DataError
from stepgraph.export.clips import media_of
from stepgraph.export.svg import xml_text
from stepgraph.export.timeline import AnyTimeline, on_one_line
from stepgraph.files.disk import write_text
from stepgraph.files.ids import file_in
from stepgraph.ingest.media import opened


def write_cvat(timeline: AnyTimeline, folder: Path) -> list[Path]:
    """Write tags in CVAT's format for images 1.1, for a task of CVAT made from the video file."""
    path = media_of(timeline, "a file whose pictures can be counted")
    target = file_in(folder, timeline.video.id, ".cvat.xml")
    write_text(target, to_cvat(timeline, *_pictures(path)))
    return [target]


def to_cvat(timeline: AnyTimeline, times: list[float], wide: int, high: int) -> str:
    """Render a tag on each frame of a chapter; ``times`` are the frames' times in seconds."""
    names = [xml_text(on_one_line(one.keystep)) for one in timeline]
    labels = "".join(
        f"<label><name>{escape(name)}</name><attributes/></label>" for name in dict.fromkeys(names)
    )
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        "<annotations><version>1.1</version>",
        f"<meta><task><name>{escape(xml_text(timeline.video.id))}</name><size>{len(times)}</size>"
        f"<mode>annotation</mode><labels>{labels}</labels></task></meta>",
    ]
    for number, time in enumerate(times):
        shown = [
            name for name, one in zip(names, timeline, strict=True) if one.start <= time < one.end
        ]
        if shown:
            tags = "".join(f'<tag label={quoteattr(name)} source="auto"/>' for name in shown)
            size = f'width="{wide}" height="{high}"'
            lines.append(f'<image id="{number}" name="frame_{number:06}" {size}>{tags}</image>')
    return "\n".join([*lines, "</annotations>\n"])


def _pictures(path: Path) -> tuple[list[float], int, int]:
    """Read the time of each frame in seconds from 0, and the width and height of frames."""
    with opened(path) as source:
        if not source.streams.video:
            raise DataError(f"{path}: a video for CVAT must have pictures, got sound only")
        [track, *_] = source.streams.video
        begun = (source.start_time or 0) / 1_000_000
        times = sorted(
            float(packet.pts * packet.time_base) - begun
            for packet in source.demux(track)
            if packet.pts is not None
        )
        return times, track.codec_context.width, track.codec_context.height
