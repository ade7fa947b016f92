"""Metrics against loops over rows with sets, and their properties."""

import math
from statistics import fmean, stdev

import numpy as np
import pytest

import reference
from reference import make_labels, random_labels
from stepgraph.core import Vocabulary
from stepgraph.errors import DataError
from stepgraph.evaluation import metrics
from stepgraph.evaluation.metrics import Tally

NAMES = ("accuracy", "accuracy_per_keystep", "iou", "iou_per_keystep")


def measured(*pairs):
    counts = sum((metrics.tally(*pair) for pair in pairs[1:]), metrics.tally(*pairs[0]))
    return {name: getattr(metrics, name)(counts) for name in NAMES}


def of_rows(true, predicted, size=5):
    return measured((make_labels(true, size), make_labels(predicted, size)))


def test_metrics_are_those_of_sets_of_rows():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        lengths = rng.integers(0, 30, 3).tolist()
        truths, predictions = (
            [random_labels(rng, rows, 6, video=f"{n}") for n, rows in enumerate(lengths)]
            for _ in range(2)
        )

        found = measured(*zip(truths, predictions, strict=True))

        assert found == pytest.approx(reference.metrics(truths, predictions), nan_ok=True)


def test_rare_keysteps_are_measured_like_a_loop_does():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        true, predicted = (
            make_labels(rng.geometric(0.5, 40).clip(max=6) - 2, 5) for _ in range(2)
        )

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
    counts = metrics.Tally.empty()

    assert counts.true.size == 0
    assert all(math.isnan(getattr(metrics, name)(counts)) for name in NAMES)


def test_renaming_keysteps_changes_nothing():
    for seed in range(5):
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


# --- precision and F1


F1_NAMES = ("f1", "f1_per_keystep")


def of_tally(name, true, predicted, size=6, **options):
    counts = metrics.tally(make_labels(true, size), make_labels(predicted, size), **options)
    return getattr(metrics, name)(counts)


def slow_f1(true, predicted, keysteps):
    """F1 of some keysteps from lists of rows: precision and recall, then their mean."""
    pairs = list(zip(true, predicted, strict=True))
    right = sum(one == other and one in keysteps for one, other in pairs)
    given, there = (sum(row in keysteps for row in rows) for rows in (predicted, true))
    if not there:
        return math.nan
    if not right:
        return 0.0
    precision, recall = right / given, right / there
    return 2 * precision * recall / (precision + recall)


def test_f1_is_the_harmonic_mean_of_precision_and_recall():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        true, predicted = rng.integers(-1, 6, (2, int(rng.integers(0, 40)))).tolist()
        there = sorted(set(true) - {-1})

        pooled, averaged = (of_tally(name, true, predicted) for name in F1_NAMES)

        each = [slow_f1(true, predicted, {keystep}) for keystep in there]
        assert pooled == pytest.approx(slow_f1(true, predicted, set(range(6))), nan_ok=True)
        assert averaged == pytest.approx(fmean(each) if each else math.nan, nan_ok=True)


def test_row_metrics_agree_with_scikit_learn():
    from sklearn import metrics as sklearn_metrics

    for seed in range(20):
        rng = np.random.default_rng(seed)
        true, predicted = rng.integers(-1, 6, (2, 60))
        there = np.unique(true[true >= 0])

        theirs = {
            "accuracy": ("recall", "micro", there),
            "accuracy_per_keystep": ("recall", "macro", there),
            "iou": ("jaccard", "micro", there),
            "iou_per_keystep": ("jaccard", "macro", there),
            "precision": ("precision", "micro", range(6)),
            "f1": ("f1", "micro", range(6)),
            "f1_per_keystep": ("f1", "macro", there),
        }
        for name, (function, average, labels) in theirs.items():
            expected = getattr(sklearn_metrics, f"{function}_score")(
                true, predicted, labels=labels, average=average, zero_division=0
            )
            assert of_tally(name, true, predicted) == pytest.approx(expected), name


def test_f1_never_exceeds_what_iou_allows():
    for seed in range(10):
        true, predicted = np.random.default_rng(seed).integers(-1, 6, (2, 60))

        for name, bound in (("f1", "iou"), ("f1_per_keystep", "iou_per_keystep")):
            iou = of_tally(bound, true, predicted)
            assert of_tally(name, true, predicted) <= 2 * iou / (1 + iou) + 1e-12


@pytest.mark.parametrize("name", F1_NAMES)
def test_f1_of_perfect_labels_is_one(name):
    assert of_tally(name, [-1, 0, 3, 3], [-1, 0, 3, 3]) == 1.0


@pytest.mark.parametrize("name", F1_NAMES)
@pytest.mark.parametrize("predicted", [[1, 0], [-1, -1], [4, 4]])
def test_f1_of_labels_all_wrong_is_zero(name, predicted):
    assert of_tally(name, [0, 1], predicted) == 0.0


@pytest.mark.parametrize("name", F1_NAMES)
@pytest.mark.parametrize("predicted", [-1, 2])
def test_f1_without_a_true_keystep_is_undefined(name, predicted):
    assert math.isnan(of_tally(name, [-1, -1], [predicted] * 2))
    assert math.isnan(of_tally(name, [], []))


@pytest.mark.parametrize("name", ["precision", *F1_NAMES])
def test_renaming_keysteps_changes_no_f1(name):
    rng = np.random.default_rng(3)
    true, predicted = rng.integers(0, 6, (2, 50))
    renamed = rng.permutation(6)

    found = of_tally(name, renamed[true], renamed[predicted])

    assert found == pytest.approx(of_tally(name, true, predicted))


def test_precision_counts_keysteps_that_are_absent_from_the_truth():
    assert of_tally("precision", [0, 0, -1, -1], [0, 0, 5, 5]) == 0.5


def test_precision_of_labels_all_background_is_undefined():
    assert math.isnan(of_tally("precision", [0, 0], [-1, -1]))


@pytest.mark.parametrize("name", [*NAMES, *F1_NAMES, "precision"])
def test_rows_of_true_background_may_be_left_out(name):
    found = of_tally(name, [0, -1, 1, -1], [0, 1, 1, 3], background_rows=False)

    assert found == of_tally(name, [0, 1], [0, 1]) == 1.0


# --- plain arrays


ROW_METRICS = (*NAMES, *F1_NAMES, "precision")


def test_metrics_of_two_arrays_are_those_of_labels():
    for seed in range(20):
        true, predicted = np.random.default_rng(seed).integers(-1, 6, (2, 30))
        labels = make_labels(true, 9), make_labels(predicted, 9)
        for name in ROW_METRICS:
            metric = getattr(metrics, name)

            found = metric(true, predicted)

            assert found == metric(*labels) == metric(metrics.tally(*labels)), name
            assert found == metric(true.tolist(), predicted.astype(np.int32)), name


def test_tallies_of_arrays_add_up_whatever_keysteps_they_hold():
    pairs = [([0, 0], [0, 1]), ([5], [5]), ([], []), ([-1, 2], [7, 2])]

    total = sum((metrics.tally(*pair) for pair in pairs), Tally.empty())

    assert metrics.accuracy(total) == 3 / 4
    assert (total.true.sum(), total.predicted.sum(), len(total.hits)) == (4, 5, 8)


@pytest.mark.parametrize("name", [*ROW_METRICS, "tally"])
def test_arrays_of_different_lengths_are_refused(name):
    with pytest.raises(DataError, match="labels must have equal length, got 2 and 3 rows"):
        getattr(metrics, name)([0, 1], [0, 1, 1])


@pytest.mark.parametrize(
    "wrong", [None, 3, [[0, 1]], [0.5, 1.0], ["a", "b"], [-2, 0], [0, math.nan]], ids=str
)
def test_what_are_no_rows_is_refused(wrong):
    with pytest.raises(DataError, match=r"rows must be whole numbers from -1 \(background\) on"):
        metrics.accuracy([0, 1], wrong)


# --- means over videos


def test_metrics_per_video_are_means_of_each_videos_own():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        lengths = rng.integers(0, 12, 5).tolist()
        truths, predictions = ([random_labels(rng, rows, 4) for rows in lengths] for _ in range(2))
        pairs = zip(truths, predictions, strict=True)
        each = [reference.metrics([true], [found]) for true, found in pairs]

        for name in ("accuracy", "iou"):
            found = metrics.mean_defined(map(getattr(metrics, name), truths, predictions))

            defined = [one[name] for one in each if not math.isnan(one[name])]
            assert found == pytest.approx(fmean(defined) if defined else math.nan, nan_ok=True)


def test_what_is_undefined_is_left_out_of_means():
    assert metrics.mean_defined([1.0, math.nan]) == 1.0
    assert math.isnan(metrics.mean_defined([math.nan, math.nan]))
    assert math.isnan(metrics.mean_defined([]))


# --- standard errors


@pytest.mark.parametrize("parts", [2, 3, 10])
def test_standard_error_is_the_deviation_over_the_root_of_the_number(parts):
    values = np.random.default_rng(parts).random(parts).tolist()

    found = metrics.split_standard_error(values)

    assert found == pytest.approx(stdev(values) / math.sqrt(parts))


def test_standard_error_of_equal_values_is_zero():
    assert metrics.split_standard_error([0.5, 0.5, 0.5]) == 0.0


@pytest.mark.parametrize("values", [[], [0.3], [0.3, math.nan]])
def test_fewer_than_two_values_have_no_standard_error(values):
    assert math.isnan(metrics.split_standard_error(values))


def test_undefined_parts_are_left_out_of_the_standard_error():
    assert metrics.split_standard_error([0.25, math.nan, 0.75]) == 0.25


@pytest.mark.parametrize(
    ("truth", "found", "size"), [([], [], 0), ([-1], [-1], 0), ([0], [-1], 1), ([0], [2], 3)]
)
def test_a_tally_of_arrays_has_the_keysteps_that_they_hold(truth, found, size):
    counts = metrics.tally(truth, found)

    assert {len(counts.true), len(counts.predicted), len(counts.hits)} == {size}


def test_labels_and_arrays_may_be_compared():
    labels = make_labels([0, 1, -1])

    assert metrics.accuracy(labels, [0, 2, 2]) == metrics.accuracy([0, 1, -1], labels) / 2 == 0.5
