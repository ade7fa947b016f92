"""Markers for programs that edit video: OpenTimelineIO, and edit decision lists (CMX 3600)."""

from __future__ import annotations

import json
from typing import Any

from stepgraph.export.annotators import FRAMES, whole
from stepgraph.export.timeline import AnyTimeline, on_one_line

_RATE = round(FRAMES)


def to_otio(timeline: AnyTimeline) -> str:
    """Render a timeline of OpenTimelineIO: the video as its clip, a marker for each chapter."""
    video = timeline.video
    address = video.id if video.path is None else video.path.as_posix()
    whole = _range(0.0, video.duration)
    media = {"OTIO_SCHEMA": "ExternalReference.1", "target_url": address, "available_range": whole}
    markers = [
        {
            "OTIO_SCHEMA": "Marker.2",
            "name": one.keystep,
            "color": "GREEN",
            "marked_range": _range(one.start, one.end),
            "metadata": {"stepgraph": {"confidence": one.confidence, "words": one.words}},
        }
        for one in timeline
    ]
    clip = {
        "OTIO_SCHEMA": "Clip.2",
        "name": video.id,
        "source_range": whole,
        "media_references": {"DEFAULT_MEDIA": media},
        "active_media_reference_key": "DEFAULT_MEDIA",
        "markers": markers,
    }
    track = {"OTIO_SCHEMA": "Track.1", "name": "video", "kind": "Video", "children": [clip]}
    stack = {"OTIO_SCHEMA": "Stack.1", "name": "tracks", "children": [track]}
    content = {"OTIO_SCHEMA": "Timeline.1", "name": video.id, "tracks": stack}
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def _range(start: float, end: float) -> dict[str, Any]:
    return {
        "OTIO_SCHEMA": "TimeRange.1",
        "start_time": _time(start),
        "duration": _time(max(0.0, end - start)),
    }


def _time(seconds: float) -> dict[str, Any]:
    return {
        "OTIO_SCHEMA": "RationalTime.1",
        "rate": FRAMES,
        "value": float(round(seconds * _RATE)),
    }


def to_edl(timeline: AnyTimeline) -> str:
    """Render an edit decision list with an event for each chapter, named in a comment."""
    lines = [f"TITLE: {on_one_line(timeline.video.id)}", "FCM: NON-DROP FRAME", ""]
    at = 0
    for number, one in enumerate(timeline, 1):
        first, last = whole(one.start, one.end, _RATE)
        times = (first, last, at, at + last - first)
        lines.append(f"{number:03}  AX       V     C        {' '.join(map(_timecode, times))}")
        lines += [f"* FROM CLIP NAME: {on_one_line(timeline.video.id)}"]
        lines += [f"* LOC: {_timecode(at)} GREEN   {on_one_line(one.keystep)}", ""]
        at += last - first
    return "\n".join(lines)


def _timecode(frames: int) -> str:
    seconds, rest = divmod(frames, _RATE)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}:{rest:02}"


FORMATS = {"otio": (".otio", to_otio), "edl": (".edl", to_edl)}
"""As in :data:`stepgraph.export.timeline.FORMATS`."""
