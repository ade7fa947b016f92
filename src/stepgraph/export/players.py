"""Chapters for players: FFmpeg's metadata, Podcasting 2.0, and subtitles."""

from __future__ import annotations

import json
import re

from stepgraph.core import Sentence
from stepgraph.export.timeline import AnyTimeline, on_one_line
from stepgraph.ingest.speech import to_srt


def to_ffmetadata(timeline: AnyTimeline) -> str:
    """Render chapters as FFmpeg reads them (``ffmpeg -i talk.mp4 -i talk.ffmetadata …``)."""
    lines = [";FFMETADATA1"]
    for chapter in timeline:
        title = re.sub(r"([=;#\\])", r"\\\1", on_one_line(chapter.keystep))
        times = f"START={round(1000 * chapter.start)}\nEND={round(1000 * chapter.end)}"
        lines += ["[CHAPTER]", "TIMEBASE=1/1000", times, f"title={title}"]
    return "\n".join(lines) + "\n"


def to_podcast(timeline: AnyTimeline) -> str:
    """Render chapters of Podcasting 2.0."""
    chapters = [
        {"startTime": one.start, "endTime": one.end, "title": on_one_line(one.keystep)}
        for one in timeline
    ]
    content = {"version": "1.2.0", "chapters": chapters}
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def to_steps_srt(timeline: AnyTimeline) -> str:
    """Render keysteps as subtitles."""
    return to_srt(Sentence(one.start, one.end, on_one_line(one.keystep)) for one in timeline)


FORMATS = {
    "ffmetadata": (".ffmetadata", to_ffmetadata),
    "podcast": (".chapters.json", to_podcast),
    "srt": (".steps.srt", to_steps_srt),
}
"""As in :data:`stepgraph.export.timeline.FORMATS`."""
