"""What counts are worth: by hand, at the edges, and against sampling."""

import numpy as np
import pytest
from scipy.stats import beta

from stepgraph.graph.shares import (
    NEXT,
    PRECEDENCE,
    SHOWN,
    DirichletPrior,
    shares_of,
    shortest_intervals,
)


def test_any_number_of_videos_counts_as_no_more_than_a_certain_number():
    trust = DirichletPrior(0.1, 2.0)

    assert trust.weigh((2, 0), (0, 0)) == pytest.approx([1.1, 0.1])
    assert trust.weigh((6, 2), (0, 0)) == pytest.approx([0.1 + 1.2, 0.1 + 0.4])
    assert trust.weigh((1e12, 0), (0, 0)) == pytest.approx([2.1, 0.1])
    assert trust.weigh((0, 0), (0, 0)) == pytest.approx([0.1, 0.1])


def test_three_quarters_of_many_videos_overrule_a_listed_order():
    trust = DirichletPrior(0.1, 2.0)

    assert trust.weigh((0, 0), (1, 0)) == pytest.approx([1.1, 0.1])
    tied = trust.weigh((25e9, 75e9), (1, 0))
    assert tied[0] == pytest.approx(tied[1])


def test_many_are_weighed_at_once():
    trust = DirichletPrior(0.1, 2.0)
    counts = np.array([[[0.0, 3.0], [1.0, 0.0]], [[0.0, 1.0], [3.0, 0.0]]])
    order = np.zeros((2, 2, 2))

    found = trust.weigh(counts, order)

    for place in np.ndindex(2, 2):
        assert found[(slice(None), *place)] == pytest.approx(
            trust.weigh(counts[(slice(None), *place)], (0, 0))
        )


def test_intervals_hold_nine_tenths_and_are_the_shortest():
    first, second = np.array([3.0, 8.0, 0.4, 2.0]), np.array([1.0, 2.5, 0.03, 2.0])

    low, high = shortest_intervals(first, second)

    assert beta.cdf(high, first, second) - beta.cdf(low, first, second) == pytest.approx(0.9)
    for one, other, width in zip(first, second, high - low, strict=True):
        tries = [beta.ppf([u, u + 0.9], one, other) for u in np.linspace(0, 0.1, 41)]
        assert width <= min(end - start for start, end in tries) + 0.005
    assert high[2] == 1.0  # what is hardly ever anything else ends there
    assert low[3] == pytest.approx(1 - high[3])


def test_shares_add_up_and_lie_in_their_intervals():
    found = shares_of(np.array([0.5, 1.5, 2.0]))

    assert [one.share for one in found] == pytest.approx([0.125, 0.375, 0.5])
    assert all(one.low < one.share < one.high for one in found)
    assert shares_of(np.zeros(0)) == []


def test_the_only_possibility_is_certain():
    assert shares_of(np.array([1.5])) == [(1.0, 1.0, 1.0)]


@pytest.mark.parametrize(
    ("trust", "share", "low", "high"),
    [(PRECEDENCE, 0.73, 0.1, 1.0), (NEXT, 0.72, 0.28, 1.0), (SHOWN, 0.65, 0.3, 1.0)],
)
def test_what_twelve_of_sixteen_videos_say_is_worth_what_it_was(trust, share, low, high):
    found = shares_of(trust.weigh([12, 4], [0, 0]))[0]

    assert [round(number, 2) for number in found] == [share, low, high]
