"""Turn raw cues into sentences in which every spoken word stands once, at one time.

Raw cues are display instructions: they carry markup, show a line again while the next one
grows below it, and overlap.  Nothing here reads files or judges times; that is done before.
Words are never corrected, and what somebody really says twice stays twice.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from stepgraph.core import Sentence

AT_ONCE = 0.1
"""Seconds within which a cue counts as directly following the one before."""

SURE_REPEAT = 3
"""A line of this many words shown again at once is a display effect in any file."""

ROLLING_SHARE = 0.05
"""Share of cues that repeat a line from which on even a one-word repeat is a display effect.

In plain transcripts people stammer across a cue border ("took / took my square") about once
in 15,000 cues (5 of 72,226 in HowTo100M); in rolling or growing ones most cues repeat.
"""

SCREEN_LINES = 20
"""No display shows more lines than this at once, so no more can be shown again."""

SAME_START = 0.001
"""Starts closer than this (seconds, the resolution of the formats) are one start."""

ALONE = 1.0
"""Seconds given to a cue without length that touches no other."""

_LINE_BREAK_TAG = re.compile(r"<br\s*/?>", re.IGNORECASE)
# Only what looks like a tag or a stamp: "if < 5 minutes and > 2" is speech.
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|<[0-9][0-9:.]*>")
_BRACES = re.compile(r"\{[^{}]*\}")
_SQUARE = re.compile(r"\[[^\[\]]*\]")
_ROUND = re.compile(r"\([^()]*\)")
_MARKS = re.compile(r"[♩♪♫♬]|(?<!\S)>>+")
_INVISIBLE = re.compile("[\x00-\x08\x0e-\x1b\x7f\u200b\u200e\u200f\u2060\ufeff\ud800-\udfff]")
# Round brackets also hold asides that are spoken, "(or a phone)"; these are not.
_SOUND = re.compile(
    r"\b(music\w*|applau\w*|laugh\w*|chuckl\w*|cough\w*|sigh\w*|singing|cheer\w*|inaudible"
    r"|unintelligible|silence|beep\w*|mumbl\w*|speaks? in|speaking in)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Spoken:
    """The words of one cue, per displayed line."""

    start: float
    end: float
    lines: tuple[tuple[str, ...], ...]

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(word for line in self.lines for word in line)


def clean(cues: Iterable[Sentence]) -> tuple[Sentence, ...]:
    """Return what was said: no markup, no noise marks, no repeats, no overlap.

    Parameters
    ----------
    cues
        Raw cues with sound times; a line break in a text is a displayed line.

    Returns
    -------
    tuple of Sentence
        In order of start, each ending after it starts and no later than the next starts.

    >>> clean([Sentence(0, 2, "<i>add</i>"), Sentence(2, 4, "add the"), Sentence(4, 5, "[Music]")])
    (Sentence(start=0, end=2, text='add'), Sentence(start=2, end=4, text='the'))
    """
    spoken = [
        _Spoken(cue.start, cue.end, lines)
        for cue in sorted(cues, key=lambda cue: cue.start)
        if (lines := _spoken_lines(cue.text))
    ]
    return tuple(_one_at_a_time(_without_repeats(spoken)))


def _spoken_lines(text: str) -> tuple[tuple[str, ...], ...]:
    text = _TAG.sub("", _LINE_BREAK_TAG.sub("\n", text))
    # Entities come after tags: "&lt;i&gt;" is text that shows angle brackets.
    text = _INVISIBLE.sub("", html.unescape(text))
    for pattern in (_BRACES, _SQUARE, _MARKS):
        text = pattern.sub(_same_breaks, text)
    text = _ROUND.sub(
        lambda found: _same_breaks(found) if _SOUND.search(found[0]) else found[0], text
    )
    lines = (tuple(line.split()) for line in text.split("\n"))
    return tuple(line for line in lines if line)


def _same_breaks(found: re.Match[str]) -> str:
    """Blank a match but keep its line breaks, so the lines around it stay apart."""
    return "\n" * found[0].count("\n") or " "


def _without_repeats(cues: Sequence[_Spoken]) -> list[_Spoken]:
    """Drop from each cue the words that only show a line of the cue before again."""
    if not cues:
        return []
    repeats = [0, *(_repeated(before, cue) for before, cue in pairwise(cues))]
    rolling = sum(count > 0 for count in repeats) >= ROLLING_SHARE * len(cues)
    fresh = []
    for cue, count in zip(cues, repeats, strict=True):
        dropped = count if rolling or count >= SURE_REPEAT else 0
        if words := cue.words[dropped:]:
            fresh.append(replace(cue, lines=(words,)))
    return fresh


def _repeated(before: _Spoken, cue: _Spoken) -> int:
    """Count the first words of ``cue`` that are the last lines of ``before``, longest first."""
    if cue.start > before.end + AT_ONCE:
        return 0
    visible = before.lines[-SCREEN_LINES:]
    words = _comparable(cue.words)
    shown = _comparable(word for line in visible for word in line)
    for line in visible:
        if words[: len(shown)] == shown:
            return len(shown)
        shown = shown[len(line) :]
    return 0


def _comparable(words: Iterable[str]) -> list[str]:
    """Live transcripts recapitalise a line while it grows."""
    return [word.casefold() for word in words]


def _one_at_a_time(cues: Iterable[_Spoken]) -> list[Sentence]:
    """Join what starts together, then end each sentence where the next one starts."""
    groups: list[list[_Spoken]] = []
    end = 0.0
    for cue in cues:
        if groups and _has_no_time_of_its_own(cue, groups[-1][0].start, end):
            groups[-1].append(cue)
            end = max(end, cue.end)
        else:
            groups.append([cue])
            end = cue.end
    borders = [*(group[0].start for group in groups), math.inf]
    return [
        Sentence(start, min(_end_of(group), following), " ".join(_words_of(group)))
        for group, (start, following) in zip(groups, pairwise(borders), strict=True)
    ]


def _has_no_time_of_its_own(cue: _Spoken, start: float, end: float) -> bool:
    """Tell whether a cue must be joined to the sentence that lasts from start to end."""
    without_length = cue.end <= cue.start
    return cue.start - start < SAME_START or (without_length and cue.start <= end + AT_ONCE)


def _end_of(group: Sequence[_Spoken]) -> float:
    end = max(cue.end for cue in group)
    return end if end > group[0].start else group[0].start + ALONE


def _words_of(group: Iterable[_Spoken]) -> Iterator[str]:
    return (word for cue in group for word in cue.words)
