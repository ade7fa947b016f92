"""Pieces of words put together, against the tokenizer on whole texts."""

import random

import pytest
from tokenizers import Tokenizer

from stepgraph.encoders import text
from stepgraph.networks import word_pieces
from stepgraph.networks.word_pieces import WordPieces

BYTES = (text._find_folder(text.MINILM) / "tokenizer.json").read_bytes()
ODD = [
    "", " ", "  two   spaces ", "tab\there", "line\nbreak", "\u00a0no break", "a\u0301 \u0301b",
    "[CLS] x[SEP]y [MASK] z", "文字 を", "Café naïve", "\u200b\u0000 x", "\x1c\x85 y", "don't 1/2",
    "x" * 900, "whisk the eggs " * 100, "a " * 254, "a " * 255, "🦄 🦄", "\u2028 \u3000 z",
]  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer():
    found = Tokenizer.from_buffer(BYTES)
    found.no_padding()
    found.enable_truncation(256)
    return found


@pytest.mark.parametrize("remembered", [200_000, 10])
def test_pieces_are_those_of_the_tokenizer(tokenizer, remembered, monkeypatch):
    monkeypatch.setattr(word_pieces, "_WORDS", remembered)
    chance = random.Random(0)
    signs = "ab Z\t\n\u00a0\u0301\u200b[]CLSEPMK'-.,é文🦄\x00\x1c"
    drawn = ["".join(chance.choices(signs, k=chance.randrange(30))) for _ in range(2000)]
    texts = [*ODD, *drawn]

    found = WordPieces(BYTES).of(texts)

    assert found == [one.ids for one in tokenizer.encode_batch(texts)]


def test_no_texts_have_no_pieces():
    assert WordPieces(BYTES).of([]) == []
