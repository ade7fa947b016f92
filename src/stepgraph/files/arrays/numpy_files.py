"""Tables in the files of numpy, and in pickles of numbers."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.errors import DataError
from stepgraph.files.arrays.checks import LARGEST, Wanted
from stepgraph.files.disk import MIB
from stepgraph.files.pickles import read_numbers

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
        return read_member(archive, members[0], wanted)


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, wanted: Wanted) -> NDArray[Any]:
    """Read one array of a file of ``numpy.savez``."""
    size = _checked_size(member, wanted.where)
    with archive.open(member) as file:
        return _read_stream(file, size, wanted)


def read_arrays(path: Path, names: Sequence[str], *, limit: int = LARGEST) -> list[NDArray[Any]]:
    """Read arrays of real numbers of any shape by name, from a file that has no others."""
    found = []
    with zipfile.ZipFile(path) as archive:
        members = {member.filename: member for member in archive.infolist()}
        if set(members) != {f"{name}.npy" for name in names}:
            raise DataError(f"{path}: must hold {', '.join(names)}, got {sorted(members)[:5]}")
        for name in names:
            member = members[f"{name}.npy"]
            where = f"{path}: {name}"
            size = _checked_size(member, where, limit)
            with archive.open(member) as file:
                shape, dtype = _read_header(file, where)
                if dtype.kind not in "fiu":
                    raise DataError(f"{where} must be real numbers, got values of type {dtype}")
                if any(n < 0 for n in shape):
                    raise DataError(f"{where} must have a shape, got {shape}")
                Wanted(where).check_size((*shape, 1), dtype.itemsize, size - file.tell())
                file.seek(0)
                found.append(np.asarray(np.lib.format.read_array(file, allow_pickle=False)))
    return found


def _checked_size(member: zipfile.ZipInfo, where: str, limit: int = LARGEST) -> int:
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(f"{where}: must be as numpy.savez writes it, got another compression")
    if (size := member.file_size) > limit:
        raise DataError(
            f"{where}: must hold an array of at most {limit / MIB:,.0f} MiB, "
            f"got {size / MIB:,.0f} MiB"
        )
    return size


def _read_stream(file: IO[bytes], size: int, wanted: Wanted) -> NDArray[Any]:
    shape, dtype = _read_header(file, wanted.where)
    wanted.check(shape, dtype)
    wanted.check_size(shape, dtype.itemsize, size - file.tell())
    file.seek(0)
    return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def _read_header(file: IO[bytes], where: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise DataError(f"{where}: must be in version 1 or 2 of its format, got {version}")
    shape, _, dtype = _HEADERS[version](file)
    return shape, dtype


def read_pkl(path: Path, wanted: Wanted) -> NDArray[Any]:
    """Read a pickle of an array, or of a list of arrays, one a row."""
    content = read_numbers(path)
    if isinstance(content, np.ndarray):
        wanted.check(content.shape, content.dtype)
        return content
    if not isinstance(content, list):
        raise DataError(
            f"{wanted.where}: must hold a list of arrays, one a row, "
            f"got a {type(content).__name__}"
        )
    width = wanted.width or (content[0].size if _is_row(content[:1]) else 1)
    for row, part in enumerate(content):
        if not isinstance(part, np.ndarray) or part.shape not in ((1, width), (width,)):
            got = part.shape if isinstance(part, np.ndarray) else f"a {type(part).__name__}"
            hint = wanted.kind.hint.replace("were they", "was it")
            raise DataError(
                f"{wanted.where}: row {row} must be an array of shape (1, {width}), got {got}; "
                f"{hint}"
            )
    return np.array([part.ravel() for part in content]).reshape(-1, width)


def _is_row(content: list[Any]) -> bool:
    """Whether the first of a list is an array that can be a row, so that its width is meant."""
    first = content[0] if content else None
    return isinstance(first, np.ndarray) and first.ndim in (1, 2) and first.size > 0
