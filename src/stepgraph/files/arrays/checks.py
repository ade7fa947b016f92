"""Checks of every stored array, for all file formats.

Type, shape and size are checked before memory is allocated, the values afterwards.
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
"""Maximum bytes of an array: an hour of the 10,588 keysteps of HowTo100M takes 152 MB."""


WEIGHTS, STATE = "weights", "state"
"""Formats of ``torch.save`` files that are read whole, and saved again without foreign objects."""


@dataclass(frozen=True)
class ArrayContent:
    """Terms for the content of arrays in error messages.

    Attributes
    ----------
    column, names
        Noun for a column, and the names of all columns if they have names.
    hint
        Possible cause of another width.
    file
        Description of the required file, if the default one does not fit.
    """

    noun: str = "features"
    column: str = "column"
    names: tuple[str, ...] = ()
    hint: str = "were they computed with another encoder?"
    file: str = ""


FEATURES = ArrayContent()


@dataclass(frozen=True)
class Wanted:
    """Requirements for an array to read: its place, its kind and, if given, its width.

    Attributes
    ----------
    format
        Format of the file, if not that of its suffix; then the array may have any shape.
    """

    where: str
    kind: ArrayContent = FEATURES
    width: int | None = None
    format: str | None = None

    def check(self, shape: tuple[int, ...], dtype: str) -> None:
        """Refuse an array of wrong type, shape or size; ``dtype`` is numpy's text for the type."""
        # All other types, such as records and texts, begin with another letter.
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
        """Return the array as float32; refuse one with values that are not finite."""
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
    """Read the array of a file that must hold exactly one."""
    if len(arrays) != 1:
        raise DataError(f"must hold one array, got {len(arrays)}: {sorted(arrays)[:5]}")
    return next(iter(arrays.values()))()
