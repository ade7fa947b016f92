"""What the assistant is measured with: recipes that are followed, figures as by hand."""

from itertools import product

import numpy as np
import pytest
from benchmarks.assistant import (
    auc,
    by_transitions,
    compare,
    counted,
    judge,
    learned,
    padded,
    plain_order,
    windows,
)
from benchmarks.mistakes import UNKNOWN, macro_f1, published_rule, spoiled
from benchmarks.recipes import HABITS, SHAPES, recipes, swapped
from benchmarks.words import Pair, held_out, plain, said_in, turned_round, uses_text

from stepgraph.assistant import learn_order


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("habit", HABITS)
def test_executions_follow_their_recipe(shape, habit):
    for one in recipes(3, (shape,), habit, count=4, size=9, executions=3):
        assert not (one.before & one.before.T).any()
        for steps in one.executions:
            assert sorted(steps) == list(range(9))
            place = np.argsort(steps)
            assert (place[:, None] < place)[one.before].all()


def test_orders_without_and_with_weighing_contradict_no_execution():
    [one] = recipes(4, ("tree",), "any ready step", count=1, size=8, executions=6)

    plain, weighed = plain_order(one.executions), learned(one.executions)

    assert (plain | ~one.before).all()
    assert (plain | ~weighed).all()


def test_swapped_neighbours_are_the_same_steps():
    random = np.random.default_rng(0)

    assert swapped(random, [1, 2, 3], 0.0) == [1, 2, 3]
    assert swapped(random, [1, 2, 3], 1.0) == [2, 3, 1]


def test_windows_and_padding():
    assert windows([[1, 2, 3], [4]], 2) == [(1, 2), (2, 3)]
    assert padded([1, 2], 4) == [1, 1, 1, 2]


@pytest.mark.parametrize("seed", range(5))
def test_the_way_by_transitions_is_the_best_of_all(seed):
    chances = np.random.default_rng(seed).dirichlet(np.ones(4), size=4)
    ways = [(0, *between, 1) for between in product(range(4), repeat=2)]

    best = max(ways, key=lambda way: np.prod([chances[way[at], way[at + 1]] for at in range(3)]))

    assert by_transitions(chances, 0, 1, 4) == best


def test_figures_are_those_by_hand():
    assert auc([True, False, False, True], [0.9, 0.5, 0.1, 0.5]) == pytest.approx(100 * 3.5 / 4)
    assert macro_f1([True, False, False], [True, True, False]) == pytest.approx(200 / 3)
    found = compare([((1, 2, 3), (1, 2, 3)), ((1, 2, 3), (1, 4, 3))])
    assert found["success"] == 50
    assert found["accuracy"] == pytest.approx(100 * (1 + 2 / 3) / 2)
    assert found["iou"] == pytest.approx(100 * (1 + 2 / 4) / 2)


def test_a_spoiled_execution_ends_with_its_mistake():
    runs = {"it": [tuple("abcd")] * 20}

    done = spoiled(np.random.default_rng(0), runs, runs, 9, 1.0)

    tests = done.of_split("test")
    assert all(one.mistakes == (*[False] * (len(one.steps) - 1), True) for one in tests)
    # Every mistake in a chain lacks something, or is of elsewhere.
    assert [one.mistakes for one in published_rule(done).done] == [one.mistakes for one in tests]
    assert any(UNKNOWN in one.steps for one in tests)


def test_words_that_say_nothing_change_no_order():
    [one] = recipes(4, ("sparse",), "any ready step", count=1, size=8, executions=6)
    order, none = learn_order(one.executions), np.zeros((8, 8))

    assert (uses_text(order, one.executions, none, 0.0).before == order.before).all()
    strong = uses_text(order, one.executions, none + 5, 0.0).before
    assert (plain(order).before | ~strong).all()
    assert strong.sum() >= order.before.sum()


def test_words_tell_of_tasks_that_were_not_taught_what_others_did():
    names = [("loosen the lid", "remove the lid"), ("loosen the nut", "remove the nut")]
    pairs = [Pair("here", str(task), pair, 1.0) for task, pair in enumerate(names * 3)]
    pairs.append(Pair("here", "turned", names[0][::-1], 0.0))
    told = turned_round(pairs, said_in(sum(names, ())))

    odds = held_out(told, np.array([one.share for one in pairs]), [one.task for one in pairs])

    assert (told[-1] == -told[0]).all()
    assert (odds[:-1] > 0).all()
    assert odds[-1] < 0


def test_an_order_is_judged_by_all_executions():
    runs = ["abc"] * 30 + ["acb"] * 10
    order = learn_order(["abc"] * 3)

    before, direct = judge(order, counted(runs))

    assert before == pytest.approx(200 * 2 / (3 + 2))
    # START a, a b, b c, c END; truly START a, a b, a c, b END, c END.
    assert direct == pytest.approx(200 * 3 / (4 + 5))
    assert judge(order, counted(runs[:5])) is None
