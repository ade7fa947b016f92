"""What the page shows of results: a line for each video, and all of one; and the page on disk."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any

from stepgraph.core import Result
from stepgraph.export.report import media_address
from stepgraph.files.disk import write_text
from stepgraph.ingest.formats import MEDIA_SUFFIXES

STATIC = {"": "view.html", "view.css": "view.css", "view.js": "view.js"}
"""Files of the page, by their addresses where it is served."""

_POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src data:; "
    "media-src 'self' file:; base-uri 'none'; form-action 'none'"
)


def playable(result: Result) -> Path | None:
    """The video file of a result where it can be played."""
    path = result.video.path
    if path is None or path.suffix.lower() not in MEDIA_SUFFIXES or not path.is_file():
        return None
    return path


def summary(result: Result) -> dict[str, Any]:
    """What the overview shows of a video; steps are ``[start, end, keystep, confidence]``."""
    sure = [one.confidence for one in result if one.confidence is not None]
    task, share = next(iter((result.tasks or {}).items()), (None, None))
    return {
        "id": result.video.id,
        "duration": result.video.duration,
        "task": task,
        "share": share,
        "sure": sum(sure) / len(sure) if sure else None,
        "covered": _covered(result),
        "corrected": result.corrected,
        "steps": [[one.start, one.end, one.keystep, one.confidence] for one in result],
    }


def _covered(result: Result) -> float:
    """Share of the video in which something is done."""
    if not result.video.duration:
        return 0.0
    done = sum(one.end - one.start for one in result)
    return min(1.0, done / result.video.duration)


def details(result: Result) -> dict[str, Any]:
    """What the page of one video shows beyond its summary."""
    return {
        "tasks": result.tasks,
        "chapters": [
            {"score": one.score, "origin": one.origin, "words": one.words, "task": one.task}
            for one in result
        ],
        "transcript": result.video.transcript,
    }


def static(name: str) -> str:
    """A file of the page."""
    return (files("stepgraph.viewer") / "static" / name).read_text(encoding="utf-8")


def write_site(results: Iterable[Result], folder: Path) -> Path:
    """Write the page as files that open from disk, with all results in them."""
    overview, all_of = [], {}
    for result in results:
        line = summary(result) | {"plays": playable(result) is not None}
        if line["plays"]:
            line["src"] = media_address(result.video, folder / "index.html")
        overview.append(line)
        all_of[result.video.id] = details(result)
    data = json.dumps({"overview": overview, "results": all_of}, ensure_ascii=False)
    policy = f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    page = static("view.html").replace("<title>", f"{policy}\n<title>", 1)
    page = page.replace("<script ", '<script src="data.js" defer></script>\n<script ', 1)
    write_text(folder / "data.js", f"window.STEPGRAPH = {data};\n")
    for name in ("view.css", "view.js"):
        write_text(folder / name, static(name))
    write_text(folder / "index.html", page)
    return folder / "index.html"
