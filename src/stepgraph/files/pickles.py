"""Read pickles that hold numbers, without unpickling them.

A pickle is a program, and the machine that Python runs it on can import and call anything.  Here
is a machine that can do less.  It knows the instructions that numbers, texts, lists, tuples,
dicts and numpy arrays need, and plays the part of the few functions that such pickles name.  It
imports nothing, calls nothing and sets no attribute, so a pickle that asks for more is refused,
not run; and what it builds is never much larger than the file.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.errors import DataError
from stepgraph.files.disk import MIB, require_file

# One byte of a pickle can be an instruction that makes a hundred bytes of memory.
_INSTRUCTIONS = 4_000_000
# Levels of lists, tuples and dicts: more than any table of numbers has.
_DEEPEST = 16
_DIMENSIONS = 8
# No bool, which numpy trusts to be 0 or 1; no object, no text, no date, no record.
_NUMBERS = re.compile(r"[iu][1248]|f[248]")

_CONVERT = "if you trust the file, load it with pickle and save its arrays as .npy (numpy.save)"


class _Refusal(Exception):
    """Why a pickle is not read: its whole message but for the path."""


def read_numbers(path: Path, *, limit: int = 256 * MIB) -> object:
    """Read a pickle of numbers, texts, lists, tuples, dicts and numpy arrays of real numbers.

    Protocols 0 to 5 of Python 3 and arrays of any numpy are read.  A pickle that asks for
    anything else is a :class:`DataError`, and none of it has run.

    Parameters
    ----------
    limit
        Bytes of the largest file, and of the largest content, that is read.

    Returns
    -------
    object
        The content.  Its arrays are views of what was read and may not be writeable.
    """
    machine = _Machine(_read(path, limit))
    try:
        return _finished(machine.run(), limit)
    except _Refusal as refusal:
        raise DataError(f"{path}: {refusal}") from None
    except (IndexError, KeyError, ValueError) as error:
        # A stack without what an instruction takes, a memo that was never put, half a number.
        raise DataError(
            f"{path}: must be a whole pickle, got nonsense at byte {machine.start} "
            f"({type(error).__name__}); the file is damaged or no pickle, fetch or write it again"
        ) from error


def _read(path: Path, limit: int) -> bytes:
    require_file(path, "pickle file")
    try:
        if (size := path.stat().st_size) > limit:
            raise DataError(
                f"{path}: must be a pickle of at most {limit / MIB:,.0f} MiB, "
                f"got {size / MIB:,.0f} MiB; {_CONVERT}"
            )
        return path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path}: must be readable, got {error.strerror or error}; check its permissions"
        ) from error


@dataclass(frozen=True)
class _Global:
    """A name that a pickle asked for and may: never the thing itself."""

    name: str


@dataclass
class _Dtype:
    """What stands in for a numpy dtype while a pickle describes it."""

    code: str
    order: str = "="


@dataclass
class _Array:
    """What stands in for an array until its content comes."""

    values: NDArray[Any] | None = None


_GLOBALS = {
    "numpy.core.multiarray._reconstruct": _Global("reconstruct"),
    "numpy._core.multiarray._reconstruct": _Global("reconstruct"),
    "numpy.core.multiarray.scalar": _Global("scalar"),
    "numpy._core.multiarray.scalar": _Global("scalar"),
    "numpy.core.numeric._frombuffer": _Global("frombuffer"),
    "numpy._core.numeric._frombuffer": _Global("frombuffer"),
    "numpy.ndarray": _Global("ndarray"),
    "numpy.dtype": _Global("dtype"),
    # How protocols 0 to 2 spell bytes, and empty bytes.
    "_codecs.encode": _Global("encode"),
    "__builtin__.bytes": _Global("bytes"),
    "builtins.bytes": _Global("bytes"),
}


class _Machine:
    """A pickle being read: its bytes, how far it is read, and the stack of values so far."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0
        self.start = 0  # of the instruction at hand
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.encoded = 0

    def run(self) -> Any:
        """Follow all instructions and return what they built."""
        for _ in range(_INSTRUCTIONS):
            self.start = self.position
            code = self.take(1)
            if code == b".":
                return self.result()
            step = _STEPS.get(code)
            if step is None:
                raise self.needless(f"the instruction {_name_of(code)}")
            step(self)
        raise self.needless(f"more than {_INSTRUCTIONS:,} instructions")

    def result(self) -> Any:
        if len(self.stack) != 1 or self.marks:
            raise ValueError("values left over")
        if after := len(self.data) - self.position:
            raise _Refusal(f"must hold one pickle, got {after:,} bytes after it; {_CONVERT}")
        return self.stack[0]

    def needless(self, what: str) -> _Refusal:
        """Refuse what no pickle of numbers needs."""
        return _needless(f"{what} at byte {self.start}")

    def take(self, count: int) -> bytes:
        taken = self.data[self.position : self.position + count]
        if len(taken) < count:
            raise _Refusal(
                f"must be a whole pickle, got an end at byte {len(self.data)}; the file is cut "
                f"off or no pickle, fetch or write it again"
            )
        self.position += count
        return taken

    def number(self, layout: str) -> Any:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def counted(self, layout: str) -> bytes:
        return self.take(self.number(layout))

    def line(self) -> bytes:
        end = self.data.find(b"\n", self.position)
        # Without an end of line, one more byte is asked for than there is.
        last = len(self.data) if end < 0 else end
        return self.take(last + 1 - self.position)[:-1]

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def put(self, key: int) -> None:
        self.memo[key] = self.stack[-1]

    def push_whole(self, value: int) -> None:
        if not -(2**63) <= value < 2**64:
            raise self.needless("a whole number of more than 64 bits")
        self.stack.append(value)

    def push_last(self, count: int) -> None:
        """Push a tuple of the last values."""
        self.stack.append(tuple(reversed([self.stack.pop() for _ in range(count)])))

    def since_mark(self) -> list[Any]:
        mark = self.marks.pop()
        taken, self.stack[mark:] = self.stack[mark:], []
        return taken

    def extend(self, values: list[Any]) -> None:
        """Append to the list on top of the stack."""
        if type(self.stack[-1]) is not list:
            raise ValueError("no list")
        self.stack[-1].extend(values)

    def update(self, pairs: list[Any], *, new: bool = False) -> None:
        """Set keys of the dict on top of the stack, or of a new one."""
        if new:
            self.stack.append({})
        if type(self.stack[-1]) is not dict:
            raise ValueError("no dict")
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            # Any other key could be a tuple nested so deep that hashing it overflows.
            if type(key) not in (str, int):
                raise self.needless("a dict whose keys are neither text nor whole numbers")
            self.stack[-1][key] = value

    def find(self, module: Any, name: Any) -> None:
        """Push the stand-in of a name, or refuse the name."""
        asked = f"{module[:40]}.{name[:40]}" if type(module) is type(name) is str else "nonsense"
        if asked not in _GLOBALS:
            raise _Refusal(
                f"must be a pickle of numbers and numpy arrays only, got a call for {asked!r} at "
                f"byte {self.start}, which could run code, and was not run; {_CONVERT}"
            )
        self.push(_GLOBALS[asked])

    def reduce(self) -> None:
        """Do what the function would do, if it is one of those that are known."""
        arguments, function = self.stack.pop(), self.stack.pop()
        if type(function) is not _Global or type(arguments) is not tuple:
            raise self.needless("a call of something that is no function")
        match function.name, arguments:
            case "reconstruct", (_Global("ndarray"), _, _):
                self.push(_Array())
            case "scalar", (dtype, data):
                self.push(_array(data, dtype, (), "C")[()])
            case "frombuffer", (data, dtype, tuple(shape), ("C" | "F") as order):
                self.push(_Array(_array(data, dtype, shape, order)))
            case "dtype", (str(code), _, _):
                if not _NUMBERS.fullmatch(code):
                    raise self.needless(f"an array of type {code[:20]!r}, not of real numbers,")
                self.push(_Dtype(code))
            case "encode", (str(text), "latin1"):
                # A text may be encoded once; again and again would fill the memory.
                self.encoded += len(text)
                if self.encoded > len(self.data):
                    raise self.needless("more bytes than the file has")
                self.push(text.encode("latin1"))
            case "bytes", ():
                self.push(b"")
            case _:
                raise self.needless(f"a strange call of {function.name!r}")

    def build(self) -> None:
        """Give an array its content, or a dtype its byte order."""
        state = self.stack.pop()
        match self.stack[-1], state:
            case _Array(None) as array, (1, tuple(shape), dtype, bool(fortran), data):
                array.values = _array(data, dtype, shape, "F" if fortran else "C")
            case _Dtype() as dtype, (3, ("<" | ">" | "=" | "|") as order, None, None, None, *_):
                dtype.order = order
            case _:
                raise self.needless("a strange state of an array")


def _array(data: Any, dtype: Any, shape: tuple[Any, ...], order: Any) -> NDArray[Any]:
    """View bytes as an array, if they are exactly those that it has."""
    sane = type(data) in (bytes, bytearray) and type(dtype) is _Dtype
    if not sane or len(shape) > _DIMENSIONS or any(type(n) is not int or n < 0 for n in shape):
        raise _needless("an array strangely described")
    made = np.dtype(dtype.order + dtype.code)
    size = math.prod(shape) * made.itemsize
    if size != len(data):
        raise _Refusal(
            f"must be a whole pickle, got an array of {size:,} bytes with {len(data):,} bytes "
            f"of content; the file is damaged, fetch or write it again"
        )
    flat = np.frombuffer(data, made) if data else np.empty(0, made)
    return flat.reshape(shape, order=order)


def _finished(value: Any, limit: int) -> Any:
    """Put arrays where they were stood in for, and refuse what is too much to walk through."""
    finished, size, _ = _walk(value, 0, {})
    if size > limit:
        # Ten lists that hold the one before ten times are small, and yet ten billion values.
        raise _needless(f"lists that repeat themselves to more than {limit / MIB:,.0f} MiB")
    return finished


def _walk(value: Any, depth: int, done: dict[int, Any]) -> tuple[Any, int, int]:
    """Return a value finished, its size in bytes with all repetitions, and its levels."""
    if value is None or isinstance(value, bool | int | float | np.number):
        return value, 8, 0
    if type(value) is str:
        return value, 8 + len(value), 0
    if type(value) is _Array and value.values is not None:
        return value.values, 8 + value.values.nbytes, 0
    if type(value) not in (list, tuple, dict):
        raise _needless(f"a piece of an array ({type(value).__name__.strip('_').lower()}) alone")
    known = done.get(id(value))
    if depth + (known[2] if known else 1) > _DEEPEST:
        raise _needless(f"lists in lists, more than {_DEEPEST} levels")
    if known is None:
        parts = value.values() if type(value) is dict else value
        walked = [_walk(part, depth + 1, done) for part in parts]
        finished: Any = [part for part, _, _ in walked]
        if type(value) is tuple:
            finished = tuple(finished)
        elif type(value) is dict:
            finished = dict(zip(value, finished, strict=True))
        keys = sum(len(key) for key in value if type(key) is str) if type(value) is dict else 0
        size = 8 + keys + sum(size for _, size, _ in walked)
        levels = 1 + max((levels for _, _, levels in walked), default=0)
        known = done[id(value)] = finished, size, levels
    return known


def _needless(what: str) -> _Refusal:
    return _Refusal(
        f"must hold nothing but numbers, texts, lists, tuples, dicts and numpy arrays of real "
        f"numbers, got {what}; {_CONVERT}"
    )


def _name_of(code: bytes) -> str:
    from pickletools import opcodes

    names = {opcode.code: opcode.name for opcode in opcodes}
    return names.get(code.decode("latin1"), f"0x{code.hex()}, which does not exist,")


def _truth_or_whole(machine: _Machine) -> None:
    line = machine.line()
    if line in (b"00", b"01"):  # how protocols 0 and 1 spell False and True
        machine.push(line == b"01")
    else:
        machine.push_whole(int(line))


def _check_protocol(machine: _Machine) -> None:
    if (protocol := machine.number("B")) > 5:
        raise machine.needless(f"protocol {protocol}")


_STEPS: dict[bytes, Callable[[_Machine], None]] = {
    b"\x80": _check_protocol,
    b"\x95": lambda m: m.number("<Q") and None,  # the length of a frame, of no use here
    b"(": lambda m: m.marks.append(len(m.stack)),
    # Numbers
    b"N": lambda m: m.push(None),
    b"\x88": lambda m: m.push(True),
    b"\x89": lambda m: m.push(False),
    b"I": _truth_or_whole,
    b"L": lambda m: m.push_whole(int(m.line().rstrip(b"L"))),
    b"J": lambda m: m.push(m.number("<i")),
    b"K": lambda m: m.push(m.number("B")),
    b"M": lambda m: m.push(m.number("<H")),
    b"\x8a": lambda m: m.push_whole(int.from_bytes(m.counted("B"), "little", signed=True)),
    b"F": lambda m: m.push(float(m.line())),
    b"G": lambda m: m.push(m.number(">d")),
    # Texts and bytes
    b"V": lambda m: m.push(m.line().decode("raw-unicode-escape")),
    b"X": lambda m: m.push(m.counted("<I").decode("utf-8", "surrogatepass")),
    b"\x8c": lambda m: m.push(m.counted("B").decode("utf-8", "surrogatepass")),
    b"B": lambda m: m.push(m.counted("<I")),
    b"C": lambda m: m.push(m.counted("B")),
    b"\x96": lambda m: m.push(bytearray(m.counted("<Q"))),
    # Lists, tuples, dicts
    b"]": lambda m: m.push([]),
    b"l": lambda m: m.push(m.since_mark()),
    b"a": lambda m: m.extend([m.stack.pop()]),
    b"e": lambda m: m.extend(m.since_mark()),
    b")": lambda m: m.push(()),
    b"t": lambda m: m.push(tuple(m.since_mark())),
    b"\x85": lambda m: m.push_last(1),
    b"\x86": lambda m: m.push_last(2),
    b"\x87": lambda m: m.push_last(3),
    b"}": lambda m: m.push({}),
    b"d": lambda m: m.update(m.since_mark(), new=True),
    b"s": lambda m: m.update([m.stack.pop(-2), m.stack.pop()]),
    b"u": lambda m: m.update(m.since_mark()),
    # What was made before
    b"p": lambda m: m.put(int(m.line())),
    b"q": lambda m: m.put(m.number("B")),
    b"r": lambda m: m.put(m.number("<I")),
    b"\x94": lambda m: m.put(len(m.memo)),
    b"g": lambda m: m.push(m.memo[int(m.line())]),
    b"h": lambda m: m.push(m.memo[m.number("B")]),
    b"j": lambda m: m.push(m.memo[m.number("<I")]),
    # Arrays
    b"c": lambda m: m.find(m.line().decode(), m.line().decode()),
    b"\x93": lambda m: m.find(m.stack.pop(-2), m.stack.pop()),
    b"R": lambda m: m.reduce(),
    b"b": lambda m: m.build(),
}
