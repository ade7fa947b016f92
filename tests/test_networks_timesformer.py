"""TimeSformer beside the transformers library's, its files, and its kernels beside their twins."""

import errno
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch.nn import functional as F

from reference_networks import as_of_library
from stepgraph.errors import ConfigError, DataError
from stepgraph.networks import timesformer
from stepgraph.networks.checkpoints import load_checkpoint, read_header, save_checkpoint
from stepgraph.networks.timesformer import (
    TimeSformer,
    TimeSformerOptions,
    from_hf,
    load_hf,
    normalize,
)

SMALL = TimeSformerOptions(5, frames=3, size=32, patch=16, width=32, depth=2, heads=2)
SHAPES = [
    TimeSformerOptions(7, frames=8, size=32, patch=16, width=32, depth=3, heads=4),
    TimeSformerOptions(5, frames=3, size=48, patch=16, width=24, depth=2, heads=2),
    TimeSformerOptions(3, frames=1, size=16, patch=8, width=16, depth=1, heads=2),
    TimeSformerOptions(11, frames=5, size=32, patch=8, width=33, depth=2, heads=3),
]
KEYSTEPS = ("boil water", "add leaves", "wait", "pour", "drink: ☕")


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def library_of(options, seed=0):
    """The transformers library's model of that shape, its weights all random."""
    from transformers import TimesformerConfig, TimesformerForVideoClassification

    config = TimesformerConfig(
        image_size=options.size,
        num_frames=options.frames,
        patch_size=options.patch,
        hidden_size=options.width,
        num_hidden_layers=options.depth,
        num_attention_heads=options.heads,
        intermediate_size=4 * options.width,
        num_labels=options.classes,
    )
    torch.manual_seed(seed)
    library = TimesformerForVideoClassification(config).eval()
    for weight in library.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return library


def model_of(options, seed=0):
    torch.manual_seed(seed)
    model = TimeSformer(options)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return model


def clips_of(options, count=2, seed=1):
    generator = torch.Generator().manual_seed(seed)
    shape = (count, options.frames, 3, options.size, options.size)
    return torch.randn(shape, generator=generator)


@pytest.mark.parametrize("options", SHAPES, ids=str)
def test_it_agrees_with_the_library_forward_and_backward(options):
    library, model = library_of(options), TimeSformer(options)
    clips, labels = clips_of(options), torch.tensor([0, 1])

    has_head = load_hf(model, library.state_dict())
    theirs, ours = library(pixel_values=clips).logits, model(clips)
    F.cross_entropy(theirs, labels).backward()
    F.cross_entropy(ours, labels).backward()

    assert has_head
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-4)
    grads = as_of_library({name: weight.grad for name, weight in model.named_parameters()})
    for name, weight in library.named_parameters():
        torch.testing.assert_close(grads[name], weight.grad, rtol=0, atol=1e-4, msg=name)


def test_its_features_are_what_the_library_gives_its_head():
    library, model = library_of(SMALL), TimeSformer(SMALL)
    load_hf(model, library.state_dict())
    clips = clips_of(SMALL)

    theirs = library.timesformer(pixel_values=clips).last_hidden_state[:, 0]

    torch.testing.assert_close(model.features(clips), theirs, rtol=0, atol=1e-4)


def test_clips_do_not_see_each_other():
    model, clips = model_of(SMALL), clips_of(SMALL, count=3)

    apart = torch.cat([model(clip[None]) for clip in clips])

    torch.testing.assert_close(model(clips), apart, rtol=0, atol=1e-5)


@pytest.mark.parametrize("options", SHAPES, ids=str)
def test_names_of_the_library_come_back_as_they_were(options):
    state = library_of(options).state_dict()

    back = as_of_library(from_hf(state, options))

    assert back.keys() == state.keys()
    assert all(torch.equal(back[name], weight) for name, weight in state.items())


@pytest.mark.parametrize("size", [64, 96])
def test_embeddings_are_stretched_to_another_size_as_the_library_does(size):
    library, other = library_of(SMALL), replace(SMALL, size=size)
    model, clips = TimeSformer(other), clips_of(other)

    load_hf(model, library.state_dict())

    # The library does so by itself, where a clip is a multiple of the size it was made for.
    theirs = library(pixel_values=clips).logits
    torch.testing.assert_close(model(clips), theirs, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("frames", "nearest"), [(6, [0, 0, 1, 1, 2, 2]), (2, [0, 1]), (5, [0, 0, 1, 1, 2]), (1, [0])]
)
def test_embeddings_are_stretched_to_other_frames(frames, nearest):
    library, model = library_of(SMALL), TimeSformer(replace(SMALL, frames=frames))

    load_hf(model, library.state_dict())

    expected = library.timesformer.embeddings.time_embeddings[0, nearest]
    assert torch.equal(model.time_embedding, expected)


def test_embeddings_are_stretched_to_any_square():
    library, model = library_of(SMALL), TimeSformer(replace(SMALL, size=48))

    load_hf(model, library.state_dict())

    nearest = [0, 1, 1, 2, 1, 1, 2, 3, 3, 4]  # the clip's, then 3 x 3 places from 2 x 2
    expected = library.timesformer.embeddings.position_embeddings[0, nearest]
    assert torch.equal(model.place_embedding, expected)


def test_a_head_of_other_classes_stays_as_it_was_drawn():
    library, model = library_of(SMALL), TimeSformer(replace(SMALL, classes=9))
    before = model.head.weight.clone()

    has_head = load_hf(model, library.state_dict())

    assert not has_head
    assert torch.equal(model.head.weight, before)
    assert torch.equal(model.norm.weight, library.timesformer.layernorm.weight)


def test_a_model_of_the_library_without_a_head_can_be_loaded():
    library, model = library_of(SMALL), TimeSformer(SMALL)

    assert not load_hf(model, library.timesformer.state_dict())
    assert torch.equal(model.norm.weight, library.timesformer.layernorm.weight)


def test_the_base_model_has_the_published_number_of_parameters():
    with torch.device("meta"):
        model = TimeSformer(TimeSformerOptions(classes=400))

    # The paper says 121.4 million.
    assert sum(weight.numel() for weight in model.parameters()) == 121_566_352


def test_a_fresh_model_ignores_the_order_of_frames_in_all_blocks_but_one():
    model = TimeSformer(SMALL)

    weights = [block.time_out.weight for block in model.blocks]

    assert weights[0].any()
    assert not any(weight.any() for weight in weights[1:])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"frames": 0}, "frames of a TimeSformer must be a whole number, 1 to 1,000,000, got 0"),
        ({"depth": 2.0}, "depth .* must be a whole number, 1 to 1,000, got 2.0"),
        ({"size": 40}, "size of a TimeSformer must be a multiple of its patch, got 40 and 16"),
        ({"heads": 5}, "width of a TimeSformer must be a multiple of its heads, got 32 and 5"),
    ],
)
def test_impossible_shapes_are_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        replace(SMALL, **change)


def test_clips_of_another_shape_are_refused():
    with pytest.raises(DataError, match=r"\(B, 3, 3, 32, 32\), got \(2, 4, 3, 32, 32\)"):
        TimeSformer(SMALL)(torch.zeros(2, 4, 3, 32, 32))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.pop("timesformer.layernorm.bias"), "must have 'timesformer.layernorm.bias'"),
        (lambda s: s.clear() or s.update(x=torch.ones(1)), "must have '.*', got 1 others"),
        (lambda s: s.update({"timesformer.encoder.layer.2.x": torch.ones(1)}), "2 blocks, got 3"),
        (
            lambda s: s.update({"timesformer.layernorm.bias": torch.ones(3)}),
            r"'timesformer.layernorm.bias' must fit the shape \(32,\), got \(3,\)",
        ),
        (
            lambda s: s.update(
                {"timesformer.embeddings.position_embeddings": torch.ones(1, 8, 32)}
            ),
            "must be of a square grid, got 7",
        ),
    ],
)
def test_weights_of_something_else_are_refused(change, message):
    state = dict(library_of(SMALL).state_dict())
    change(state)

    with pytest.raises(DataError, match=message):
        from_hf(state, SMALL)


def test_pixels_are_normalised_as_the_published_model_expects():
    pixels = torch.zeros(1, 2, 4, 6, 3, dtype=torch.uint8)
    pixels[0, 1, 2, 5] = torch.tensor([255, 51, 0], dtype=torch.uint8)

    clips = normalize(pixels)

    assert clips.shape == (1, 2, 3, 4, 6)
    expected = (torch.tensor([1.0, 0.2, 0.0]) - 0.45) / 0.225
    torch.testing.assert_close(clips[0, 1, :, 2, 5], expected)
    torch.testing.assert_close(clips[0, 0], torch.full((3, 4, 6), -2.0))


def test_under_autocast_it_stays_near_float32():
    model, clips = model_of(SMALL), clips_of(SMALL)
    for block in model.blocks:
        torch.nn.init.normal_(block.mlp_in.weight, std=0.1)

    with torch.autocast("cpu", torch.bfloat16):
        half = model(clips)
    full = model(clips)

    assert half.dtype == torch.bfloat16
    assert (half - full).norm() < 0.05 * full.norm()


# --- checkpoints ---------------------------------------------------------------------------


def test_a_checkpoint_comes_back_as_it_was(tmp_path):
    model, path = model_of(SMALL), tmp_path / "new folder" / "model.safetensors"

    save_checkpoint(path, model, KEYSTEPS, {"window": 4.0, "epoch": 3})
    loaded, keysteps = load_checkpoint(path)

    assert keysteps == KEYSTEPS
    assert read_header(path) == (SMALL, KEYSTEPS, {"window": 4.0, "epoch": 3})
    clips = clips_of(SMALL)
    assert torch.equal(loaded(clips), model(clips))
    assert [file.name for file in path.parent.iterdir()] == ["model.safetensors"]


def test_a_checkpoint_must_name_every_class(tmp_path):
    with pytest.raises(DataError, match="a name for each of 5 classes, got 4"):
        save_checkpoint(tmp_path / "model.safetensors", TimeSformer(SMALL), KEYSTEPS[:4])


def test_a_checkpoint_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    path.write_text("what was there")

    open_file = Path.open

    def fill_disk(self, mode="r", *args):
        file = open_file(self, mode, *args)
        if mode != "wb":
            return file
        file.write(b"half of it")
        file.close()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "open", fill_disk)
    with pytest.raises(DataError, match=r"model\.safetensors: cannot be written: No space left"):
        save_checkpoint(path, TimeSformer(SMALL), KEYSTEPS)
    monkeypatch.undo()

    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]
    assert path.read_text() == "what was there"


def test_a_checkpoint_has_the_same_bytes_every_time(tmp_path):
    """Also in another process, where what the library writes comes in another order."""
    model = model_of(SMALL)

    for name in "abc":
        save_checkpoint(tmp_path / name, model, KEYSTEPS, {"window": 1.0})

    assert len({(tmp_path / name).read_bytes() for name in "abc"}) == 1
    header = (tmp_path / "a").read_bytes()[8:]
    assert header.startswith(b'{"__metadata__": {"format": "stepgraph-timesformer", "v')


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (None, "of another kind; a folder of the transformers library is 'timesformer:FOLDER'"),
        ({"format": "stepgraph-timesformer", "version": "2"}, "version 1, got a safetensors file"),
        ({"options": "{}"}, "must have options, keysteps and extra in its header, got"),
        ({"options": json.dumps({"classes": 5, "frames": -1})}, "in its header, got"),
        ({"keysteps": '["one"]'}, "header, got: .*1 keysteps for 5 classes of .5."),
        ({"options": json.dumps({"classes": 5})}, "must hold the 249 weights of TimeS.*, got no"),
        ({"options": '{"classes": 5, "depth": 1000000}'}, "header, got: .*depth .* 1 to 1,000, g"),
    ],
)
def test_a_checkpoint_that_is_none_is_refused(tmp_path, header, message):
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, TimeSformer(SMALL), KEYSTEPS)
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        good = file.metadata()
        state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file(state, path, None if header is None else good | header)

    with pytest.raises(DataError, match=message) as caught:
        load_checkpoint(path)

    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_checkpoint_that_is_cut_off_is_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, TimeSformer(SMALL), KEYSTEPS)
    path.write_bytes(path.read_bytes()[:-100])

    with pytest.raises(
        DataError, match="must be a checkpoint of stepgraph, got a file that is no"
    ):
        load_checkpoint(path)


def test_a_checkpoint_that_is_missing_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"must be a checkpoint .*, got no such file"):
        load_checkpoint(tmp_path / "nowhere.safetensors")


# --- kernels -------------------------------------------------------------------------------

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def agree(fast, slow, inputs, tolerance):
    """Compare results and gradients of two functions, relative to their size."""
    results = []
    for function in (fast, slow):
        own = [value.detach().clone().requires_grad_() for value in inputs]
        out = function(*own)
        weights = torch.linspace(-1, 1, out.numel(), device=out.device).reshape(out.shape)
        results.append([out, *torch.autograd.grad((out.float() * weights).sum(), own)])
    for found, true in zip(*results, strict=True):
        assert (found.float() - true.float()).norm() <= tolerance * true.float().norm()


@on_gpu
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 1e-2)])
@pytest.mark.parametrize(("groups", "size", "heads", "head"), [(37, 8, 3, 64), (5, 96, 2, 32)])
def test_the_attention_kernel_agrees_with_its_twin(
    monkeypatch, dtype, tolerance, groups, size, heads, head
):
    from stepgraph.networks import kernels

    torch.manual_seed(0)
    qkv = torch.randn(groups, size, 3 * heads * head, device="cuda", dtype=dtype)
    monkeypatch.setattr(timesformer, "_KERNELS", None)

    agree(
        lambda x: kernels.attend_within(x, heads),
        lambda x: timesformer.attend_within(x.float(), heads),
        [qkv],
        tolerance,
    )
