"""Shares estimated from counts of recognised videos: expectations and credible intervals.

Recognition errors are correlated between videos: people announce, recall and repeat.  So a large
number of videos that agree is no proof; it has an effective sample size, in videos that a person
watched, with an upper limit.  That limit, and the concentration of the prior of true shares, were
fitted on truth: :mod:`benchmarks.graph` does so, and measures how well they transfer.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

Floats: TypeAlias = NDArray[np.float64]

CREDIBLE = 0.9
"""Probability mass of a credible interval."""
_STEPS = 21


class DirichletPrior(NamedTuple):
    """Dirichlet prior of shares, and effective sample size of recognised videos.

    Attributes
    ----------
    pseudo_count
        Prior concentration of each possibility, as a pseudo-count of watched videos; the smaller,
        the more one-sided the true shares are taken to be.
    most
        Upper limit of the effective sample size of any number of recognised videos.
    """

    pseudo_count: float
    most: float

    def weigh(self, counts: ArrayLike, order: ArrayLike) -> Floats:
        """Compute the posterior Dirichlet parameters of possibilities, shape (n, ...).

        Parameters
        ----------
        counts : shape (n, ...)
            Number of times that each was recognised.
        order : shape (n, ...)
            Weight of each by the listed order, from 0 to 1: a weight of 1 adds half of ``most``,
            so that three quarters of many videos overrule it.
        """
        seen = np.asarray(counts, dtype=np.float64)
        worth = self.most / (seen.sum(axis=0) + self.most)
        weights: Floats = self.pseudo_count + worth * seen + self.most / 2 * np.asarray(order)
        return weights


PRECEDENCE = DirichletPrior(0.03, 0.65)
NEXT = DirichletPrior(0.09, 1.65)
SHOWN = DirichletPrior(0.6, 2.1)


class Share(NamedTuple):
    """Expected share, with the limits of its 90 % credible interval."""

    share: float
    low: float
    high: float


def shares_of(weights: Floats) -> list[Share]:
    """Compute the shares of possibilities from the weights of :meth:`DirichletPrior.weigh`.

    >>> [round(number, 2) for number in shares_of(np.array([3.0, 1.0]))[0]]
    [0.75, 0.46, 1.0]
    """
    total = weights.sum()
    expected = weights / total
    # Where there is one possibility only, no weight is left for others.
    # Most were never seen and have equal weights: each distinct weight is computed once.
    distinct, place = np.unique(weights, return_inverse=True)
    low, high = shortest_intervals(distinct, np.maximum(total - distinct, 1e-9))
    ends = zip(expected, low[place], high[place], strict=True)
    return [Share(*map(float, one)) for one in ends]


def shortest_intervals(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Compute the shortest intervals that hold 90 % of Beta distributions.

    The interval of a share that can only be 1 ends at 1.
    """
    below = np.linspace(0, 1 - CREDIBLE, _STEPS)
    low = np.asarray(betaincinv(first[:, None], second[:, None], below), dtype=np.float64)
    high = np.asarray(betaincinv(first[:, None], second[:, None], below + CREDIBLE), np.float64)
    best = (high - low).argmin(axis=1)
    every = np.arange(len(best))
    return low[every, best], high[every, best]
