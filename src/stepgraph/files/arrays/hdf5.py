"""Arrays in HDF5 files: a dataset that lies in its file, as plain numbers, whole."""

from __future__ import annotations

import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.errors import DataError, MissingExtraError
from stepgraph.files.arrays.checks import Reader, Wanted

# Links looked at in the file of one video: more is no file of one array.
_LINKS = 1000
# Filters by their numbers in HDF5, in the order in which they are applied.
_SHUFFLE, _DEFLATE, _CHECKSUM = 2, 1, 3
_FILTERS = (_SHUFFLE, _DEFLATE, _CHECKSUM)


def _open(path: Path) -> Any:
    try:
        import h5py
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: reading HDF5 needs the 'video' extra; run: pip install h5py"
        ) from error
    return h5py.File(path, "r", locking=False)


def read_h5(path: Path, wanted: Wanted) -> NDArray[Any]:
    """Read a file that holds one dataset."""
    with _open(path) as file:
        return _read(file, wanted)


class OpenFile:
    """An open file with a dataset for each video, or a group with one dataset."""

    def __init__(self, path: Path) -> None:
        self._file = _open(path)

    def get(self, name: str) -> Reader | None:
        """What reads the thing of this name, such as ``monday/v1``, if there is one."""
        import h5py

        group = self._file
        *folders, last = name.split("/")
        if {"", "."} & {*folders, last} or "\0" in name:
            return None
        for part in folders:
            # A link to elsewhere is not followed, and leads to no group that is here.
            if not isinstance(group.get(part, getlink=True), h5py.HardLink):
                return None
            group = group[part]
            if not isinstance(group, h5py.Group):
                return None
        if group.get(last, getlink=True) is None:
            return None
        return lambda wanted: _read(_followed(group, last, wanted), wanted)


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
    groups, links = [("", group)], 0
    for prefix, inside in groups:  # which grows
        links += len(inside)
        if links > _LINKS:  # groups may hold one another, so that there is no end
            raise DataError(f"{wanted.where}: must hold one dataset, got a maze of groups")
        for name in inside:
            thing = _followed(inside, name, wanted)
            if isinstance(thing, h5py.Dataset):
                found[prefix + name] = thing
            elif isinstance(thing, h5py.Group):
                groups.append((f"{prefix}{name}/", thing))
    if len(found) != 1:
        raise DataError(
            f"{wanted.where}: must hold one dataset, got {len(found)}: {sorted(found)[:5]}"
        )
    return next(iter(found.values()))


def _read(thing: Any, wanted: Wanted) -> NDArray[Any]:
    """Read a dataset, or the only one of a group, if its numbers lie in the file, and fit."""
    import h5py

    dataset = _only_dataset(thing, wanted) if isinstance(thing, h5py.Group) else thing
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
    if math.prod(shape) and plan.get_layout() == h5py.h5d.CHUNKED:
        filters = [plan.get_filter(position)[0] for position in range(plan.get_nfilters())]
        _check_chunks(dataset, filters, wanted)
    else:
        size = dataset.id.get_type().get_size()
        wanted.check_size(shape, size, dataset.id.get_storage_size())
    return np.asarray(dataset[()])


def _check_chunks(dataset: Any, filters: list[int], wanted: Wanted) -> None:
    """Refuse what the library would believe: chunks that are missing, too large or too small.

    It fills up the first, unpacks all of the second, and takes what lies in memory for the last.
    """
    wanted.check_memory(dataset.chunks, dataset.dtype.itemsize)
    sides = zip(dataset.shape, dataset.chunks, strict=True)
    expected = math.prod(math.ceil(side / piece) for side, piece in sides)
    if (written := dataset.id.get_num_chunks()) < expected:
        raise DataError(
            f"{wanted.where}: must be written to its end, got {written:,} of {expected:,} chunks; "
            f"write it again"
        )
    if filters != [one for one in _FILTERS if one in filters]:
        raise DataError(
            f"{wanted.where}: must be compressed with gzip or not at all, got filters "
            f"{filters[:5]}; save it again with compression='gzip'"
        )
    size = math.prod(dataset.chunks) * dataset.id.get_type().get_size()
    for number in range(written) if _DEFLATE in filters else ():
        chunk = dataset.id.get_chunk_info(number)
        # What does not shrink is hardly larger than it was; more is not even read.
        whole = chunk.size <= size + size // 100 + 64
        if not whole or _unpacked_size(dataset, chunk, filters, size) != size:
            raise DataError(
                f"{wanted.where}: must be as large as it says, got a chunk of another size; "
                f"the file is damaged, fetch or write it again"
            )


def _unpacked_size(dataset: Any, chunk: Any, filters: list[int], size: int) -> int:
    """Bytes of an unpacked chunk, as far as one more than it should have."""
    mask, data = dataset.id.read_direct_chunk(chunk.chunk_offset)
    if mask >> filters.index(_DEFLATE) & 1:  # this one is not compressed
        return len(data) - 4 * (_CHECKSUM in filters)
    return len(zlib.decompressobj().decompress(data, size + 1))
