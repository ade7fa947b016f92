"""Content of the page: a summary of each video, the details of one, and the page on disk."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from stepgraph.core import Result
from stepgraph.export.report import media_address
from stepgraph.export.svg import page_colors, picture_style
from stepgraph.files.disk import replacing, write_text
from stepgraph.graph.comparing import Norm
from stepgraph.ingest.formats import MEDIA_SUFFIXES, SOUND_SUFFIXES
from stepgraph.viewer.maps import deviation_rows, norms_of, picture, task_of
from stepgraph.viewer.thumbnails import has_pictures, thumbnail

COLORS = "colours.css"
SCRIPTS = (
    *("parts.js", "lists.js", "players.js", "overview.js", "correcting.js"),
    *("video.js", "maps.js", "comparing.js", "searching.js", "view.js"),
)
STATIC = {"": "view.html"} | {name: name for name in (COLORS, "view.css", *SCRIPTS)}
"""Files of the page, by their addresses on the server."""

YOUTUBE = "https://www.youtube-nocookie.com"
_YOUTUBE_ID = re.compile(r"(?:.*/)?([\w-]{11})", re.ASCII | re.DOTALL)

_TOGETHER = 4 << 20  # characters of results in one file on disk


def policy(*, youtube: bool = False, on_disk: bool = False) -> str:
    """Make the content security policy: own files, and YouTube's player where allowed."""
    own = "'self' file:" if on_disk else "'self'"
    rules = {
        "default-src": "'none'",
        "script-src": own,
        "style-src": own,
        "img-src": f"{own} data:",
        "media-src": own,
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    if youtube:
        rules["frame-src"] = YOUTUBE
    if not on_disk:  # a page on disk has no server, and cannot restrict who may frame it
        rules |= {"connect-src": own, "frame-ancestors": "'none'"}
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def playable(result: Result) -> Path | None:
    """Return the video file of a result where it can be played."""
    path = result.video.path
    if path is None or path.suffix.lower() not in MEDIA_SUFFIXES or not os.path.isfile(path):
        return None
    return path


def summary(result: Result, *, youtube: bool = False) -> dict[str, Any]:
    """Summarise a video for the overview; steps are ``[start, end, keystep, confidence]``."""
    sure = [one.confidence for one in result if one.confidence is not None]
    task, share = next(iter((result.tasks or {}).items()), (None, None))
    path = playable(result)
    line = {
        "id": result.video.id,
        "duration": result.video.duration,
        "task": task,
        "share": share,
        "sure": sum(sure) / len(sure) if sure else None,
        "covered": _covered(result),
        "corrected": result.corrected,
        "steps": [[one.start, one.end, one.keystep, one.confidence] for one in result],
        "plays": path is not None,
        "sound": path is not None and path.suffix.lower() in SOUND_SUFFIXES,
        "pictures": has_pictures(path),
    }
    if youtube and path is None and (found := _YOUTUBE_ID.fullmatch(result.video.id)):
        line["youtube"] = f"{YOUTUBE}/embed/{found[1]}"
    return line


def _covered(result: Result) -> float:
    """Share of the video covered by steps, from 0 to 1."""
    if not result.video.duration:
        return 0.0
    done = sum(one.end - one.start for one in result)
    return min(1.0, done / result.video.duration)


def details(result: Result) -> dict[str, Any]:
    """Collect the data of one video beyond its summary."""
    return {
        "tasks": result.tasks,
        "chapters": [
            {
                "score": one.score,
                "origin": one.origin,
                "words": one.words,
                "alternatives": one.alternatives,
            }
            for one in result
        ],
        "transcript": result.video.transcript,
    }


def overview_of(lines: Iterable[dict[str, Any]], norm: Mapping[str, Norm]) -> dict[str, Any]:
    """Collect all videos and tasks, with the deviations of each video from the norm."""
    videos = [line | {"deviations": deviation_rows(norm[task_of(line)], line)} for line in lines]
    return {"videos": videos, "tasks": [*norm]}


def static(name: str) -> str:
    """Read a file of the page."""
    if name == COLORS:  # those of the report, and of its pictures
        return page_colors() + picture_style()
    return (files("stepgraph.viewer") / "static" / name).read_text(encoding="utf-8")


def write_site(
    results: Iterable[Result],
    folder: Path,
    mined: Mapping[str, Norm] | None = None,
    *,
    youtube: bool = False,
) -> Path:
    """Write the page as files that open from disk, with all results in them."""
    lines, parts, size = [], list[dict[str, Any]](), _TOGETHER
    for number, result in enumerate(results):
        line = summary(result, youtube=youtube)
        if line["plays"]:
            line["src"] = media_address(result.video, folder / "index.html")
        if line["pictures"]:
            line["thumbs"] = _write_thumbnails(result, folder / "pictures", number)
        more = json.dumps(details(result), ensure_ascii=False)
        if size + len(more) > _TOGETHER:
            _write_part(folder, parts)
            parts, size = [*parts, {}], 0
        size += len(more)
        parts[-1][result.video.id] = more
        lines.append(line | {"part": len(parts) - 1})
    _write_part(folder, parts)
    norm = norms_of(lines, mined or {})
    maps = {task: picture(one) for task, one in norm.items()}
    data = overview_of(lines, norm) | {"maps": maps, "parts": len(parts)}
    write_text(folder / "data.js", f"window.STEPGRAPH = {json.dumps(data, ensure_ascii=False)};\n")
    allowed = policy(youtube=youtube, on_disk=True)
    meta = f'<meta http-equiv="Content-Security-Policy" content="{allowed}">'
    page = static("view.html").replace("<title>", f"{meta}\n<title>", 1)
    page = page.replace("<script ", '<script src="data.js" defer></script>\n<script ', 1)
    for name in (COLORS, "view.css", *SCRIPTS):
        write_text(folder / name, static(name))
    write_text(folder / "index.html", page)
    return folder / "index.html"


def _write_part(folder: Path, parts: list[dict[str, Any]]) -> None:
    """Write the last part and empty it, since all parts may exceed memory."""
    if parts:
        fields = ",\n".join(f"{json.dumps(id)}: {more}" for id, more in parts[-1].items())
        text = f"window.STEPGRAPH.results({{{fields}}});\n"
        write_text(folder / "data" / f"{len(parts) - 1}.js", text)
        parts[-1] = {}


def _write_thumbnails(result: Result, folder: Path, number: int) -> list[str | None]:
    """Write a picture of each chapter; return their paths relative to the page."""
    places: list[str | None] = []
    for at, chapter in enumerate(result):
        content = result.video.path and thumbnail(result.video.path, chapter.start)
        if content:
            with replacing(folder / f"{number}-{at}.jpg") as partial:
                partial.write_bytes(content)
        places.append(f"{folder.name}/{number}-{at}.jpg" if content else None)
    return places
