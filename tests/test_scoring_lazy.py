"""Lazy scores, computed where they are asked for, equal those computed at once."""

import pickle
import tracemalloc

import numpy as np
import pytest

import reference
import stepgraph as sg
from reference import keysteps
from stepgraph.core import Features, Scores
from stepgraph.encoders.vectors import unit
from stepgraph.errors import DataError
from stepgraph.scoring.lazy import LazyScores, part_of_row, pieces


def random_unit(rng, rows, width=8):
    return unit(rng.normal(size=(rows, width)).astype(np.float32))


def random_features(rng, parts, *, duration=None):
    """Sentences with pauses between some of them; each lasts for some rows."""
    starts = np.cumsum(rng.uniform(0.2, 4, parts))
    ends = starts + rng.uniform(0.5, 5, parts)
    length = float(ends.max(initial=0) + rng.uniform(0, 3)) if duration is None else duration
    return Features("video", length, random_unit(rng, parts), np.stack([starts, ends], axis=1))


def dense_twin(features, vectors, vocabulary, hop):
    """All scores, one cell at a time."""
    rows = sg.core.rows_in(features.duration, hop)
    values, observed = np.zeros((rows, len(vocabulary)), np.float32), np.zeros(rows, bool)
    for row, part in enumerate(reference.part_of_row(features.intervals.tolist(), rows, hop)):
        if part >= 0:
            observed[row] = True
            for keystep in range(len(vocabulary)):
                values[row, keystep] = features.vectors[part] @ vectors[keystep]
    return Scores(features.video, values, observed, vocabulary, hop)


def random_pair(seed, *, parts=None):
    """Products and the dense scores of the same video, each restricted in every second case."""
    rng = np.random.default_rng(seed)
    vocabulary = keysteps(int(rng.integers(2, 9)))
    vectors = random_unit(rng, len(vocabulary))
    features = random_features(rng, int(rng.integers(1, 8)) if parts is None else parts)
    hop = float(rng.choice([0.5, 1.0, 2.0]))
    lazy_scores = LazyScores(features, vectors, vocabulary, hop=hop)
    dense = dense_twin(features, vectors, vocabulary, hop)
    if seed % 2:
        allowed = np.flatnonzero(rng.random(len(vocabulary)) < 0.6).tolist()
        lazy_scores, dense = lazy_scores.restrict(allowed), dense.restrict(allowed)
    return lazy_scores, dense


def pairs(number=40):
    return [random_pair(seed) for seed in range(number)]


def assert_close(found, expected):
    """Equal to 1e-6, what may not be included."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


# --- What was computed where it was asked for


def test_values_are_the_lazy_scores_of_the_vectors():
    for lazy_scores, dense in pairs():
        assert lazy_scores.observed.tolist() == dense.observed.tolist()
        assert_close(lazy_scores.values[dense.observed], dense.values[dense.observed])
        assert lazy_scores.values.dtype == np.float32


def test_the_best_keystep_of_each_row_is_that_of_all_values():
    for lazy_scores, dense in pairs():
        keysteps_of_rows, score = lazy_scores.best()

        expected, highest = dense.best()
        observed = dense.observed
        assert keysteps_of_rows[observed].tolist() == expected[observed].tolist()
        assert_close(score[observed], highest[observed])
        assert (keysteps_of_rows.dtype, score.dtype) == (np.int64, np.float32)


def test_scores_of_one_keystep_on_some_rows_are_those_of_all_values():
    for number, (lazy_scores, dense) in enumerate(pairs()):
        rng = np.random.default_rng(number)
        first, last = sorted(rng.integers(0, len(dense) + 1, 2).tolist())
        rows, keystep = slice(first, last), int(rng.integers(0, len(dense.vocabulary)))

        found = lazy_scores.at(rows, keystep)

        observed = dense.observed[rows]
        assert found.shape == (last - first,)
        assert_close(found[observed], dense.at(rows, keystep)[observed])


def test_restricting_twice_allows_what_both_allow():
    lazy_scores, dense = random_pair(0)
    for allowed in ([1], [0, 1]):
        lazy_scores, dense = lazy_scores.restrict(allowed), dense.restrict(allowed)

    assert_close(lazy_scores.values[dense.observed], dense.values[dense.observed])


def test_restricting_alters_nothing_of_what_was_restricted():
    lazy_scores, dense = random_pair(0)

    lazy_scores.restrict([0])

    assert_close(lazy_scores.values[dense.observed], dense.values[dense.observed])


def test_other_values_of_the_same_rows_are_plain_scores():
    lazy_scores, _ = random_pair(0)

    other = lazy_scores.with_values(np.ones_like(lazy_scores.values))

    assert type(other) is Scores
    assert other.observed.tolist() == lazy_scores.observed.tolist()
    assert (other.values == 1).all()


def test_lazy_scores_survive_the_way_to_another_process():
    lazy_scores, _ = random_pair(1)

    other = pickle.loads(pickle.dumps(lazy_scores))

    assert np.array_equal(other.values, lazy_scores.values)
    assert other.best()[0].tolist() == lazy_scores.best()[0].tolist()


# --- A piece at a time


@pytest.mark.parametrize("piece", [1, 7, 20])
def test_pieces_change_nothing(piece, monkeypatch):
    whole = [lazy_scores.best() for lazy_scores, _ in pairs(20)]
    monkeypatch.setattr("stepgraph.scoring.lazy._PIECE", piece)

    for (lazy_scores, dense), (expected, highest) in zip(pairs(20), whole, strict=True):
        found, score = lazy_scores.best()
        assert found[dense.observed].tolist() == expected[dense.observed].tolist()
        assert_close(score[dense.observed], highest[dense.observed])


@pytest.mark.parametrize("width", [0, 1, 3, 10**9])
def test_pieces_hold_every_part_once(width, monkeypatch):
    monkeypatch.setattr("stepgraph.scoring.lazy._PIECE", 6)

    parts = [part for piece in pieces(7, width) for part in range(7)[piece]]

    assert parts == list(range(7))


@pytest.mark.parametrize(("width", "most"), [(2**22, 1), (2**22 - 1, 2), (2**21 - 1, 3)])
def test_a_piece_holds_four_million_numbers(width, most):
    assert next(pieces(7, width)) == slice(0, most)


def test_the_best_of_a_long_video_takes_a_small_part_of_the_memory_of_all_scores(monkeypatch):
    monkeypatch.setattr("stepgraph.scoring.lazy._PIECE", 2**16)
    rng, size, parts = np.random.default_rng(0), 2000, 2000
    intervals = np.stack([np.arange(parts), np.arange(parts) + 1.0], axis=1)
    features = Features("video", float(parts), random_unit(rng, parts), intervals)
    lazy_scores = LazyScores(features, random_unit(rng, size), keysteps(size))

    tracemalloc.start()
    lazy_scores.best()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most < 4 * parts * size / 8


# --- Too large


def week():
    """One sentence in a week: small to hold, 604,800 rows of scores."""
    rng = np.random.default_rng(0)
    features = Features("long", 604_800.0, random_unit(rng, 1), np.array([[3.0, 8.0]]))
    return LazyScores(features, random_unit(rng, 2000), keysteps(2000))


def test_too_many_scores_are_refused_with_their_size():
    with pytest.raises(
        DataError,
        match=r"^scores of video 'long' must fit into 2 GB, got 604,800 rows of 2,000 keysteps "
        r"\(4\.8 GB\); take task-markov, path-search or argmax",
    ):
        _ = week().values


def test_too_many_scores_are_refused_before_they_take_memory():
    lazy_scores = week()

    tracemalloc.start()
    with pytest.raises(DataError):
        _ = lazy_scores.values
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most < 1e6


def test_as_many_scores_as_are_allowed_are_computed_and_one_more_is_not(monkeypatch):
    lazy_scores, dense = random_pair(0)
    monkeypatch.setattr("stepgraph.scoring.lazy.LARGEST", dense.values.nbytes - 1)

    with pytest.raises(DataError, match="must fit into"):
        _ = lazy_scores.values

    monkeypatch.setattr("stepgraph.scoring.lazy.LARGEST", dense.values.nbytes)
    assert lazy_scores.values.shape == dense.values.shape


def test_what_needs_a_part_of_the_scores_works_where_all_are_too_many():
    lazy_scores = week()

    found, score = lazy_scores.best()

    assert len(found) == len(score) == 604_800
    assert np.flatnonzero(lazy_scores.observed).tolist() == [3, 4, 5, 6, 7]
    assert score[3] == pytest.approx(lazy_scores.at(slice(3, 4), int(found[3]))[0], abs=1e-6)


# --- Nothing, and little


@pytest.mark.parametrize("duration", [0.0, 5.0])
def test_a_video_without_speech_has_rows_of_which_none_is_observed(duration):
    features = random_features(np.random.default_rng(0), 0, duration=duration)
    lazy_scores = LazyScores(features, random_unit(np.random.default_rng(1), 3), keysteps(3))

    assert len(lazy_scores) == duration
    assert not lazy_scores.observed.any()
    assert lazy_scores.values.shape == (duration, 3)
    assert len(lazy_scores.best()[0]) == len(lazy_scores.at(slice(None), 1)) == duration


def test_rows_in_which_nothing_is_said_score_nothing():
    features = Features("video", 3.0, np.eye(1, 3, dtype=np.float32), np.array([[1.0, 2.0]]))
    lazy_scores = LazyScores(features, np.eye(3, dtype=np.float32), keysteps(3))

    assert lazy_scores.values.tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 0]]
    assert [one.tolist() for one in lazy_scores.best()] == [[0, 0, 0], [0, 1, 0]]
    assert lazy_scores.at(slice(None), 0).tolist() == [0, 1, 0]


@pytest.mark.parametrize(("more", "part"), [(3e-9, -1), (6e-9, 0)])
def test_what_covers_less_than_a_billionth_of_a_row_is_not_in_it(more, part):
    assert part_of_row(np.array([[0.0, 4 + more]]), 2, 4.0).tolist() == [0, part]


def test_a_video_of_one_row_has_one_row_of_scores():
    features = Features("video", 1.0, np.eye(1, 4, dtype=np.float32), np.array([[0.0, 1.0]]))
    lazy_scores = LazyScores(features, np.eye(3, 4, dtype=np.float32), keysteps(3))

    assert lazy_scores.values.tolist() == [[1.0, 0.0, 0.0]]
    assert [one.tolist() for one in lazy_scores.best()] == [[0], [1.0]]


def test_where_no_keystep_may_be_none_has_a_score():
    lazy_scores = random_pair(0)[0].restrict([])

    assert np.isneginf(lazy_scores.best()[1][lazy_scores.observed]).all()
    assert np.isneginf(lazy_scores.values[lazy_scores.observed]).all()
    assert np.isneginf(lazy_scores.at(slice(None), 0)).all()
