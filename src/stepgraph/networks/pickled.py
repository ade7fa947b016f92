"""Follow the pickle of a torch file without running it, and take down its tensors.

A pickle is a program.  The machine here knows lists, tuples, dicts and texts, and what a tensor
is described by.  Whatever else the program asks for is a blank, which takes any argument, does
nothing and holds nothing.  Nothing is imported and nothing called, keys of dicts are texts or
numbers, and what is built is never much larger than the file.
"""

from __future__ import annotations

import math
import pickletools
import re
import struct
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

# One byte of a pickle can be an instruction that makes a hundred bytes of memory.
_INSTRUCTIONS = 4_000_000
_DIMENSIONS = 8
_LARGEST = 1 << 40  # of any number that describes a tensor
_DTYPES = {
    "torch.FloatStorage": torch.float32,
    "torch.DoubleStorage": torch.float64,
    "torch.HalfStorage": torch.float16,
    "torch.BFloat16Storage": torch.bfloat16,
    "torch.LongStorage": torch.int64,
    "torch.IntStorage": torch.int32,
    "torch.ShortStorage": torch.int16,
    "torch.CharStorage": torch.int8,
    "torch.ByteStorage": torch.uint8,
    "torch.BoolStorage": torch.bool,
}


class Refusal(Exception):
    """Why a file is not read: what was got, for the message."""


class _Name(NamedTuple):
    """A name that a pickle asked for: never the thing itself."""

    name: str


class _Blank:
    """What stands for anything that is neither a plain value nor part of a tensor."""


class Storage(NamedTuple):
    """A run of numbers behind the pickle."""

    key: str
    dtype: torch.dtype
    length: int


class TensorView(NamedTuple):
    """A view of a storage."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def check(self) -> None:
        """Refuse one that is not within its storage, or larger: a pickle can say anything."""
        storage, offset, shape, strides = self
        sane = len(shape) == len(strides) <= _DIMENSIONS
        numbers = (offset, *shape, *strides)
        if not sane or any(type(n) is not int or not 0 <= n < _LARGEST for n in numbers):
            raise Refusal("got a weight strangely described")
        last = offset + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
        # Numbers repeated by a stride of 0 would be a weight larger than its file.
        limit = _LARGEST if 0 in shape else storage.length
        if max(math.prod(filter(None, shape)), last + 1) > limit:
            raise Refusal(f"got a weight of shape {shape} in {storage.length:,} numbers")


_BLANK = _Blank()
# Values that stand in the pickle themselves.
_PLAIN = re.compile(r"(LONG_?|BIN)?INT[12]?|LONG[14]?|(BIN)?FLOAT|\w*(STRING|UNICODE|BYTES)\d?")
_FIXED: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_TUPLE": tuple,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_SET": lambda: _BLANK,
}


class Machine:
    """A pickle being followed: the stack of values so far."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.storages: dict[str, Storage] = {}

    def run(self, source: Any) -> Any:
        """Follow the instructions up to the end of this pickle and return what they built."""
        for count, (opcode, argument, _) in enumerate(pickletools.genops(source)):
            if count >= _INSTRUCTIONS:
                raise Refusal(f"got a pickle of more than {_INSTRUCTIONS:,} instructions")
            self.step(opcode.name, argument)
        return self.stack[-1]

    def step(self, name: str, argument: Any) -> None:
        """Follow one instruction."""
        if name in _FIXED:
            self.push(_FIXED[name]())
        elif _PLAIN.fullmatch(name):
            self.push(argument)
        elif name in _STEPS:
            _STEPS[name](self, argument)
        elif name not in ("PROTO", "FRAME", "STOP"):
            raise Refusal(f"got a pickle with the instruction {name}")

    def push(self, value: Any) -> None:
        """Put a value on the stack."""
        self.stack.append(value)

    def put(self, key: int) -> None:
        """Remember the last value under a number."""
        self.memo[key] = self.stack[-1]

    def last(self, count: int) -> list[Any]:
        """Take the last values off the stack."""
        return [self.stack.pop() for _ in range(count)][::-1]

    def since_mark(self) -> list[Any]:
        """Take off what was put on the stack since the last mark."""
        mark = self.marks.pop()
        taken, self.stack[mark:] = self.stack[mark:], []
        return taken

    def extend(self, values: list[Any]) -> None:
        """Append to the list on top of the stack."""
        if type(self.stack[-1]) is list:
            self.stack[-1].extend(values)

    def update(self, pairs: list[Any]) -> None:
        """Set keys of the dict on top of the stack."""
        if type(self.stack[-1]) is dict:
            self.stack[-1].update(_dict_of(pairs))

    def pop(self) -> None:
        """Take off the last value or mark."""
        if self.marks and self.marks[-1] == len(self.stack):
            self.marks.pop()
        else:
            self.stack.pop()

    def call(self, function: Any, arguments: Any) -> None:
        """Take down what a tensor or a dict is made from; all else comes to nothing."""
        name = function.name if type(function) is _Name else ""
        values = list(arguments) if type(arguments) is tuple else []
        made: Any = _BLANK
        if name == "collections.OrderedDict":
            made = _ordered_dict_of(values)
        elif name in ("torch._utils._rebuild_tensor", "torch._utils._rebuild_tensor_v2"):
            made = _tensor_of(values)
        elif name.startswith("torch._utils._rebuild_parameter") and values:
            made = values[0]
        self.push(made)

    def refer(self, reference: Any) -> None:
        """Take down which numbers are meant by what torch calls a persistent id."""
        made: Any = _BLANK
        match reference:
            case ("storage", _Name(name), str(key), str(), int(count), *rest):
                # More would be a view of another storage, not written since torch 0.4.
                if name in _DTYPES and count >= 0 and rest in ([], [None]):
                    made = self.storages[key] = Storage(key, _DTYPES[name], count)
        self.push(made)


def _dict_of(values: list[Any]) -> dict[Any, Any]:
    """Make a dict of keys and values by turns."""
    pairs = zip(values[::2], values[1::2], strict=True)
    # Any other key could be a tuple nested so deep that hashing it never ends.
    return {key: value for key, value in pairs if type(key) in (str, int)}


def _ordered_dict_of(values: list[Any]) -> dict[Any, Any]:
    """Make a dict, empty or (as Python 2 wrote it) of a list of pairs."""
    pairs = values[0] if values and type(values[0]) is list else []
    sane = (pair for pair in pairs if type(pair) in (list, tuple) and len(pair) == 2)
    return _dict_of([part for pair in sane for part in pair])


def _tensor_of(values: list[Any]) -> Any:
    match values:
        case [Storage() as storage, int(offset), tuple(shape), tuple(strides), *_]:
            return TensorView(storage, offset, shape, strides)
    return _BLANK


_STEPS: dict[str, Callable[[Machine, Any], object]] = {
    "MARK": lambda m, _: m.marks.append(len(m.stack)),
    "POP": lambda m, _: m.pop(),
    "POP_MARK": lambda m, _: m.since_mark(),
    "DUP": lambda m, _: m.push(m.stack[-1]),
    "LIST": lambda m, _: m.push(m.since_mark()),
    "TUPLE": lambda m, _: m.push(tuple(m.since_mark())),
    "TUPLE1": lambda m, _: m.push(tuple(m.last(1))),
    "TUPLE2": lambda m, _: m.push(tuple(m.last(2))),
    "TUPLE3": lambda m, _: m.push(tuple(m.last(3))),
    "DICT": lambda m, _: m.push(_dict_of(m.since_mark())),
    "FROZENSET": lambda m, _: m.call(None, m.since_mark()),
    "ADDITEMS": lambda m, _: m.since_mark(),
    "APPEND": lambda m, _: m.extend(m.last(1)),
    "APPENDS": lambda m, _: m.extend(m.since_mark()),
    "SETITEM": lambda m, _: m.update(m.last(2)),
    "SETITEMS": lambda m, _: m.update(m.since_mark()),
    "PUT": lambda m, key: m.put(key),
    "BINPUT": lambda m, key: m.put(key),
    "LONG_BINPUT": lambda m, key: m.put(key),
    "GET": lambda m, key: m.push(m.memo[key]),
    "BINGET": lambda m, key: m.push(m.memo[key]),
    "LONG_BINGET": lambda m, key: m.push(m.memo[key]),
    "MEMOIZE": lambda m, _: m.put(len(m.memo)),
    "GLOBAL": lambda m, name: m.push(_Name(name.replace(" ", "."))),
    "STACK_GLOBAL": lambda m, _: m.push(_Name(".".join(m.last(2)))),
    "REDUCE": lambda m, _: m.call(*m.last(2)),
    "NEWOBJ": lambda m, _: m.call(*m.last(2)),
    "NEWOBJ_EX": lambda m, _: m.call(*m.last(3)[:2]),
    "OBJ": lambda m, _: m.call(None, m.since_mark()),
    "INST": lambda m, _: m.call(None, m.since_mark()),
    # The state of an object: a blank needs none, and a dict keeps only what it holds.
    "BUILD": lambda m, _: m.stack.pop(),
    "PERSID": lambda m, _: m.push(_BLANK),
    "BINPERSID": lambda m, _: m.refer(m.stack.pop()),
}


def follow(source: Any, machine: Machine | None = None) -> Any:
    """Follow one pickle: bytes, or from where a file stands."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # strange escapes in texts, of no use to a reader
            return (machine or Machine()).run(source)
    except (IndexError, KeyError, ValueError, TypeError, OverflowError, struct.error) as error:
        # A stack without what an instruction takes, a memo never put, an end too early.
        said = " ".join(str(error).split())[:80]
        raise Refusal(
            f"got a pickle that is cut off or damaged ({type(error).__name__}: {said})"
        ) from None
