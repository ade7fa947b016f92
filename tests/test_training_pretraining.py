"""From video files and labels to an encoder: the whole way, with the real network."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from reference_networks import as_of_library
from stepgraph.core import BACKGROUND, Labels, Scores, Timeline, Video, Vocabulary
from stepgraph.errors import ConfigError, DataError
from stepgraph.labelling.clips import label_clips
from stepgraph.labelling.folders import Provenance, write_labels
from stepgraph.networks.checkpoints import (
    Trained,
    load_checkpoint,
    read_header,
    save_checkpoint,
    trained_videos,
)
from stepgraph.networks.timesformer import (
    TimeSformer,
    TimeSformerOptions,
)
from stepgraph.training.pretraining import load_initial, train
from stepgraph.training.schedule import Phase, Running, TrainingOptions
from videos import write_video

pytestmark = pytest.mark.usefixtures("one_thread")

COLORS = {"paint it red": (220, 20, 20), "paint it blue": (20, 20, 220), "wait": (90, 90, 90)}
VOCABULARY = Vocabulary(tuple(COLORS))
MODEL = TimeSformerOptions(3, frames=2, size=32, patch=16, width=24, depth=2, heads=2)
QUICK = TrainingOptions(
    phases=(Phase("adamw", 4, 5e-3, drops=(4,)),), batch=8, running=Running(logs=False)
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Two videos that change colour every two seconds, and what the graph says of them."""
    folder = tmp_path_factory.mktemp("corpus")
    orders = {"one": (0, 1, 2, 0, 1), "two": (1, 2, 0, 1)}
    colors, found = list(COLORS.values()), {}
    for name, order in orders.items():
        pictures = [np.full((32, 40, 3), colors[k], np.uint8) for k in order for _ in range(8)]
        write_video(folder / f"{name}.mp4", pictures, rate=4)
        found[name] = np.repeat(order, 2)
    return folder, found


def label(corpus, folder, *, videos=("one", "two"), path=None, argmax_observed=True):
    """Labels of the graph, which are the truth, beside those of argmax, which are all alike."""
    source, truth = corpus
    path = path or (lambda name: source / f"{name}.mp4")

    def label(videos):
        for video in videos:
            keysteps = truth[video.id]
            values = np.zeros((len(keysteps), 3), np.float32)
            values[:, 2] = 0.5
            observed = np.full(len(keysteps), argmax_observed)
            scores = Scores(video.id, values, observed, VOCABULARY)
            yield label_clips(Timeline(video, Labels(video.id, keysteps, VOCABULARY), scores))

    given = [Video(name, float(len(truth[name])), (), path(name)) for name in videos]
    write_labels(given, label, folder, Provenance(VOCABULARY, "g", {}, {}))
    return folder


def test_a_model_learns_the_labels_of_the_graph_and_becomes_an_encoder(tmp_path, corpus):
    labels = label(corpus, tmp_path / "labels")

    result = train(labels, tmp_path / "out", model=MODEL, options=QUICK)

    assert (result.clips, result.videos, len(result.problems)) == (18, 2, 0)
    assert len(result.losses) == 4 * math.ceil(18 / 8)
    assert result.epochs[-1].loss < 0.7 * result.epochs[0].loss
    model, names = load_checkpoint(result.checkpoint)
    assert (model.options, names) == (MODEL, VOCABULARY.keysteps)
    extra = read_header(result.checkpoint).extra
    assert (extra["window"], extra["stride"], extra["labels"]) == (1.0, 1.0, "graph")
    assert load_checkpoint(result.best)[0].options == MODEL


def test_the_baseline_learns_its_own_labels(tmp_path, corpus):
    labels = label(corpus, tmp_path / "labels")

    result = train(labels, tmp_path / "out", model=MODEL, options=QUICK, which="argmax")

    assert result.epochs[-1].accuracy == 1  # argmax says the same of every clip


def test_a_checkpoint_has_the_videos_it_was_trained_on(tmp_path, corpus):
    tiny = replace(QUICK, phases=(Phase("sgd", 1, 1e-9),))
    first = train(
        label(corpus, tmp_path / "one", videos=("one",)), tmp_path / "a", model=MODEL, options=tiny
    )

    second = train(
        label(corpus, tmp_path / "two", videos=("two",)),
        tmp_path / "b",
        model=MODEL,
        options=tiny,
        initial=first.best,
    )

    assert trained_videos(first.checkpoint) == Trained(frozenset({"one"}), whole=True)
    assert trained_videos(second.best) == Trained(frozenset({"one", "two"}), whole=True)


def test_videos_of_older_and_of_other_weights_are_not_known(tmp_path, corpus):
    weights_of(tmp_path)
    first = tmp_path / "first.safetensors"
    tiny = replace(QUICK, phases=(Phase("sgd", 1, 1e-9),))

    result = train(
        label(corpus, tmp_path / "l"), tmp_path / "out", model=MODEL, options=tiny, initial=first
    )

    assert trained_videos(first) == Trained(frozenset(), whole=False)
    assert trained_videos(result.checkpoint) == Trained(frozenset({"one", "two"}), whole=False)


@pytest.mark.parametrize("videos", ["one", [1], {"one": 1}])
def test_damaged_videos_of_a_checkpoint_are_refused(tmp_path, videos):
    path = tmp_path / "damaged.safetensors"
    save_checkpoint(path, TimeSformer(MODEL), VOCABULARY.keysteps, {"videos": videos})

    with pytest.raises(DataError, match=r"damaged.safetensors: must be a checkpoint as stepgraph"):
        trained_videos(path)


def test_two_trainings_share_decoded_clips(tmp_path, corpus):
    labels = label(corpus, tmp_path / "labels")
    options = replace(QUICK, running=Running(logs=False, store=tmp_path / "clips"))
    train(labels, tmp_path / "graph", model=MODEL, options=options)
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "clips").iterdir()}

    train(labels, tmp_path / "argmax", model=MODEL, options=options, which="argmax")

    assert before == {p.name: p.stat().st_mtime_ns for p in (tmp_path / "clips").iterdir()}
    assert not (tmp_path / "graph" / "clips").exists()


def test_streamed_clips_train_as_well(tmp_path, corpus):
    labels = label(corpus, tmp_path / "labels")
    options = replace(QUICK, clips="streamed", buffer=8, loss="distribution")

    result = train(labels, tmp_path / "out", model=MODEL, options=options)

    assert result.epochs[-1].loss < result.epochs[0].loss
    assert {record.clips for record in result.epochs} == {18}
    assert not (tmp_path / "out" / "clips").exists()
    options = replace(options, running=Running(logs=False, workers=2))
    with pytest.raises(ConfigError, match=r"must continue as it began, with workers null, got 2"):
        train(labels, tmp_path / "out", model=MODEL, options=options)


def test_a_training_in_the_same_folder_goes_on(tmp_path, corpus):
    labels = label(corpus, tmp_path / "labels")
    first = train(labels, tmp_path / "out", model=MODEL, options=QUICK)

    again = train(labels, tmp_path / "out", model=MODEL, options=QUICK)

    assert again.losses.tolist() == first.losses.tolist()
    with pytest.raises(ConfigError, match=r"with which \"graph\", got \"argmax\"; give the same"):
        train(labels, tmp_path / "out", model=MODEL, options=QUICK, which="argmax")
    label(corpus, tmp_path / "fewer", videos=("one",))
    with pytest.raises(ConfigError, match=r"must continue as it began, with labels"):
        train(tmp_path / "fewer", tmp_path / "out", model=MODEL, options=QUICK)
    with pytest.raises(ConfigError, match=r"must continue as it began, with model .*\"depth\": 2"):
        train(labels, tmp_path / "out", model=replace(MODEL, depth=1), options=QUICK)


# --- bad input


def test_labels_of_another_vocabulary_are_refused(tmp_path, corpus):
    labels = label(corpus, tmp_path / "labels")

    with pytest.raises(
        ConfigError,
        match=r"must be labels of 4 keysteps, as many as the model has .*, got 3; were",
    ):
        train(labels, tmp_path / "out", model=replace(MODEL, classes=4), options=QUICK)


def test_missing_videos_are_counted_and_left_out(tmp_path, corpus):
    source, _ = corpus
    labels = label(
        corpus,
        tmp_path / "labels",
        path=lambda name: source / f"{name}.mp4" if name == "one" else tmp_path / "gone.mp4",
    )

    result = train(labels, tmp_path / "out", model=MODEL, options=QUICK)

    assert (result.videos, result.clips) == (1, 10)
    assert dict(result.problems.failed.counts) == {"video without file": 1}
    assert "must be where it was labelled, got nothing at" in result.problems.summary()


def test_no_video_at_all_is_an_error_in_one_line(tmp_path, corpus):
    labels = label(corpus, tmp_path / "labels", path=lambda name: tmp_path / "gone.mp4")

    with pytest.raises(
        DataError, match=r"and a video file, got none of 18: 2 × video without file"
    ):
        train(labels, tmp_path / "out", model=MODEL, options=QUICK)


def test_videos_that_were_moved_are_found(tmp_path, corpus):
    source, _ = corpus
    labels = label(corpus, tmp_path / "labels", path=lambda name: tmp_path / f"{name}.mp4")
    options = replace(QUICK, running=Running(logs=False, videos=source))

    result = train(labels, tmp_path / "out", model=MODEL, options=options)

    assert result.videos == 2


def test_labels_without_a_label_are_an_error(tmp_path, corpus):
    labels = label(corpus, tmp_path / "labels", argmax_observed=False)

    with pytest.raises(DataError, match=r"labels of 'argmax' and .*, got none of 18; label them"):
        train(labels, tmp_path / "out", model=MODEL, options=QUICK, which="argmax")


def test_one_labelled_clip_trains(tmp_path, corpus):
    source, _ = corpus
    single = np.full(10, BACKGROUND)
    single[3] = 1
    labels = label((source, {"one": single}), tmp_path / "labels", videos=("one",))

    result = train(labels, tmp_path / "out", model=MODEL, options=QUICK)

    assert (result.clips, len(result.losses)) == (1, 4)


def test_videos_shorter_than_their_labels_are_noted(tmp_path, corpus):
    source, _ = corpus
    longer = {"one": np.zeros(14, dtype=np.int64)}
    labels = label((source, longer), tmp_path / "labels", videos=("one",))

    result = train(labels, tmp_path / "out", model=MODEL, options=QUICK)

    assert result.clips == 10
    assert "must have the 14 clips that were labelled, got 10" in result.problems.summary()


def test_other_bad_arguments_are_refused(tmp_path, corpus):
    with pytest.raises(ConfigError, match=r"which must be 'graph' or 'argmax', got 'truth'"):
        train(tmp_path, tmp_path, model=MODEL, which="truth")
    with pytest.raises(DataError, match=r"must be labels with a labels.json, got none; make it"):
        train(tmp_path / "nowhere", tmp_path, model=MODEL)


# --- initial weights


def weights_of(folder, model=MODEL, names=VOCABULARY.keysteps, seed=9):
    torch.manual_seed(seed)
    network = TimeSformer(model)
    torch.nn.init.normal_(network.head.weight)
    save_checkpoint(folder / "first.safetensors", network, names)
    return network


def test_a_training_begins_with_the_weights_given(tmp_path, corpus):
    network = weights_of(tmp_path)
    fresh = TimeSformer(MODEL)

    load_initial(fresh, tmp_path / "first.safetensors", VOCABULARY.keysteps)

    for name, weight in fresh.state_dict().items():
        assert torch.equal(weight, network.state_dict()[name]), name
    labels = label(corpus, tmp_path / "labels")
    tiny = replace(QUICK, phases=(Phase("sgd", 1, 1e-9),))
    initial = tmp_path / "first.safetensors"
    result = train(labels, tmp_path / "out", model=MODEL, options=tiny, initial=initial)
    trained, _ = load_checkpoint(result.checkpoint)
    torch.testing.assert_close(trained.patches.weight, network.patches.weight, atol=1e-6, rtol=0)


def test_a_head_for_other_keysteps_is_left_out(tmp_path):
    network = weights_of(tmp_path, names=("a", "b", "c"))
    fresh = TimeSformer(MODEL)
    drawn = fresh.head.weight.clone()

    load_initial(fresh, tmp_path / "first.safetensors", VOCABULARY.keysteps)

    assert torch.equal(fresh.head.weight, drawn)
    assert torch.equal(fresh.patches.weight, network.patches.weight)


def test_weights_of_the_transformers_library_are_taken_from_a_file_or_folder(tmp_path):
    from safetensors.torch import save_file

    network = weights_of(tmp_path, replace(MODEL, classes=400), names=tuple(map(str, range(400))))
    save_file(as_of_library(network.state_dict()), tmp_path / "model.safetensors")

    for path in (tmp_path, tmp_path / "model.safetensors"):
        fresh = TimeSformer(MODEL)
        load_initial(fresh, path, VOCABULARY.keysteps)
        assert torch.equal(fresh.blocks[1].space.qkv.weight, network.blocks[1].space.qkv.weight)


def test_a_folder_without_weights_and_other_weights_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"must be a model of the transformers library, got a fol"):
        load_initial(TimeSformer(MODEL), tmp_path, VOCABULARY.keysteps)
    torch.save({"a": torch.zeros(2)}, tmp_path / "other.pt")
    with pytest.raises(DataError, match=r"weights of a TimeSformer must have"):
        load_initial(TimeSformer(MODEL), tmp_path / "other.pt", VOCABULARY.keysteps)
