"""Tables in Parquet files: a column of vectors, or a column of numbers for each of the width."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import runs
from stepgraph.errors import DataError, MissingExtraError
from stepgraph.files.arrays.checks import LARGEST, Wanted
from stepgraph.files.disk import MIB

VIDEO = "video"
"""The column that says to which video a row belongs, where a file holds several."""

_VECTOR = "vector"
_INDEX = "__index_level_"  # how pandas calls an index without a name
# Bytes that are decoded at once, and names of videos.
_BATCH = 4 * MIB
_NAMES = 1 << 16
_BUFFER = MIB


class Span(NamedTuple):
    """Rows of one row group: ``rows`` of them from ``first``."""

    group: int
    first: int
    rows: int


class Layout(NamedTuple):
    """Which columns make a table, what their numbers are, and how many of them make a row."""

    columns: list[str]
    dtype: np.dtype[Any]
    listed: bool
    width: int | None


def open_parquet(path: Path) -> Any:
    """Open a file to read; the caller closes it."""
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: reading Parquet needs the 'train' extra; run: pip install pyarrow"
        ) from error
    # Names stay numbers, so that a long one which a million rows share takes no more than one;
    # and a column is read piece by piece, however large it is.
    metadata = parquet.read_metadata(path)
    named = [VIDEO] if VIDEO in metadata.schema.to_arrow_schema().names else None
    file = parquet.ParquetFile(
        path, metadata=metadata, read_dictionary=named, buffer_size=_BUFFER, pre_buffer=False
    )
    for group in range(metadata.num_row_groups):
        if (rows := metadata.row_group(group).num_rows) * 8 > LARGEST:
            raise DataError(f"{path}: must have row groups of fewer rows, got {rows:,} in one")
    return file


def read_parquet(path: Path, wanted: Wanted) -> NDArray[Any]:
    """Read a file whose rows are all of one video."""
    with open_parquet(path) as file:
        groups = range(file.metadata.num_row_groups)
        spans = [Span(group, 0, file.metadata.row_group(group).num_rows) for group in groups]
        return Rows(file).read(spans, wanted)


def find_spans(file: Any, path: Path) -> dict[str, list[Span]]:
    """Where the rows of each video are; those of one must follow one another."""
    if VIDEO not in file.schema_arrow.names:
        raise DataError(
            f"{path}: must have a column {VIDEO!r} that names the video of each row, got "
            f"{file.schema_arrow.names[:5]}; put the file of one video into a folder, and give "
            f"the folder"
        )
    found: dict[str, list[Span]] = {}
    last = None
    for group in range(file.metadata.num_row_groups):
        row = 0
        for batch in file.iter_batches(_NAMES, row_groups=[group], columns=[VIDEO]):
            for name, count in _names(batch.column(0), path):
                if name in found and name != last:
                    raise DataError(
                        f"{path}: rows of a video must stand together, got {name[:80]!r} again "
                        f"in row {row:,} of row group {group}; sort the rows by video"
                    )
                _append(found.setdefault(name, []), Span(group, row, count))
                last = name
                row += count
    return found


def _append(spans: list[Span], span: Span) -> None:
    """Add rows to those of a video, as one span with those just before them."""
    if spans and spans[-1].group == span.group:
        span = Span(span.group, spans[-1].first, spans.pop().rows + span.rows)
    spans.append(span)


def _names(column: Any, path: Path) -> list[tuple[str, int]]:
    """Names of videos, each with how many rows it is that of."""
    import pyarrow as pa

    if column.null_count:
        raise DataError(f"{path}: column {VIDEO!r} must name a video in each row, got none in one")
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    codes = column.indices.to_numpy()
    return [
        (str(column.dictionary[int(codes[first])].as_py()), last - first)
        for first, last in runs(codes)
    ]


class Rows:
    """The rows of an open file.

    Where reading stopped is kept: the rows of many videos that share a row group are decoded
    once if they are read in their order, not once for each video.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._group = -1
        self._start = 0
        self._batch: Any = None
        self._batches: Iterator[Any] = iter(())

    def read(self, spans: list[Span], wanted: Wanted) -> NDArray[Any]:
        """Read some rows, decoding no more at once than a batch."""
        layout = _layout(self._file, wanted)
        rows = sum(span.rows for span in spans)
        width = layout.width or self._first_width(spans, layout, wanted)
        wanted.check((rows, width), layout.dtype)
        wanted.check_memory((rows, width), layout.dtype.itemsize)
        table = np.empty((rows, width), layout.dtype)
        done = 0
        for span in spans:
            for batch in self._slices(span, layout):
                part = _as_array(batch, layout, width, wanted)
                table[done : done + len(part)] = part
                done += len(part)
        if done != rows:
            raise DataError(f"{wanted.where}: must have {rows:,} rows as it says, got {done:,}")
        return table

    def _first_width(self, spans: list[Span], layout: Layout, wanted: Wanted) -> int:
        """How long the first list is; without rows, as long as wanted."""
        for span in spans:
            held = self._file.metadata.row_group(span.group)
            chunks = [held.column(place) for place in range(held.num_columns)]
            values = sum(c.num_values for c in chunks if c.path_in_schema.startswith(_VECTOR))
            mean = values // max(held.num_rows, 1)
            wanted.check_memory((span.rows, mean), layout.dtype.itemsize)
        for span in spans:
            for batch in self._slices(Span(span.group, span.first, 1), layout):
                return len(batch.column(0)[0]) if batch.column(0)[0].is_valid else 0
        return wanted.width or 1

    def _slices(self, span: Span, layout: Layout) -> Iterator[Any]:
        """Yield the rows of a span in batches; those before it are decoded and left."""
        if span.group != self._group or span.first < self._start:
            size = max(1, _BATCH // (layout.dtype.itemsize * (layout.width or 1024)))
            self._start, self._batch = 0, None
            self._batches = self._file.iter_batches(
                size, row_groups=[span.group], columns=layout.columns
            )
        end = span.first + span.rows
        while True:
            if self._batch is None:
                self._group = -1  # if this fails, the next one begins anew
                self._batch = next(self._batches, None)
                if self._batch is None:
                    return
                self._group = span.group
            length = len(self._batch)
            first, last = max(span.first - self._start, 0), min(end - self._start, length)
            if first < last:
                yield self._batch.slice(first, last - first)
            if end <= self._start + length:
                return
            self._start, self._batch = self._start + length, None


def _layout(file: Any, wanted: Wanted) -> Layout:
    import pyarrow as pa

    schema = file.schema_arrow
    lists = [field for field in schema if pa.types.is_fixed_size_list(field.type)]
    if _VECTOR in schema.names:
        chosen = [schema.field(_VECTOR)]
    elif len(lists) == 1:
        chosen = lists
    else:
        chosen = [f for f in schema if f.name != VIDEO and not f.name.startswith(_INDEX)]
    listed = len(chosen) == 1 and _is_list(chosen[0].type)
    types = [field.type.value_type if listed else field.type for field in chosen]
    for field, kind in zip(chosen, types, strict=True):
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            raise DataError(
                f"{wanted.where}: {wanted.kind.noun} must be real numbers, got column "
                f"{field.name[:80]!r} of type {str(field.type)[:80]}; leave it out, or put the "
                f"numbers into a column {_VECTOR!r}"
            )
    columns = [field.name for field in chosen]
    if len(set(columns)) < len(columns) or not columns:
        raise DataError(f"{wanted.where}: must have columns of different names, got {columns[:5]}")
    dtype = np.result_type(*{np.dtype(kind.to_pandas_dtype()) for kind in types})
    size = chosen[0].type
    fixed = size.list_size if listed and pa.types.is_fixed_size_list(size) else None
    return Layout(columns, dtype, listed, fixed if listed else len(columns))


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    tests = (pa.types.is_fixed_size_list, pa.types.is_list, pa.types.is_large_list)
    return any(test(kind) for test in tests)


def _as_array(batch: Any, layout: Layout, width: int, wanted: Wanted) -> NDArray[Any]:
    if not layout.listed:
        columns = [batch.column(name) for name in layout.columns]
        _check_nulls(columns, wanted)
        return np.stack([column.to_numpy(zero_copy_only=False) for column in columns], axis=1)
    column = batch.column(0)
    flat = column.flatten()
    _check_nulls([column, flat], wanted)
    lengths = {len(flat)} if layout.width else set(np.diff(column.offsets.to_numpy()).tolist())
    if lengths - ({width} if not layout.width else {len(batch) * width}):
        raise DataError(
            f"{wanted.where}: {wanted.kind.noun} must have as many numbers in each row, got "
            f"{sorted(lengths)[:5]}; {wanted.kind.hint}"
        )
    return np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(-1, width)


def _check_nulls(columns: list[Any], wanted: Wanted) -> None:
    if any(column.null_count for column in columns):
        raise DataError(
            f"{wanted.where}: {wanted.kind.noun} must be finite, got a null; compute them again"
        )
