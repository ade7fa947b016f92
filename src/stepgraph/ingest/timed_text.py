"""Read timed text, with the damage that real files have.

SubRip, WebVTT and YouTube Studio's SBV share one reader: notes, cue names and half-written times
are either understood or reported with their number.  Text pasted from the transcript panel of a
video site has a time above the words or before them, alone or in brackets.  Of formats that carry
styles (ASS and SSA, TTML, MicroDVD) only text and times are taken.  Every file is read in
one pass over its characters, so that one of nothing but braces takes no longer than a transcript
of its size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import StringIO
from itertools import zip_longest
from xml.etree.ElementTree import Element, ParseError, iterparse

from stepgraph.errors import DataError, quoted, reason
from stepgraph.ingest.cleaning import Cue

_CLOCK = r"(-?)(?:([0-9]{1,6}):)?([0-9]{1,2}):([0-9]{1,2}(?:[.,][0-9]{1,9})?)"
CLOCK = re.compile(_CLOCK)  # hours if any, minutes and seconds
TIMES = re.compile(rf"\s*{_CLOCK}\s*-->\s*{_CLOCK}(?:\s.*)?")
_LIKE_TIMES = re.compile(r".*-->.*|\s*-?[0-9]+:[0-9]{2}\S*\s*[-–—=]+>?\s*-?[0-9]+:[0-9]{2}.*")
# 0:00:01.500,0:00:04.200
_SBV_TIMES = re.compile(rf"\s*{_CLOCK},\s*{_CLOCK}\s*")
_LIKE_SBV_TIMES = re.compile(r"\s*-?[0-9]+:[0-9]{2}[^\s,]*,\s*-?[0-9]+:.*")
_IS_SBV = re.compile(r"^[0-9]+:[0-9]{2}:[0-9]{2}\.[0-9]+,[0-9]+:[0-9]{2}:[0-9]{2}\.", re.MULTILINE)
_CUT_OFF_TIMES = re.compile(r"[0-9:.,\s>-]*")
_STAMP = re.compile(
    r"\s*[\[(]?(?:([0-9]{1,3}):)?([0-9]{1,3}):([0-9]{2})[\])]?(?:\s*[-–—:])?(?:\s+(.*)|$)"
)
# A copied time brings the text that screen readers have for it: "1 minute, 5 seconds".
_TIME_IN_WORDS = re.compile(r"(?:[0-9]+ (?:hour|minute|second)s?(?:, )?)+")
_STYLE = re.compile(r"\{[^}]*\}")
_DRAWING = re.compile(r"\\p[1-9]")
_LINE_BREAK = re.compile(r"\\[Nn]")
_FRAMES = re.compile(r" *\{ *([0-9]{1,9}) *\} *\{ *([0-9]{0,9}) *\}(.*)")
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_OFFSET = re.compile(rf"({_NUMBER.pattern})(h|ms|m|s|)")
_SPACES = re.compile(r"\s+")
_BREAK = "\0"  # which no XML holds
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "": 1.0, "ms": 0.001}


def is_webvtt(text: str) -> bool:
    """Recognise WebVTT by the word it must begin with."""
    return text.lstrip().startswith("WEBVTT")


def is_sbv(text: str) -> bool:
    """Recognise SBV by its lines of times."""
    return "-->" not in text and bool(_IS_SBV.search(text))


def read_timed_text(text: str, origin: str) -> Iterator[Cue | DataError]:
    """Read all cues; unreadable times, or a last cue without its text, give an error instead."""
    lines = text.split("\n")
    sbv = is_sbv(text)
    times, like_times = (_SBV_TIMES, _LIKE_SBV_TIMES) if sbv else (TIMES, _LIKE_TIMES)
    # In WebVTT a blank line ends a cue, and notes, styles and names follow; in SubRip
    # people do leave blank lines inside a cue, and the text after them belongs to it.
    ends_at_blank = sbv or is_webvtt(text)
    begins = [
        position
        for position, line in enumerate(lines)
        if times.fullmatch(line) or _is_bad(lines, position, like_times)
    ]
    any_times = any(times.fullmatch(lines[position]) for position in begins)
    last = max((position for position, line in enumerate(lines) if line.strip()), default=0)
    for position, following in zip_longest(begins, begins[1:]):
        found = times.fullmatch(lines[position])
        if not found:
            if position >= last:
                yield _cut_off(origin, position + 1)
                return
            # A file without any times may be no transcript, and the error shows nothing of it.
            got = quoted(lines[position].strip(), 60) if any_times else "another line"
            yield DataError(
                f"{origin}:{position + 1}: times must read like 00:01:02,500 --> 00:01:04,000, "
                f"got {got}; correct this line or remove the cue"
            )
            continue
        said = lines[position + 1 : following]
        begun = 0
        if ends_at_blank and "" in said:
            del said[said.index("") :]
        elif following is not None:
            # The number of the next SubRip cue stands directly above its times.
            begun = int(bool(said) and said[-1].strip().isdecimal())
        elif not ends_at_blank:
            begun = _begun(said)
        # An empty cue has a blank line below it.
        cut_off = following is None and lines[position + 1 :] in ([], [""])
        if not cut_off:
            spoken = "\n".join(said[: len(said) - begun])
            place = f"{origin}:{position + 1}"
            yield Cue(seconds(found, 1), seconds(found, 5), spoken, place)
        if cut_off or (following is None and begun):
            yield _cut_off(origin, last + 1)


def seconds(found: re.Match[str], group: int) -> float:
    """The time of a clock whose sign is that group of a match."""
    sign, hours, minutes, seconds = found.group(group, group + 1, group + 2, group + 3)
    total = 3600 * int(hours or 0) + 60 * int(minutes) + float(seconds.replace(",", "."))
    # Rounded because 3600 + 0.1 + ... carries noise that no format can express.
    return round(-total if sign else total, 6)


def _is_bad(lines: list[str], position: int, like_times: re.Pattern[str]) -> bool:
    """Check for a line that stands where times must stand and looks like times, but is not."""
    # Times are short; the pattern would be slow on a line of megabytes.
    if len(lines[position]) > 200 or not like_times.fullmatch(lines[position]):
        return False
    above = lines[position - 1].strip() if position else ""
    return above == "" or above.isdecimal()


def _cut_off(origin: str, number: int) -> DataError:
    return DataError(
        f"{origin}:{number}: must be a whole transcript, got a cue that is cut off at the end of "
        f"the file; fetch or write it again"
    )


def _begun(lines: list[str]) -> int:
    """Count the last lines that are the number of one more cue, and perhaps half its times."""
    blank = 0
    while blank < len(lines) and not lines[-blank - 1].strip():
        blank += 1
    said = lines[: len(lines) - blank]
    for length in (2, 1):
        tail = said[-length:]
        after_blank = len(said) > length and not said[-length - 1].strip()
        if after_blank and tail[0].strip().isdecimal():
            return length + blank if _CUT_OFF_TIMES.fullmatch(tail[-1]) else 0
    return 0


def is_pasted(text: str) -> bool:
    """Check that at least two lines begin with a time; the beginning of a text is enough."""
    return "-->" not in text and sum(1 for line in text.split("\n") if _STAMP.match(line)) > 1


def read_pasted(text: str, origin: str) -> Iterator[Cue]:
    """Read all cues; text above the first time is ignored."""
    lines = text.split("\n")
    stamps = [
        (number, found) for number, line in enumerate(lines) if (found := _STAMP.fullmatch(line))
    ]
    for (number, found), following in zip_longest(stamps, (after for after, _ in stamps[1:])):
        below = [line for line in lines[number + 1 : following] if line.strip()]
        said = [found[4], *below] if found[4] else below
        if len(said) > 1 and _TIME_IN_WORDS.fullmatch(said[0].strip()):
            del said[0]
        hours, minutes, seconds = (int(part or 0) for part in found.groups()[:3])
        start = float(3600 * hours + 60 * minutes + seconds)
        yield Cue(start, None, "\n".join(said), f"{origin}:{number + 1}")


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
    """Text of a field of ASS without its styles, or None for a drawing."""
    before, brace, after = text.rpartition("}")
    styled = before + brace  # every brace in it is closed, so each is looked at once
    if any(map(_DRAWING.search, _STYLE.findall(styled))):
        return None
    return _LINE_BREAK.sub("\n", _STYLE.sub("", styled) + after).replace(r"\h", " ")


def read_microdvd(text: str, origin: str) -> Iterator[Cue]:
    """Read lines of a first frame, a last frame and text; the first line states their rate."""
    rate = 0.0
    for number, line in enumerate(text.split("\n"), 1):
        if not (found := _FRAMES.match(line)):
            continue
        first, last, said = found.groups()
        if rate:
            end = int(last) / rate if last else None
            yield Cue(int(first) / rate, end, said.replace("|", "\n"), f"{origin}:{number}")
            continue
        stated = _NUMBER.fullmatch(said.strip()) if (first, last) == ("1", "1") else None
        rate = float(stated[0]) if stated else 0.0
        if not rate:
            raise DataError(
                f"{origin}: must state its frame rate in its first line, like {{1}}{{1}}25, "
                f"got none; add it, or convert the file to .srt"
            )


def read_ttml(text: str, origin: str) -> Iterator[Cue | DataError]:
    """Read the paragraphs of TTML; times are relative to those of the enclosing elements."""
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
