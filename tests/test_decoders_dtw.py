"""Drop-DTW and Graph2Vid against all admissible alignments, and what their decoders promise."""

import math
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

from reference import keysteps, make_graph, make_scores
from stepgraph.core import BACKGROUND, Vocabulary
from stepgraph.decoders.dtw import (
    DropDTW,
    Graph2Vid,
    align,
    match_costs,
    ordered_states,
    topological_states,
)
from stepgraph.errors import ConfigError, DataError
from stepgraph.graph import TaskGraph
from stepgraph.graph.order import partial_order

DECODERS = [DropDTW(), Graph2Vid(), DropDTW(drop_keysteps=True), Graph2Vid(drop_keysteps=True)]


def is_admissible(labels, order, *, may_drop_keysteps):
    """One run of rows for a keystep, runs in the order, each keystep met unless droppable."""
    runs = [
        label for place, label in enumerate(labels) if place == 0 or labels[place - 1] != label
    ]
    population = [label for label in runs if label != BACKGROUND]
    once = len(population) == len(set(population))
    in_order = [order.index(label) for label in population] == sorted(
        order.index(one) for one in population
    )
    return once and in_order and (may_drop_keysteps or set(population) == set(order))


def cost_of(labels, costs, row_drops, keystep_drops):
    matched = [
        row_drops[row] if label == BACKGROUND else costs[row][label]
        for row, label in enumerate(labels)
    ]
    unmet = set(range(len(costs[0]))) - set(labels)
    return sum(matched) + sum(keystep_drops[keystep] for keystep in unmet)


def alignments(order, rows, *, may_drop_keysteps, running=False):
    """Every admissible labelling for one order, written row by row."""
    if not rows:
        if may_drop_keysteps or len(order) == running:
            yield ()
        return
    ahead = order[1:] if running else order
    choices = [(BACKGROUND, ahead, False)]
    if running:
        choices.append((order[0], order, True))
    for skipped in range(len(ahead) if may_drop_keysteps else min(len(ahead), 1)):
        choices.append((ahead[skipped], ahead[skipped:], True))
    for label, left, goes_on in choices:
        rest = alignments(left, rows - 1, may_drop_keysteps=may_drop_keysteps, running=goes_on)
        yield from ((label, *after) for after in rest)


def topological_orders(before):
    return [
        order
        for order in permutations(range(len(before)))
        if all(
            not before[later] >> earlier & 1 or order.index(earlier) < order.index(later)
            for later in order
            for earlier in order
        )
    ]


def random_problem(rng, rows, size, *, droppable):
    costs, row_drops = rng.exponential(size=(rows, size)), rng.exponential(0.7, rows)
    return costs, row_drops, rng.exponential(0.7, size) if droppable else None


def random_order(rng, size):
    """Which come before which, of a random acyclic graph: edges go up a hidden ranking."""
    rank = rng.permutation(size)
    later = rank[:, None] < rank
    return partial_order((later & (rng.random((size, size)) < rng.random())).astype(np.int64))


def chain_of(*order, size=5):
    return TaskGraph.from_order(keysteps(size), [order])


def observed(*rows, size=5, sure=0.9):
    """Scores of rows, each a keystep that is heard clearly, "noise", or None for silence."""
    values = np.full((len(rows), size), 0.1)
    for row, what in enumerate(rows):
        if isinstance(what, int):
            values[row, what] = sure
    return make_scores(values, [what is not None for what in rows])


def align_in_order(costs, row_drops, keystep_drops=None):
    return align(costs, row_drops, ordered_states(np.arange(costs.shape[1])), keystep_drops)


def decoded(decoder, scores, graph):
    return decoder.decode(scores, graph).keysteps.tolist()


@pytest.mark.parametrize("droppable", [False, True])
def test_alignment_in_order_is_the_best_of_all_alignments(droppable):
    for seed in range(150):
        rng = np.random.default_rng(seed)
        rows, size = int(rng.integers(1, 6)), int(rng.integers(1, 5))
        rows = rows if droppable else max(rows, size)
        problem = random_problem(rng, rows, size, droppable=droppable)
        order = tuple(range(size))

        columns, cost = align_in_order(*problem)

        admissible = set(alignments(order, rows, may_drop_keysteps=droppable))
        assert tuple(columns.tolist()) in admissible
        assert cost == pytest.approx(min(cost_of(one, *problem) for one in admissible))
        assert cost_of(columns.tolist(), *problem) == pytest.approx(cost)


@pytest.mark.parametrize("droppable", [False, True])
def test_alignment_is_the_best_of_all_orders_and_alignments(droppable):
    for seed in range(150):
        rng = np.random.default_rng(1000 + seed)
        size = int(rng.integers(1, 5 if droppable else 6))
        rows = int(rng.integers(1, 6)) if droppable else int(rng.integers(size, 7))
        before = random_order(rng, size)
        problem = random_problem(rng, rows, size, droppable=droppable)

        columns, cost = align(*problem[:2], topological_states(before, 100), problem[2])

        orders = topological_orders(before)
        admissible = {
            one for order in orders for one in alignments(order, rows, may_drop_keysteps=droppable)
        }
        assert tuple(columns.tolist()) in admissible
        assert cost == pytest.approx(min(cost_of(one, *problem) for one in admissible))
        assert cost_of(columns.tolist(), *problem) == pytest.approx(cost)


@pytest.mark.parametrize("droppable", [False, True])
@pytest.mark.parametrize(("rows", "size"), [(1, 1), (3, 2), (5, 3), (4, 4)])
def test_the_alignments_of_the_other_tests_are_all_there_are(rows, size, droppable):
    order = tuple(range(size))

    written = list(alignments(order, rows, may_drop_keysteps=droppable))

    assert len(written) == len(set(written))
    assert set(written) == {
        labels
        for labels in product(range(BACKGROUND, size), repeat=rows)
        if is_admissible(labels, order, may_drop_keysteps=droppable)
    }


@pytest.mark.parametrize("size", [1, 2, 8])
def test_states_of_one_order_are_those_of_a_chain(size):
    chain = partial_order(np.eye(size, k=1, dtype=np.int64))

    expected, found = topological_states(chain, 100), ordered_states(np.arange(size))

    assert [one.tolist() for one in found] == [one.tolist() for one in expected]


@pytest.mark.parametrize(("rows", "size"), [(0, 3), (4, 0), (4, 3), (0, 0)])
def test_all_rows_and_keysteps_are_dropped_where_that_is_cheapest(rows, size):
    problem = np.full((rows, size), 9.0), np.full(rows, 0.5)
    keystep_drops = np.full(size, 0.25)

    for columns, cost in (
        align_in_order(*problem, keystep_drops),
        align(*problem, topological_states((0,) * size, 8), keystep_drops),
    ):
        assert columns.tolist() == [BACKGROUND] * rows
        assert cost == 0.5 * rows + 0.25 * size


def test_a_keystep_takes_consecutive_rows_only():
    costs = np.array([[0.0], [5.0], [0.0]])

    columns, cost = align_in_order(costs, np.full(3, 1.0))

    assert cost == 2
    assert columns.tolist().count(0) == 1


def test_a_row_that_costs_the_same_either_way_is_matched():
    assert align_in_order(np.ones((3, 1)), np.ones(3))[0].tolist() == [0, 0, 0]


@pytest.mark.parametrize("droppable", [False, True])
def test_a_match_of_infinite_cost_is_never_made(droppable):
    costs = np.array([[0.0, math.inf], [math.inf, math.inf], [math.inf, 0.0]])
    keystep_drops = np.ones(2) if droppable else None

    for columns, cost in (
        align_in_order(costs, np.ones(3), keystep_drops),
        align(costs, np.ones(3), topological_states((0, 0), 4), keystep_drops),
    ):
        assert columns.tolist() == [0, BACKGROUND, 1]
        assert cost == 1


def test_fewer_rows_than_keysteps_that_must_be_matched_are_refused():
    message = "a row of its own, got 2 rows for 3 keysteps and no finite cost; let keysteps be"

    with pytest.raises(DataError, match=message):
        align_in_order(np.zeros((2, 3)), np.zeros(2))
    with pytest.raises(DataError, match=message):
        align(np.zeros((2, 3)), np.zeros(2), topological_states((0, 0, 0), 8))


def test_match_costs_are_minus_the_log_of_the_softmax():
    values = np.float32([[0.2, 0.6, -math.inf], [900, -900, 0], [-math.inf] * 3])

    costs = match_costs(values, 0.5)

    share = math.exp(0.4) / (math.exp(0.4) + math.exp(1.2))
    assert costs[0, 0] == pytest.approx(-math.log(share), rel=1e-6)
    assert np.exp(-costs).sum(axis=1) == pytest.approx([1, 1, 0])
    assert costs[0, 2] == math.inf
    assert costs[1].tolist() == pytest.approx([0, 3600, 1800])


def paths_through(states, state=0):
    if state == states.number - 1:
        yield ()
    for step in np.flatnonzero(states.source == state):
        for rest in paths_through(states, states.target[step]):
            yield (int(states.keystep[step]), *rest)


def test_paths_through_the_states_are_the_topological_orders():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        before = random_order(rng, int(rng.integers(1, 6)))

        states = topological_states(before, 100)

        assert sorted(paths_through(states)) == sorted(topological_orders(before))


def test_too_many_states_are_refused():
    assert topological_states((0,) * 7, 128).number == 2**7
    message = "graph of 7 keysteps must have at most 127 topological states, got more; raise max"

    with pytest.raises(DataError, match=message):
        topological_states((0,) * 7, 127)


@pytest.mark.parametrize("decoder", DECODERS)
def test_keysteps_are_found_in_order_and_noise_is_dropped(decoder):
    scores = observed(3, 3, "noise", 0, None, 0, "noise", 2, 4, 4).restrict((3, 0, 2, 4))

    labels = decoded(replace(decoder, percentile=15), scores, chain_of(3, 0, 2, 4))

    assert labels == [3, 3, BACKGROUND, 0, BACKGROUND, 0, BACKGROUND, 2, 4, 4]


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_keystep_observed_in_the_wrong_place_is_dropped(decoder):
    scores = observed(0, 0, 2, 1, 1, 2, 2, size=3)

    labels = decoded(decoder, scores, chain_of(0, 1, 2, size=3))

    assert labels == [0, 0, BACKGROUND, 1, 1, 2, 2]


def test_graph2vid_finds_the_order_of_the_video():
    graph = make_graph([[0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]])

    assert decoded(Graph2Vid(), observed(0, 2, 2, 1, 1, 3, size=4), graph) == [0, 2, 2, 1, 1, 3]


def test_graph2vid_takes_a_mined_graph_with_cycles():
    graph = make_graph([[7, 9, 1], [2, 3, 8], [4, 0, 5]])

    assert decoded(Graph2Vid(), observed(0, 1, 1, 2, size=3), graph) == [0, 1, 1, 2]


@pytest.mark.parametrize(("majority", "found"), [(0.5, False), (0.75, True)])
def test_graph2vid_follows_the_video_where_the_graph_is_undecided(majority, found):
    graph = make_graph([[0, 10], [9, 0]])

    labels = decoded(Graph2Vid(majority=majority), observed(1, 1, 0, 0, size=2), graph)

    assert (labels == [1, 1, 0, 0]) == found


@pytest.mark.parametrize("drop_keysteps", [False, True])
def test_graph2vid_of_a_chain_is_drop_dtw(drop_keysteps):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        order = rng.permutation(6)[: rng.integers(1, 7)].tolist()
        scores = make_scores(rng.random((40, 6)), rng.random(40) < 0.6).restrict(order)
        graph, options = chain_of(*order, size=6), {"drop_keysteps": drop_keysteps}

        labels = decoded(Graph2Vid(**options), scores, graph)

        assert labels == decoded(DropDTW(**options), scores, graph)


@pytest.mark.parametrize("percentile", [0, 30, 62.5, 100])
@pytest.mark.parametrize("drop_keysteps", [False, True])
def test_dropping_costs_a_percentile_of_the_match_costs(percentile, drop_keysteps):
    rng = np.random.default_rng(5)
    scores = make_scores(rng.random((30, 4)))
    costs = match_costs(scores.values, 0.2)
    drop = np.percentile(costs, percentile)

    labels = decoded(DropDTW(percentile, 0.2, drop_keysteps), scores, chain_of(*range(4), size=4))

    keystep_drops = np.full(4, drop) if drop_keysteps else None
    assert labels == align_in_order(costs, np.full(30, drop), keystep_drops)[0].tolist()


@pytest.mark.parametrize("decoder", DECODERS)
def test_keysteps_that_are_not_allowed_change_nothing(decoder):
    rng = np.random.default_rng(0)
    values = rng.random((30, 6))
    order = (4, 1, 3)
    alone = make_scores(values[:, order])

    labels = decoded(decoder, make_scores(values).restrict(order), chain_of(*order, size=6))

    expected = decoded(decoder, alone, chain_of(0, 1, 2, size=3))
    assert labels == [BACKGROUND if one == BACKGROUND else order[one] for one in expected]


@pytest.mark.parametrize("decoder", DECODERS)
def test_silence_changes_no_other_row(decoder):
    rng = np.random.default_rng(1)
    values, spoken = rng.random((40, 4)), rng.random(40) < 0.5
    graph = chain_of(2, 0, 3, 1, size=4)

    labels = decoder.decode(make_scores(values, spoken), graph).keysteps

    assert labels[spoken].tolist() == decoded(decoder, make_scores(values[spoken]), graph)
    assert (labels[~spoken] == BACKGROUND).all()


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("rows", [(), (None,), (None, None, None)])
def test_a_video_without_speech_is_all_background(decoder, rows):
    assert decoded(decoder, observed(*rows), chain_of(*range(5))) == [BACKGROUND] * len(rows)


@pytest.mark.parametrize("decoder", DECODERS)
def test_one_row_gets_the_keystep_that_is_observed(decoder):
    assert decoded(decoder, observed(None, 3), chain_of(0, 1, 2, 3, 4)) == [BACKGROUND, 3]


@pytest.mark.parametrize("decoder", DECODERS)
def test_one_keystep_takes_all_rows(decoder):
    assert decoded(decoder, observed(1, 0, 1).restrict([1]), chain_of(1)) == [1, 1, 1]


@pytest.mark.parametrize("decoder", DECODERS)
def test_with_fewer_rows_than_keysteps_some_are_dropped(decoder):
    assert decoded(decoder, observed(0, 3), chain_of(0, 1, 2, 3, 4)) == [0, 3]


def test_each_keystep_is_matched_unless_it_may_be_dropped():
    scores, graph = observed(0, 0, 0, 2, 2, 2, size=3), chain_of(0, 1, 2, size=3)

    assert 1 in decoded(DropDTW(), scores, graph)
    assert decoded(DropDTW(drop_keysteps=True), scores, graph) == [0, 0, 0, 2, 2, 2]


@pytest.mark.parametrize("decoder", DECODERS)
def test_labels_belong_to_the_video_of_the_scores(decoder):
    scores = make_scores(np.ones((6, 5)), video="v", hop=0.5)

    labels = decoder.decode(scores, chain_of(0, 1, 2, 3, 4))

    assert (labels.video, labels.hop, labels.vocabulary) == ("v", 0.5, scores.vocabulary)
    assert labels.anchors is None


@pytest.mark.parametrize(
    ("pairs", "transitions"),
    [
        ([(0, 1), (2, 3)], 2),
        ([(0, 1), (0, 2), (2, 3)], 3),
        ([(0, 1), (1, 2), (2, 3), (0, 3)], 4),
        ([(0, 1), (1, 2), (2, 3), (3, 0)], 4),
        ([(0, 1), (1, 2), (2, 1)], 3),
        ([], 0),
    ],
    ids=["two chains", "fork", "shortcut", "cycle", "chain into a cycle", "no order"],
)
def test_drop_dtw_refuses_a_graph_that_is_not_a_chain(pairs, transitions):
    graph = TaskGraph.from_order(keysteps(5), pairs)
    message = f"must chain its 4 candidate keysteps in one order, got {transitions} transitions"

    with pytest.raises(DataError, match=rf"graph for video 'video' {message}.*from_order"):
        DropDTW().decode(observed(0, 1, 2, 3).restrict(range(4)), graph)


def test_drop_dtw_refuses_scores_of_more_keysteps_than_the_chain():
    with pytest.raises(DataError, match=r"chain its 5 candidate keysteps.*restrict the scores"):
        DropDTW().decode(observed(0, 1, 2), chain_of(0, 1, 2))


def test_self_loops_do_not_break_a_chain():
    graph = make_graph([[9, 1, 0], [0, 9, 1], [0, 0, 9]])

    assert decoded(DropDTW(), observed(0, 1, 2, size=3), graph) == [0, 1, 2]


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_graph_of_another_vocabulary_is_refused(decoder):
    other = TaskGraph.from_order(Vocabulary(tuple("abcde")), [range(5)])

    with pytest.raises(
        DataError, match="scores of video 'video' and the graph must share one voc"
    ):
        decoder.decode(observed(0, 1), other)


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_scores_that_are_no_numbers_are_refused(decoder, wrong):
    scores = make_scores([[0.1, 0.2], [0.3, wrong]])

    with pytest.raises(DataError, match=f"'video' must be below infinity, got {wrong}"):
        decoder.decode(scores, chain_of(0, 1, size=2))


def test_graph2vid_refuses_too_many_keysteps_without_order():
    empty = make_graph(np.zeros((5, 5), np.int64))

    with pytest.raises(DataError, match="5 keysteps must have at most 31 topological states"):
        Graph2Vid(max_states=31).decode(observed(0, 1, 2, 3, 4), empty)


@pytest.mark.parametrize(
    ("kind", "name", "value", "rule"),
    [
        *((kind, "percentile", 101, "between 0 and 100") for kind in (DropDTW, Graph2Vid)),
        *((kind, "percentile", -0.5, "between 0 and 100") for kind in (DropDTW, Graph2Vid)),
        *((kind, "percentile", math.nan, "between 0 and 100") for kind in (DropDTW, Graph2Vid)),
        *((kind, "temperature", 0, "more than 0") for kind in (DropDTW, Graph2Vid)),
        *((kind, "temperature", np.inf, "more than 0") for kind in (DropDTW, Graph2Vid)),
        *((Graph2Vid, "majority", value, "between 0 and 1") for value in (2, -0.5)),
        (Graph2Vid, "max_states", 1, "at least 2"),
    ],
)
def test_options_out_of_range_are_refused(kind, name, value, rule):
    with pytest.raises(ConfigError, match=f"^{name} must be {rule}, got {value}$"):
        kind(**{name: value})


@pytest.mark.parametrize("share", [0, 1])
def test_the_ends_of_a_range_are_in_it(share):
    found = Graph2Vid(percentile=100 * share, majority=share, max_states=2)

    assert (found.majority, found.max_states) == (share, 2)


def test_with_as_many_rows_as_keysteps_none_is_dropped():
    backwards = observed(1, 0, size=2)

    assert decoded(DropDTW(), backwards, chain_of(0, 1, size=2)) == [0, 1]
    assert decoded(DropDTW(drop_keysteps=True), backwards, chain_of(0, 1, size=2)) != [0, 1]


def test_two_keysteps_without_an_order_are_refused():
    graph = TaskGraph.from_order(keysteps(2), [])

    with pytest.raises(DataError, match="must chain its 2 candidate keysteps in one order, got 0"):
        DropDTW().decode(observed(0, 1, size=2), graph)
