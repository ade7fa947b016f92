"""What every encoder that looks does around its model: rows, batches, names, folders."""

import re
from pathlib import Path

import numpy as np
import pytest

from stepgraph.core import Video, Vocabulary, rows_in
from stepgraph.encoders import Encoder, EncoderOptions, load_encoder, visual
from stepgraph.encoders.model_folders import fetch_folder, find_folder, find_weights
from stepgraph.encoders.visual import VisualEncoder, encode_rows
from stepgraph.errors import ConfigError, DataError
from stepgraph.ingest.frames import Clip, ClipOptions
from stepgraph.scoring import score
from stepgraph.scoring.lazy import LazyScores
from videos import write_video

ROOT = Path(__file__).parents[1]
TINY = ClipOptions(frames=2, window=1.0, height=4, width=4)


def clip_of(row, duration, options):
    """A clip whose every colour is the number of its row, so that vectors tell rows apart."""
    start = row * options.stride
    shape = (options.frames, options.height, options.width, 3)
    return Clip(start, min(start + options.window, duration), np.full(shape, row, np.uint8))


@pytest.fixture
def reader(monkeypatch):
    """Stands in for the reader; and a diary of what was asked."""
    asked = []

    def read(path, options, *, duration):
        asked.append((path, options))
        rows = range(rows_in(duration, options.stride))
        return (clip_of(row, duration, options) for row in rows)

    monkeypatch.setattr(visual, "read_clips", read)
    return asked


class FakeModel:
    """Directions in the plane: a row is an angle, a text is its length; and a diary."""

    clips = TINY

    def __init__(self):
        self.batches = []
        self.texts = []

    def encode_clips(self, frames):
        assert frames.dtype == np.uint8
        self.batches.append(len(frames))
        angle = frames[:, 0, 0, 0, 0].astype(np.float32)
        return 3 * np.stack([np.cos(angle), np.sin(angle)], axis=1)

    def encode_texts(self, texts):
        self.texts += texts
        angle = np.array([len(text) for text in texts], dtype=np.float32)
        return 5 * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def direction(angle):
    return np.array([np.cos(angle), np.sin(angle)])


def video_of(duration, path="video.mp4"):
    return Video("v", duration, path=path)


def rows_of(duration, batch=4, clips=TINY):
    model = FakeModel()
    return encode_rows(video_of(duration), clips, model.encode_clips, batch=batch), model


@pytest.mark.parametrize("batch", [1, 4, 6, 100])
def test_each_row_has_a_unit_vector_of_its_own_clip(reader, batch):
    features, model = rows_of(5.5, batch)

    assert features.vectors == pytest.approx(np.stack([direction(row) for row in range(6)]))
    assert features.vectors.dtype == np.float32
    assert sum(model.batches) == 6
    assert max(model.batches) <= batch


def test_intervals_are_the_rows_and_end_with_the_video(reader):
    features, _ = rows_of(5.5)

    expected = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 5.5]]
    assert features.intervals.tolist() == expected
    assert (features.video, features.duration) == ("v", 5.5)


def test_a_long_window_does_not_widen_the_rows(reader):
    wide = ClipOptions(frames=2, window=4.0, height=4, width=4)

    features, _ = rows_of(5.5, clips=wide)

    assert features.intervals[1].tolist() == [1, 2]


def test_a_video_of_no_length_has_no_rows(reader):
    features, model = rows_of(0.0)

    assert features.vectors.shape == (0, 1)
    assert features.intervals.shape == (0, 2)
    assert model.batches == []


def test_a_video_without_a_file_is_refused():
    with pytest.raises(DataError, match=r"video 'v' must have a video file .* transcript alone;"):
        encode_rows(video_of(5.0, path=None), TINY, FakeModel().encode_clips, batch=4)


def test_vectors_that_are_no_numbers_are_refused(reader):
    def broken(frames):
        found = FakeModel().encode_clips(frames)
        found[frames[:, 0, 0, 0, 0] == 3] = np.nan
        return found

    with pytest.raises(DataError, match=r"finite numbers, got others for 1 of 6 .* at 3 s"):
        encode_rows(video_of(5.5), TINY, broken, batch=4)


def encoder_of(model=None, **options):
    return VisualEncoder(EncoderOptions("clip:any", **options), lambda: model or FakeModel())


def test_a_model_is_loaded_when_first_needed_and_only_once(reader):
    loads = []
    encoder = VisualEncoder(EncoderOptions("clip:any"), lambda: loads.append(1) or FakeModel())
    assert isinstance(encoder, Encoder)
    assert loads == []

    encoder.encode_keysteps(Vocabulary(("boil", "pour it")))
    list(encoder.encode_videos([video_of(2.0), video_of(3.0)]))

    assert loads == [1]


@pytest.mark.parametrize(("window", "seconds"), [(None, 1.0), (2.5, 2.5)])
def test_a_window_replaces_that_of_the_model(reader, window, seconds):
    list(encoder_of(window=window).encode_videos([video_of(2.0)]))

    [(path, options)] = reader
    assert path == "video.mp4"
    assert options == ClipOptions(frames=2, window=seconds, height=4, width=4)


def test_batches_hold_a_number_of_frames_not_of_clips(reader, monkeypatch):
    monkeypatch.setitem(visual._FRAMES, visual.pick_device(), 4)
    model = FakeModel()

    list(encoder_of(model).encode_videos([video_of(5.5)]))

    assert model.batches == [2, 2, 2]


def test_keysteps_are_encoded_by_their_plain_names(monkeypatch):
    monkeypatch.setattr(visual, "_TEXTS", 2)
    model = FakeModel()
    vocabulary = Vocabulary(("boil", "pour it", "stir"), {"tea": (0, 1)})

    vectors = encoder_of(model).encode_keysteps(vocabulary)

    assert model.texts == ["boil", "pour it", "stir"]
    assert vectors == pytest.approx(np.stack([direction(4), direction(7), direction(4)]))
    assert vectors.dtype == np.float32


def test_task_names_are_averaged_with_the_plain_names():
    vocabulary = Vocabulary(("boil", "pour it", "stir"), {"tea": (0, 1), "soups": (0,)})

    vectors = encoder_of(task_names=True).encode_keysteps(vocabulary)

    within = direction(len("tea: boil")) + direction(len("soups: boil"))
    boil = direction(4) + within / np.linalg.norm(within)
    pour = direction(7) + direction(len("tea: pour it"))
    assert vectors[0] == pytest.approx(boil / np.linalg.norm(boil))
    assert vectors[1] == pytest.approx(pour / np.linalg.norm(pour))
    assert vectors[2] == pytest.approx(direction(4))  # of no task


def test_scores_are_cosines_of_rows_and_names(reader):
    vocabulary = Vocabulary(("one two", "three"))

    encoder = encoder_of()
    [features] = encoder.encode_videos([video_of(5.5)])
    scores = LazyScores(features, encoder.encode_keysteps(vocabulary), vocabulary)

    assert scores.values == pytest.approx(
        np.array([[np.cos(row - 7), np.cos(row - 5)] for row in range(6)]), abs=1e-6
    )
    assert scores.observed.all()


# --- folders and names of models


@pytest.mark.parametrize("model", ["./nowhere", "/nowhere/model", "~/nowhere", "~nobody-at-all/m"])
def test_a_path_where_no_model_is_is_refused(model):
    with pytest.raises(ConfigError, match=rf"clip encoder '{model}' must be the folder of a clip"):
        find_folder("clip", model)


def test_a_folder_is_found_and_a_name_is_left_to_the_hub(tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)

    assert find_folder("clip", "model") == (tmp_path / "model").resolve()
    assert find_folder("clip", "openai/clip-vit-base-patch32") is None
    assert fetch_folder("clip", "./model") == (tmp_path / "model").resolve()


class Hub:
    """Stands in for the hub's client: a cache that may be empty, a network that may be down."""

    def __init__(self, cache, *, online=()):
        self.cache = cache
        self.online = online
        self.asked = []

    def __call__(self, name, *, local_files_only=False, allow_patterns=()):
        self.asked.append("cache" if local_files_only else "network")
        if local_files_only and not self.cache.is_dir():
            raise FileNotFoundError("Cannot find a snapshot\nand much more")
        if not local_files_only:
            if not self.online:
                raise OSError("Got: ConnectError: no such host\nPlease check your connection")
            self.cache.mkdir(exist_ok=True)
            wanted = self.online if "*.json" in allow_patterns else ["pytorch_model.bin"]
            for file in wanted:
                (self.cache / file).touch()
        return str(self.cache)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    def put(*cached, online=()):
        if cached:
            (tmp_path / "cache").mkdir()
        for file in cached:
            (tmp_path / "cache" / file).touch()
        client = Hub(tmp_path / "cache", online=online)
        monkeypatch.setattr("huggingface_hub.snapshot_download", client)
        return client

    return put


@pytest.mark.parametrize("weights", ["model.safetensors", "pytorch_model.bin"])
def test_a_cached_model_needs_no_network(hub, weights):
    client = hub("config.json", weights)

    assert fetch_folder("clip", "some/model") == client.cache
    assert client.asked == ["cache"]


@pytest.mark.parametrize("cached", [(), ("config.json",)])
def test_what_is_not_cached_whole_is_downloaded(hub, cached):
    client = hub(*cached, online=("config.json", "model.safetensors"))

    assert fetch_folder("clip", "some/model") == client.cache
    assert client.asked == ["cache", "network"]


def test_older_weights_are_downloaded_where_there_are_no_others(hub):
    client = hub(online=("config.json",))

    folder = fetch_folder("clip", "some/model")

    assert [path.name for path in find_weights(folder)] == ["pytorch_model.bin"]
    assert client.asked == ["cache", "network", "network"]


def test_a_name_that_cannot_be_had_is_refused_in_one_line(hub):
    hub()

    with pytest.raises(ConfigError) as caught:
        fetch_folder("clip", "some/model")

    assert str(caught.value) == (
        "clip encoder 'some/model' must be a clip model that is a folder here, lies in the local "
        "model cache, or can be downloaded; got: ConnectError: no such host; put config.json, "
        "model.safetensors, tokenizer.json and preprocessor_config.json of one "
        "(openai/clip-vit-base-patch32) into a folder and give it as the encoder "
        "(--encoder clip:FOLDER)"
    )


def test_a_name_that_no_model_can_have_is_refused_in_one_line():
    with pytest.raises(ConfigError, match=r"clip encoder 'no such: name!' must be .*; got: .+"):
        fetch_folder("clip", "no such: name!")


def test_the_example_for_ones_own_encoder_works(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "encoders" / "function.md").read_text("utf-8")
    [code] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "brightness.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    film = [np.full((64, 64, 3), 16 if number < 16 else 235, np.uint8) for number in range(32)]
    path = write_video(tmp_path / "film.mp4", film, rate=8)

    encoder = load_encoder("brightness:make")
    [scores] = score([video_of(4.0, path)], Vocabulary(("dark", "light")), encoder)

    assert scores.values.argmax(axis=1).tolist() == [0, 0, 1, 1]
