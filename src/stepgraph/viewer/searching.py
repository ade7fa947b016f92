"""Search in results: moments that mean what was asked, hold its words, and show such a keystep."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepgraph.decoders import DEFAULT_DECODER, encoder_for
from stepgraph.encoders.text import TextEncoder
from stepgraph.errors import ConfigError
from stepgraph.graph.compiling import compiled
from stepgraph.problems import Problems
from stepgraph.viewer.index import open_files

_BLOCK = 64  # sentences of which only the best is compared at first
_CANDIDATES = 1000  # sentences that are looked at exactly


@dataclass(frozen=True)
class Moment:
    """A place in a video that answers a question.

    Attributes
    ----------
    text
        What is said there.
    keystep
        What is done there, where that was recognised, with the times of its chapter.
    score
        How well it answers: the mean of what the sentence and the keystep have in common with
        the question, each at most 1.
    """

    video: str
    start: float
    end: float
    text: str
    score: float
    keystep: str | None = None
    chapter: tuple[float, float] | None = None


class Index:
    """The index of a folder of results, made where there is none, and brought up to date."""

    def __init__(self, folder: Path | str, problems: Problems | None = None) -> None:
        # As the recogniser hears, so that everything is in the cache.
        self._encoder = TextEncoder(encoder_for(DEFAULT_DECODER))
        self._folder, self._problems = Path(folder), problems
        self._open()

    def _open(self, *, anew: bool = False) -> None:
        self._files = open_files(self._folder, self._encoder, self._problems, anew=anew)
        self._keysteps = self._encoder.encode_texts(self._files.keysteps)

    def __len__(self) -> int:
        return len(self._files.rows)

    def search(self, question: str, most: int = 10) -> list[Moment]:
        """The best moments, the very best first; of a chapter only its best."""
        if not question.strip():
            raise ConfigError("question must have words, got none; say what to look for")
        if most < 1:
            raise ConfigError(f"top must be at least 1, got {most}")
        if not len(self):
            return []
        asked = self._encoder.encode_question(question)
        try:
            return self._find(question, asked, most)
        except (sqlite3.Error, LookupError, TypeError, ValueError):  # its files are damaged
            self._open(anew=True)
            return self._find(question, asked, most)

    def _find(self, question: str, asked: NDArray[np.float32], most: int) -> list[Moment]:
        files = self._files
        near = nearest(files.coarse, asked @ files.directions, _CANDIDATES)
        rows = np.union1d(near, np.array(files.containing(question, _CANDIDATES), np.int64))
        said = np.asarray(files.vectors[rows], np.float32) @ asked
        keysteps = files.rows["keystep"][rows]
        # Where nothing is done, -1, there is nothing that could answer.
        done = np.append(self._keysteps @ asked if len(self._keysteps) else [], 0.0)[keysteps]
        score = (said + done) / 2
        videos = np.searchsorted(files.firsts, rows, side="right") - 1
        best: dict[tuple[int, float], int] = {}
        for at in np.argsort(-score, kind="stable"):
            row = files.rows[rows[at]]
            # Outside of chapters a moment is a sentence.
            key = (int(videos[at]), float(row["from"] if row["keystep"] >= 0 else -row["end"]))
            if best.setdefault(key, int(at)) == at and len(best) == most:
                break
        texts = files.texts(rows[list(best.values())].tolist())
        return [
            self._moment(int(rows[at]), video, float(score[at]), texts)
            for (video, _), at in best.items()
        ]

    def _moment(self, row: int, video: int, score: float, texts: dict[int, str]) -> Moment:
        files, found = self._files, self._files.rows[row]
        keystep = int(found["keystep"])
        return Moment(
            files.places[video].video,
            round(float(found["start"]), 3),
            round(float(found["end"]), 3),
            texts[row],
            round(float(score), 4),
            files.keysteps[keystep] if keystep >= 0 else None,
            (float(found["from"]), float(found["to"])) if keystep >= 0 else None,
        )


def nearest(coarse: NDArray[np.int8], asked: NDArray[np.float32], most: int) -> NDArray[np.int64]:
    """Rows with the greatest products with what was asked, so many or a few more, unordered.

    Only the best of each block of rows is kept at first, so that nothing as long as the index is
    sorted; the rows with the greatest products are in the blocks with the greatest ones.
    """
    if len(coarse) <= most:
        return np.arange(len(coarse))
    query = np.rint(asked * (32_000 / max(1e-9, float(np.abs(asked).max())))).astype(np.int16)
    blocks = compiled(_best_of_blocks)(coarse, query, _BLOCK)
    kept = min(most, len(blocks))
    chosen = np.argpartition(-blocks, kept - 1)[:kept]
    rows = (chosen[:, None] * _BLOCK + np.arange(_BLOCK)).ravel()
    rows = rows[rows < len(coarse)]
    products = coarse[rows].astype(np.int64) @ query.astype(np.int64)
    return rows[np.argpartition(-products, most - 1)[:most]]


def _best_of_blocks(
    coarse: NDArray[np.int8], query: NDArray[np.int16], block: int
) -> NDArray[np.int64]:
    """The greatest product of each block of rows."""
    count, size = coarse.shape
    best = np.zeros((count + block - 1) // block, np.int64)
    for number in range(len(best)):
        greatest = -(1 << 62)
        for row in range(number * block, min(count, (number + 1) * block)):
            product = np.int32(0)  # 64 products of a byte and 32,000 are less than it can hold
            for at in range(size):
                product += np.int32(coarse[row, at]) * np.int32(query[at])
            greatest = max(greatest, int(product))
        best[number] = greatest
    return best
