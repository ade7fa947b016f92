"""Arrays that other programs computed, one for each video, of shape (rows, columns).

A folder has one file for each array, or one file has all arrays.  No file is trusted: a child
process reads it (see :mod:`~stepgraph.files.arrays.reader`), no file can run code or lead to
another file, and no array may exceed 1 GiB.  Of a file with many arrays, only the requested one
is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.errors import DataError
from stepgraph.files.arrays.checks import FEATURES, ArrayContent, Wanted
from stepgraph.files.arrays.reader import READER

__all__ = [
    "FEATURES",
    "SUFFIXES",
    "ArrayContent",
    "ArrayFiles",
    "open_arrays",
    "read_array",
    "read_arrays",
]

SUFFIXES = (".npy", ".npz", ".pt", ".pkl", ".h5", ".hdf5", ".parquet")
"""Suffixes of files with one array; of several files of a video, the first of these is read."""

_OF_MANY = (".npz", ".pt", ".h5", ".hdf5", ".parquet")


def read_array(
    path: Path, *, kind: ArrayContent = FEATURES, width: int | None = None
) -> NDArray[np.float32]:
    """Read the only array of a file as float32, shape (rows, ``width``); it must be finite."""
    wanted = Wanted(str(path), kind, width)
    return wanted.finished(READER.read(path, wanted))


def read_arrays(
    path: Path, names: Sequence[str], kind: ArrayContent = FEATURES
) -> list[NDArray[Any]]:
    """Read the named arrays, of any shape, from an ``.npz`` file with these and no others."""
    found = READER.ask("open", path, Wanted(str(path), kind, format=".npz"))["names"]
    if set(found) != set(names):
        raise DataError(f"{path}: must hold {', '.join(names)}, got {found}")
    return [READER.read(path, Wanted(f"{path}: {n}", kind, format=".npz"), n) for n in names]


class ArrayFiles:
    """Stored arrays of many videos, in a folder with a file for each."""

    def __init__(self, path: Path, kind: ArrayContent = FEATURES) -> None:
        self.path = path
        self.kind = kind

    def names(self, video: str) -> list[str]:
        """List the files with the array of a video: none, one, or several by mistake."""
        # An id may name a folder below this one, but not lead out of it.
        inside = video and not Path(video).is_absolute() and ".." not in Path(video).parts
        files = [f"{video}{suffix}" for suffix in SUFFIXES] if inside else []
        return [file for file in files if _is_file(self.path / file)]

    def where(self, video: str) -> str:
        """Path of the array of a video, present or expected, for the start of a message."""
        return str(self.path / next(iter(self.names(video)), video))

    def absence(self) -> str:
        """Error text for a video that has no array."""
        return f"must be a file of stored {self.kind.noun} ({', '.join(SUFFIXES)}), got none"

    def read(self, video: str, width: int | None = None) -> NDArray[np.float32]:
        """Read the array of a video; see :func:`read_array`."""
        names = self.names(video)
        if not names:
            raise DataError(f"{self.where(video)}: {self.absence()}")
        return self._read(names[0], Wanted(self.where(video), self.kind, width))

    def _read(self, name: str, wanted: Wanted) -> NDArray[np.float32]:
        return wanted.finished(READER.read(self.path / name, wanted))


class _OneFile(ArrayFiles):
    """Stored arrays of many videos in one file, which the reader process keeps open."""

    def __init__(self, path: Path, kind: ArrayContent) -> None:
        super().__init__(path, kind)
        READER.ask("open", path, Wanted(str(path), kind))

    def names(self, video: str) -> list[str]:
        wanted = Wanted(self.where(video), self.kind)
        return [video] if READER.ask("has", self.path, wanted, video)["has"] else []

    def where(self, video: str) -> str:
        return f"{self.path}:{video}"

    def absence(self) -> str:
        return f"must be an array of stored {self.kind.noun} in that file, got none"

    def _read(self, name: str, wanted: Wanted) -> NDArray[np.float32]:
        return wanted.finished(READER.read(self.path, wanted, name))


def open_arrays(path: Path, kind: ArrayContent = FEATURES) -> ArrayFiles:
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
    if path.suffix not in _OF_MANY:
        raise DataError(
            f"{path}: must be a folder of stored {kind.noun}, or one file with an array for each "
            f"video ({', '.join(_OF_MANY)}), got a file {path.suffix or 'without suffix'}; "
            f"put the file of one video into a folder, and give the folder"
        )
    return _OneFile(path, kind)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name too long for a file, or with a zero byte
        return False
