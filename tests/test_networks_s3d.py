"""S3D of MIL-NCE gives what its published architecture gives, weight for weight."""

import numpy as np
import pytest
import torch

import reference_networks as reference
from stepgraph.errors import DataError
from stepgraph.networks.s3d import MAX_WORDS, S3D, find_words
from stepgraph.networks.weights import make_filled, read_weights

WORDS = 50

# Inception's table (Szegedy et al., 2015), which S3D keeps: channels in; the branch of 1 x 1; the
# next two before and after their large filter; the one after pooling; and their sum.
TABLE = {
    "mixed_3b": (192, 64, 96, 128, 16, 32, 32, 256),
    "mixed_3c": (256, 128, 128, 192, 32, 96, 64, 480),
    "mixed_4b": (480, 192, 96, 208, 16, 48, 64, 512),
    "mixed_4c": (512, 160, 112, 224, 24, 64, 64, 512),
    "mixed_4d": (512, 128, 128, 256, 24, 64, 64, 512),
    "mixed_4e": (512, 112, 144, 288, 32, 64, 64, 528),
    "mixed_4f": (528, 256, 160, 320, 32, 128, 128, 832),
    "mixed_5b": (832, 256, 160, 320, 32, 128, 128, 832),
    "mixed_5c": (832, 384, 192, 384, 48, 128, 128, 1024),
}
# Of 32 frames of 224 x 224: channels, time, height, width behind each stage.
SHAPES = {
    "conv1": (64, 16, 112, 112),
    "conv_2c": (192, 16, 56, 56),
    "mixed_3b": (256, 16, 28, 28),
    "mixed_3c": (480, 16, 28, 28),
    "mixed_4b": (512, 8, 14, 14),
    "mixed_4c": (512, 8, 14, 14),
    "mixed_4d": (512, 8, 14, 14),
    "mixed_4e": (528, 8, 14, 14),
    "mixed_4f": (832, 8, 14, 14),
    "mixed_5b": (832, 4, 7, 7),
    "mixed_5c": (1024, 4, 7, 7),
}


def randomised(module, seed=0):
    """Random weights whose effect shows in every layer, running statistics included."""
    generator = torch.Generator().manual_seed(seed)
    for name, weight in module.state_dict().items():
        if name.endswith("num_batches_tracked"):
            continue
        draw = torch.randn(weight.shape, generator=generator)
        if name.endswith("running_var") or (".bn" in name and name.endswith("weight")):
            weight.copy_(draw.abs() * 0.3 + 0.7)
        elif weight.ndim > 1:
            weight.copy_(draw * (1.4 / weight[0].numel() ** 0.5))
        else:
            weight.copy_(draw * 0.3)
    return module.eval()


@pytest.fixture(scope="module")
def network():
    return randomised(S3D(WORDS))


@pytest.fixture(scope="module")
def weights(network):
    return dict(network.state_dict())


@pytest.mark.parametrize(
    "shape", [(2, 8, 32, 32), (1, 16, 32, 48), (1, 6, 40, 24), (1, 2, 18, 34)], ids=str
)
def test_it_agrees_with_the_published_architecture(network, weights, shape):
    batch, frames, height, width = shape
    clips = torch.rand(batch, 3, frames, height, width, generator=torch.manual_seed(1))

    with torch.inference_mode():
        found = network(clips), network.features(clips)
        expected = reference.s3d(weights, clips), reference.s3d_features(weights, clips)

    assert found[0].shape == (batch, 512)
    assert found[1].shape == (batch, 1024)
    for one, other in zip(found, expected, strict=True):
        assert other.std() > 0.05
        assert (one - other).abs().max() < 1e-4


def test_stages_have_the_published_shapes():
    found = {}
    with torch.device("meta"):
        network = S3D(WORDS).eval()
        clips = torch.zeros(1, 3, 32, 224, 224)
    for name in SHAPES:
        network.get_submodule(name).register_forward_hook(
            lambda _, __, output, name=name: found.update({name: tuple(output.shape[1:])})
        )

    network(clips)

    assert found == SHAPES


def test_the_reference_has_the_published_shapes_too(weights):
    found = {}

    reference.s3d_features(weights, torch.rand(1, 3, 8, 32, 32), found)

    # A quarter of the frames, a seventh of the pixels.
    assert found == {name: (c, t // 4, h // 7, v // 7) for name, (c, t, h, v) in SHAPES.items()}


def test_every_weight_of_the_table_is_there_and_no_other():
    def conv(name, channels, out, *sizes):
        for number, size in enumerate(sizes, start=1):
            yield f"{name}.conv{number}.weight", (out, channels, *size)
            channels = out
            for part in ("weight", "bias", "running_mean", "running_var"):
                yield f"{name}.bn{number}.{part}", (out,)
            yield f"{name}.bn{number}.num_batches_tracked", ()

    def fully(name, channels, out):
        yield from ((f"{name}.weight", (out, channels)), (f"{name}.bias", (out,)))

    one, split = ((1, 1, 1),), ((1, 3, 3), (3, 1, 1))
    expected = [*conv("conv1", 24, 64, (2, 4, 4)), *conv("conv_2b", 64, 64, *one)]
    expected += [*conv("conv_2c", 64, 192, *split), *fully("gating.fc", 192, 192)]
    for block, (channels, b0, b1a, b1b, b2a, b2b, b3, _) in TABLE.items():
        expected += conv(f"{block}.conv_b0", channels, b0, *one)
        expected += conv(f"{block}.conv_b1_a", channels, b1a, *one)
        expected += conv(f"{block}.conv_b1_b", b1a, b1b, *split)
        expected += conv(f"{block}.conv_b2_a", channels, b2a, *one)
        expected += conv(f"{block}.conv_b2_b", b2a, b2b, *split)
        expected += conv(f"{block}.conv_b3_b", channels, b3, *one)
        for branch, width in enumerate((b0, b1b, b2b, b3)):
            expected += fully(f"{block}.gating_b{branch}.fc", width, width)
    expected += [*fully("fc", 1024, 512), ("text_module.word_embd.weight", (66_250, 300))]
    expected += fully("text_module.fc1", 300, 2048)
    expected += fully("text_module.fc2", 2048, 512)

    with torch.device("meta"):
        state = S3D().state_dict()

    assert {name: tuple(weight.shape) for name, weight in state.items()} == dict(expected)


def test_it_has_as_many_parameters_as_published():
    with torch.device("meta"):
        network = S3D()

    def count(part):
        return sum(p.numel() for n, p in network.named_parameters() if part in f".{n}")

    text = 66_250 * 300 + (300 + 1) * 2048 + (2048 + 1) * 512
    assert count(".text_module.") == text == 21_540_536
    assert count(".fc.weight") + count(".fc.bias") - count(".gating") == 1025 * 512
    branches = [width for row in TABLE.values() for width in (row[1], row[3], row[5], row[6])]
    gates = sum(width * (width + 1) for width in (192, *branches))
    assert count(".gating") == gates
    stem = 24 * 64 * 2 * 4 * 4 + 2 * 64
    # S3D of the torchvision library is published with 8,320,048: with another stem (7 x 7 of 3
    # channels, then 7 in time), without gates, and with 400 classes behind 1,024 channels.
    theirs = 8_320_048 - (3 * 64 * 49 + 2 * 64 + 64 * 64 * 7 + 2 * 64) - (1024 + 1) * 400
    assert count(".") == theirs + stem + gates + 1025 * 512 + text == 31_211_336


def test_a_text_is_the_strongest_of_its_words_and_of_silence(network, weights):
    positions = {f"w{number}": number for number in range(1, WORDS)}
    texts = ["w1 w7 w49", "W3, w3! (w3)", " ".join(f"w{n}" for n in range(1, 40)), ""]

    words = find_words(texts, positions)
    with torch.inference_mode():
        found = network.embed_words(words)

    said = [[1, 7, 49], [3, 3, 3], list(range(1, MAX_WORDS + 1)), []]
    for row, numbers in zip(found, said, strict=True):
        padded = numbers + [0] * (MAX_WORDS - len(numbers))
        assert (row - reference.s3d_text(weights, padded)).abs().max() < 1e-4
    assert found.shape == (4, 512)


def test_words_are_lower_case_runs_of_letters_and_apostrophes():
    positions = {"don't": 1, "add": 2, "½": 3, "salt": 4, "crème": 5, "2": 6, "_": 7}

    found = find_words(["Don't ADD salt-crème", "2 x _ ½ unknown", "..."], positions)

    assert found[:, :4].tolist() == [[1, 2, 4, 5], [6, 7, 3, 0], [0, 0, 0, 0]]
    assert found.shape == (3, MAX_WORDS)


def test_odd_sides_are_refused(network):
    with pytest.raises(ValueError, match=r"must be even, got torch.Size\(\[7, 32, 32\]\)"):
        network(torch.zeros(1, 3, 7, 32, 32))


@pytest.mark.parametrize("zipped", [True, False])
def test_a_published_file_is_read_and_gives_the_same(tmp_path, network, weights, zipped):
    path = tmp_path / "s3d_howto100m.pth"
    torch.save(weights, path, _use_new_zipfile_serialization=zipped)
    clips = torch.rand(1, 3, 4, 32, 32)

    other = make_filled(lambda: S3D(WORDS), read_weights(path), path).eval()

    with torch.inference_mode():
        assert torch.equal(other(clips), network(clips))


def test_a_file_of_another_network_is_refused_by_name(tmp_path, weights):
    path = tmp_path / "a.pth"
    without = {n: w for n, w in weights.items() if "mixed_5c" not in n}
    shorter = weights | {"fc.bias": torch.zeros(400)}

    with pytest.raises(
        DataError, match=r"a.pth: must hold the .* weights of S3D, got no 'mixed_5c"
    ):
        make_filled(lambda: S3D(WORDS), without, path)
    with pytest.raises(DataError, match=r"'fc.bias' of shape \(400,\) instead of \(512,\); is it"):
        make_filled(lambda: S3D(WORDS), shorter, path)


def test_a_network_without_a_text_tower_needs_no_words(network, weights):
    eye = make_filled(lambda: S3D(None), weights, "here").eval()
    clips = torch.rand(1, 3, 4, 32, 32)

    with torch.inference_mode():
        assert np.array_equal(eye(clips).numpy(), network(clips).numpy())
    with pytest.raises(ValueError, match="cannot encode texts"):
        eye.embed_words(torch.zeros(1, 16, dtype=torch.int64))
