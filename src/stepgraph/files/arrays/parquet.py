"""Arrays in Parquet files, read by another process.

The library that reads them ends its process at some damaged files, and takes all memory at others.
So a process of our own reads them, within bounds, and answers in JSON and plain numbers; a file
that it dies of is refused, and the next one is read by a new process.
"""

from __future__ import annotations

import atexit
import json
import math
import os
import subprocess
import sys
import threading
from contextlib import suppress
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.errors import DataError, MissingExtraError, StepgraphError
from stepgraph.files.arrays.checks import LARGEST, Kind, Reader, Wanted, unreadable
from stepgraph.files.arrays.parquet_rows import Rows
from stepgraph.files.pickles import Refusal

_MEMORY = 8 * LARGEST  # of the process; most of it is reserved and never used
_SECONDS = 300  # for one answer


def read_parquet(path: Path, wanted: Wanted) -> NDArray[Any]:
    """Read a file whose rows are all of one video."""
    return _read(path, None, wanted)


def open_videos(path: Path) -> dict[str, Reader]:
    """Open a file of many videos, the rows of each one after the other."""
    videos = _READER.ask(path, {"videos": True}, None)[0]["videos"]
    return {name: partial(_read, path, rows) for name, *rows in videos}


def _read(path: Path, rows: list[int] | None, wanted: Wanted) -> NDArray[Any]:
    asked = {"rows": rows, "where": wanted.where, "width": wanted.width}
    words = {"noun": wanted.kind.noun, "hint": wanted.kind.hint}
    answer, numbers = _READER.ask(path, asked | words, wanted)
    return np.frombuffer(numbers, np.float32).reshape(answer["shape"])


class _Reader:
    """The process that reads: it ends with the one that asks, and a fork starts its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = -1
        self._child: subprocess.Popen[bytes] | None = None

    def ask(
        self, path: Path, asked: dict[str, Any], wanted: Wanted | None
    ) -> tuple[dict[str, Any], bytes]:
        """What it answers to a question about a file, and the numbers behind that."""
        if find_spec("pyarrow") is None:
            raise MissingExtraError(
                f"{path}: reading Parquet needs the 'train' extra; run: pip install pyarrow"
            )
        with self._lock:
            child = self._running()
            timer = threading.Timer(_SECONDS, child.kill)
            timer.start()
            try:
                place = {"path": str(path), "folder": os.getcwd()}
                answer, numbers = _exchange(child, asked | place, wanted)
            except BaseException:
                self.stop()  # what it still says would be taken for its next answer
                raise
            finally:
                timer.cancel()
        if "refused" in answer:
            raise DataError(answer["refused"])
        if "failed" in answer:
            raise Refusal(answer["failed"])
        return answer, numbers

    def stop(self) -> None:
        """End the process, if there is one of ours."""
        if self._child is not None and self._owner == os.getpid():
            self._child.kill()
            self._child.communicate()
        self._child = None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is not None and self._child.poll() is not None:
            self.stop()  # somebody else ended it
        if self._child is None or self._owner != os.getpid():
            # -P: no module is taken from the folder we are in, which may be a stranger's.
            command = [sys.executable, "-P", "-c", f"from {__name__} import serve; serve()"]
            places = [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
            self._child = subprocess.Popen(
                command,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places))},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            self._owner = os.getpid()
        return self._child


_READER = _Reader()
atexit.register(_READER.stop)


def _exchange(
    child: subprocess.Popen[bytes], asked: dict[str, Any], wanted: Wanted | None
) -> tuple[dict[str, Any], bytes]:
    assert child.stdin is not None
    assert child.stdout is not None
    with suppress(BrokenPipeError):
        child.stdin.write(json.dumps(asked).encode() + b"\n")
        child.stdin.flush()
    line = child.stdout.readline()
    if not line:
        raise Refusal("one at which the library that reads it fails")
    answer: dict[str, Any] = json.loads(line)
    numbers = b""
    if wanted is not None and "shape" in answer:
        shape = tuple(answer["shape"])
        wanted.check(shape, np.float32)
        wanted.check_memory(shape, 4)
        numbers = child.stdout.read(4 * math.prod(shape))
    return answer, numbers


def serve() -> None:
    """Read what is asked for, until nobody asks any more; this is what the process runs."""
    with suppress(ImportError, ValueError, OSError):  # where memory cannot be bounded
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    for line in sys.stdin.buffer:
        try:
            answer, numbers = _answer(json.loads(line))
        except StepgraphError as error:
            answer, numbers = {"refused": str(error)}, b""
        except Exception as error:  # foreign files fail in any way there is
            answer, numbers = {"failed": unreadable(error)}, b""
        answers.write(json.dumps(answer).encode() + b"\n" + numbers)
        answers.flush()


def _answer(asked: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    os.chdir(asked["folder"])
    path = Path(asked["path"])
    stamp = path.stat()
    rows = _opened(path, stamp.st_mtime_ns, stamp.st_size, stamp.st_ino)
    if asked.get("videos"):
        return {"videos": rows.videos()}, b""
    kind = Kind(asked["noun"], hint=asked["hint"])
    first, last = asked["rows"] or (0, len(rows))
    array = rows.read(first, last, Wanted(asked["where"], kind, asked["width"]))
    return {"shape": array.shape}, array.tobytes()


@lru_cache(maxsize=1)
def _opened(path: Path, *stamp: int) -> Rows:
    return Rows(path)
