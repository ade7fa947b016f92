"""Checked reading of text files, and atomic writing."""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from stepgraph.errors import DataError, DiskError
from stepgraph.files.addresses import Location

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

MIB = 1 << 20

_TEMPORARY = re.compile(r"\..+\.\d+-[0-9a-f]{8}\.partial", re.DOTALL)
# Errors that concern all files of a folder, not one of them.
_OF_THE_DISK = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO),
    *(errno.EMFILE, errno.ENFILE, errno.ESTALE),
)


def cache_folder() -> Path:
    """Folder of all caches: ``STEPGRAPH_CACHE``, or ``stepgraph`` in the user's cache folder."""
    chosen = os.environ.get("STEPGRAPH_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stepgraph"


def read_text(path: Path, *, limit: int = 64 * MIB, kind: str = "file") -> str:
    """Read a UTF-8 text file, or UTF-16 with a byte order mark; any line ends become plain ones.

    A file that is missing, too large, binary or in another encoding raises a one-line
    :class:`DataError`; ``kind`` names the expected file.
    """
    with reading(path, kind) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise DataError(
                f"{path}: must be at most {limit / MIB:,.0f} MiB, got {size / MIB:,.0f} MiB; "
                f"is it the right file?"
            )
        data = file.read()
    text = _decoded(data, path)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def listed(folder: Path) -> list[Path]:
    """List the content of a folder in order; raise :class:`DataError` if that fails."""
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise DataError(
            f"{folder}: must be a folder that can be listed, got {error.strerror}; "
            f"check its permissions"
        ) from error


@contextmanager
def reading(path: Location, kind: str = "file") -> Iterator[BinaryIO]:
    """Open a file to read its bytes; raise :class:`DataError` if that fails, now or later."""
    require_file(path, kind)
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise DataError(
            f"{path}: must be readable, got {error.strerror or error}; check its permissions"
        ) from error


def require_file(path: Location, kind: str = "file") -> None:
    """Raise an error for a path that is missing or no file; ``kind`` names the expected file."""
    try:
        if path.is_file():
            return
        got = "a folder" if path.is_dir() else "no such file"
    except OSError as error:
        got = error.strerror or str(error)
    raise DataError(f"{path}: must be a {kind}, got {got}; check the path")


def _decoded(data: bytes, path: Path) -> str:
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    zero = -1 if wide else data.find(b"\0")
    if zero >= 0:
        raise DataError(
            f"{path}: must be UTF-8 text, got a zero byte at position {zero}; "
            f"this is a binary file or UTF-16 without its mark, give a text file"
        )
    try:
        return data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        if wide:
            raise DataError(
                f"{path}: must be whole UTF-16 text, got {error.reason} at position "
                f"{error.start}; convert it to UTF-8"
            ) from error
        raise DataError(
            f"{path}: must be UTF-8 text, got byte 0x{data[error.start]:02x} at position "
            f"{error.start}; convert it, for example: iconv -f latin1 -t utf-8 {path}"
        ) from error


def read_json(path: Path, *, limit: int = 64 * MIB) -> Any:
    """Read a JSON file; see :func:`parse_json`."""
    return parse_json(read_text(path, limit=limit), str(path))


def parse_json(text: str, where: str, hook: Callable[[Any], Any] | None = None) -> Any:
    """Parse untrusted JSON, which may be truncated, malformed or nested too deeply.

    A ``hook`` receives the pairs of each object, and returns its replacement.
    """
    try:
        return json.loads(text, object_pairs_hook=hook)
    except json.JSONDecodeError as error:
        if _is_cut_off(error):
            lines = text.rstrip().split("\n")
            raise DataError(
                f"{where}: must be complete JSON, got an end at line {len(lines)}, "
                f"column {len(lines[-1])}; the file is cut off, fetch or write it again"
            ) from error
        raise DataError(
            f"{where}:{error.lineno}: must be JSON, got {error.msg!r} at column {error.colno}; "
            f"correct it, or give the file the suffix of its format"
        ) from error
    except RecursionError as error:
        raise DataError(
            f"{where}: must be JSON nested a few levels deep, got too many to read; "
            f"is it the right file?"
        ) from error
    except ValueError as error:  # an integer with thousands of digits
        raise DataError(f"{where}: must be JSON with ordinary numbers, got: {error}") from error


def _is_cut_off(error: json.JSONDecodeError) -> bool:
    whole = error.doc.rstrip()
    # A number or word cut in half is reported a few characters before the end.
    near_end = error.pos > 0 and len(whole) - error.pos <= 5
    half_a_word = near_end and not whole.endswith(("}", "]"))
    return error.msg.startswith("Unterminated") or error.pos >= len(whole) or half_a_word


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file to write to, which replaces ``path`` on success.

    On any error, ``path`` keeps its content and the temporary file is removed.  The next process
    that writes into the folder removes the temporary files of killed ones.  A link is followed:
    the file that it leads to is replaced.  A FIFO or a device is refused.
    """
    try:
        target = _replaceable(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.parent.absolute())
        with _temporary(target) as partial:
            yield partial
            partial.replace(target)
    except OSError as error:
        kind = DiskError if error.errno in _OF_THE_DISK else DataError
        raise kind(
            f"{path}: cannot be written: {error.strerror or error}; choose another output path"
        ) from error


@contextmanager
def _temporary(target: Path) -> Iterator[Path]:
    """Create a file that is locked while it is written, and remove it at the end."""
    name = f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.partial"
    partial = target.with_name(name)
    file = _locked(partial)
    try:
        yield partial
    finally:
        partial.unlink(missing_ok=True)
        if file is not None:
            file.close()


def _locked(partial: Path) -> BinaryIO | None:
    """Make a file and lock it; return None on a system without locks."""
    while True:
        file = partial.open("xb")
        if fcntl is None:
            file.close()  # there, a file that is open cannot be renamed
            return None
        with suppress(OSError):  # a disk without locks, where nothing is swept
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()  # it was swept before it was locked


@lru_cache(maxsize=4096)
def _sweep(folder: Path) -> None:
    """Remove temporary files of killed processes, which are not locked, from a folder once."""
    for path in folder.glob(".*.partial") if fcntl is not None else ():
        if not _TEMPORARY.fullmatch(path.name):
            continue
        with suppress(OSError):  # locked, gone, no file, or not ours to remove
            place = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            try:
                fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(place)


def _replaceable(path: Path) -> Path:
    """Return the file that a path leads to, existing or new; refuse one that is not regular."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG  # it is about to be made
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        # Renaming would put a file in its place, for the whole machine where it is a device.
        raise DataError(
            f"{path}: must be a regular file or a new one, got a FIFO or a device; "
            f"choose another output path"
        )
    return path.resolve() if path.is_symlink() else path


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 text file atomically."""
    data = encoded(text, path)
    with replacing(path) as partial:
        partial.write_bytes(data)


def encoded(text: str, path: Path) -> bytes:
    """Encode text as UTF-8; ``path`` is for the error message."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"{path}: must be written as Unicode text, got {text[error.start]!r}, which is not; "
            f"is a file name in another encoding?"
        ) from error
