"""Metrics against loops over rows with sets, and their properties."""

import math

import numpy as np
import pytest

import reference
from reference import make_labels, random_labels
from stepgraph import metrics
from stepgraph.core import Vocabulary
from stepgraph.errors import DataError

NAMES = ("accuracy", "accuracy_per_keystep", "iou", "iou_per_keystep")


def measured(*pairs):
    counts = sum((metrics.tally(*pair) for pair in pairs[1:]), metrics.tally(*pairs[0]))
    return {name: getattr(metrics, name)(counts) for name in NAMES}


def of_rows(true, predicted, size=5):
    return measured((make_labels(true, size), make_labels(predicted, size)))


@pytest.mark.parametrize("seed", range(50))
def test_metrics_are_those_of_sets_of_rows(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 30, 3).tolist()
    truths, predictions = (
        [random_labels(rng, rows, 6, video=f"{n}") for n, rows in enumerate(lengths)]
        for _ in range(2)
    )

    found = measured(*zip(truths, predictions, strict=True))

    assert found == pytest.approx(reference.metrics(truths, predictions), nan_ok=True)


@pytest.mark.parametrize("seed", range(10))
def test_rare_keysteps_are_measured_like_a_loop_does(seed):
    rng = np.random.default_rng(seed)
    true, predicted = (make_labels(rng.geometric(0.5, 40).clip(max=6) - 2, 5) for _ in range(2))

    found = measured((true, predicted))

    assert found == pytest.approx(reference.metrics([true], [predicted]))


def test_worked_example():
    found = of_rows([0, 0, 0, 1, -1, -1], [0, 0, 1, -1, 1, 2])

    assert found == pytest.approx(
        {
            "accuracy": 2 / 4,
            "accuracy_per_keystep": (2 / 3 + 0 / 1) / 2,
            "iou": 2 / (3 + 3),
            "iou_per_keystep": (2 / 3 + 0 / 3) / 2,
        }
    )


def test_perfect_labels_have_one_everywhere():
    rows = [-1, 0, 0, 3, 3, -1, 2]

    assert of_rows(rows, rows) == dict.fromkeys(NAMES, 1.0)


def test_labels_all_wrong_have_zero_everywhere():
    assert of_rows([0, 0, 1], [1, 1, 0]) == dict.fromkeys(NAMES, 0.0)


def test_labels_all_background_have_zero_everywhere():
    assert of_rows([0, 0, 1], [-1, -1, -1]) == dict.fromkeys(NAMES, 0.0)


@pytest.mark.parametrize("true", [[], [-1, -1]])
@pytest.mark.parametrize("predicted", [-1, 2])
def test_metrics_without_a_true_keystep_are_undefined(true, predicted):
    found = of_rows(true, [predicted] * len(true))

    assert all(math.isnan(value) for value in found.values())


def test_metrics_of_nothing_are_undefined():
    counts = metrics.Tally.empty(3)

    assert all(math.isnan(getattr(metrics, name)(counts)) for name in NAMES)


@pytest.mark.parametrize("seed", range(5))
def test_renaming_keysteps_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    true, predicted = rng.integers(0, 5, (2, 50))
    renamed = rng.permutation(5)

    found = of_rows(renamed[true], renamed[predicted])

    assert found == pytest.approx(of_rows(true, predicted))


def test_background_rows_do_not_count_for_accuracy():
    found = of_rows([0, 0, -1, -1, -1], [0, 0, 0, 1, -1])

    assert found["accuracy"] == found["accuracy_per_keystep"] == 1.0


def test_a_keystep_predicted_on_background_enlarges_its_union():
    found = of_rows([0, 0, -1, -1], [0, 0, 0, 0])

    assert found["iou"] == found["iou_per_keystep"] == 0.5


def test_a_keystep_absent_from_the_truth_has_no_union_of_its_own():
    found = of_rows([0, 0, -1, -1], [0, 0, 4, 4])

    assert found == dict.fromkeys(NAMES, 1.0)


def test_a_keystep_absent_from_the_truth_makes_its_row_wrong():
    assert of_rows([0, 0], [0, 4])["accuracy"] == 0.5


def test_rare_keysteps_weigh_the_same_in_the_mean_over_keysteps():
    found = of_rows([0] * 9 + [1], [0] * 9 + [0])

    assert (found["accuracy"], found["accuracy_per_keystep"]) == (0.9, 0.5)


def test_videos_are_pooled_by_rows_not_averaged():
    short = make_labels([0]), make_labels([0])
    long = make_labels([0] * 9), make_labels([1] * 9)

    assert measured(short, long)["accuracy"] == 0.1


def test_labels_of_another_length_are_refused():
    with pytest.raises(DataError, match="'video' must have equal length, got 2 and 3 rows"):
        metrics.tally(make_labels([0, 1]), make_labels([0, 1, 1]))


def test_labels_of_another_vocabulary_are_refused():
    other = make_labels([0, 1], vocabulary=Vocabulary(("a", "b")))

    with pytest.raises(DataError, match="labels of video 'video' must share one vocabulary"):
        metrics.tally(make_labels([0, 1]), other)
