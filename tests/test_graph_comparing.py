"""How graphs differ, and how a video departs from its graph."""

import numpy as np
import pytest
import scipy.stats

from reference import make_graph, make_traces
from stepgraph.core import Labels, Segment, Vocabulary
from stepgraph.graph.comparing import _both, _distances, compare, deviations, norm_of
from stepgraph.graph.maps import procedure_of
from stepgraph.graph.traces import EmissionTrace, EmissionTraces

WORDS = Vocabulary(("boil", "pour", "stir", "serve"), {"tea": (0, 1, 2, 3)})


def graph_of(*sequences, vocabulary=WORDS, task="tea"):
    videos = [
        Labels(f"{n}", np.repeat(np.array(one, np.int64), 9), vocabulary)
        for n, one in enumerate(sequences)
    ]
    size = len(vocabulary)
    traces = make_traces({task: videos}, vocabulary)
    return make_graph(np.zeros((size, size), np.int64), vocabulary, traces=traces)


def test_graphs_of_the_same_videos_differ_in_nothing():
    one = graph_of(*[(0, 1, 2)] * 20).statistics

    assert compare(one, one) == []


def test_what_one_team_does_the_other_way_round_is_the_clearest_difference():
    one, other = graph_of(*[(0, 1, 2)] * 30), graph_of(*[(1, 0, 2)] * 30)

    [found] = compare(one.statistics, other.statistics)

    assert (found.task, found.what) == ("tea", "'boil' before 'pour'")
    assert found.first > 0.9 > 0.1 > found.second
    [back] = compare(other.statistics, one.statistics)
    assert (back.first, back.second) == (found.second, found.first)


def test_few_videos_prove_no_difference():
    one, other = graph_of((0, 1, 2)), graph_of((1, 0, 2))

    assert compare(one.statistics, other.statistics) == []


def test_what_is_left_out_by_one_is_told():
    one, other = graph_of(*[(0, 1, 2)] * 30), graph_of(*[(0, 2)] * 30)

    found = compare(one.statistics, other.statistics)

    assert "'pour' occurs" in [each.what for each in found]


def test_the_greatest_difference_is_told_first():
    one, other = graph_of(*[(0, 1, 2)] * 40), graph_of(*[(1, 0, 2)] * 26, *[(0, 1)] * 14)

    found = compare(one.statistics, other.statistics)

    assert [each.what for each in found][:2] == ["'boil' before 'pour'", "'stir' occurs"]
    assert abs(found[0].first - found[0].second) > abs(found[1].first - found[1].second)
    assert found[0].first + found[0].second < found[1].first + found[1].second


def test_keysteps_are_the_same_where_their_names_are():
    others = Vocabulary(("pour", "boil", "sip"), {"tea": (0, 1, 2), "soup": (2,)})
    one, other = graph_of(*[(0, 1)] * 30), graph_of(*[(0, 1)] * 30, vocabulary=others)

    [found] = compare(one.statistics, other.statistics)

    assert found.what == "'boil' before 'pour'"
    soup = graph_of(*[(2,)] * 30, vocabulary=others, task="soup")
    assert compare(one.statistics, soup.statistics) == []
    strange = Vocabulary(("steep", "sip"), {"tea": (0, 1)})
    assert compare(one.statistics, graph_of((0, 1), vocabulary=strange).statistics) == []


def mumbled(seed, videos=80):
    """Videos that hardly say which keystep is done when, all by the same chances."""
    rng, size = np.random.default_rng(seed), len(WORDS)
    said = rng.normal(0, 0.5, (videos, 30, size))
    said -= np.logaddexp.reduce(said, axis=2, keepdims=True)
    traces = {
        f"{seed}-{n}": EmissionTrace.of_runs(np.full(30, 5), one, np.zeros(size, bool), 1.0)
        for n, one in enumerate(said)
    }
    found = EmissionTraces({"tea": traces}, {"tea": videos})
    return make_graph(np.zeros((size, size), np.int64), WORDS, traces=found).statistics


def test_videos_of_one_kind_differ_in_nothing_however_uncertain_they_are():
    # Two of eight such draws in which counts alone differ by more than votes would by chance.
    for seed in (2, 12):
        assert compare(mumbled(seed), mumbled(seed + 1)) == []


def test_transitions_of_both_graphs_are_added_up_by_their_names():
    others = Vocabulary(("pour", "boil", "sip"), {"tea": (0, 1, 2)})
    traces = [make_traces({"tea": []}, words) for words in (WORDS, others)]
    one = make_graph(np.arange(16).reshape(4, 4), WORDS, traces=traces[0])
    other = make_graph(100 * np.arange(1, 10).reshape(3, 3), others, traces=traces[1])

    found = _both(one.statistics, other.statistics, "tea")

    names = ("boil", "pour", "stir", "serve", "sip")
    expected = [
        [
            (one.counts[WORDS.index(a), WORDS.index(b)] if {a, b} <= {*WORDS.keysteps} else 0)
            + (
                other.counts[others.index(a), others.index(b)]
                if {a, b} <= {*others.keysteps}
                else 0
            )
            for b in names
        ]
        for a in names
    ]
    assert found.counts.tolist() == expected
    assert (found.names, found.places, found.first) == (["boil", "pour"], [0, 1], 0)


def test_one_of_twenty_splits_is_that_of_the_graphs(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "stepgraph.graph.comparing._distances",
        lambda both, order: (asked.append(order.tolist()), np.zeros((2, 10)), np.zeros(10))[1:],
    )
    one = graph_of(*[(0, 1, 2)] * 3).statistics

    compare(one, one)

    assert len(asked) == 20
    assert asked[-1] == [*range(6)]
    assert all(sorted(order) == asked[-1] for order in asked)
    assert len({tuple(order) for order in asked}) > 15


def slow_distance(first, second, number):
    """By how many spreads two shares of so many videos differ, of Beta distributions."""
    beta = [scipy.stats.beta(1 + one, 1 + number - one) for one in (first, second)]
    return abs(beta[0].mean() - beta[1].mean()) / np.sqrt(beta[0].var() + beta[1].var())


def test_shares_differ_by_the_spreads_of_their_distributions():
    one, other = graph_of(*[(0, 1, 2)] * 6), graph_of(*[(0, 1)] * 4, (0, 2), (2, 0))

    shares, distance = _distances(_both(one.statistics, other.statistics, "tea"), np.arange(12))

    # Of the four keysteps 6 and 6, 6 and 4, 6 and 2, 0 and 0 of six videos speak clearly.
    counts = [(6, 6), (6, 4), (6, 2), (0, 0)]
    assert shares.T[:4] == pytest.approx((np.array(counts) + 1) / 8)
    assert distance[:4] == pytest.approx([slow_distance(*pair, 6) for pair in counts])
    # 0 before 1 in all that show both.
    assert shares[:, 4] == pytest.approx([7 / 8, 5 / 6], abs=0.02)


def seen(*sequence, length=10.0):
    return [Segment(n * length, (n + 1) * length, one) for n, one in enumerate(sequence)]


def told(graph, *sequence):
    found = deviations(norm_of(graph.statistics, procedure_of(graph, "tea")), seen(*sequence))
    return [(one.start, one.kind, one.what) for one in found]


def test_a_video_that_does_as_all_do_departs_in_nothing():
    assert told(graph_of(*[(0, 1, 2, 3)] * 20), 0, 1, 2, 3) == []


def test_what_is_missing_and_out_of_order_is_told():
    graph = graph_of(*[(0, 1, 2, 3)] * 20)

    assert told(graph, 1, 0, 3) == [
        (None, "missing", "no 'stir'"),
        (0.0, "order", "'pour' before 'boil'"),
    ]
    [missing, _] = deviations(norm_of(graph.statistics, procedure_of(graph, "tea")), seen(1, 0, 3))
    assert missing.why == "done in 86 % (63 to 100 %) of videos"


def test_what_begins_together_is_in_no_order_and_hides_no_other():
    graph = graph_of(*[(0, 1, 2, 3)] * 20)
    together = [Segment(0, 5, 1), Segment(0, 5, 2), Segment(10, 15, 0), Segment(20, 25, 3)]

    found = deviations(norm_of(graph.statistics, procedure_of(graph, "tea")), together)

    assert [one.what for one in found] == ["'pour' before 'boil'", "'stir' before 'boil'"]


def test_an_optional_step_may_be_missing():
    graph = graph_of(*[(0, 1, 3)] * 19, (0, 1, 2, 3))

    assert told(graph, 0, 1, 3) == []


def test_what_is_come_back_to_again_and_again_is_told():
    graph = graph_of(*[(0, 1, 2, 3)] * 20)

    assert told(graph, 0, 1, 2, 1, 2, 3, 1) == [(60.0, "repeated", "'pour' 3 times")]


def test_nothing_done_lacks_everything_that_is_not_optional():
    graph = graph_of(*[(0, 1)] * 20)

    assert [kind for _, kind, _ in told(graph)] == ["missing", "missing"]
