"""Files at addresses such as ``s3://bucket/folder``, read by ranges of bytes through fsspec.

An address only comes from a source that the user typed, never from the content of a file.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias

from stepgraph.errors import ConfigError, DataError, MissingExtraError, one_line, quoted

# fsspec reads two colons as a chain of file systems, which nobody needs here.
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(?!.*::)")
_HERE = ("file", "local", "memory")
# Libraries to install; fsspec names those of other schemes.
_LIBRARIES = {
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("az", "abfs", "abfss", "adl"), "adlfs"),
    **dict.fromkeys(("http", "https"), "'fsspec[http]'"),
}
_REQUEST = 2**22  # bytes of one request


class _Status(NamedTuple):
    """Size of a file in bytes, and a hash of its state in place of a modification time."""

    st_size: int
    st_mtime_ns: int


@dataclass(frozen=True)
class Address:
    """An address that fsspec opens, with the methods of a path that readers of large files use."""

    text: str

    def __str__(self) -> str:
        return self.text

    def __truediv__(self, name: str) -> Address:
        return Address(f"{self.text.rstrip('/')}/{name}")

    @property
    def name(self) -> str:
        """Part after the last slash."""
        return self.text.rpartition("/")[2]

    def is_file(self) -> bool:
        """Check that the address is a file."""
        return self._type() == "file"

    def is_dir(self) -> bool:
        """Check that the address is a folder."""
        return self._type() == "directory"

    def _type(self) -> str:
        with self._asking():
            try:
                return str(self._system.info(self._path)["type"])
            except FileNotFoundError:
                return "nothing"

    def stat(self) -> _Status:
        """Return the size of a file, and a hash of its state."""
        with self._asking():
            state = str(self._system.ukey(self._path)).encode()
            size = int(self._system.info(self._path)["size"])
        return _Status(size, int.from_bytes(sha256(state).digest()[:7], "big"))

    def open(self, mode: str = "rb") -> BinaryIO:
        """Open a file to read its bytes, which are fetched as they are read."""
        assert mode == "rb", "nothing is written to an address"
        return io.BufferedReader(_Ranges(self), _REQUEST)

    def bytes(self, begin: int, end: int) -> bytes:
        """Fetch the bytes of a file from position ``begin`` up to ``end``."""
        with self._asking():
            return bytes(self._system.cat_file(self._path, start=begin, end=end))

    @property
    def _system(self) -> Any:
        return self._found[0]

    @property
    def _path(self) -> str:
        return str(self._found[1])

    @cached_property
    def _found(self) -> tuple[Any, str]:
        """File system of the address, and the path in it."""
        from fsspec.core import url_to_fs

        found = _ADDRESS.match(self.text)
        scheme = found[1] if found else ""
        if is_offline() and scheme not in _HERE:
            raise ConfigError(
                f"{self.text}: must be a path on this machine when offline, got an address; "
                f"nothing is downloaded"
            )
        try:
            system, path = url_to_fs(self.text)
        except ImportError as error:
            library = _LIBRARIES.get(scheme)
            remedy = f"run: pip install {library}" if library else one_line(str(error), 200)
            raise MissingExtraError(
                f"{self.text}: needs a library for {scheme}://; {remedy}"
            ) from error
        except Exception as error:
            raise ConfigError(
                f"{self.text}: must be an address that fsspec supports, such as s3:// or gs://, "
                f"got {one_line(str(error), 200)}"
            ) from error
        return system, str(path)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Turn every exception of a library into a :class:`DataError`."""
        _ = self._found
        try:
            yield
        except Exception as error:
            why = one_line(f"{type(error).__name__}: {error}", 300)
            raise DataError(
                f"{self.text}: must be readable, got {why}; check the address and your credentials"
            ) from error


Location: TypeAlias = Path | Address
"""Path or address of a file that is only read."""


class _Ranges(io.RawIOBase):
    """Raw stream over a file at an address, which fetches ranges of bytes as they are read."""

    def __init__(self, address: Address) -> None:
        self._address, self._size, self._at = address, address.stat().st_size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        end = min(self._at + len(buffer), self._size)
        data = self._address.bytes(self._at, end) if self._at < end else b""
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def location_of(text: str) -> Location:
    """Convert what a user typed to an address or a path."""
    return Address(text) if is_address(text) else Path(os.path.expanduser(text))


def is_address(text: str) -> bool:
    """Check that a text has the form of an address for fsspec.

    >>> is_address("s3://bucket/folder"), is_address("data/howto100m")
    (True, False)
    """
    return _ADDRESS.match(text) is not None


def on_disk(source: str) -> str:
    """Return a source on a local disk; refuse an address."""
    if is_address(source.partition(":")[2]) or is_address(source):
        raise ConfigError(
            f"source must be on a local disk, got {quoted(source)}; only howto100m:ADDRESS "
            f"is read from an address, so copy the files here"
        )
    return source


def is_offline() -> bool:
    """Check that the environment forbids downloads (``HF_HUB_OFFLINE``)."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "TRUE", "YES")
