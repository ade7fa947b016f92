"""Read SubRip and WebVTT, with the damage such files really have.

Both are lines of text under a line of times, so one reader serves both.  The general library
used for rarer formats attaches notes, cue names and half-written times to the text of the
cue above them; here such lines are either understood or reported with their number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from stepgraph.errors import DataError
from stepgraph.ingest.cues import Cue

_CLOCK = r"(-?)(?:([0-9]{1,6}):)?([0-9]{1,2}):([0-9]{1,2}(?:[.,][0-9]{1,9})?)"
_TIMES = re.compile(rf"\s*{_CLOCK}\s*-->\s*{_CLOCK}(?:\s.*)?")
_LIKE_TIMES = re.compile(r".*-->.*|\s*-?[0-9]+:[0-9]{2}\S*\s*[-–—=]+>?\s*-?[0-9]+:[0-9]{2}.*")
_CUT_OFF_TIMES = re.compile(r"[0-9:.,\s>-]*")


@dataclass
class _Block:
    """A line of times and the lines below it, while they are being read."""

    number: int
    start: float
    end: float
    lines: list[str] = field(default_factory=list)


def is_webvtt(text: str) -> bool:
    """Tell WebVTT by the word it must begin with."""
    return text.lstrip().startswith("WEBVTT")


def read_timed_text(text: str, source: str) -> list[Cue]:
    """Read all cues of a SubRip or WebVTT text; ``source`` begins each ``place``.

    Unreadable times are an error, and so is a last cue that is cut off before its text: what
    followed it is missing.  A cut inside the last words cannot be told.
    """
    lines = text.split("\n")
    # In WebVTT a blank line ends a cue, and notes, styles and names follow; in SubRip
    # people do leave blank lines inside a cue, and what follows them was said.
    ends_at_blank = is_webvtt(text)
    blocks: list[_Block] = []
    inside = False
    for position, line in enumerate(lines):
        if found := _TIMES.fullmatch(line):
            if inside:
                _drop_number(blocks[-1].lines)
            blocks.append(_Block(position + 1, _seconds(found, 1), _seconds(found, 5)))
            inside = True
        elif _is_unreadable(lines, position):
            _refuse(lines, position, source)
        elif ends_at_blank and line == "":
            inside = False
        elif inside:
            blocks[-1].lines.append(line)
    if blocks and (
        _ends_with(blocks[-1], lines) or (not ends_at_blank and _begins_another(blocks))
    ):
        raise DataError(_cut_off(source, len(text.rstrip().split("\n"))))
    return [
        Cue(block.start, block.end, "\n".join(block.lines), f"{source}:{block.number}")
        for block in blocks
    ]


def _seconds(found: re.Match[str], group: int) -> float:
    sign, hours, minutes, seconds = found.group(group, group + 1, group + 2, group + 3)
    total = 3600 * int(hours or 0) + 60 * int(minutes) + float(seconds.replace(",", "."))
    # Rounded because 3600 + 0.1 + ... carries noise that no format can express.
    return round(-total if sign else total, 6)


def _is_unreadable(lines: list[str], position: int) -> bool:
    """Tell whether a line stands where times must stand, looks like times, and is not."""
    # Times are short; the pattern would be slow on a line of megabytes.
    if len(lines[position]) > 200 or not _LIKE_TIMES.fullmatch(lines[position]):
        return False
    above = lines[position - 1].strip() if position else ""
    return above == "" or above.isdecimal()


def _refuse(lines: list[str], position: int, source: str) -> None:
    if not any(line.strip() for line in lines[position + 1 :]):
        raise DataError(_cut_off(source, position + 1))
    raise DataError(
        f"{source}:{position + 1}: times must read like 00:01:02,500 --> 00:01:04,000, "
        f"got {lines[position].strip()[:60]!r}; correct this line or remove the cue"
    )


def _cut_off(source: str, number: int) -> str:
    return (
        f"{source}:{number}: must be a whole transcript, got a cue that is cut off at the end of "
        f"the file; fetch or write it again"
    )


def _drop_number(lines: list[str]) -> None:
    """Remove the number of the next SubRip cue, which stands directly above its times."""
    if lines and lines[-1].strip().isdecimal():
        lines.pop()


def _ends_with(block: _Block, lines: list[str]) -> bool:
    """Tell whether a file ends with the line of times; an empty cue has a blank line below it."""
    return lines[block.number :] in ([], [""])


def _begins_another(blocks: list[_Block]) -> bool:
    """Tell whether the last lines of a file are the number of one more cue, or half its times."""
    lines = list(blocks[-1].lines)
    while lines and not lines[-1].strip():
        lines.pop()
    for length in (2, 1):
        tail = lines[-length:]
        after_blank = len(lines) > length and not lines[-length - 1].strip()
        if after_blank and tail[0].strip().isdecimal():
            return bool(_CUT_OFF_TIMES.fullmatch(tail[-1]))
    return False
