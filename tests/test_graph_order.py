"""Which keysteps come before which: cycles are broken where they are weakest."""

from itertools import pairwise, product

import numpy as np
import pytest

from stepgraph.graph.order import partial_order


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
