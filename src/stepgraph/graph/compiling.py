"""Compile loops over numbers where they are slow in Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import ParamSpec, TypeVar

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


@cache
def compiled(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Give the compiled form of a function, which is kept on disk where possible.

    The compiler takes a second or two for a few loops, and far longer for array operations, so
    write the former.  It is itself slow to import, and therefore comes late.
    """
    from numba import njit

    fast: Callable[_Parameters, _Result]
    try:
        fast = njit(cache=True)(function)
    except RuntimeError:  # no folder to keep it in is writable
        fast = njit()(function)
    return fast
