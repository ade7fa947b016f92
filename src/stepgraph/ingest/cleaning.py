"""Turn raw cues into sentences in which every spoken word stands once, at one time.

Readers make cues, and an error for each that they cannot read; :func:`checked` turns them into
sentences whose times are valid; a bad cue is left out with its reason.  The others are display
instructions: they carry markup, show a line again while the next one grows below it, and overlap.
:func:`clean` takes all that away.  Words are never corrected, and what somebody really says twice
stays twice.
"""

from __future__ import annotations

import html
import math
import re
import string
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import compress, pairwise, repeat
from operator import le, lt, sub
from typing import Any, NamedTuple, TypeVar

from stepgraph.core import LONGEST, Sentence
from stepgraph.errors import DataError
from stepgraph.problems import Problems

BACKWARDS_LIMIT = 1.0
"""Seconds by which a cue may start before one that stands above it in the file.

Speakers who interrupt each other may be listed slightly out of order; more is a wrong time.
"""

OUT_OF_PLACE_SHARE = 0.1
"""Share of cues out of place from which on a file is refused: it is two transcripts in one."""

LONGEST_TEXT = 100_000
"""Characters of one cue: two hours of speech.  More is no transcript, and slow to clean."""

LAST_SECONDS = 5.0  # given to a cue that does not say when it ends, if no other follows
_Item = TypeVar("_Item")
AT_ONCE = 0.1  # seconds within which a cue counts as directly following the one before
SURE_REPEAT = 3  # a line of this many words shown again at once is a display effect in any file
ROLLING_SHARE = 0.05
"""Share of cues that repeat a line from which on even a one-word repeat is a display effect.

In plain transcripts people stammer across a cue border 5 times in 72,226 cues (HowTo100M).
"""

SCREEN_LINES = 20  # no display shows more lines than this at once, so no more can be shown again
SAME_START = 0.001
"""Starts closer than this (seconds, the resolution of the formats) are one start."""

ALONE = 1.0  # seconds given to a cue without length that touches no other
_LINE_BREAK_TAG = re.compile(r"<br\s*/?>", re.IGNORECASE)
# Only what looks like a tag or a stamp: "if < 5 minutes and > 2" is speech.
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|<[0-9][0-9:.]*>")
_BRACES = re.compile(r"\{[^{}]*\}")
_SQUARE = re.compile(r"\[[^\[\]]*\]")
_ROUND = re.compile(r"\([^()]*\)")
_MARKS = re.compile(r"[♩♪♫♬]|(?<!\S)>>+")
_NO_CHARACTER = re.compile("&#[0-9]{8,};?")
_INVISIBLE = re.compile("[\x00-\x08\x0e-\x1b\x7f\u200b\u200e\u200f\u2060\ufeff\ud800-\udfff]")
# Round brackets also hold asides that are spoken, "(or a phone)"; these are not.
_SOUND = re.compile(
    r"\b(music\w*|applau\w*|laugh\w*|chuckl\w*|cough\w*|sigh\w*|singing|cheer\w*|inaudible"
    r"|unintelligible|silence|beep\w*|mumbl\w*|speaks? in|speaking in)\b",
    re.IGNORECASE,
)

# ASCII that cleaning never touches, whatever stands around it; spaces only between words.
_PLAIN = f"{string.ascii_letters}{string.digits} !\"#$%')*+,-./:;=?@\\]^_`|}}~".encode()


class Cue(NamedTuple):
    """One entry of a transcript file, as it stands there; ``place`` begins errors about it.

    An ``end`` of None means the start of the next cue.
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

    Each that is left out is added to ``problems``; if these are not given, a warning reports it.
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
    """Return the error of a cue by itself, or None."""
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
            # Either this one is wrong or the latest one; the one before that decides.
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


class _Spoken(NamedTuple):
    """The words of one cue, per displayed line."""

    start: float
    end: float
    lines: tuple[tuple[str, ...], ...]

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(word for line in self.lines for word in line)


def clean(cues: Iterable[Sentence]) -> tuple[Sentence, ...]:
    """Return the spoken sentences: no markup, no noise marks, no repeats, no overlap.

    The cues are raw but for their times; a line break in a text is a displayed line.  Sentences
    come in order of start, each ending after it starts and no later than the next one starts.

    >>> clean([Sentence(0, 2, "<i>boil the water</i>"), Sentence(2, 4, "boil the water first")])
    (Sentence(start=0, end=2, text='boil the water'), Sentence(start=2, end=4, text='first'))
    """
    spoken = [
        _Spoken(cue.start, cue.end, lines)
        for cue in sorted(cues, key=lambda cue: cue.start)
        if (lines := _spoken_lines(cue.text))
    ]
    return tuple(_one_at_a_time(_without_repeats(spoken)))


def clean_lists(starts: Any, ends: Any, texts: Any) -> tuple[Sentence, ...] | None:
    """Check and clean all cues at once, if none is unusual; return None if one is.

    Nearly all transcripts of HowTo100M are numbers in order of time and single lines of text, and
    few carry marks.  For those the result is that of :func:`checked` and :func:`clean`, in
    much less time.  Times, types or repeats that need these functions give None.
    """
    starts, ends = _as_floats(starts), _as_floats(ends)
    if type(texts) is not list or not len(texts) == len(starts) == len(ends) > 0:
        return None
    said = _single_lines(texts) if _are_plain_times(starts, ends) else None
    if said is None:
        return None
    if "" in said:
        starts, ends = list(compress(starts, said)), list(compress(ends, said))
        said = list(filter(None, said))
    folded = list(map(str.casefold, said))
    if any(map(str.startswith, folded[1:], folded)):  # a line that may be shown again
        return None
    borders = starts[1:]
    if not all(map(le, ends, borders)):
        ends = [*map(min, ends, borders), ends[-1]]
    # As the constructor does, in half the time; HowTo100M has a hundred million sentences.
    return tuple(map(tuple.__new__, repeat(Sentence), zip(starts, ends, said, strict=True)))


def _as_floats(times: Any) -> list[float]:
    """Convert times to floats; an empty list if they are not all numbers."""
    types = set(map(type, times)) if type(times) is list else set()
    if types == {float}:
        return times  # type: ignore[no-any-return]
    try:
        return list(map(float, times)) if types and types <= {int, float} else []
    except OverflowError:
        return []


def _are_plain_times(starts: list[float], ends: list[float]) -> bool:
    """Check that cues end after they start, within a week, and that their starts increase."""
    return (
        # Nothing compares to NaN, so it stops here.
        all(map(lt, starts, ends))
        and starts[0] >= 0
        and max(ends) <= LONGEST
        and min(map(sub, starts[1:], starts), default=SAME_START) >= SAME_START
    )


def _single_lines(texts: list[Any]) -> list[str] | None:
    """Clean the texts that need it; None if one is no text or shows several lines."""
    if set(map(type, texts)) != {str}:
        return None
    said: list[str] = list(texts)
    for position, text in enumerate(said):
        # Between single spaces, one too many makes two, and so does an empty text.
        if "  " in f" {text} " or text.encode(errors="surrogatepass").translate(None, _PLAIN):
            lines = _lines_of_mark(text)
            if len(lines) > 1:
                return None
            said[position] = " ".join(lines[0]) if lines else ""
    return said


def _spoken_lines(text: str) -> tuple[tuple[str, ...], ...]:
    text = _TAG.sub("", _LINE_BREAK_TAG.sub("\n", text))
    # Entities come after tags: "&lt;i&gt;" is text that shows angle brackets.
    text = _INVISIBLE.sub("", unescaped(text))
    for pattern in (_BRACES, _SQUARE, _MARKS):
        text = pattern.sub(_same_breaks, text)
    text = _ROUND.sub(
        lambda found: _same_breaks(found) if _SOUND.search(found[0]) else found[0], text
    )
    lines = (tuple(line.split()) for line in text.split("\n"))
    return tuple(line for line in lines if line)


# Most texts that need cleaning are one of a few marks, such as [Music].
_lines_of_mark = lru_cache(maxsize=64)(_spoken_lines)


def unescaped(text: str) -> str:
    """Replace entities by their characters; numbers of 8 digits or more become U+FFFD."""
    return html.unescape(_NO_CHARACTER.sub("\ufffd", text))


def _same_breaks(found: re.Match[str]) -> str:
    """Blank a match but keep its line breaks, so the lines around it stay apart."""
    return "\n" * found[0].count("\n") or " "


def _without_repeats(cues: Sequence[_Spoken]) -> list[Sentence]:
    """Drop from each cue the words that only show a line of the cue before again."""
    if not cues:
        return []
    repeats = [0, *(_repeated(before, cue) for before, cue in pairwise(cues))]
    repeated = sum(count > 0 for count in repeats)
    rolling = repeated >= max(2, ROLLING_SHARE * len(cues))
    fresh = []
    for cue, count in zip(cues, repeats, strict=True):
        dropped = count if rolling or count >= SURE_REPEAT else 0
        if words := cue.words[dropped:]:
            fresh.append(Sentence(cue.start, cue.end, " ".join(words)))
    return fresh


def _repeated(before: _Spoken, cue: _Spoken) -> int:
    """Count the first words of ``cue`` that are the last lines of ``before``, longest first."""
    if cue.start > before.end + AT_ONCE:
        return 0
    visible = before.lines[-SCREEN_LINES:]
    # Live transcripts recapitalise a line while it grows.
    words = [word.casefold() for word in cue.words]
    shown = [word.casefold() for line in visible for word in line]
    for line in visible:
        if words[: len(shown)] == shown:
            return len(shown)
        shown = shown[len(line) :]
    return 0


def _one_at_a_time(cues: Iterable[Sentence]) -> Iterator[Sentence]:
    """Join cues that start together, then end each sentence where the next one starts."""
    groups: list[list[Sentence]] = []
    end = 0.0
    for cue in cues:
        together = groups and cue.start - groups[-1][0].start < SAME_START
        without_length = cue.end <= cue.start and cue.start <= end + AT_ONCE
        if together or (groups and without_length):
            groups[-1].append(cue)
            end = max(end, cue.end)
        else:
            groups.append([cue])
            end = cue.end
    borders = [*(group[0].start for group in groups), math.inf]
    for group, (start, following) in zip(groups, pairwise(borders), strict=True):
        end = max(cue.end for cue in group)
        end = end if end > start else start + ALONE
        yield Sentence(start, min(end, following), " ".join(cue.text for cue in group))
