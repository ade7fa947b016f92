"""Read SubRip, WebVTT and YouTube Studio's SBV, with the damage such files really have.

All are lines of text under a line of times, so one reader serves them.  The general library
used for rarer formats attaches notes, cue names and half-written times to the text of the
cue above them; here such lines are either understood or reported with their number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from stepgraph.errors import DataError
from stepgraph.ingest.cues import Cue

_CLOCK = r"(-?)(?:([0-9]{1,6}):)?([0-9]{1,2}):([0-9]{1,2}(?:[.,][0-9]{1,9})?)"
_TIMES = re.compile(rf"\s*{_CLOCK}\s*-->\s*{_CLOCK}(?:\s.*)?")
_LIKE_TIMES = re.compile(r".*-->.*|\s*-?[0-9]+:[0-9]{2}\S*\s*[-–—=]+>?\s*-?[0-9]+:[0-9]{2}.*")
# 0:00:01.500,0:00:04.200
_SBV_TIMES = re.compile(rf"\s*{_CLOCK},\s*{_CLOCK}\s*")
_LIKE_SBV_TIMES = re.compile(r"\s*-?[0-9]+:[0-9]{2}[^\s,]*,\s*-?[0-9]+:.*")
_IS_SBV = re.compile(r"^[0-9]+:[0-9]{2}:[0-9]{2}\.[0-9]+,[0-9]+:[0-9]{2}:[0-9]{2}\.", re.MULTILINE)
_CUT_OFF_TIMES = re.compile(r"[0-9:.,\s>-]*")


@dataclass
class _Block:
    """A line of times and the lines below it, while they are being read."""

    number: int
    start: float
    end: float
    lines: list[str] = field(default_factory=list)

    def cue(self, origin: str) -> Cue:
        return Cue(self.start, self.end, "\n".join(self.lines), f"{origin}:{self.number}")


def is_webvtt(text: str) -> bool:
    """Tell WebVTT by the word it must begin with."""
    return text.lstrip().startswith("WEBVTT")


def is_sbv(text: str) -> bool:
    """Tell SBV by its lines of times."""
    return "-->" not in text and bool(_IS_SBV.search(text))


def read_timed_text(text: str, origin: str) -> Iterator[Cue | DataError]:
    """Read all cues of such a text; ``origin`` begins each ``place``.

    Unreadable times give an error in place of the cue, and so does a last cue that is cut off
    before its text: what followed it is missing.  A cut inside the last words cannot be told.
    """
    lines = text.split("\n")
    sbv = is_sbv(text)
    times, like_times = (_SBV_TIMES, _LIKE_SBV_TIMES) if sbv else (_TIMES, _LIKE_TIMES)
    # In WebVTT a blank line ends a cue, and notes, styles and names follow; in SubRip
    # people do leave blank lines inside a cue, and what follows them was said.
    ends_at_blank = sbv or is_webvtt(text)
    block: _Block | None = None  # the last one
    inside = False
    for position, line in enumerate(lines):
        bad = False
        if (found := times.fullmatch(line)) or (bad := _is_bad(lines, position, like_times)):
            if block is not None:
                if inside:
                    _drop_number(block.lines)
                yield block.cue(origin)
            block = None
            if found:
                block = _Block(position + 1, _seconds(found, 1), _seconds(found, 5))
            inside = not bad
            if bad:
                yield _refused(lines, position, origin)
        elif ends_at_blank and line == "":
            inside = False
        elif inside and block is not None:
            block.lines.append(line)
    if block is None:
        return
    begun = 0 if ends_at_blank else _begun(block.lines)
    del block.lines[len(block.lines) - begun :]
    ended = lines[block.number :] in ([], [""])  # an empty cue has a blank line below it
    if not ended:
        yield block.cue(origin)
    if ended or begun:
        yield _cut_off(origin, len(text.rstrip().split("\n")))


def _seconds(found: re.Match[str], group: int) -> float:
    sign, hours, minutes, seconds = found.group(group, group + 1, group + 2, group + 3)
    total = 3600 * int(hours or 0) + 60 * int(minutes) + float(seconds.replace(",", "."))
    # Rounded because 3600 + 0.1 + ... carries noise that no format can express.
    return round(-total if sign else total, 6)


def _is_bad(lines: list[str], position: int, like_times: re.Pattern[str]) -> bool:
    """Tell whether a line stands where times must stand, looks like times, and is not."""
    # Times are short; the pattern would be slow on a line of megabytes.
    if len(lines[position]) > 200 or not like_times.fullmatch(lines[position]):
        return False
    above = lines[position - 1].strip() if position else ""
    return above == "" or above.isdecimal()


def _refused(lines: list[str], position: int, origin: str) -> DataError:
    if not any(line.strip() for line in lines[position + 1 :]):
        return _cut_off(origin, position + 1)
    return DataError(
        f"{origin}:{position + 1}: times must read like 00:01:02,500 --> 00:01:04,000, "
        f"got {lines[position].strip()[:60]!r}; correct this line or remove the cue"
    )


def _cut_off(origin: str, number: int) -> DataError:
    return DataError(
        f"{origin}:{number}: must be a whole transcript, got a cue that is cut off at the end of "
        f"the file; fetch or write it again"
    )


def _drop_number(lines: list[str]) -> None:
    """Remove the number of the next SubRip cue, which stands directly above its times."""
    if lines and lines[-1].strip().isdecimal():
        lines.pop()


def _begun(lines: list[str]) -> int:
    """How many of the last lines are the number of one more cue, and perhaps half its times."""
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
