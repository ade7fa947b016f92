"""Cache of transcripts and screen text, keyed by a hash of the content of the file.

A file that was moved, copied or renamed keeps its entry; a damaged entry is ignored.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from stepgraph.core import Sentence, is_unicode
from stepgraph.errors import DataError
from stepgraph.files.disk import MIB, cache_folder, read_json, reading, write_text
from stepgraph.files.headers import as_seconds, as_text


def cache_path(path: Path, kind: str, maker: str) -> Path:
    """Path of the cache entry of a file, for a ``kind`` of result and its ``maker``."""
    file = path.stat()
    digest = _digest(path.absolute(), file.st_size, file.st_mtime_ns)
    return cache_folder() / kind / maker / f"{digest}.json"


@lru_cache(maxsize=4096)
def _digest(path: Path, _size: int, _changed: int) -> str:
    return _hashed(path, hashlib.blake2b(digest_size=16))


def _hashed(path: Path, digest: Any) -> str:
    with reading(path) as file:
        while block := file.read(MIB):
            digest.update(block)
    return str(digest.hexdigest())


def recall(place: Path) -> tuple[tuple[Sentence, ...], Mapping[str, Any]] | None:
    """Load the sentences and all fields of a cache entry; None if it is missing or damaged."""
    with suppress(DataError, OSError, KeyError, TypeError, ValueError):
        kept = read_json(place)
        said = [
            Sentence(as_seconds(a), as_seconds(b), as_text(c)) for a, b, c in kept["sentences"]
        ]
        usable = (
            one.start < one.end and one.text.strip() and is_unicode(one.text) for one in said
        )
        if said == sorted(said) and all(usable):
            return tuple(said), kept
    return None


def keep(place: Path, content: Mapping[str, Any], what: str, again: str) -> None:
    """Write a cache entry; if that fails, a warning names what the next run does again."""
    try:
        write_text(place, json.dumps(content, ensure_ascii=False))
    except DataError as error:
        warnings.warn(
            f"{what} cannot be cached ({error}); the next run {again} again; set "
            f"STEPGRAPH_CACHE to a folder that can be written",
            stacklevel=3,
        )


def require_hashes(folder: Path, sums: Mapping[str, str], what: str, package: str) -> None:
    """Refuse files of a packaged model whose SHA-256 hashes differ from ``sums``."""
    for name, expected in sums.items():
        there = (folder / name).is_file()
        digest = _hashed(folder / name, hashlib.sha256()) if there else "no such file"
        if digest != expected:
            raise DataError(
                f"{folder / name}: {what} must have sha256 {expected}, got {digest}; "
                f"reinstall: pip install --force-reinstall {package}"
            )
