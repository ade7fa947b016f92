"""Readers with planted mistakes, each of which the fuzzing must find."""

import os
import pickle
import signal
import socket
import warnings
from pathlib import Path

from fuzz.harnesses import Harness
from fuzz.printed import require_printable

from stepgraph.errors import DataError


def crash(path, out):
    raise KeyError("a field")


def hang(path, out):
    while True:
        pass


def grow(path, out):
    try:
        bytearray(3 << 30)
    except MemoryError as error:
        raise DataError("cannot be read") from error


def abort(path, out):
    os.kill(os.getpid(), signal.SIGSEGV)


def connect(path, out):
    try:
        socket.create_connection(("localhost", 9))
    except OSError as error:
        raise DataError("cannot be reached") from error


def unpickle(path, out):
    try:
        pickle.loads(b"cos\ngetcwd\n(tR.")
    except OSError as error:
        raise DataError("cannot be read") from error


def write_beside(path, out):
    try:
        Path("in/more").write_text("x")
    except OSError as error:
        raise DataError("cannot be written") from error


def change(path, out):
    os.utime(path, (1, 1))


def say_nothing(path, out):
    raise DataError(" ")


def print_badly(path, out):
    require_printable("one\x1b[31m")


def warn(path, out):
    warnings.warn("overflow", RuntimeWarning, stacklevel=1)


def read(path, out):
    if not path.read_bytes().startswith(b"good"):
        raise DataError(f"{path}: must begin with 'good', got others; fetch it again")
    (out / "result").write_text("done")


def seeds():
    return [{"a.txt": b"good morning"}]


def on_damage(mistake):
    """Make a mistake with anything but the seed."""

    def reader(path, out):
        if path.read_bytes() != b"good morning":
            mistake(path, out)

    return reader


_SILENT = (say_nothing, grow, connect, unpickle, write_beside, change)
MISTAKES = {
    one.__name__: Harness(seeds, on_damage(one))
    for one in (crash, print_badly, warn, hang, abort, *_SILENT)
}
HARNESSES = {"read": Harness(seeds, read), **MISTAKES}
