"""Which task a video shows, number by number: what is related, and where a video is cut."""

import math

import numpy as np
import pytest

from reference import keysteps, make_graph, make_scores
from stepgraph.core import Labels, Vocabulary
from stepgraph.decoders import tasks
from stepgraph.decoders.observations import observe
from stepgraph.decoders.tasks import rank_tasks, task_posterior, task_segments, tasks_of
from stepgraph.graph.parameters import RecognizerParameters

TWO = {"tea": (0, 1), "soup": (2,)}


def parameters_of(evidence):
    """Habits of a corpus in whose videos so much speaks for each task."""
    sampled = {f"{n}": np.array(one, np.float32) for n, one in enumerate(evidence)}
    return RecognizerParameters(tuple("abc"[: len(evidence[0])]), sampled, {}, {}, {})


def related(most, parameters):
    """How probable it is that a video is about any task, if so much speaks for the best."""
    evidence = np.array([most, *[most - 9.0] * (len(parameters.tasks) - 1)])
    return sum(
        task_posterior(dict.fromkeys(parameters.tasks, (0,)), evidence, parameters).values()
    )


def slow_related(most, evidence):
    """The odds are nine to one between the mean of the best and the mean of the next best."""
    pairs = [sorted(one)[-2:] for one in evidence]
    low, high = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
    spread = sum((a - low) ** 2 + (b - high) ** 2 for a, b in pairs) / len(pairs) / 2
    return 1 / (1 + math.exp(-(most - (low + high) / 2) * (high - low) / spread) / 9)


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("videos", [20, 21, 60])
def test_a_video_is_related_as_it_stands_between_the_best_and_the_next_best(videos, count):
    rng = np.random.default_rng(videos)
    evidence = rng.normal(10, 3, (videos, count)).astype(np.float32).tolist()

    for most in (4.0, 8.0, 11.0, 14.0):
        expected = slow_related(most, evidence)
        assert related(most, parameters_of(evidence)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "evidence",
    [
        [[3.0, 1.0]] * 19,
        [[3.0, 1.0]] * 19 + [[3.0, -math.inf]] * 9,
        [[3.0]] * 30,
    ],
    ids=["few videos", "few with two tasks", "one task"],
)
def test_where_little_is_known_nine_of_ten_videos_are_related(evidence):
    assert related(-50.0, parameters_of(evidence)) == pytest.approx(0.9)


def test_a_corpus_of_equal_videos_is_sure_within_a_millionth():
    parameters = parameters_of([[1.0, 0.0]] * 20)

    assert related(0.5 + 1e-6, parameters) == pytest.approx(1 / (1 + math.exp(-1) / 9), rel=1e-6)


def slow_segments(values, observed, listed, cost):
    """The best of all sequences of tasks, a row at a time; where it changes."""
    columns = list(listed.values())
    best, way = [0.0] * len(columns), [()] * len(columns)
    for row, heard in zip(values, observed, strict=True):
        close = [max(row[k] for k in members) for members in columns]
        shares = [math.exp((one - max(close)) / 0.1) for one in close]
        worth = [math.log(0.001 + one / sum(shares)) if heard else 0.0 for one in shares]
        before = [
            max((best[o] - cost * (o != n), way[o]) for o in range(len(columns)))
            for n in range(len(columns))
        ]
        best = [one + worth[n] for n, (one, _) in enumerate(before)]
        way = [(*one, n) for n, (_, one) in enumerate(before)]
    found = way[best.index(max(best))]
    cuts = [row for row in range(1, len(found)) if found[row] != found[row - 1]]
    return [slice(*one) for one in zip([0, *cuts], [*cuts, len(found)], strict=True)]


def test_a_video_is_cut_as_the_best_of_all_sequences_is(monkeypatch):
    listed = {**TWO, "bread": (3, 4)}
    lengths = set()
    for seed in range(60):
        rng = np.random.default_rng(seed)
        # The first row is heard, so that the best sequence is the only one.
        values, observed = rng.uniform(0, 0.5, (12, 5)), rng.random(12) < 0.8
        observed[[0, -1]] = True
        scores = make_scores(values, observed)
        cost = float(rng.uniform(1, 6))
        monkeypatch.setattr(tasks, "SWITCH_COST", cost)

        found = task_segments(observe(scores), listed, np.zeros(3))

        expected = slow_segments(scores.values.tolist(), observed, listed, cost)
        lengths.add(len(expected))
        # A row without speech between two tasks belongs to either.
        starts, others = (
            [one.start + int(observed[one.start :].argmax()) for one in ones]
            for ones in (found, expected)
        )
        assert starts == others
    assert {1, 2, 3} <= lengths


@pytest.mark.parametrize(("rows", "whole"), [(17, True), (18, False)])
def test_eighteen_confident_rows_are_a_change_of_task(rows, whole):
    values = np.repeat([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], rows, axis=0)

    found = task_segments(observe(make_scores(values)), TWO, np.zeros(2))

    assert found == [slice(0, 2 * rows)] if whole else [slice(0, rows), slice(rows, 2 * rows)]


@pytest.mark.parametrize(("place", "cut"), [(19, True), (20, False)])
def test_only_the_twenty_likeliest_tasks_are_considered(place, cut):
    listed = {f"{number}": (number,) for number in range(21)}
    values = np.zeros((60, 21))
    values[:30, 0] = values[30:, place] = 1.0

    found = task_segments(observe(make_scores(values)), listed, -np.arange(21.0))

    assert len(found) == (2 if cut else 1)


@pytest.mark.parametrize(("rows", "cut"), [(18, False), (40, True)])
def test_a_row_that_speaks_for_many_tasks_speaks_less_for_each(rows, cut):
    listed = {f"{number}": (number,) for number in range(20)}
    values = np.ones((rows + 60, 20))
    values[:rows, 19] = values[rows:, :19] = 0.0

    found = task_segments(observe(make_scores(values)), listed, np.zeros(20))

    assert len(found) == (2 if cut else 1)


def test_a_row_on_which_no_task_may_be_speaks_for_none():
    values = np.repeat([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], 30, axis=0)
    values[29:31] = -math.inf

    found = task_segments(observe(make_scores(values)), TWO, np.zeros(2))

    assert len(found) == 2
    assert 29 <= found[0].stop <= 31


@pytest.mark.parametrize(("size", "whole"), [(400, True), (401, False)])
def test_four_hundred_keysteps_without_tasks_are_one_task(size, whole):
    counts = np.zeros((size, size), np.int64)
    counts[0, 1] = counts[2, 3] = 5

    found = tasks_of(make_graph(counts, keysteps(size)))

    assert ([*found] == ["everything"]) is whole


def test_rows_vote_for_the_tasks_that_list_their_keystep():
    """A keystep of two tasks votes half for each; equals stand in the order of the list."""
    tasks = {"none": (4,), "empty": (), "tea": (0, 1), "soup": (1, 2), "milk": (3,)}
    vocabulary = Vocabulary(keysteps(6).keysteps, tasks)

    def ranked(*rows):
        return rank_tasks(Labels("v", np.array(rows, np.int64), vocabulary))

    assert ranked(1, 1, 3) == ("tea", "soup", "milk")
    assert ranked(0, 3, 3, -1, -1) == ("milk", "tea")
    assert ranked(1, 2, 0, 0) == ("tea", "soup")
    assert ranked(1, 1, 1, 3, 3) == ("milk", "tea", "soup")
    assert ranked(-1, 5) == ranked() == ()
