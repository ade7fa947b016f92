"""The authors' behaviours: each alone does what its name says, none of them is the paper."""

import math
from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest

import reference
from reference import make_graph, make_scores, random_graph, random_scores
from stepgraph.core import BACKGROUND, Vocabulary
from stepgraph.decoders import BayesFilter, PathSearch
from stepgraph.errors import ConfigError, DataError
from stepgraph.experiments.authors import (
    AuthorsBayesFilter,
    AuthorsPathSearch,
    Behaviors,
    Limit,
    agglomerate,
    allowed_keysteps,
    mine_as_authors,
    without_adjacent,
)
from stepgraph.graph import mine_graph

OFF = BACKGROUND
ADDED = Behaviors(added_belief=0.20)


def empty_graph(size):
    return make_graph(np.zeros((size, size), np.int64))


def heard(*rows, size=8, score=0.9):
    """Scores of rows, each a keystep heard clearly, or None for silence."""
    values = np.zeros((len(rows), size))
    for row, keystep in enumerate(rows):
        if keystep is not None:
            values[row, keystep] = score
    return make_scores(values, [keystep is not None for keystep in rows])


def decoded(scores, behaviors, graph=None, **options):
    graph = graph or empty_graph(len(scores.vocabulary))
    return AuthorsPathSearch(0.5, behaviors, **options).decode(scores, graph).keysteps.tolist()


def test_without_any_behaviour_path_search_is_that_of_the_paper():
    for seed in range(100):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(2, 7))
        graph = random_graph(rng, size, density=rng.uniform(0.1, 0.7))
        scores = random_scores(rng, int(rng.integers(0, 40)), size)
        threshold = float(rng.choice([0.5, 0.9, 0.97, 1.1]))

        ours = AuthorsPathSearch(threshold, Behaviors()).decode(scores, graph)

        paper = PathSearch(threshold).decode(scores, graph)
        assert ours.keysteps.tolist() == paper.keysteps.tolist()
        assert ours.anchors.tolist() == paper.anchors.tolist()


def test_without_any_behaviour_the_filter_is_that_of_the_paper():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        scores, graph = random_scores(rng, 30, 5), random_graph(rng, 5)

        ours = AuthorsBayesFilter(0.3, Behaviors()).decode(scores, graph)

        assert ours.keysteps.tolist() == BayesFilter(0.3).decode(scores, graph).keysteps.tolist()


def test_without_any_behaviour_mining_is_that_of_the_paper():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        videos = [random_scores(rng, 20, 4, video=str(video)) for video in range(3)]
        vocabulary = videos[0].vocabulary

        ours, paper = (
            mine_as_authors(videos, vocabulary, Behaviors()),
            mine_graph(videos, vocabulary),
        )

        assert (ours.counts != paper.counts).nnz == 0
        assert (ours.mined_on, ours.mining) == (paper.mined_on, paper.mining)


def test_the_example_of_adjacent_anchors():
    """All of 0..7 confident: every other anchor is overwritten."""
    labels = decoded(heard(*range(8)), Behaviors(adjacent_forgotten=True))

    assert labels == [1, 1, 1, 3, 3, 5, 5, 7]


@pytest.mark.parametrize(
    ("anchors", "remembered"),
    [
        ("", ""),
        ("0", "0"),
        ("1", "1"),
        ("11", "01"),
        ("111", "011"),
        ("1111", "0101"),
        ("10101", "10101"),
        ("1101101", "0100101"),
    ],
)
def test_the_earlier_of_each_two_adjacent_anchors_is_forgotten(anchors, remembered):
    kept = without_adjacent(np.array([int(one) for one in anchors], bool))

    assert "".join(str(int(one)) for one in kept) == remembered


def test_a_forgotten_anchor_is_overwritten_from_an_older_one():
    labels = decoded(heard(0, None, None, 5, 6), Behaviors(adjacent_forgotten=True))

    assert labels == [0, 0, 0, 6, 6]


def test_anchors_of_the_labels_are_the_remembered_ones():
    decoder = AuthorsPathSearch(0.5, Behaviors(adjacent_forgotten=True))

    labels = decoder.decode(heard(0, 1, None, 3), empty_graph(8))

    assert labels.anchors.tolist() == [False, True, False, True]


def test_raw_costs_prefer_rare_transitions():
    # From 0 the way by 1 is nearly certain, the one by 2 is rare.
    graph = make_graph([[0, 98, 2, 0], [0, 0, 0, 1], [9, 0, 0, 1], [0, 0, 0, 0]])
    scores = heard(0, None, 3, size=4)

    assert decoded(scores, Behaviors(), graph) == [0, 1, 3]
    assert decoded(scores, Behaviors(raw_costs=True), graph) == [0, 2, 3]


def test_raw_costs_give_the_path_with_the_least_sum_of_probabilities():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        graph = random_graph(rng, 5, density=0.5)
        scores = heard(0, *[None] * 12, 4, size=5)

        labels = decoded(scores, Behaviors(raw_costs=True), graph)

        paths = reference.simple_paths(graph, 0, 4)
        shares = graph.probabilities.toarray()
        sums = {path: sum(shares[pair] for pair in pairwise(path)) for path in paths}
        expected = min(sums, key=sums.get, default=(0, 4))
        assert list(dict.fromkeys(labels)) == list(expected)


def test_the_first_transition_from_each_keystep_counts_twice():
    videos = [heard(0, 1, None, 0, 2, size=4), heard(2, 3, 0, 2, 3, size=4)]
    videos = [replace(one, video=str(number)) for number, one in enumerate(videos)]

    graph = mine_as_authors(videos, videos[0].vocabulary, Behaviors(first_counted_twice=True))

    # 0→1, 1→0 (over the silence), 0→2 and 2→3, 3→0, 0→2, 2→3; the first from each again.
    expected = np.zeros((4, 4), int)
    expected[0, 1], expected[0, 2], expected[1, 0] = 2, 2, 2
    expected[2, 3], expected[3, 0] = 3, 2
    assert (graph.counts.toarray() == expected).all()


def test_counting_the_first_twice_adds_one_to_each_keystep_that_was_left():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        videos = [random_scores(rng, 8, 6, video=str(video)) for video in range(4)]

        graph = mine_as_authors(videos, videos[0].vocabulary, Behaviors(first_counted_twice=True))

        expected = np.zeros((6, 6), int)
        seen = set()
        for scores in videos:
            for first, second in reference.transitions(scores):
                expected[first, second] += 1 if first in seen else 2
                seen.add(first)
        assert (graph.counts.toarray() == expected).all()


@pytest.mark.parametrize("twice", [False, True])
def test_dropping_rows_without_narration_first_gives_the_same_counts(twice):
    """The scripts drop them; mining bridges them.  Only when keysteps are done differs."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        videos = [random_scores(rng, 30, 5, video=str(video)) for video in range(3)]
        dropped = [
            replace(one, values=one.values[one.observed], observed=one.observed[one.observed])
            for one in videos
        ]
        behaviors = Behaviors(first_counted_twice=twice)

        whole, short = (
            mine_as_authors(some, videos[0].vocabulary, behaviors) for some in (videos, dropped)
        )

        assert (whole.counts != short.counts).nnz == 0


def test_scores_of_another_vocabulary_are_not_mined():
    with pytest.raises(DataError, match="vocabulary"):
        mine_as_authors([heard(0, 1)], Vocabulary(("a", "b")), Behaviors(first_counted_twice=True))


def test_nothing_is_mined_from_nothing():
    graph = mine_as_authors([], reference.keysteps(3), Behaviors(first_counted_twice=True))

    assert graph.counts.nnz == 0


def test_rows_after_the_last_anchor_stay_unlabelled_and_those_before_the_first_copy_it():
    scores = heard(None, None, 2, None, 3, None, None)

    assert decoded(scores, Behaviors(unlabelled_end=True)) == [2, 2, 2, 2, 3, OFF, OFF]
    assert decoded(scores, Behaviors()) == [2, 2, 2, 2, 3, 3, 3]


def test_a_video_without_anchors_stays_unlabelled_where_ends_do():
    scores = heard(2, None, 3, score=0.2)

    assert decoded(scores, Behaviors(unlabelled_end=True)) == [OFF, OFF, OFF]
    assert decoded(scores, Behaviors()) == [2, OFF, 3]


def test_the_threshold_of_the_scripts_takes_the_place_of_the_decoders_own():
    scores = heard(2, None, None, 3, score=0.35)

    labels = AuthorsPathSearch(0.9, Behaviors(threshold=0.32)).decode(scores, empty_graph(8))

    assert labels.anchors.tolist() == [True, False, False, True]


def test_scores_are_mapped_with_fixed_extrema_before_the_threshold():
    scores = make_scores([[0.0, 10.0], [0.0, 4.0]])
    behaviors = Behaviors(extrema=(-10.0, 10.0))

    labels = AuthorsPathSearch(0.5, behaviors).decode(scores, empty_graph(2))

    assert labels.anchors.tolist() == [True, False]


def test_only_keysteps_that_win_some_row_clearly_may_be_anchors():
    behaviors = Behaviors(limit=Limit("winners", 0.46), threshold=0.3)
    scores = make_scores([[0.5, 0.1, 0.0], [0.35, 0.4, 0.0], [0.0, 0.4, 0.1]])

    labels = AuthorsPathSearch(0.3, behaviors).decode(scores, empty_graph(3))

    assert allowed_keysteps(scores, behaviors.limit).tolist() == [True, False, False]
    assert labels.keysteps.tolist() == [0, 0, 0]
    assert labels.anchors.tolist() == [True, True, False]


def test_a_limit_holds_for_keysteps_of_paths():
    graph = make_graph([[0, 9, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]])
    scores = make_scores(
        np.eye(4)[[2, 0, 0, 0, 3]], [True, True, False, False, True], vocabulary=graph.vocabulary
    )

    limited = decoded(scores, Behaviors(limit=Limit("winners", 0.46)), graph)

    assert decoded(scores, Behaviors(), graph) == [2, 0, 0, 1, 3]
    assert limited == [2, 0, 0, 2, 3]


def test_a_limit_does_not_change_what_a_transition_costs():
    # Among the allowed ones 0→1→3 were certain; among all it is as rare as it was seen.
    counts = np.zeros((5, 5), int)
    counts[0, 1], counts[0, 3], counts[1, 3], counts[1, 4] = 5, 4, 1, 9
    graph = make_graph(counts)
    scores = make_scores(
        np.eye(5)[[1, 0, 0, 3]], [True, True, False, True], vocabulary=graph.vocabulary
    )

    labels = decoded(scores, Behaviors(limit=Limit("winners", 0.46)), graph)

    assert labels == [1, 0, 0, 3]


def test_where_no_keystep_is_clear_there_are_no_anchors():
    behaviors = Behaviors(limit=Limit("winners", 0.46))

    assert decoded(heard(1, 2, score=0.4), behaviors) == [OFF, OFF]


CLEAR, DIM = [0.5, 0.1, 0.1], [0.1, 0.1, 0.1]
OTHER, LOUDER = [0.1, 0.1, 0.5], [0.1, 0.1, 0.6]


@pytest.mark.parametrize(
    ("rows", "spoken", "allowed"),
    [
        pytest.param([CLEAR, OTHER], "11", "001", id="of equal counts the smaller cluster"),
        pytest.param([CLEAR] * 7 + [OTHER], "1" * 8, "001", id="a long sentence counts once"),
        pytest.param([CLEAR, DIM] * 3 + [OTHER], "1010101", "110", id="after silence it is new"),
        pytest.param([CLEAR, OTHER, LOUDER], "111", "001", id="other scores, another sentence"),
        pytest.param([DIM, DIM], "11", "000", id="nothing clear, no cluster"),
    ],
)
def test_the_cluster_with_most_clear_scores_for_its_size_is_allowed(rows, spoken, allowed):
    scores = make_scores(rows, [one == "1" for one in spoken])

    found = allowed_keysteps(scores, Limit("cluster", 0.46, 1.0), (4, 4, 2))

    assert "".join(str(int(one)) for one in found) == allowed


def test_anchors_are_limited_to_the_best_cluster():
    behaviors = Behaviors(limit=Limit("cluster", 0.46, 1.0))
    scores = make_scores([[0.9, 0.2, 0.6], [0.1, 0.8, 0.7], [0.1, 0.5, 0.6]])

    assert decoded(scores, behaviors, clusters=(0, 1, 1)) == [2, 1, 2]


def test_a_limit_by_clusters_needs_the_clusters():
    with pytest.raises(DataError, match=r"one for each of the 8 keysteps .* got 0"):
        decoded(heard(1), Behaviors(limit=Limit("cluster", 0.46, 1.0)))


def test_keysteps_nearer_than_the_distance_share_a_cluster():
    angles = np.array([0.0, 0.3, 1.6, 1.8])
    # Length does not matter, only direction.
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1) * [[1], [5], [2], [1]]

    near, middling, far = (agglomerate(vectors, distance) for distance in (0.1, 1.0, 9.0))

    assert len(set(near)) == 4
    assert middling[0] == middling[1] != middling[2] == middling[3]
    assert set(far) == {0}


def test_distance_must_be_above_zero():
    with pytest.raises(ConfigError, match="distance must be above 0, got 0"):
        agglomerate(np.eye(3), 0)


def test_the_filter_of_the_scripts_adds_what_it_believes_to_the_scores():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        scores, graph = random_scores(rng, 20, 4, spoken=1.0), random_graph(rng, 4)

        labels = AuthorsBayesFilter(behaviors=ADDED).decode(scores, graph).keysteps.tolist()

        shares = graph.probabilities.toarray()
        belief, expected = None, []
        for measured in scores.values.astype(float):
            added = [
                0 if belief is None else 0.20 * sum(shares[i, j] * belief[j] for j in range(4))
                for i in range(4)
            ]
            belief = [measured[i] + added[i] for i in range(4)]
            expected.append(belief.index(max(belief)))
        assert labels == expected


def test_the_filter_of_the_scripts_is_causal():
    rng = np.random.default_rng(3)
    scores, graph = random_scores(rng, 30, 4), random_graph(rng, 4)
    past = replace(scores, values=scores.values[:12], observed=scores.observed[:12])

    whole, part = (
        AuthorsBayesFilter(behaviors=ADDED).decode(one, graph) for one in (scores, past)
    )

    assert whole.keysteps[:12].tolist() == part.keysteps.tolist()


def test_the_filter_of_the_scripts_goes_on_in_silence_and_says_nothing_before_speech():
    # A multiplies the belief from the left: what leads to 1 is believed in after 1.
    graph = make_graph([[1, 1, 0], [0, 1, 2], [0, 0, 0]])
    scores = heard(None, 1, None, size=3)

    labels = AuthorsBayesFilter(behaviors=ADDED).decode(scores, graph)

    assert labels.keysteps.tolist() == [OFF, 1, 0]


def test_the_filter_of_the_scripts_never_labels_with_a_forbidden_keystep():
    rng = np.random.default_rng(0)
    scores = random_scores(rng, 30, 4).restrict([1, 3])

    labels = AuthorsBayesFilter(behaviors=ADDED).decode(scores, random_graph(rng, 4))

    assert set(labels.keysteps.tolist()) <= {OFF, 1, 3}


@pytest.mark.parametrize(
    ("dataset", "modality", "threshold", "extrema", "limit"),
    [
        ("crosstask", "text", 0.32, (-1.0, 1.0), Limit("winners", 0.46)),
        ("coin", "text", 0.30, (-1.0, 1.0), Limit("cluster", 0.46, 1.0)),
        ("crosstask", "video", 0.06, (-63.42, 58.8), None),
        ("coin", "video", 0.0, (-23.83, 24.12), Limit("cluster", 0.3, 1.25)),
    ],
)
def test_the_authors_have_numbers_for_each_data_set(dataset, modality, threshold, extrema, limit):
    behaviors = Behaviors.authors(dataset, modality)

    assert (behaviors.threshold, behaviors.extrema, behaviors.limit) == (
        threshold,
        extrema,
        limit,
    )
    assert behaviors.raw_costs
    assert behaviors.first_counted_twice
    assert behaviors.adjacent_forgotten
    assert behaviors.unlabelled_end
    assert behaviors.added_belief == 0.20


def test_there_are_no_numbers_for_other_data_sets():
    with pytest.raises(ConfigError, match="crosstask or coin, text or video, got 'howto100m'"):
        Behaviors.authors("howto100m")


def test_each_behaviour_can_be_had_alone():
    alone = Behaviors.alone("crosstask", "text")

    assert list(alone) == [field.name for field in fields(Behaviors)]
    for name, behaviors in alone.items():
        assert replace(behaviors, **{name: getattr(Behaviors(), name)}) == Behaviors()
        assert getattr(behaviors, name) == getattr(Behaviors.authors("crosstask", "text"), name)


def test_what_a_data_set_has_not_is_not_among_its_behaviours():
    assert "limit" not in Behaviors.alone("crosstask", "video")


@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("decoder", [AuthorsPathSearch, AuthorsBayesFilter])
def test_a_video_without_speech_is_all_background(decoder, rows):
    scores = make_scores(np.zeros((rows, 8)), [False] * rows)

    labels = decoder(behaviors=Behaviors.authors("crosstask", "text")).decode(
        scores, empty_graph(8)
    )

    assert labels.keysteps.tolist() == [OFF] * rows


@pytest.mark.parametrize("decoder", [AuthorsPathSearch(), AuthorsBayesFilter(behaviors=ADDED)])
def test_a_graph_of_another_vocabulary_is_refused(decoder):
    with pytest.raises(DataError, match="vocabulary"):
        decoder.decode(heard(0, 1), empty_graph(3))


def test_options_are_checked_when_a_decoder_is_made():
    with pytest.raises(ConfigError, match="threshold must be a number, got nan"):
        AuthorsPathSearch(math.nan)
    with pytest.raises(ConfigError, match="epsilon must be a number from 0 on"):
        AuthorsBayesFilter(-1.0)
