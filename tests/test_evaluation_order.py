"""What a graph says about order, held against the truth: worked by hand, and at the edges."""

import math

import numpy as np
import pytest

from reference import keysteps, make_graph
from stepgraph.core import Labels, Vocabulary
from stepgraph.evaluation.order import check_order, clear_pairs
from stepgraph.graph import TaskGraph
from stepgraph.graph.layers import Layers

WORDS = Vocabulary(keysteps(4).keysteps, {"tea": (0, 1, 2, 3)})


def labelled(*sequence, video="v"):
    return Labels(video, np.array(sequence, np.int64), WORDS)


def graph_of(*videos):
    counts = make_graph(np.zeros((4, 4), np.int64), WORDS).counts
    return TaskGraph(WORDS, counts, layers=Layers.of_videos("tea", videos))


def test_a_pair_is_clear_from_three_quarters_of_ten_videos_on():
    there, back = labelled(0, 1), labelled(1, 0)

    assert clear_pairs([there] * 10) == [(0, 1)]
    assert clear_pairs([there] * 9) == []
    assert clear_pairs([there] * 9 + [back] * 3) == [(0, 1)]
    assert clear_pairs([there] * 8 + [back] * 3) == []
    assert clear_pairs([back] * 12) == [(1, 0)]


def test_who_begins_first_is_first_whatever_is_repeated():
    assert clear_pairs([labelled(0, 1, 0, -1, 0)] * 10) == [(0, 1)]


def test_a_graph_of_the_truth_is_as_good_as_can_be():
    truth = [labelled(0, 1, 2, 3)] * 9 + [labelled(0, 2, 1, 3)] * 3

    task, mean = check_order(graph_of(*truth), {"tea": truth})

    # Before and after each other, 1 and 2 come in 9 of 12 videos: just clear.
    assert (task.videos, task.pairs, task.right_directions) == (12, 6, 1.0)
    assert task.next_share == task.next_share_possible == pytest.approx(27 / 36)
    assert task.covered == 1.0
    assert mean[1:] == task[1:]


def test_a_graph_the_other_way_round_is_wrong_throughout():
    truth = [labelled(0, 1, 2)] * 10

    task, _ = check_order(graph_of(labelled(2, 1, 0)), {"tea": truth})

    assert (task.right_directions, task.next_share, task.covered) == (0.0, 0.0, 0.0)


def test_what_the_graph_never_saw_is_not_covered():
    task, _ = check_order(graph_of(labelled(3)), {"tea": [labelled(0, 1)] * 10})

    assert (task.pairs, task.right_directions, task.next_share) == (1, 0.0, 0.0)


def test_without_a_clear_pair_or_a_transition_shares_are_undefined():
    task, mean = check_order(graph_of(labelled(0)), {"tea": [labelled(-1, -1), labelled(0)]})

    assert task.pairs == 0
    assert all(math.isnan(one) for one in (*task[3:], *mean[3:]))
