"""What a long run has finished, kept in a file so that an interrupted one goes on.

Each result is kept under a key of everything that decides it: the program, the videos and their
truth, the vocabulary, the encoder, the method and all options.  Whatever changes, the key
changes, so that a result is never taken for another.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from stepgraph import __version__
from stepgraph.core import Vocabulary
from stepgraph.files.disk import read_json, write_text
from stepgraph.files.headers import FileKind, check_header, reading_fields
from stepgraph.graph import TaskGraph
from stepgraph.labelling import graph_fingerprint

_KIND = FileKind(
    "stepgraph-reproduce", 1, "file of finished results", "name another file, or delete this one"
)

Numbers: TypeAlias = dict[str, float | None]
"""Metrics by name; an undefined one is None.  Standard errors end in ``±``."""


class State:
    """Finished results by key, in a JSON file to go on from, or only in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._done: dict[str, Numbers] = _read(path) if path and path.exists() else {}

    def get(self, decided_by: Mapping[str, Any], compute: Callable[[], Numbers]) -> Numbers:
        """Take a finished result, or compute it and keep it under all that decides it."""
        key = digest({"stepgraph": __version__, "code": _code(), **decided_by})
        if key not in self._done:
            self._done[key] = compute()
            if self.path:
                content = {"format": _KIND.format, "version": _KIND.version, "done": self._done}
                write_text(self.path, json.dumps(content, indent=1) + "\n")
        return self._done[key]


def digest(content: Any) -> str:
    """A short hash of plain values, arrays, graphs, and dataclasses and collections of these.

    All fields of a dataclass count, so that none can be forgotten; a value that is not known
    here is an error, not left out.

    >>> digest({"a": 1, "b": (2,)}) == digest({"b": [2], "a": 1})
    True
    """
    text = json.dumps(content, sort_keys=True, default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _plain(value: Any) -> Any:
    """What JSON has no word for, in words that it has."""
    if isinstance(value, Vocabulary):
        return value.fingerprint
    if isinstance(value, TaskGraph):
        return graph_fingerprint(value)
    if isinstance(value, np.ndarray):
        hashed = hashlib.sha256(np.ascontiguousarray(value).tobytes())
        return [value.dtype.str, value.shape, hashed.hexdigest()]
    if is_dataclass(value):
        return {one.name: getattr(value, one.name) for one in fields(value)}
    if isinstance(value, Mapping | Sequence):
        return dict(value) if isinstance(value, Mapping) else list(value)
    raise TypeError(f"a hash must be of plain values, arrays and dataclasses, got {value!r}")


def _read(path: Path) -> dict[str, Numbers]:
    content = read_json(path)
    check_header(content, path, _KIND)
    with reading_fields(path, _KIND):
        return {
            key: {name: None if value is None else float(value) for name, value in one.items()}
            for key, one in content["done"].items()
        }


@cache
def _code() -> str:
    """A hash of this package's source: one version of it may be in the making for long."""
    folder = Path(__file__).parents[1]
    hashed = hashlib.sha256()
    for path in sorted((*folder.rglob("*.py"), *folder.rglob("*.toml"))):
        hashed.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return hashed.hexdigest()[:32]
