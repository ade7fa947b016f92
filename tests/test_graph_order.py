"""Which keysteps come before which: cycles are broken where they are weakest."""

from itertools import combinations, pairwise, permutations, product

import numpy as np
import pytest

from stepgraph.graph.order import linear_order, partial_order


def test_a_shuffled_chain_is_recovered():
    order = [3, 0, 4, 1, 2]
    counts = np.zeros((5, 5), np.int64)
    for start, end in pairwise(order):
        counts[start, end], counts[end, start] = 7, 2

    before = partial_order(counts)

    assert sorted(range(5), key=lambda keystep: before[keystep].bit_count()) == order


@pytest.mark.parametrize(("majority", "expected"), [(0.5, (2, 0)), (0.75, (2, 0)), (0.76, (0, 0))])
def test_the_direction_seen_clearly_more_often_is_kept(majority, expected):
    assert partial_order(np.array([[0, 2], [6, 0]]), majority) == expected


def test_a_pair_seen_equally_often_both_ways_has_no_order():
    assert partial_order(np.array([[0, 4], [4, 0]]), 0.0) == (0, 0)


@pytest.mark.parametrize(
    ("cycle", "expected"),
    [
        ((9, 8, 1), (0, 0b001, 0b011)),
        ((9, 1, 8), (0b100, 0b101, 0)),
        ((1, 9, 8), (0b110, 0, 0b010)),
        ((3, 3, 3), (0, 0b001, 0b011)),
    ],
)
def test_the_weakest_transition_of_a_cycle_is_left_out(cycle, expected):
    counts = np.zeros((3, 3), np.int64)
    counts[0, 1], counts[1, 2], counts[2, 0] = cycle

    assert partial_order(counts) == expected


def test_what_is_left_out_for_a_cycle_stops_no_weaker_pair():
    counts = np.zeros((5, 5), np.int64)
    counts[0, 1], counts[1, 2], counts[2, 0], counts[3, 4] = 9, 8, 7, 1

    assert partial_order(counts) == (0, 0b001, 0b011, 0, 0b1000)


def test_any_counts_become_a_partial_order():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(1, 8))
        counts = rng.integers(0, 6, (size, size)) * (rng.random((size, size)) < rng.random())
        np.fill_diagonal(counts, 0)

        before = partial_order(counts)

        assert not any(before[keystep] >> keystep & 1 for keystep in range(size))
        for later, earlier in product(range(size), repeat=2):
            if before[later] >> earlier & 1:
                assert before[earlier] & ~before[later] == 0


def contradicted(order, shares):
    """In which share of videos the pairs of a row are done the other way round, all together."""
    return sum(shares[second, first] for first, second in combinations(order, 2))


def random_shares(rng, size):
    shares = rng.random((size, size))
    return shares / (shares + shares.T)


def test_a_row_contradicts_hardly_more_than_the_best_of_all():
    rng = np.random.default_rng(5)
    worse = 0
    for _ in range(50):
        shares = random_shares(rng, 6)
        best = min(contradicted(order, shares) for order in permutations(range(6)))
        worse += contradicted(linear_order(shares), shares) > best + 1e-9
    assert worse <= 5


def test_no_single_move_makes_a_row_better():
    shares = random_shares(np.random.default_rng(1), 9)
    order = linear_order(shares)
    for one, place in product(range(9), repeat=2):
        moved = [*order[:one], *order[one + 1 :]]
        moved.insert(place, order[one])
        assert contradicted(moved, shares) > contradicted(order, shares) - 1e-6


def test_a_row_follows_directions_that_agree_whatever_their_sums_say():
    # The last comes before fewest, but surely; summed up, it would stand before the third.
    shares = np.array(
        [[0.5, 0.9, 0.9, 0.6], [0.1, 0.5, 0.9, 0.6], [0.1, 0.1, 0.5, 0.6], [0.4, 0.4, 0.4, 0.5]]
    )
    assert linear_order(shares) == [0, 1, 2, 3]
    assert np.argsort(-shares.sum(axis=1)).tolist() == [0, 1, 3, 2]


def test_a_row_of_equals_is_as_listed():
    assert linear_order(np.full((4, 4), 0.5)) == [0, 1, 2, 3]
    assert linear_order(np.zeros((0, 0))) == []
    assert linear_order(np.array([[0.5]])) == [0]


def test_a_long_row_is_found_at_once():
    order = linear_order(random_shares(np.random.default_rng(2), 400))
    assert sorted(order) == [*range(400)]


def test_of_two_rows_that_are_as_good_the_one_that_it_begins_with_is_kept():
    # 1 comes before more of the others than 0 does; between the two alone nothing is said.
    shares = np.array([[0.5, 0.5, 0.8], [0.5, 0.5, 0.9], [0.2, 0.1, 0.5]])

    assert linear_order(shares) == [1, 0, 2]
