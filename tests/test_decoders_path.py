"""Argmax, and path search against the paper's definition."""

import math
from itertools import product

import numpy as np
import pytest

import reference
from reference import make_graph, make_scores, random_graph, random_scores
from stepgraph.core import BACKGROUND, Vocabulary
from stepgraph.decoders.path import Argmax, PathSearch, spread
from stepgraph.errors import ConfigError, DataError

CHAIN = make_graph(np.eye(5, k=1, dtype=np.int64))
SURE, UNSURE = 0.9, 0.2


def observed(*rows, size=5):
    """Scores of rows, each a keystep heard surely, (keystep, score), or None for silence."""
    values, observed = np.zeros((len(rows), size)), []
    for row, what in enumerate(rows):
        keystep, value = what if isinstance(what, tuple) else (what, SURE)
        observed.append(keystep is not None)
        if keystep is not None:
            values[row, keystep] = value
    return make_scores(values, observed)


def decoded(scores, graph=CHAIN, threshold=0.5):
    return PathSearch(threshold).decode(scores, graph).keysteps.tolist()


def test_path_search_is_the_definition_of_the_paper():
    for seed in range(100):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(2, 7))
        graph = random_graph(rng, size, density=rng.uniform(0.1, 0.7))
        scores = random_scores(rng, int(rng.integers(0, 40)), size)
        threshold = float(rng.choice([0.5, 0.9, 0.97, 1.1]))

        labels = PathSearch(threshold).decode(scores, graph)

        assert labels.keysteps.tolist() == reference.path_search(scores, graph, threshold)


def test_anchors_keep_their_labels():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        scores = random_scores(rng, 40, 4)

        labels = PathSearch(0.8).decode(scores, random_graph(rng, 4))

        sure = scores.observed & (scores.values.max(axis=1) >= 0.8)
        assert labels.anchors.tolist() == sure.tolist()
        assert (labels.keysteps[sure] == scores.values.argmax(axis=1)[sure]).all()


def test_keysteps_between_anchors_get_equal_shares():
    """The supplement: anchors at rows 1 and 10, three keysteps found, two rows each."""
    scores = observed(0, *[None] * 8, 4)

    assert decoded(scores) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_unsure_rows_are_replaced():
    scores = observed(0, (3, UNSURE), (3, UNSURE), 2)

    assert decoded(scores) == [0, 0, 1, 2]


@pytest.mark.parametrize(("threshold", "kept"), [(0.25, True), (0.5, True), (0.75, False)])
def test_threshold_is_inclusive(threshold, kept):
    labels = PathSearch(threshold).decode(observed((1, 0.5), 0), CHAIN)

    assert labels.anchors.tolist() == [kept, True]


def test_threshold_is_inclusive_in_single_precision():
    labels = PathSearch(0.4).decode(observed((1, 0.4)), CHAIN)

    assert labels.anchors.tolist() == [True]


def test_first_anchor_reaches_back_to_the_beginning():
    assert decoded(observed(None, (4, UNSURE), 2)) == [2, 2, 2]


def test_last_anchor_goes_on_to_the_end():
    assert decoded(observed(2, (4, UNSURE), None)) == [2, 2, 2]


def test_without_any_anchor_the_preliminary_labels_stay():
    labels = PathSearch(0.5).decode(observed((3, UNSURE), None, (1, UNSURE)), CHAIN)

    assert labels.keysteps.tolist() == [3, BACKGROUND, 1]
    assert not labels.anchors.any()


def test_without_a_path_each_anchor_takes_half():
    assert decoded(observed(3, None, None, None, None, 1)) == [3, 3, 3, 1, 1, 1]


def test_without_a_path_the_middle_of_an_odd_gap_goes_to_the_first():
    assert decoded(observed(3, None, 1)) == [3, 3, 1]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [([0, 4], [0, 4]), ([0, None, 4], [0, 2, 4]), ([0, None, None, 4], [0, 1, 3, 4])],
)
def test_a_gap_shorter_than_its_path_is_sampled_evenly(rows, expected):
    assert decoded(observed(*rows)) == expected


def test_between_equal_anchors_the_keystep_goes_on():
    assert decoded(observed(2, (0, UNSURE), None, 2)) == [2, 2, 2, 2]


def test_a_video_of_sure_rows_is_not_changed():
    assert decoded(observed(4, 0, 3, 3, 1)) == [4, 0, 3, 3, 1]


@pytest.mark.parametrize("decoder", [Argmax(), PathSearch()])
def test_a_video_of_no_rows_has_no_labels(decoder):
    labels = decoder.decode(observed(), CHAIN)

    assert len(labels) == 0


@pytest.mark.parametrize("decoder", [Argmax(), PathSearch()])
@pytest.mark.parametrize(("row", "label"), [(3, 3), (None, BACKGROUND)])
def test_one_row_keeps_its_own_label(decoder, row, label):
    labels = decoder.decode(observed(row), CHAIN)

    assert labels.keysteps.tolist() == [label]


@pytest.mark.parametrize("decoder", [Argmax(), PathSearch(-math.inf)])
def test_a_video_without_speech_is_all_background(decoder):
    labels = decoder.decode(observed(None, None, None), CHAIN)

    assert labels.keysteps.tolist() == [BACKGROUND] * 3


def test_values_of_unobserved_rows_are_ignored():
    scores = make_scores([[9.0, 0.0], [0.0, 9.0]], [False, True])

    labels = PathSearch(0.5).decode(scores, make_graph([[0, 1], [0, 0]]))

    assert labels.anchors.tolist() == [False, True]
    assert labels.keysteps.tolist() == [1, 1]


def test_an_empty_graph_still_fills_gaps():
    empty = make_graph(np.zeros((5, 5), np.int64))

    assert decoded(observed(0, None, None, 4), empty) == [0, 0, 4, 4]


def test_argmax_labels_observed_rows_with_their_best_keystep():
    labels = Argmax().decode(observed((3, UNSURE), None, 1), CHAIN)

    assert labels.keysteps.tolist() == [3, BACKGROUND, 1]
    assert labels.anchors is None


@pytest.mark.parametrize("decoder", [Argmax(), PathSearch()])
def test_labels_belong_to_the_video_of_the_scores(decoder):
    scores = make_scores(np.ones((4, 5)), video="v", hop=0.5)

    labels = decoder.decode(scores, CHAIN)

    assert (labels.video, labels.hop, labels.vocabulary) == ("v", 0.5, scores.vocabulary)


@pytest.mark.parametrize("size", [5, 3])
def test_a_graph_of_another_vocabulary_is_refused(size):
    names = Vocabulary(tuple("abcde"[:size]))
    other = make_graph(np.eye(size, k=1, dtype=np.int64), names)

    with pytest.raises(DataError, match="vocabulary"):
        PathSearch(0.5).decode(observed(0, None, 4), other)


def test_shares_are_in_order_and_differ_by_at_most_one_row():
    for length, rows in product(range(1, 8), range(2, 20)):
        spread_out = spread(tuple(range(length)), rows).tolist()

        shares = [spread_out.count(keystep) for keystep in range(length)]
        assert spread_out == sorted(spread_out)
        assert (spread_out[0], spread_out[-1]) == (0, length - 1)
        assert max(shares) - min(shares) <= 1


def test_threshold_must_be_a_number():
    with pytest.raises(ConfigError, match="threshold must be a number, got nan"):
        PathSearch(math.nan)


def test_decoding_twice_gives_the_same_labels():
    rng = np.random.default_rng(0)
    scores, graph = random_scores(rng, 30, 5), random_graph(rng, 5)

    assert decoded(scores, graph) == decoded(scores, graph)
