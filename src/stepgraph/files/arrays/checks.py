"""What every stored array is checked for, whatever file it lies in.

It is refused by its description, before it takes memory here; then its numbers are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.errors import DataError
from stepgraph.files.disk import MIB

LARGEST = 1024 * MIB
"""Bytes of the largest array: an hour of the 10,588 keysteps of HowTo100M takes 152 MB."""


WEIGHTS, STATE = "weights", "state"
"""Kinds of files of torch of which all is read, as it would be saved without anything else."""


@dataclass(frozen=True)
class ArrayContent:
    """What arrays hold, in the words of the messages about them.

    Attributes
    ----------
    column, names
        What a column is called, and the name of each where they have names.
    hint
        What may have happened to an array of another width.
    file
        What a file must be, if not one of so stored arrays.
    """

    noun: str = "features"
    column: str = "column"
    names: tuple[str, ...] = ()
    hint: str = "were they computed with another encoder?"
    file: str = ""


FEATURES = ArrayContent()


@dataclass(frozen=True)
class Wanted:
    """The array that is to be read: where it lies and, where that is known, how wide it is.

    Attributes
    ----------
    format
        What the file is read as, if not by its suffix; then the array may have any shape.
    """

    where: str
    kind: ArrayContent = FEATURES
    width: int | None = None
    format: str | None = None

    def check(self, shape: tuple[int, ...], dtype: str) -> None:
        """Refuse an array by its description; ``dtype`` is as numpy writes it."""
        # Whatever else there is, records and texts among it, begins or goes on otherwise.
        if not dtype.lstrip("<>=").startswith(("f", "i", "u")):
            raise DataError(
                f"{self.where}: {self.kind.noun} must be real numbers, got values of type {dtype}"
            )
        fits = len(shape) == 2 and shape[1] >= 1 and self.width in (None, shape[1])
        if not fits and self.format is None:
            width = "columns" if self.width is None else self.width
            raise DataError(
                f"{self.where}: {self.kind.noun} must have shape (rows, {width}), "
                f"got {shape}; {self.kind.hint}"
            )
        size = math.prod(shape) * max(np.dtype(dtype).itemsize, np.dtype(np.float32).itemsize)
        if size > LARGEST and self.format not in (WEIGHTS, STATE):
            raise DataError(
                f"{self.where}: must hold an array of at most {LARGEST / MIB:,.0f} MiB, "
                f"got {size / MIB:,.0f} MiB"
            )

    def finished(self, values: NDArray[Any]) -> NDArray[np.float32]:
        """Return the array in single precision, or refuse its first number that is none."""
        with np.errstate(over="ignore", invalid="ignore"):  # infinite or NaN: found here
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


def only(arrays: Mapping[str, Callable[[], Any]]) -> Any:
    """What is read of a file that must hold one array."""
    if len(arrays) != 1:
        raise DataError(f"must hold one array, got {len(arrays)}: {sorted(arrays)[:5]}")
    return next(iter(arrays.values()))()
