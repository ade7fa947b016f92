"""Tokenisation of texts into ids of word pieces, with a cache of words.

BERT's tokenizer always ends a word at a space, so that the pieces of a text are those of its
words one after the other.  Narration has few different words: after some videos nearly all are
in the cache, and a lookup is many times faster than tokenising.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer

_LONGEST = 256  # pieces of a text that the model was made for; the rest is cut off
_WORDS = 200_000  # words in the cache


class WordPieces:
    """Tokenizer with a cache, from the bytes of a ``tokenizer.json`` of BERT's kind.

    The two marks before and behind each text are read from it.
    """

    def __init__(self, tokenizer: bytes) -> None:
        self._tokenizer = Tokenizer.from_buffer(tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._first, self._last = self._tokenizer.encode("").ids
        self._pieces_of: dict[str, tuple[int, ...]] = {"": ()}

    def of(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text with its marks, at most as many as the model takes."""
        # Half of a pair of surrogates is in no encoding of characters.
        words = [text.encode("utf-8", "replace").decode().split(" ") for text in texts]
        pieces_of = self._learn({word for text in words for word in text})
        found = []
        for text in words:
            ids = [self._first]
            for word in text:
                ids += pieces_of[word]
            ids[_LONGEST - 1 :] = [self._last]
            found.append(ids)
        return found

    def _learn(self, words: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """Return the pieces of these words, with those of all cached words."""
        new = [word for word in words if word not in self._pieces_of]
        cut = self._tokenizer.encode_batch_fast(new, add_special_tokens=False)
        pieces = {word: tuple(one.ids) for word, one in zip(new, cut, strict=True)}
        if len(self._pieces_of) + len(pieces) > _WORDS:
            return self._pieces_of | pieces
        self._pieces_of.update(pieces)
        return self._pieces_of
