"""Baselines: chance, a threshold for each video, and what prepares scores and graphs."""

import math

import numpy as np
import pytest

import reference
from reference import make_graph, make_scores, random_graph, random_scores
from stepgraph.core import BACKGROUND, Vocabulary
from stepgraph.decoders import Argmax, PathSearch
from stepgraph.decoders.baselines import (
    AdaptiveThreshold,
    Random,
    cluster_keysteps,
    linear_graph,
    non_probabilistic,
    prune_keysteps,
)
from stepgraph.errors import ConfigError, DataError

CHAIN = make_graph(np.eye(5, k=1, dtype=np.int64))
NEVER = -math.inf


def drawn(scores, seed=0):
    return Random(seed).decode(scores, CHAIN).keysteps.tolist()


def adapted(scores, graph=CHAIN, keep=0.5):
    return AdaptiveThreshold(keep).decode(scores, graph)


def test_random_labels_are_equally_likely():
    counts = np.bincount(drawn(make_scores(np.zeros((10_000, 5)))), minlength=5)

    assert counts.min() > 1_800
    assert counts.max() < 2_200


def test_random_labels_depend_on_seed_and_video_only():
    quiet = make_scores(np.zeros((50, 5)), video="a")
    other_values = make_scores(np.ones((50, 5)), video="a")
    other_video = make_scores(np.zeros((50, 5)), video="b")

    assert drawn(quiet) == drawn(quiet) == drawn(other_values)
    assert drawn(quiet) != drawn(other_video)
    assert drawn(quiet) != drawn(quiet, seed=1)


def test_random_labels_of_a_row_do_not_depend_on_which_others_are_observed():
    observed = [True, False, True, False]

    some = drawn(make_scores(np.zeros((4, 5)), observed))

    everything = drawn(make_scores(np.zeros((4, 5))))
    assert some == [everything[0], BACKGROUND, everything[2], BACKGROUND]


def test_random_labels_are_allowed_ones():
    scores = make_scores(np.zeros((200, 5))).restrict([1, 3])

    assert set(drawn(scores)) == {1, 3}


@pytest.mark.parametrize("decoder", [Random(), AdaptiveThreshold()])
def test_a_row_that_allows_nothing_is_background(decoder):
    scores = make_scores([[0.9, 0.1], [NEVER, NEVER], [0.9, 0.1]])

    labels = decoder.decode(scores, make_graph([[1, 1], [1, 1]]))

    assert labels.keysteps[1] == BACKGROUND
    assert (labels.keysteps[[0, 2]] != BACKGROUND).all()


@pytest.mark.parametrize("decoder", [Random(), AdaptiveThreshold()])
@pytest.mark.parametrize("rows", [0, 1, 4])
def test_a_video_without_speech_is_all_background(decoder, rows):
    scores = make_scores(np.ones((rows, 5)), [False] * rows)

    assert decoder.decode(scores, CHAIN).keysteps.tolist() == [BACKGROUND] * rows


@pytest.mark.parametrize("decoder", [Random(), AdaptiveThreshold()])
def test_labels_belong_to_the_video_of_the_scores(decoder):
    scores = make_scores(np.ones((4, 5)), video="v", hop=0.5)

    labels = decoder.decode(scores, CHAIN)

    assert (labels.video, labels.hop, labels.vocabulary) == ("v", 0.5, scores.vocabulary)


@pytest.mark.parametrize("seed", [-1, 0.5])
def test_seed_must_be_a_whole_number(seed):
    with pytest.raises(ConfigError, match="seed must be a whole number from 0 on"):
        Random(seed)


def test_the_better_half_of_the_observed_rows_are_anchors():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        scores = random_scores(rng, int(rng.integers(1, 40)), 5)

        anchors = adapted(scores, random_graph(rng, 5)).anchors

        best = scores.values.max(axis=1)
        others = scores.observed & ~anchors
        assert anchors.sum() == math.ceil(scores.observed.sum() / 2)
        assert not (anchors & ~scores.observed).any()
        assert best[anchors].min(initial=2) > best[others].max(initial=-2)


def test_adaptive_threshold_is_path_search_with_the_threshold_of_the_video():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        scores, graph = random_scores(rng, 25, 4), random_graph(rng, 4)
        decoder = AdaptiveThreshold(float(rng.choice([0.1, 0.5, 0.9])))

        labels = decoder.decode(scores, graph)

        expected = reference.path_search(scores, graph, np.float32(decoder.threshold(scores)))
        assert labels.keysteps.tolist() == expected


def test_rows_that_score_alike_are_kept_together():
    scores = make_scores(np.full((4, 2), 0.3))

    assert adapted(scores, make_graph([[0, 1], [1, 0]])).anchors.all()


def test_all_rows_can_be_kept():
    scores = make_scores(np.random.default_rng(0).random((9, 5)))

    labels = adapted(scores, keep=1)

    assert labels.anchors.all()


def test_adaptive_threshold_never_goes_through_a_forbidden_keystep():
    scores = make_scores(np.eye(5)[[0, 0, 0, 0, 4, 4]], [True, False, False, False, True, True])

    labels = adapted(scores.restrict([0, 4]), keep=1)

    assert labels.keysteps.tolist() == [0, 0, 0, 4, 4, 4]


@pytest.mark.parametrize("keep", [0, -0.5, 1.5, math.nan])
def test_keep_must_be_a_share(keep):
    with pytest.raises(ConfigError, match="keep must be above 0 and at most 1"):
        AdaptiveThreshold(keep)


def test_keysteps_that_are_near_share_a_cluster():
    rng = np.random.default_rng(0)
    centres = np.eye(3, dtype=np.float32)[[0, 1, 2, 0, 1, 2]]

    clusters = cluster_keysteps(centres + rng.normal(0, 0.01, (6, 3)).astype(np.float32), 3)

    assert len(set(clusters.tolist())) == 3
    assert (clusters[:3] == clusters[3:]).all()


def test_clusters_are_the_same_for_the_same_seed():
    vectors = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)

    assert (cluster_keysteps(vectors, 6, 3) == cluster_keysteps(vectors, 6, 3)).all()


def test_equal_keysteps_need_no_cluster_each():
    assert cluster_keysteps(np.ones((4, 2), np.float32), 3).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("count", [1, 4])
def test_there_may_be_one_cluster_or_one_for_each_keystep(count):
    assert len({*cluster_keysteps(np.eye(4, dtype=np.float32), count).tolist()}) == count


def test_the_seed_of_clusters_is_zero_if_none_is_given_and_never_negative():
    vectors = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)

    one, other = (cluster_keysteps(vectors, 6, seed).tolist() for seed in (0, 1))

    assert cluster_keysteps(vectors, 6).tolist() == one != other
    with pytest.raises(ConfigError, match="seed must be a whole number from 0 on, got -1"):
        cluster_keysteps(vectors, 6, -1)


@pytest.mark.parametrize("count", [0, 5])
def test_there_cannot_be_more_clusters_than_keysteps(count):
    with pytest.raises(ConfigError, match=r"between 1 and the 4 keysteps, got \d clusters"):
        cluster_keysteps(np.eye(4, dtype=np.float32), count)


def test_rows_that_allow_nothing_are_no_anchors_however_many_are_to_be_kept():
    scores = make_scores([[NEVER, NEVER]] * 3 + [[0.9, 0.1]])

    assert AdaptiveThreshold(0.5).threshold(scores) == pytest.approx(0.9)


def test_the_cluster_with_the_highest_mean_score_is_kept():
    scores = make_scores([[0.9, 0.0, 0.5, 0.5], [0.0, 0.0, 0.4, 0.4]])

    pruned = prune_keysteps(scores, np.array([7, 7, 2, 2]))

    assert np.isinf(pruned.values[:, :2]).all()
    assert (pruned.values[:, 2:] == scores.values[:, 2:]).all()


def test_pruning_takes_the_average_over_observed_rows_and_members():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        scores = random_scores(rng, 12, 7)
        clusters = rng.integers(0, 3, 7)

        labels = Argmax().decode(prune_keysteps(scores, clusters), make_graph(np.eye(7)))

        means = {
            cluster: np.mean(
                [
                    scores.values[row, keystep]
                    for row in range(12)
                    for keystep in range(7)
                    if scores.observed[row] and clusters[keystep] == cluster
                ]
            )
            for cluster in set(clusters.tolist())
        }
        best = max(means, key=means.get)
        assert set(clusters[labels.keysteps[scores.observed]].tolist()) == {best}


def test_pruning_ignores_unobserved_rows():
    scores = make_scores([[9.0, 0.0], [0.0, 1.0]], [False, True])

    assert np.isinf(prune_keysteps(scores, np.array([0, 1])).values[:, 0]).all()


def test_pruning_leaves_a_video_without_speech_alone():
    scores = make_scores(np.ones((3, 2)), [False] * 3)

    assert prune_keysteps(scores, np.array([0, 1])) is scores


def test_what_is_drawn_is_the_same_on_every_machine():
    labels = Random(3).decode(make_scores(np.zeros((12, 5)), video="v"), make_graph(np.eye(5)))

    assert labels.keysteps.tolist() == [1, 4, 3, 1, 2, 3, 0, 1, 0, 0, 0, 2]


def test_a_row_that_allows_one_keystep_is_given_it():
    only = make_scores(np.zeros((6, 5))).restrict([3])

    assert Random().decode(only, make_graph(np.eye(5))).keysteps.tolist() == [3] * 6


def test_what_one_row_forbids_may_be_done_in_another():
    values = [[0.9, -math.inf, 0.1], [0.1, 0.1, 0.1], [0.1, 0.1, 0.9]]
    scores = make_scores(values, [True, False, True])

    labels = AdaptiveThreshold().decode(scores, make_graph([[0, 1, 0], [0, 0, 1], [0, 0, 0]]))

    assert labels.keysteps.tolist() == [0, 1, 2]


def test_pruning_takes_the_average_over_what_is_allowed():
    scores = make_scores([[0.4, -math.inf, 0.5, 0.5]])

    pruned = prune_keysteps(scores, np.array([0, 0, 1, 1]))

    assert pruned.values[0] == pytest.approx([-math.inf, -math.inf, 0.5, 0.5])


def test_pruning_of_restricted_scores_takes_an_allowed_cluster():
    scores = make_scores([[0.9, 0.1, 0.2]]).restrict([1, 2])

    pruned = prune_keysteps(scores, np.array([0, 1, 2]))

    assert np.isfinite(pruned.values).tolist() == [[False, False, True]]


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ([-0.5, NEVER, -0.8, -0.8], [0]),
        ([1.0, NEVER, 0.8, 0.8], [0]),
        ([-0.9, NEVER, -0.8, -0.8], [2, 3]),
        ([NEVER, NEVER, -0.8, NEVER], [2]),
    ],
)
def test_what_is_forbidden_has_no_part_in_the_mean_of_its_cluster(values, kept):
    pruned = prune_keysteps(make_scores([values]), np.array([0, 0, 1, 1]))

    assert np.flatnonzero(np.isfinite(pruned.values[0])).tolist() == kept


def test_clusters_must_fit_the_vocabulary():
    with pytest.raises(DataError, match=r"clusters must have shape \(2,\), .* got \(3,\)"):
        prune_keysteps(make_scores([[0.0, 1.0]]), np.array([0, 1, 2]))


def test_the_linear_graph_chains_each_task_as_written():
    vocabulary = Vocabulary(tuple("abcde"), {"one": (3, 0, 1), "other": (0, 1, 4)})

    graph = linear_graph(vocabulary)

    expected = np.zeros((5, 5), int)
    expected[3, 0], expected[0, 1], expected[1, 4] = 1, 2, 1
    assert (graph.counts.toarray() == expected).all()


def test_a_linear_graph_needs_tasks():
    with pytest.raises(DataError, match="got a vocabulary without tasks"):
        linear_graph(reference.keysteps(3))


def test_a_non_probabilistic_graph_has_the_same_transitions_equally_likely():
    graph = make_graph([[7, 2, 0], [0, 0, 5], [1, 1, 8]], mined_on=("v",))

    plain = non_probabilistic(graph)

    assert plain.counts.toarray().tolist() == [[1, 1, 0], [0, 0, 1], [1, 1, 1]]
    assert graph.counts.toarray()[0].tolist() == [7, 2, 0]
    assert plain.mined_on == ("v",)


def test_a_non_probabilistic_graph_prefers_keysteps_with_few_ways_out():
    graph = make_graph([[0, 1, 99, 0], [0, 0, 0, 1], [9, 0, 0, 9], [0, 0, 0, 0]])

    assert graph.path(0, 3) == (0, 2, 3)
    assert non_probabilistic(graph).path(0, 3) == (0, 1, 3)


def test_bag_of_steps_is_argmax_among_the_keysteps_of_the_task():
    scores = make_scores([[0.9, 0.2, 0.1], [0.0, 0.1, 0.5]])

    labels = Argmax().decode(scores.restrict([1, 2]), make_graph(np.eye(3)))

    assert labels.keysteps.tolist() == [1, 2]


def test_linear_steps_fill_gaps_in_the_listed_order():
    vocabulary = Vocabulary(tuple("abcd"), {"task": (2, 0, 1, 3)})
    scores = make_scores(
        np.eye(4)[[2, 0, 0, 0, 0, 0, 0, 3]], [True, *[False] * 6, True], vocabulary=vocabulary
    )

    labels = PathSearch(0.5).decode(scores, linear_graph(vocabulary))

    assert labels.keysteps.tolist() == [2, 2, 0, 0, 1, 1, 3, 3]
