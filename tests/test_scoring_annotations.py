"""Scores with annotations of people, and what decoders and mining make of them."""

from types import SimpleNamespace

import numpy as np
import pytest

from reference import keysteps, make_scores
from stepgraph.core import BACKGROUND, UNANNOTATED, Features, Labels, Scores, Segment, Vocabulary
from stepgraph.decoders import DECODERS, PathSearch, TaskMarkov, checked_decode, load_decoder
from stepgraph.decoders.learning import learn_graph
from stepgraph.decoders.observations import observe
from stepgraph.decoders.tasks import task_log_evidence
from stepgraph.graph import TaskGraph, mine_graph
from stepgraph.scoring.lazy import LazyScores

TWO = Vocabulary(tuple("abcdef"), {"first": (0, 1, 2), "second": (3, 4, 5)})


def spoken(random, sentences=12, rows=60):
    """A video of sentences with gaps between them."""
    vectors = random.normal(size=(sentences, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    starts = np.sort(random.uniform(0, rows - 3, sentences))
    intervals = np.stack([starts, starts + random.uniform(0.5, 3, sentences)], axis=1)
    steps = random.normal(size=(len(TWO), 8)).astype(np.float32)
    steps /= np.linalg.norm(steps, axis=1, keepdims=True)
    return LazyScores(Features("v", float(rows), vectors, intervals), steps, TWO)


def some_annotated(random, rows=60):
    times = np.sort(random.uniform(0, rows, 6))
    labels = random.integers(BACKGROUND, len(TWO), 3).tolist()
    return [
        Segment(*map(float, times[2 * at : 2 * at + 2]), label) for at, label in enumerate(labels)
    ]


def plain(scores):
    return Scores(scores.video, scores.values, scores.observed, scores.vocabulary, scores.hop)


@pytest.mark.parametrize("seed", range(20))
def test_lazy_scores_are_fixed_as_plain_scores_are(seed):
    random = np.random.default_rng(seed)
    scores, annotated = spoken(random), some_annotated(random)

    lazy, simple = scores.annotate(annotated), plain(scores).annotate(annotated)

    np.testing.assert_array_equal(lazy.annotation, simple.annotation)
    np.testing.assert_array_equal(lazy.observed, simple.observed)
    np.testing.assert_array_equal(lazy.values[lazy.observed], simple.values[simple.observed])
    np.testing.assert_array_equal(lazy.best()[1][lazy.observed], simple.best()[1][lazy.observed])
    for keystep in range(len(TWO)):
        column = lazy.at(slice(None), keystep)[lazy.observed]
        np.testing.assert_allclose(column, simple.values[lazy.observed, keystep], atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_who_hears_them_hears_what_was_annotated(seed):
    random = np.random.default_rng(seed)
    fixed = spoken(random).annotate(some_annotated(random))
    observed = observe(fixed)

    np.testing.assert_array_equal(observed.row_annotation, fixed.annotation)
    close = observed.similarity("first", (0, 1, 2)).keysteps
    rows = np.flatnonzero(observed.index >= 0)
    np.testing.assert_allclose(close[observed.index[rows]], fixed.values[rows][:, :3], atol=1e-6)


def test_nothing_annotated_changes_nothing():
    scores = spoken(np.random.default_rng(0))
    graph = learn_graph([scores], TWO)

    before = TaskMarkov().decode(scores, graph)
    after = checked_decode(TaskMarkov(), scores.annotate([]), graph)

    np.testing.assert_array_equal(before.keysteps, after.keysteps)
    np.testing.assert_array_equal(before.confidence, after.confidence)
    assert before.tasks == after.tasks


@pytest.mark.parametrize("name", [*DECODERS])
@pytest.mark.parametrize("lazy", [True, False])
def test_every_decoder_gives_what_was_annotated(name, lazy):
    random = np.random.default_rng(3)
    scores = spoken(random)
    fixed = (scores if lazy else plain(scores)).annotate(some_annotated(random))
    graph = TaskGraph.from_order(TWO, [range(len(TWO))])

    found = checked_decode(load_decoder(name), fixed, graph)

    annotated = fixed.annotation != UNANNOTATED
    assert annotated.any()
    np.testing.assert_array_equal(found.keysteps[annotated], fixed.annotation[annotated])


def test_a_keystep_that_was_annotated_is_an_anchor_and_certain():
    tracks = np.array([False, True, True, False]), np.array([0.1, 0.2, 0.3, 0.4])
    scores = make_scores(np.zeros((4, 6)), vocabulary=TWO)
    fixed = scores.annotate([Segment(0, 1, 3), Segment(1, 2, BACKGROUND)])
    graph = TaskGraph.from_order(TWO, [range(len(TWO))])

    def found(*tracks):
        labels = Labels(scores.video, np.array([5, 5, 4, -1]), TWO, 1.0, *tracks)
        return checked_decode(SimpleNamespace(decode=lambda *_: labels), fixed, graph)

    assert found(*tracks).keysteps.tolist() == found().keysteps.tolist() == [3, -1, 4, -1]
    assert found(*tracks).anchors.tolist() == [True, False, True, False]
    assert found(*tracks).confidence.tolist() == [1.0, 1.0, 0.3, 0.4]
    assert found().anchors is found().confidence is None


def test_paths_run_between_what_was_annotated():
    tea = keysteps(4)
    graph = TaskGraph.from_order(tea, [(0, 1, 2, 3)])
    scores = make_scores(np.full((8, 4), 0.1), vocabulary=tea)

    fixed = scores.annotate([Segment(0, 1, 0), Segment(3, 5, BACKGROUND), Segment(7, 8, 3)])

    # Six rows are left for four keysteps: time stands still where nothing is done.
    found = checked_decode(PathSearch(0.5), fixed, graph)
    assert found.keysteps.tolist() == [0, 0, 1, -1, -1, 2, 2, 3]


def test_a_keystep_that_was_annotated_speaks_for_its_task():
    scores = spoken(np.random.default_rng(1))
    before = task_log_evidence(observe(scores), TWO.tasks)
    after = task_log_evidence(observe(scores.annotate([Segment(0, 30, 4)])), TWO.tasks)

    assert np.diff(after) > np.diff(before) + 3


def slow_evidence(fixed, members):
    """Closest keystep of a row in the mean, and closest row of a keystep in the mean."""
    rows = fixed.values[fixed.observed][:, members].tolist()
    closest = [
        max(row) if max(row) > -np.inf else 0.0
        for row, label in zip(rows, fixed.annotation[fixed.observed], strict=True)
        if max(row) > -np.inf or label >= 0  # as far away as what is not said
    ]
    ever = [one for one in map(max, zip(*rows, strict=True)) if one > -np.inf]
    if not closest:
        return -np.inf
    return sum(closest) / len(closest) + (sum(ever) / len(ever) if ever else 0.0)


@pytest.mark.parametrize("label", range(BACKGROUND, 6))
def test_where_another_keystep_was_annotated_a_task_is_as_if_nothing_of_it_were_said(label):
    fixed = spoken(np.random.default_rng(4)).annotate([Segment(0, 25, label), Segment(30, 33, 5)])

    found = observe(fixed).task_similarity(TWO.tasks)

    expected = [slow_evidence(fixed, members) for members in TWO.tasks.values()]
    assert found == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("lazy", [True, False])
def test_all_of_a_video_may_be_annotated(lazy):
    scores = spoken(np.random.default_rng(2))
    fixed = (scores if lazy else plain(scores)).annotate([Segment(0, 30, 1), Segment(30, 60, 2)])
    graph = learn_graph([fixed], TWO)

    assert graph.counts.toarray()[:3, :3].tolist() == [[0, 0, 0], [0, 29, 1], [0, 0, 29]]
    found = checked_decode(TaskMarkov(), fixed, graph)
    assert found.keysteps.tolist() == [1] * 30 + [2] * 30
    assert set(found.confidence) == {1.0}
    assert next(iter(found.tasks)) == "first"
    assert np.isfinite(graph.parameters.timing["first"]).all()


def test_where_nothing_is_done_no_transition_is_counted():
    scores = spoken(np.random.default_rng(2))

    assert mine_graph([scores.annotate([Segment(0, 60, BACKGROUND)])], TWO).counts.nnz == 0
    assert (
        learn_graph([scores.annotate([Segment(0, 60, BACKGROUND)])], TWO).parameters.videos == {}
    )


def test_no_rows_can_be_fixed_too():
    empty = make_scores(np.zeros((0, 6)), vocabulary=TWO)

    assert len(empty.annotate([Segment(0, 9, 1)])) == 0


def test_what_was_said_where_something_was_annotated_is_still_known():
    scores = spoken(np.random.default_rng(3))
    row = int(np.flatnonzero(scores.part == 7)[0])

    fixed = scores.annotate([Segment(float(row), row + 1.0, 2)])

    np.testing.assert_array_equal(fixed.vectors[fixed.part[row]], scores.vectors[7])
