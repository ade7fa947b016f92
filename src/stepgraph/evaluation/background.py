"""Metrics that take background seriously: what is said of rows on which nothing is done.

``docs/metrics.md`` defines each.  What is undefined is ``nan``, never 0.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import BACKGROUND, runs
from stepgraph.evaluation.metrics import Rows, compared

NAMES = ("frame_accuracy", "background_share", "background_precision", "empty_segments")


def background_tally(truth: Rows, predicted: Rows) -> NDArray[np.int64]:
    """Count, so that videos add up: four hits, then what each of them is a part of.

    >>> background_tally([-1, 0, 0, -1, -1], [-1, -1, 0, 1, 1]).tolist()
    [2, 2, 1, 1, 5, 5, 2, 2]
    """
    true, found = compared(truth, predicted)
    empty = found == BACKGROUND
    pieces = [slice(*run) for run in runs(found) if found[run[0]] != BACKGROUND]
    idle = sum((true[piece] == BACKGROUND).all() for piece in pieces)
    right = (true == found).sum(), empty.sum(), (empty & (true == BACKGROUND)).sum(), idle
    return np.array([*right, len(true), len(true), empty.sum(), len(pieces)], dtype=np.int64)


def background_metrics(counts: NDArray[np.int64]) -> dict[str, float]:
    """Each metric of :data:`NAMES`, of the tallies of any number of videos."""
    parts, wholes = counts[:4].tolist(), counts[4:].tolist()
    return {
        name: part / whole if whole else math.nan
        for name, part, whole in zip(NAMES, parts, wholes, strict=True)
    }
