"""Read text that may be anything, and write files whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stepgraph.errors import DataError

MIB = 1 << 20


def read_text(path: Path, *, limit: int = 64 * MIB) -> str:
    """Read a UTF-8 text file, with or without a byte order mark.

    A file that is missing, too large, binary or in another encoding is a :class:`DataError`
    that says so in one line.
    """
    try:
        size = path.stat().st_size
        if path.is_dir():
            raise DataError(f"{path}: must be a file, got a folder")
        if size > limit:
            raise DataError(
                f"{path}: must be at most {limit // MIB} MiB, got {size / MIB:,.0f} MiB; "
                f"is it the right file?"
            )
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise DataError(f"{path}: must be an existing file, got nothing there") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    return decode_text(path, data)


def decode_text(path: Path, data: bytes) -> str:
    """Decode what was read from ``path``; UTF-16 only where a byte order mark says so."""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    if encoding == "utf-8-sig" and b"\0" in data:
        raise DataError(
            f"{path}: must be text, got binary data (a zero byte at position {data.index(0)}); "
            f"is it the right file?"
        )
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: must be UTF-8 text, got byte 0x{data[error.start]:02x} at position "
            f"{error.start}; convert it, for example: "
            f"iconv -f latin1 -t utf-8 {path.name} > utf8-{path.name}"
        ) from error


def read_json(path: Path, *, limit: int = 64 * MIB) -> Any:
    """Read a JSON file; one that is cut off or nested without end is a :class:`DataError`."""
    text = read_text(path, limit=limit)
    try:
        return json.loads(text)
    except RecursionError as error:
        raise DataError(f"{path}: must be JSON of sane depth, got too many brackets") from error
    except ValueError as error:
        raise DataError(
            f"{path}: must be complete JSON, got {str(error).splitlines()[0]}; "
            f"was it cut off while being written or copied?"
        ) from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary name beside ``path`` to write to; rename it when all went well.

    Whatever goes wrong, ``path`` keeps what it had and the temporary file is removed.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        partial.replace(path)
    except OSError as error:
        raise DataError(
            f"{path}: cannot be written: {error.strerror or error}; choose another place with -o"
        ) from error
    finally:
        partial.unlink(missing_ok=True) if partial.parent.is_dir() else None


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 text file whole or not at all."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")
