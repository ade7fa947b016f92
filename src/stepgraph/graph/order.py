"""Partial and linear orders of keysteps, from counts of transitions or shares of precedence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# A pair is directional when, after one pseudo-count each way, three quarters or more of the
# counts agree: two observations one way and none the other are the least that suffices.
DIRECTIONAL_SHARE = 0.75


def partial_order(
    counts: NDArray[np.int64], majority: float = DIRECTIONAL_SHARE
) -> tuple[int, ...]:
    """Derive a partial order of keysteps, without cycles, from transition counts.

    Two keysteps have the order that was seen more often, if at least the share ``majority`` of
    the transitions between them went that way, else none.  Pairs are taken from the largest
    surplus down (of equals, lower numbers first); one that would close a cycle is left out.

    Returns
    -------
    tuple of int
        Bit mask of the predecessors of each keystep, keystep ``k`` as bit ``1 << k``.

    Examples
    --------
    >>> partial_order(np.array([[0, 6, 1], [1, 0, 4], [3, 0, 0]]))
    (0, 1, 3)
    """
    surplus = counts - counts.T
    ordered = (surplus > 0) & (counts >= majority * (counts + counts.T))
    pairs = [(int(first), int(second)) for first, second in np.argwhere(ordered)]
    before = [0] * len(counts)
    for first, second in sorted(pairs, key=lambda pair: -surplus[pair]):
        if before[first] >> second & 1:
            continue
        for later in range(len(before)):
            if later == second or before[later] >> second & 1:
                before[later] |= before[first] | 1 << first
    return tuple(before)


def linear_order(shares: NDArray[np.float64]) -> list[int]:
    """Order keysteps linearly with as few contradicted videos as possible (Kemeny's order).

    A local search: it starts from the order of each keystep's sum of shares, and makes the single
    move that gains most, until no move gains anything.  Ties keep the listed order.

    Parameters
    ----------
    shares : shape (n, n)
        Share of videos in which one is done before another.

    Examples
    --------
    >>> linear_order(np.array([[0.5, 0.4, 0.9], [0.6, 0.5, 0.6], [0.1, 0.4, 0.5]]))
    [1, 0, 2]
    """
    lead = shares - shares.T
    order = np.argsort(-shares.sum(axis=1), kind="stable")
    while len(order):
        here = lead[np.ix_(order, order)]
        passed = np.cumsum(here, axis=1)
        # Gain of moving each keystep to each place: the sum of the leads that the move reverses.
        gain = passed.diagonal()[:, None] - passed + np.tril(here)
        one, place = np.unravel_index(gain.argmax(), gain.shape)
        if gain[one, place] < 1e-9:
            break
        order = np.insert(np.delete(order, one), place, order[one])
    return [int(one) for one in order]
