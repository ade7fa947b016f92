"""Read the JSON layouts transcripts come in, told apart by what they contain.

Whisper and its relatives, the timed text of YouTube, and parallel lists of starts, ends and
texts, as CrossTask and HowTo100M publish their narrations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stepgraph.errors import DataError
from stepgraph.files.disk import parse_json
from stepgraph.ingest.cues import Cue, read_each


def read_json(text: str, origin: str) -> Iterable[Cue | DataError]:
    """Read all cues of a JSON transcript; ``origin`` begins each error and ``place``."""
    record = parse_json(text, origin)
    if isinstance(record, list):
        return read_each(record, _from_segment, origin)
    if isinstance(record, dict):
        for key, read in (("events", _from_event), ("segments", _from_segment)):
            if key in record:
                return read_each(_as_list(record[key], f"{origin}: {key!r}"), read, origin)
        if {"start", "end", "text"} <= record.keys():
            return cues_from_lists(record, origin)
        got = f"an object with keys {list(record)[:5]}"
    else:
        got = f"{record!r:.40}"
    expected = "'segments', 'events', or lists 'start', 'end' and 'text'"
    raise DataError(f"{origin}: a JSON transcript must hold {expected}, got {got}")


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
        if text is None:  # a segment without words has nothing to say
            return None
        cue = _cue(start, start if end is None else end, text, place)
        return cue._replace(end=None) if end is None else cue
    if isinstance(segment, list):
        return _cue(*_fields_of_tuple(segment, place), place)
    raise DataError(f"{place}: must be an object with start, end, text, got {segment!r:.40}")


def _fields_of_object(segment: Mapping[str, Any], place: str) -> tuple[Any, Any, Any]:
    """Start, end and text; what a segment lacks is taken from its words."""
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
            f"{place}: a list must read [id, seek, start, end, text, ...], got {segment!r:.60}"
        )
    return segment[position - 2], segment[position - 1], segment[position]


def _from_event(event: Any, place: str) -> Cue | None:
    """Read YouTube's timed text; events without text only open windows and break lines."""
    if not isinstance(event, dict):
        raise DataError(f"{place}: must be an object with tStartMs, got {event!r:.40}")
    segments = _as_list(event.get("segs") or [], f"{place}: 'segs'")
    text = "".join(str(one.get("utf8", "")) for one in segments if isinstance(one, dict))
    if not text.strip():
        return None
    start = _number(event.get("tStartMs", 0), f"{place}: tStartMs")
    length = _number(event.get("dDurationMs", 0), f"{place}: dDurationMs")
    return Cue(start / 1000, (start + length) / 1000, text, place)


def _cue(start: Any, end: Any, text: Any, place: str) -> Cue:
    if not isinstance(text, str):
        raise DataError(f"{place}: text must be a string, got {text!r:.40}")
    return Cue(_number(start, f"{place}: start"), _number(end, f"{place}: end"), text, place)


def _as_list(value: Any, subject: str) -> list[Any]:
    if not isinstance(value, list):
        raise DataError(f"{subject} must be a list, got {value!r:.40}")
    return value


def _number(value: Any, subject: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"{subject} must be a number, got {value!r:.40}")
    try:
        return float(value)
    except OverflowError:
        return float("inf")  # refused, with its place, where times are checked
