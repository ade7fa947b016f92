"""Labels of clips as parquet tables, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import Vocabulary
from stepgraph.errors import DataError, MissingExtraError, one_line
from stepgraph.files.disk import replacing, require_file
from stepgraph.files.headers import FileKind, check_header, reading_fields
from stepgraph.labelling.clips import ORIGINS, TOP, ClipLabels

LABELS_KIND = FileKind("stepgraph-labels", 1, "file of labels", "make it with: stepgraph label")


def write_table(
    path: Path, videos: Sequence[ClipLabels], vocabulary: Vocabulary, content: Mapping[str, Any]
) -> None:
    """Write the clips of some videos whole or not at all; ``content`` stands in the footer."""
    parquet = _arrow().parquet
    text = json.dumps(content, ensure_ascii=False)
    table = _to_table(videos, vocabulary).replace_schema_metadata({LABELS_KIND.format: text})
    with replacing(path) as partial:
        parquet.write_table(table, partial, compression="zstd")


def read_footer(path: Path) -> dict[str, Any]:
    """What a file says about itself."""
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
    """The clips of each video of a file; labels past the last keystep are refused."""
    parquet = _arrow().parquet
    with _reading(path):
        table = parquet.read_table(path)
    with reading_fields(path, LABELS_KIND):
        yield from _from_table(table, keysteps)


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
    columns["words"] = pa.array([said for one in videos for said in one.words], pa.string())
    return pa.table({name: columns[name] for name in _ORDER})


def _from_table(table: Any, keysteps: int) -> Iterator[ClipLabels]:
    arrays = _arrays(table)
    for name in ("keystep", "argmax", "top_keysteps"):
        values = arrays[name]
        if values.size and not -1 <= values.min() <= values.max() < keysteps:
            raise DataError(
                f"{name} between {values.min()} and {values.max()} where -1 to {keysteps - 1} "
                f"was expected; label again"
            )
    ids, words = table["video"].to_pylist(), table["words"].to_pylist()
    starts = [row for row in range(len(ids)) if row == 0 or ids[row] != ids[row - 1]]
    for first, last in zip(starts, [*starts[1:], len(ids)], strict=True):
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
    """Give every failure of the library one form."""
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
