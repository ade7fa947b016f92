"""A header and some arrays in one ``.npz``, which numpy opens, too."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.errors import DataError
from stepgraph.files.arrays import Kind, read_arrays
from stepgraph.files.arrays.checks import explaining
from stepgraph.files.disk import MIB, encoded, parse_json, replacing, require_file
from stepgraph.files.headers import FileKind, check_header

_HEADER = "header.npy"


def write_arrays(path: Path, fields: Mapping[str, Any], **arrays: NDArray[Any]) -> None:
    """Write fields and arrays, whole or not at all."""
    text = encoded(json.dumps(fields, ensure_ascii=False), path)
    content: dict[str, Any] = {"header": np.frombuffer(text, np.uint8), **arrays}
    with replacing(path) as partial, partial.open("wb") as file:
        np.savez_compressed(file, **content)


def read_saved(
    path: Path, kind: FileKind, names: Sequence[str]
) -> tuple[dict[str, Any], list[NDArray[Any]]]:
    """Read the fields and arrays of a file of some kind."""
    fields = read_fields(path)
    check_header(fields, path, kind)
    with explaining(str(path), ".npz", Kind(kind.noun)):
        _, *arrays = read_arrays(path, ("header", *names))
    return fields, arrays


def read_fields(path: Path) -> dict[str, Any]:
    """Read the fields alone."""
    require_file(path)
    with explaining(str(path), ".npz", Kind("arrays")), zipfile.ZipFile(path) as archive:
        if _HEADER not in archive.namelist():
            raise DataError(f"{path}: must be saved by stepgraph, got arrays without a header")
        if archive.getinfo(_HEADER).file_size > 64 * MIB:
            raise DataError(f"{path}: must have a header of at most 64 MiB, got a larger one")
        with archive.open(_HEADER) as file:
            text = np.lib.format.read_array(file, allow_pickle=False).tobytes().decode()
    fields: dict[str, Any] = parse_json(text, str(path))
    return fields
