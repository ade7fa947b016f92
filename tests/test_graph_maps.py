"""How a task is done, read from recognised videos, or else from neighbouring rows."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from reference import make_traces
from stepgraph.core import Labels, Vocabulary
from stepgraph.graph import TaskGraph
from stepgraph.graph.maps import END, START, procedure_of
from task_maps import tea_graph


def test_steps_and_arrows_are_those_of_the_recognised_videos():
    found = procedure_of(tea_graph(), "Make tea")

    assert found.videos == 3
    assert [(step.keystep, step.videos) for step in found.steps] == [
        *((0, 3), (1, 3), (2, 2), (3, 3), (4, 3))
    ]
    assert {arrow[:3] for arrow in found.successions if arrow.seen} == {
        *((START, 0, 3), (0, 1, 3), (1, 2, 2), (1, 3, 1), (2, 3, 2), (3, 4, 3), (4, END, 3))
    }
    shares = [arrow.share for arrow in found.successions]
    assert shares == sorted(shares, reverse=True)
    assert all(arrow.seen or arrow.share >= 0.1 for arrow in found.successions)
    for one in (*found.steps, *found.successions):
        assert 0 <= one.low < one.share < one.high <= 1
    # Where the third video says nothing, its neighbours go on.
    assert [step.seconds for step in found.steps] == pytest.approx([4, 14 / 3, 4, 14 / 3, 4], 0.2)
    assert not any(step.optional for step in found.steps)


def test_that_a_keystep_is_listed_speaks_for_its_being_done():
    found = procedure_of(tea_graph(), "Make tea")

    # However many videos there are, they count as 2.1 that were watched, and the list as half.
    worth = 2.1 / (3 + 2.1)
    for step in found.steps:
        done, left_out = 0.6 + worth * step.videos + 1.05, 0.6 + worth * (3 - step.videos)
        assert step.share == pytest.approx(done / (done + left_out))


def test_arrows_are_those_that_were_seen_or_are_expected():
    vocabulary = Vocabulary(tuple("abcd"), {"tea": (0, 1, 2, 3)})
    rows = {f"{n}": np.repeat([0, 1, 3], 9) for n in range(60)} | {"rare": np.repeat([0, 3], 9)}
    videos = [Labels(name, one, vocabulary) for name, one in rows.items()]
    counts = csr_array(np.zeros((4, 4), np.int64))
    traces = make_traces({"tea": videos}, vocabulary, 1.0)

    found = procedure_of(TaskGraph(vocabulary, counts, traces=traces), "tea").successions

    drawn = {arrow[:2]: arrow for arrow in found}
    assert drawn[1, 2].seen == 0
    assert drawn[1, 2].share >= 0.1
    assert drawn[0, 3].seen == 1
    assert drawn[0, 3].share < 0.1
    assert (2, 0) not in drawn


def test_a_graph_without_statistics_tells_from_neighbouring_rows_and_knows_no_ends():
    found = procedure_of(tea_graph(statistics=False), "Make tea")

    assert found.videos == 0
    assert [step.keystep for step in found.steps] == [0, 1, 2, 3, 4]
    assert {arrow[:3] for arrow in found.successions} == {
        (0, 1, 3),
        (1, 2, 3),
        (2, 3, 3),
        (3, 4, 3),
    }
    assert all((step.videos, step.low, step.high) == (0, 0, 1) for step in found.steps)


def test_a_task_that_no_video_shows_is_told_from_neighbouring_rows():
    graph = tea_graph(tasks={"Make tea": (0, 1, 2, 3, 4), "Make soup": (0, 3)})

    assert procedure_of(graph, "Make soup").videos == 0


def test_rows_are_put_in_the_order_of_when_they_are_done():
    timing = np.zeros((3, 20), np.int64)
    timing[[0, 1, 2], [15, 1, 8]] = 5
    vocabulary = Vocabulary(("serve", "boil", "pour"), {"tea": (0, 1, 2)})
    counts = csr_array(np.zeros((3, 3), np.int64))

    found = procedure_of(TaskGraph(vocabulary, counts, timing=timing), "tea")

    assert [(step.keystep, step.position) for step in found.steps] == [
        (1, pytest.approx(1.5 / 20)),
        (2, pytest.approx(8.5 / 20)),
        (0, pytest.approx(15.5 / 20)),
    ]


def test_a_keystep_that_a_task_lists_twice_is_one_step():
    vocabulary = Vocabulary(("boil", "pour"), {"tea": (0, 1, 0)})
    graph = TaskGraph(vocabulary, csr_array(np.array([[4, 2], [0, 3]])))

    found = procedure_of(graph, "tea")

    assert [step.keystep for step in found.steps] == [0, 1]
    assert [arrow[:3] for arrow in found.successions] == [(0, 1, 2)]


@pytest.mark.parametrize(("share", "optional"), [(0.49, True), (0.5, False), (0.51, False)])
def test_what_half_of_the_videos_may_show_is_not_optional(share, optional):
    step = procedure_of(tea_graph(), "Make tea").steps[0]

    assert step._replace(share=share).optional == optional
