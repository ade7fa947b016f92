"""Scores on a grid of rows."""

import math

import numpy as np
import pytest

import reference
from reference import keysteps
from stepgraph.core import Features, Sentence, Video
from stepgraph.scoring import part_of_row, score, score_features


def random_intervals(rng, number, length, hop):
    """Half of them at multiples of half a row, so that some cover equal shares."""
    start = rng.uniform(-2 * hop, length + 2 * hop, number)
    end = start + rng.uniform(0, 3 * hop, number)
    intervals = np.sort(np.stack([start, end], axis=1), axis=0)
    rounded = np.round(intervals / (hop / 2)) * (hop / 2)
    return np.where(rng.random((number, 1)) < 0.5, intervals, rounded)


@pytest.mark.parametrize("seed", range(50))
def test_each_row_has_the_part_that_covers_most_of_it(seed):
    rng = np.random.default_rng(seed)
    hop = float(rng.choice([0.5, 1.0, 2.0]))
    rows, number = int(rng.integers(0, 20)), int(rng.integers(0, 15))
    intervals = random_intervals(rng, number, rows * hop, hop)

    found = part_of_row(intervals, rows, hop)

    assert found.tolist() == reference.part_of_row(intervals.tolist(), rows, hop)


def test_no_intervals_cover_no_row():
    assert part_of_row(np.zeros((0, 2)), 3, 1.0).tolist() == [-1, -1, -1]


def test_no_rows_have_no_parts():
    assert part_of_row(np.array([[0.0, 1.0]]), 0, 1.0).tolist() == []


def test_of_equal_shares_the_earlier_is_taken():
    intervals = np.array([[0.0, 0.5], [0.5, 1.0]])

    assert part_of_row(intervals, 1, 1.0).tolist() == [0]


def test_a_later_interval_that_covers_more_is_taken():
    intervals = np.array([[0.0, 1.2], [1.2, 1.4], [1.4, 2.0]])

    assert part_of_row(intervals, 2, 1.0).tolist() == [0, 2]


def test_an_interval_without_length_covers_nothing():
    assert part_of_row(np.array([[0.5, 0.5], [1.0, 1.0]]), 2, 1.0).tolist() == [-1, -1]


def test_an_interval_that_only_touches_a_row_does_not_cover_it():
    assert part_of_row(np.array([[1.0, 2.0]]), 4, 1.0).tolist() == [-1, 0, -1, -1]


@pytest.mark.parametrize(
    ("start", "end", "hop", "row"),
    [
        (0.3, 0.4, 0.1, 3),  # 0.3 / 0.1 is a little less than 3
        (10.5, 10.8, 0.3, 35),  # 10.8 / 0.3 is a little more than 36
        (2.0, math.nextafter(3.0, 4.0), 1.0, 2),
    ],
)
def test_float_noise_covers_no_row(start, end, hop, row):
    found = part_of_row(np.array([[start, end]]), 40, hop)

    assert np.flatnonzero(found >= 0).tolist() == [row]


def test_scores_are_the_products_of_unit_vectors(vocabulary, videos, encoder):
    names = encoder.encode_keysteps(vocabulary)
    said = encoder.encode_texts([sentence.text for sentence in videos[0].transcript])

    [scores] = score(videos[:1], vocabulary, encoder)

    assert scores.values[::4] == pytest.approx(said @ names.T)


def test_a_sentence_scores_every_row_that_it_fills(vocabulary, videos, encoder):
    [scores] = score(videos[:1], vocabulary, encoder)

    assert scores.values.argmax(axis=1).tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4 + [4] * 4
    assert scores.observed.all()


def test_rows_without_speech_are_not_observed(vocabulary, videos, encoder):
    [scores] = score(videos[1:2], vocabulary, encoder)

    assert np.flatnonzero(~scores.observed).tolist() == [10, 11, 20, 21]


def test_scores_come_in_the_order_of_the_videos(vocabulary, videos, encoder):
    found = [scores.video for scores in score(reversed(videos), vocabulary, encoder)]

    assert found == ["hurried", "chatty", "plain"]


def test_a_started_row_is_scored(vocabulary, videos, encoder):
    [scores] = score(videos[2:], vocabulary, encoder)

    assert len(scores) == 13
    assert scores.observed[-1]


def test_hop_sets_the_length_of_a_row(vocabulary, videos, encoder):
    [scores] = score(videos[:1], vocabulary, encoder, hop=0.5)

    assert (len(scores), scores.hop) == (40, 0.5)


@pytest.mark.parametrize(("duration", "rows"), [(0.0, 0), (3.0, 3)])
def test_a_video_without_speech_has_no_observed_row(vocabulary, encoder, duration, rows):
    [scores] = score([Video("silent", duration)], vocabulary, encoder)

    assert scores.values.shape == (rows, 5)
    assert not scores.observed.any()


def test_one_second_is_one_row(vocabulary, encoder):
    video = Video("short", 1.0, (Sentence(0.0, 1.0, "whisk them"),))

    [scores] = score([video], vocabulary, encoder)

    assert scores.values.argmax(axis=1).tolist() == [1]


def test_no_videos_have_no_scores(vocabulary, encoder):
    assert list(score([], vocabulary, encoder)) == []


def test_features_without_parts_need_no_dimension():
    features = Features("v", 2.0, np.zeros((0, 1), np.float32), np.zeros((0, 2)))

    scores = score_features(features, np.ones((3, 384), np.float32), keysteps(3))

    assert not scores.observed.any()
