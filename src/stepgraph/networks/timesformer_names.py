"""Names and shapes of the weights of a TimeSformer in the transformers library."""

from __future__ import annotations

import math
import re
import tomllib
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from stepgraph.errors import DataError

PREFIX = "timesformer."
BLOCK = re.compile(r"(?:blocks|timesformer\.encoder\.layer)\.(\d+)\.")
HEAD = "head."
_NAMES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_EMBEDDINGS, _MODULES, _BLOCK = _NAMES["embeddings"], _NAMES["modules"], _NAMES["block"]


def their_name(name: str) -> str:
    """Return the library's name for a weight of ours.

    >>> their_name("blocks.3.time.out.bias")
    'timesformer.encoder.layer.3.temporal_attention.output.dense.bias'
    """
    if name in _EMBEDDINGS:
        return str(_EMBEDDINGS[name])
    module, _, kind = name.rpartition(".")
    if module in _MODULES:
        return f"{_MODULES[module]}.{kind}"
    _, number, part = module.split(".", 2)
    return f"timesformer.encoder.layer.{number}.{_BLOCK[part]}.{kind}"


def in_our_shape(name: str, weight: Tensor, shape: torch.Size) -> Tensor | None:
    """Reshape a weight of the library to ours; return None for a head of other classes.

    Embeddings of another number of places or frames are resampled as the library does it.
    """
    with suppress(IndexError, RuntimeError):  # of a weight with too few dimensions
        weight = _reshaped(name, weight.float(), shape)
    if weight.shape == shape:
        return weight
    if name.startswith(HEAD) and weight.shape[1:] == shape[1:]:
        return None
    raise DataError(
        f"weight {their_name(name)!r} must fit the shape {tuple(shape)}, "
        f"got {tuple(weight.shape)}; are the options those of the checkpoint?"
    )


def _reshaped(name: str, weight: Tensor, shape: torch.Size) -> Tensor:
    if name == "patches.weight":
        return weight.flatten(1)
    if name == "clip_token":
        return weight.flatten()
    if name not in _EMBEDDINGS:
        return weight
    weight = weight.reshape(-1, weight.shape[-1])
    if name == "time_embedding":
        return _stretched(weight, (shape[0],))
    side = math.isqrt(shape[0] - 1)
    return torch.cat([weight[:1], _stretched(weight[1:], (side, side))])


def _stretched(embeddings: Tensor, sides: tuple[int, ...]) -> Tensor:
    """Resample embeddings of a line or a square to other sides, by nearest neighbour."""
    # Embeddings for a hundred times as many belong to another network.
    wanted = math.prod(sides)
    if len(embeddings) == wanted or 100 * len(embeddings) < wanted:
        return embeddings
    old = round(len(embeddings) ** (1 / len(sides)))
    if not old or old ** len(sides) != len(embeddings):
        raise DataError(
            f"position embeddings must be of a square grid, got {len(embeddings)}; "
            f"are they of a TimeSformer?"
        )
    grid = embeddings.T.reshape(1, -1, *[old] * len(sides))
    return F.interpolate(grid, size=sides, mode="nearest").flatten(2)[0].T.contiguous()
