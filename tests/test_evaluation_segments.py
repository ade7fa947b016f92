"""Metrics of segments against tables, sets and loops, and against other people's packages."""

import math
from collections import Counter
from functools import cache
from itertools import groupby
from statistics import fmean

import numpy as np
import pytest

from reference import make_labels, make_scores, random_labels
from stepgraph.core import Segment, without_repetitions
from stepgraph.errors import ConfigError, DataError
from stepgraph.evaluation import segments
from stepgraph.evaluation.metrics import Tally
from stepgraph.evaluation.segments import ACTIVITYNET, OVERLAPS, THUMOS, Detection


def lumpy_labels(rng, rows, size, video="video"):
    """Labels that last for some rows each, with background between."""
    keysteps_of_rows = np.repeat(rng.integers(-1, size, rows), rng.integers(1, 6, rows))[:rows]
    return make_labels(keysteps_of_rows, size, video=video)


# --- edit distance


def slow_levenshtein(first, second):
    @cache
    def distance(one, other):
        if not one or not other:
            return one + other
        replaced = distance(one - 1, other - 1) + (first[one - 1] != second[other - 1])
        return min(replaced, distance(one - 1, other) + 1, distance(one, other - 1) + 1)

    return distance(len(first), len(second))


def slow_edit_distance(truth, predicted):
    one, other = (
        [keystep for keystep, _ in groupby(row for row in labels.keysteps.tolist() if row >= 0)]
        for labels in (truth, predicted)
    )
    return slow_levenshtein(one, other) / max(len(one), len(other)) if one else math.nan


def random_sequences(seed, longest=40):
    rng = np.random.default_rng(seed)
    return (rng.integers(0, 5, int(rng.integers(0, longest))).tolist() for _ in range(2))


def test_levenshtein_distance_is_that_of_the_recursion():
    for seed in range(100):
        first, second = random_sequences(seed)

        assert segments.levenshtein(first, second) == slow_levenshtein(first, second)


def test_levenshtein_distance_agrees_with_rapidfuzz():
    for seed in range(50):
        rapidfuzz = pytest.importorskip("rapidfuzz.distance")
        first, second = random_sequences(seed, longest=300)

        assert segments.levenshtein(first, second) == rapidfuzz.Levenshtein.distance(first, second)


def test_edit_distance_agrees_with_rapidfuzz():
    for seed in range(20):
        rapidfuzz = pytest.importorskip("rapidfuzz.distance")
        rng = np.random.default_rng(seed)
        true, predicted = (lumpy_labels(rng, 200, 6) for _ in range(2))

        found = segments.edit_distance(true, predicted)

        sequences = (without_repetitions(one.keysteps) for one in (true, predicted))
        assert found == pytest.approx(rapidfuzz.Levenshtein.normalized_distance(*sequences))


def test_edit_distance_is_that_of_merged_neighbours():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        true, predicted = (random_labels(rng, 12, 3) for _ in range(2))

        found = segments.edit_distance(true, predicted)

        assert found == pytest.approx(slow_edit_distance(true, predicted), nan_ok=True)


@pytest.mark.parametrize(
    ("predicted", "distance"),
    [
        ([0, 0, -1, 1, 2, 2], 0.0),  # the same
        ([-1, 0, 1, 1, 1, 2], 0.0),  # the same at other times
        ([0, -1, 0, 1, -1, 2], 0.0),  # silence inside a keystep is no repetition
        ([0, 0, 0, 0, 0, 0], 2 / 3),  # two are missing
        ([0, 1, 0, 1, 0, 1], 4 / 6),  # four do not belong
        ([2, 2, 1, 1, 0, 0], 2 / 3),
        ([3, 4, 3, 4, 3, 4], 1.0),
        ([-1, -1, -1, -1, -1, -1], 1.0),
    ],
)
def test_worked_examples_of_edit_distance(predicted, distance):
    truth = make_labels([0, 0, -1, 1, 2, 2])

    assert segments.edit_distance(truth, make_labels(predicted)) == pytest.approx(distance)


@pytest.mark.parametrize("rows", [([-1, -1], [-1, -1]), ([-1, -1], [0, 1]), ([], [])])
def test_edit_distance_to_a_truth_without_keysteps_is_undefined(rows):
    assert math.isnan(segments.edit_distance(*map(make_labels, rows)))


def test_renaming_keysteps_changes_no_edit_distance():
    rng = np.random.default_rng(0)
    true, predicted = rng.integers(0, 5, (2, 50))
    renamed = rng.permutation(5)

    found = segments.edit_distance(make_labels(renamed[true]), make_labels(renamed[predicted]))

    assert found == segments.edit_distance(make_labels(true), make_labels(predicted))


# --- F1 of segments


def slow_f1(pairs, overlap):
    """Each predicted segment in turn, as sets of rows; true ones are crossed off."""
    right = wrong = missed = 0
    for truth, predicted in pairs:
        true, found = (
            [(s.keystep, set(range(int(s.start), int(s.end)))) for s in labels.segments()]
            for labels in (truth, predicted)
        )
        left = list(range(len(true)))
        for keystep, rows in found:
            shares = [
                len(rows & others) / len(rows | others) if keystep == other else 0
                for other, others in true
            ]
            best = max(range(len(true)), key=lambda at: shares[at], default=None)
            if best in left and shares[best] >= overlap:
                left.remove(best)
                right += 1
            else:
                wrong += 1
        missed += len(left)
    if not right + missed:
        return math.nan
    return 2 * right / (2 * right + wrong + missed)


def segment_f1(*pairs):
    counts = sum((segments.segment_tally(*pair) for pair in pairs), Tally.empty())
    return segments.segment_f1(counts).tolist()


def test_segment_f1_is_that_of_crossing_off_segments():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        lengths = rng.integers(0, 60, 3).tolist()
        pairs = [(lumpy_labels(rng, rows, 2), lumpy_labels(rng, rows, 2)) for rows in lengths]

        found = segment_f1(*pairs)

        assert found == pytest.approx([slow_f1(pairs, one) for one in OVERLAPS], nan_ok=True)


def test_worked_example_of_segment_f1():
    truth = make_labels([0] * 10 + [1] * 10)
    predicted = make_labels([0] * 5 + [1] * 1 + [-1] * 1 + [1] * 3 + [2] * 9 + [1] * 1)

    # 0 has half; of the 1s the last has a tenth, the others lie outside; 2 does not occur.
    assert segment_f1((truth, predicted)) == [4 / 7, 2 / 7, 2 / 7]


def test_a_true_segment_is_found_once():
    truth, predicted = make_labels([0] * 8), make_labels([0, 0, 0, 0, -1, 0, 0, 0])

    assert segments.segment_tally(truth, predicted).hits.tolist() == [1, 1, 1]


def test_overlap_of_exactly_the_least_suffices():
    truth, predicted = make_labels([0] * 10), make_labels([0] * 1 + [-1] * 9)

    assert segment_f1((truth, predicted)) == [1.0, 0.0, 0.0]


def test_perfect_segments_have_an_f1_of_one():
    truth = make_labels([0, 0, -1, 0, 1, 1])

    assert segment_f1((truth, truth)) == [1.0] * 3


@pytest.mark.parametrize("rows", [[1, 1, 0], [-1, -1, -1], [4, 4, 4]])
def test_segments_all_wrong_have_an_f1_of_zero(rows):
    assert segment_f1((make_labels([0, 0, 1]), make_labels(rows))) == [0.0] * 3


@pytest.mark.parametrize("predicted", [[-1, -1], [0, 1]])
def test_segment_f1_without_a_true_segment_is_undefined(predicted):
    assert all(map(math.isnan, segment_f1((make_labels([-1, -1]), make_labels(predicted)))))
    assert all(map(math.isnan, segment_f1()))


def test_renaming_keysteps_changes_no_segment_f1():
    rng = np.random.default_rng(1)
    true, predicted = (lumpy_labels(rng, 80, 5).keysteps.clip(min=0) for _ in range(2))
    renamed = rng.permutation(5)

    found = segment_f1((make_labels(renamed[true]), make_labels(renamed[predicted])))

    assert found == segment_f1((make_labels(true), make_labels(predicted)))


@pytest.mark.parametrize("overlap", [0.0, -0.1, 1.1, math.nan])
def test_least_overlaps_lie_between_nothing_and_all(overlap):
    with pytest.raises(ConfigError, match=f"above 0 and at most 1, got {overlap}"):
        segments.segment_tally(make_labels([0]), make_labels([0]), [overlap])


def test_metrics_of_two_arrays_are_those_of_labels():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        labels = lumpy_labels(rng, 60, 4), lumpy_labels(rng, 60, 4)
        arrays = [one.keysteps for one in labels]

        assert segments.edit_distance(*arrays) == pytest.approx(
            segments.edit_distance(*labels), nan_ok=True
        )
        assert segments.segment_f1(*arrays).tolist() == segment_f1(labels)
        assert segments.segment_f1(*arrays, (0.5,)) == segment_f1(labels)[2]


@pytest.mark.parametrize("metric", [segments.edit_distance, segments.segment_f1])
def test_arrays_of_different_lengths_are_refused(metric):
    with pytest.raises(DataError, match="labels must have equal length, got 2 and 3 rows"):
        metric(np.array([0, 1]), np.array([0, 1, 1]))


# --- mean average precision


def slow_overlap(one, other):
    common = max(0, min(one.end, other.end) - max(one.start, other.start))
    return common / (one.end - one.start + other.end - other.start - common)


def slow_matches(truth, predicted, keystep, overlap):
    """Whether each detection of a keystep is right, the surest first, with its confidence."""
    left = {video: [s for s in some if s.keystep == keystep] for video, some in truth.items()}
    ranked = [(video, one) for video, some in predicted.items() for one in some]
    ranked = [pair for pair in ranked if pair[1].keystep == keystep]
    matches = []
    for video, one in sorted(ranked, key=lambda pair: -pair[1].confidence):
        near = [other for other in left[video] if slow_overlap(one, other) >= overlap]
        if near:
            left[video].remove(max(near, key=lambda other: slow_overlap(one, other)))
        matches.append((bool(near), one.confidence))
    return matches


def slow_average_precision(matches, total):
    """Mean over ranks of recall of the best precision at that recall or above."""
    curve = []
    for rank in range(1, len(matches) + 1):
        right = sum(match for match, _ in matches[:rank])
        curve.append((right, right / rank))
    best = [
        max((precision for right, precision in curve if right >= number), default=0.0)
        for number in range(1, total + 1)
    ]
    return fmean(best)


def random_problem(seed, videos=3, size=3):
    """Segments that overlap each other, and detections that are some of them, shifted."""
    rng = np.random.default_rng(seed)
    truth, predicted = {}, {}
    for video in map(str, range(videos)):
        starts = rng.integers(0, 60, int(rng.integers(0, 8)))
        true = [
            Segment(float(start), float(start + rng.integers(1, 15)), int(rng.integers(size)))
            for start in starts
        ]
        truth[video] = true
        predicted[video] = [
            Detection(
                one.start + rng.normal(), one.end + 3 + rng.normal(), one.keystep, rng.random()
            )
            for one in true * 2
            if rng.random() < 0.7
        ]
    return truth, predicted


@pytest.mark.parametrize("overlaps", [THUMOS, ACTIVITYNET, (0.1,)])
def test_mean_average_precision_is_that_of_a_loop(overlaps):
    for seed in range(20):
        truth, predicted = random_problem(seed)
        there = Counter(one.keystep for some in truth.values() for one in some)

        found = segments.mean_average_precision(truth, predicted, overlaps)

        expected = [
            slow_average_precision(slow_matches(truth, predicted, keystep, overlap), total)
            for keystep, total in there.items()
            for overlap in overlaps
        ]
        assert found == pytest.approx(fmean(expected) if expected else math.nan, nan_ok=True)


def test_average_precision_agrees_with_scikit_learns_curve():
    from sklearn.metrics import precision_recall_curve

    for seed in range(20):
        truth, predicted = random_problem(seed, videos=6, size=1)
        matches = slow_matches(truth, predicted, 0, 0.5)
        right, confidence = zip(*matches, strict=True)
        total = sum(map(len, truth.values()))

        [found] = segments.average_precisions(truth, predicted, (0.5,))[0]

        # Their recall is among what was found; ours is among all that is true.
        precision, recall, _ = precision_recall_curve(right, confidence)
        envelope = np.maximum.accumulate(precision)
        steps = -np.diff(recall) * sum(right) / total
        assert found == pytest.approx(float((steps * envelope[:-1]).sum()))


def test_segments_may_be_plain_numbers_of_one_video():
    for seed in range(10):
        truth, predicted = random_problem(seed, videos=1)

        found = segments.mean_average_precision(
            np.array(truth["0"]).reshape(-1, 3), np.array(predicted["0"]).reshape(-1, 4)
        )

        expected = segments.mean_average_precision(truth, predicted)
        assert found == pytest.approx(expected, nan_ok=True)


def test_the_least_overlaps_are_the_published_ones():
    assert OVERLAPS == (0.1, 0.25, 0.5)
    assert THUMOS == (0.3, 0.4, 0.5, 0.6, 0.7)
    assert ACTIVITYNET == (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


def test_an_overlap_that_just_suffices_finds_a_segment():
    truth, found = [Segment(0, 8, 0)], [Detection(0, 4, 0, 0.9)]

    assert segments.mean_average_precision(truth, found, (0.5,)) == 1
    assert segments.mean_average_precision(truth, found, (0.51,)) == 0
    assert segments.mean_average_precision(truth, [Detection(0, 8, 0, 0.9)], (1.0,)) == 1


def test_segments_of_less_than_a_second_overlap_like_others():
    truth, found = [Segment(0, 0.5, 0)], [Detection(0.1, 0.5, 0, 0.9)]

    assert segments.mean_average_precision(truth, found, (0.79,)) == 1
    assert segments.mean_average_precision(truth, found, (0.81,)) == 0


def test_perfect_detections_have_a_mean_average_precision_of_one():
    truth = {"a": [Segment(0, 9, 0), Segment(9, 12, 1)], "b": [Segment(1, 2, 0)]}
    found = {video: [Detection(*one, 0.5) for one in some] for video, some in truth.items()}

    assert segments.mean_average_precision(truth, found) == 1.0


@pytest.mark.parametrize("found", [{}, {"a": []}, {"a": [Detection(0, 9, 1, 0.9)]}])
def test_a_keystep_never_detected_has_an_average_precision_of_zero(found):
    assert segments.mean_average_precision({"a": [Segment(0, 9, 0)]}, found) == 0.0


@pytest.mark.parametrize("truth", [{}, {"a": []}])
def test_mean_average_precision_without_a_true_segment_is_undefined(truth):
    found = {video: [Detection(0, 9, 1, 0.9)] for video in truth}

    assert math.isnan(segments.mean_average_precision(truth, found))


def test_detections_in_other_videos_of_the_truth_are_false():
    truth = {"a": [Segment(0, 10, 0)], "b": []}
    found = {"b": [Detection(0, 10, 0, 0.9)], "a": [Detection(0, 10, 0, 0.5)]}

    assert segments.mean_average_precision(truth, found) == 0.5


def test_a_second_detection_finds_the_next_true_segment():
    truth = {"a": [Segment(0, 10, 0), Segment(4, 14, 0)]}
    found = {"a": [Detection(1, 11, 0, 0.9), Detection(1, 11, 0, 0.8)]}

    assert segments.mean_average_precision(truth, found, (0.5,)) == 1.0


def test_segments_without_length_are_found_by_nothing():
    truth = {"a": [Segment(3, 3, 0)]}

    assert segments.mean_average_precision(truth, {"a": [Detection(3, 3, 0, 0.9)]}) == 0.0


def test_detections_of_videos_without_truth_are_refused():
    with pytest.raises(DataError, match="'b' must have a truth to be evaluated, got none"):
        segments.mean_average_precision({}, {"b": []})


def test_a_confidence_is_a_number():
    with pytest.raises(DataError, match="must be a number, got nan in video 'a'"):
        segments.mean_average_precision({"a": []}, {"a": [Detection(0, 1, 0, math.nan)]})


def test_detections_have_the_mean_score_of_their_observed_rows():
    labels = make_labels([0, 0, 0, -1, 1, 1], 2, hop=2.0)
    values = [[0.5, 0], [0.7, 0], [0.9, 0], [1, 1], [0, 0.4], [0, 0.4]]
    scores = make_scores(values, [True, False, True, True, False, False], hop=2.0)

    found = segments.detections(labels, scores)

    assert found == [(0, 6, 0, pytest.approx(0.7)), (8, 12, 1, -math.inf)]


def test_detections_need_scores_of_every_row():
    with pytest.raises(DataError, match="'video' must have equal length, got 2 and 1 rows"):
        segments.detections(make_labels([0, 1], 2), make_scores([[0.1, 0.2]]))
    with pytest.raises(DataError, match="labels and scores of video 'video' must share one voc"):
        segments.detections(make_labels([0], 3), make_scores([[0.1, 0.2]]))
