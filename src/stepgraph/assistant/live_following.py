"""Follow one task row by row: a hidden Markov model that looks back, and a few rows ahead.

When a keystep is due is told by its place in the whole video.  Where nobody says how long that
will be, many lengths are followed side by side, each as probable as the corpus makes it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stepgraph.decoders.task_markov import Expected
from stepgraph.graph import TIMING_BINS

Floats: TypeAlias = NDArray[np.float64]

# Lengths that are followed side by side: a tenfold range in steps of little more than the
# twentieth of a video by which its keysteps are expected.
_LENGTHS = 40
# Between which a video is taken to last where no corpus tells: a minute and a day.
_SHORTEST, _LONGEST = 60.0, 86_400.0
# Rows that are kept: more than the longest delay, and what is revised later than that stays.
_KEPT = 64


class Lengths(NamedTuple):
    """How many rows a video may last, and the logs of how probable that is, shape (M,) each."""

    rows: Floats
    log_prior: Floats


def likely_lengths(seen: Iterable[float]) -> Lengths:
    """Learn how long videos last from those of a corpus, in rows.

    The density of their logarithms, by a Gaussian kernel as wide as Silverman's rule says; where
    there are no two, all orders of magnitude are alike.

    >>> known = likely_lengths([100.0, 200.0, 400.0])
    >>> round(float(known.rows @ np.exp(known.log_prior)))
    263
    """
    logs = np.log(np.maximum(np.fromiter(seen, dtype=np.float64), 1.0))
    if len(logs) < 2:
        rows = np.geomspace(_SHORTEST, _LONGEST, _LENGTHS)
        return Lengths(rows, np.full(_LENGTHS, -math.log(_LENGTHS)))
    width = max(1.06 * logs.std() * len(logs) ** -0.2, 1 / TIMING_BINS)
    at = np.linspace(logs.min() - 2 * width, logs.max() + 4 * width, _LENGTHS)
    log_density = np.logaddexp.reduce(-0.5 * ((at[:, None] - logs) / width) ** 2, axis=1)
    return Lengths(np.exp(at), log_density - np.logaddexp.reduce(log_density))


class Follower:
    """The belief about which keystep of a task is done, row by row.

    Parameters
    ----------
    expected
        When the keysteps are due, and which follows which.
    lengths
        How long the video may last; one where it is known.
    """

    def __init__(self, expected: Expected, lengths: Lengths) -> None:
        self.lengths = lengths
        self._due = np.exp(expected.log_timing).T
        self._chain = expected.transitions
        self._first = 0
        shape = (len(lengths.rows), self._due.shape[1])
        self._arriving = np.full(shape, 1 / shape[1])  # the belief before the first row kept
        self._done = np.zeros(shape[1])
        self._belief: list[Floats] = []  # (M, n) of each row that is kept
        self._likely: list[Floats] = []  # (M, n), of what is heard on it

    @property
    def rows(self) -> int:
        """How many rows were followed."""
        return self._first + len(self._belief)

    def rewind(self, row: int) -> None:
        """Forget the rows from one on, as far as they are kept, since they are heard anew."""
        kept = max(row - self._first, 0)
        del self._belief[kept:], self._likely[kept:]

    def follow(self, log_emission: Floats) -> None:
        """Take what is heard on the next rows, shape (k, n)."""
        heard = np.exp(log_emission - log_emission.max(axis=1, keepdims=True, initial=-np.inf))
        for likely in heard:
            due = self._due[self._bins(self.rows)] * likely
            before = self._belief[-1] @ self._chain if self._belief else self._arriving
            belief = before * due
            belief /= belief.sum(axis=1, keepdims=True)
            self._belief.append(belief)
            self._likely.append(due)
        if len(self._belief) > _KEPT:
            old = len(self._belief) - _KEPT
            self._done = np.maximum(self._done, self._surest(old))
            self._arriving = self._belief[old - 1] @ self._chain
            del self._belief[:old], self._likely[:old]
            self._first += old

    def done(self, late: int) -> Floats:
        """How sure each keystep was at its surest, up to so many rows before the last, (n,)."""
        return np.maximum(self._done, self._surest(len(self._belief) - late))

    def _surest(self, count: int) -> Floats:
        """The same of the first rows that are kept, by what was heard until each."""
        if count < 1:
            return np.zeros_like(self._done)
        shares = self.length_shares()
        found: Floats = np.max([shares @ belief for belief in self._belief[:count]], axis=0)
        return found

    def _bins(self, row: int) -> NDArray[np.int64]:
        parts = np.minimum(row * TIMING_BINS / self.lengths.rows, TIMING_BINS - 1)
        return parts.astype(np.int64)

    def length_shares(self) -> Floats:
        """How probable each length is, now that the video has lasted so long, shape (M,)."""
        alive = self.lengths.rows >= self.rows
        if not alive.any():
            alive[-1] = True
        shares = np.where(alive, np.exp(self.lengths.log_prior), 0.0)
        total = shares.sum()
        return np.asarray(shares / total if total > 0 else alive / alive.sum())

    def look_back(self, rows: int) -> Floats:
        """How probable each keystep is on the last rows, by all that is heard, shape (k, n)."""
        count = min(rows, len(self._belief))
        shares, found = self.length_shares(), np.empty((count, self._due.shape[1]))
        ahead = np.ones_like(self._arriving)
        for back in range(1, count + 1):
            both = self._belief[-back] * ahead
            both /= both.sum(axis=1, keepdims=True)
            found[count - back] = shares @ both
            ahead = (self._likely[-back] * ahead) @ self._chain.T
            ahead /= ahead.sum(axis=1, keepdims=True)
        return found
