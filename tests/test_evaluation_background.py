"""What is said of rows on which nothing is done."""

from math import isnan, nan

import numpy as np
import pytest

from reference import random_labels
from stepgraph.core import BACKGROUND
from stepgraph.errors import DataError
from stepgraph.evaluation.metrics import OF_BACKGROUND, background_metrics, background_tally


def metrics(truth, predicted):
    """The four metrics of one video, in the order of their names."""
    found = background_metrics(background_tally(truth, predicted))
    assert tuple(found) == OF_BACKGROUND
    return list(found.values())


def by_hand(truth, predicted):
    """The same by loops: shares of rows that are right, empty, empty rightly; idle segments."""
    pairs = list(zip(truth, predicted, strict=True))
    right = [true == found for true, found in pairs]
    empty = [found == BACKGROUND for _, found in pairs]
    empty_rightly = [true == BACKGROUND for true, found in pairs if found == BACKGROUND]
    segments, before = [], BACKGROUND
    for true, found in pairs:
        if found != BACKGROUND:
            if found != before:
                segments.append([])
            segments[-1].append(true)
        before = found
    idle = [all(true == BACKGROUND for true in segment) for segment in segments]
    shares = (right, empty, empty_rightly, idle)
    return [sum(share) / len(share) if share else nan for share in shares]


def test_an_example_by_hand():
    """Row 1 misses a step, rows 3 to 4 make one up, and only half of what is called empty is."""
    assert metrics([-1, 0, 0, -1, -1], [-1, -1, 0, 1, 1]) == [2 / 5, 2 / 5, 1 / 2, 1 / 2]


@pytest.mark.parametrize("seed", range(30))
def test_the_metrics_agree_with_counting_by_hand(seed):
    rng = np.random.default_rng(seed)
    truth, predicted = (random_labels(rng, 12, 2).keysteps for _ in range(2))

    assert metrics(truth, predicted) == pytest.approx(by_hand(truth, predicted), nan_ok=True)


def test_a_segment_that_meets_a_keystep_anywhere_is_not_empty():
    assert metrics([-1, -1, 3, -1, -1], [0, 0, 0, 1, 1])[3] == 1 / 2
    assert metrics([3, -1, -1], [0, 0, 0])[3] == 0
    assert metrics([-1, -1, 3], [0, 0, 0])[3] == 0


def test_neighbouring_keysteps_are_segments_of_their_own():
    assert metrics([0, 0, -1], [0, 0, 1])[3] == 1 / 2


def test_without_rows_nothing_is_defined():
    assert all(isnan(one) for one in metrics([], []))


@pytest.mark.parametrize(
    ("truth", "predicted", "expected"),
    [
        (-1, -1, [1, 1, 1, nan]),
        (-1, 0, [0, 0, nan, 1]),
        (0, -1, [0, 1, 0, nan]),
        (0, 0, [1, 0, nan, 0]),
        (0, 1, [0, 0, nan, 0]),
    ],
)
def test_one_row(truth, predicted, expected):
    assert metrics([truth], [predicted]) == pytest.approx(expected, nan_ok=True)


def test_all_background_is_right_where_nothing_is_done_and_wrong_elsewhere():
    nothing = [BACKGROUND] * 4

    assert metrics(nothing, nothing)[:3] == [1, 1, 1]
    assert metrics([0, 1, 2, -1], nothing)[:3] == [1 / 4, 1, 1 / 4]
    assert isnan(metrics(nothing, nothing)[3])


def test_tallies_of_videos_add_up_row_by_row():
    one, other = ([-1, 0, 0], [-1, 0, 1]), ([-1, -1], [0, -1])
    together = background_metrics(background_tally(*one) + background_tally(*other))

    assert [*together.values()] == [3 / 5, 2 / 5, 2 / 2, 1 / 3]


def test_rows_of_different_numbers_are_refused():
    with pytest.raises(DataError, match="rows"):
        background_tally([0, 1], [0])
