"""Mining: which keystep directly follows which."""

import math

import numpy as np
import pytest

import reference
from reference import keysteps, make_scores, random_scores
from stepgraph.core import Vocabulary
from stepgraph.encoders import EncoderOptions
from stepgraph.errors import StepgraphError
from stepgraph.graph import mine_graph, mining
from stepgraph.graph.mining import transitions
from stepgraph.scoring import score


def corpus(seed, videos=6, size=4):
    rng = np.random.default_rng(seed)
    return [
        random_scores(rng, int(rng.integers(0, 30)), size, video=f"video {number}")
        for number in range(videos)
    ]


def best_are(sequence, size=3, **options):
    """Scores whose best keysteps are as given."""
    return make_scores(np.eye(size)[sequence].reshape(-1, size), **options)


def test_transitions_are_those_of_a_loop_over_rows():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        hop = float(rng.choice([0.5, 1.0, 2.0]))
        scores = random_scores(rng, int(rng.integers(0, 40)), 4, hop=hop)
        options = {
            "min_score": float(rng.choice([-math.inf, 0.7, 0.9])),
            "max_gap": float(rng.choice([math.inf, 0.0, hop, 2.5 * hop])),
        }

        found = transitions(scores, **options)

        assert [tuple(pair) for pair in found.tolist()] == reference.transitions(scores, **options)


def test_graph_counts_the_transitions_of_all_videos():
    for seed in range(10):
        videos = corpus(seed)

        graph = mine_graph(videos, keysteps(4))

        pairs = [pair for scores in videos for pair in reference.transitions(scores)]
        assert graph.counts.toarray().tolist() == reference.count(pairs, 4)


def test_one_keystep_going_on_is_a_self_loop():
    graph = mine_graph([best_are([0, 0, 0, 1])], keysteps(3))

    assert graph.counts.toarray().tolist() == [[2, 1, 0], [0, 0, 0], [0, 0, 0]]


def test_unobserved_rows_do_not_vote_and_are_bridged():
    scores = best_are([0, 2, 2, 1], observed=[True, False, False, True])

    assert transitions(scores).tolist() == [[0, 1]]


@pytest.mark.parametrize(("max_gap", "pairs"), [(0.0, []), (1.9, []), (2.0, [[0, 1]])])
def test_max_gap_is_inclusive(max_gap, pairs):
    scores = best_are([0, 2, 2, 1], observed=[True, False, False, True])

    assert transitions(scores, max_gap=max_gap).tolist() == pairs


def test_max_gap_is_in_seconds():
    scores = best_are([0, 2, 2, 1], observed=[True, False, False, True], hop=0.25)

    assert transitions(scores, max_gap=0.5).tolist() == [[0, 1]]


def test_max_gap_is_inclusive_in_spite_of_float_noise():
    scores = best_are([0, 2, 2, 2, 1], observed=[True, False, False, False, True], hop=0.1)

    assert transitions(scores, max_gap=0.3).tolist() == [[0, 1]]


@pytest.mark.parametrize(("noise", "pairs"), [(0.5e-9, [[0, 1]]), (1.5e-9, [])])
def test_float_noise_is_less_than_a_billionth_of_a_second(noise, pairs):
    scores = best_are([0, 2, 1], observed=[True, False, True], hop=1 + noise)

    assert transitions(scores, max_gap=1.0).tolist() == pairs


def test_min_score_is_inclusive():
    scores = make_scores([[0.9, 0.0], [0.3, 0.4], [0.0, 0.8], [0.7, 0.0]])

    assert transitions(scores, min_score=0.8).tolist() == [[0, 1]]
    assert transitions(scores, min_score=0.4).tolist() == [[0, 1], [1, 1], [1, 0]]


def test_where_nothing_may_be_nothing_is_counted():
    scores = make_scores([[0.9, 0.0], [-math.inf, -math.inf], [0.0, 0.8]])

    assert transitions(scores).tolist() == [[0, 1]]


@pytest.mark.parametrize(
    "options", [{"min_score": math.nan}, {"max_gap": math.nan}, {"max_gap": -1.0}]
)
def test_options_that_would_count_nothing_are_refused(options):
    [name] = options

    with pytest.raises(StepgraphError, match=name):
        mine_graph([best_are([0, 1])], keysteps(3), **options)


@pytest.mark.parametrize("sequence", [[], [1]])
def test_a_video_of_no_row_or_one_has_no_transitions(sequence):
    scores = best_are(sequence)

    assert transitions(scores).shape == (0, 2)


def test_a_video_without_speech_has_no_transitions():
    scores = best_are([0, 1, 2], observed=[False, False, False])

    assert transitions(scores).shape == (0, 2)


def test_nothing_follows_across_videos():
    videos = [best_are([0], video="a"), best_are([1], video="b")]

    assert mine_graph(videos, keysteps(3)).counts.nnz == 0


def test_no_videos_make_an_empty_graph():
    graph = mine_graph([], keysteps(3))

    assert (graph.counts.nnz, graph.mined_on) == (0, ())


def test_order_of_the_videos_does_not_matter():
    videos = corpus(3)

    one, other = (mine_graph(some, keysteps(4)) for some in (videos, videos[::-1]))

    assert one.counts.toarray().tolist() == other.counts.toarray().tolist()


def test_shards_merged_are_one_pass():
    videos = corpus(4)

    whole = mine_graph(videos, keysteps(4))
    merged = mine_graph(videos[:2], keysteps(4)).merge(mine_graph(videos[2:], keysteps(4)))

    assert merged.counts.toarray().tolist() == whole.counts.toarray().tolist()
    assert merged.mined_on == whole.mined_on


def test_counting_in_small_portions_changes_nothing(monkeypatch):
    videos = corpus(5)
    whole = mine_graph(videos, keysteps(4))
    monkeypatch.setattr(mining, "_BUFFER", 3)

    portions = mine_graph(videos, keysteps(4))

    assert portions.counts.toarray().tolist() == whole.counts.toarray().tolist()


def test_scores_of_another_vocabulary_are_refused():
    scores = make_scores(np.zeros((2, 2)), vocabulary=Vocabulary(("a", "b")))

    with pytest.raises(
        StepgraphError, match="of video 'video' and the graph must share one vocab"
    ):
        mine_graph([scores], keysteps(2))


def test_graph_remembers_its_videos_and_its_encoder():
    videos, options = corpus(6, videos=2), EncoderOptions(context=1)

    graph = mine_graph(iter(videos), keysteps(4), encoder=options)

    assert graph.mined_on == ("video 0", "video 1")
    assert graph.encoder == options


def test_omelette_is_cracked_before_it_is_whisked(vocabulary, videos, encoder):
    graph = mine_graph(score(videos, vocabulary, encoder), vocabulary)

    assert graph.relation(0, 1).kind == "directional"
    assert graph.path(0, 2) == (0, 1, 2)
