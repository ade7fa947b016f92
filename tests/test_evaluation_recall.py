"""CrossTask's recall against loops and against all ordered choices."""

import math
from itertools import combinations
from statistics import fmean

import numpy as np
import pytest

from reference import keysteps, make_labels, make_scores, random_scores
from stepgraph.core import Vocabulary
from stepgraph.errors import DataError
from stepgraph.evaluation import segments

TASKS = Vocabulary(keysteps(5).keysteps, {"tea": (0, 1, 2), "toast": (2, 3, 4)})


def slow_recall(scores, truth, tasks):
    hits = {task: [] for task in tasks.values()}
    for one in scores:
        true = truth[one.video].keysteps.tolist()
        rows = [row for row in range(len(one)) if one.observed[row]]
        for keystep in TASKS.tasks[tasks[one.video]]:
            if keystep in true:
                best = max(rows, key=lambda row: one.values[row, keystep], default=None)
                hits[tasks[one.video]].append(best is not None and true[best] == keystep)
    recalls = [fmean(found) for found in hits.values() if found]
    return fmean(recalls) if recalls else math.nan


def tea_scores(values, observed=None, video="video"):
    return make_scores(values, observed, video=video, vocabulary=TASKS)


def test_recall_is_that_of_a_loop_over_steps():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        names = [f"{n}" for n in range(5)]
        lengths = rng.integers(0, 12, 5).tolist()
        scores = [
            tea_scores(one.values, one.observed, one.video)
            for one in (
                random_scores(rng, n, 5, video=v) for n, v in zip(lengths, names, strict=True)
            )
        ]
        truth = {
            one.video: make_labels(
                rng.integers(-1, 5, len(one)), video=one.video, vocabulary=TASKS
            )
            for one in scores
        }
        tasks = {name: str(rng.choice(["tea", "toast"])) for name in names}

        found = segments.crosstask_recall(scores, truth, tasks)

        assert found == pytest.approx(slow_recall(scores, truth, tasks), nan_ok=True)


def test_ordered_recall_is_that_of_the_best_of_all_ordered_choices():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        one = random_scores(rng, 8, 5, spoken=0.7)
        truth = make_labels(rng.integers(-1, 5, 8), vocabulary=TASKS)
        members = [keystep for keystep in (2, 3, 4) if keystep in truth.keysteps]
        choices = combinations(np.flatnonzero(one.observed).tolist(), 3)

        found = segments.crosstask_recall(
            [tea_scores(one.values, one.observed)],
            {"video": truth},
            {"video": "toast"},
            ordered=True,
        )

        best = max(choices, key=lambda rows: one.values[list(rows), [2, 3, 4]].sum(), default=())
        hits = sum(truth.keysteps[row] == k for row, k in zip(best, (2, 3, 4), strict=False))
        expected = hits / len(members) if members else math.nan
        assert found == pytest.approx(expected, nan_ok=True)


def test_recall_is_averaged_within_tasks_first():
    tasks = {"a": "tea", "b": "tea", "c": "toast"}
    scores = [tea_scores([[1] * 5, [0] * 5], video=video) for video in tasks]
    rows = {"a": [0, -1], "b": [0, -1], "c": [-1, 4]}
    truth = {one: make_labels(rows[one], video=one, vocabulary=TASKS) for one in tasks}

    assert segments.recall_per_task(scores, truth, tasks) == {"tea": 1.0, "toast": 0.0}
    assert segments.crosstask_recall(scores, truth, tasks) == 0.5


def test_keysteps_of_other_tasks_are_not_asked_for():
    truth = {"video": make_labels([0, 4], vocabulary=TASKS)}

    found = segments.crosstask_recall([tea_scores(np.eye(5)[:2])], truth, {"video": "tea"})

    assert found == 1.0


def test_unobserved_rows_are_not_pointed_at():
    truth = {"video": make_labels([-1, 0], vocabulary=TASKS)}
    scores = tea_scores([[0.9] * 5, [0.1] * 5], [False, True])

    assert segments.crosstask_recall([scores], truth, {"video": "tea"}) == 1.0


@pytest.mark.parametrize(("value", "observed"), [(0.5, False), (-np.inf, True)])
def test_steps_that_cannot_be_pointed_at_are_missed(value, observed):
    truth = {"video": make_labels([0, 0], vocabulary=TASKS)}
    scores = tea_scores(np.full((2, 5), value), [observed] * 2)

    assert segments.crosstask_recall([scores], truth, {"video": "tea"}) == 0.0


def test_ordered_steps_may_be_ruled_out_in_some_rows():
    truth = {"video": make_labels([0, 1, 2], vocabulary=TASKS)}
    scores = tea_scores(np.where(np.eye(3, 5) > 0, 0.5, -np.inf)[::-1])

    assert segments.crosstask_recall([scores], truth, {"video": "tea"}, ordered=True) == 1.0


def test_recall_without_true_steps_is_undefined():
    truth = {"video": make_labels([-1], vocabulary=TASKS)}
    scores = tea_scores([[0.5] * 5])

    assert math.isnan(segments.crosstask_recall([scores], truth, {"video": "tea"}))
    assert math.isnan(segments.crosstask_recall([], truth, {}))


@pytest.mark.parametrize("tasks", [{}, {"video": "soup"}])
def test_recall_needs_the_task_of_each_video(tasks):
    truth = {"video": make_labels([0], vocabulary=TASKS)}

    with pytest.raises(DataError, match=r"task of video 'video' must be one of the 2 .* got"):
        segments.crosstask_recall([tea_scores([[0.5] * 5])], truth, tasks)


def test_recall_needs_scores_of_every_row():
    truth = {"video": make_labels([0, 0], vocabulary=TASKS)}

    with pytest.raises(DataError, match="'video' must have equal length, got 2 and 1 rows"):
        segments.crosstask_recall([tea_scores([[0.5] * 5])], truth, {"video": "tea"})
