"""Orders from executions: reduced as by hand, likely as by counting, and nothing contradicted."""

import math
from itertools import permutations, product

import numpy as np
import pytest

from stepgraph.assistant import learn_order
from stepgraph.assistant.orders import _Seen, reduced
from stepgraph.errors import ConfigError


def random_order(rng, size):
    before = np.triu(rng.random((size, size)) < rng.random(), 1)
    for middle in range(size):
        before |= np.outer(before[:, middle], before[middle])
    return before


def reduced_by_hand(before):
    """Leave out each pair that a third step comes between."""
    size, found = len(before), before.copy()
    for first, middle, last in product(range(size), repeat=3):
        if before[first, middle] and before[middle, last]:
            found[first, last] = False
    return found


def cost_by_hand(before, steps, noise):
    """Minus the log of picking each step among those that are ready, or among all."""
    total, left = 0.0, list(steps)
    for step in steps:
        ready = [one for one in left if not any(before[other, one] for other in left)]
        chance = (1 - noise) * (step in ready) / len(ready) + noise / len(left)
        total -= math.log(max(chance, 1e-300))
        left.remove(step)
    return total


@pytest.mark.parametrize("seed", range(20))
def test_an_order_is_reduced_as_by_hand(seed):
    rng = np.random.default_rng(seed)
    before = random_order(rng, int(rng.integers(1, 8)))

    assert (reduced(before) == reduced_by_hand(before)).all()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_executions_cost_what_they_cost_by_hand(seed, noise):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 7))
    orders = np.stack([random_order(rng, size) for _ in range(3)])
    rows = [rng.permutation(size)[: rng.integers(1, size + 1)] for _ in range(4)]
    if not noise:  # then only what is allowed can be done
        rows = [np.sort(row) for row in rows]

    found = _Seen(rows, size, noise).cost(orders)

    expected = [sum(cost_by_hand(one, row.tolist(), noise) for row in rows) for one in orders]
    assert found == pytest.approx(expected)


def test_without_noise_no_execution_is_contradicted():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = [rng.permutation(6)[: rng.integers(2, 7)].tolist() for _ in range(4)]

        order = learn_order(rows)

        for row in rows:
            for first, second in order.edges:
                if first in row and second in row:
                    assert row.index(first) < row.index(second)


def test_all_ways_to_do_a_recipe_give_it_back():
    # a and b in any order, then c, then d or e.
    ways = [(*x, "c", *y) for x in permutations("ab") for y in permutations("de")]

    order = learn_order(ways * 3)

    assert {*order.edges} == {("a", "c"), ("b", "c"), ("c", "d"), ("c", "e")}
    assert order.prerequisites("c") == ["a", "b"]


def test_a_chain_stays_a_chain():
    assert learn_order(["abcdef"] * 2).edges == [*zip("abcde", "bcdef", strict=True)]


def test_noise_does_not_hide_an_order():
    runs = ["abcdef"] * 18 + ["bacdef", "abdcef", "abcdfe"]

    assert len(learn_order(runs).edges) != 5
    assert learn_order(runs, noise=0.1).edges == [*zip("abcde", "bcdef", strict=True)]


def test_repeated_steps_count_once():
    assert learn_order(["aab", "abab"]).edges == [("a", "b")]


def test_optional_steps_and_alternatives_are_told():
    order = learn_order(["amb"] * 6 + ["asb"] * 6)

    assert order.optional == ["m", "s"]
    assert order.alternatives == [("m", "s")]
    assert {*order.edges} == {("a", "m"), ("a", "s"), ("m", "b"), ("s", "b")}


@pytest.mark.parametrize(("runs", "steps"), [([], ()), ([[]], ()), (["a"], ("a",))])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_nothing_and_one_step_have_no_order(runs, steps, noise):
    order = learn_order(runs, noise=noise)

    assert order.steps == steps
    assert order.edges == []
    assert order.alternatives == []


@pytest.mark.parametrize("noise", [-0.1, 1.0])
def test_noise_is_a_share(noise):
    with pytest.raises(ConfigError, match="noise must be at least 0 and below 1, got"):
        learn_order(["ab"], noise=noise)
