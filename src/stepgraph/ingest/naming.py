"""Which files are transcripts, which are videos, and which belong together.

Names decide; only into a ``.txt``, which may be anything, the beginning is looked at.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from functools import lru_cache
from pathlib import Path

from stepgraph.files.disk import listed
from stepgraph.ingest.timed_text import is_pasted

TRANSCRIPT_SUFFIXES = (
    *(".vtt", ".srt", ".sbv", ".json3", ".json", ".tsv", ".ass", ".ssa", ".ttml", ".sub"),
    ".txt",
)
"""What transcript files are called; of several for one video the first is taken."""

MEDIA_SUFFIXES = (".mp4", ".mkv", ".webm", ".mov", ".m4v", ".avi", ".mpg", ".ts", ".flv", ".wmv")
"""What video files are called."""

# What this program and yt-dlp write beside a video; no transcript of anything.
_NOT_TRANSCRIPTS = (
    *(".chapters.vtt", ".chapters.txt", ".steps.json", ".info.json", ".live_chat.json"),
)

# Two letters, or a longer code that video sites use: "dr.who.vtt" is not in the language "who".
_LANGUAGE = re.compile(r"(?:[a-z]{2}|eng|fil|yue)(?:[-_][A-Za-z0-9]{2,8})*")


def transcript_stem(path: Path) -> str:
    """Return the name of the video that a transcript file belongs to.

    >>> transcript_stem(Path("talk.en-US.vtt")), transcript_stem(Path("talk.mp4.srt"))
    ('talk', 'talk')
    """
    stem = Path(path).stem
    head, _, tag = stem.rpartition(".")
    if head and _LANGUAGE.fullmatch(tag):
        stem = head
    # Some recognisers append their suffix to that of the video.
    return Path(stem).stem if Path(stem).suffix.lower() in MEDIA_SUFFIXES else stem


def is_transcript(path: Path) -> bool:
    """Tell whether a file is a transcript by its name, a ``.txt`` by how it begins."""
    name = path.name.lower()
    if not name.endswith(TRANSCRIPT_SUFFIXES) or name.endswith(_NOT_TRANSCRIPTS):
        return False
    if not name.endswith(".txt"):
        return True
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            return is_pasted(file.read(2000))
    except OSError:
        return False


def find_transcript(media: Path) -> Path | None:
    """Return the transcript that lies beside a video file, or None."""
    for suffix in TRANSCRIPT_SUFFIXES:
        if is_transcript(path := media.with_suffix(suffix)) and path.is_file():
            return path
    changed, now = media.parent.stat().st_mtime_ns, time.time_ns()
    # What changed just now may change again without a later time.
    near = _by_stem(media.parent, changed if changed < now - 2_000_000_000 else now)
    found = [path for path in near.get(media.stem, ()) if path.is_file() and is_transcript(path)]
    return min(found, key=lambda path: transcript_preference(path, media.stem), default=None)


@lru_cache(maxsize=1)
def _by_stem(folder: Path, _changed: int) -> dict[str, list[Path]]:
    """Files by what they may belong to; a folder of many videos is listed once for all."""
    found: defaultdict[str, list[Path]] = defaultdict(list)
    for path in listed(folder):
        for stem in {path.stem, transcript_stem(path)}:
            found[stem].append(path)
    return found


def transcript_preference(path: Path, stem: str) -> tuple[int, int, str]:
    """Sort key of the transcripts of a video: without a language first, then English."""
    tag = path.stem[len(stem) :].lower()
    language = 0 if not tag else 1 if tag.startswith(".en") else 2
    return language, TRANSCRIPT_SUFFIXES.index(path.suffix.lower()), path.name
