"""Read text pasted from the transcript panel of a video site: a time, and what is said then.

The time stands above the words or before them, alone or in brackets::

    0:05                        [0:05] hello and welcome
    hello and welcome           [0:09] today we bake
"""

from __future__ import annotations

import re

from stepgraph.ingest.cues import Cue

_CLOCK = r"(?:([0-9]{1,3}):)?([0-9]{1,3}):([0-9]{2})"
_STAMP = re.compile(rf"\s*[\[(]?{_CLOCK}[\])]?(?:\s*[-–—:])?(?:\s+(.*)|$)")
# What screen readers say for a time is copied with it: "1 minute, 5 seconds".
_TIME_IN_WORDS = re.compile(r"(?:[0-9]+ (?:hour|minute|second)s?(?:, )?)+")


def is_pasted(text: str) -> bool:
    """Tell whether at least two lines begin with a time; of a text its beginning is enough."""
    return "-->" not in text and sum(1 for line in text.split("\n") if _STAMP.match(line)) > 1


def read_pasted(text: str, origin: str) -> list[Cue]:
    """Read all cues; what stands above the first time is no part of any."""
    cues: list[Cue] = []
    said: list[list[str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if found := _STAMP.fullmatch(line):
            hours, minutes, seconds = (int(part or 0) for part in found.groups()[:3])
            start = float(3600 * hours + 60 * minutes + seconds)
            cues.append(Cue(start, None, "", f"{origin}:{number}"))
            said.append([found[4]] if found[4] else [])
        elif said and line.strip():
            said[-1].append(line)
    return [
        cue._replace(text="\n".join(_words(lines))) for cue, lines in zip(cues, said, strict=True)
    ]


def _words(lines: list[str]) -> list[str]:
    in_words = len(lines) > 1 and _TIME_IN_WORDS.fullmatch(lines[0].strip())
    return lines[1:] if in_words else lines
