"""Scores on a grid of rows."""

import math
from dataclasses import replace

import numpy as np
import pytest

import reference
from reference import keysteps
from stepgraph.core import Features, Scores, Sentence, Video, Vocabulary
from stepgraph.encoders import EncoderOptions
from stepgraph.errors import ConfigError, DataError
from stepgraph.scoring import score, score_features
from stepgraph.scoring.fusion import fuse, prioritize
from stepgraph.scoring.lazy import part_of_row


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


def test_what_begins_before_the_video_or_ends_after_it_counts_within_it():
    intervals = np.array([[-1.5, 0.6], [2.5, 9.0]])

    assert part_of_row(intervals, 4, 1.0).tolist() == [0, -1, 1, 1]


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

    scores = score_features(features, np.ones((3, 384), np.float32), keysteps(3), EncoderOptions())

    assert not scores.observed.any()


def two_modalities(rng, rows=12, size=4):
    names = Vocabulary(tuple(f"keystep {k}" for k in range(size)))
    return [
        Scores("v", rng.random((rows, size), dtype=np.float32), rng.random(rows) < 0.7, names)
        for _ in range(2)
    ]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("weight", [0.0, 0.3, 0.5, 1.0])
def test_fused_rows_are_what_a_loop_over_rows_gives(seed, weight):
    video, text = two_modalities(np.random.default_rng(seed))

    fused = fuse(video, text, weight=weight)

    for row in range(len(video)):
        if video.observed[row] and text.observed[row]:
            expected = weight * video.values[row] + (1 - weight) * text.values[row]
        elif video.observed[row] or text.observed[row]:
            expected = (video if video.observed[row] else text).values[row]
        else:
            assert not fused.observed[row]
            continue
        assert fused.observed[row]
        assert fused.values[row] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_the_first_modality_wins_where_both_are_certain(seed):
    video, text = two_modalities(np.random.default_rng(seed))

    both = prioritize(video, text, first_threshold=0.6, second_threshold=0.8)

    for row in range(len(video)):
        sees = video.observed[row] and video.values[row].max() >= 0.6
        uses_speech = text.observed[row] and text.values[row].max() >= 0.8
        anchor = both.observed[row] and both.values[row].max() >= np.float32(0.8)
        assert anchor == (sees or uses_speech)
        if anchor:
            speaker = video if sees else text
            assert both.values[row].argmax() == speaker.values[row].argmax()


def test_scores_of_two_videos_are_not_fused():
    video, text = two_modalities(np.random.default_rng(0))

    with pytest.raises(DataError, match="must be of one video and its rows, got 'v' with 12"):
        fuse(video, replace(text, video="another"))


def test_a_weight_outside_its_range_is_refused():
    video, text = two_modalities(np.random.default_rng(0))

    with pytest.raises(ConfigError, match="weight must be between 0 and 1, got 2"):
        fuse(video, text, weight=2)


def test_a_row_is_a_second_unless_asked_otherwise():
    features = Features("v", 4.0, np.eye(2, dtype=np.float32), np.array([[0.0, 2.0], [2.0, 4.0]]))

    found = score_features(features, np.eye(2, dtype=np.float32), keysteps(2), EncoderOptions())

    assert (found.hop, len(found)) == (1.0, 4)
