"""S3D with self-gating, and the text tower that MIL-NCE trained with it.

S3D (Xie et al., 2018, section 4) is Inception with every 3-D filter split in two, one over the
picture and one over time, and a gate behind each.  MIL-NCE (Miech et al., 2020) trained it with a
small network over word vectors, so that a clip and its narration share 512 dimensions.
Names of weights are those of the published ``s3d_howto100m.pth``.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WIDTH = 512
"""Dimensions of the space that clips and texts share."""

MAX_WORDS = 16
"""Maximum number of words of a text, as in training."""

PUBLISHED_WORDS = 66_250
"""Rows of the published table of word vectors."""

# Channels of the branches of each block of Inception: alone; before and after the large filter
# of the second; the same of the third; after pooling (S3D keeps those of GoogLeNet).
_MIXED = {
    "mixed_3b": (64, 96, 128, 16, 32, 32),
    "mixed_3c": (128, 128, 192, 32, 96, 64),
    "mixed_4b": (192, 96, 208, 16, 48, 64),
    "mixed_4c": (160, 112, 224, 24, 64, 64),
    "mixed_4d": (128, 128, 256, 24, 64, 64),
    "mixed_4e": (112, 144, 288, 32, 64, 64),
    "mixed_4f": (256, 160, 320, 32, 128, 128),
    "mixed_5b": (256, 160, 320, 32, 128, 128),
    "mixed_5c": (384, 192, 384, 48, 128, 128),
}
_STEM = 192  # channels before the first of them
_WORD = re.compile(r"[\w']+")


def _conv(channels: int, out: int, size: int = 1) -> nn.Sequential:
    """Convolution, batch normalisation and ReLU, or a pair of them: over space, then over time."""
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    shapes = [(1, size, size), (size, 1, 1)] if size > 1 else [(1, 1, 1)]
    for number, shape in enumerate(shapes, start=1):
        layers[f"conv{number}"] = nn.Conv3d(channels, out, shape, padding="same", bias=False)
        layers[f"bn{number}"] = nn.BatchNorm3d(out)
        layers[f"relu{number}"] = nn.ReLU()
        channels = out
    return nn.Sequential(layers)


class _Stem(nn.Module):
    """First convolution: 2 x 4 x 4 cubes of 2 x 2 x 2 pixels, whose eight pixels are channels.

    A filter over cubes equals one over pixels, twice as large and of stride 2; only its weights
    are stored as one over cubes (channels: time, height, width, colour).
    """

    def __init__(self, out: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv3d(3 * 8, out, (2, 4, 4), bias=False)
        self.bn1 = nn.BatchNorm3d(out)

    def forward(self, clips: Tensor) -> Tensor:
        cubes = self.conv1.weight.reshape(-1, 2, 2, 2, 3, 2, 4, 4)
        filters = torch.einsum("otvwcTVW->ocTtVvWw", cubes).reshape(-1, 3, 4, 8, 8)
        # Filters of even size have no middle: the padding has one cube more behind than before.
        found = F.conv3d(F.pad(clips, (2, 4, 2, 4, 0, 2)), filters, stride=2)
        return F.relu(self.bn1(found))


class _Gate(nn.Module):
    """Scale channels by a logistic function of their mean over the whole clip."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.fc = nn.Linear(channels, channels)

    def forward(self, clips: Tensor) -> Tensor:
        gate = torch.sigmoid(self.fc(clips.mean(dim=(2, 3, 4))))
        return clips * gate[:, :, None, None, None]


class _Mixed(nn.Module):
    """One block of Inception: four branches side by side, each with its gate."""

    def __init__(self, channels: int, widths: Sequence[int]) -> None:
        super().__init__()
        alone, before_1, after_1, before_2, after_2, pooled = widths
        self.conv_b0 = _conv(channels, alone)
        self.conv_b1_a = _conv(channels, before_1)
        self.conv_b1_b = _conv(before_1, after_1, 3)
        self.conv_b2_a = _conv(channels, before_2)
        self.conv_b2_b = _conv(before_2, after_2, 3)
        self.conv_b3_b = _conv(channels, pooled)
        self.gating_b0 = _Gate(alone)
        self.gating_b1 = _Gate(after_1)
        self.gating_b2 = _Gate(after_2)
        self.gating_b3 = _Gate(pooled)
        self.width = alone + after_1 + after_2 + pooled

    def forward(self, clips: Tensor) -> Tensor:
        branches = (
            self.gating_b0(self.conv_b0(clips)),
            self.gating_b1(self.conv_b1_b(self.conv_b1_a(clips))),
            self.gating_b2(self.conv_b2_b(self.conv_b2_a(clips))),
            self.gating_b3(self.conv_b3_b(F.max_pool3d(clips, 3, stride=1, padding=1))),
        )
        return torch.cat(branches, dim=1)


class _Words(nn.Module):
    """Text tower: the maximum of each feature over all words of a text, as one vector."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.word_embd = nn.Embedding(words, 300)
        self.fc1 = nn.Linear(300, 2048)
        self.fc2 = nn.Linear(2048, WIDTH)

    def forward(self, words: Tensor) -> Tensor:
        features: Tensor = F.relu(self.fc1(self.word_embd(words)))
        vectors: Tensor = self.fc2(features.amax(dim=1))
        return vectors


class S3D(nn.Module):
    """Network of MIL-NCE: embeds clips and texts in one space.

    Row 0 of the table of word vectors is padding; with ``words=None`` there is no text tower.
    """

    def __init__(self, words: int | None = PUBLISHED_WORDS) -> None:
        super().__init__()
        self.conv1 = _Stem(64)
        self.conv_2b = _conv(64, 64)
        self.conv_2c = _conv(64, _STEM, 3)
        self.gating = _Gate(_STEM)
        channels = _STEM
        for name, widths in _MIXED.items():
            block = _Mixed(channels, widths)
            self.add_module(name, block)
            channels = block.width
        self.fc = nn.Linear(channels, WIDTH)
        self.text_module = _Words(words) if words else None

    def features(self, clips: Tensor) -> Tensor:
        """Mean of the last block, shape (B, 1024), for probing; see :meth:`forward`."""
        if any(side % 2 for side in clips.shape[2:]):
            raise ValueError(f"frames, height and width must be even, got {clips.shape[2:]}")
        found = _pool(self.conv1(clips), (1, 3, 3))
        found = _pool(self.gating(self.conv_2c(self.conv_2b(found))), (1, 3, 3))
        for name in _MIXED:
            if name == "mixed_4b":
                found = _pool(found, (3, 3, 3))
            if name == "mixed_5b":
                found = _pool(found, (2, 2, 2))
            found = self.get_submodule(name)(found)
        return found.mean(dim=(2, 3, 4))

    def forward(self, clips: Tensor) -> Tensor:
        """Encode clips of RGB between 0 and 1, shape (B, 3, T, H, W), as shape (B, 512)."""
        vectors: Tensor = self.fc(self.features(clips))
        return vectors

    def embed_words(self, words: Tensor) -> Tensor:
        """Encode the positions of words, shape (N, MAX_WORDS), as shape (N, 512)."""
        if self.text_module is None:
            raise ValueError("a network without a text tower cannot encode texts")
        vectors: Tensor = self.text_module(words)
        return vectors


def _pool(clips: Tensor, size: tuple[int, int, int]) -> Tensor:
    """Max-pool, and halve each side where the window is larger than 1, rounding up."""
    stride = tuple(min(side, 2) for side in size)
    # Where a neighbourhood of three is laid every two, the missing one is added at the end;
    # nothing here is below zero, so that zeros win nothing.
    after = [part for side in reversed(size) for part in (0, max(side - 2, 0))]
    return F.max_pool3d(F.pad(clips, after), size, stride, ceil_mode=True)


def find_words(texts: Sequence[str], positions: Mapping[str, int]) -> Tensor:
    """Look up the rows of the words of texts, shape (N, MAX_WORDS), padded with 0.

    Texts are converted to lower case, and words without a vector are left out.

    >>> find_words(["Don't stir the Soup!"], {"stir": 7, "soup": 2})[0, :3].tolist()
    [7, 2, 0]
    """
    found = torch.zeros(len(texts), MAX_WORDS, dtype=torch.int64)
    for row, text in enumerate(texts):
        words = _WORD.findall(text.lower())
        ids = [positions[word] for word in words if word in positions][:MAX_WORDS]
        found[row, : len(ids)] = torch.tensor(ids, dtype=torch.int64)
    return found
