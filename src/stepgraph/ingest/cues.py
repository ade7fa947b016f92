"""A raw cue as a file gives it, and the check that its times can be trusted.

Readers make cues, :func:`checked` turns them into sentences whose times are sound, and
:mod:`stepgraph.ingest.cleaning` works on those.  No text is changed here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from stepgraph.core import LONGEST, Sentence
from stepgraph.errors import DataError

BACKWARDS_LIMIT = 1.0
"""How far (seconds) a cue may start before one that stands above it in the file.

None of the 98,952 cues of 1,120 CrossTask and HowTo100M narrations starts before its
predecessor, so this repairs nothing that is usual.  Files made by hand or by a recogniser
list speakers who interrupt each other slightly out of order; that is less than one row, and
sorting mends it.  More means damaged times or two transcripts in one file, which sorting
would silently shuffle together.
"""


LONGEST_TEXT = 100_000
"""Characters of one cue: two hours of speech.  More is no transcript, and slow to clean."""


class Cue(NamedTuple):
    """One entry of a transcript file; ``text`` keeps its line breaks and markup.

    ``place`` begins every error about it: ``talk.srt:7`` or ``talk.json: cue 3``.
    """

    start: float
    end: float
    text: str
    place: str


def checked(cues: Sequence[Cue], *, in_order: bool = True) -> list[Sentence]:
    """Return the cues in order of start, or say which one has impossible times.

    Parameters
    ----------
    in_order
        False for formats whose entries may stand in any order.
    """
    latest = 0.0
    for cue in cues:
        _check_alone(cue)
        if in_order and cue.start < latest - BACKWARDS_LIMIT:
            raise DataError(
                f"{cue.place}: start must not run backwards by more than {BACKWARDS_LIMIT} s, "
                f"got {cue.start} after {latest}; if two transcripts were joined, split them"
            )
        latest = max(latest, cue.start)
    # Stable, so cues that start together stay in the order of the file.
    ordered = sorted(cues, key=lambda cue: cue.start)
    return [Sentence(cue.start, cue.end, cue.text) for cue in ordered]


def _check_alone(cue: Cue) -> None:
    if len(cue.text) > LONGEST_TEXT:
        raise DataError(
            f"{cue.place}: a cue must have at most {LONGEST_TEXT:,} characters, got "
            f"{len(cue.text):,}; is it a transcript at all?"
        )
    for name, time in (("start", cue.start), ("end", cue.end)):
        if not math.isfinite(time):
            raise DataError(
                f"{cue.place}: {name} must be a finite number of seconds, got {time}; "
                f"correct or remove this cue"
            )
        if time < 0:
            raise DataError(
                f"{cue.place}: {name} must be at least 0, got {time}; was the transcript shifted?"
            )
        if time > LONGEST:
            raise DataError(
                f"{cue.place}: {name} must be at most {LONGEST:.0f} seconds (a week), got {time}; "
                f"is it in milliseconds?"
            )
    if cue.end < cue.start:
        raise DataError(
            f"{cue.place}: end must not be before start, got start {cue.start} and end {cue.end}; "
            f"correct or remove this cue"
        )
