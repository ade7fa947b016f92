"""Unpickle files that nobody need trust, with Python's own unpickler and a short list of names.

A pickle is a program, and what it can do is to call things by name.  Here every name is looked up
by the caller, who hands out stand-ins and nothing else: no module is imported, and no function of
another module is called.  What is left are programs that take all memory, or all time; so they
are followed only in the process that reads arrays, which is bounded in both.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any


class Refusal(Exception):
    """Why a file is not read: what was got, and what to do; the end of a message."""

    def __init__(self, got: str, remedy: str = "fetch or write it again") -> None:
        super().__init__(f"got {got}; {remedy}")


class StandIn:
    """Plays the part of a function that a pickle names, which can call it, but not change it."""

    __slots__ = ("_play",)

    def __init__(self, play: Callable[..., Any]) -> None:
        self._play = play

    def __call__(self, *arguments: Any) -> Any:  # noqa: D102
        return self._play(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise Refusal("a pickle that changes a StandIn")


def unpickler(find: Callable[[str], Any]) -> type[pickle.Unpickler]:
    """Make an unpickler; ``find`` gives what stands for a name such as ``os.system``."""

    class Restricted(pickle.Unpickler):
        def __init__(self, file: Any, **_: Any) -> None:
            super().__init__(file, encoding="latin1")  # of the texts of Python 2

        def find_class(self, module: str, name: str) -> Any:
            return find(f"{module}.{name}")

    return Restricted
