"""Lay the parts of a video on a regular grid of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def part_of_row(intervals: NDArray[np.float64], rows: int, hop: float) -> NDArray[np.int64]:
    """Which interval covers most of each row, or -1 where none covers any of it.

    Of two that cover the same share, the earlier is taken.

    >>> part_of_row(np.array([[0.0, 1.4], [1.4, 2.0]]), 3, 1.0).tolist()
    [0, 1, -1]
    """
    first = np.clip(np.floor(intervals[:, 0] / hop), 0, rows).astype(np.int64)
    last = np.clip(np.ceil(intervals[:, 1] / hop), first, rows).astype(np.int64)
    # One candidate for each row that an interval touches.
    part = np.repeat(np.arange(len(intervals)), last - first)
    start_of_part = np.repeat(np.cumsum(last - first) - (last - first), last - first)
    row = np.repeat(first, last - first) + np.arange(len(part)) - start_of_part
    covered = np.minimum(intervals[part, 1], (row + 1) * hop) - np.maximum(
        intervals[part, 0], row * hop
    )
    # Written from worst to best, so that the best is written last.
    order = np.lexsort((-part, covered))
    # Less than a billionth of a row is float noise.
    order = order[covered[order] > 1e-9 * hop]
    best = np.full(rows, -1, dtype=np.int64)
    best[row[order]] = part[order]
    return best
