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
from stepgraph.files.cells import write_cell
from stepgraph.files.disk import write_text
from stepgraph.files.headers import header
from stepgraph.files.ids import file_in

TIMELINE_FORMAT = "stepgraph-timeline"
TIMELINE_VERSION = 1

# YouTube's own rules: chapters begin at 0:00, are at least three, and last at least this long.
_FEWEST_CHAPTERS, _SHORTEST_CHAPTER = 3, 10.0
_LONGEST_TITLE = 100


def to_json(timeline: Timeline) -> str:
    """Everything, for programs."""
    content = header(TIMELINE_FORMAT, TIMELINE_VERSION, timeline.labels.vocabulary) | {
        "video": timeline.video.id,
        "duration": timeline.video.duration,
        "tasks": _tasks(timeline),
        "youtube": {"chapters": len(_youtube(timeline)), "enough": fits_youtube(timeline)},
        "chapters": [
            {
                "start": chapter.start,
                "end": chapter.end,
                "keystep": chapter.keystep,
                "score": _rounded(chapter.score),
                "origin": chapter.origin,
                "confidence": _rounded(chapter.confidence),
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


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _task(timeline: Timeline) -> tuple[str, float] | None:
    """The most probable task with its probability; None where the video shows none of them."""
    tasks = timeline.labels.tasks or {}
    return next(iter(tasks.items()), None) if sum(tasks.values()) >= 0.5 else None


def to_csv(timeline: Timeline) -> str:
    """One line a chapter, for spreadsheets."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)  # with the line ends of its standard, which quotes all others
    own = ("start", "end", "keystep", "score", "origin", "confidence", "words")
    writer.writerow(["video", *own, "task"])
    task, *_ = _task(timeline) or ("",)
    vocabulary = timeline.labels.vocabulary
    for chapter in timeline:
        cells = {name: getattr(chapter, name) for name in own}
        for name in ("score", "confidence"):
            cells[name] = "" if cells[name] is None else f"{cells[name]:.4f}"
        for name in ("keystep", "words"):
            cells[name] = write_cell(cells[name] or "")
        # A part of the video may show another task than most of it.
        listing = vocabulary.tasks_of(vocabulary.index(chapter.keystep))
        shown = task if not task or task in listing or not listing else listing[0]
        writer.writerow([write_cell(timeline.video.id), *cells.values(), write_cell(shown)])
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

    Keysteps that are done in less share a chapter with their neighbours, and its title names
    them all.  YouTube shows chapters only from three on; fewer are written all the same, as times
    to click on, and :func:`fits_youtube` and the JSON say so.
    """
    return "".join(f"{short_clock(start)} {title}\n" for start, title in _youtube(timeline))


def fits_youtube(timeline: Timeline) -> bool:
    """Whether there are enough chapters for YouTube to show them."""
    return len(_youtube(timeline)) >= _FEWEST_CHAPTERS


def _youtube(timeline: Timeline) -> list[tuple[float, str]]:
    """Start and title of as many chapters as there can be: each ends as soon as it is allowed."""
    groups: list[tuple[float, list[str]]] = [(0.0, [])]
    for chapter in timeline:
        name, (begun, names) = _one_line(chapter.keystep), groups[-1]
        if chapter.start - begun < _SHORTEST_CHAPTER or names[-1:] == [name]:
            names.append(name)
        else:
            groups.append((chapter.start, [name]))
    if len(groups) > 1 and timeline.video.duration - groups[-1][0] < _SHORTEST_CHAPTER:
        _, names = groups.pop()
        groups[-1][1].extend(names)
    return [(start, _title(list(dict.fromkeys(names)))) for start, names in groups]


def _title(names: list[str]) -> str:
    """All names, or as many as there is room for and how many more there are."""
    for shown in range(len(names), 0, -1):
        more = f" and {len(names) - shown} more" if shown < len(names) else ""
        title = ", ".join(names[:shown])
        if len(title + more) <= _LONGEST_TITLE:
            return title + more
    return f"{title[: _LONGEST_TITLE - len(more) - 1]}…{more}" if names else "Start"


def _one_line(name: str) -> str:
    return " ".join(name.split())


def to_text(timeline: Timeline) -> str:
    """One line a chapter, for a terminal, under the task that the video most probably shows."""
    tasks, task = timeline.labels.tasks, _task(timeline)
    title = [f"{_one_line(task[0])} ({100 * task[1]:.0f} %)"] if task else []
    if tasks and not task:
        title = [f"none of the tasks, most probably ({100 * (1 - sum(tasks.values())):.0f} %)"]
    chapters = [
        f"{short_clock(chapter.start):>8} - {short_clock(chapter.end):<8} "
        f"{_one_line(chapter.keystep)}"
        for chapter in timeline
    ]
    return "\n".join([*title, *chapters])


def _clock(seconds: float) -> str:
    ms = round(seconds * 1000)
    return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}.{ms % 1000:03}"


def short_clock(seconds: float) -> str:
    """Minutes and seconds, and hours where there are any."""
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
    paths = [file_in(folder, timeline.video.id, suffix) for suffix, _ in FORMATS.values()]
    for path, (_, convert) in zip(paths, FORMATS.values(), strict=True):
        write_text(path, convert(timeline))
    return paths
