"""Row labels made from segments, and scores that are clamped to an annotation."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

UNANNOTATED = -2
"""The label of an unannotated row."""


def label_rows(
    segments: Iterable[tuple[float, float, int]], rows: int, hop: float, empty: int
) -> NDArray[np.int64]:
    """Label each row whose middle lies in a segment; where two overlap the later wins.

    >>> label_rows([(0.6, 2.0, 3), (3.0, 9.0, 7)], 4, 1.0, UNANNOTATED).tolist()
    [-2, 3, -2, 7]
    """
    labels = np.full(rows, empty, dtype=np.int64)
    for start, end, label in sorted(segments):
        first, last = (max(0, math.ceil(at / hop - 0.5)) for at in (start, end))
        labels[first:last] = label
    return labels


def clamp(
    values: NDArray[np.float32], annotation: NDArray[np.int64], keysteps: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Clamp scores to an annotation, in place: to the highest score, or to minus infinity.

    Parameters
    ----------
    values : shape (N, M)
    annotation : shape (N,)
        Annotated keystep, less than 0 for none of them, or ``UNANNOTATED``.
    keysteps : shape (M,)
        Keystep of each column, less than 0 where it has none.
    """
    [rows] = np.nonzero(annotation != UNANNOTATED)
    if rows.size:
        highest = np.float32(max(1.0, values.max(initial=1.0)))
        same = (annotation[rows, None] == keysteps) & (keysteps >= 0)
        values[rows] = np.where(same, highest, np.float32(-np.inf))
    return values
