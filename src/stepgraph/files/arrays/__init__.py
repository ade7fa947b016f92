"""Arrays of numbers that were computed elsewhere, one for each video: its rows by some columns.

An array lies in a file of its own in a folder, or all of them lie in one file.  No file is
trusted: none can run code, none can lead to another file, and none can claim more memory than
its content or 1 GiB.  Of a file with many arrays, only the one asked for is read.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stepgraph.errors import DataError
from stepgraph.files.arrays import hdf5, numpy_files, parquet, pickled, tensors
from stepgraph.files.arrays.checks import FEATURES, LARGEST, Kind, Reader, Wanted, explaining
from stepgraph.files.arrays.numpy_files import read_arrays
from stepgraph.files.disk import MIB

__all__ = [
    "FEATURES",
    "SUFFIXES",
    "ArrayFiles",
    "Kind",
    "open_arrays",
    "read_array",
    "read_arrays",
]

_READERS: dict[str, Callable[[Path, Wanted], NDArray[Any]]] = {
    ".npy": numpy_files.read_npy,
    ".npz": numpy_files.read_npz,
    ".pt": tensors.read_pt,
    ".pkl": pickled.read_pkl,
    ".h5": hdf5.read_h5,
    ".hdf5": hdf5.read_h5,
    ".parquet": parquet.read_parquet,
}
SUFFIXES = tuple(_READERS)
"""Suffixes of the files of one array; of several files of a video the first is taken."""


def read_array(
    path: Path, *, kind: Kind = FEATURES, width: int | None = None
) -> NDArray[np.float32]:
    """Read the array of finite numbers that a file holds; ``width`` is that of its columns."""
    wanted = Wanted(str(path), kind, width)
    with explaining(wanted.where, path.suffix, kind):
        if (size := path.stat().st_size) > LARGEST:
            raise DataError(f"{path}: must be at most 1 GiB, got {size / MIB:,.0f} MiB")
        return wanted.finished(_READERS[path.suffix](path, wanted))


class ArrayFiles:
    """The arrays of many videos: here in a folder with a file for each, below in one file."""

    def __init__(self, path: Path, kind: Kind = FEATURES) -> None:
        self.path = path
        self.kind = kind

    def names(self, video: str) -> list[str]:
        """What holds the array of a video: nothing, one thing, or several by mistake."""
        # An id may name a folder below this one, but not lead out of it.
        inside = video and not Path(video).is_absolute() and ".." not in Path(video).parts
        files = [f"{video}{suffix}" for suffix in SUFFIXES] if inside else []
        return [file for file in files if _is_file(self.path / file)]

    def where(self, video: str) -> str:
        """Where the array of a video is or should be, as messages begin."""
        return str(self.path / next(iter(self.names(video)), video))

    def absence(self) -> str:
        """What is wrong with a video that has no array."""
        return f"must be a file of stored {self.kind.noun} ({', '.join(SUFFIXES)}), got none"

    def read(self, video: str, width: int | None = None) -> NDArray[np.float32]:
        """Read the array of a video; see :func:`read_array`."""
        if not self.names(video):
            raise DataError(f"{self.where(video)}: {self.absence()}")
        return read_array(self.path / self.names(video)[0], kind=self.kind, width=width)


class _Opened(Protocol):
    """An open file that holds several arrays, such as a dict."""

    def get(self, name: str, /) -> Reader | None: ...


_OPENERS: dict[str, Callable[[Path], _Opened]] = {
    ".npz": numpy_files.open_npz,
    ".pt": tensors.open_pt,
    ".h5": hdf5.OpenFile,
    ".hdf5": hdf5.OpenFile,
    ".parquet": parquet.open_videos,
}


class _OneFile(ArrayFiles):
    """Arrays in one file; it is opened here, and closed when nobody needs it."""

    def __init__(self, path: Path, kind: Kind) -> None:
        super().__init__(path, kind)
        with explaining(str(path), path.suffix, kind):
            self._opened = _OPENERS[path.suffix](path)

    def names(self, video: str) -> list[str]:
        with explaining(self.where(video), self.path.suffix, self.kind):
            return [] if self._opened.get(video) is None else [video]

    def where(self, video: str) -> str:
        return f"{self.path}:{video}"

    def absence(self) -> str:
        return f"must be an array of stored {self.kind.noun} in that file, got none"

    def read(self, video: str, width: int | None = None) -> NDArray[np.float32]:
        wanted = Wanted(self.where(video), self.kind, width)
        with explaining(wanted.where, self.path.suffix, self.kind):
            reader = self._opened.get(video)
            if reader is None:
                raise DataError(f"{wanted.where}: {self.absence()}")
            return wanted.finished(reader(wanted))


def open_arrays(path: Path, kind: Kind = FEATURES) -> ArrayFiles:
    """Open a folder with a file for each video, or one file with an array for each.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "monday.npy", np.ones((3, 2)))
    ...     open_arrays(Path(folder)).read("monday").shape
    (3, 2)
    """
    if path.is_dir():
        return ArrayFiles(path, kind)
    if not _is_file(path):
        raise DataError(
            f"{path}: must be a folder of stored {kind.noun}, got no folder and no file; "
            f"check the path"
        )
    if path.suffix not in _OPENERS:
        raise DataError(
            f"{path}: must be a folder of stored {kind.noun}, or one file with an array for each "
            f"video ({', '.join(_OPENERS)}), got a file {path.suffix or 'without suffix'}; "
            f"put the file of one video into a folder, and give the folder"
        )
    return _OneFile(path, kind)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name too long for a file, or with a zero byte
        return False
