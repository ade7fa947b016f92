"""Transitions across tasks, and which tasks they join more than by chance."""

import numpy as np
import pytest

from reference import make_graph
from stepgraph.core import Vocabulary
from stepgraph.graph.ties import share_a_task, ties_of

SIX = Vocabulary(
    ("raise", "lower", "unscrew", "screw", "boil", "pour"),
    {"jack": (0, 1), "tire": (2, 3), "tea": (4, 5)},
)


def graph_of(*counted, names=SIX):
    counts = np.zeros((len(names), len(names)), np.int64)
    for first, second, count in counted:
        counts[first, second] += count
    return make_graph(counts, names)


def test_transitions_across_tasks_are_those_of_keysteps_without_a_common_task():
    shared = Vocabulary(SIX.keysteps, {"jack": (0, 1, 2), "tire": (2, 3), "tea": (4, 5)})
    counted = [(0, 0, 90), (0, 1, 5), (1, 2, 4), (3, 2, 3), (3, 0, 6), (4, 2, 2)]

    ties = ties_of(graph_of(*counted, names=shared))

    # Self-loops do not count; keystep 2 is of two tasks, so that only tea is another one.
    assert (ties.changes, ties.between.sum()) == (20, 8)
    assert ties.share == 8 / 20
    jack, tire, tea = range(3)
    assert ties.seen[jack, tire] == ties.seen[tire, jack] == 6
    assert ties.seen[tea, jack] == ties.seen[tea, tire] == 1


def test_keysteps_under_no_heading_are_a_task_of_their_own():
    loose = Vocabulary(SIX.keysteps, {"jack": (0, 1)})

    assert share_a_task(loose, np.array([2, 1]), np.array([5, 2])).tolist() == [True, False]


def test_a_graph_without_tasks_or_transitions_has_no_ties():
    without = ties_of(graph_of((0, 1, 3), names=Vocabulary(SIX.keysteps)))
    empty = ties_of(graph_of())

    assert (without.share, without.strongest(), without.order()) == (0, [], [0])
    assert (empty.changes, empty.share, empty.strongest()) == (0, 0, [])


def test_expected_ties_have_the_sums_that_were_seen_and_no_preference():
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 50, (6, 6))
    ties = ties_of(make_graph(counts, SIX))
    expected = ties.expected

    np.testing.assert_allclose(expected.sum(axis=1), ties.seen.sum(axis=1), rtol=1e-6)
    assert (expected.diagonal() == 0).all()
    four = Vocabulary(tuple("abcd"), {name: (at,) for at, name in enumerate("abcd")})
    x = ties_of(make_graph(rng.integers(1, 50, (4, 4)), four)).expected
    assert x[0, 1] * x[2, 3] == pytest.approx(x[0, 2] * x[1, 3])


def test_tasks_joined_at_random_are_no_more_than_by_chance():
    even = graph_of(*((a, b, 10) for a in range(6) for b in range(6)))

    assert [one.ratio for one in ties_of(even).strongest()] == pytest.approx([1.0] * 3)


def test_the_strongest_tie_comes_first_with_the_keysteps_that_carry_it():
    names = Vocabulary(tuple("abcd"), {"one": (0,), "two": (1,), "three": (2,), "four": (3,)})
    pairs = [(a, b, 6) for a in range(4) for b in range(4) if a != b]

    first, *others = ties_of(graph_of(*pairs, (0, 1, 30), (3, 2, 20), names=names)).strongest()

    assert (first.first, first.second, first.seen) == ("three", "four", 32)
    assert first.pairs == ((3, 2, 26), (2, 3, 6))
    assert first.ratio == first.seen / first.expected
    assert (others[0].first, others[0].second) == ("one", "two")
    assert others[0].ratio > 1.3 > 0.8 > others[1].ratio


def test_so_many_ties_and_keysteps_are_named_as_asked_for():
    ties = ties_of(graph_of(*((a, b, 9) for a in range(6) for b in range(6))))

    [one] = ties.strongest(1, pairs=2)
    assert one.pairs == ((0, 2, 9), (0, 3, 9))


def test_pairs_that_are_hardly_expected_are_left_out():
    few = ties_of(graph_of((0, 2, 3), (2, 4, 2), (0, 4, 1)))

    assert few.seen.sum() == 12
    assert few.strongest() == []
    assert (few.ratio == 0).all()


def test_related_tasks_are_neighbours():
    tasks = {"a": (0,), "b": (1,), "c": (2,), "d": (3,)}
    names = Vocabulary(tuple("wxyz"), tasks)

    order = ties_of(graph_of((0, 2, 90), (3, 1, 90), (2, 3, 40), (0, 1, 5), names=names)).order()

    assert order in ([0, 2, 3, 1], [1, 3, 2, 0])
