"""Arrays in the files of numpy."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.errors import DataError
from stepgraph.files.arrays.checks import LARGEST, Reader, Wanted
from stepgraph.files.disk import MIB

_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_npy(path: Path, wanted: Wanted) -> NDArray[Any]:
    """Read a file of ``numpy.save``."""
    with path.open("rb") as file:
        return _read_stream(file, path.stat().st_size, wanted)


def read_npz(path: Path, wanted: Wanted) -> NDArray[Any]:
    """Read a file of ``numpy.savez`` that holds one array."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if len(members) != 1:
            names = [member.filename for member in members[:5]]
            raise DataError(f"{wanted.where}: must hold one array, got {len(members)}: {names}")
        return _read_member(archive, members[0], wanted)


def open_npz(path: Path) -> dict[str, Reader]:
    """Open a file of ``numpy.savez``, in which each array is called like its video."""
    archive = zipfile.ZipFile(path)
    return {
        member.filename.removesuffix(".npy"): partial(_read_member, archive, member)
        for member in archive.infolist()
    }


def read_arrays(path: Path, names: Sequence[str]) -> list[NDArray[Any]]:
    """Read arrays of real numbers of any shape by name, from a file that has no others."""
    with zipfile.ZipFile(path) as archive:
        members = {member.filename: member for member in archive.infolist()}
        if set(members) != {f"{name}.npy" for name in names}:
            raise DataError(f"{path}: must hold {', '.join(names)}, got {sorted(members)[:5]}")
        return [
            _read_member(
                archive, members[f"{name}.npy"], Wanted(f"{path}: {name}", any_shape=True)
            )
            for name in names
        ]


def _read_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, wanted: Wanted
) -> NDArray[Any]:
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(
            f"{wanted.where}: must be as numpy.savez writes it, got another compression"
        )
    if (size := member.file_size) > LARGEST:
        raise DataError(
            f"{wanted.where}: must hold an array of at most {LARGEST / MIB:,.0f} MiB, "
            f"got {size / MIB:,.0f} MiB"
        )
    with archive.open(member) as file:
        return _read_stream(file, size, wanted)


def _read_stream(file: IO[bytes], size: int, wanted: Wanted) -> NDArray[Any]:
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise DataError(f"{wanted.where}: must be in version 1 or 2 of its format, got {version}")
    shape, _, dtype = _HEADERS[version](file)
    wanted.check(shape, dtype)
    wanted.check_size(shape, dtype.itemsize, size - file.tell())
    file.seek(0)
    return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
