"""The timeline of one video, and the formats that people want it in.

This is the edge where keysteps get their names back.
"""

from __future__ import annotations

import csv
import html
import io
import json
from collections.abc import Callable
from pathlib import Path

from stepgraph.core import Timeline
from stepgraph.files.disk import write_text
from stepgraph.files.headers import header

TIMELINE_FORMAT = "stepgraph-timeline"


TIMELINE_VERSION = 1


# YouTube's own rule: chapters begin at 0:00 and last at least this long.
_SHORTEST_CHAPTER = 10.0


def to_json(timeline: Timeline) -> str:
    """Everything, for programs."""
    content = header(TIMELINE_FORMAT, TIMELINE_VERSION, timeline.labels.vocabulary) | {
        "video": timeline.video.id,
        "duration": timeline.video.duration,
        "tasks": _tasks(timeline),
        "chapters": [
            {
                "start": chapter.start,
                "end": chapter.end,
                "keystep": chapter.keystep,
                "score": None if chapter.score is None else round(chapter.score, 4),
                "origin": chapter.origin,
                "confidence": None if chapter.confidence is None else round(chapter.confidence, 4),
                "words": chapter.words,
            }
            for chapter in timeline
        ],
    }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def _tasks(timeline: Timeline) -> dict[str, float] | None:
    """The five most probable tasks of the video, where the decoder says so."""
    tasks = timeline.labels.tasks
    if tasks is None:
        return None
    best = {name: round(p, 4) for name, p in list(tasks.items())[:5]}
    return best | {"none of them": round(max(0.0, 1 - sum(tasks.values())), 4)}


def to_csv(timeline: Timeline) -> str:
    """One line a chapter, for spreadsheets."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)  # with the line ends of its standard, which quotes all others
    writer.writerow(["video", "start", "end", "keystep", "score", "origin"])
    for chapter in timeline:
        score = "" if chapter.score is None else f"{chapter.score:.4f}"
        writer.writerow(
            [timeline.video.id, chapter.start, chapter.end, chapter.keystep, score, chapter.origin]
        )
    return buffer.getvalue()


def to_vtt(timeline: Timeline) -> str:
    """WebVTT chapters, for players."""
    blocks = ["WEBVTT"]
    for chapter in timeline:
        start, end = _clock(chapter.start), _clock(chapter.end)
        if start < end:  # a last row that was only just started lasts no millisecond
            blocks.append(f"{start} --> {end}\n{html.escape(_one_line(chapter.keystep))}")
    return "\n\n".join(blocks) + "\n"


def to_youtube(timeline: Timeline) -> str:
    """Text for a video's description: from 0:00 on, nothing shorter than ten seconds.

    The shortest chapter goes to the one before it (the first to the one after) until none is
    too short; equal neighbours become one.
    """
    begins = [(chapter.start, _one_line(chapter.keystep)) for chapter in timeline]
    if not begins or begins[0][0] > 0:
        begins.insert(0, (0.0, "Start"))
    while len(begins) > 1:
        ends = [start for start, _ in begins[1:]] + [timeline.video.duration]
        lengths = [end - start for (start, _), end in zip(begins, ends, strict=True)]
        shortest = lengths.index(min(lengths))
        if lengths[shortest] >= _SHORTEST_CHAPTER:
            break
        if shortest == 0:
            begins[1] = (begins[0][0], begins[1][1])
        del begins[shortest]
    titles = [None, *(title for _, title in begins)]
    kept = [begin for begin, before in zip(begins, titles, strict=False) if begin[1] != before]
    return "".join(f"{_short_clock(start)} {title}\n" for start, title in kept)


def _one_line(name: str) -> str:
    return " ".join(name.split())


def to_text(timeline: Timeline) -> str:
    """One line a chapter, for a terminal, under the task that the video most probably shows."""
    tasks = timeline.labels.tasks or {}
    title = [f"{_one_line(name)} ({100 * p:.0f} %)" for name, p in list(tasks.items())[:1]]
    if tasks and sum(tasks.values()) < 0.5:
        title = [f"none of the tasks, most probably ({100 * (1 - sum(tasks.values())):.0f} %)"]
    chapters = [
        f"{_short_clock(chapter.start):>8} - {_short_clock(chapter.end):<8} "
        f"{_one_line(chapter.keystep)}"
        for chapter in timeline
    ]
    return "\n".join([*title, *chapters])


def _clock(seconds: float) -> str:
    ms = round(seconds * 1000)
    return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}.{ms % 1000:03}"


def _short_clock(seconds: float) -> str:
    whole = int(seconds)
    hours = f"{whole // 3600}:{whole // 60 % 60:02}" if whole >= 3600 else f"{whole // 60}"
    return f"{hours}:{whole % 60:02}"


FORMATS: dict[str, tuple[str, Callable[[Timeline], str]]] = {
    "json": (".steps.json", to_json),
    "csv": (".steps.csv", to_csv),
    "vtt": (".chapters.vtt", to_vtt),
    "youtube": (".chapters.txt", to_youtube),
}
"""Formats of a timeline: name, suffix of its file, and how it is written."""


def write_timeline(timeline: Timeline, folder: Path | str) -> list[Path]:
    """Write a timeline in every format; each file whole or not at all."""
    paths = []
    for suffix, convert in FORMATS.values():
        path = Path(folder) / f"{timeline.video.id}{suffix}"
        write_text(path, convert(timeline))
        paths.append(path)
    return paths
