"""The benchmark of the graph's worth: what it takes away and puts in, and the page it fills."""

import sys
from pathlib import Path

import numpy as np
import pytest

from reference import make_graph
from stepgraph.core import Labels, Sentence, Video, Vocabulary
from stepgraph.evaluation.comparison import count_videos

ROOT = Path(__file__).parent.parent
WORDS = Vocabulary(("boil", "pour", "stir"), {"tea": (0, 1, 2)})


@pytest.fixture(scope="module")
def worth():
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks import graph_worth
    finally:
        sys.path.remove(str(ROOT))
    return graph_worth


def labelled(video, keysteps, anchors=None):
    return Labels(video, np.array(keysteps), WORDS, 1.0, anchors)


def test_flat_transitions_know_neither_counts_nor_order(worth):
    graph = make_graph([[0, 9, 0], [0, 0, 9], [0, 0, 0]], WORDS)

    found = worth.Flat(self_transition=0.8).transitions((0, 1, 2), graph)

    assert found == pytest.approx(np.where(np.eye(3), 0.8, 0.1))


def test_transitions_are_replaced_and_the_end_is_no_keystep(worth):
    graph = make_graph([[5, 1, 0], [0, 5, 1], [0, 0, 5]], WORDS)

    found = worth.next_counts(graph, {(0, 2): 7, (2, worth.END): 3})

    assert found.counts.toarray().tolist() == [[0, 0, 7], [0, 0, 0], [0, 0, 0]]
    assert worth.next_counts(graph, {}).counts.nnz == 0


def test_gaps_lie_between_anchors_that_do_not_touch(worth):
    graph = make_graph([[5, 1, 0], [0, 5, 1], [0, 0, 5]], WORDS)
    anchors = np.array([True, True, False, True, False, True])
    labels = labelled("v", [0, 0, 1, 2, 2, 2], anchors)

    found = worth.gaps([labels], graph)

    # From boil to stir there is a way through pour; the touching pair is no gap.
    assert found == {"gaps": 2, "same_keystep": 50.0, "two_keysteps": 0.0, "longer": 50.0}


def test_thinning_keeps_about_that_share_of_the_sentences(worth):
    said = tuple(Sentence(at, at + 1.0, str(at)) for at in range(1000))
    video = Video("v", 1000.0, said)

    found = worth.thin(video, 0.3, np.random.default_rng(0)).transcript

    assert 250 < len(found) < 350
    assert set(found) < set(said)


def test_a_method_is_compared_with_its_base(worth):
    true = {video: labelled(video, [0, 1]) for video in "abc"}
    right, half = ([labelled(video, rows) for video in "abc"] for rows in ([0, 1], [0, 0]))
    found = {"right": count_videos(right, true), "half": count_videos(half, true)}

    assert worth.compare(found, "half", "right")["accuracy_more"] == [-50.0, -50.0, -50.0]
    assert worth.compare(found, "right", "right")["accuracy"] == 100.0
    assert "accuracy_more" not in worth.compare(found, "right", "right")


def test_a_difference_is_bold_where_zero_is_outside_its_interval(worth):
    def shown(*found):
        return worth.difference({"accuracy_more": [*found]}, "accuracy")

    assert shown(0.5, 0.2, 0.8) == "**+0.50 [0.20, 0.80]**"
    assert shown(-0.0, -0.1, 0.3) == "+0.00 [-0.10, 0.30]"
    assert shown(0.25) == "+0.25"  # the mean of several draws
    assert worth.difference({}, "accuracy") == ""
