"""The nouns: what they accept, what they refuse, and the few things they can do."""

import dataclasses
import math

import numpy as np
import pytest

from reference import keysteps, make_labels
from stepgraph.core import (
    BACKGROUND,
    Dataset,
    Features,
    Labels,
    Scores,
    Segment,
    Video,
    Vocabulary,
    rows_in,
    runs,
)
from stepgraph.errors import DataError, StepgraphError


def test_index_finds_every_keystep(vocabulary):
    assert [vocabulary.index(name) for name in vocabulary.keysteps] == [0, 1, 2, 3, 4]


def test_unknown_keystep_is_answered_with_the_nearest(vocabulary):
    with pytest.raises(
        DataError, match=r"one of the 5 .*, got 'crack eggs'; .* mean 'crack the eg"
    ):
        vocabulary.index("crack eggs")


def test_unknown_keystep_unlike_any_says_so(vocabulary):
    with pytest.raises(DataError, match=r"one of the 5 .*, got 'zzz'; none is similar"):
        vocabulary.index("zzz")


@pytest.mark.parametrize("names", [(), ("boil",)])
def test_vocabulary_needs_two_keysteps(names):
    with pytest.raises(DataError, match=rf"at least 2 keysteps, got {len(names)};"):
        Vocabulary(names)


def test_vocabulary_refuses_a_name_twice():
    with pytest.raises(DataError, match=r"must be unique, got \['a', 'b'\] repeatedly"):
        Vocabulary(("a", "b", "c", "b", "a"))


@pytest.mark.parametrize("member", [-1, 2])
def test_vocabulary_refuses_a_task_of_foreign_keysteps(member):
    with pytest.raises(DataError, match=rf"task 'tea' .* between 0 and 1, got \[0, {member}\]"):
        Vocabulary(("a", "b"), {"tea": (0, member)})


def test_tasks_of_a_shared_keystep_are_all_that_list_it():
    vocabulary = Vocabulary(("boil", "pour", "stir"), {"tea": (0, 1), "soup": (0, 2)})

    assert vocabulary.tasks_of(0) == ("tea", "soup")
    assert vocabulary.tasks_of(2) == ("soup",)


def test_vocabularies_of_equal_content_are_equal():
    one, other = (Vocabulary(("a", "b"), {"t": (0,)}) for _ in range(2))

    assert one == other
    assert hash(one) == hash(other)
    assert one.fingerprint == other.fingerprint


def test_equal_vocabularies_hash_alike_whatever_the_order_of_their_tasks():
    one = Vocabulary(("a", "b"), {"x": (0,), "y": (1,)})
    other = Vocabulary(("a", "b"), {"y": (1,), "x": (0,)})

    assert (one == other) == (hash(one) == hash(other))


@pytest.mark.parametrize(
    "other",
    [
        Vocabulary(("b", "a"), {"t": (0,)}),
        Vocabulary(("a", "b c"), {"t": (0,)}),
        Vocabulary(("a", "b"), {"t": (1,)}),
        Vocabulary(("a", "b"), {"u": (0,)}),
        Vocabulary(("a", "b")),
    ],
)
def test_fingerprint_changes_with_order_names_and_tasks(other):
    vocabulary = Vocabulary(("a", "b"), {"t": (0,)})

    assert other != vocabulary
    assert other.fingerprint != vocabulary.fingerprint


def test_fingerprint_separates_names_that_look_alike_when_joined():
    assert Vocabulary(("a, b", "c")).fingerprint != Vocabulary(("a", "b, c")).fingerprint


def test_nouns_cannot_be_changed(vocabulary):
    with pytest.raises(dataclasses.FrozenInstanceError):
        vocabulary.keysteps = ()


@pytest.mark.parametrize("duration", [-0.1, math.nan, math.inf, -math.inf])
def test_video_refuses_an_impossible_duration(duration):
    with pytest.raises(DataError, match=rf"of video 'v' must be .*, got {duration!r}"):
        Video("v", duration)


def test_video_may_be_empty():
    assert Video("v", 0.0).transcript == ()


@pytest.mark.parametrize(
    ("vectors", "intervals"), [((3,), (3, 2)), ((3, 4), (2, 2)), ((3, 4), (3,))]
)
def test_features_refuse_shapes_that_do_not_belong_together(vectors, intervals):
    with pytest.raises(DataError, match=r"of video 'v' must have shapes \(N, D\) and \(N, 2\)"):
        Features("v", 1.0, np.zeros(vectors, np.float32), np.zeros(intervals))


def test_scores_of_another_vocabulary_are_refused():
    with pytest.raises(DataError, match=r"video 'v1' must have shape \(3, 2\).*got \(3, 5\)"):
        Scores("v1", np.zeros((3, 5), np.float32), np.ones(3, bool), keysteps(2))


def test_scores_are_as_long_as_their_rows():
    scores = Scores("v1", np.zeros((3, 2), np.float32), np.ones(3, bool), keysteps(2))

    assert len(scores) == 3


@pytest.mark.parametrize("wrong", [-2, 5])
def test_labels_refuse_what_is_no_keystep(wrong):
    with pytest.raises(DataError, match=r"video 'v' must be between -1 and 4, got "):
        make_labels([0, wrong, 4], 5, video="v")


def test_labels_refuse_more_than_one_dimension():
    with pytest.raises(DataError, match=r"must have one dimension, got shape \(2, 2\)"):
        make_labels([[0, 1], [1, 0]])


def test_labels_refuse_anchors_of_another_length():
    with pytest.raises(DataError, match=r"anchors of video 'v' must have shape \(3,\), got \(2,"):
        Labels("v", np.zeros(3, np.int64), keysteps(2), anchors=np.ones(2, bool))


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0.0, 1.0, [0, -1, -1]),  # one whole row
        (0.0, 1.5, [0, -1, -1]),  # the end is not part of a segment, so row 1 is not reached
        (0.0, 1.51, [0, 0, -1]),
        (0.5, 1.0, [0, -1, -1]),  # the start is part of it
        (0.51, 1.49, [-1, -1, -1]),  # between two middles
        (2.0, 99.0, [-1, -1, 0]),  # past the end of the video
        (-5.0, 1.0, [0, -1, -1]),  # before its beginning
        (-5.0, -1.0, [-1, -1, -1]),
        (50.0, 60.0, [-1, -1, -1]),
    ],
)
def test_a_row_has_the_segment_that_its_middle_lies_in(start, end, expected):
    labels = Labels.from_segments("v", [Segment(start, end, 0)], keysteps(2), duration=3.0)

    assert labels.keysteps.tolist() == expected


def test_of_overlapping_segments_the_later_wins():
    segments = [Segment(2.0, 4.0, 1), Segment(0.0, 3.0, 0)]

    labels = Labels.from_segments("v", segments, keysteps(2), duration=5.0)

    assert labels.keysteps.tolist() == [0, 0, 1, 1, BACKGROUND]


def test_no_segments_are_all_background():
    labels = Labels.from_segments("v", [], keysteps(2), duration=3.0)

    assert labels.keysteps.tolist() == [BACKGROUND] * 3


def test_labels_of_an_empty_video_have_no_rows():
    labels = Labels.from_segments("v", [Segment(0.0, 1.0, 0)], keysteps(2), duration=0.0)

    assert len(labels) == 0
    assert labels.segments() == []


def test_segments_leave_background_out():
    labels = make_labels([-1, 2, 2, -1, -1, 2, 0])

    assert labels.segments() == [Segment(1, 3, 2), Segment(5, 6, 2), Segment(6, 7, 0)]


def test_one_row_is_one_segment():
    assert make_labels([3], hop=0.5).segments() == [Segment(0.0, 0.5, 3)]


@pytest.mark.parametrize("hop", [1.0, 0.5, 0.1, 3.0, 1 / 3])
@pytest.mark.parametrize("seed", range(5))
def test_labels_survive_a_round_trip_through_segments(seed, hop):
    values = np.random.default_rng(seed).integers(BACKGROUND, 3, 200)
    labels = make_labels(values, 3, hop=hop)

    again = Labels.from_segments(
        "v", labels.segments(), labels.vocabulary, duration=200 * hop, hop=hop
    )

    assert again.keysteps.tolist() == values.tolist()


@pytest.mark.parametrize(
    ("duration", "hop", "rows"),
    [
        (0.0, 1.0, 0),
        (-3.0, 1.0, 0),
        (0.001, 1.0, 1),
        (9.0, 1.0, 9),
        (9.2, 1.0, 10),
        (0.1 * 3, 0.1, 3),  # 0.30000000000000004
        (60.0, 0.1, 600),
        (1.0, 2.0, 1),
    ],
)
def test_a_started_row_counts_but_float_noise_does_not(duration, hop, rows):
    assert rows_in(duration, hop) == rows


def test_runs_of_nothing_are_none():
    assert list(runs(np.array([], dtype=np.int64))) == []


def test_runs_cover_all_values_in_order():
    assert list(runs(np.array([5, 5, 1, 5, 5, 5]))) == [(0, 2), (2, 3), (3, 6)]


def test_dataset_may_have_neither_vocabulary_nor_truth():
    dataset = Dataset("mine", ())

    assert dataset.vocabulary is None
    assert dataset.truth == {}


def test_errors_of_data_are_value_errors_and_ours():
    assert issubclass(DataError, ValueError)
    assert issubclass(DataError, StepgraphError)


def test_restricted_scores_never_prefer_what_is_not_allowed(vocabulary):
    values = np.arange(10, dtype=np.float32).reshape(2, 5)
    scores = Scores("v", values, np.ones(2, bool), vocabulary)

    restricted = scores.restrict([1, 2])

    assert restricted.values.argmax(axis=1).tolist() == [2, 2]
    assert restricted.values[:, 1].tolist() == [1.0, 6.0]
    assert scores.values.max() == 9
