"""Detection of speech that is not English, of which the model makes fluent English.

Some pieces are transcribed twice, once a little slower or faster.  The text of English speech
stays nearly the same; invented text changes.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

TOO_MUCH = 0.5
"""Share of changed words above which speech is foreign; ``benchmarks/results/languages.jsonl``."""

_ENOUGH = 25  # minimum number of words for an estimate
_SURE = 0.2  # a smaller share of changed words is English: the rest is transcribed once
_LAST = 31  # number of the last piece that is transcribed twice
_STRETCHES = (0.96, 1.04)  # in turn: text that is stable under one changes under the other
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
WORD = re.compile(r"[^\W\d_]+(?:'\w+)*")


class LanguageCheck:
    """Counts of the words of pieces that are transcribed twice, and of those that change."""

    def __init__(self) -> None:
        self._words = self._changed = self._pieces = 0

    @property
    def share(self) -> float:
        """Share of words that change; 0 if there are too few words for an estimate."""
        if self._words < _ENOUGH:
            return 0.0
        return min(1.0, round(self._changed / self._words, 3))

    def wants(self, number: int) -> bool:
        """Select pieces for a second transcript: 0, 1, 3, 7 ... 31, until English is certain."""
        certain = self._words >= _ENOUGH and self.share < _SURE
        return not certain and number <= _LAST and not number & (number + 1)

    def changed(self, piece: NDArray[np.float32]) -> NDArray[np.float32]:
        """Resample a piece to be a little slower or faster."""
        step = _STRETCHES[self._pieces % len(_STRETCHES)]
        places = np.arange(int(len(piece) / step)) * step
        other: NDArray[np.float32] = np.interp(places, np.arange(len(piece)), piece).astype("f4")
        return other

    def compare(self, first: str, again: str) -> None:
        """Count the words that differ between the transcripts of a piece and its changed form."""
        one, two = _words_of(first), _words_of(again)
        edits = SequenceMatcher(None, one, two, autojunk=False).get_opcodes()
        self._changed += sum(max(b - a, d - c) for kind, a, b, c, d in edits if kind != "equal")
        self._words += max(len(one), len(two))
        self._pieces += 1


def _words_of(text: str) -> list[str]:
    """Words of a text; a repeated sentence, which is typical of invented text, counts once."""
    sentences = dict.fromkeys(SENTENCE_END.split(text.lower()))
    return [word for sentence in sentences for word in WORD.findall(sentence)]
