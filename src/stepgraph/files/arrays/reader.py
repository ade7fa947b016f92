"""Client of the child process that reads untrusted arrays.

Some damaged files make a library crash, others make it take all memory or time.  So a child
process reads, within limits, and replies in JSON and plain numbers.  A file that ends it is
refused, and a new process reads the next one.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.errors import DataError, MissingExtraError
from stepgraph.files.arrays.checks import Wanted
from stepgraph.files.arrays.pickles import Refusal
from stepgraph.files.disk import MIB

_SERVING = "stepgraph.files.arrays.serving"
_SECONDS, _SPEED = 30, 4 * MIB  # for one reply, and the bytes of its file for each second more
_LONGEST = 1 << 20  # bytes of a reply before its numbers
_FAILED = {"failed": str(Refusal("one at which the library that reads it fails"))}
_LIBRARIES = {
    ".h5": ("HDF5", "video", "h5py"),
    ".hdf5": ("HDF5", "video", "h5py"),
    ".parquet": ("Parquet", "train", "pyarrow"),
}
# Arrow reserves no memory that it does not use, and HDF5 loads no filters from elsewhere.
_SETTINGS = {"ARROW_DEFAULT_MEMORY_POOL": "system", "HDF5_PLUGIN_PRELOAD": "::"}


class ArrayReader:
    """Child process, started on first use and ended with this one; a fork starts its own."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._child: subprocess.Popen[bytes] | None = None
        self._forked_from: Any = None

    def ask(
        self,
        what: str,
        path: Path,
        wanted: Wanted,
        name: str | None = None,
        into: NDArray[Any] | None = None,
    ) -> dict[str, Any]:
        """Send a request about a file and return the reply; ``into`` receives its numbers."""
        suffix = wanted.format or path.suffix
        noun, extra, library = _LIBRARIES.get(suffix, ("", "", "numpy"))
        if find_spec(library) is None:
            raise MissingExtraError(
                f"{path}: reading {noun} needs the {extra!r} extra; run: pip install {library}"
            )
        place = {"path": os.path.abspath(path), "suffix": suffix, "name": name}
        with self._lock:
            answer = self._exchange(place | {"what": what}, into)
        if "refused" in answer:
            raise DataError(f"{wanted.where}: {answer['refused']}")
        if "failed" in answer:
            stored = f"a whole {suffix.removeprefix('.')} file of stored {wanted.kind.noun}"
            must = wanted.kind.file or stored
            raise DataError(f"{wanted.where}: must be {must}, {answer['failed']}")
        return answer

    def read(self, path: Path, wanted: Wanted, name: str | None = None) -> NDArray[Any]:
        """Read the array ``name`` of a file, or its only one if no name is given."""
        with self._lock:
            found = self.ask("read", path, wanted, name)
            shape = tuple(found["shape"])
            if shape == (0, 0):  # no rows, and so no width
                shape = 0, wanted.width or 1
            wanted.check(shape, found["dtype"])
            numbers = np.empty(shape, found["dtype"])
            self.ask("send", path, wanted, into=numbers)
        return numbers

    def stop(self) -> None:
        """End the process, if there is one."""
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
        self._child = None

    def forget(self) -> None:
        """Leave the child process to the parent after a fork, whatever request was in progress."""
        self._lock = threading.RLock()
        self._child, self._forked_from = None, self._child

    def _exchange(self, question: dict[str, Any], into: NDArray[Any] | None) -> dict[str, Any]:
        child = self._running()
        assert child.stdin is not None
        assert child.stdout is not None
        seconds: float = _SECONDS
        with suppress(OSError):
            seconds += os.path.getsize(question["path"]) / _SPEED
        timer = threading.Timer(seconds, child.kill)
        timer.start()
        try:
            with suppress(BrokenPipeError):
                child.stdin.write(json.dumps(question).encode() + b"\n")
                child.stdin.flush()
            line = child.stdout.readline(_LONGEST)
            answer: dict[str, Any] = json.loads(line) if line.endswith(b"\n") else _FAILED
            if into is not None and answer == {}:
                flat = into.reshape(-1).view(np.uint8)
                if child.stdout.readinto(flat) < len(flat):  # type: ignore[attr-defined]
                    answer = _FAILED
        except BaseException:
            self.stop()  # the rest of its output would be taken for the next reply
            raise
        finally:
            timer.cancel()
        if answer is _FAILED:
            self.stop()
        return answer

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is not None and self._child.poll() is not None:
            self.stop()  # somebody else ended it
        if self._child is None:
            # -P: no module is taken from the folder we are in, which may be a stranger's.
            command = [sys.executable, "-P", "-c", f"from {_SERVING} import serve; serve()"]
            places = [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
            paths = {"PYTHONPATH": os.pathsep.join(filter(None, places))}
            self._child = subprocess.Popen(
                command,
                env=os.environ | paths | _SETTINGS,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        return self._child


READER = ArrayReader()
atexit.register(READER.stop)
if hasattr(os, "register_at_fork"):  # on Windows, nothing forks
    os.register_at_fork(after_in_child=READER.forget)
