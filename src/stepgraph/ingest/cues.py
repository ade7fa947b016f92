"""A raw cue as a file gives it, and the check that its times can be trusted.

Readers make cues, and an error for each that they cannot read; :func:`checked` turns them into
sentences whose times are sound, and :mod:`stepgraph.ingest.cleaning` works on those.  A bad cue
is left out with its reason, and costs no other.  No text is changed here.
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from stepgraph.core import LONGEST, Sentence
from stepgraph.errors import DataError
from stepgraph.problems import Problems

BACKWARDS_LIMIT = 1.0
"""How far (seconds) a cue may start before one that stands above it in the file.

Speakers who interrupt each other may be listed slightly out of order; more is a wrong time.
"""

OUT_OF_PLACE_SHARE = 0.1
"""Share of cues out of place from which on a file is refused: it is two transcripts in one."""

LONGEST_TEXT = 100_000
"""Characters of one cue: two hours of speech.  More is no transcript, and slow to clean."""

LAST_SECONDS = 5.0  # given to a cue that does not say when it ends, if no other follows
_Item = TypeVar("_Item")


class Cue(NamedTuple):
    """One entry of a transcript file, as it stands there; ``place`` begins errors about it.

    An ``end`` of None is where the next cue starts.
    """

    start: float
    end: float | None
    text: str
    place: str


def read_each(
    items: Iterable[_Item], read: Callable[[_Item, str], Cue | None], origin: str
) -> Iterator[Cue | DataError]:
    """Read numbered entries one by one; one that cannot be read gives its error."""
    for number, item in enumerate(items, 1):
        try:
            cue = read(item, f"{origin}: cue {number}")
        except DataError as error:
            yield error
        else:
            if cue is not None:
                yield cue


def checked(
    found: Iterable[Cue | DataError],
    origin: str,
    problems: Problems | None = None,
    *,
    in_order: bool = True,
) -> list[Sentence]:
    """Return the usable cues in order of start; it is an error if none is.

    Each that is left out is noted in ``problems``; if these are not given, a warning says so.
    ``in_order`` is False for formats whose entries may stand in any order.
    """
    cues, errors = [], []
    for one in found:
        mistake = one if isinstance(one, DataError) else _mistake(one)
        if mistake is not None:
            errors.append(mistake)
        elif isinstance(one, Cue):
            cues.append(one)
    if in_order:
        cues, misplaced = _in_order(cues)
        errors += misplaced
    if errors and not cues:
        raise errors[0]
    noted = Problems() if problems is None else problems
    for error in errors:
        noted.add_error(error, "unreadable cue", origin)
    if noted and problems is None:
        warnings.warn(f"left out: {noted.summary()}", stacklevel=4)
    # Stable, so cues that start together stay in the order of the file.
    ordered = sorted(cues, key=lambda cue: cue.start)
    starts = [cue.start for cue in ordered]

    def end_of(cue: Cue) -> float:
        if cue.end is not None:
            return cue.end
        following = bisect_right(starts, cue.start)
        last = min(cue.start + LAST_SECONDS, LONGEST)
        return starts[following] if following < len(starts) else last

    return [Sentence(cue.start, end_of(cue), cue.text) for cue in ordered]


def _mistake(cue: Cue) -> DataError | None:
    """What is wrong with a cue by itself."""
    if len(cue.text) > LONGEST_TEXT:
        return DataError(
            f"{cue.place}: a cue must have at most {LONGEST_TEXT:,} characters, got "
            f"{len(cue.text):,}; is it a transcript at all?"
        )
    end = cue.start if cue.end is None else cue.end
    for name, time in (("start", cue.start), ("end", end)):
        rule = ""
        if not math.isfinite(time):
            rule = f"a finite number of seconds, got {time}; correct or remove this cue"
        elif time < 0:
            rule = f"at least 0, got {time}; was the transcript shifted?"
        elif time > LONGEST:
            rule = f"at most {LONGEST:.0f} seconds (a week), got {time}; is it in milliseconds?"
        if rule:
            return DataError(f"{cue.place}: {name} must be {rule}")
    if end < cue.start:
        return DataError(
            f"{cue.place}: end must not be before start, got start {cue.start} and end {end}; "
            f"correct or remove this cue"
        )
    return None


def _in_order(cues: list[Cue]) -> tuple[list[Cue], list[DataError]]:
    """Split off the cues whose start does not fit to those around them."""
    misplaced: dict[int, DataError] = {}  # by position
    rising: list[int] = []  # positions of those that start later than all before them
    for position, cue in enumerate(cues):
        if rising and cue.start < (latest := cues[rising[-1]]).start - BACKWARDS_LIMIT:
            # Either this one is wrong or the latest one; the one before that tells.
            if len(rising) > 1 and cue.start < cues[rising[-2]].start - BACKWARDS_LIMIT:
                misplaced[position] = _misplaced(cue, "back", f"after {latest.start}")
                continue
            misplaced[rising.pop()] = _misplaced(latest, "on", f"before {cue.start}")
        if not rising or cue.start > cues[rising[-1]].start:
            rising.append(position)
    if len(misplaced) > max(1, OUT_OF_PLACE_SHARE * len(cues)):
        raise DataError(
            f"{next(iter(misplaced.values()))}; as {len(misplaced)} of {len(cues)} cues are out "
            f"of place, two transcripts may have been joined: split them"
        )
    kept = [cue for position, cue in enumerate(cues) if position not in misplaced]
    return kept, list(misplaced.values())


def _misplaced(cue: Cue, how: str, others: str) -> DataError:
    return DataError(
        f"{cue.place}: start must not jump {how} by more than {BACKWARDS_LIMIT} s, got "
        f"{cue.start} {others}; correct or remove this cue"
    )
