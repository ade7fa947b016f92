"""Tables of numbers that were computed elsewhere, one for each video.

A table lies in a file of its own in a folder, or all of them lie in one file.  No file is
trusted: none can run code, none can lead to another file, and none can claim more memory than
its content or 1 GiB.  Of a file with many tables, only the one asked for is read.
"""

from __future__ import annotations

import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.errors import DataError
from stepgraph.files.arrays import hdf5, numpy_files, parquet, tensors
from stepgraph.files.arrays.checks import FEATURES, LARGEST, Kind, Wanted, reading
from stepgraph.files.arrays.numpy_files import read_arrays
from stepgraph.files.disk import MIB

__all__ = ["FEATURES", "SUFFIXES", "Kind", "Tables", "open_tables", "read_arrays", "read_table"]

_READERS: dict[str, Callable[[Path, Wanted], NDArray[Any]]] = {
    ".npy": numpy_files.read_npy,
    ".npz": numpy_files.read_npz,
    ".pt": tensors.read_pt,
    ".pkl": numpy_files.read_pkl,
    ".h5": hdf5.read_h5,
    ".hdf5": hdf5.read_h5,
    ".parquet": parquet.read_parquet,
}
SUFFIXES = tuple(_READERS)
"""Suffixes of the files of one table; of several files of a video the first is taken."""


def read_table(
    path: Path, *, kind: Kind = FEATURES, width: int | None = None
) -> NDArray[np.float32]:
    """Read the table of a file that holds one.

    Parameters
    ----------
    kind
        What the table holds, in the words of messages.
    width
        How many columns it must have; None for any number.

    Raises
    ------
    DataError
        For a file that cannot be used: a single table of finite numbers is what it must hold.
    """
    wanted = Wanted(str(path), kind, width)
    with reading(wanted.where, path.suffix, kind):
        if (size := path.stat().st_size) > LARGEST:
            raise DataError(f"{path}: must be at most 1 GiB, got {size / MIB:,.0f} MiB")
        return wanted.finished(_READERS[path.suffix](path, wanted))


class Tables:
    """The tables of many videos: here in a folder, below in one file of each format."""

    def __init__(self, path: Path, kind: Kind = FEATURES) -> None:
        self.path = path
        self.kind = kind

    def names(self, video: str) -> list[str]:
        """What holds the table of a video: nothing, one thing, or several by mistake."""
        # An id may name a folder below this one, but not lead out of it.
        inside = video and not Path(video).is_absolute() and ".." not in Path(video).parts
        files = [f"{video}{suffix}" for suffix in SUFFIXES] if inside else []
        return [file for file in files if _is_file(self.path / file)]

    def find(self, video: str) -> str | None:
        """Name of what holds the table of a video, or None."""
        return next(iter(self.names(video)), None)

    def where(self, video: str) -> str:
        """Where the table of a video is or should be, as messages begin."""
        return str(self.path / (self.find(video) or video))

    def read(self, video: str, width: int | None = None) -> NDArray[np.float32]:
        """Read the table of a video; see :func:`read_table`."""
        if self.find(video) is None:
            raise DataError(f"{self.where(video)}: {self.absence()}")
        return self._read(video, width)

    def absence(self) -> str:
        """What is wrong with a video that has no table."""
        return f"must be a file of stored {self.kind.noun} ({', '.join(SUFFIXES)}), got none"

    def _read(self, video: str, width: int | None) -> NDArray[np.float32]:
        return read_table(self.path / self.names(video)[0], kind=self.kind, width=width)


class _OneFile(Tables, ABC):
    """Tables in one file; it is opened here, and closed when nobody needs it."""

    def __init__(self, path: Path, kind: Kind = FEATURES) -> None:
        super().__init__(path, kind)
        with reading(str(path), path.suffix, kind):
            self._open()

    def names(self, video: str) -> list[str]:
        return [video] if self._holds(video) else []

    def where(self, video: str) -> str:
        return f"{self.path}:{video}"

    def absence(self) -> str:
        return f"must be a table of stored {self.kind.noun} in that file, got none"

    def _read(self, video: str, width: int | None) -> NDArray[np.float32]:
        wanted = Wanted(self.where(video), self.kind, width)
        with reading(wanted.where, self.path.suffix, self.kind):
            return wanted.finished(self._load(video, wanted))

    @abstractmethod
    def _open(self) -> None: ...

    @abstractmethod
    def _holds(self, video: str) -> bool: ...

    @abstractmethod
    def _load(self, video: str, wanted: Wanted) -> NDArray[Any]: ...


class _Archive(_OneFile):
    """Arrays of ``numpy.savez``, each called like its video."""

    def _open(self) -> None:
        self._file = zipfile.ZipFile(self.path)
        self._members = {member.filename: member for member in self._file.infolist()}

    def _holds(self, video: str) -> bool:
        return f"{video}.npy" in self._members

    def _load(self, video: str, wanted: Wanted) -> NDArray[Any]:
        return numpy_files.read_member(self._file, self._members[f"{video}.npy"], wanted)


class _Tensors(_OneFile):
    """A dict of tensors by video."""

    def _open(self) -> None:
        self._tensors = tensors.load_tensors(self.path)
        self._size = self.path.stat().st_size

    def _holds(self, video: str) -> bool:
        return video in self._tensors

    def _load(self, video: str, wanted: Wanted) -> NDArray[Any]:
        return tensors.as_table(self._tensors[video], wanted, self._size)


class _Hdf5(_OneFile):
    """A dataset for each video, or a group with one dataset."""

    def _open(self) -> None:
        self._file = hdf5.open_h5(self.path)

    def _holds(self, video: str) -> bool:
        with reading(self.where(video), self.path.suffix, self.kind):
            return hdf5.find_link(self._file, video)

    def _load(self, video: str, wanted: Wanted) -> NDArray[Any]:
        return hdf5.read_named(self._file, video, wanted)


class _Parquet(_OneFile):
    """Rows with the name of their video in a column."""

    def _open(self) -> None:
        file = parquet.open_parquet(self.path)
        self._spans = parquet.find_spans(file, self.path)
        self._rows = parquet.Rows(file)

    def _holds(self, video: str) -> bool:
        return video in self._spans

    def _load(self, video: str, wanted: Wanted) -> NDArray[Any]:
        return self._rows.read(self._spans[video], wanted)


_STORES: dict[str, type[_OneFile]] = {
    ".npz": _Archive,
    ".pt": _Tensors,
    ".h5": _Hdf5,
    ".hdf5": _Hdf5,
    ".parquet": _Parquet,
}


def open_tables(path: Path, kind: Kind = FEATURES) -> Tables:
    """Open a folder with a file for each video, or one file with a table for each.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "monday.npy", np.ones((3, 2)))
    ...     open_tables(Path(folder)).read("monday").shape
    (3, 2)
    """
    if path.is_dir():
        return Tables(path, kind)
    if not _is_file(path):
        raise DataError(
            f"{path}: must be a folder of stored {kind.noun}, got no folder and no file; "
            f"check the path"
        )
    if path.suffix not in _STORES:
        raise DataError(
            f"{path}: must be a folder of stored {kind.noun}, or one file with a table for each "
            f"video ({', '.join(_STORES)}), got a file {path.suffix or 'without suffix'}; put the "
            f"file of one video into a folder, and give the folder"
        )
    return _STORES[path.suffix](path, kind)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name too long for a file, or with a zero byte
        return False
