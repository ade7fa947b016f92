"""Metrics against loops over rows with sets, and their properties."""

import math
from dataclasses import replace
from statistics import fmean, stdev

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics

import reference
from reference import make_graph, make_labels, random_graph, random_labels
from stepgraph.core import Vocabulary
from stepgraph.errors import DataError
from stepgraph.evaluation import entropy, metrics
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
    counts = metrics.Tally.empty(3)

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


# --- means over videos


def test_metrics_per_video_are_means_of_each_videos_own():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        videos = [
            (random_labels(rng, rows, 4), random_labels(rng, rows, 4))
            for rows in rng.integers(0, 12, 5).tolist()
        ]
        each = [reference.metrics([true], [found]) for true, found in videos]

        for name in ("accuracy", "iou"):
            defined = [one[name] for one in each if not math.isnan(one[name])]
            found = getattr(metrics, f"{name}_per_video")(metrics.tally(*pair) for pair in videos)
            assert found == pytest.approx(fmean(defined) if defined else math.nan, nan_ok=True)


@pytest.mark.parametrize("name", ["accuracy_per_video", "iou_per_video"])
def test_videos_without_a_true_keystep_are_left_out_of_means(name):
    perfect = metrics.tally(make_labels([0, 1]), make_labels([0, 1]))
    without = metrics.tally(make_labels([-1, -1]), make_labels([0, 1]))

    assert getattr(metrics, name)([perfect, without]) == 1.0
    assert math.isnan(getattr(metrics, name)([without, Tally.empty(5)]))
    assert math.isnan(getattr(metrics, name)([]))


def test_short_videos_weigh_as_much_as_long_ones_per_video():
    short = metrics.tally(make_labels([0]), make_labels([0]))
    long = metrics.tally(make_labels([0] * 9), make_labels([1] * 9))

    assert metrics.accuracy_per_video([short, long]) == 0.5


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


# --- the split by entropy


def slow_entropy(counts, *, self_loop):
    found = []
    for keystep, row in enumerate(counts):
        kept = [n for target, n in enumerate(row) if n and (self_loop or target != keystep)]
        terms = [n / sum(kept) * math.log2(sum(kept) / n) for n in kept]
        found.append(sum(terms) if kept else math.nan)
    return found


def slow_split(predicted, truth, graph, starts, *, self_loop=False):
    """Rows as tuples; the last anchor is looked for backwards from each of them."""
    entropies = slow_entropy(graph.counts.toarray().tolist(), self_loop=self_loop)
    rows = []
    for labels, true, anchored in zip(predicted, truth, starts, strict=True):
        for row in range(len(labels)):
            before = [at for at in range(row) if anchored.anchors[at]]
            if anchored.anchors[row] or not before:
                continue
            entropy = entropies[anchored.keysteps[before[-1]]]
            if not math.isnan(entropy):
                hit = labels.keysteps[row] == true.keysteps[row]
                rows.append((entropy, true.keysteps[row] >= 0, hit))
    # Of all thresholds, the one that makes the halves most equal; of two such, the higher.
    values = [round(entropy, 9) for entropy, _, _ in rows]
    sizes = {one: sum(other <= one for other in values) for one in set(values)}
    best = min(sizes, key=lambda one: (abs(sizes[one] - len(rows) / 2), -one), default=math.nan)
    low = [hit for entropy, known, hit in rows if known and round(entropy, 9) <= best]
    high = [hit for entropy, known, hit in rows if known and round(entropy, 9) > best]
    means = (fmean(half) if half else math.nan for half in (low, high))
    return (*means, best, len(low), len(high))


def anchored_labels(rng, rows, size, video):
    """Anchors of any keystep, as path search would leave them."""
    labels = make_labels(rng.integers(0, size, rows), size, video=video)
    return replace(labels, anchors=rng.random(rows) < 0.3)


@pytest.mark.parametrize("self_loop", [False, True])
def test_entropy_is_that_of_the_counted_transitions(self_loop):
    for seed in range(10):
        graph = random_graph(np.random.default_rng(seed), 6, density=0.4)

        found = entropy.transition_entropy(graph, self_loop=self_loop)

        expected = slow_entropy(graph.counts.toarray().tolist(), self_loop=self_loop)
        assert found.tolist() == pytest.approx(expected, nan_ok=True)


def test_entropy_agrees_with_scipy():
    for seed in range(10):
        from scipy.stats import entropy as scipy_entropy

        graph = random_graph(np.random.default_rng(seed), 6, density=1)

        found = entropy.transition_entropy(graph, self_loop=True)

        assert found == pytest.approx(scipy_entropy(graph.counts.toarray(), base=2, axis=1))


@pytest.mark.parametrize("self_loop", [False, True])
def test_split_by_entropy_is_that_of_a_loop_over_rows(self_loop):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        graph = random_graph(rng, 5, density=0.4)
        names = [f"{n}" for n in range(3)]
        predicted = [anchored_labels(rng, int(rng.integers(0, 30)), 5, name) for name in names]
        truth = [random_labels(rng, len(one), 5, video=one.video) for one in predicted]

        by_video = dict(zip(names, truth, strict=True))
        found = entropy.accuracy_by_entropy(predicted, by_video, graph, self_loop=self_loop)

        expected = slow_split(predicted, truth, graph, predicted, self_loop=self_loop)
        assert tuple(found) == pytest.approx(expected, nan_ok=True)


# Keystep 0 is always followed by 1; 1 by 2 or 0, evenly; 2 was never left.
SPLIT_GRAPH = make_graph([[9, 3, 0], [2, 5, 2], [0, 0, 7]])
SPLIT_ROWS = [1, 0, 0, 1, 1, 2, 2, 2]
SPLIT_ANCHORS = np.array([False, True, False, True, False, False, True, False])
SPLIT_LABELS = replace(make_labels(SPLIT_ROWS, 3), anchors=SPLIT_ANCHORS)


def test_worked_example_of_the_split_by_entropy():
    truth = {"video": make_labels([1, 0, 0, 1, 0, 2, 2, 2], 3)}

    found = entropy.accuracy_by_entropy([SPLIT_LABELS], truth, SPLIT_GRAPH)

    # Row 2 starts from keystep 0 (0 bits), rows 4 and 5 from 1 (1 bit); row 7 from nothing.
    assert found == (1.0, 0.5, 0.0, 1, 2)


def test_rows_of_one_entropy_stay_together():
    even = make_graph([[0, 1, 1], [1, 0, 1], [1, 1, 0]])

    found = entropy.accuracy_by_entropy([SPLIT_LABELS], {"video": SPLIT_LABELS}, even)

    assert (found.low, found.threshold, found.low_rows, found.high_rows) == (1.0, 1.0, 4, 0)
    assert math.isnan(found.high)


def test_methods_without_anchors_are_split_by_those_of_another():
    truth = {"video": make_labels([1, 0, 0, 1, 0, 2, 2, 2], 3)}
    plain = make_labels([0, 0, 0, 0, 0, 2, 0, 0], 3)

    found = entropy.accuracy_by_entropy(
        [plain], truth, SPLIT_GRAPH, starts={"video": SPLIT_LABELS}
    )

    assert (found.low, found.high, found.low_rows, found.high_rows) == (1.0, 1.0, 1, 2)


@pytest.mark.parametrize("anchors", [[False] * 3, [True] * 3])
def test_without_rows_between_anchors_the_split_is_undefined(anchors):
    labels = replace(make_labels([0, 1, 1], 3), anchors=np.array(anchors))

    for predicted in ([labels], []):
        found = entropy.accuracy_by_entropy(predicted, {"video": labels}, SPLIT_GRAPH)
        assert all(map(math.isnan, found[:3]))
        assert found[3:] == (0, 0)


def test_renaming_keysteps_changes_no_split():
    rng = np.random.default_rng(0)
    graph, renamed = random_graph(rng, 5), rng.permutation(5)
    labels = anchored_labels(rng, 40, 5, "video")
    true = rng.integers(0, 5, 40)
    back = np.argsort(renamed)
    other = make_graph(graph.counts.toarray()[np.ix_(back, back)])
    relabelled = replace(labels, keysteps=renamed[labels.keysteps])

    found = entropy.accuracy_by_entropy([relabelled], {"video": make_labels(renamed[true])}, other)

    expected = entropy.accuracy_by_entropy([labels], {"video": make_labels(true)}, graph)
    assert tuple(found) == pytest.approx(tuple(expected))


def test_labels_without_anchors_are_not_split():
    labels = make_labels([0, 1], 3)

    with pytest.raises(DataError, match="'video' must have anchors to be split by entropy"):
        entropy.accuracy_by_entropy([labels], {"video": labels}, SPLIT_GRAPH)


def test_videos_missing_among_the_starts_are_refused():
    with pytest.raises(DataError, match="'video' must have labels among starts, got none"):
        entropy.accuracy_by_entropy([SPLIT_LABELS], {}, SPLIT_GRAPH, starts={})
