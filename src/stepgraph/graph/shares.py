"""What counts of recognised videos are worth: expected shares, and intervals that hold the truth.

What is wrong with the labels of one video is wrong with those of most: people announce, recall and
repeat.  So many videos that agree are no proof; however many there are, they count as no more than
a certain number that somebody had watched.  How many that is, and how one-sided true shares are,
was fitted on truth: :mod:`benchmarks.graph` does so, and says how far it holds elsewhere.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

Floats: TypeAlias = NDArray[np.float64]

CREDIBLE = 0.9
"""Share of the probability that lies in an interval."""
_STEPS = 21


class Trust(NamedTuple):
    """What counts are worth.

    Attributes
    ----------
    imagined
        Watched videos that are imagined of each possibility; the fewer, the more one-sided the
        true shares are taken to be.
    most
        How many watched videos any number of recognised ones count as, at most.
    """

    imagined: float
    most: float

    def weigh(self, counts: ArrayLike, order: ArrayLike) -> Floats:
        """Parameters of Dirichlet distributions over possibilities, shape (n, ...).

        Parameters
        ----------
        counts : shape (n, ...)
            How often each was recognised.
        order : shape (n, ...)
            How far the written order speaks for each, from 0 to 1: as much as half of what any
            number of videos count as, so that three quarters of many videos overrule it.
        """
        seen = np.asarray(counts, dtype=np.float64)
        worth = self.most / (seen.sum(axis=0) + self.most)
        weights: Floats = self.imagined + worth * seen + self.most / 2 * np.asarray(order)
        return weights


PRECEDENCE = Trust(0.03, 0.65)
NEXT = Trust(0.09, 1.65)
SHOWN = Trust(0.6, 2.1)


class Share(NamedTuple):
    """An expected share, and between what it lies with a probability of 90 %."""

    share: float
    low: float
    high: float


def shares_of(weights: Floats) -> list[Share]:
    """Shares of possibilities whose weights :meth:`Trust.weigh` gave.

    >>> [round(number, 2) for number in shares_of(np.array([3.0, 1.0]))[0]]
    [0.75, 0.46, 1.0]
    """
    total = weights.sum()
    expected = weights / total
    # Where there is one possibility only, nothing is left for others.
    # Most were never seen and weigh the same: each weight is looked at once.
    distinct, place = np.unique(weights, return_inverse=True)
    low, high = shortest_intervals(distinct, np.maximum(total - distinct, 1e-9))
    ends = zip(expected, low[place], high[place], strict=True)
    return [Share(*map(float, one)) for one in ends]


def shortest_intervals(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """The shortest intervals that hold 90 % of Beta distributions.

    A share that is never anything else than 1 lies in an interval that ends there.
    """
    below = np.linspace(0, 1 - CREDIBLE, _STEPS)
    low = np.asarray(betaincinv(first[:, None], second[:, None], below), dtype=np.float64)
    high = np.asarray(betaincinv(first[:, None], second[:, None], below + CREDIBLE), np.float64)
    best = (high - low).argmin(axis=1)
    every = np.arange(len(best))
    return low[every, best], high[every, best]
