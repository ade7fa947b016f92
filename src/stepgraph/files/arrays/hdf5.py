"""Arrays in HDF5 files: datasets that are complete and inside the file."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from stepgraph.errors import DataError
from stepgraph.files.arrays.checks import LARGEST, only

# Filters by their numbers in HDF5, in the order in which they are applied.
_SHUFFLE, _DEFLATE, _CHECKSUM = 2, 1, 3


class OpenFile:
    """An open file with a dataset, or a group with one dataset, for each video."""

    def __init__(self, path: Path) -> None:
        import h5py

        self.file: Any = h5py.File(path, "r", locking=False)

    def get(self, name: str) -> Callable[[], Any] | None:
        """Return the reader of an object by name, such as ``monday/v1``; None if absent."""
        import h5py

        thing = self.file
        for part in name.split("/"):
            named = isinstance(thing, h5py.Group) and part not in ("", ".") and "\0" not in part
            link = thing.get(part, getlink=True) if named else None
            if link is None:
                return None
            thing = _followed(thing, part, link)
        return partial(read_thing, thing)


def _followed(group: Any, name: str, link: Any) -> Any:
    """Return the object of a hard link; refuse soft and external links."""
    import h5py

    if not isinstance(link, h5py.HardLink):
        kind = "an external link" if isinstance(link, h5py.ExternalLink) else "a soft link"
        raise DataError(
            f"must hold its numbers itself, got {kind} ({name!r}), which is not followed; "
            f"copy the dataset into the file"
        )
    return group[name]


def read_thing(thing: Any) -> Any:
    """Return a dataset, or the only one of a group, if all its numbers are in the file."""
    import h5py

    if isinstance(thing, h5py.Group):
        links: dict[str, Any] = {}
        thing.visititems_links(links.__setitem__)  # each group once, if they hold one another
        things = {name: _followed(thing, name, link) for name, link in links.items()}
        sets = {name: one for name, one in things.items() if isinstance(one, h5py.Dataset)}
        return only({name: partial(read_thing, one) for name, one in sets.items()})
    if not isinstance(thing, h5py.Dataset):
        raise DataError(f"must be a dataset, got a {type(thing).__name__}")
    if thing.is_virtual or thing.id.get_create_plist().get_external_count():
        raise DataError(
            "must hold its numbers itself, got a dataset that lies in other files, "
            "which are not read; copy it into the file"
        )
    # The caller checks for empty and too large arrays.
    if 0 < math.prod(thing.shape or (0,)) * thing.dtype.itemsize <= LARGEST:
        _check_chunks(thing)
    return thing


def _check_chunks(dataset: Any) -> None:
    """Refuse missing and short chunks, which HDF5 would fill with values of its own."""
    import h5py

    if dataset.id.get_space_status() != h5py.h5d.SPACE_STATUS_ALLOCATED:
        raise DataError("must be complete, got a part of it; write it again")
    plan = dataset.id.get_create_plist()
    filters = [plan.get_filter(place)[0] for place in range(plan.get_nfilters())]
    if filters != [one for one in (_SHUFFLE, _DEFLATE, _CHECKSUM) if one in filters]:
        raise DataError(
            f"must be compressed with gzip or not at all, got filters {filters[:5]}; "
            f"save it again with compression='gzip'"
        )
    for number in range(dataset.id.get_num_chunks()) if _DEFLATE in filters else ():
        place = dataset.id.get_chunk_info(number).chunk_offset
        mask, data = dataset.id.read_direct_chunk(place)
        size = math.prod(dataset.chunks) * dataset.id.get_type().get_size()
        if mask >> filters.index(_DEFLATE) & 1:  # this one is not compressed
            found = len(data) - 4 * (_CHECKSUM in filters)
        else:
            found = len(zlib.decompressobj().decompress(data, size + 1))
        if found != size:
            raise DataError(
                "must have chunks of the stated size, got one of another size; "
                "the file is damaged, fetch or write it again"
            )
