"""Online hidden Markov model of one task: filtered row by row, smoothed over the last rows.

The timing prior depends on the place of a row in the whole video.  Where the length of the video
is unknown, many lengths are followed in parallel, weighted by their prior from the corpus.
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

# Lengths that are followed in parallel: a tenfold range in steps of little more than the
# twentieth of a video by which its keysteps are expected.
_LENGTHS = 40
# Range of the length of a video, in seconds, without a corpus: a minute to a day.
_SHORTEST, _LONGEST = 60.0, 86_400.0
# Rows that are kept: more than the longest delay; older rows are never revised.
_KEPT = 64


class Lengths(NamedTuple):
    """Possible lengths of a video in rows, and their log-priors in nats, shape (M,) each."""

    rows: Floats
    log_prior: Floats


def likely_lengths(seen: Iterable[float]) -> Lengths:
    """Estimate the distribution of video lengths, in rows, from those of a corpus.

    A Gaussian kernel density of their logarithms, its width by Silverman's rule; with fewer than
    two lengths, the logarithm is uniform from a minute to a day.

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


class OnlineHMM:
    """Posteriors of the keysteps of a task, row by row, for each possible length.

    Parameters
    ----------
    expected
        Timing prior and transitions of the keysteps.
    lengths
        Possible lengths of the video; a single one where it is known.
    """

    def __init__(self, expected: Expected, lengths: Lengths) -> None:
        self.lengths = lengths
        self._due = np.exp(expected.log_timing).T
        self._chain = expected.transitions
        self._first = 0
        shape = (len(lengths.rows), self._due.shape[1])
        self._arriving = np.full(shape, 1 / shape[1])  # prior of the first row that is kept
        self._done = np.zeros(shape[1])
        self._belief: list[Floats] = []  # filtered posterior (M, n) of each row kept
        self._likely: list[Floats] = []  # (M, n), its emission times timing

    @property
    def rows(self) -> int:
        """Number of rows processed."""
        return self._first + len(self._belief)

    def rewind(self, row: int) -> None:
        """Drop the rows from ``row`` on that are still kept, to process them again."""
        length = max(row - self._first, 0)
        del self._belief[length:], self._likely[length:]

    def follow(self, log_emission: Floats) -> None:
        """Process the log-emissions of the next rows, in nats, shape (k, n)."""
        likelihoods = np.exp(
            log_emission - log_emission.max(axis=1, keepdims=True, initial=-np.inf)
        )
        for likely in likelihoods:
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
        """Highest filtered posterior of each keystep, without the last ``late`` rows, (n,)."""
        return np.maximum(self._done, self._surest(len(self._belief) - late))

    def _surest(self, count: int) -> Floats:
        """Highest filtered posterior of each keystep on the first ``count`` rows kept, (n,)."""
        if count < 1:
            return np.zeros_like(self._done)
        shares = self.length_shares()
        found: Floats = np.max([shares @ belief for belief in self._belief[:count]], axis=0)
        return found

    def _bins(self, row: int) -> NDArray[np.int64]:
        parts = np.minimum(row * TIMING_BINS / self.lengths.rows, TIMING_BINS - 1)
        return parts.astype(np.int64)

    def length_shares(self) -> Floats:
        """Probability of each length, given the rows so far as its minimum, shape (M,)."""
        alive = self.lengths.rows >= self.rows
        if not alive.any():
            alive[-1] = True
        shares = np.where(alive, np.exp(self.lengths.log_prior), 0.0)
        total = shares.sum()
        return np.asarray(shares / total if total > 0 else alive / alive.sum())

    def look_back(self, rows: int) -> Floats:
        """Smoothed posterior of each keystep on the last rows, shape (k, n)."""
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
