"""Pseudo-labels of the clips of one video, by the task graph and by plain argmax.

They are written as parquet tables, and read back from them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import BACKGROUND, Scores, Timeline, Vocabulary
from stepgraph.decoders.path import best_keysteps
from stepgraph.errors import DataError, MissingExtraError, one_line
from stepgraph.files.disk import replacing, require_file
from stepgraph.files.headers import FileKind, check_header, reading_fields
from stepgraph.scoring.lazy import part_of_row

ORIGINS = ("anchor", "path", "label")
"""Origin of a label, as in a timeline: a confident score; the path; not given by the decoder."""

TOP = 3
"""Number of best keysteps stored for each clip, for the loss on distributions."""


@dataclass(frozen=True, eq=False)
class ClipLabels:
    """Labels of the clips of one video, one entry a clip in each array; see ``docs/formats.md``.

    ``path`` is None if there is only a transcript; ``task`` is the estimate of the decoder, never
    the truth.  ``keystep`` is the graph's label, ``argmax`` that of plain argmax, ``BACKGROUND``
    where there is none; ``origin`` is a position in :data:`ORIGINS`, or -1.  Missing numbers are
    nan.  ``top_keysteps`` and ``top_scores``, shape (T, 3), begin with the best; -1 and minus
    infinity where there is none.
    """

    video: str
    path: str | None
    task: str | None
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    keystep: NDArray[np.int32]
    origin: NDArray[np.int8]
    confidence: NDArray[np.float32]
    score: NDArray[np.float32]
    argmax: NDArray[np.int32]
    argmax_score: NDArray[np.float32]
    top_keysteps: NDArray[np.int32]
    top_scores: NDArray[np.float32]
    words: tuple[str | None, ...]

    def __len__(self) -> int:
        return len(self.keystep)


def label_clips(timeline: Timeline) -> ClipLabels:
    """Collect the labels of all clips of one recognised video."""
    video, labels, scores = timeline.video, timeline.labels, timeline.scores
    rows = np.arange(len(labels))
    labelled = labels.keysteps != BACKGROUND
    top_keysteps, top_scores = best_of(scores)
    own = scores.values[rows, np.maximum(labels.keysteps, 0)]
    confidence = np.full(len(rows), np.nan) if labels.confidence is None else labels.confidence
    intervals = np.array([[one.start, one.end] for one in video.transcript]).reshape(-1, 2)
    sentences = part_of_row(intervals, len(rows), labels.hop)
    return ClipLabels(
        video=video.id,
        path=None if video.path is None else str(video.path.absolute()),
        task=next(iter(labels.tasks or {}), None),
        start=(rows * labels.hop).astype(np.float64),
        # A started last row may reach past the end of the video.
        end=np.minimum((rows + 1) * labels.hop, np.maximum(video.duration, rows * labels.hop)),
        keystep=labels.keysteps.astype(np.int32),
        origin=np.where(labelled, _origins(timeline), -1).astype(np.int8),
        confidence=np.where(labelled, confidence, np.nan).astype(np.float32),
        score=np.where(labelled & scores.observed, own, np.nan).astype(np.float32),
        argmax=best_keysteps(scores).astype(np.int32),
        argmax_score=np.where(scores.observed, top_scores[:, 0], np.nan).astype(np.float32),
        top_keysteps=top_keysteps,
        top_scores=top_scores,
        words=tuple(
            video.transcript[part].text if part >= 0 else None for part in sentences.tolist()
        ),
    )


def _origins(timeline: Timeline) -> NDArray[np.int64]:
    anchors = timeline.labels.anchors
    if anchors is None or (timeline.labels.confidence is None and not anchors.any()):
        return np.full(len(timeline.labels), ORIGINS.index("label"))
    return np.where(anchors, ORIGINS.index("anchor"), ORIGINS.index("path"))


def best_of(scores: Scores) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the best keysteps of each row and their scores, shape (T, 3).

    Of keysteps with equal scores the first comes first, as in argmax.  On unobserved rows, and
    past the last keystep, they are -1 and minus infinity.
    """
    left = np.where(scores.observed[:, None], scores.values, np.float32(-np.inf))
    keysteps = np.full((len(scores), TOP), -1, dtype=np.int32)
    best = np.full((len(scores), TOP), -np.inf, dtype=np.float32)
    rows = np.arange(len(scores))
    # A few passes over all are far cheaper than sorting ten thousand keysteps of every row.
    for place in range(min(TOP, len(scores.vocabulary))):
        found = left.argmax(axis=1)
        best[:, place] = left[rows, found]
        keysteps[:, place] = np.where(best[:, place] > -np.inf, found, -1)
        left[rows, found] = -np.inf
    return keysteps, best


LABELS_KIND = FileKind("stepgraph-labels", 1, "file of labels", "make it with: stepgraph label")


def write_table(
    path: Path, videos: Sequence[ClipLabels], vocabulary: Vocabulary, content: Mapping[str, Any]
) -> None:
    """Write the clips of some videos atomically, with ``content`` in the footer of the file."""
    parquet = _arrow().parquet
    text = json.dumps(content, ensure_ascii=False)
    table = _to_table(videos, vocabulary).replace_schema_metadata({LABELS_KIND.format: text})
    with replacing(path) as partial:
        parquet.write_table(table, partial, compression="zstd")


def read_footer(path: Path) -> dict[str, Any]:
    """Read the content of the footer of a file of labels."""
    parquet = _arrow().parquet
    with _reading(path):
        metadata = parquet.read_schema(path).metadata or {}
    try:
        content = json.loads(metadata.get(LABELS_KIND.format.encode(), b"null"))
    except ValueError:
        content = None
    check_header(content, path, LABELS_KIND)
    fields: dict[str, Any] = content
    return fields


def read_table(path: Path, keysteps: int) -> Iterator[ClipLabels]:
    """Yield the clips of each video of a file; refuse labels past the last keystep."""
    parquet = _arrow().parquet
    with _reading(path):
        table = parquet.read_table(path)
    with reading_fields(path, LABELS_KIND):
        yield from _videos_in(table, keysteps)


def _to_table(videos: Sequence[ClipLabels], vocabulary: Vocabulary) -> Any:
    pa = _arrow()

    def joined(name: str, dtype: type) -> NDArray[Any]:
        return np.concatenate(
            [np.zeros(0, dtype), *(getattr(one, name).ravel() for one in videos)]
        )

    def named(codes: NDArray[Any], names: Sequence[str]) -> Any:
        positions = pa.array(codes, pa.int32(), mask=codes < 0)
        return pa.array(names, pa.string()).take(positions)

    columns = {}
    for name in ("video", "path", "task"):
        values = [getattr(one, name) for one in videos for _ in range(len(one))]
        columns[name] = pa.array(values, pa.string())
    for name, dtype in _PLAIN.items():
        numbers = joined(name, dtype)
        columns[name] = pa.array(numbers, mask=np.isnan(numbers) if dtype is np.float32 else None)
    for name, dtype in _BEST.items():
        columns[name] = pa.FixedSizeListArray.from_arrays(pa.array(joined(name, dtype)), TOP)
    columns["name"] = named(joined("keystep", np.int32), vocabulary.keysteps)
    columns["origin"] = named(joined("origin", np.int8), ORIGINS)
    columns["words"] = pa.array([words for one in videos for words in one.words], pa.string())
    return pa.table({name: columns[name] for name in _ORDER})


def _videos_in(table: Any, keysteps: int) -> Iterator[ClipLabels]:
    arrays = _arrays(table)
    for name in ("keystep", "argmax", "top_keysteps"):
        values = arrays[name]
        if values.size and not -1 <= values.min() <= values.max() < keysteps:
            raise DataError(
                f"{name} between {values.min()} and {values.max()} where -1 to {keysteps - 1} "
                f"was expected; label again"
            )
    ids, words = table["video"].to_pylist(), table["words"].to_pylist()
    ends = [row for row in range(1, len(ids) + 1) if ids[row - 1 : row] != ids[row : row + 1]]
    for first, last in pairwise([0, *ends]):
        yield ClipLabels(
            video=ids[first],
            path=table["path"][first].as_py(),
            task=table["task"][first].as_py(),
            words=tuple(words[first:last]),
            **{name: values[first:last] for name, values in arrays.items()},
        )


def _arrays(table: Any) -> dict[str, NDArray[Any]]:
    pa = _arrow()
    origins = pa.compute.index_in(table["origin"], value_set=pa.array(ORIGINS, pa.string()))
    arrays = {"origin": origins.fill_null(-1).to_numpy().astype(np.int8)}
    for name, dtype in _PLAIN.items():
        arrays[name] = table[name].to_numpy().astype(dtype, copy=False)
    for name, number in _BEST.items():
        values = table[name].combine_chunks().flatten().to_numpy()
        arrays[name] = values.astype(number, copy=False).reshape(-1, TOP)
    return arrays


_PLAIN: dict[str, type] = {
    "start": np.float64,
    "end": np.float64,
    "keystep": np.int32,
    "confidence": np.float32,
    "score": np.float32,
    "argmax": np.int32,
    "argmax_score": np.float32,
}
_BEST: dict[str, type] = {"top_keysteps": np.int32, "top_scores": np.float32}
_ORDER = (
    *("video", "path", "task", "start", "end", "keystep", "name", "confidence", "score", "origin"),
    *("argmax", "argmax_score", "top_keysteps", "top_scores", "words"),
)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn every failure of the library into a :class:`DataError`."""
    require_file(path, "file of labels")
    try:
        yield
    except (_arrow().ArrowException, OSError, ValueError) as error:  # names that are no text
        raise DataError(
            f"{path}: must be a whole file of labels, got {one_line(str(error), 200)}; "
            f"delete it and label again"
        ) from error


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError(
            "labels are parquet files, which need the 'train' extra; "
            "run: pip install 'stepgraph[train]'"
        ) from error
    return pyarrow
