"""The rows of Parquet files: a column of vectors, or a column of numbers for each of the width.

Only the process that :mod:`stepgraph.files.arrays.parquet` starts runs this.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import runs
from stepgraph.errors import DataError
from stepgraph.files.arrays.checks import LARGEST, Wanted
from stepgraph.files.disk import MIB

VIDEO = "video"
"""The column that says to which video a row belongs, where a file holds several."""

_VECTOR = "vector"
_INDEX = "__index_level_"  # how pandas calls an index without a name
_BATCH = MIB  # numbers decoded at once


class _Layout(NamedTuple):
    """Which columns make an array, whether of lists, and how many numbers make a row."""

    columns: list[str]
    listed: bool
    width: int


class Rows:
    """The rows of an open file.

    Where reading stopped is kept: the rows of many videos that share a row group are decoded
    once if they are read in their order, not once for each video.
    """

    def __init__(self, path: Path) -> None:
        from pyarrow import parquet

        # Names stay numbers, so that a long one which a million rows share takes no more than
        # one; and a column is read piece by piece, however large it is.
        metadata = parquet.read_metadata(path)
        named = [VIDEO] if VIDEO in metadata.schema.to_arrow_schema().names else None
        how = {"read_dictionary": named, "buffer_size": MIB, "pre_buffer": False}
        self._path, self._file = path, parquet.ParquetFile(path, metadata=metadata, **how)
        if (rows := metadata.num_rows) * 8 > LARGEST:
            raise DataError(f"{path}: must have at most {LARGEST // 8:,} rows, got {rows:,}")
        groups = range(metadata.num_row_groups)
        sizes = [metadata.row_group(group).num_rows for group in groups]
        self._starts = np.cumsum([0, *sizes])
        self._next = -1
        self._rest: Any = None
        self._batches: Iterator[Any] = iter(())

    def __len__(self) -> int:
        return int(self._starts[-1])

    def videos(self) -> list[tuple[str, int, int]]:
        """Names of the videos in a file of many, with the first row of each and that after it."""
        path, names = self._path, self._file.schema_arrow.names
        if VIDEO not in names:
            raise DataError(
                f"{path}: must have a column {VIDEO!r} that names the video of each row, got "
                f"{names[:5]}; put the file of one video into a folder, and give the folder"
            )
        column = self._file.read(columns=[VIDEO]).column(0)
        if column.null_count:
            raise DataError(
                f"{path}: column {VIDEO!r} must name a video in each row, got none in one"
            )
        column = column.dictionary_encode().unify_dictionaries().combine_chunks()
        codes, named = column.indices.to_numpy(), column.dictionary
        found: dict[str, tuple[int, int]] = {}
        for first, last in runs(codes):
            name = str(named[int(codes[first])].as_py())
            if name in found:
                raise DataError(
                    f"{path}: rows of a video must stand together, got {name[:80]!r} again "
                    f"in row {first:,}; sort the rows by video"
                )
            found[name] = first, last
        return [(name, *rows) for name, rows in found.items()]

    def read(self, first: int, last: int, wanted: Wanted) -> NDArray[Any]:
        """Read some rows, decoding no more at once than a batch."""
        layout = self._layout(first, wanted)
        shape = last - first, layout.width
        wanted.check(shape, np.float32)
        wanted.check_memory(shape, np.dtype(np.float32).itemsize)
        array = np.empty(shape, np.float32)
        done = 0
        for batch in self._slices(first, last, layout):
            with np.errstate(over="ignore"):  # what overflows is infinite, and found later
                array[done : done + len(batch)] = _as_array(batch, layout, wanted)
            done += len(batch)
        if done < len(array):
            raise DataError(f"{wanted.where}: must have {len(array):,} rows, got {done:,}")
        return array

    def _slices(self, first: int, last: int, layout: _Layout) -> Iterator[Any]:
        """Yield rows in batches; those before them in their row group are decoded and left."""
        group = int(np.searchsorted(self._starts, first, side="right")) - 1
        if not self._starts[group] <= self._next <= first:
            size = max(1, _BATCH // layout.width)
            self._batches = self._decode(group, size, layout.columns)
            self._next, self._rest = int(self._starts[group]), None
        while self._next < last:
            start, self._next = self._next, -1  # if this fails, the next one begins anew
            batch = next(self._batches, None) if self._rest is None else self._rest
            if batch is None:
                return
            end = min(last - start, len(batch))
            self._next, self._rest = start + end, batch[end:] if end < len(batch) else None
            if start + end > first:
                yield batch[max(first - start, 0) : end]

    def _decode(self, group: int, size: int, columns: list[str]) -> Iterator[Any]:
        """Decode all from a row group on; the next one only when it is asked for."""
        for number in range(group, len(self._starts) - 1):
            yield from self._file.iter_batches(size, [number], columns)

    def _layout(self, first: int, wanted: Wanted) -> _Layout:
        import pyarrow as pa

        chosen = _choose_columns(self._file.schema_arrow)
        kind: Any = chosen[0].type if len(chosen) == 1 else pa.null()
        fixed = pa.types.is_fixed_size_list(kind)
        listed = fixed or pa.types.is_list(kind) or pa.types.is_large_list(kind)
        types = [field.type.value_type if listed else field.type for field in chosen]
        for field, number in zip(chosen, types, strict=True):
            if not (pa.types.is_integer(number) or pa.types.is_floating(number)):
                raise DataError(
                    f"{wanted.where}: {wanted.kind.noun} must be real numbers, got column "
                    f"{field.name[:80]!r} of type {str(field.type)[:80]}; leave it out, or put "
                    f"the numbers into a column {_VECTOR!r}"
                )
        columns = [field.name for field in chosen]
        if len(set(columns)) < len(columns) or not columns:
            raise DataError(
                f"{wanted.where}: must have columns of different names, got {columns[:5]}"
            )
        width = len(columns)
        if listed:
            width = kind.list_size if fixed else self._list_size(columns[0], first, wanted)
        return _Layout(columns, listed, width)

    def _list_size(self, column: str, first: int, wanted: Wanted) -> int:
        """How long lists are by the counts of their row group; without rows, as long as wanted."""
        group = int(np.searchsorted(self._starts, first, side="right")) - 1
        if group >= len(self._starts) - 1:
            return wanted.width or 1
        held = self._file.metadata.row_group(group)
        chunks = [held.column(place) for place in range(held.num_columns)]
        values = sum(c.num_values for c in chunks if c.path_in_schema.split(".")[0] == column)
        return int(max(1, values // max(held.num_rows, 1)))


def _choose_columns(schema: Any) -> list[Any]:
    import pyarrow as pa

    lists = [field for field in schema if pa.types.is_fixed_size_list(field.type)]
    if _VECTOR in schema.names:
        return [schema.field(_VECTOR)]
    if len(lists) == 1:
        return lists
    return [f for f in schema if f.name != VIDEO and not f.name.startswith(_INDEX)]


def _as_array(batch: Any, layout: _Layout, wanted: Wanted) -> NDArray[Any]:
    import pyarrow.compute as pc

    columns = [batch.column(name) for name in layout.columns]
    flat = columns[0].flatten() if layout.listed else None
    if any(column.null_count for column in (*columns, *([flat] if layout.listed else []))):
        raise DataError(
            f"{wanted.where}: {wanted.kind.noun} must be finite, got a null; compute them again"
        )
    if flat is None:
        return np.stack([column.to_numpy(zero_copy_only=False) for column in columns], axis=1)
    lengths = set(pc.list_value_length(columns[0]).to_numpy(zero_copy_only=False).tolist())
    if lengths != {layout.width}:
        raise DataError(
            f"{wanted.where}: {wanted.kind.noun} must have as many numbers in each row, got "
            f"{sorted(lengths)[:5]}; {wanted.kind.hint}"
        )
    return np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(-1, layout.width)
