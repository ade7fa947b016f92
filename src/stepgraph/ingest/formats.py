"""Recognise transcript files, match them with videos, and read them as clean sentences.

Names decide what is a transcript; for a ``.txt``, which may be anything, its beginning decides.
The content determines the format, since suffixes may be wrong; the suffix decides only where the
content cannot.  A file that cannot be read is one error with a remedy, and no encoding is guessed;
a cue that cannot be read is left out with its reason.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from stepgraph.core import Sentence
from stepgraph.errors import DataError, quoted
from stepgraph.files import disk
from stepgraph.ingest import timed_text
from stepgraph.ingest.cleaning import Cue, checked, clean, clean_lists, read_each
from stepgraph.problems import Problems

MAX_BYTES = 64 * 2**20
"""A transcript of a week of speech is smaller; anything larger is not read at all."""

_JSON_BEGINNING = re.compile(r"\{\s*[\"}]|\[\s*[\[{\]]")
_MICRODVD_BEGINNING = re.compile(r"\{[0-9]+\}\{[0-9]*\}")
_TSV_HEADER = "start\tend\ttext"
TRANSCRIPT_SUFFIXES = (
    *(".vtt", ".srt", ".sbv", ".json3", ".json", ".tsv", ".ass", ".ssa", ".ttml", ".sub"),
    ".txt",
)
"""Suffixes of transcript files; of several for one video the first is taken."""

SOUND_SUFFIXES = (".mp3", ".m4a", ".wav", ".flac", ".ogg")
"""Suffixes of files of sound alone."""

MEDIA_SUFFIXES = (
    *(".mp4", ".mkv", ".webm", ".mov", ".m4v", ".avi", ".mpg", ".ts", ".flv", ".wmv"),
    *SOUND_SUFFIXES,
)
"""Suffixes of video files; sound alone is a video without a picture."""

# What this program and yt-dlp write beside a video; no transcript of anything.
_NOT_TRANSCRIPTS = (
    *(".chapters.vtt", ".chapters.txt", ".chapters.json", ".steps.json", ".steps.srt"),
    *(".info.json", ".live_chat.json"),
)

# Two letters, or a longer code that video sites use: "dr.who.vtt" is not in the language "who".
_LANGUAGE = re.compile(r"(?:[a-z]{2}|eng|fil|yue)(?:[-_][A-Za-z0-9]{2,8})*")


def read_transcript(path: Path | str, *, problems: Problems | None = None) -> tuple[Sentence, ...]:
    """Read a transcript file and return its clean sentences.

    Reads SubRip, WebVTT (YouTube's automatic ones included), SBV of YouTube Studio, YouTube
    JSON, text pasted from YouTube's transcript panel, the JSON and TSV of Whisper and its
    relatives, JSON with lists ``start``, ``end`` and ``text``, ASS/SSA, TTML and MicroDVD;
    UTF-8, or UTF-16 with a byte order mark.  A cue without an end lasts until the next one
    starts, the last one 5 seconds.  One with an impossible time is left out and added to
    ``problems``; if these are not given, a warning reports it.
    """
    path = Path(path)
    text = disk.read_text(path, limit=MAX_BYTES, kind="transcript file")
    if not text.strip():
        got = "only whitespace" if text else "an empty file"
        raise DataError(f"{path}: must hold a transcript, got {got}; fetch or write it again")
    origin = str(path)
    name = _format_of(text, path.suffix.lower())
    cues = list(_READERS[name](text, origin))
    if not cues:
        raise DataError(
            f"{origin}: must hold cues with times, got none; "
            f"give a transcript in one of the formats {' '.join(TRANSCRIPT_SUFFIXES)}"
        )
    # Styled formats list signs and speech in separate runs, each beginning at zero.
    return clean(checked(cues, origin, problems, in_order=name not in ("ass", "ttml", "microdvd")))


def transcript_from_lists(
    record: Mapping[str, Any], *, origin: str, problems: Problems | None = None
) -> tuple[Sentence, ...]:
    """Return the clean sentences of lists ``start``, ``end`` and ``text``, as published.

    ``origin`` begins every error; ``problems`` are as in :func:`read_transcript`.
    """
    quick = clean_lists(record.get("start"), record.get("end"), record.get("text"))
    if quick is not None:
        return quick
    return clean(checked(cues_from_lists(record, origin), origin, problems))


def _format_of(text: str, suffix: str) -> str:
    beginning = text[:2000].lstrip()
    if timed_text.is_webvtt(beginning):
        return "timed text"
    if beginning.startswith(("[Script Info]", "[V4")) or suffix in (".ass", ".ssa"):
        return "ass"
    if suffix in (".json", ".json3") or _JSON_BEGINNING.match(beginning):
        return "json"
    if beginning.startswith(_TSV_HEADER) or suffix == ".tsv":
        return "tsv"
    if "http://www.w3.org/ns/ttml" in beginning or suffix == ".ttml":
        return "ttml"
    if _MICRODVD_BEGINNING.match(beginning):
        return "microdvd"
    pasted = timed_text.is_pasted(text) and not timed_text.is_sbv(text)
    return "pasted" if pasted else "timed text"


def _read_tsv(text: str, origin: str) -> Iterator[Cue | DataError]:
    """Read Whisper's table: start and end in milliseconds, and text."""
    for number, line in enumerate(text.rstrip("\n").split("\n"), 1):
        if not line.strip() or line.strip() == _TSV_HEADER:
            continue
        place = f"{origin}:{number}"
        try:
            start, end, said = line.split("\t", 2)
            yield Cue(float(start) / 1000, float(end) / 1000, said, place)
        except ValueError:
            got = "other times" if line.count("\t") > 1 else "fewer tabs"
            yield DataError(
                f"{place}: a line must read start, end (milliseconds) and text between tabs, "
                f"got {got}; correct or remove it"
            )


def _read_json(text: str, origin: str) -> Iterable[Cue | DataError]:
    """Read all cues of a JSON transcript; ``origin`` begins each error and ``place``."""
    record = disk.parse_json(text, origin)
    if isinstance(record, list):
        return read_each(record, _from_segment, origin)
    if isinstance(record, dict):
        for key, read in (("events", _from_event), ("segments", _from_segment)):
            if key in record:
                return read_each(_as_list(record[key], f"{origin}: {key!r}"), read, origin)
        if {"start", "end", "text"} <= record.keys():
            return cues_from_lists(record, origin)
    expected = "'segments', 'events', or lists 'start', 'end' and 'text'"
    raise DataError(f"{origin}: a JSON transcript must hold {expected}, got {_shown(record)}")


def cues_from_lists(record: Mapping[str, Any], origin: str) -> Iterable[Cue | DataError]:
    """Read parallel lists ``start``, ``end`` and ``text``."""
    missing = [key for key in ("start", "end", "text") if key not in record]
    if missing:
        raise DataError(
            f"{origin}: must have lists 'start', 'end' and 'text', got no {missing[0]!r}"
        )
    starts, ends, texts = (
        _as_list(record[key], f"{origin}: {key!r}") for key in ("start", "end", "text")
    )
    if not len(starts) == len(ends) == len(texts):
        raise DataError(
            f"{origin}: 'start', 'end' and 'text' must be equally long, "
            f"got {len(starts)}, {len(ends)} and {len(texts)}; was the file edited?"
        )
    rows = zip(starts, ends, texts, strict=True)
    return read_each(rows, lambda row, place: _cue(*row, place), origin)


def _from_segment(segment: Any, place: str) -> Cue | None:
    if isinstance(segment, dict):
        start, end, text = _fields_of_object(segment, place)
        if text is None:  # a segment without words is left out
            return None
        cue = _cue(start, start if end is None else end, text, place)
        return cue._replace(end=None) if end is None else cue
    if isinstance(segment, list):
        return _cue(*_fields_of_tuple(segment, place), place)
    raise DataError(f"{place}: must be an object with start, end, text, got {_shown(segment)}")


def _fields_of_object(segment: Mapping[str, Any], place: str) -> tuple[Any, Any, Any]:
    """Start, end and text of a segment; missing ones are taken from its words."""
    found = segment.get("words")
    words = [word for word in found if isinstance(word, dict)] if isinstance(found, list) else []
    starts = [word["start"] for word in words if "start" in word]
    ends = [word["end"] for word in words if "end" in word]
    start = segment.get("start", starts[0] if starts else None)
    end = segment.get("end", ends[-1] if ends else None)
    if end is None and "duration" in segment:
        length = _number(segment["duration"], f"{place}: duration")
        end = _number(start, f"{place}: start") + length
    text = segment.get("text")
    if text is None and words:
        text = " ".join(str(word.get("word", "")).strip() for word in words)
    return start, end, text


def _fields_of_tuple(segment: Sequence[Any], place: str) -> tuple[Any, Any, Any]:
    """Start, end and text of a tuple; in all versions of faster-whisper they stand together."""
    position = next((i for i, value in enumerate(segment) if isinstance(value, str)), 0)
    if position < 2:
        raise DataError(
            f"{place}: a list must read [id, seek, start, end, text, ...], got another"
        )
    return segment[position - 2], segment[position - 1], segment[position]


def _from_event(event: Any, place: str) -> Cue | None:
    """Read YouTube's timed text; events without text only open windows and break lines."""
    if not isinstance(event, dict):
        raise DataError(f"{place}: must be an object with tStartMs, got {_shown(event)}")
    segments = _as_list(event.get("segs") or [], f"{place}: 'segs'")
    text = "".join(str(one.get("utf8", "")) for one in segments if isinstance(one, dict))
    if not text.strip():
        return None
    start = _number(event.get("tStartMs", 0), f"{place}: tStartMs")
    length = _number(event.get("dDurationMs", 0), f"{place}: dDurationMs")
    return Cue(start / 1000, (start + length) / 1000, text, place)


def _cue(start: Any, end: Any, text: Any, place: str) -> Cue:
    if not isinstance(text, str):
        raise DataError(f"{place}: text must be a string, got {quoted(text, 40)}")
    return Cue(_number(start, f"{place}: start"), _number(end, f"{place}: end"), text, place)


def _as_list(value: Any, subject: str) -> list[Any]:
    if not isinstance(value, list):
        raise DataError(f"{subject} must be a list, got {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    """Describe a value of a wrong type; text is not shown, as it may be no transcript at all."""
    kinds: dict[type, str] = {str: "a text", list: "a list", dict: "an object"}
    return kinds.get(type(value)) or repr(value)


def _number(value: Any, subject: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"{subject} must be a number, got {quoted(value, 40)}")
    try:
        return float(value)
    except OverflowError:
        return float("inf")  # refused, with its place, where times are checked


_READERS: dict[str, Callable[[str, str], Iterable[Cue | DataError]]] = {
    "json": _read_json,
    "tsv": _read_tsv,
    "timed text": timed_text.read_timed_text,
    "pasted": timed_text.read_pasted,
    "ass": timed_text.read_ass,
    "ttml": timed_text.read_ttml,
    "microdvd": timed_text.read_microdvd,
}


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
    """Recognise a transcript by its name, and a ``.txt`` by its beginning as well."""
    name = path.name.lower()
    if not name.endswith(TRANSCRIPT_SUFFIXES) or name.endswith(_NOT_TRANSCRIPTS):
        return False
    if not name.endswith(".txt"):
        return True
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            return timed_text.is_pasted(file.read(2000))
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
    """Files by the stem of their video; a folder of many videos is listed once for all."""
    found: defaultdict[str, list[Path]] = defaultdict(list)
    for path in disk.listed(folder):
        for stem in {path.stem, transcript_stem(path)}:
            found[stem].append(path)
    return found


def transcript_preference(path: Path, stem: str) -> tuple[bool, bool, int, str]:
    """Sort key of the transcripts of a video: without a language first, then English."""
    tag = path.stem[len(stem) :].lower()
    suffix = TRANSCRIPT_SUFFIXES.index(path.suffix.lower())
    return bool(tag), not tag.startswith(".en"), suffix, path.name
