"""What every stored array is checked for, whatever file it lies in.

It is refused by its description, before its content takes memory; then its numbers are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stepgraph.errors import DataError, StepgraphError
from stepgraph.files.disk import MIB
from stepgraph.files.pickles import Refusal

LARGEST = 1024 * MIB
"""Bytes of the largest array: an hour of the 10,588 keysteps of HowTo100M takes 152 MB."""


@dataclass(frozen=True)
class Kind:
    """What arrays hold, in the words of the messages about them.

    Attributes
    ----------
    column, names
        What a column is called, and the name of each where they have names.
    hint
        What may have happened to an array of another width.
    """

    noun: str = "features"
    column: str = "column"
    names: tuple[str, ...] = ()
    hint: str = "were they computed with another encoder?"


FEATURES = Kind()


@dataclass(frozen=True)
class Wanted:
    """The array that is to be read: where it lies and, where that is known, how wide it is."""

    where: str
    kind: Kind = FEATURES
    width: int | None = None
    any_shape: bool = False

    def check(self, shape: tuple[int, ...], dtype: Any) -> None:
        """Refuse an array by its description."""
        if np.dtype(dtype).kind not in "fiu":
            raise DataError(
                f"{self.where}: {self.kind.noun} must be real numbers, "
                f"got values of type {str(dtype)[:80]}"
            )
        fits = len(shape) == 2 and shape[1] >= 1 and self.width in (None, shape[1])
        if not fits and not self.any_shape:
            width = "columns" if self.width is None else self.width
            raise DataError(
                f"{self.where}: {self.kind.noun} must have shape (rows, {width}), "
                f"got {tuple(shape)}; {self.kind.hint}"
            )

    def check_size(self, shape: tuple[int, ...], itemsize: int, size: int) -> None:
        """Refuse an array that claims more than the ``size`` bytes it has."""
        if min(shape, default=0) < 0 or math.prod(shape) * itemsize > size:
            raise DataError(
                f"{self.where}: must be as large as it says, got an array of shape {tuple(shape)} "
                f"in {size:,} bytes; it is cut off, or a view that was saved without copying it"
            )
        self.check_memory(shape, itemsize)

    def check_memory(self, shape: tuple[int, ...], itemsize: int) -> None:
        """Refuse an array that would take too much memory, here or where it is read."""
        size = math.prod(shape) * max(itemsize, np.dtype(np.float32).itemsize)
        if size > LARGEST:
            raise DataError(
                f"{self.where}: must hold an array of at most {LARGEST / MIB:,.0f} MiB, "
                f"got {size / MIB:,.0f} MiB"
            )

    def finished(self, values: NDArray[Any]) -> NDArray[np.float32]:
        """Return the array in single precision, or refuse its first number that is none."""
        with np.errstate(over="ignore"):  # what overflows is infinite, and found here
            single = values.astype(np.float32, copy=False)
        finite = np.isfinite(single)
        if not finite.all():
            row, column = np.argwhere(~finite)[0].tolist()
            name = f" ({self.kind.names[column]!r})" if self.kind.names else ""
            raise DataError(
                f"{self.where}: {self.kind.noun} must be finite, got {single[row, column]} in row "
                f"{row} for {self.kind.column} {column}{name}; compute them again"
            )
        return single


Reader: TypeAlias = Callable[[Wanted], NDArray[Any]]
"""Reads one array of a file that holds several."""


@contextmanager
def explaining(where: str, suffix: str, kind: Kind) -> Iterator[None]:
    """Give whatever goes wrong in a library one form: foreign files fail in any way there is."""
    try:
        yield
    except StepgraphError:
        raise
    except Exception as error:
        refusal = error if isinstance(error, Refusal) else Refusal(unreadable(error))
        said = " ".join(str(refusal).split())[:240]
        raise DataError(
            f"{where}: must be a whole {suffix.removeprefix('.')} file of stored {kind.noun}, "
            f"{said}"
        ) from error


def unreadable(error: Exception) -> str:
    """What was got where a library failed."""
    said = " ".join(str(error).split())[:120]
    return f"one that cannot be read ({type(error).__name__}: {said})"
