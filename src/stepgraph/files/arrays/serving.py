"""Code of the child process of :mod:`stepgraph.files.arrays.reader`, which calls the libraries.

A request is a line of JSON: ``open`` a file of several arrays, check that it ``has`` one,
``read`` one, or ``send`` the numbers of the last one that was read.  A reply is a line of JSON,
followed by the numbers.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from stepgraph.errors import DataError
from stepgraph.files.arrays import hdf5, parquet, pickles
from stepgraph.files.arrays.checks import LARGEST, STATE, WEIGHTS, only
from stepgraph.files.arrays.pickles import Refusal
from stepgraph.files.disk import MIB

_MEMORY = 4 * LARGEST  # of this process: what is read, and what it is made from
_COPIES = 4  # of a file of weights, which may be larger than an array
_FORBIDDEN = ("socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn")
_FILES = 4  # of several arrays, that stay open

# What was read has a shape and a type, and gives its numbers for ``[()]``.
_Reads: TypeAlias = Callable[[], Any]
_Arrays: TypeAlias = dict[str, _Reads] | hdf5.OpenFile


def _open_npz(path: Path) -> dict[str, _Reads]:
    archive = NpzFile(path.open("rb"), own_fid=True, allow_pickle=False)
    return {name: partial(_member, archive, name) for name in archive.files}


def _member(archive: Any, name: str) -> NDArray[Any]:
    return np.asarray(archive[name])  # what is no array comes as bytes


def _torch() -> ModuleType:
    """Import the reader of torch files, which takes a second."""
    return import_module("stepgraph.files.arrays.torch_files")


_MANY: dict[str, Callable[[Path], _Arrays]] = {
    ".npz": _open_npz,
    ".pt": lambda path: _torch().open_pt(path),
    ".h5": hdf5.OpenFile,
    ".hdf5": hdf5.OpenFile,
    ".parquet": parquet.open_videos,
}
_ONE: dict[str, Callable[[Path], Any]] = {
    # Mapped, an array that claims more than its file holds is refused before it is made.
    ".npy": partial(np.lib.format.open_memmap, mode="r"),
    ".npz": lambda path: only(_open_npz(path)),
    ".pt": lambda path: only(_torch().open_pt(path, alone=True)),
    ".pkl": pickles.read_pkl,
    ".h5": lambda path: hdf5.read_thing(hdf5.OpenFile(path).file),
    ".hdf5": lambda path: hdf5.read_thing(hdf5.OpenFile(path).file),
    ".parquet": parquet.read_parquet,
    WEIGHTS: lambda path: _torch().read_weights(path),
    STATE: lambda path: _torch().read_state(path),
}


class _Server:
    """Handler of requests, which keeps a few files open."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[list[int], _Arrays]] = {}
        self._last: Any = None

    def answer(self, request: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        """Return a reply, and the numbers that follow it."""
        if request["what"] == "send":
            last, self._last = self._last, None
            return {}, np.ascontiguousarray(last[()]).reshape(-1).view(np.uint8)
        self._last = None
        path, suffix, name = Path(request["path"]), request["suffix"], request["name"]
        if request["what"] == "open":
            arrays = self._opened(path, suffix)
            return {"names": sorted(arrays)[:5] if isinstance(arrays, dict) else []}, b""
        if name is not None:
            read = self._opened(path, suffix).get(name)
            if request["what"] == "has":
                return {"has": read is not None}, b""
            if read is None:
                raise DataError("must be an array in that file, got none")
        elif (size := path.stat().st_size) > LARGEST and suffix not in (WEIGHTS, STATE):
            raise DataError(f"must be at most 1 GiB, got {size / MIB:,.0f} MiB")
        else:
            read = partial(_ONE[suffix], path)
        self._last = read()
        return {"shape": self._last.shape or (), "dtype": str(self._last.dtype)[:80]}, b""

    def _opened(self, path: Path, suffix: str) -> _Arrays:
        state, key = path.stat(), str(path)
        stamp = [state.st_mtime_ns, state.st_size, state.st_ino]
        if key not in self._open or self._open[key][0] != stamp:
            # One that was written again is closed first: HDF5 recognises a file that it has open.
            self._open.pop(key, None)
            while len(self._open) >= _FILES:
                del self._open[next(iter(self._open))]
            self._open[key] = stamp, _MANY[suffix](path)
        return self._open[key][1]


def serve() -> None:
    """Handle requests from standard input until it is closed."""
    _limit()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no reply
    server = _Server()
    for line in sys.stdin.buffer:
        numbers: Any = b""
        try:
            request = json.loads(line)
            of_torch = request["suffix"] in (".pt", WEIGHTS, STATE)
            _limit_memory(os.path.getsize(request["path"]) if of_torch else 0)
            answer, numbers = server.answer(request)
        except DataError as error:
            answer = {"refused": str(error)}
        except Exception as error:  # foreign files fail in any way there is
            refusal = error if isinstance(error, Refusal) else _unreadable(error)
            answer = {"failed": " ".join(str(refusal).split())[:240]}
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.write(numbers)
        answers.flush()


def _limit() -> None:
    """Limit memory; forbid writing files, starting processes and network access."""
    with suppress(ImportError, ValueError, OSError):  # where that cannot be bounded
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    _limit_memory()

    def watch(event: str, _: Any) -> None:
        if event.startswith(_FORBIDDEN):
            raise PermissionError(f"{event} is not allowed while an untrusted file is read")

    sys.addaudithook(watch)


def _limit_memory(size: int = 0) -> None:
    """Limit memory for data, by the size in bytes of a torch file or to a fixed amount."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        most = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY + _COPIES * size, most))


def _unreadable(error: Exception) -> Refusal:
    message = " ".join(str(error).split())[:120]
    return Refusal(f"one that cannot be read ({type(error).__name__}: {message})")
