"""Who may name an encoder: a file those that are here, the user any; nobody else's is fetched."""

import json
import os
import shlex
import shutil
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from stepgraph.cli import main
from stepgraph.encoders import EncoderOptions
from stepgraph.errors import ConfigError
from stepgraph.pipeline import ScorerChoice, mine, open_scorer

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

NAME = "text:someone/model"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "crack", "the", "eggs", "pan"]


@pytest.fixture(autouse=True)
def asked(monkeypatch):
    """Whatever was asked of a network; there is none."""
    found = []

    def refuse(*args, **_):
        found.append(args)
        raise OSError("no network")

    for name in ("create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("HF_HUB_OFFLINE", "")
    return found


@pytest.fixture(autouse=True)
def hub_cache(tmp_path_factory, monkeypatch):
    """An empty cache of the hub's client."""
    folder = tmp_path_factory.mktemp("hub")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """A sentence-transformers model of a few hundred random weights."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    folder = tmp_path_factory.mktemp("tiny")
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(vocab_size=len(WORDS), intermediate_size=8, **sizes)
    BertModel(config).save_pretrained(folder / "bert")
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder / "bert")
    inner = Transformer(str(folder / "bert"))
    whole = SentenceTransformer(modules=[inner, Pooling(8)], device="cpu")
    whole.save(str(folder / "whole"), create_model_card=False)
    return folder / "whole"


def put_into(hub_cache, tiny, name="someone--model"):
    """Lay a model out as the hub's client does."""
    place = hub_cache / f"models--{name}"
    shutil.copytree(tiny, place / "snapshots" / "0123")
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text("0123")


@pytest.fixture
def folder(omelette_folder, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STEPGRAPH_CACHE", str(tmp_path / "cache"))
    assert main(["mine", "omelette"]) == 0
    return omelette_folder


def name_in_graph(**options):
    path = Path("graph.json")
    content = json.loads(path.read_text())
    content["encoder"] |= options
    path.write_text(json.dumps(content))


def run(capsys, *args):
    """Exit code of a verb and what it says is wrong."""
    capsys.readouterr()
    code = main(list(args))
    found = capsys.readouterr()
    assert "Traceback" not in found.err
    return code, found.err


RECOGNIZE = ("recognize", "omelette", "--graph", "graph.json")


@pytest.mark.own_cache
@pytest.mark.parametrize(
    ("missing", "named"),
    [
        (NAME, {"name": NAME}),
        ("text:all-mpnet-base-v2", {"name": "text:all-mpnet-base-v2"}),
        ("clip:someone/model", {"name": "clip:someone/model", "also": "text:minilm"}),
        ("siglip:model", {"name": "siglip:model", "also": "text:minilm"}),
        ("xclip:someone/model", {"also": "xclip:someone/model"}),
        ("timesformer:some/model", {"name": "timesformer:some/model", "also": "text:minilm"}),
    ],
)
def test_a_graph_does_not_choose_a_model_to_fetch(folder, capsys, asked, missing, named):
    name_in_graph(**named)

    code, said = run(capsys, *RECOGNIZE)

    assert (code, asked) == (1, [])
    assert said.count("\n") == 1
    option = "--also" if missing == named.get("also") else "--encoder"
    assert (
        f"named explicitly if it is not in the local model cache, got {missing!r}; to use" in said
    )
    assert said.endswith(f"add: {option} {missing}\n")


@pytest.mark.own_cache
@pytest.mark.parametrize("kind", ["clip", "own", "s3d", "text", "timesformer", "videoclip"])
def test_a_graph_does_not_choose_files_of_this_machine(folder, tmp_path, capsys, asked, kind):
    (tmp_path / "model").mkdir()
    for model in ("model", str(tmp_path / "model"), "/dev/zero", "./nowhere", "~/x"):
        name_in_graph(name=f"{kind}:{model}", also=None if kind == "text" else "text:minilm")

        code, said = run(capsys, *RECOGNIZE)

        assert (code, asked) == (1, [])
        assert said.count("\n") == 1
        assert "encoder of the graph must be named explicitly if it is a path, got" in said
        assert f"add: --encoder {shlex.quote(f'{kind}:{model}')}\n" in said


@pytest.mark.own_cache
def test_features_do_not_choose_a_model_to_fetch(folder, capsys, asked):
    assert main(["encode", "omelette", "--encoder", "text:minilm"]) == 0
    path = Path("features", "features.json")
    path.write_text(path.read_text().replace("text:minilm", NAME))

    code, said = run(capsys, *RECOGNIZE, "--features", "features")

    assert (code, asked) == (1, [])
    assert "features: encoder must be named explicitly" in said
    assert f"--encoder {NAME}" in said


@pytest.mark.own_cache
def test_a_model_in_the_cache_is_used_without_a_network(folder, hub_cache, tiny, capsys, asked):
    put_into(hub_cache, tiny)
    name_in_graph(name=NAME)

    assert run(capsys, *RECOGNIZE) == (0, "")

    assert asked == []


@pytest.mark.own_cache
def test_a_bare_name_is_found_where_sentence_transformers_puts_it(hub_cache, tiny, asked):
    put_into(hub_cache, tiny, "sentence-transformers--tiny")

    scorer = open_scorer(ScorerChoice({"name": "text:tiny"}))

    assert scorer.encode_texts(["crack the eggs"]).shape == (1, 8)
    assert asked == []


@pytest.mark.own_cache
def test_a_folder_that_is_named_again_is_used_as_the_graph_was_mined(folder, tiny, capsys):
    name = f"text:{tiny}"
    assert main(["mine", "omelette", "--encoder", name, "--context", "1", "--blend"]) == 0
    assert run(capsys, *RECOGNIZE)[0] == 1

    assert run(capsys, *RECOGNIZE, "--encoder", name) == (0, "")

    from stepgraph.graph.saving import load_graph

    scorer = open_scorer(ScorerChoice({"name": name}), graph=load_graph(Path("graph.json")))
    assert scorer.options == EncoderOptions(name, context=1, blend=True)


@pytest.fixture
def graph(omelette, encoder):
    return mine(omelette, encoder=encoder)


def test_of_two_encoders_each_must_be_named(graph, tiny, hub_cache):
    both = EncoderOptions("colour:motion", also=f"text:{tiny}")
    mined = replace(graph, encoder=both)

    with pytest.raises(ConfigError, match=r"--also text:.*tiny"):
        open_scorer(graph=mined)
    fused = open_scorer(ScorerChoice({"also": f"text:{tiny}"}), graph=mined)
    assert fused.options == both
    # One of them alone is no confirmation, but another choice.
    assert open_scorer(ScorerChoice({"name": "colour:motion"}), graph=mined).options.also is None


@pytest.mark.own_cache
def test_only_what_is_typed_is_fetched_and_offline_not_even_that(folder, capsys, asked):
    for args in (("mine", "omelette"), ("encode", "omelette", "-o", "f"), RECOGNIZE):
        code, said = run(capsys, "--offline", *args, "--encoder", NAME)
        assert (code, asked) == (1, [])
        assert f"text encoder {NAME[5:]!r} must be a text model that" in said
        assert "nothing is downloaded" in said

        os.environ["HF_HUB_OFFLINE"] = ""
        code, said = run(capsys, *args, "--encoder", NAME)
        assert code == 1
        assert asked
        assert "or can be downloaded" in said
        asked.clear()


def test_built_in_encoders_may_be_named_by_anybody(graph):
    for name in ("text:minilm", "colour:motion"):
        mined = replace(graph, encoder=EncoderOptions(name))
        assert open_scorer(graph=mined).options.name == name
