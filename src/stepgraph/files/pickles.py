"""Unpickle files that nobody need trust, with Python's own unpickler and a short list of names.

A pickle is a program, and what it can do is to call things by name.  Here every name is looked up
by the caller, who hands out stand-ins and nothing else: no module is imported, and no function of
another module is called.  What is left are programs that take all memory, or all time; so their
instructions are looked at first, without following them.
"""

from __future__ import annotations

import io
import mmap
import pickle
import warnings
from collections.abc import Callable
from pickletools import genops, markobject
from typing import IO, Any, TypeAlias

_File: TypeAlias = IO[bytes] | mmap.mmap

# Bounds the memory: one byte can be an instruction that makes a hundred bytes.
_INSTRUCTIONS = 4_000_000
# Bounds the time: the values of a key, since each is hashed again in every tuple that holds it.
_KEY = 64
# Which of the values that an instruction takes it hashes.
_HASHED = {
    "SETITEM": slice(1, None, 2),
    "SETITEMS": slice(1, None, 2),
    "DICT": slice(0, None, 2),
    "ADDITEMS": slice(1, None),
    "FROZENSET": slice(0, None),
}
# What no pickle of numbers has: values taken back, taken twice, or from outside.
_NEEDLESS = frozenset(
    ["POP", "POP_MARK", "DUP", "PERSID", "EXT1", "EXT2", "EXT4", "NEXT_BUFFER", "READONLY_BUFFER"]
)


class Refusal(Exception):
    """Why a file is not read: what was got, and what to do; the end of a message."""

    def __init__(self, got: str, remedy: str = "fetch or write it again") -> None:
        super().__init__(f"got {got}; {remedy}")


class Fixed:
    """A value that a pickle can hold, but not change."""

    __slots__ = ()

    def __setstate__(self, state: Any) -> None:
        raise Refusal(f"a pickle that changes a {type(self).__name__}")


class StandIn(Fixed):
    """Plays the part of a function that a pickle names."""

    __slots__ = ("_play",)

    def __init__(self, play: Callable[..., Any]) -> None:
        self._play = play

    def __call__(self, *arguments: Any) -> Any:  # noqa: D102
        return self._play(*arguments)


def unpickle(
    file: _File, find: Callable[[str], Any], refer: Callable[[Any], Any] | None = None
) -> Any:
    """Unpickle what begins where a file stands, and leave the file standing behind it.

    ``find`` gives what stands for a name such as ``os.system``, or raises a :class:`Refusal`;
    ``refer`` gives what a reference out of the pickle means, without it there must be none.
    """
    start = file.tell()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # strange escapes in texts, of no use to a reader
            _look_through(file)
            end = file.tell()
            file.seek(start)
            return _Unpickler(file.read(end - start), find, refer).load()
    except Refusal:
        raise
    except Exception as error:  # foreign content fails in any way there is
        said = " ".join(str(error).split())[:80]
        raise Refusal(
            f"a pickle that is cut off or damaged ({type(error).__name__}: {said})"
        ) from None


class _Unpickler(pickle.Unpickler):
    def __init__(
        self, data: bytes, find: Callable[[str], Any], refer: Callable[[Any], Any] | None
    ) -> None:
        super().__init__(io.BytesIO(data), encoding="latin1")  # of the texts of Python 2
        self._find = find
        self._refer = refer

    def find_class(self, module: str, name: str) -> Any:
        return self._find(f"{module}.{name}")

    def persistent_load(self, reference: Any) -> Any:
        if self._refer is None:
            raise Refusal("a pickle that refers to something outside it")
        return self._refer(reference)


def _look_through(file: _File) -> None:
    """Refuse a pickle by its instructions, which also shows that all it counts out is there.

    Of each value on the stack it is kept how many values it is with those of all tuples in it.
    """
    sizes: list[int] = []
    marks: list[int] = []
    memo: dict[int, int] = {}
    for count, (opcode, argument, _) in enumerate(genops(file)):  # type: ignore[arg-type]
        name = opcode.name
        if count >= _INSTRUCTIONS:
            raise Refusal(f"a pickle of more than {_INSTRUCTIONS:,} instructions")
        if name in _NEEDLESS:
            raise Refusal(f"a pickle with the instruction {name}")
        if name == "MARK":
            marks.append(len(sizes))
        elif name == "MEMOIZE" or name.endswith("PUT"):
            place = len(memo) if argument is None else int(argument)
            if place > count:  # a number that is never used, for which room would be made
                raise Refusal(f"a pickle that remembers value {place:,}")
            memo[place] = sizes[-1]
        elif name.endswith("GET"):
            sizes.append(memo[argument or 0])
        else:
            below = opcode.stack_before
            marked = markobject in below
            first = marks.pop() - below.index(markobject) if marked else len(sizes) - len(below)
            taken, sizes[max(first, 0) :] = sizes[max(first, 0) :], []
            if name in _HASHED and max(taken[_HASHED[name]], default=0) > _KEY:
                raise Refusal(f"a pickle with a key of more than {_KEY} values")
            made = min(1 + sum(taken), _KEY + 1) if name.startswith("TUPLE") else 1
            sizes += [made] * len(opcode.stack_after)
