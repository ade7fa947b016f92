"""Formats of the timeline of one video.

Keysteps are indices in labels, and names from here on.
"""

from __future__ import annotations

import csv
import html
import io
import json
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from pathlib import Path

from stepgraph import __version__
from stepgraph.core import Chapter, Result, Timeline, is_unicode
from stepgraph.core.videos import short_clock as short_clock
from stepgraph.export.results import NONE_OF_THEM, RESULT_SUFFIX, TIMELINE_KIND, seen_from
from stepgraph.files.cells import write_cell
from stepgraph.files.disk import write_text
from stepgraph.files.ids import file_in

AnyTimeline = Timeline | Result
"""Types that can be written: a timeline, or a result read from files."""

# YouTube's own rules: chapters begin at 0:00, are at least three, and last at least this long.
_FEWEST_CHAPTERS, _SHORTEST_CHAPTER = 3, 10.0
_LONGEST_TITLE = 100
# Origins of chapters in words for spreadsheets.
_BASIS = {"anchor": "matched", "path": "inferred", "label": "unspecified"}


def to_json(timeline: AnyTimeline) -> str:
    """Render the whole timeline as JSON, for programs."""
    video = timeline.video
    media = video.path.as_posix() if video.path else None
    content = {
        "format": TIMELINE_KIND.format,
        "version": TIMELINE_KIND.version,
        "stepgraph": __version__,
        "fingerprint": timeline.fingerprint,
        "video": video.id,
        "media": media if media and is_unicode(media) else None,
        "duration": video.duration,
        "tasks": _tasks(timeline),
        "youtube": {"chapters": len(_youtube(timeline)), "enough": fits_youtube(timeline)},
        "chapters": [
            asdict(chapter)
            | {"score": _rounded(chapter.score), "confidence": _rounded(chapter.confidence)}
            | {"alternatives": [[name, _rounded(p)] for name, p in chapter.alternatives]}
            for chapter in timeline
        ],
        "transcript": [[round(s.start, 3), round(s.end, 3), s.text] for s in video.transcript],
    }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def _tasks(timeline: AnyTimeline) -> dict[str, float] | None:
    """Return the five most probable tasks of the video, or None without task posteriors."""
    tasks = timeline.tasks
    if tasks is None:
        return None
    best = {name: round(p, 4) for name, p in list(tasks.items())[:5]}
    return best | {NONE_OF_THEM: round(max(0.0, 1 - sum(tasks.values())), 4)}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def to_csv(timeline: AnyTimeline) -> str:
    """Render one line a chapter, for spreadsheets."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)  # with the line ends of its standard, which quotes all others
    # Alternatives are a list, which no cell holds.
    own = [field.name for field in fields(Chapter) if field.name != "alternatives"]
    writer.writerow(["video", *("basis" if name == "origin" else name for name in own)])
    for chapter in timeline:
        cells = asdict(chapter) | {"origin": _BASIS.get(chapter.origin, chapter.origin)}
        for name in ("score", "confidence"):
            cells[name] = "" if cells[name] is None else f"{cells[name]:.4f}"
        for name in ("keystep", "words", "task"):
            cells[name] = write_cell(cells[name] or "")
        writer.writerow([write_cell(timeline.video.id), *(cells[name] for name in own)])
    return buffer.getvalue()


def to_vtt(timeline: AnyTimeline) -> str:
    """Render WebVTT chapters, for players."""
    blocks = ["WEBVTT"]
    for chapter in timeline:
        start, end = _clock(chapter.start), _clock(chapter.end)
        if start < end:  # a last row that was only just started lasts no millisecond
            blocks.append(f"{start} --> {end}\n{html.escape(on_one_line(chapter.keystep))}")
    return "\n\n".join(blocks) + "\n"


def to_youtube(timeline: AnyTimeline) -> str:
    """Render text for a video's description: from 0:00 on, nothing shorter than ten seconds.

    Shorter keysteps share a chapter with their neighbours, and its title names them all.  YouTube
    shows chapters only from three on; fewer are written all the same, as times to click on, and
    :func:`fits_youtube` and the JSON report it.
    """
    return "".join(f"{short_clock(start)} {title}\n" for start, title in _youtube(timeline))


def fits_youtube(timeline: AnyTimeline) -> bool:
    """Check whether there are enough chapters for YouTube to show them."""
    return len(_youtube(timeline)) >= _FEWEST_CHAPTERS


def _youtube(timeline: AnyTimeline) -> list[tuple[float, str]]:
    """Compute start and title of the most chapters possible: each ends as soon as allowed."""
    groups: list[tuple[float, list[str]]] = [(0.0, [])]
    for chapter in timeline:
        name, (begun, names) = on_one_line(chapter.keystep), groups[-1]
        if chapter.start - begun < _SHORTEST_CHAPTER or names[-1:] == [name]:
            names.append(name)
        else:
            groups.append((chapter.start, [name]))
    if len(groups) > 1 and timeline.video.duration - groups[-1][0] < _SHORTEST_CHAPTER:
        _, names = groups.pop()
        groups[-1][1].extend(names)
    return [(start, _title(list(dict.fromkeys(names)))) for start, names in groups]


def _title(names: list[str]) -> str:
    """Join all names, or as many as fit, with the number of the others."""
    for shown in range(len(names), 0, -1):
        more = f" and {len(names) - shown} more" if shown < len(names) else ""
        title = ", ".join(names[:shown])
        if len(title + more) <= _LONGEST_TITLE:
            return title + more
    return f"{title[: _LONGEST_TITLE - len(more) - 1]}…{more}" if names else "Start"


def on_one_line(name: str) -> str:
    """Replace line breaks and repeated spaces in a name by single spaces."""
    return " ".join(name.split())


def to_text(timeline: AnyTimeline) -> str:
    """Render one line a chapter, for a terminal, under the most probable task of the video."""
    title, tasks = [], timeline.tasks
    if tasks and sum(tasks.values()) >= 0.5:
        task, sure = next(iter(tasks.items()))
        title = [f"{on_one_line(task)} ({100 * sure:.0f} %)"]
    elif tasks:
        title = [f"probably none of the tasks ({100 * (1 - sum(tasks.values())):.0f} %)"]
    chapters = [
        f"{short_clock(chapter.start):>8} - {short_clock(chapter.end):<8} "
        f"{on_one_line(chapter.keystep)}"
        for chapter in timeline
    ]
    return "\n".join([*title, *chapters])


def _clock(seconds: float) -> str:
    ms = round(seconds * 1000)
    return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}.{ms % 1000:03}"


FORMATS: dict[str, tuple[str, Callable[[AnyTimeline], str]]] = {
    "json": (RESULT_SUFFIX, to_json),
    "csv": (".steps.csv", to_csv),
    "webvtt": (".chapters.vtt", to_vtt),
    "youtube": (".chapters.txt", to_youtube),
}
"""Formats of a timeline: name, suffix of its file, and the function that renders it."""


def write_timeline(timeline: AnyTimeline, folder: Path | str) -> list[Path]:
    """Write a timeline in every format; each file whole or not at all."""
    paths = [file_in(folder, timeline.video.id, suffix) for suffix, _ in FORMATS.values()]
    written = seen_in(timeline, paths[0].parent)
    for path, (_, convert) in zip(paths, FORMATS.values(), strict=True):
        write_text(path, convert(written))
    return paths


def seen_in(timeline: AnyTimeline, folder: Path) -> Result:
    """Make the path of the video relative to a folder where possible, so both can be moved."""
    path = timeline.video.path and seen_from(timeline.video.path, folder)
    video = replace(timeline.video, path=path)
    return Result(video, tuple(timeline), timeline.tasks, timeline.fingerprint)
