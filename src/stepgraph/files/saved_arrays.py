"""Files with a header and arrays in one ``.npz``, which numpy can open."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.errors import DataError
from stepgraph.files.arrays import ArrayContent, read_arrays
from stepgraph.files.arrays.checks import Wanted
from stepgraph.files.arrays.reader import READER
from stepgraph.files.disk import MIB, encoded, parse_json, replacing, require_file
from stepgraph.files.headers import FileKind, check_header


def write_arrays(path: Path, fields: Mapping[str, Any], **arrays: NDArray[Any]) -> None:
    """Write header fields and arrays, atomically."""
    text = encoded(json.dumps(fields, ensure_ascii=False), path)
    content: dict[str, Any] = {"header": np.frombuffer(text, np.uint8), **arrays}
    with replacing(path) as partial, partial.open("wb") as file:
        np.savez_compressed(file, **content)


def read_saved(
    path: Path, kind: FileKind, names: Sequence[str]
) -> tuple[dict[str, Any], list[NDArray[Any]]]:
    """Read the header fields and the named arrays of a file; refuse another kind."""
    fields = read_fields(path)
    check_header(fields, path, kind)
    _, *arrays = read_arrays(path, ("header", *names), ArrayContent(kind.noun))
    return fields, arrays


def read_fields(path: Path) -> dict[str, Any]:
    """Read the header fields alone."""
    require_file(path)
    wanted = Wanted(str(path), ArrayContent("arrays"), format=".npz")
    if not READER.ask("has", path, wanted, "header")["has"]:
        raise DataError(f"{path}: must be saved by stepgraph, got arrays without a header")
    data = READER.read(path, wanted, "header").tobytes()
    if len(data) > 64 * MIB:
        raise DataError(f"{path}: must have a header of at most 64 MiB, got a larger one")
    fields = parse_json(data.decode(errors="replace"), str(path))
    return fields if isinstance(fields, dict) else {}
