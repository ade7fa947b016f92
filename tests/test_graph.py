"""The task graph and what can be read from it."""

import pickle
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array

import reference
from reference import keysteps, make_graph, make_scores, random_graph
from stepgraph.core import Vocabulary
from stepgraph.encoders import EncoderOptions
from stepgraph.errors import DataError
from stepgraph.graph import MiningOptions, TaskGraph, Transition, find_communities


def random_problem(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 7))
    graph = random_graph(rng, size, density=rng.uniform(0.1, 0.9))
    start, end = rng.integers(0, size, 2).tolist()
    return graph, start, end


def test_path_is_the_most_probable_of_all_paths():
    for seed in range(100):
        graph, start, end = random_problem(seed)

        found = graph.path(start, end)

        assert found == reference.best_path(graph, start, end)


def test_path_of_small_counts_is_as_probable_as_the_best():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        graph = make_graph(rng.integers(0, 3, (6, 6)))

        found = graph.path(0, 5)

        best = reference.best_path(graph, 0, 5)
        assert (found is None) == (best is None)
        assert float(reference.path_probability(graph, found or ())) == pytest.approx(
            float(reference.path_probability(graph, best or ()))
        )


def test_path_agrees_with_networkx():
    for seed in range(50):
        graph, start, end = random_problem(seed)
        names = graph.vocabulary.keysteps
        theirs = graph.to_networkx()

        found = graph.path(start, end)

        if nx.has_path(theirs, names[start], names[end]):
            expected = nx.dijkstra_path(theirs, names[start], names[end], weight="cost")
            assert [names[keystep] for keystep in found] == expected
        else:
            assert found is None


def test_certain_transitions_of_cost_zero_are_used():
    graph = make_graph([[0, 7, 0], [0, 0, 7], [0, 0, 0]])

    assert graph.costs.data.tolist() == [0.0, 0.0]
    assert graph.path(0, 2) == (0, 1, 2)


def test_detour_over_certain_transitions_beats_a_rare_direct_one():
    graph = make_graph([[0, 9, 1], [0, 0, 5], [0, 0, 0]])

    assert graph.path(0, 2) == (0, 1, 2)


def test_path_from_a_keystep_to_itself_is_that_keystep():
    graph = make_graph([[0, 1], [1, 0]])

    assert graph.path(1, 1) == (1,)


def test_path_against_the_direction_does_not_exist():
    graph = make_graph([[0, 1], [0, 0]])

    assert graph.path(1, 0) is None


def test_self_loops_do_not_keep_a_path_from_leaving():
    graph = make_graph([[1000, 1], [0, 1000]])

    assert graph.path(0, 1) == (0, 1)


def test_empty_graph_has_no_paths():
    graph = make_graph(np.zeros((3, 3), np.int64))

    assert graph.path(0, 1) is None
    assert graph.probabilities.nnz == 0


def test_probabilities_of_a_keystep_sum_to_one_or_are_none():
    for seed in range(10):
        graph = random_graph(np.random.default_rng(seed), 6, density=0.3)

        sums = graph.probabilities.sum(axis=1)

        left = graph.counts.sum(axis=1) > 0
        assert sums[left] == pytest.approx(1.0)
        assert (sums[~left] == 0).all()


def test_probabilities_are_shares_of_counts():
    graph = make_graph([[6, 2, 0], [0, 3, 1], [0, 0, 0]])

    assert graph.probabilities.toarray().tolist() == [[0.75, 0.25, 0], [0, 0.75, 0.25], [0, 0, 0]]


def test_costs_are_negative_logs_of_probabilities():
    graph = random_graph(np.random.default_rng(0), 5)

    assert np.exp(-graph.costs.data) == pytest.approx(graph.probabilities.data)
    assert not np.signbit(graph.costs.data).any()


def test_following_lists_the_best_first_and_equals_by_position():
    graph = make_graph([[9, 2, 5, 2], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])

    assert [edge.keystep for edge in graph.following(0)] == [2, 1, 3]


def test_following_leaves_the_self_loop_out_but_not_its_share():
    graph = make_graph([[6, 2], [0, 0]])

    assert graph.following(0) == [Transition(1, 0.25, 2)]
    assert graph.following(0, self_loop=True) == [Transition(0, 0.75, 6), Transition(1, 0.25, 2)]


def test_following_is_limited():
    graph = make_graph(np.ones((6, 6), np.int64))

    assert len(graph.following(0, limit=2)) == 2
    assert len(graph.following(0)) == 4


def test_nothing_follows_a_keystep_never_left():
    assert make_graph([[0, 1], [0, 0]]).following(1) == []


@pytest.mark.parametrize(
    ("forward", "backward", "kind"),
    [
        (0, 0, "unconnected"),
        (1, 0, "connected"),  # a single sighting proves nothing
        (2, 0, "directional"),
        (0, 2, "directional"),
        (4, 1, "connected"),
        (5, 1, "directional"),  # (5 + 1) of (6 + 2) is three quarters
        (1, 5, "directional"),
        (7, 2, "connected"),
        (8, 2, "directional"),
        (50, 50, "connected"),
    ],
)
def test_relation_is_directional_from_three_quarters_on(forward, backward, kind):
    graph = make_graph([[99, forward], [backward, 99]])

    relation = graph.relation(0, 1)

    assert relation.kind == kind
    assert (relation.forward, relation.backward) == (forward, backward)


def test_relation_tells_the_probabilities_of_both_directions():
    relation = make_graph([[6, 2], [1, 0]]).relation(0, 1)

    assert (relation.forward_probability, relation.backward_probability) == (0.25, 1.0)


def test_relation_of_a_keystep_with_itself_is_refused():
    with pytest.raises(DataError, match="two different keysteps, got 'keystep 1' twice"):
        make_graph([[1, 1], [1, 1]]).relation(1, 1)


def test_merge_adds_counts_and_videos():
    one = make_graph([[1, 2], [0, 0]], mined_on=("a", "b"))
    other = make_graph([[1, 0], [3, 0]], mined_on=("c",))

    merged = one.merge(other)

    assert merged.counts.toarray().tolist() == [[2, 2], [3, 0]]
    assert merged.mined_on == ("a", "b", "c")
    assert one.counts.toarray().tolist() == [[1, 2], [0, 0]]


def test_merge_keeps_an_encoder_that_both_share():
    options = EncoderOptions(context=1)
    one, same, other = (
        make_graph([[1, 2], [0, 0]], encoder=encoder)
        for encoder in (options, options, EncoderOptions())
    )

    assert one.merge(same).encoder == options
    with pytest.raises(DataError, match="must be mined in the same way, got EncoderOptions"):
        one.merge(other)


def test_merge_keeps_evidence_whichever_graph_has_it():
    without = make_graph(np.eye(2, dtype=np.int64))
    words = replace(without.vocabulary, notes={1: ("said in 2 of 3 videos",)})
    with_it = replace(without, vocabulary=words)

    for merged in (with_it.merge(without), without.merge(with_it), with_it.merge(with_it)):
        assert merged.vocabulary.notes == words.notes
    assert without.merge(without).vocabulary.notes == {}


def test_merge_refuses_another_vocabulary():
    one, other = make_graph([[0, 1], [0, 0]]), make_graph([[0, 1], [0, 0]], Vocabulary(("a", "b")))

    with pytest.raises(DataError, match=r"must share one vocabulary, got one of 2 keysteps"):
        one.merge(other)


def test_merge_refuses_a_video_counted_twice():
    one = make_graph([[0, 1], [0, 0]], mined_on=("a", "b"))

    with pytest.raises(DataError, match=r"different videos, got 1 in both \('b'\); their trans"):
        one.merge(make_graph([[0, 1], [0, 0]], mined_on=("b", "c")))


def test_counts_of_another_shape_are_refused():
    with pytest.raises(DataError, match=r"must have shape \(3, 3\), got \(2, 2\)"):
        make_graph([[0, 1], [0, 0]], keysteps(3))


def test_negative_counts_are_refused():
    with pytest.raises(DataError, match="counts must be at least 0, got -1"):
        make_graph([[0, -1], [3, 0]])


def test_counts_of_a_keystep_are_at_most_what_a_float_can_hold():
    most = np.array([[0, 3], [2**52, 2**52]])

    assert make_graph(most).counts.toarray().tolist() == most.tolist()
    with pytest.raises(DataError, match=r"must add up to at most 2\*\*53, got 9"):
        make_graph(most + np.array([[0, 0], [0, 2]]))


def test_timing_is_in_twentieths():
    graph = make_graph([[0, 1], [0, 0]], timing=np.ones((2, 20), np.int64))

    assert graph.mean_times.tolist() == [9.5, 9.5]
    with pytest.raises(DataError, match=r"timing of a task graph must have shape \(2, 20\)"):
        make_graph([[0, 1], [0, 0]], timing=np.ones((2, 21), np.int64))


def test_a_keystep_that_was_never_timed_is_done_at_no_time():
    timing = np.zeros((3, 20), np.int64)
    timing[0, [3, 5]] = timing[1, 6] = 1

    assert make_graph(np.eye(3, k=1), timing=timing).mean_times.tolist() == [4, 6, np.inf]
    assert make_graph([[0, 1], [0, 0]]).mean_times.tolist() == [np.inf, np.inf]


@pytest.mark.parametrize("keystep", [-1, 2])
def test_a_keystep_past_the_vocabulary_is_refused(keystep):
    graph = make_graph([[0, 1], [0, 0]])

    for asked in (lambda: graph.path(0, keystep), lambda: graph.path(keystep, 0)):
        with pytest.raises(DataError, match=f"must be between 0 and 1, got {keystep}"):
            asked()
    with pytest.raises(DataError, match=f"must be between 0 and 1, got {keystep}"):
        graph.following(keystep)


def test_without_options_mining_has_no_limits():
    assert MiningOptions() == MiningOptions(min_score=-np.inf, max_gap=np.inf)


def test_scores_of_another_vocabulary_are_refused():
    graph = make_graph([[0, 1], [0, 0]])

    graph.require_vocabulary_of(make_scores(np.zeros((1, 2))))
    with pytest.raises(DataError, match="scores of video 'video' and the graph must share one"):
        graph.require_vocabulary_of(make_scores(np.zeros((1, 3))))


def test_counts_that_are_no_whole_numbers_are_refused():
    with pytest.raises(DataError, match=r"0\.5"):
        make_graph([[0, 0.5], [3, 0]])


def test_whole_numbers_are_counts_whatever_their_type():
    assert make_graph([[0.0, 2.0], [3.0, 0.0]]).counts.toarray().tolist() == [[0, 2], [3, 0]]


def test_counts_handed_over_in_pieces_are_added_up_and_left_alone():
    pieces = csr_array((np.array([1, 2, 0]), np.array([1, 1, 0]), np.array([0, 3, 3])))
    pieces.resize(2, 2)

    graph = TaskGraph(keysteps(2), pieces)

    assert graph.counts.data.tolist() == [3]
    assert pieces.data.tolist() == [1, 2, 0]


def test_networkx_graph_carries_all_counts():
    graph = random_graph(np.random.default_rng(1), 6)
    names = list(graph.vocabulary.keysteps)

    theirs = nx.to_numpy_array(graph.to_networkx(), nodelist=names, weight="count", dtype=np.int64)

    assert theirs.tolist() == graph.counts.toarray().tolist()


def test_networkx_graph_keeps_keysteps_without_transitions(vocabulary):
    graph = make_graph(np.zeros((5, 5), np.int64), vocabulary).to_networkx()

    assert list(graph.nodes) == list(vocabulary.keysteps)
    assert graph.nodes["whisk them"]["tasks"] == ("Make an omelette",)


def test_networkx_edges_carry_probability_and_cost():
    edge = make_graph([[1, 3], [0, 0]]).to_networkx().edges["keystep 0", "keystep 1"]

    assert edge == {"count": 3, "probability": 0.75, "cost": pytest.approx(-np.log(0.75))}


def test_a_graph_that_was_asked_for_paths_can_go_to_another_process():
    graph = make_graph([[0, 1], [0, 0]])
    graph.path(0, 1)

    again = pickle.loads(pickle.dumps(graph))

    assert again.path(0, 1) == (0, 1)


def test_a_restricted_graph_keeps_only_what_is_between_the_allowed():
    graph = make_graph([[1, 2, 3], [4, 5, 6], [7, 8, 9]])

    restricted = graph.restrict([0, 2])

    assert restricted.counts.toarray().tolist() == [[1, 0, 3], [0, 0, 0], [7, 0, 9]]
    assert restricted.vocabulary == graph.vocabulary


def test_an_order_is_a_chain_and_shared_pairs_count_twice():
    graph = TaskGraph.from_order(keysteps(4), [(0, 1, 3), (0, 1, 2), (2,), ()])

    assert graph.counts.toarray().tolist() == [
        [0, 2, 0, 0],
        [0, 0, 1, 1],
        [0, 0, 0, 0],
        [0, 0, 0, 0],
    ]


def test_communities_are_given_the_largest_first_and_what_is_alone_is_in_none():
    counts = np.zeros((6, 6), np.int64)
    counts[[0, 2, 3, 4, 5], [1, 3, 4, 2, 5]] = 9

    assert find_communities(csr_array(counts)) == [[2, 3, 4], [0, 1]]
    assert find_communities(csr_array((3, 3), dtype=np.int64)) == []
