"""Stored features: what comes back is what was encoded, whoever encoded it and however often."""

import sys
import time

import numpy as np
import pytest

from reference import read_scores
from stepgraph.core import Features, Video, Vocabulary
from stepgraph.encoders import EncoderOptions
from stepgraph.encoders.encoding import encode_to
from stepgraph.encoders.stored_features import FeatureStore, StoredEncoder, make_stored
from stepgraph.errors import ConfigError, DataError
from stepgraph.problems import Problems
from stepgraph.scoring import score
from stepgraph.scoring.lazy import LazyScores

RNG = np.random.default_rng(7)
OPTIONS = EncoderOptions("colour:motion")


class Colours:
    """Encodes any video as random vectors."""

    options = OPTIONS

    def encode_keysteps(self, vocabulary):
        return np.eye(len(vocabulary), 4, dtype=np.float32)

    def encode_videos(self, videos):
        return map(features_of, videos)


def features_of(video, width=4):
    rows = int(video.duration)
    vectors = np.random.default_rng(rows).normal(size=(rows, width)).astype(np.float32)
    times = np.arange(rows, dtype=np.float64)
    return Features(video.id, video.duration, vectors, np.stack([times, times + 1], axis=1))


VIDEOS = [Video("a", 3.0), Video("monday/b", 5.5), Video("c", 2.0)]


def files_in(folder):
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def filled(folder, videos=VIDEOS, encoder=None):
    store = FeatureStore(folder)
    encode_to(store, videos, encoder or Colours(), Problems(strict=True))
    return store


def test_features_come_back_bit_by_bit(tmp_path):
    filled(tmp_path)

    for video in VIDEOS:
        found, expected = FeatureStore(tmp_path).read(video), features_of(video)
        assert (found.video, found.duration) == (video.id, video.duration)
        assert found.vectors.dtype == np.float32
        assert found.intervals.dtype == np.float64
        np.testing.assert_array_equal(found.vectors, expected.vectors)
        np.testing.assert_array_equal(found.intervals, expected.intervals)


def test_files_are_the_same_whenever_they_are_written(tmp_path, monkeypatch):
    filled(tmp_path / "now")
    monkeypatch.setattr(time, "time", lambda: 2e9)
    monkeypatch.setattr(
        time, "localtime", lambda *_: time.struct_time((2033, 5, 18, 3) + (0,) * 5)
    )

    filled(tmp_path / "then", reversed(VIDEOS))

    assert files_in(tmp_path / "now") == files_in(tmp_path / "then")
    assert set(files_in(tmp_path / "now")) == {"features.json", "a.npz", "c.npz", "monday/b.npz"}
    with np.load(tmp_path / "now" / "a.npz") as content:
        assert set(content) == {"vectors", "intervals", "duration"}


def test_stored_narration_scores_as_if_encoded_now(tmp_path, videos, vocabulary, encoder):
    filled(tmp_path, videos, encoder)

    stored = StoredEncoder(tmp_path, encoder)

    assert stored.options == encoder.options
    pairs = zip(score(videos, vocabulary, stored), score(videos, vocabulary, encoder), strict=True)
    for found, expected in pairs:
        np.testing.assert_array_equal(found.values, expected.values)
        np.testing.assert_array_equal(found.observed, expected.observed)


def test_a_video_without_anything_said_is_stored_the_same_alone_and_among_others(tmp_path):
    empty = Features("a", 3.0, np.zeros((0, 384), np.float32), np.zeros((0, 2)))
    narrow = Features("a", 3.0, np.zeros((0, 1), np.float32), np.zeros((0, 2)))
    for name, features in (("wide", empty), ("narrow", narrow)):
        store = FeatureStore(tmp_path / name)
        store.prepare(OPTIONS)
        store.write(features)

    assert files_in(tmp_path / "wide") == files_in(tmp_path / "narrow")
    store.width = 7
    assert store.read(VIDEOS[0]).vectors.shape == (0, 1)


def test_a_folder_of_another_encoder_is_refused(tmp_path):
    filled(tmp_path)
    other = Colours()
    other.options = EncoderOptions("colour:motion", window=2.0)
    message = r"must hold features of the chosen encoder \(window 2.0\), got .* \(window None i"

    with pytest.raises(DataError, match=message):
        encode_to(FeatureStore(tmp_path), VIDEOS, other, Problems())
    with pytest.raises(DataError, match=message):
        StoredEncoder(tmp_path, other)


def test_names_of_tasks_make_no_other_features(tmp_path, vocabulary):
    filled(tmp_path)
    other = Colours()
    other.options = EncoderOptions("colour:motion", task_names=True)

    assert len(list(StoredEncoder(tmp_path, other).encode_videos(VIDEOS))) == 3


def test_a_folder_of_other_things_is_not_written_to(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3, 4)))

    with pytest.raises(DataError, match=r"must be a new or empty folder, .* without features\.js"):
        filled(tmp_path)
    with pytest.raises(DataError, match="must be a folder to fill with features, got a file"):
        filled(tmp_path / "a.npy")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "must be complete JSON"),
        ("[]", r"must be a header of stored features \(format 'stepgraph-features'\), got 'list'"),
        ('{"format": "stepgraph-graph", "version": 1}', "got 'stepgraph-graph'; make them with"),
        ('{"format": "stepgraph-features", "version": 2}', "version must be at most 1, got 2"),
        (
            '{"format": "stepgraph-features", "version": 1}',
            "as stepgraph saves it, got one without",
        ),
        ('{"format": "stepgraph-features", "version": 1, "encoder": 3}', "got something else"),
        (
            '{"format": "stepgraph-features", "version": 1, "encoder": {"x": 3}}',
            "got something else",
        ),
        (
            '{"format": "stepgraph-features", "version": 1, "encoder": {"name": [3]}}',
            "encoder must be",
        ),
        (
            '{"format": "stepgraph-features", "version": 1, '
            '"encoder": {"name": "clip:x", "window": "wide"}}',
            "got something else",
        ),
        ("[" * 100_000, "nested a few levels deep"),
        ("9" * 5000, "ordinary numbers"),
        ("\0", "zero byte"),
        (" " * (1 << 21), "at most 1 MiB"),
    ],
)
def test_a_header_that_is_none_is_refused(tmp_path, content, said):
    (tmp_path / "features.json").write_text(content)

    with pytest.raises(DataError, match=rf"features\.json.*: .*{said}") as caught:
        FeatureStore(tmp_path)

    assert "\n" not in str(caught.value)


def arrays(**changed):
    times = np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]])
    given = {"vectors": np.ones((3, 4), "f4"), "intervals": times, "duration": np.array(3.0)}
    return {name: value for name, value in (given | changed).items() if value is not None}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"vectors": np.full((3, 4), np.nan)}, "features must be finite, got nan in row 0"),
        ({"vectors": np.ones(3)}, r"features must have shape \(rows, columns\), got \(3,\)"),
        ({"vectors": np.float32(1)}, r"features must have shape \(rows, columns\), got \(\)"),
        ({"vectors": np.ones((3, 4), "?")}, "vectors: features must be real numbers, got values"),
        ({"intervals": np.ones((2, 2))}, "must have a start and an end"),
        ({"intervals": np.array([[1.0, 0.0]] * 3)}, "must have a start and an end"),
        ({"intervals": np.full((3, 2), np.inf)}, "must have a start and an end"),
        ({"duration": np.ones(3)}, "must have a start and an end"),
        ({"duration": np.array(np.nan)}, "must have a start and an end"),
        ({"duration": None}, "must hold vectors, intervals, duration, got"),
        ({"more": np.ones(1)}, "must hold vectors, intervals, duration, got"),
    ],
)
def test_features_that_are_none_are_refused(tmp_path, changed, said):
    store = filled(tmp_path)
    np.savez(tmp_path / "a.npz", **arrays(**changed))

    with pytest.raises(DataError, match=rf"a\.npz: {said}"):
        store.read(VIDEOS[0])


def test_a_file_that_is_cut_off_is_refused(tmp_path):
    store = filled(tmp_path)
    whole = (tmp_path / "a.npz").read_bytes()

    for length in range(0, len(whole), 7):
        (tmp_path / "a.npz").write_bytes(whole[:length])
        assert not store.has("a")
        with pytest.raises(DataError, match=r"a\.npz: must "):
            store.read(VIDEOS[0])


def test_a_video_that_was_cut_since_is_noted(tmp_path):
    filled(tmp_path)
    problems = Problems()

    found = FeatureStore(tmp_path, problems=problems).read(Video("monday/b", 2.0))

    assert found.duration == 2.0
    assert problems.counts["features longer than the video"] == 1
    assert "must be of a video of 2 s, got one of 5.5 s" in problems.summary()


def foreign(folder, table, name="a"):
    np.save(folder / f"{name}.npy", table)
    return table


@pytest.mark.parametrize("seconds_per_row", [1.0, 2.0, 0.5, 0.3, 1.5])
@pytest.mark.parametrize("rows", [1, 5, 6])
def test_foreign_features_are_resampled_as_scores_are(tmp_path, seconds_per_row, rows):
    table = RNG.normal(size=(rows, 3)).astype(np.float32)
    unit = foreign(tmp_path, table / np.linalg.norm(table, axis=1, keepdims=True))
    video, names = Video("a", 5 * seconds_per_row + 0.1), Vocabulary(("x", "y", "z"))
    np.save(tmp_path / "keysteps.npy", np.eye(3))
    rate = {"seconds_per_row": seconds_per_row, "problems": Problems()}

    stored = StoredEncoder(tmp_path, **rate)
    [features] = stored.encode_videos([video])
    found = LazyScores(features, stored.encode_keysteps(names), names)
    [expected] = read_scores([video], names, tmp_path, **rate)

    np.testing.assert_array_equal(found.observed, expected.observed)
    np.testing.assert_allclose(found.values, expected.values, atol=1e-6)
    assert len(unit) == rows


def test_foreign_vectors_get_length_one_and_zeros_stay_zeros(tmp_path):
    foreign(tmp_path, np.array([[3.0, 4.0], [0.0, 0.0], [1e-30, 0.0], [3e38, 3e38]]))

    found = FeatureStore(tmp_path).read(Video("a", 3.5))

    half = np.sqrt(0.5)
    np.testing.assert_allclose(
        found.vectors, [[0.6, 0.8], [0, 0], [1, 0], [half, half]], rtol=1e-6
    )
    assert found.intervals.tolist() == [[0, 1], [1, 2], [2, 3], [3, 3.5]]


@pytest.mark.parametrize(("duration", "kind"), [(9.0, "shorter"), (3.0, "longer")])
def test_foreign_features_of_another_length_are_noted(tmp_path, duration, kind):
    foreign(tmp_path, np.ones((6, 2)))
    problems = Problems()

    found = FeatureStore(tmp_path, problems=problems).read(Video("a", duration))

    assert len(found.vectors) == min(6, duration)
    assert found.intervals.max() <= duration
    assert dict(problems.counts) == {f"features {kind} than the video": 1}
    with pytest.raises(DataError, match=r"a\.npy: must have \d rows of 1 s, got 6"):
        FeatureStore(tmp_path).read(Video("a", duration))


def test_without_a_rate_rows_are_spread_over_the_video(tmp_path):
    foreign(tmp_path, np.eye(4))

    found = FeatureStore(tmp_path, seconds_per_row=None).read(Video("a", 10.0))

    assert found.vectors.argmax(axis=1).tolist() == [0, 0, 1, 1, 1, 2, 2, 3, 3, 3]


def test_rates_that_are_none_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"seconds_per_row must be between 0\.001 seconds and"):
        FeatureStore(tmp_path, seconds_per_row=0.0)


def test_foreign_features_that_cannot_be_used_are_refused(tmp_path):
    foreign(tmp_path, np.where(np.eye(3) > 0, np.nan, 1.0), "bad")
    foreign(tmp_path, np.ones((3, 4)), "four")
    foreign(tmp_path, np.ones((3, 5)), "five")
    store = FeatureStore(tmp_path)

    with pytest.raises(
        DataError, match=r"bad\.npy: features must be finite, got nan in row 0 for"
    ):
        store.read(Video("bad", 3.0))
    store.read(Video("four", 3.0))
    with pytest.raises(DataError, match=r"five\.npy: .* shape \(rows, 4\), .* another encoder\?"):
        store.read(Video("five", 3.0))
    with pytest.raises(DataError, match="gone: must be a file of stored features"):
        store.read(Video("gone", 3.0))
    with pytest.raises(DataError, match="nowhere: must be a folder of stored features, got no"):
        StoredEncoder(tmp_path / "nowhere")


def test_foreign_features_lie_in_one_file_too(tmp_path):
    np.savez(tmp_path / "all.npz", a=np.eye(3), b=np.eye(3)[:2])

    a, b = StoredEncoder(tmp_path / "all.npz", Colours()).encode_videos(
        [Video("a", 3.0), Video("b", 2.0)]
    )

    assert (len(a.vectors), len(b.vectors)) == (3, 2)


def test_videos_without_features_are_noted_and_the_others_go_on(tmp_path, vocabulary):
    filled(tmp_path)
    (tmp_path / "a.npz").write_bytes(b"half")
    videos = [*VIDEOS, Video("gone", 2.0)]
    problems = Problems()

    stored = StoredEncoder(tmp_path, Colours(), problems=problems)
    found = list(score(videos, vocabulary, stored))

    assert [scores.video for scores in found] == ["monday/b", "c"]
    assert dict(problems.counts) == {
        "unreadable stored features": 1,
        "video without stored features": 1,
    }
    stored = StoredEncoder(tmp_path, Colours(), problems=Problems(), all_videos=True)
    found = list(score(videos, vocabulary, stored))
    assert [scores.observed.any() for scores in found] == [False, True, True, False]
    with pytest.raises(DataError, match=r"a\.npz: must be a whole npz file of stored features"):
        list(StoredEncoder(tmp_path, Colours()).encode_videos(videos))
    with pytest.raises(DataError, match=r"a\.npz: must be a whole npz file"):
        list(StoredEncoder(tmp_path, problems=Problems()).encode_videos(videos[:1]))


def test_keysteps_come_from_a_table_in_the_folder(tmp_path, vocabulary):
    filled(tmp_path)
    np.save(tmp_path / "keysteps.npy", 3 * np.eye(5, 4))

    stored = StoredEncoder(tmp_path)

    np.testing.assert_array_equal(stored.encode_keysteps(vocabulary), np.eye(5, 4))
    assert stored.options == OPTIONS
    np.save(tmp_path / "keysteps.npy", np.eye(6, 4))
    with pytest.raises(
        DataError, match=r"must be 5, one for each keystep, got 6; .* vocabulary\?"
    ):
        stored.encode_keysteps(vocabulary)


def test_keysteps_of_another_width_than_the_features_are_refused(tmp_path, vocabulary):
    filled(tmp_path)
    np.save(tmp_path / "keysteps.npy", np.eye(5))

    with pytest.raises(
        DataError, match=r"a\.npz: features must have shape \(rows, 5\), got \(3, 4"
    ):
        list(score(VIDEOS, vocabulary, StoredEncoder(tmp_path)))


def test_keysteps_come_from_the_encoder_that_the_folder_names(tmp_path):
    filled(tmp_path)

    found = StoredEncoder(tmp_path).encode_keysteps(Vocabulary(("lift the red one", "be patient")))

    assert found.any(axis=1).tolist() == [True, False]


def test_a_folder_cannot_choose_what_is_run(tmp_path, vocabulary):
    encoder = Colours()
    encoder.options = EncoderOptions("antigravity:fly")
    filled(tmp_path, VIDEOS, encoder)

    with pytest.raises(
        ConfigError, match="must be named explicitly if it is a function, got 'antigrav"
    ):
        StoredEncoder(tmp_path).encode_keysteps(vocabulary)

    assert "antigravity" not in sys.modules


def test_without_any_encoder_keysteps_are_refused(tmp_path, vocabulary):
    foreign(tmp_path, np.ones((3, 4)))
    stored = StoredEncoder(tmp_path)

    with pytest.raises(ConfigError, match=r"must have a vector for each keystep \(keysteps\.npy"):
        stored.encode_keysteps(vocabulary)
    with pytest.raises(ConfigError, match=r"a folder of features \(--features\), got none"):
        make_stored(stored.options)
