"""Read formats that carry styles: ASS and SSA, TTML, MicroDVD.

Only what is said is taken, and when.  Every file is read in one pass over its characters, so that
one of nothing but braces takes no longer than a transcript of its size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import StringIO
from xml.etree.ElementTree import Element, ParseError, iterparse

from stepgraph.errors import DataError, quoted, reason
from stepgraph.ingest.cues import Cue
from stepgraph.ingest.timed_text import CLOCK, seconds

_STYLE = re.compile(r"\{[^}]*\}")
_DRAWING = re.compile(r"\\p[1-9]")
_LINE_BREAK = re.compile(r"\\[Nn]")
_FRAMES = re.compile(r" *\{ *([0-9]{1,9}) *\} *\{ *([0-9]{0,9}) *\}(.*)")
_OFFSET = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(h|ms|m|s|)")
_SPACES = re.compile(r"\s+")
_BREAK = "\0"  # which no XML holds
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "": 1.0, "ms": 0.001}


def read_ass(text: str, origin: str) -> Iterator[Cue | DataError]:
    """Read the dialogue of ASS and SSA: nine fields, of which two are times, and the text."""
    for number, line in enumerate(text.split("\n"), 1):
        kind, _, rest = line.partition(":")
        if kind.strip() != "Dialogue":
            continue
        fields = rest.split(",", 9)
        start, end = (CLOCK.fullmatch(one.strip()) for one in (*fields, "", "", "")[1:3])
        if len(fields) < 10 or not start or not end:
            yield DataError(
                f"{origin}:{number}: dialogue must have 10 fields and times like 0:01:02.50, "
                f"got {quoted(line, 60)}; correct or remove it"
            )
        elif (said := said_in_ass(fields[9])) is not None:
            yield Cue(seconds(start, 1), seconds(end, 1), said, f"{origin}:{number}")


def said_in_ass(text: str) -> str | None:
    """What is said in a field of ASS without its styles, or None where it is a drawing."""
    closed = text.rfind("}") + 1  # all braces before it are closed, so each is looked at once
    if any(map(_DRAWING.search, _STYLE.findall(text, 0, closed))):
        return None
    bare = _STYLE.sub("", text[:closed]) + text[closed:]
    return _LINE_BREAK.sub("\n", bare).replace(r"\h", " ")


def read_microdvd(text: str, origin: str) -> Iterator[Cue]:
    """Read lines of a first frame, a last frame and text; the first line tells their rate."""
    rate = 0.0
    for number, line in enumerate(text.split("\n"), 1):
        if not (found := _FRAMES.match(line)):
            continue
        first, last, said = found.groups()
        if rate:
            end = int(last) / rate if last else None
            yield Cue(int(first) / rate, end, said.replace("|", "\n"), f"{origin}:{number}")
            continue
        stated = _OFFSET.fullmatch(said.strip()) if (first, last) == ("1", "1") else None
        rate = float(stated[1]) if stated else 0.0
        if not rate:
            raise DataError(
                f"{origin}: must state its frame rate in its first line, like {{1}}{{1}}25, "
                f"got none; add it, or convert the file to .srt"
            )


def read_ttml(text: str, origin: str) -> Iterator[Cue | DataError]:
    """Read the paragraphs of TTML; their times count from those of what they stand in."""
    begins, number = [0.0], 1
    try:
        for event, element in iterparse(StringIO(text), ("start", "end")):
            name, place = element.tag.rpartition("}")[2], f"{origin}: cue {number}"
            if event == "start":
                own = element.get("begin", "0s") if name in ("body", "div") else "0s"
                begins.append(begins[-1] + _seconds_in(own, place))
                continue
            begins.pop()
            if name == "br":
                element.text = _BREAK
            elif name == "p":
                yield _paragraph(element, begins[-1], place)
                element.clear()
                number += 1
    except ParseError as error:
        raise DataError(
            f"{origin}: must be a readable TTML transcript, got an error ({reason(error)}); "
            f"convert it to .srt"
        ) from error


def _paragraph(element: Element, base: float, place: str) -> Cue | DataError:
    length = element.get("dur") or element.get("duration")
    try:
        start = base + _seconds_in(element.get("begin", "0s"), place)
        end = _seconds_in(length or element.get("end") or "", place)
    except DataError as error:
        return error
    said = _SPACES.sub(" ", "".join(element.itertext())).replace(_BREAK, "\n")
    return Cue(start, end + (start if length else base), said, place)


def _seconds_in(text: str, place: str) -> float:
    if found := CLOCK.fullmatch(text.strip()):
        return seconds(found, 1)
    if found := _OFFSET.fullmatch(text.strip()):
        return float(found[1]) * _SECONDS[found[2]]
    raise DataError(
        f"{place}: a time must read like 00:01:02.500 or 62.5s, got {quoted(text, 60)}; "
        f"correct it, or convert the file to .srt"
    )
