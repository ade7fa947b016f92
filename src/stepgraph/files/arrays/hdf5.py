"""Tables in HDF5 files.

A dataset must lie in its file, as plain numbers, whole; its compressed pieces are unpacked here,
because the library unpacks as much as a piece claims to hold.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.errors import DataError, MissingExtraError
from stepgraph.files.arrays.checks import Wanted

# Links looked at in the file of one video: more is no file of one table.
_LINKS = 1000
_DEEPEST = 8
# Orders of filters that are undone here, by their numbers in HDF5.
_DEFLATE, _SHUFFLE = 1, 2
_FILTERS = ((_DEFLATE,), (_SHUFFLE,), (_SHUFFLE, _DEFLATE))


def open_h5(path: Path) -> Any:
    """Open a file to read; the caller closes it."""
    try:
        import h5py
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: reading HDF5 needs the 'video' extra; run: pip install h5py"
        ) from error
    return h5py.File(path, "r", locking=False)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    with open_h5(path) as file:
        yield file


def read_h5(path: Path, wanted: Wanted) -> NDArray[Any]:
    """Read a file that holds one dataset."""
    with _opened(path) as file:
        return read_dataset(_only_dataset(file, wanted), wanted)


def find_link(file: Any, name: str) -> bool:
    """Whether there is something of this name, such as ``monday/v1``, in a file."""
    import h5py

    group = file
    *folders, last = name.split("/")
    if "" in (*folders, last) or "." in (*folders, last) or "\0" in name:
        return False
    for part in folders:
        if not isinstance(group.get(part, getlink=True), h5py.HardLink):
            return False
        group = group[part]
        if not isinstance(group, h5py.Group):
            return False
    return group.get(last, getlink=True) is not None


def read_named(file: Any, name: str, wanted: Wanted) -> NDArray[Any]:
    """Read the dataset of this name, or the only dataset of the group of this name."""
    import h5py

    folder, _, last = name.rpartition("/")
    found = _followed(file[folder] if folder else file, last, wanted)
    if isinstance(found, h5py.Group):
        found = _only_dataset(found, wanted)
    return read_dataset(found, wanted)


def _followed(group: Any, name: str, wanted: Wanted) -> Any:
    """What a link leads to, if it stays in the file."""
    import h5py

    link = group.get(name, getlink=True)
    if not isinstance(link, h5py.HardLink):
        kind = "an external link" if isinstance(link, h5py.ExternalLink) else "a soft link"
        raise DataError(
            f"{wanted.where}: must hold its {wanted.kind.noun} itself, got {kind} ({name!r}), "
            f"which is not followed; copy the dataset into the file"
        )
    return group[name]


def _only_dataset(group: Any, wanted: Wanted) -> Any:
    import h5py

    found: dict[str, Any] = {}
    waiting = [("", group)]
    links = 0
    while waiting and len(found) < 6:
        prefix, inside = waiting.pop()
        for name in inside:
            links += 1
            # Groups may hold one another, so that there is no end.
            if links > _LINKS or prefix.count("/") > _DEEPEST:
                raise DataError(f"{wanted.where}: must hold one dataset, got a maze of groups")
            thing = _followed(inside, name, wanted)
            if isinstance(thing, h5py.Dataset):
                found[prefix + name] = thing
            elif isinstance(thing, h5py.Group):
                waiting.append((f"{prefix}{name}/", thing))
    if len(found) != 1:
        raise DataError(
            f"{wanted.where}: must hold one dataset, got {len(found)}: {sorted(found)[:5]}"
        )
    return next(iter(found.values()))


def read_dataset(dataset: Any, wanted: Wanted) -> NDArray[Any]:
    """Read one dataset, if it is a table whose numbers lie in its file."""
    import h5py

    if not isinstance(dataset, h5py.Dataset):
        raise DataError(f"{wanted.where}: must be a dataset, got a {type(dataset).__name__}")
    shape, dtype = dataset.shape or (), dataset.dtype
    wanted.check(shape, dtype)
    wanted.check_memory(shape, dtype.itemsize)
    plan = dataset.id.get_create_plist()
    if dataset.is_virtual or plan.get_external_count():
        raise DataError(
            f"{wanted.where}: must hold its {wanted.kind.noun} itself, got a dataset that lies in "
            f"other files, which are not read; copy it into the file"
        )
    if not math.prod(shape):
        return np.zeros(shape, dtype)
    filters = tuple(plan.get_filter(position)[0] for position in range(plan.get_nfilters()))
    if plan.get_layout() == h5py.h5d.CHUNKED:
        _check_chunks(dataset, wanted)
        return _read_chunks(dataset, filters, wanted) if filters else np.asarray(dataset[()])
    wanted.check_size(shape, dataset.id.get_type().get_size(), dataset.id.get_storage_size())
    return np.asarray(dataset[()])


def _check_chunks(dataset: Any, wanted: Wanted) -> None:
    """Refuse a dataset of which some was never written, and one in pieces beyond all size."""
    wanted.check_memory(dataset.chunks, dataset.dtype.itemsize)
    pairs = zip(dataset.shape, dataset.chunks, strict=True)
    expected = math.prod(math.ceil(size / piece) for size, piece in pairs)
    if (written := dataset.id.get_num_chunks()) < expected:
        raise DataError(
            f"{wanted.where}: must be written to its end, got {written:,} of {expected:,} pieces; "
            f"write it again"
        )


def _read_chunks(dataset: Any, filters: tuple[int, ...], wanted: Wanted) -> NDArray[Any]:
    _check_filters(dataset, filters, wanted)
    rows, columns = dataset.chunks
    size = rows * columns * dataset.dtype.itemsize
    table = np.empty(dataset.shape, dataset.dtype)
    height, width = dataset.shape
    for row, column in product(range(0, height, rows), range(0, width, columns)):
        # What does not shrink is stored as it is, so no piece is much larger than its content.
        if dataset.id.get_chunk_info_by_coord((row, column)).size > size + size // 100 + 64:
            raise _not_as_large(wanted)
        mask, data = dataset.id.read_direct_chunk((row, column))
        done = [one for position, one in enumerate(filters) if not mask >> position & 1]
        piece = np.frombuffer(_unpacked(data, done, size, dataset.dtype.itemsize, wanted), "u1")
        part = table[row : row + rows, column : column + columns]
        whole = piece.view(dataset.dtype).reshape(rows, columns)
        part[:] = whole[: part.shape[0], : part.shape[1]]
    return table


def _check_filters(dataset: Any, filters: tuple[int, ...], wanted: Wanted) -> None:
    import h5py

    if filters not in _FILTERS:
        raise DataError(
            f"{wanted.where}: must be compressed with gzip or not at all, got filters "
            f"{list(filters)[:5]}; save it again with compression='gzip'"
        )
    if not dataset.id.get_type().equal(h5py.h5t.py_create(dataset.dtype)):
        raise DataError(
            f"{wanted.where}: {wanted.kind.noun} must be ordinary numbers, got numbers of another "
            f"layout than {dataset.dtype}; save them again as float32"
        )


def _unpacked(data: bytes, filters: list[int], size: int, itemsize: int, wanted: Wanted) -> bytes:
    """Undo the filters of one piece, never making more of it than it should hold."""
    if _DEFLATE in filters:
        stream = zlib.decompressobj()
        data = stream.decompress(data, size)
        if not stream.eof and stream.decompress(stream.unconsumed_tail, 1):
            raise _not_as_large(wanted)
    if len(data) != size:
        raise _not_as_large(wanted)
    if _SHUFFLE in filters:
        # All first bytes of the numbers, then all second ones, and so on.
        return np.frombuffer(data, "u1").reshape(itemsize, -1).T.tobytes()
    return data


def _not_as_large(wanted: Wanted) -> DataError:
    return DataError(
        f"{wanted.where}: must be as large as it says, got a piece of another size; "
        f"the file is damaged, fetch or write it again"
    )
