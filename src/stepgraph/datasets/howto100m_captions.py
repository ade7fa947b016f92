"""Stream the records of a caption file that is far larger than memory.

HowTo100M publishes its narration as one JSON object of over 10 GB, mostly on one line.  A record
is found by the bytes around its opening brace: before it a string and a colon, after it a colon
behind ``"start"``, ``"end"`` or ``"text"``.  No text can look like this, since inside a string
quotes are escaped.  Each record is parsed on its own, and a broken one harms no other.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import orjson

from stepgraph.core import is_unicode
from stepgraph.datasets import Shard
from stepgraph.errors import DataError, quoted
from stepgraph.files.addresses import Location
from stepgraph.files.disk import MIB, reading
from stepgraph.ingest.formats import cues_from_lists
from stepgraph.problems import Problems

LONGEST_RECORD = 16 * MIB  # bytes of the longest record that is read: more than a week of speech
CHUNK = MIB  # bytes read at once
WHOLE = (0, math.inf)
_SPACE = b" \t\r\n"
# Number of bytes before and after a brace that are searched for the marks of a record.
_NEAR = 512
# Number of bytes within which a first record must begin, else this is another file.
_SURELY = MIB

_AFTER = re.compile(rb'\{[ \t\r\n]*"(?:start|end|text)"[ \t\r\n]*:')
_ODD_BACKSLASHES = rb"\\(?:\\\\)*(?!\\)"
# Read backwards from the brace: colon, closing quote, key, opening quote.
_BEFORE = re.compile(
    rb'[ \t\r\n]*:[ \t\r\n]*"(?:[^"]|"(?=%b))*"(?!%b)' % (_ODD_BACKSLASHES, _ODD_BACKSLASHES)
)
_NO_SPACE = re.compile(r"[^ \t\r\n]")
_DECODER = json.JSONDecoder()


class Caption(NamedTuple):
    """One record: the video, its lists as published, and the byte at which its key begins."""

    video: str
    lists: Any  # a mapping of lists, unless it is broken
    position: int


class _Region(NamedTuple):
    """The bytes from the key of one record to the key of the next."""

    position: int
    data: bytes
    brace: int  # where the value begins in ``data``, or 0 if unknown
    is_last: bool = False


def read_captions(
    path: Location,
    *,
    problems: Problems,
    shard: Shard = Shard(),
    between: tuple[int, float] = WHOLE,
) -> Iterator[Caption]:
    """Yield the records of a caption file one by one, whatever its size.

    Its three lists are equally long; their contents are not yet checked.  A record that is
    broken, or a file that is cut off, is a problem.  Records of other shards than ``shard`` are
    found, which is quick, but not parsed; text between two records belongs to the shard of the
    first.  Only records whose keys begin ``between`` two bytes are read: adjacent parts of a file
    give each record once.
    """
    with reading(path, "caption file") as file:
        # A part that begins behind the first key need not read it.
        first_key = _first_key(file, path) if between[0] < _SURELY else -1
        for region in _regions(file, first_key, *between):
            if _first_video(region) not in shard:
                continue
            # All regions but broken ones hold one record.
            for record in _parsed_at_once(region) or _parsed_in_steps(region, path, problems):
                if mistake := _mistake(record):
                    place = f"{path}: byte {record.position}: video {quoted(record.video, 80)}"
                    problems.add(place, "broken record", mistake)
                else:
                    yield record


def _first_key(file: BinaryIO, path: Location) -> int:
    """Position of the first record in bytes; an error if this is no caption file."""
    file.seek(0)
    head = file.read(_SURELY)
    found = re.match(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*\{[ \t\r\n]*", head)
    if found is None:
        got = f"a file that begins {head[:40]!r}" if head else "an empty file"
    elif head[found.end() : found.end() + 1] == b"}" or _next_record(head, 0, len(head)):
        return found.end()
    else:
        got = "an object without such a record"
    raise DataError(
        f'{path}: must be one JSON object of records {{"video": {{"start": [...], '
        f'"end": [...], "text": [...]}}, ...}}, got {got}; is it the right file?'
    )


def _next_record(data: bytes, begin: int, end: int) -> tuple[int, int] | None:
    """Positions of the key and the brace of the first record whose brace lies in a range."""
    while (brace := data.find(b"{", begin, end)) >= 0:
        if _AFTER.match(data, brace, brace + _NEAR):
            before = data[max(0, brace - _NEAR) : brace][::-1]
            if found := _BEFORE.match(before):
                return brace - found.end(), brace
        begin = brace + 1
    return None


def _regions(file: BinaryIO, first_key: int, begin: int, end: float) -> Iterator[_Region]:
    """Cut the file at the keys of its records, and give those that begin between two bytes."""
    data, scan = b"", min(begin, _NEAR)
    base = begin - scan  # position in the file of the first byte of data
    # What stands before the first record belongs to it, so that it is reported if it is none.
    key = brace = first_key if begin <= first_key else -1
    file.seek(base)
    while True:
        chunk = file.read(CHUNK)
        done = max(0, scan - _NEAR if key < 0 else min(key - base, scan - _NEAR))
        data, base, scan = data[done:] + chunk, base + done, scan - done
        judged = max(scan, len(data) - _NEAR) if chunk else len(data)
        while found := _next_record(data, scan, judged):
            next_key, next_brace = base + found[0], base + found[1]
            scan = found[1] + 1
            if 0 <= key < next_key:
                yield _Region(key, data[key - base : next_key - base], brace - key)
            if next_key >= end:
                return
            key, brace = (next_key, next_brace) if next_key >= begin else (-1, -1)
        scan = judged
        if key >= 0 and base + len(data) - key > LONGEST_RECORD:
            yield _Region(key, data[key - base :][: LONGEST_RECORD + 1], brace - key)
            key = -1
        if not chunk:
            break
    if key >= 0:
        yield _Region(key, data[key - base :], brace - key, is_last=True)


def _mistake(record: Caption) -> str:
    """Describe the mistake in the shape of a record; empty if there is none."""
    video, lists, _ = record
    if not video or (not video.isascii() and not is_unicode(video)):
        return "the id of a video must be Unicode text, at least one character; correct it"
    if not isinstance(lists, dict):
        return f"must be an object with lists 'start', 'end' and 'text', got {quoted(lists, 40)}"
    try:
        cues_from_lists(lists, "")
    except DataError as error:
        return str(error).removeprefix(": ")
    return ""


def _parsed_at_once(region: _Region) -> list[Caption]:
    """Parse a region that holds one record and a comma; an empty list if it does not."""
    data = region.data.rstrip(_SPACE)
    if not region.brace or region.is_last or not data.endswith(b","):
        return []
    if len(data) > LONGEST_RECORD:
        return []
    try:
        video = orjson.loads(data[: data.rindex(b'"', 0, region.brace) + 1])
        lists = orjson.loads(memoryview(data)[region.brace : -1])
        return [Caption(video, lists, region.position)]
    except orjson.JSONDecodeError:
        # The standard parser also reads NaN and lone surrogates, and reports where it stopped.
        return []


def _parsed_in_steps(region: _Region, path: Location, problems: Problems) -> Iterator[Caption]:
    """Parse pair by pair up to the first mistake, and report that."""
    text, mistake = _text_of(region)
    begin, at, video, kind = 0, 0, _first_video(region), "broken record"
    try:
        while not mistake and (at := _skip(text, at)) < len(text) and text[at] != "}":
            begin, video = at, ""
            video, at = _key(text, at)
            lists, at = _DECODER.raw_decode(text, at)
            yield Caption(video, lists, region.position + _bytes_in(text[:begin]))
            at = _skip(text, at)
            if text[at : at + 1] != ",":
                break
            at += 1
        mistake = mistake or _mistake_after(text[at:], region)
    except (RecursionError, ValueError) as error:
        mistake = _in_words(error, text, region)
    if region.is_last and "cut off" in mistake:
        kind = "cut-off file"
    if mistake:
        place = f"{path}: byte {region.position + _bytes_in(text[:begin])}"
        problems.add(f"{place}: video {quoted(video, 80)}" if video else place, kind, mistake)


def _text_of(region: _Region) -> tuple[str, str]:
    """Decode a region; if that cannot be done, no text and the reason."""
    if len(region.data) > LONGEST_RECORD:
        return "", f"a record must have at most {LONGEST_RECORD // MIB} MiB, got more; skipped"
    try:
        return region.data.decode(), ""
    except UnicodeDecodeError as error:
        position = region.position + error.start
        found = region.data[error.start]
        return "", f"must be UTF-8, got byte 0x{found:02x} at byte {position}; record skipped"


def _first_video(region: _Region) -> str:
    """The key at which a region begins, also where it cannot be parsed."""
    quoted = region.data[: region.brace].rstrip(_SPACE + b":").decode(errors="replace")
    try:
        return str(_DECODER.decode(quoted)) if "\\" in quoted else quoted[1:-1]
    except ValueError:
        return quoted[1:-1]


def _key(text: str, at: int) -> tuple[str, int]:
    """Read a key and its colon; return it and where its value begins."""
    if text[at] != '"':
        raise json.JSONDecodeError("Expecting a video in quotes", text, at)
    video, at = _DECODER.raw_decode(text, at)
    at = _skip(text, at)
    if text[at : at + 1] != ":":
        raise json.JSONDecodeError("Expecting a colon", text, at)
    return video, _skip(text, at + 1)


def _mistake_after(rest: str, region: _Region) -> str:
    """Describe the mistake in what follows the records of a region; empty if there is none."""
    rest = rest.strip()
    if not region.is_last:
        ends_well = not rest and region.data.rstrip(_SPACE).endswith(b",")
        return "" if ends_well else f"must be followed by a comma, got {rest[:20]!r}; record kept"
    if not rest:
        return (
            "must be followed by a closing brace, got the end; the file is cut off, fetch it again"
        )
    return "" if rest == "}" else f"must be followed by one closing brace, got {rest[:20]!r}"


def _in_words(error: Exception, text: str, region: _Region) -> str:
    if not isinstance(error, json.JSONDecodeError):
        return f"must be JSON that can be read, got {type(error).__name__}; record skipped"
    whole = text.rstrip()
    unfinished = error.msg.startswith("Unterminated") or error.pos >= len(whole)
    if region.is_last and (unfinished or not whole.endswith("}")):
        end = region.position + _bytes_in(whole)
        return f"must be complete, got the end at byte {end}; the file is cut off, fetch it again"
    position = region.position + _bytes_in(text[: error.pos])
    return f"must be JSON, got {error.msg!r} at byte {position}; record skipped"


def _skip(text: str, at: int) -> int:
    """First position from ``at`` on that is not white space."""
    found = _NO_SPACE.search(text, at)
    return found.start() if found else len(text)


def _bytes_in(text: str) -> int:
    return len(text.encode())
