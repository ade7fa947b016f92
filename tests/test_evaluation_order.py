"""What a graph says about order, held against the truth: worked by hand, and at the edges."""

import math
from collections import Counter

import numpy as np
import pytest

from reference import keysteps, make_graph, make_traces
from stepgraph.core import Labels, Vocabulary
from stepgraph.evaluation.order import (
    _judge_next,
    check_order,
    count_before,
    count_next,
    majority_pairs,
)
from stepgraph.graph.order_statistics import END, Successor

WORDS = Vocabulary(keysteps(4).keysteps, {"tea": (0, 1, 2, 3)})


def labelled(*sequence, video="v"):
    return Labels(video, np.array(sequence, np.int64), WORDS)


def layers_of(*videos, order=0.0):
    """Layers of videos that say plainly, for nine rows each, what is done."""
    plain = [
        Labels(f"{n}", np.repeat(one.keysteps, 9), WORDS, one.hop) for n, one in enumerate(videos)
    ]
    traces = make_traces({"tea": plain}, WORDS, order)
    return make_graph(np.zeros((4, 4), np.int64), WORDS, traces=traces).statistics


def clear(videos):
    return majority_pairs(count_before(videos))


def test_a_pair_is_clear_from_three_quarters_of_ten_videos_on():
    there, back = labelled(0, 1), labelled(1, 0)

    assert clear([there] * 10) == [(0, 1)]
    assert clear([there] * 9) == []
    assert clear([there] * 9 + [back] * 3) == [(0, 1)]
    assert clear([there] * 8 + [back] * 3) == []
    assert clear([back] * 12) == [(1, 0)]


def test_who_begins_first_is_first_whatever_is_repeated():
    assert clear([labelled(0, 1, 0, -1, 0)] * 10) == [(0, 1)]


def test_a_graph_of_the_truth_is_as_good_as_can_be():
    truth = [labelled(0, 1, 2, 3)] * 9 + [labelled(0, 2, 1, 3)] * 3

    task, mean = check_order(layers_of(*truth), {"tea": truth})

    # Before and after each other, 1 and 2 come in 9 of 12 videos: just clear.
    assert (task.videos, task.pairs, task.right_directions) == (12, 6, 1.0)
    assert task.next_share == task.next_share_possible == pytest.approx(27 / 36)
    assert task.covered == 1.0
    # Of the ten strongest, as many as are true at all.
    assert task.strongest == pytest.approx(3 / 10)
    assert task.strongest_precision == 1.0
    assert (task.precedence_held, task.next_held) == (1.0, 1.0)
    assert mean[1:] == task[1:]


def test_a_graph_the_other_way_round_is_wrong_throughout():
    truth = [labelled(0, 1, 2)] * 10

    task, _ = check_order(layers_of(labelled(2, 1, 0, 3)), {"tea": truth})

    assert (task.right_directions, task.next_share) == (0.0, 0.0)
    assert task.next_held < 1


def test_intervals_of_the_opposite_do_not_hold_the_truth():
    truth = [labelled(0, 1)] * 12

    task, _ = check_order(layers_of(*[labelled(1, 0)] * 12), {"tea": truth})

    assert (task.pairs, task.right_directions, task.precedence_held) == (1, 0.0, 0.0)


def test_intervals_are_judged_of_pairs_that_come_either_way():
    truth = [labelled(0, 1), labelled(1, 0)] * 6

    task, _ = check_order(layers_of(*truth), {"tea": truth})

    assert (task.pairs, task.precedence_held) == (0, 1.0)


@pytest.mark.parametrize(("videos", "held"), [(9, math.nan), (10, 1.0)])
def test_intervals_are_judged_where_ten_videos_tell_the_true_share(videos, held):
    truth = [labelled(0, 1)] * videos

    task, _ = check_order(layers_of(*truth), {"tea": truth})

    assert (task.precedence_held, task.next_held) == pytest.approx((held, held), nan_ok=True)


@pytest.mark.parametrize(("true", "covered"), [(1, 1.0), (4, 1.0), (5, 0.0)])
def test_four_guesses_cover_what_is_truly_next(true, covered):
    said = {0: [Successor(END, 9, 0.5, 0, 1), *(Successor(n, 1, 0.1, 0, 1) for n in range(1, 6))]}

    hits, possible, found = _judge_next({0: Counter({true: 3, END: 7})}, said)

    assert (hits, possible, found) == (float(true == 1), 1.0, covered)


def test_the_end_is_what_comes_next_after_the_last():
    assert count_next([labelled(0, 0, 1), labelled(0), labelled()]) == {
        0: {1: 1, END: 1},
        1: {END: 1},
    }


def test_tasks_of_which_no_video_was_recognised_are_left_out():
    truth = {"tea": [labelled(0, 1)], "soup": [labelled(0, 1)]}

    assert [one.task for one in check_order(layers_of(labelled(0, 1)), truth)] == [
        *("tea", "mean of the tasks")
    ]


def test_without_a_clear_pair_or_a_transition_shares_are_undefined():
    task, mean = check_order(layers_of(labelled(0)), {"tea": [labelled(-1, -1), labelled(0)]})

    assert task.pairs == 0
    shares = ("right_directions", "next_share", "covered", "precedence_held", "next_held")
    assert all(math.isnan(getattr(one, name)) for one in (task, mean) for name in shares)


def test_what_is_truly_done_of_another_task_counts_as_nothing():
    words = Vocabulary(WORDS.keysteps, {"tea": (0, 1), "soup": (2, 3)})
    plain = [Labels(f"{n}", np.repeat([0, 1], 9), words) for n in range(12)]
    traces = make_traces({"tea": plain}, words, 0.0)
    layers = make_graph(np.zeros((4, 4), np.int64), words, traces=traces).statistics

    with_soup = check_order(layers, {"tea": [Labels("v", np.array([2, 0, 2, 1]), words)] * 12})

    assert with_soup == check_order(layers, {"tea": [Labels("v", np.array([0, 1]), words)] * 12})
    assert with_soup[0].next_share == 1.0
