"""What was got out of a file at some cost, kept beside the cache by the content of the file.

A file that was moved, copied or renamed is known again; one that is damaged is not.
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


def place_of(path: Path, kind: str, maker: str) -> Path:
    """Where what a ``maker`` makes of a file is kept."""
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
    """The sentences that are kept, and all that is; None where none are, or damaged ones."""
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
    """Keep something; where that cannot be, a warning says what the next run does again."""
    try:
        write_text(place, json.dumps(content, ensure_ascii=False))
    except DataError as error:
        warnings.warn(
            f"{what} cannot be kept ({error}); the next run {again} again; set "
            f"STEPGRAPH_CACHE to a folder that can be written",
            stacklevel=3,
        )


def require_hashes(folder: Path, sums: Mapping[str, str], what: str, package: str) -> None:
    """Refuse files of a packaged model that are not what they were."""
    for name, expected in sums.items():
        there = (folder / name).is_file()
        digest = _hashed(folder / name, hashlib.sha256()) if there else "no such file"
        if digest != expected:
            raise DataError(
                f"{folder / name}: {what} must have sha256 {expected}, got {digest}; "
                f"reinstall: pip install --force-reinstall {package}"
            )
