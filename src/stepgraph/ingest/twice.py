"""Tell from words whether they were said: of other languages the model makes fluent English.

Some pieces are heard twice, once a little slower or faster.  What is said in English comes out
nearly the same; what is invented comes out as something else.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

TOO_MUCH = 0.5
"""More changed words than this are no English; ``benchmarks/results/languages.jsonl``."""

_ENOUGH = 25  # words that tell
_SURE = 0.2  # so few changed words are English: the rest of a file is heard once
_LAST = 31  # the last piece that is heard twice
_STRETCHES = (0.96, 1.04)  # in turn: what stays the same under one changes under the other
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
WORD = re.compile(r"[^\W\d_]+(?:'\w+)*")


class Twice:
    """Counts the words of pieces that are heard twice, and those of them that change."""

    def __init__(self) -> None:
        self._words = self._changed = self._pieces = 0

    @property
    def share(self) -> float:
        """Share of words that change, 0 where there are too few to tell."""
        if self._words < _ENOUGH:
            return 0.0
        return min(1.0, round(self._changed / self._words, 3))

    def wants(self, number: int) -> bool:
        """Whether to hear a piece again: the first ones and ever fewer, until it is clear."""
        clear = self._words >= _ENOUGH and self.share < _SURE
        return not clear and number <= _LAST and not number & (number + 1)

    def changed(self, piece: NDArray[np.float32]) -> NDArray[np.float32]:
        """The piece a little slower or faster."""
        step = _STRETCHES[self._pieces % len(_STRETCHES)]
        places = np.arange(int(len(piece) / step)) * step
        other: NDArray[np.float32] = np.interp(places, np.arange(len(piece)), piece).astype("f4")
        return other

    def compare(self, first: str, again: str) -> None:
        """Count what was heard in a piece and in its changed form."""
        one, two = _words_of(first), _words_of(again)
        edits = SequenceMatcher(None, one, two, autojunk=False).get_opcodes()
        self._changed += sum(max(b - a, d - c) for kind, a, b, c, d in edits if kind != "equal")
        self._words += max(len(one), len(two))
        self._pieces += 1


def _words_of(text: str) -> list[str]:
    """Its words; a sentence that comes again, as inventions do, counts once."""
    sentences = dict.fromkeys(SENTENCE_END.split(text.lower()))
    return [word for sentence in sentences for word in WORD.findall(sentence)]
