"""How graphs differ, and how a video departs from its graph."""

import numpy as np

from reference import make_courses, make_graph
from stepgraph.core import Labels, Segment, Vocabulary
from stepgraph.graph.comparing import compare, departures
from stepgraph.graph.courses import Course, Courses
from stepgraph.graph.maps import task_map

WORDS = Vocabulary(("boil", "pour", "stir", "serve"), {"tea": (0, 1, 2, 3)})


def graph_of(*sequences, vocabulary=WORDS, task="tea"):
    videos = [
        Labels(f"{n}", np.repeat(np.array(one, np.int64), 9), vocabulary)
        for n, one in enumerate(sequences)
    ]
    size = len(vocabulary)
    courses = make_courses({task: videos}, vocabulary)
    return make_graph(np.zeros((size, size), np.int64), vocabulary, courses=courses)


def test_graphs_of_the_same_videos_differ_in_nothing():
    one = graph_of(*[(0, 1, 2)] * 20).layers

    assert compare(one, one) == []


def test_what_one_team_does_the_other_way_round_is_the_clearest_difference():
    one, other = graph_of(*[(0, 1, 2)] * 30), graph_of(*[(1, 0, 2)] * 30)

    [found] = compare(one.layers, other.layers)

    assert (found.task, found.what) == ("tea", "'boil' before 'pour'")
    assert found.first > 0.9 > 0.1 > found.second
    [back] = compare(other.layers, one.layers)
    assert (back.first, back.second) == (found.second, found.first)


def test_few_videos_prove_no_difference():
    one, other = graph_of((0, 1, 2)), graph_of((1, 0, 2))

    assert compare(one.layers, other.layers) == []


def test_what_is_left_out_by_one_is_told():
    one, other = graph_of(*[(0, 1, 2)] * 30), graph_of(*[(0, 2)] * 30)

    found = compare(one.layers, other.layers)

    assert "'pour' is spoken of" in [each.what for each in found]


def test_keysteps_are_the_same_where_their_names_are():
    others = Vocabulary(("pour", "boil", "sip"), {"tea": (0, 1, 2), "soup": (2,)})
    one, other = graph_of(*[(0, 1)] * 30), graph_of(*[(0, 1)] * 30, vocabulary=others)

    [found] = compare(one.layers, other.layers)

    assert found.what == "'boil' before 'pour'"
    soup = graph_of(*[(2,)] * 30, vocabulary=others, task="soup")
    assert compare(one.layers, soup.layers) == []
    strange = Vocabulary(("steep", "sip"), {"tea": (0, 1)})
    assert compare(one.layers, graph_of((0, 1), vocabulary=strange).layers) == []


def mumbled(seed, videos=80):
    """Videos that hardly say which keystep is done when, all by the same chances."""
    rng, size = np.random.default_rng(seed), len(WORDS)
    said = rng.normal(0, 0.5, (videos, 30, size))
    said -= np.logaddexp.reduce(said, axis=2, keepdims=True)
    courses = {
        f"{seed}-{n}": Course.of_moments(np.full(30, 5), one, np.zeros(size, bool), 1.0)
        for n, one in enumerate(said)
    }
    found = Courses({"tea": courses}, {"tea": videos})
    return make_graph(np.zeros((size, size), np.int64), WORDS, courses=found).layers


def test_videos_of_one_kind_differ_in_nothing_however_unclear_they_are():
    # Two of eight such draws in which counts alone differ by more than votes would by chance.
    for seed in (2, 12):
        assert compare(mumbled(seed), mumbled(seed + 1)) == []


def seen(*sequence, length=10.0):
    return [Segment(n * length, (n + 1) * length, one) for n, one in enumerate(sequence)]


def told(graph, *sequence):
    found = departures(graph.layers, task_map(graph, "tea"), seen(*sequence))
    return [(one.start, one.kind, one.what) for one in found]


def test_a_video_that_does_as_all_do_departs_in_nothing():
    assert told(graph_of(*[(0, 1, 2, 3)] * 20), 0, 1, 2, 3) == []


def test_what_is_missing_and_out_of_order_is_told():
    graph = graph_of(*[(0, 1, 2, 3)] * 20)

    assert told(graph, 1, 0, 3) == [
        (None, "missing", "no 'stir'"),
        (0.0, "order", "'pour' before 'boil'"),
    ]
    [missing, _] = departures(graph.layers, task_map(graph, "tea"), seen(1, 0, 3))
    assert missing.why == "done in 86 % (63 to 100 %) of videos"


def test_an_optional_step_may_be_missing():
    graph = graph_of(*[(0, 1, 3)] * 19, (0, 1, 2, 3))

    assert told(graph, 0, 1, 3) == []


def test_what_is_come_back_to_again_and_again_is_told():
    graph = graph_of(*[(0, 1, 2, 3)] * 20)

    assert told(graph, 0, 1, 2, 1, 2, 3, 1) == [(60.0, "repeated", "'pour' 3 times")]


def test_nothing_done_lacks_everything_that_is_not_optional():
    graph = graph_of(*[(0, 1)] * 20)

    assert [kind for _, kind, _ in told(graph)] == ["missing", "missing"]
