"""Files of an index: the sentences of a folder of results, as embeddings and as words.

They lie in the cache, keyed by the path of the folder, and not in the folder itself: that may be
read-only, or a stranger's, whose databases must not be opened.  An unchanged result is not
encoded again.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import secrets
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepgraph import __version__
from stepgraph.core import Result
from stepgraph.encoders.text import TextEncoder
from stepgraph.encoders.vectors import unit
from stepgraph.errors import DataError, StepgraphError, reason
from stepgraph.export.results import corrections_file, load_result, result_files
from stepgraph.files.disk import cache_folder, read_json, write_text
from stepgraph.files.headers import as_text, as_whole
from stepgraph.problems import Problems

COARSE = 64
"""Dimensions of the coarse vectors that are compared first."""

ROW = np.dtype(
    [("start", "<f4"), ("end", "<f4"), ("from", "<f4"), ("to", "<f4"), ("keystep", "<i4")]
)
"""A sentence: start, end, start and end of its chapter, and the chapter's keystep, or -1."""

_VERSION = 1
_TOGETHER = 64  # results that are encoded at once
_COMMON = 5000  # a word in so many sentences is common
_SAMPLE = 20_000  # sentences from which the principal directions are computed


class IndexedResult(NamedTuple):
    """Result in the index: its file, the file's state, the video's id, the number of sentences."""

    file: str
    state: str
    video: str
    rows: int


@dataclass(frozen=True, eq=False)
class Files:
    """Open index; arrays are read from disk as they are needed."""

    folder: Path
    results: tuple[IndexedResult, ...]
    keysteps: tuple[str, ...]
    rows: NDArray[Any]
    vectors: NDArray[np.float16]
    coarse: NDArray[np.int8]
    directions: NDArray[np.float32]
    firsts: NDArray[np.int64] = field(repr=False)

    def texts(self, rows: Sequence[int]) -> dict[int, str]:
        """Return the text of some sentences by row."""
        marks = ",".join("?" * len(rows))
        with closing(sqlite3.connect(self.folder / "words.sqlite")) as database:
            query = f"SELECT rowid, text FROM said WHERE rowid IN ({marks})"
            return dict(database.execute(query, [int(row) for row in rows]))

    def containing(self, question: str, most: int) -> list[int]:
        """Find sentences with words of a question, those with the rarest words first.

        Words in very many sentences do not discriminate, and ranking all their sentences is slow.
        """
        words = dict.fromkeys(f'"{word}"' for word in re.findall(r"\w+", question))
        with closing(sqlite3.connect(self.folder / "words.sqlite")) as database:
            count = "SELECT count(*) FROM (SELECT 1 FROM said WHERE said MATCH ? LIMIT ?)"
            rare = [
                word
                for word in words
                if database.execute(count, (word, _COMMON)).fetchone()[0] < _COMMON
            ]
            if not rare:
                return []
            query = "SELECT rowid FROM said WHERE said MATCH ? ORDER BY rank LIMIT ?"
            return [row for (row,) in database.execute(query, (" OR ".join(rare), most))]


def open_files(
    folder: Path, encoder: TextEncoder, problems: Problems | None = None, *, anew: bool = False
) -> Files:
    """Open the index of a folder, after making it or bringing it up to date where needed."""
    index = index_folder(folder, encoder)
    found = [(path.relative_to(folder).as_posix(), _state(path)) for path in result_files(folder)]
    old = None if anew else _load(index)
    if old is None or [(one.file, one.state) for one in old.results] != found:
        try:
            _make(folder, found, index, encoder, old, problems)
        except (OSError, sqlite3.Error) as error:
            raise DataError(
                f"{index}: the index cannot be written: {reason(error)}; set STEPGRAPH_CACHE to a "
                f"folder with enough space"
            ) from error
        old = _load(index)
    if old is None:
        raise DataError(
            f"{index}: the index must be readable after writing, got none; is the disk full?"
        )
    return old


def index_folder(folder: Path, encoder: TextEncoder) -> Path:
    """Return the folder of the index of some results."""
    made_from = repr((str(folder.resolve()), encoder.options, __version__, _VERSION))
    digest = hashlib.blake2b(made_from.encode(errors="replace"), digest_size=16).hexdigest()
    return cache_folder() / "search" / digest


def _state(path: Path) -> str:
    annotation_file = corrections_file(path)
    states = [one.stat() for one in (path, annotation_file) if one is path or one.is_file()]
    return " ".join(f"{state.st_size}-{state.st_mtime_ns}" for state in states)


def _load(path: Path) -> Files | None:
    """Load an index if it is complete; else return None."""
    with suppress(StepgraphError, OSError, KeyError, TypeError, ValueError, OverflowError):
        content = read_json(path / "index.json", limit=1 << 32)
        folder = path / content["made"]
        results = tuple(
            IndexedResult(as_text(file), as_text(state), as_text(video), as_whole(rows))
            for file, state, video, rows in content["places"]
        )
        counts = np.array([one.rows for one in results], np.int64)
        count, size = int(counts.sum()), int(content["size"])
        return Files(
            folder,
            results,
            tuple(map(_as_name, content["keysteps"])),
            _mapped(folder / "rows", ROW, (count,)),
            _mapped(folder / "vectors", np.float16, (count, size)),
            _mapped(folder / "coarse", np.int8, (count, min(COARSE, size))),
            _mapped(folder / "directions", np.float32, (size, min(COARSE, size))),
            np.cumsum(counts) - counts,
        )
    return None


def _as_name(value: Any) -> str:
    as_text(value).encode()  # half a character, as only damage leaves it, is a ValueError
    return str(value)


def _mapped(path: Path, kind: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    if not math.prod(shape):
        return np.zeros(shape, kind)
    size, expected = path.stat().st_size, math.prod(shape) * np.dtype(kind).itemsize
    if size != expected:
        raise ValueError(f"{path}: must have {expected} bytes, got {size}")
    return np.memmap(path, kind, "r", shape=shape)


def _make(
    folder: Path,
    found: Sequence[tuple[str, str]],
    path: Path,
    encoder: TextEncoder,
    old: Files | None,
    problems: Problems | None,
) -> None:
    made = secrets.token_hex(8)
    target = path / made
    target.mkdir(parents=True)
    results: list[IndexedResult] = []
    keysteps: dict[str, int] = {}
    size = 1
    with (
        (target / "rows").open("wb") as rows,
        (target / "vectors").open("wb") as vectors,
        closing(sqlite3.connect(target / "words.sqlite")) as words,
    ):
        words.execute("CREATE VIRTUAL TABLE said USING fts5(text, tokenize='porter')")
        count = 0
        for one, result, vector in _encoded(folder, found, encoder, old, problems):
            sentences = [sentence.text for sentence in result.video.transcript]
            words.executemany(
                "INSERT INTO said(rowid, text) VALUES (?, ?)", enumerate(sentences, count)
            )
            rows.write(_rows(result, keysteps).tobytes())
            vectors.write(vector.tobytes())
            results.append(one)
            count, size = count + len(sentences), max(size, vector.shape[1])
        words.commit()
    _write_coarse(target, _mapped(target / "vectors", np.float16, (count, size)))
    # Old files go before the new index counts; a killed run only makes it once more.
    for other in path.iterdir():
        if other.is_dir() and other.name != made:
            shutil.rmtree(other, ignore_errors=True)
    content = {
        "format": "stepgraph-search",
        "version": _VERSION,
        "made": made,
        "size": size,
        "places": results,
        "keysteps": list(keysteps),
    }
    write_text(path / "index.json", json.dumps(content, ensure_ascii=False))


def _encoded(
    folder: Path,
    found: Sequence[tuple[str, str]],
    encoder: TextEncoder,
    old: Files | None,
    problems: Problems | None,
) -> Iterator[tuple[IndexedResult, Result, NDArray[np.float16]]]:
    """Yield each result with the embeddings of its sentences, from the old index or encoded."""
    # A matching file with another number of sentences is a sign of a damaged index.
    numbers = {one: number for number, one in enumerate(old.results)} if old else {}
    for start in range(0, len(found), _TOGETHER):
        group: list[tuple[IndexedResult, Result]] = []
        for one in found[start : start + _TOGETHER]:
            try:
                result = load_result(folder / one[0])
                video = result.video
                group.append((IndexedResult(*one, video.id, len(video.transcript)), result))
            except StepgraphError as error:
                if problems is None:
                    raise
                problems.add_error(error, "unreadable result", str(folder / one[0]), fatal=True)
        features = encoder.encode_videos([r.video for entry, r in group if entry not in numbers])
        for entry, result in group:
            if entry in numbers and old is not None:
                first = int(old.firsts[numbers[entry]])
                vectors = np.asarray(old.vectors[first : first + entry.rows])
            else:
                vectors = unit(next(features).vectors).astype(np.float16)
            yield entry, result, vectors


def _rows(result: Result, keysteps: dict[str, int]) -> NDArray[Any]:
    """Make a row of :data:`ROW` for each sentence; a new keystep gets the next number."""
    sentences = result.video.transcript
    rows = np.zeros(len(sentences), ROW)
    rows["start"], rows["end"] = (np.array([one[at] for one in sentences]) for at in (0, 1))
    middle = (rows["start"] + rows["end"]) / 2
    rows["keystep"] = -1
    for one in result:
        inside = (middle >= one.start) & (middle < one.end)
        rows["keystep"][inside] = keysteps.setdefault(one.keystep, len(keysteps))
        rows["from"][inside], rows["to"][inside] = one.start, one.end
    return rows


def _write_coarse(target: Path, vectors: NDArray[np.float16]) -> None:
    """Write the projections on the principal directions, one byte each, and the directions."""
    step = max(1, len(vectors) // _SAMPLE)
    sample = np.asarray(vectors[::step], np.float32)
    _, found = np.linalg.eigh(sample.T @ sample)
    directions = found[:, ::-1][:, :COARSE].astype(np.float32)
    # One scale for all, as products of them are added up.
    scale = 127 / max(1e-9, float(np.abs(sample @ directions).max(initial=0.0)))
    (target / "directions").write_bytes((directions * scale).tobytes())
    with (target / "coarse").open("wb") as file:
        for start in range(0, len(vectors), _SAMPLE):
            turned = np.asarray(vectors[start : start + _SAMPLE], np.float32) @ directions
            file.write(np.clip(np.rint(turned * scale), -127, 127).astype(np.int8).tobytes())
