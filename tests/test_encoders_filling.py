"""Filling a folder with features: what fails is counted, and the rest is as if it had not."""

import errno
import os

import numpy as np
import pytest

from stepgraph.core import Video, Vocabulary
from stepgraph.encoders import EncoderOptions
from stepgraph.encoders.encoding import encode_to
from stepgraph.encoders.stored_features import FeatureStore, StoredEncoder
from stepgraph.errors import ConfigError, DataError
from stepgraph.files.disk import _sweep, replacing
from stepgraph.problems import Problems
from stepgraph.scoring import score
from test_encoders_stored_features import VIDEOS, features_of, files_in

OPTIONS = EncoderOptions("colour:motion")


class Colours:
    """Encodes any video as random vectors, unless told to fail at it."""

    options = OPTIONS

    def __init__(self, **errors):
        self.errors = errors
        self.calls = []

    def encode_keysteps(self, vocabulary):
        return np.eye(len(vocabulary), 4, dtype=np.float32)

    def encode_videos(self, videos):
        videos = list(videos)
        self.calls.append([video.id for video in videos])
        for video in videos:
            if video.id in self.errors:
                raise self.errors[video.id]
            yield features_of(video)


def filled(folder, videos=VIDEOS, encoder=None):
    store = FeatureStore(folder)
    encode_to(store, videos, encoder or Colours(), Problems(strict=True))
    return store


def test_a_second_run_encodes_what_is_missing_alone(tmp_path):
    filled(tmp_path, VIDEOS[:1])
    (tmp_path / "c.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:-1])  # cut off
    encoder = Colours()

    done = encode_to(FeatureStore(tmp_path), VIDEOS, encoder, Problems(strict=True))

    assert encoder.calls == [["monday/b"], ["c"]]
    assert (done.written, done.skipped) == (2, 1)
    assert (done.rows, done.frames) == (7, 7)
    assert done.seconds > 0
    assert done.per_second(done.rows) > 0
    filled(tmp_path / "other")
    (tmp_path / "other").rename(tmp_path.with_name("other"))
    assert files_in(tmp_path) == files_in(tmp_path.with_name("other"))


def test_narration_is_encoded_together(tmp_path, videos, encoder):
    calls = []

    class Counting(type(encoder)):
        def encode_videos(self, block):
            block = list(block)
            calls.append(len(block))
            return super().encode_videos(block)

    done = encode_to(FeatureStore(tmp_path), videos, Counting(), Problems(strict=True))

    assert calls == [3]
    assert (done.written, done.frames) == (3, 0)


@pytest.mark.parametrize("kind", ["text:words", "colour:motion"])
def test_a_video_that_fails_is_counted_with_its_reason_and_the_others_go_on(tmp_path, kind):
    encoder = Colours(
        a=DataError("a.mp4: must be a whole video, got half"),
        c=OSError(errno.EIO, "Input/output error"),
    )
    encoder.options = EncoderOptions(kind)
    problems = Problems()

    done = encode_to(FeatureStore(tmp_path), VIDEOS, encoder, problems)

    assert (done.written, done.skipped) == (1, 0)
    assert [problem.fatal for problem in problems.found] == [True, True]
    assert str(problems.found[0]) == "video 'a': a.mp4: must be a whole video, got half"
    assert str(problems.found[1]) == "video 'c': got Input/output error"
    assert dict(problems.counts) == {"video that cannot be encoded": 2}
    assert set(files_in(tmp_path)) == {"features.json", "monday/b.npz"}
    with pytest.raises(DataError, match="must be a whole video, got half"):
        encode_to(FeatureStore(tmp_path), VIDEOS, encoder, Problems(strict=True))


def test_no_space_left_fails_one_video_and_leaves_nothing_half_written(tmp_path, monkeypatch):
    fsync, left = os.fsync, [True, False, True]

    def sync(file):
        if not left.pop(0):
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(file)

    monkeypatch.setattr(os, "fsync", sync)
    problems = Problems()

    done = encode_to(FeatureStore(tmp_path), VIDEOS, Colours(), problems)

    assert done.written == 2
    assert "b.npz: cannot be written: No space left on device" in problems.found[0].what
    assert dict(problems.counts) == {"features not written": 1}
    assert set(files_in(tmp_path)) == {"features.json", "a.npz", "c.npz"}


def test_an_encoder_that_cannot_work_at_all_stops_the_run(tmp_path):
    encoder = Colours(a=ConfigError("weights must be there, got none"))

    with pytest.raises(ConfigError, match="weights must be there"):
        encode_to(FeatureStore(tmp_path), VIDEOS, encoder, Problems())


def test_features_that_are_no_numbers_are_not_written(tmp_path):
    class Broken(Colours):
        def encode_videos(self, videos):
            for features in super().encode_videos(videos):
                features.vectors[1, 2] = np.nan
                yield features

    problems = Problems()

    encode_to(FeatureStore(tmp_path), VIDEOS[:1], Broken(), problems)

    assert str(problems.found[0]) == (
        "video 'a': features must be finite, got nan in row 1 for column 2; compute them again"
    )


def test_what_an_encoder_of_ones_own_gets_wrong_is_no_score():
    class Broken(Colours):
        def encode_videos(self, videos):
            for features in super().encode_videos(videos):
                features.vectors[0, 0] = np.inf
                yield features

    class Nothing(Colours):
        def encode_videos(self, videos):
            return [None for _ in videos]

    class Narrow(Colours):
        def encode_keysteps(self, vocabulary):
            return np.eye(len(vocabulary), 3, dtype=np.float32)

    words = Vocabulary(("boil", "pour"))
    with pytest.raises(DataError, match=r"^video 'a': features must be finite, got inf in row 0"):
        list(score(VIDEOS, words, Broken()))
    with pytest.raises(ConfigError, match=r"must give the features .* got \[None\] for \['a'\]"):
        list(score(VIDEOS, words, Nothing()))
    with pytest.raises(ConfigError, match=r"as long as those of videos, got shapes \(2, 3\) and"):
        list(score(VIDEOS, words, Narrow()))


def test_an_encoder_that_mixes_videos_up_is_refused(tmp_path):
    class Mixed(Colours):
        def encode_videos(self, videos):
            return iter([features_of(VIDEOS[2])])

    with pytest.raises(ConfigError, match=r"must give the features .* got \['c'\] for \['a'\]"):
        encode_to(FeatureStore(tmp_path), VIDEOS, Mixed(), Problems())


@pytest.mark.parametrize("video", ["../a", "/a", "a\0b", "x" * 5000, "", "\ud800"])
def test_ids_that_are_no_names_of_files_are_refused_alone(tmp_path, video):
    videos, problems = [Video(video, 2.0), VIDEOS[0]], Problems()

    done = encode_to(FeatureStore(tmp_path / "new"), videos, Colours(), problems)

    assert (done.written, len(problems.failed)) == (1, 1)
    assert "id of a video must be usable as a file name" in problems.found[0].what
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
    how = {"problems": Problems(), "all_videos": True}
    [nothing, _] = StoredEncoder(tmp_path / "new", Colours(), **how).encode_videos(videos)
    assert len(nothing.vectors) == 0


def test_what_a_killed_run_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path):
    filled(tmp_path, [])
    (tmp_path / "monday").mkdir()
    left = [
        tmp_path / f".a.npz.{os.getppid()}-0123abcd.partial",  # a process of the same number
        tmp_path / "monday" / ".b.npz.1-0123abcd.partial",
        tmp_path / f".another.npz.{os.getpid()}-0123abcd.partial",
    ]
    for path in (*left, tmp_path / ".odd.partial"):
        path.write_bytes(b"half")

    _sweep.cache_clear()  # as in another process
    with replacing(tmp_path / "c.npz") as living:
        filled(tmp_path)
        assert living.exists()

    assert [path.exists() for path in left] == [False] * 3
    assert (tmp_path / ".odd.partial").exists()
