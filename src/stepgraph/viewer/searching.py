"""Search in results by the similarity of sentences and keysteps to a question, and by words."""

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

_BLOCK = 64  # sentences of a block, compared by its best one at first
_CANDIDATES = 1000  # sentences whose exact score is computed


@dataclass(frozen=True)
class SearchHit:
    """Sentence of a video that matches a question.

    Attributes
    ----------
    text
        Text of the sentence.
    keystep
        Keystep that was recognised there, if any; ``chapter`` is its start and end in seconds.
    score
        Mean of the similarities of the question to the sentence and to the keystep; the
        latter is 0 without a keystep.
    """

    video: str
    start: float
    end: float
    text: str
    score: float
    keystep: str | None = None
    chapter: tuple[float, float] | None = None


class Index:
    """Index of a folder of results, made on first use and kept up to date."""

    def __init__(self, folder: Path | str, problems: Problems | None = None) -> None:
        # The recogniser's own encoder, so that embeddings are in the cache.
        self._encoder = TextEncoder(encoder_for(DEFAULT_DECODER))
        self._folder, self._problems = Path(folder), problems
        self._open()

    def _open(self, *, anew: bool = False) -> None:
        self._files = open_files(self._folder, self._encoder, self._problems, anew=anew)
        self._keysteps = self._encoder.encode_texts(self._files.keysteps)

    def __len__(self) -> int:
        return len(self._files.rows)

    def search(self, question: str, most: int = 10) -> list[SearchHit]:
        """Find the best sentences, best first, at most one of each chapter."""
        if not question.strip():
            raise ConfigError("question must have words, got none; enter some")
        if most < 1:
            raise ConfigError(f"top must be at least 1, got {most}")
        if not len(self):
            return []
        query = self._encoder.encode_question(question)
        try:
            return self._find(question, query, most)
        except (sqlite3.Error, LookupError, TypeError, ValueError):  # its files are damaged
            self._open(anew=True)
            return self._find(question, query, most)

    def _find(self, question: str, query: NDArray[np.float32], most: int) -> list[SearchHit]:
        files = self._files
        near = nearest(files.coarse, query @ files.directions, _CANDIDATES)
        rows = np.union1d(near, np.array(files.containing(question, _CANDIDATES), np.int64))
        of_text = np.asarray(files.vectors[rows], np.float32) @ query
        keysteps = files.rows["keystep"][rows]
        # Background (-1) contributes a similarity of 0.
        done = np.append(self._keysteps @ query if len(self._keysteps) else [], 0.0)[keysteps]
        score = (of_text + done) / 2
        videos = np.searchsorted(files.firsts, rows, side="right") - 1
        best: dict[tuple[int, float], int] = {}
        for at in np.argsort(-score, kind="stable"):
            row = files.rows[rows[at]]
            # Outside of chapters each sentence counts by itself.
            key = (int(videos[at]), float(row["from"] if row["keystep"] >= 0 else -row["end"]))
            if best.setdefault(key, int(at)) == at and len(best) == most:
                break
        texts = files.texts(rows[list(best.values())].tolist())
        return [
            self._hit(int(rows[at]), video, float(score[at]), texts)
            for (video, _), at in best.items()
        ]

    def _hit(self, row: int, video: int, score: float, texts: dict[int, str]) -> SearchHit:
        files, found = self._files, self._files.rows[row]
        keystep = int(found["keystep"])
        return SearchHit(
            files.results[video].video,
            round(float(found["start"]), 3),
            round(float(found["end"]), 3),
            texts[row],
            round(float(score), 4),
            files.keysteps[keystep] if keystep >= 0 else None,
            (float(found["from"]), float(found["to"])) if keystep >= 0 else None,
        )


def nearest(coarse: NDArray[np.int8], query: NDArray[np.float32], most: int) -> NDArray[np.int64]:
    """Return the ``most`` rows with the greatest products with the query, unordered.

    Blocks of rows are ranked by their greatest product first, so that nothing as long as the index
    is sorted.  The rows with the greatest products are in the blocks with the greatest ones.
    """
    if len(coarse) <= most:
        return np.arange(len(coarse))
    scaled = np.rint(query * (32_000 / max(1e-9, float(np.abs(query).max())))).astype(np.int16)
    blocks = compiled(_best_of_blocks)(coarse, scaled, _BLOCK)
    count = min(most, len(blocks))
    chosen = np.argpartition(-blocks, count - 1)[:count]
    rows = (chosen[:, None] * _BLOCK + np.arange(_BLOCK)).ravel()
    rows = rows[rows < len(coarse)]
    products = coarse[rows].astype(np.int64) @ scaled.astype(np.int64)
    return rows[np.argpartition(-products, most - 1)[:most]]


def _best_of_blocks(
    coarse: NDArray[np.int8], query: NDArray[np.int16], block: int
) -> NDArray[np.int64]:
    """Compute the greatest product of each block of rows."""
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
