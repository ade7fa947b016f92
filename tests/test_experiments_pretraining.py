"""Videos that a model was trained on are not those that it is measured on."""

import numpy as np
import pytest

from stepgraph.cli.learning import named_places, open_backbones, open_models
from stepgraph.core import Dataset, Features, Video
from stepgraph.datasets import open_source
from stepgraph.encoders import EncoderOptions, load_encoder
from stepgraph.encoders.stored_features import FeatureStore, StoredEncoder
from stepgraph.errors import ConfigError, DataError
from stepgraph.experiments.downstream import divide, make_downstream_table
from stepgraph.experiments.pretraining import Pretraining, read_pretraining, trained_on
from stepgraph.experiments.probing import ProbeOptions
from stepgraph.ingest import Listening
from stepgraph.networks.checkpoints import save_checkpoint
from stepgraph.networks.timesformer import TimeSformer, TimeSformerOptions
from stepgraph.problems import Problems
from stepgraph.scoring import StoredScores
from test_experiments_probing import KITCHEN, Prepared, made
from test_training_pretraining import corpus, label  # noqa: F401  (a fixture)

pytestmark = pytest.mark.usefixtures("one_thread")

MODEL = TimeSformerOptions(2, frames=2, size=16, patch=8, width=8, depth=1, heads=1)
TESTS = {"coin": ("a", "b", "c")}


@pytest.fixture
def checkpoint(tmp_path):
    path = tmp_path / "encoder.safetensors"
    extra = {"videos": ["a", "x"], "videos_whole": True}
    save_checkpoint(path, TimeSformer(MODEL), ("stir", "pour"), extra)
    return path


@pytest.mark.parametrize("kind", ["own", "timesformer"])
def test_a_checkpoint_is_refused_on_the_videos_that_it_has(checkpoint, kind):
    model = load_encoder(f"{kind}:{checkpoint}")

    assert trained_on(model) == ({"a", "x"}, True)
    message = r"^Ours: must be trained on no test video of coin, got 1 of 3, such as 'a';"
    with pytest.raises(DataError, match=message):
        Pretraining().check({"Ours": model}, TESTS)
    [note] = Pretraining(allow_shared=True).check({"Ours": model}, TESTS)
    assert note.startswith("Ours was trained on test videos of coin: 1 of 3, such as 'a'")
    assert Pretraining().check({"Ours": model}, {"coin": ("b", "c")}) == ()


def test_stored_features_are_as_the_checkpoint_that_made_them(checkpoint, tmp_path):
    store = FeatureStore(tmp_path / "features")
    store.prepare(EncoderOptions(f"timesformer:{checkpoint}"))
    stored = StoredEncoder(tmp_path / "features")

    assert trained_on(stored) == ({"a", "x"}, True)

    checkpoint.unlink()
    assert trained_on(stored) == (frozenset(), False)


def test_one_note_names_all_models_of_which_videos_are_not_known(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 2), np.float32))
    scores, features = StoredScores(tmp_path), StoredEncoder(tmp_path)
    words = load_encoder("text:minilm")

    notes = Pretraining({"given": ("x",)}).check(
        {"scores": scores, "S3D": features, "words": words, "given": scores}, TESTS
    )

    assert len(notes) == 1
    assert notes[0].endswith("measured videos: scores, S3D.")


def test_videos_of_a_model_that_is_not_there_are_refused():
    with pytest.raises(ConfigError, match=r"must name one of the models \(none\), got Ours"):
        Pretraining({"Ours": ("a",)}).check({}, TESTS)


def test_ids_are_read_from_labels_or_from_a_file(tmp_path, corpus):  # noqa: F811
    (tmp_path / "ids.txt").write_text("a\n\n-b \n")

    assert read_pretraining(label(corpus, tmp_path / "labels")) == ("one", "two")
    assert read_pretraining(tmp_path / "ids.txt") == ("a", "-b")


def test_only_test_videos_count_and_heads_of_one_data_set_meet_no_other():
    """What a head learned from matters to its own test set, and ``divide`` sees to that."""
    (train, seen), (test, unseen) = made(8, 1), made(4, 2)
    first = divide("first", train, test)
    # The test videos of the first are what the heads of the second learn from.
    second = divide("second", test, train)
    options = ProbeOptions(seeds=1, epochs=1, heads=("mlp",), probes=("task",))
    backbones = {"mine": Prepared(seen | unseen)}
    given = Pretraining({"mine": tuple(video.id for video in train.videos)})

    table = make_downstream_table([first], backbones, options, pretraining=given)
    assert "trained on test videos" not in table.to_text()

    with pytest.raises(DataError, match=r"mine: .* test video of second, got 8 of 8, such as"):
        make_downstream_table([first, second], backbones, options, pretraining=given)


def test_a_video_without_truth_is_no_test_video():
    (train, seen), (test, unseen) = made(8, 1), made(4, 2)
    more = Dataset("more", (*test.videos, Video("a", 3.0)), KITCHEN, test.truth)
    nothing = {"a": Features("a", 3.0, np.zeros((0, 8), np.float32), np.zeros((0, 2)))}
    options = ProbeOptions(seeds=1, epochs=1, heads=("mlp",), probes=("task",))
    given = Pretraining({"mine": ("a",)})

    backbones = {"mine": Prepared(seen | unseen | nothing)}
    assert make_downstream_table([divide("k", train, more)], backbones, options, None, given).rows


def test_models_are_opened_by_what_a_place_holds(tmp_path):
    for name, file in (("features", "keysteps.npy"), ("scores", "v.npy")):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / file, np.eye(2, dtype=np.float32))
        np.save(tmp_path / name / "v.npy", np.eye(2, dtype=np.float32))
    places = {name: f"{tmp_path / name}" for name in ("features", "scores")}

    found = open_models(places | {"seen": "colour:motion"}, Problems())

    assert [type(one).__name__ for one in found.values()][:2] == ["StoredEncoder", "StoredScores"]
    assert found["seen"].options.name == "colour:motion"


def test_names_of_models_differ(tmp_path):
    assert named_places(["A=b", "text:minilm"]) == {"A": "b", "text:minilm": "text:minilm"}
    with pytest.raises(ConfigError, match=r"names of models must differ, got 'A' twice"):
        named_places(["A=b", "A=c"])
    with pytest.raises(ConfigError, match=r"backbones must have different names, got 'A' twice"):
        open_backbones({"A": "b"}, {"A": "c"}, Problems())


@pytest.mark.data
def test_the_samples_at_hand_share_videos(real_data):
    """The committed evidence that the guard is needed."""

    def ids(source, split="all"):
        listening = Listening(needed=False, uses_speech=False)
        found = open_source(
            f"{source}:{real_data / source}", split=split, listening=listening, strict=False
        )
        return {video.id for video in found.videos}

    rows = (real_data / "crosstask" / "videos.csv").read_text("utf-8").splitlines()
    crosstask = {row.split(",")[1] for row in rows}  # also those without an annotation here
    howto, coin = ids("howto100m"), ids("coin")

    assert (len(howto & crosstask), len(howto & coin), len(crosstask & coin)) == (3, 8, 41)
    assert len(howto & ids("coin", "testing")) == 4
