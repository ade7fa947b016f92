"""Arrays in Parquet files: one column of vectors, or one numeric column for each dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import runs
from stepgraph.errors import DataError
from stepgraph.files.disk import MIB

VIDEO = "video"
"""Column with the video of each row, in a file of several videos."""

_VECTOR = "vector"
_INDEX = "__index_level_"  # the name that pandas gives an index without one
_BATCH = 1024  # rows decoded at once


def read_parquet(path: Path) -> NDArray[Any]:
    """Read a file whose rows are all of one video."""
    rows = _Rows(path)
    return rows.read(0, int(rows.starts[-1]))


def open_videos(path: Path) -> dict[str, Callable[[], Any]]:
    """Open a file of many videos, with consecutive rows for each video."""
    rows = _Rows(path)
    return {name: partial(rows.read, *place) for name, place in rows.videos().items()}


class _Rows:
    """Rows of an open file, read by position.

    The last position is kept: rows of many videos that share a row group are decoded once if they
    are read in order, not once for each video.
    """

    def __init__(self, path: Path) -> None:
        from pyarrow import parquet

        # Names stay numbers, so that a long one which a million rows share takes no more than
        # one; and a column is read piece by piece, however large it is.
        metadata = parquet.read_metadata(path)
        named = [VIDEO] if VIDEO in metadata.schema.to_arrow_schema().names else None
        how = {"read_dictionary": named, "buffer_size": MIB, "pre_buffer": False}
        self._file = parquet.ParquetFile(path, metadata=metadata, **how)
        groups = range(metadata.num_row_groups)
        self.starts = np.cumsum([0, *(metadata.row_group(group).num_rows for group in groups)])
        self._next = -1
        self._rest: Any = None
        self._batches: Iterator[Any] = iter(())

    def videos(self) -> dict[str, tuple[int, int]]:
        """Return the first row of each video, and the row after its last."""
        names = self._file.schema_arrow.names
        if VIDEO not in names:
            raise DataError(
                f"must have a column {VIDEO!r} that names the video of each row, got {names[:5]}; "
                f"put the file of one video into a folder, and give the folder"
            )
        column = self._file.read(columns=[VIDEO]).column(0)
        if column.null_count:
            raise DataError(f"column {VIDEO!r} must name a video in each row, got none in one")
        column = column.dictionary_encode().unify_dictionaries().combine_chunks()
        codes, named = column.indices.to_numpy(), column.dictionary
        found: dict[str, tuple[int, int]] = {}
        for first, last in runs(codes):
            name = str(named[int(codes[first])].as_py())
            if name in found:
                raise DataError(
                    f"rows of a video must be contiguous, got {name[:80]!r} again in row "
                    f"{first:,}; sort the rows by video"
                )
            found[name] = first, last
        return found

    def read(self, first: int, last: int) -> NDArray[Any]:
        """Read the rows from ``first`` up to ``last``."""
        columns = _columns(self._file.schema_arrow)
        parts = [_as_array(batch) for batch in self._slices(first, last, columns)]
        _check_lengths({part.shape[1] for part in parts})
        array = np.concatenate(parts) if parts else np.empty((0, 0), np.float32)
        if len(array) < last - first:
            raise DataError(f"must have {last - first:,} rows, got {len(array):,}")
        return array

    def _slices(self, first: int, last: int, columns: list[str]) -> Iterator[Any]:
        """Yield rows in batches; earlier rows of their row group are decoded and dropped."""
        group = int(np.searchsorted(self.starts, first, side="right")) - 1
        if not self.starts[group] <= self._next <= first:
            self._batches = self._decode(group, columns)
            self._next, self._rest = int(self.starts[group]), None
        while self._next < last:
            start, self._next = self._next, -1  # if this fails, the next one begins anew
            batch = next(self._batches, None) if self._rest is None else self._rest
            if batch is None:
                return
            end = min(last - start, len(batch))
            self._next, self._rest = start + end, batch[end:] if end < len(batch) else None
            if start + end > first:
                yield batch[max(first - start, 0) : end]

    def _decode(self, group: int, columns: list[str]) -> Iterator[Any]:
        """Decode all row groups from ``group`` on, each one only when it is needed."""
        for number in range(group, len(self.starts) - 1):
            yield from self._file.iter_batches(_BATCH, [number], columns)


def _columns(schema: Any) -> list[str]:
    """Select the columns of the array: ``vector``, the only one of lists, or all but the video."""
    import pyarrow.types as kinds

    lists = [field for field in schema if kinds.is_fixed_size_list(field.type)]
    if _VECTOR in schema.names:
        chosen = [schema.field(_VECTOR)]
    elif len(lists) == 1:
        chosen = lists
    else:
        chosen = [f for f in schema if f.name != VIDEO and not f.name.startswith(_INDEX)]
    for field in chosen:
        listed = len(chosen) == 1 and hasattr(field.type, "value_type")
        number = field.type.value_type if listed else field.type
        if not (kinds.is_integer(number) or kinds.is_floating(number)):
            raise DataError(
                f"columns must be real numbers, got column {field.name[:80]!r} of type "
                f"{str(field.type)[:80]}; leave it out, or put the numbers into a column "
                f"{_VECTOR!r}"
            )
    names = [field.name for field in chosen]
    if len(set(names)) < len(names) or not names:
        raise DataError(f"must have columns of different names, got {names[:5]}")
    return names


def _as_array(batch: Any) -> NDArray[np.float32]:
    columns, lists = batch.columns, hasattr(batch.columns[0].type, "value_type")
    lengths = {1}
    if lists:
        lengths = set(columns[0].value_lengths().to_pylist())
        columns = [columns[0], columns[0].flatten()]
    if any(column.null_count for column in columns):
        raise DataError("numbers must be finite, got a null; compute them again")
    _check_lengths(lengths)
    with np.errstate(over="ignore"):  # what overflows is infinite, and found later
        found = [np.asarray(column, np.float32) for column in columns[lists:]]
    return found[0].reshape(len(batch), -1) if lists else np.stack(found, axis=1)


def _check_lengths(lengths: set[int]) -> None:
    if len(lengths) > 1 or 0 in lengths:
        raise DataError(f"rows must have the same length, at least 1, got {sorted(lengths)[:5]}")
