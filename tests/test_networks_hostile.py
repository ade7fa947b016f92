"""Weights of strangers: whatever their files claim, one line says what is wrong, at once."""

import io
import json
import os
import random
import resource
import time
from dataclasses import asdict

import numpy as np
import pytest
import torch
from safetensors.torch import save, save_file

from stepgraph.core import Vocabulary
from stepgraph.encoders import load_encoder
from stepgraph.encoders.pretrained import make_pixels
from stepgraph.errors import StepgraphError
from stepgraph.networks.checkpoints import load_checkpoint, read_header, save_checkpoint
from stepgraph.networks.timesformer import (
    TimeSformer,
    TimeSformerOptions,
)
from stepgraph.networks.weights import read_weights
from stepgraph.training.pretraining import load_initial
from stepgraph.training.state import (
    EpochRecord,
    Position,
    position_of,
    read_state,
    require_same,
    save_state,
)

SMALL = TimeSformerOptions(2, frames=2, size=16, patch=8, width=8, depth=2, heads=2)
KEYSTEPS = ("boil water", "stir")
ROUNDS = int(os.environ.get("STEPGRAPH_SOAK", "0")) or 40
DEEP = "[" * 200_000 + "]" * 200_000
SECONDS, BYTES = 20, 400 << 20


@pytest.fixture(autouse=True)
def _at_once():
    """No test may take long or much memory, whatever a file claims."""
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    yield
    assert time.process_time() - started < SECONDS
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * 1024 < BYTES


def refused(read, *args):
    """What is said against a file, in one line that is not too long."""
    with pytest.raises(StepgraphError) as caught:
        read(*args)
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) < 700
    return said


def survived(read, *args):
    """A damaged file is refused in one line, or read."""
    said = ""
    try:
        read(*args)
    except StepgraphError as error:
        said = str(error)
    assert "\n" not in said


# --- safetensors


def safetensors(header, data=b""):
    """Bytes of a file with any header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def tensor(shape, offsets, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


HEADERS = {
    "a header of exabytes": (1 << 62).to_bytes(8, "little") + b"{}",
    "a header past the end": (1000).to_bytes(8, "little") + b"{}",
    "a negative length": b"\xff" * 8 + b"{}",
    "no header": b"\x08\0\0\0\0\0\0\0",
    "nested": safetensors(DEEP.encode()),
    "nested metadata": safetensors(b'{"__metadata__": ' + DEEP.encode() + b"}"),
    "not JSON": safetensors(b"hello "),
    "not text": safetensors(b"\xff\xfe\xfd"),
    "a list": safetensors(b"[]"),
    "nothing": safetensors(b"null"),
    "metadata of numbers": safetensors({"__metadata__": {"format": 7}}),
    "a shape of exabytes": safetensors({"a": tensor([1 << 60], [0, 16])}, bytes(16)),
    "a shape that wraps around": safetensors(
        {"a": tensor([1 << 32, 1 << 32], [0, 16])}, bytes(16)
    ),
    "a negative shape": safetensors({"a": tensor([-4], [0, 16])}, bytes(16)),
    "a huge shape of nothing": safetensors({"a": tensor([0, 1 << 61], [0, 0])}),
    "a broken shape": safetensors({"a": tensor([1.5], [0, 6])}, bytes(6)),
    "negative offsets": safetensors({"a": tensor([4], [-16, 0])}, bytes(16)),
    "offsets in reverse": safetensors({"a": tensor([4], [16, 0])}, bytes(16)),
    "offsets past the end": safetensors({"a": tensor([4], [16, 32])}, bytes(16)),
    "offsets of exabytes": safetensors({"a": tensor([4], [0, 1 << 62])}, bytes(16)),
    "two in one place": safetensors(
        {"a": tensor([4], [0, 16]), "b": tensor([4], [0, 16])}, bytes(16)
    ),
    "bytes that nobody has": safetensors({"a": tensor([1], [0, 4])}, bytes(16)),
    "a kind that is unknown": safetensors({"a": tensor([4], [0, 16], "Q7")}, bytes(16)),
    "a kind that torch lacks": safetensors({"a": tensor([8], [0, 4], "F4")}, bytes(4)),
    "no kind": safetensors({"a": {"shape": [4], "data_offsets": [0, 16]}}, bytes(16)),
    "many dimensions": safetensors({"a": tensor([1] * 70_000, [0, 4])}, bytes(4)),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_hostile_header_is_refused_in_one_line(tmp_path, name):
    path = tmp_path / "model.safetensors"
    path.write_bytes(HEADERS[name])

    if name not in ("a huge shape of nothing", "many dimensions", "a kind that torch lacks"):
        assert str(path) in refused(read_weights, path)
    else:
        survived(read_weights, path)
    for read in (read_header, load_checkpoint):
        refused(read, path)
    refused(load_initial, TimeSformer(SMALL), path, KEYSTEPS)
    for kind in ("own", "timesformer"):
        encoder = load_encoder(f"{kind}:{path}")
        refused(encoder.encode_keysteps, Vocabulary(KEYSTEPS))
        refused(lambda encoder=encoder: encoder.model)


@pytest.fixture
def checkpoint(tmp_path):
    path = tmp_path / "own.safetensors"
    save_checkpoint(path, TimeSformer(SMALL), KEYSTEPS, {"window": 1.0})
    return path


def rewritten(path, change, tensors=None):
    """The same file with another header; the numbers stay, or are others."""
    data = path.read_bytes() if tensors is None else save(tensors)
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    known = path.read_bytes()
    size = int.from_bytes(known[:8], "little")
    said = json.loads(known[8 : 8 + size])["__metadata__"] | change
    text = json.dumps({"__metadata__": said, **header}).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[start:])


SAID = {
    "nested options": {"options": DEEP},
    "nested keysteps": {"keysteps": DEEP},
    "nested extra": {"extra": DEEP},
    "a number for ever": {"extra": '{"window": ' + "9" * 100_000 + "}"},
    "endless options": {"options": json.dumps(asdict(SMALL) | {"depth": 1_000_000})},
    "wide options": {"options": json.dumps(asdict(SMALL) | {"width": 1_000_000})},
    "large options": {"options": json.dumps(asdict(SMALL) | {"size": 1_000_000})},
    "long options": {"options": json.dumps(asdict(SMALL) | {"frames": 1_000_000})},
    "options that are a list": {"options": "[1, 2]"},
    "options with more": {"options": json.dumps(asdict(SMALL) | {"x": 1})},
    "keysteps that are a number": {"keysteps": "7"},
    "keysteps that are a text": {"keysteps": '"ab"'},
    "more keysteps than weights": {
        "keysteps": json.dumps(["x"] * 1_000_000),
        "options": json.dumps(asdict(SMALL) | {"classes": 1_000_000}),
    },
    "no keysteps": {"keysteps": "[]"},
    "extra that is a list": {"extra": "[1]"},
}


@pytest.mark.parametrize("name", SAID)
def test_a_checkpoint_that_says_what_it_has_not_is_refused(checkpoint, name):
    rewritten(checkpoint, SAID[name])

    assert str(checkpoint) in refused(load_checkpoint, checkpoint)
    refused(lambda: load_encoder(f"own:{checkpoint}").model)
    survived(load_encoder(f"own:{checkpoint}").encode_keysteps, Vocabulary(("x", "y")))
    survived(load_initial, TimeSformer(SMALL), checkpoint, KEYSTEPS)


def test_a_checkpoint_of_many_empty_weights_builds_nothing(checkpoint):
    """As many names as the depth that it claims, and not a number in them."""
    empty = {f"blocks.{number}.x": torch.zeros(0) for number in range(20_000)}
    said = {"options": json.dumps(asdict(SMALL) | {"depth": 15_000})}
    rewritten(checkpoint, said, empty)

    refused(load_checkpoint, checkpoint)
    refused(load_initial, TimeSformer(SMALL), checkpoint, KEYSTEPS)


def test_names_that_no_network_has_are_no_reason_to_fail_loudly(tmp_path):
    save_file({"clip_token": torch.zeros(8), "x": torch.zeros(1)}, tmp_path / "a.safetensors")

    refused(load_initial, TimeSformer(SMALL), tmp_path / "a.safetensors", KEYSTEPS)


@pytest.mark.parametrize("read", [read_weights, read_header, load_checkpoint])
def test_flipped_bytes_and_cut_off_files_are_read_or_refused(checkpoint, read):
    whole = checkpoint.read_bytes()
    for seed in range(ROUNDS):
        chance, data = random.Random(seed), bytearray(whole)
        for _ in range(chance.randrange(1, 8)):
            # Half of them in the header, where they say something.
            end = len(data) if chance.random() < 0.5 else 2000
            data[chance.randrange(end)] = chance.randrange(256)
        if chance.random() < 0.3:
            del data[chance.randrange(len(data)) :]
        checkpoint.write_bytes(data)
        survived(read, checkpoint)


# --- folders of models


def timesformer_folder(folder, state=None, **config):
    from reference_networks import as_of_library

    sizes = {"num_frames": 2, "image_size": 16, "patch_size": 8, "hidden_size": 8}
    sizes |= {"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    content = {"model_type": "timesformer"} | sizes | config
    (folder / "config.json").write_text(json.dumps(content))
    state = as_of_library(TimeSformer(SMALL).state_dict()) if state is None else state
    save_file(state, folder / "model.safetensors")
    return f"timesformer:{folder}"


@pytest.mark.parametrize(
    "config",
    [
        {"num_hidden_layers": 1_000_000},
        {"hidden_size": 1_000_000, "intermediate_size": 4_000_000, "num_attention_heads": 1},
        {"hidden_size": 40_000, "intermediate_size": 160_000, "num_attention_heads": 1},
        {"image_size": 1_000_000},
        {"image_size": 800_000, "patch_size": 800_000},
        {"num_frames": 1_000_000},
        {"hidden_size": -8},
        {"hidden_size": [8]},
        {"image_size": None},
    ],
    ids=str,
)
def test_a_timesformer_folder_that_claims_more_than_it_has_is_refused(tmp_path, config):
    name = timesformer_folder(tmp_path, **config)

    assert str(tmp_path) in refused(lambda: load_encoder(name).model)


def test_a_timesformer_folder_without_blocks_builds_none(tmp_path):
    name = timesformer_folder(tmp_path, {"x": torch.zeros(1)}, num_hidden_layers=1_000_000)

    refused(lambda: load_encoder(name).model)


@pytest.fixture(scope="module")
def clip_folder(tmp_path_factory):
    """A small CLIP as the transformers library writes it, but for its tokenizer."""
    from transformers import CLIPConfig, CLIPModel
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    folder = tmp_path_factory.mktemp("clip")
    small = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
    small |= {"num_attention_heads": 2}
    words = small | {"vocab_size": 12, "max_position_embeddings": 8, "eos_token_id": 2}
    sight = small | {"image_size": 16, "patch_size": 8}
    config = CLIPConfig(text_config=words, vision_config=sight, projection_dim=4)
    CLIPModel(config).save_pretrained(folder)
    (folder / "vocab.json").write_text("{}")
    return folder


LARGE = [
    {"vision_config": {"num_hidden_layers": 1_000_000_000}},
    {"vision_config": {"hidden_size": 40_000, "num_attention_heads": 1}},
    {"vision_config": {"intermediate_size": 1 << 40}},
    {"vision_config": {"image_size": 80_000, "patch_size": 1}},
    {"vision_config": {"image_size": -16}},
    {"vision_config": {"num_attention_heads": 0}},
    {"text_config": {"vocab_size": 500_000_000}},
    {"text_config": {"max_position_embeddings": 500_000_000}},
    {"text_config": {"num_hidden_layers": "many"}},
    {"projection_dim": 1 << 30},
    {"text_config": 7},
]


@pytest.mark.parametrize("change", LARGE, ids=str)
def test_a_folder_whose_config_claims_more_than_its_weights_is_refused(
    clip_folder, tmp_path, change
):
    for path in clip_folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    content = json.loads((tmp_path / "config.json").read_text())
    for name, value in change.items():
        content[name] = content[name] | value if isinstance(value, dict) else value
    (tmp_path / "config.json").write_text(json.dumps(content))

    said = refused(lambda: load_encoder(f"clip:{tmp_path}").model)

    assert str(tmp_path) in said


@pytest.mark.parametrize("name", HEADERS)
def test_hostile_weights_of_a_library_model_are_refused(clip_folder, tmp_path, name):
    for kind in ("clip", "text"):
        folder = tmp_path / kind
        folder.mkdir()
        for path in clip_folder.iterdir():
            (folder / path.name).write_bytes(path.read_bytes())
        (folder / "model.safetensors").write_bytes(HEADERS[name])

        encoder = load_encoder(f"{kind}:{folder}")
        if kind == "clip":
            refused(lambda encoder=encoder: encoder.model)
        else:
            refused(encoder.encode_texts, [f"stir {name}"])


def test_a_text_model_whose_config_claims_more_than_its_weights_is_refused(tmp_path):
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 8}
    BertModel(BertConfig(vocab_size=9, num_hidden_layers=1, **sizes)).save_pretrained(tmp_path)
    content = json.loads((tmp_path / "config.json").read_text())
    for change in ({"num_hidden_layers": 1 << 40}, {"vocab_size": 1 << 30}, {"hidden_size": []}):
        (tmp_path / "config.json").write_text(json.dumps(content | change))
        assert str(tmp_path) in refused(load_encoder(f"text:{tmp_path}").encode_texts, ["stir"])


def test_a_folder_never_asks_whether_its_code_may_be_run(clip_folder, tmp_path, monkeypatch):
    """The library would ask, and take an answer for a consent."""
    for path in clip_folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    harm = {"AutoTokenizer": ["harm.Harm", None], "AutoConfig": "harm.Harm"}
    (tmp_path / "harm.py").write_text("raise SystemExit('run')")
    said = {"tokenizer_class": "Harm", "auto_map": harm}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(said))
    monkeypatch.setattr("builtins.input", lambda *_: "y")

    refused(lambda: load_encoder(f"clip:{tmp_path}").model)


@pytest.mark.parametrize(
    "settings",
    [
        {"size": 1_000_000, "crop_size": 16},
        {"size": {"height": -1, "width": 16}},
        {"size": 0},
        {"size": 16, "crop_size": {"height": 1 << 40, "width": 1 << 40}},
        {"image_std": [0, 1, 1]},
        {"image_mean": [float("nan")] * 3},
        {"rescale_factor": "x"},
    ],
    ids=str,
)
def test_pictures_of_any_size_are_not_read(settings):
    said = refused(make_pixels, "clip", (16, 16), {"image_mean": [0.5] * 3} | settings)

    assert "must be the settings of an image processor" in said


def test_layers_of_videoclip_are_counted_and_not_believed():
    from stepgraph.networks.videoclip import options_of

    names = ("text_encoder.encoder.layer.999999999.x", "video_encoder.bert.encoder.layer.7777.y")
    found = options_of({name: torch.zeros(1) for name in names})

    assert (found.text_layers, found.video_layers) == (1, 1)


def test_sizes_of_weights_without_a_number_are_not_made(tmp_path):
    from stepgraph.networks.videoclip import VideoCLIP, options_of
    from stepgraph.networks.weights import make_filled

    name = "text_encoder.encoder.layer.0.intermediate.dense.weight"
    weights = {name: torch.zeros(1 << 40, 0)}
    options = options_of(weights)

    said = refused(make_filled, lambda: VideoCLIP(options), weights, tmp_path / "x.pt")
    assert "must hold the" in said


# --- the state of a training


@pytest.fixture
def state(tmp_path):
    network = torch.nn.Linear(3, 2)
    optimiser = torch.optim.AdamW(network.parameters())
    network(torch.ones(1, 3)).sum().backward()
    optimiser.step()
    path, record = tmp_path / "last.pt", EpochRecord(1, 1, 0.1, 0.5, 0.5, 3)
    save_state(path, {"seed": 1}, Position(1, 2, [0.5, 0.25], [record]), network, optimiser)
    return path


def go_on(path):
    found = read_state(path)
    require_same(path, found, {"seed": 1})
    return position_of(path, found)


def test_a_state_comes_back(state):
    found = go_on(state)

    assert (found.epoch, found.step, found.losses) == (1, 2, [0.5, 0.25])


def change(path, **fields):
    content = torch.load(path, weights_only=True) | fields
    torch.save({name: one for name, one in content.items() if one is not ...}, path)


@pytest.mark.parametrize(
    "fields",
    [
        {"identity": DEEP},
        {"identity": 7},
        {"identity": "[]"},
        {"identity": ...},
        {"records": [{"phase": 1}]},
        {"records": 7},
        {"records": [7]},
        {"losses": [0.5]},
        {"losses": ...},
        {"sums": [1, 2, 3, 4, 5]},
        {"epoch": "one"},
        {"step": -1},
        {"epoch": 2},
        {"format": 7},
        {"version": 99},
    ],
    ids=lambda fields: str(fields)[:40],
)
def test_a_state_with_other_fields_is_refused(state, fields):
    change(state, **fields)

    assert str(state) in refused(go_on, state)


def test_a_state_that_claims_memory_takes_none(state):
    """A tensor that repeats one number a billion times, and an archive that is compressed."""
    change(state, losses=torch.zeros(1).expand(1 << 31))
    refused(go_on, state)

    import zipfile

    buffer = io.BytesIO()
    with zipfile.ZipFile(state) as old, zipfile.ZipFile(buffer, "w") as new:
        for info in old.infolist():
            new.writestr(info.filename, old.read(info), zipfile.ZIP_DEFLATED)
    state.write_bytes(buffer.getvalue())
    refused(go_on, state)


def test_damaged_states_are_read_or_refused(state):
    whole = state.read_bytes()
    for seed in range(ROUNDS):
        chance, data = random.Random(seed), bytearray(whole)
        for _ in range(chance.randrange(1, 20)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        if chance.random() < 0.3:
            del data[chance.randrange(len(data)) :]
        state.write_bytes(data)
        survived(go_on, state)


def test_numbers_that_a_state_repeats_are_not_a_reason_to_fail(state):
    assert np.isfinite(go_on(state).losses).all()
