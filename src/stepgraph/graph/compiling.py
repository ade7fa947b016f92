"""Compile loops over numbers where they are slow in Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any, ParamSpec, TypeVar

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

FEW_STEPS = 200_000
"""Number of loop steps that plain Python finishes before the compiler is imported."""

_taken: Counter[Callable[..., Any]] = Counter()


def compiled_later(
    function: Callable[_Parameters, _Result], steps: int
) -> Callable[_Parameters, _Result]:
    """Return a function as it stands for its first few steps, and compiled once there are many.

    One short video is labelled without waiting for the compiler, many videos at full speed; both
    forms compute the same numbers.
    """
    _taken[function] += steps
    return function if _taken[function] <= FEW_STEPS else compiled(function)


@cache
def compiled(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Return the compiled form of a function, cached on disk where possible.

    The compiler takes a second or two for a few loops, and far longer for array operations, so
    write the former.  The compiler is slow to import, and is therefore imported late.
    """
    from numba import njit

    fast: Callable[_Parameters, _Result]
    try:
        fast = njit(cache=True)(function)
    except RuntimeError:  # no folder to keep it in is writable
        fast = njit()(function)
    return fast
