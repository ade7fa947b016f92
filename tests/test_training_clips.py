"""Clips for training: decoded once, read at random, or streamed; the same every time."""

import json
import os
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from small_training import make_examples, make_options
from stepgraph.errors import DataError
from stepgraph.ingest.frames import ClipOptions, read_clips
from stepgraph.problems import Problems
from stepgraph.training import clip_store as stores
from stepgraph.training.batches import StoredSource, StreamedSource, augment
from stepgraph.training.clip_store import ClipStore, fill
from stepgraph.training.schedule import Team
from videos import number_in, numbered, write_video

KINDS = {
    "one picture": ClipOptions(height=16, width=16),
    "apart": ClipOptions(frames=4, height=16, width=16),
    "overlapping": ClipOptions(frames=4, window=4.0, height=16, width=16),
    "crossing": ClipOptions(frames=2, window=4.0, height=16, width=16),
    "slow": ClipOptions(frames=3, window=0.5, stride=2.0, height=16, width=16),
}
CLIP = KINDS["apart"]


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    """Three videos of six, seven and eight seconds, whose pictures show their numbers."""
    folder = tmp_path_factory.mktemp("videos")
    return {
        f"v{length}": write_video(
            folder / f"v{length}.mp4",
            [numbered(1000 * length + number) for number in range(8 * length)],
            rate=8,
        )
        for length in (6, 7, 8)
    }


def filled(folder, videos, options=CLIP, **more):
    store = ClipStore(folder, options)
    fill(store, videos, (8,) * len(videos), problems=Problems(strict=True), **more)
    return store


def examples_of(videos):
    """All clips of the three videos."""
    lengths = {name: int(name[1:]) for name in videos}
    video = np.repeat(np.arange(len(videos)), list(lengths.values())).astype(np.int32)
    clip = np.concatenate([np.arange(length) for length in lengths.values()]).astype(np.int32)
    some = make_examples(len(clip))
    return replace(some, videos=videos, clips=tuple(lengths.values()), video=video, clip=clip)


def names_of(batches):
    """Which pictures were seen, by their numbers."""
    return [
        [number_in(clip[0].numpy()) for clip in batch.clips[: batch.real]] for batch in batches
    ]


# --- the store


@pytest.mark.parametrize("kind", KINDS)
def test_stored_clips_are_those_of_the_video(tmp_path, videos, kind):
    store = filled(tmp_path, videos, KINDS[kind])

    for video, path in videos.items():
        clips = list(read_clips(path, KINDS[kind]))
        assert store.count(video, path) == len(clips)
        for number in reversed(range(len(clips))):
            np.testing.assert_array_equal(store.read(video, number), clips[number].frames)


@pytest.mark.parametrize("kind", KINDS)
def test_the_room_is_known_beforehand_and_shared_pictures_are_stored_once(tmp_path, videos, kind):
    store = filled(tmp_path, {"v8": videos["v8"]}, KINDS[kind])

    count = store.count("v8", videos["v8"])
    pictures = {"one picture": 8, "apart": 32, "overlapping": 11, "crossing": 10, "slow": 12}[kind]
    [path] = tmp_path.glob("*.npy")
    assert np.load(path).shape == (pictures, 16, 16, 3)
    assert store.bytes_of(count) == pictures * 16 * 16 * 3
    assert store.bytes_of(0) == 0


def test_processes_decode_the_same(tmp_path, videos):
    alone = filled(tmp_path / "alone", videos)
    helped = filled(tmp_path / "helped", videos, workers=2)

    for video in videos:
        np.testing.assert_array_equal(alone.read(video, 3), helped.read(video, 3))


def test_what_is_stored_is_not_decoded_again(tmp_path, videos, monkeypatch):
    filled(tmp_path, {"v6": videos["v6"]})
    decoded = []

    def seen(path, options):
        decoded.append(path.stem)
        return read_clips(path, options)

    monkeypatch.setattr(stores, "read_clips", seen)

    filled(tmp_path, videos)

    assert decoded == ["v7", "v8"]


def test_a_video_that_changed_is_decoded_again(tmp_path, videos):
    path = tmp_path / "v.mp4"
    path.write_bytes(videos["v6"].read_bytes())
    store = filled(tmp_path / "store", {"v": path})
    path.write_bytes(videos["v7"].read_bytes())
    os.utime(path, ns=(1, 1))

    assert store.count("v", path) is None
    filled(tmp_path / "store", {"v": path})

    assert ClipStore(tmp_path / "store", CLIP).count("v", path) == 7


def test_decoding_that_was_stopped_leaves_nothing_half(tmp_path, videos, monkeypatch):
    def stopped(path, options):
        for number, clip in enumerate(read_clips(path, options)):
            if path.stem == "v7" and number == 3:
                raise KeyboardInterrupt
            yield clip

    monkeypatch.setattr(stores, "read_clips", stopped)
    with pytest.raises(KeyboardInterrupt):
        filled(tmp_path, videos)
    assert len(list(tmp_path.glob("*.npy"))) == len(list(tmp_path.glob("*.json"))) - 1 == 1
    assert not list(tmp_path.glob(".*"))
    monkeypatch.undo()

    store = filled(tmp_path, videos)

    assert [store.count(video, path) for video, path in videos.items()] == [6, 7, 8]


def test_a_video_that_cannot_be_decoded_is_noted(tmp_path, videos):
    bad = tmp_path / "bad.mp4"
    bad.write_bytes(b"no video at all")
    problems = Problems()
    store = ClipStore(tmp_path / "store", CLIP)

    fill(store, {"bad": bad, **videos}, (9, 6, 7, 8), problems=problems)

    assert dict(problems.failed.counts) == {"video that cannot be decoded": 1}
    assert "bad.mp4: must be a readable video file" in problems.summary()
    assert store.count("bad", bad) is None
    assert store.count("v8", videos["v8"]) == 8


def test_missing_room_is_said_before_the_work(tmp_path, videos, monkeypatch):
    store = ClipStore(tmp_path, ClipOptions(frames=4, height=1000, width=1000))
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr(stores.shutil, "disk_usage", lambda _: usage)

    match = (
        r"must have room for 36.0 GB of decoded clips, got 0.0 GB free; .* or stream the clips$"
    )
    with pytest.raises(DataError, match=match):
        fill(store, videos, (1000,) * 3, problems=Problems())


def test_a_full_disk_stops_the_work(tmp_path, videos, monkeypatch):
    store = ClipStore(tmp_path, CLIP)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stores, "_write_header", full)

    with pytest.raises(DataError, match=r"cannot be written: No space left on device"):
        fill(store, videos, (6, 7, 8), problems=Problems())


def test_a_store_of_other_clips_is_refused(tmp_path):
    ClipStore(tmp_path, CLIP)

    with pytest.raises(DataError, match=r"clips.json: must describe clips as .*'frames': 1.* got"):
        ClipStore(tmp_path, KINDS["one picture"])


def test_a_damaged_store_is_an_error_in_one_line(tmp_path, videos):
    store = filled(tmp_path, {"v6": videos["v6"]})
    [path] = tmp_path.glob("*.npy")
    path.write_bytes(path.read_bytes()[:200])

    with pytest.raises(DataError, match=r"npy: must be decoded clips, got .*; delete it and run"):
        store.read("v6", 0)


def test_odd_ids_have_their_place(tmp_path, videos):
    odd = {"a/b": videos["v6"], "x" * 300: videos["v7"], "ü \n": videos["v8"]}

    store = filled(tmp_path, odd)

    assert [number_in(store.read(video, 0)[0]) // 1000 for video in odd] == [6, 7, 8]


# --- batches


def test_stored_batches_are_the_same_for_any_number_of_workers(tmp_path, videos):
    store, options = filled(tmp_path, videos), make_options(flip=True, crop=0.6)
    examples = examples_of(videos)

    def seen(workers):
        source = StoredSource(examples, store, options, workers=workers)
        return [batch for epoch in (0, 1) for batch in source.batches(epoch, 0)]

    for one, other in zip(seen(0), seen(2), strict=True):
        assert one.clips.tolist() == other.clips.tolist()
        assert one.keysteps.tolist() == other.keysteps.tolist()


def test_batches_go_on_from_any_step(tmp_path, videos):
    source = StoredSource(examples_of(videos), filled(tmp_path, videos), make_options())

    whole = names_of(source.batches(1, 0))

    assert names_of(source.batches(1, 3)) == whole[3:]
    assert names_of(source.batches(0, 0)) != whole


def test_a_clip_meets_its_own_target(tmp_path, videos):
    examples = examples_of(videos)
    source = StoredSource(examples, filled(tmp_path, videos), make_options())

    for batch in source.batches(0, 0):
        for clip, keystep in zip(batch.clips, batch.keysteps.tolist(), strict=True):
            shown = number_in(clip[0].numpy())
            row = np.flatnonzero(
                (examples.video == shown // 1000 - 6) & (examples.clip == shown % 1000 // 8)
            )
            assert examples.keystep[row].tolist() == [keystep]


# --- streams


def test_a_stream_shows_every_clip_once(videos):
    examples = examples_of(videos)
    source = StreamedSource(examples, CLIP, make_options(clips="streamed", buffer=3))

    batches = list(source.batches(0, 0))

    shown = [name for batch in names_of(batches) for name in batch]
    assert len(shown) == len(set(shown)) == len(examples) == 21
    assert sum(batch.real for batch in batches) == 21
    stored = StoredSource(examples, FromVideos(videos), make_options())
    assert sorted(shown) == sorted(
        name for batch in names_of(stored.batches(0, 0)) for name in batch
    )


class FromVideos:
    """A store that keeps nothing."""

    options = CLIP

    def __init__(self, videos):
        self.clips = {name: list(read_clips(path, CLIP)) for name, path in videos.items()}

    def read(self, video, clip):
        return self.clips[video][clip].frames


def test_a_stream_is_shuffled_and_the_same_for_a_seed_and_epoch(videos):
    def seen(epoch, seed=0, workers=0, first=0):
        options = make_options(clips="streamed", buffer=8, seed=seed)
        source = StreamedSource(examples_of(videos), CLIP, options, workers=workers)
        return names_of(source.batches(epoch, first))

    assert seen(0) == seen(0)
    assert seen(0, workers=2) == seen(0, workers=2)
    assert seen(0) != seen(1)
    assert seen(0) != seen(0, seed=1)
    assert seen(0, first=2) == seen(0)[2:]
    mixed = [len({name // 1000 for name in batch}) for batch in seen(0)]
    assert max(mixed) > 1


def test_processes_and_workers_share_the_videos(videos):
    options = make_options(clips="streamed", buffer=2)

    counted = Counter(
        name
        for rank in range(2)
        for batch in names_of(
            StreamedSource(
                examples_of(videos),
                CLIP,
                options,
                team=Team(torch.device("cpu"), rank, 2),
                workers=2,
            ).batches(0, 0)
        )
        for name in batch
    )

    assert len(counted) == 21
    assert set(counted.values()) == {1}


def test_a_stream_goes_on_after_a_bad_or_short_video(tmp_path, videos):
    bad = tmp_path / "bad.mp4"
    bad.write_bytes(b"no video at all")
    given = {"v6": bad, "v7": videos["v6"], "v8": videos["v8"]}
    source = StreamedSource(examples_of(given), CLIP, make_options(clips="streamed"))

    batches = list(source.batches(0, 0))

    assert sum(batch.real for batch in batches) == 6 + 8
    failed = {one.where: one for batch in batches for one in batch.failed}
    assert "must be a readable video file" in failed["video 'v6'"].what
    assert failed["video 'v7'"].what.endswith("that were labelled, got 6; label it again")
    assert [one.fatal for one in failed.values()] in ([True, False], [False, True])


def test_only_labelled_clips_are_streamed(videos):
    examples = examples_of(videos)
    few = examples.only(examples.clip % 2 == 0)

    source = StreamedSource(few, CLIP, make_options(clips="streamed"))

    assert sum(batch.real for batch in source.batches(0, 0)) == len(few) == 3 + 4 + 4


# --- chance


def clip_of_noise():
    return np.random.default_rng(1).integers(0, 256, (2, 12, 12, 3), dtype=np.uint8)


def test_clips_are_left_alone_unless_asked():
    assert (make_options().flip, make_options().crop) == (False, 1.0)


def test_half_of_the_clips_are_mirrored():
    clip, options = clip_of_noise(), make_options(flip=True)

    changed = [augment(clip, (0, row), options) for row in range(200)]

    mirrored = sum((one == clip[:, :, ::-1]).all() for one in changed)
    assert 70 < mirrored < 130
    assert sum((one == clip).all() for one in changed) == 200 - mirrored


def test_a_crop_keeps_size_and_kind_and_is_the_same_for_all_pictures():
    still = np.repeat(clip_of_noise()[:1], 2, axis=0)
    options = make_options(crop=0.3)

    changed = [augment(still, (0, row), options) for row in range(20)]

    assert {one.shape for one in changed} == {still.shape}
    assert {one.dtype for one in changed} == {np.dtype(np.uint8)}
    assert all((one[0] == one[1]).all() for one in changed)
    assert len({one.tobytes() for one in changed}) > 10
    assert (augment(still, (3, 4), options) == augment(still, (3, 4), options)).all()


def test_a_crop_of_a_plain_picture_is_plain():
    gray = np.full((2, 12, 12, 3), 77, dtype=np.uint8)

    assert (augment(gray, (0, 0), make_options(crop=0.2)) == 77).all()


def test_the_header_of_a_store_is_readable(tmp_path):
    ClipStore(tmp_path, CLIP)

    header = json.loads((tmp_path / "clips.json").read_text())
    assert (header["format"], header["version"]) == ("stepgraph-clips", 1)


def test_light_changes_with_chance_and_leaves_shapes_alone():
    clip = np.zeros((2, 8, 8, 3), np.uint8)
    clip[:, 2:6, 2:6] = (200, 120, 40)
    lit = make_options(light=0.3)

    first, again, other = (augment(clip, which, lit) for which in ((0, 1), (0, 1), (0, 2)))

    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert first.dtype == np.uint8
    # Where two pixels were equal they still are: only values change, not places.
    for color in {tuple(pixel) for pixel in clip.reshape(-1, 3).tolist()}:
        places = (clip == color).all(axis=-1)
        assert len(np.unique(first[places], axis=0)) == 1
