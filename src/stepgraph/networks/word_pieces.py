"""Texts as the numbers of their word pieces, each word looked up once.

A space always ends a word, for the tokenizer of BERT as for everybody, so that the pieces of a
text are those of its words one after the other.  Narration has few different words: nearly all
of them are known after some videos, and looking up is many times faster than cutting up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer

_LONGEST = 256  # pieces of a text; the model was made with no more, what follows is not read
_WORDS = 200_000  # words that are remembered


class WordPieces:
    """Pieces of texts, from the bytes of a ``tokenizer.json`` of BERT's kind.

    Its two marks, which stand before and behind each text, are learned from it.
    """

    def __init__(self, tokenizer: bytes) -> None:
        self._tokenizer = Tokenizer.from_buffer(tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._first, self._last = self._tokenizer.encode("").ids
        self._known: dict[str, tuple[int, ...]] = {"": ()}

    def of(self, texts: Sequence[str]) -> list[list[int]]:
        """Numbers of the pieces of each text with its marks, no more than the model reads."""
        # Half of a pair of surrogates is in no encoding of characters.
        words = [text.encode("utf-8", "replace").decode().split(" ") for text in texts]
        known = self._learn({word for text in words for word in text})
        found = []
        for text in words:
            ids = [self._first]
            for word in text:
                ids += known[word]
            ids[_LONGEST - 1 :] = [self._last]
            found.append(ids)
        return found

    def _learn(self, words: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """Pieces of at least these words."""
        new = [word for word in words if word not in self._known]
        cut = self._tokenizer.encode_batch_fast(new, add_special_tokens=False)
        pieces = {word: tuple(one.ids) for word, one in zip(new, cut, strict=True)}
        if len(self._known) + len(pieces) > _WORDS:
            return self._known | pieces
        self._known.update(pieces)
        return self._known
