"""Cache of embeddings on disk, by model and text.

Each model has one SQLite file: two processes may use it at once, and a killed process leaves no
partial rows.  Every row has a checksum of its text and its vector.  A file that SQLite reports as
damaged is renamed and replaced by a new one; damage costs no more than encoding again.
"""

from __future__ import annotations

import os
import re
import sqlite3
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepgraph.files.disk import cache_folder

# Variables per query; SQLite allows 32,766.
_CHUNK = 1000
# Seconds to wait while another process writes.
_PATIENCE = 60.0
_CHECKSUM = 8
# Version of the checksum, a part of the file name: files of other versions are not read.
_VERSION = 2
# Error codes of SQLite where the disk or another process is at fault, and not the file.
_ELSEWHERE = frozenset(
    getattr(sqlite3, f"SQLITE_{name}")
    for name in ("BUSY", "CANTOPEN", "FULL", "IOERR", "LOCKED", "NOMEM", "PERM", "READONLY")
)


class EmbeddingCache:
    """Cached embeddings of texts by one ``model``, which names the weights and the precision."""

    def __init__(self, model: str, folder: Path | None = None) -> None:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", model)[:80]
        digest = blake2b(model.encode(), digest_size=4).hexdigest()
        self.path = (
            (folder or cache_folder()) / "embeddings" / f"{name}-{digest}-{_VERSION}.sqlite"
        )
        self._usable = True

    def load(self, texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Return the stored vectors of texts, without missing and damaged ones."""
        by_key = {_key(text): text for text in texts}
        keys = list(by_key)
        found: dict[str, NDArray[np.float32]] = {}

        def look_up(database: sqlite3.Connection) -> None:
            for start in range(0, len(keys), _CHUNK):
                chunk = keys[start : start + _CHUNK]
                marks = ",".join("?" * len(chunk))
                query = f"SELECT key, vector FROM embeddings WHERE key IN ({marks})"
                for key, blob in database.execute(query, chunk):
                    vector = _unpack(key, blob)
                    if key in by_key and vector is not None:
                        found[by_key[key]] = vector

        self._with_database(look_up)
        return found

    def store(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Store the vectors of texts, all of them or none."""
        keys = map(_key, texts)
        rows = [(key, _pack(key, vector)) for key, vector in zip(keys, vectors, strict=True)]
        query = "INSERT OR REPLACE INTO embeddings VALUES (?, ?)"
        self._with_database(lambda database: database.executemany(query, rows))

    def _with_database(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Run ``work`` on the open database; do nothing if the cache cannot be used."""
        for attempt in ("with what is there", "anew"):
            if not self._usable:
                return
            try:
                with closing(self._open()) as connection, connection:
                    work(connection)
                return
            except (OSError, sqlite3.Error, ValueError) as error:  # or bytes that are no text
                # The lowest byte is the kind of the error, the others are details.
                code = getattr(error, "sqlite_errorcode", 0) & 0xFF
                if isinstance(error, OSError) or code in _ELSEWHERE or attempt == "anew":
                    self._give_up(error)
                else:
                    self._begin_anew(error)

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=_PATIENCE)
        connection.text_factory = bytes  # there is no text in it, unless it is damaged
        # A vector takes 1.5 kB; pages of SQLite's default 4 kB would be half empty.
        connection.execute("PRAGMA page_size = 32768")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS embeddings (key BLOB PRIMARY KEY, vector BLOB NOT NULL)"
        )
        return connection

    def _begin_anew(self, error: Exception) -> None:
        aside = self.path.with_suffix(f".damaged-{os.getpid()}")
        try:
            # What was begun on the old file must not be finished on the new one.
            self.path.with_name(f"{self.path.name}-journal").unlink(missing_ok=True)
            self.path.replace(aside)
        except FileNotFoundError:
            return  # another process was faster
        except OSError as why:
            self._give_up(why)
            return
        warnings.warn(
            f"{self.path}: the embedding cache is damaged ({error}); it was set aside as "
            f"{aside.name} and is filled anew",
            stacklevel=2,
        )

    def _give_up(self, error: Exception) -> None:
        self._usable = False
        warnings.warn(
            f"{self.path}: the embedding cache cannot be used ({error}); going on without it, "
            f"so the next run encodes again; set STEPGRAPH_CACHE to a folder that can be written",
            stacklevel=2,
        )


def _key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _pack(key: bytes, vector: NDArray[np.float32]) -> bytes:
    data = np.ascontiguousarray(vector, dtype="<f4").tobytes()
    return _checksum(key, data) + data


def _unpack(key: object, blob: object) -> NDArray[np.float32] | None:
    if not isinstance(key, bytes) or not isinstance(blob, bytes):
        return None
    checksum, data = blob[:_CHECKSUM], blob[_CHECKSUM:]
    if _checksum(key, data) != checksum:
        return None
    return np.frombuffer(data, dtype="<f4").astype(np.float32)


def _checksum(key: bytes, data: bytes) -> bytes:
    return blake2b(data, digest_size=_CHECKSUM, key=key).digest()
