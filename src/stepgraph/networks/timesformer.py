"""TimeSformer (Bertasius, Wang and Torresani, ICML 2021): divided attention in time and space.

In every block a patch first attends to the patches at its position in all frames, then to those
of its own frame and to the token of the clip; that token attends to each frame separately, and
takes the mean of the results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from stepgraph.errors import ConfigError, DataError, quoted
from stepgraph.networks import timesformer_names as names

MEAN, DEVIATION = 0.45, 0.225
"""Mean and deviation of every colour channel, as the published weights expect them."""

# A kernel for the GPU, where this torch has the compiler that it needs.
_CAN_COMPILE = bool(torch.version.cuda and find_spec("triton"))
_KERNELS: Any = import_module("stepgraph.networks.kernels") if _CAN_COMPILE else None
_EPSILON = 1e-6
_DEEPEST = 1000  # blocks, which are made one by one
_ATTENTION = ("CUDNN_ATTENTION", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "MATH")
_FASTEST_FIRST = [getattr(SDPBackend, name) for name in _ATTENTION]


@dataclass(frozen=True)
class TimeSformerOptions:
    """The shape of a TimeSformer; the defaults are those of the published base model.

    Attributes
    ----------
    classes
        Number of keysteps.
    frames
        Number of frames of a clip.
    size
        Height and width of a frame in pixels.
    patch
        Height and width of a patch in pixels.
    width
        Number of dimensions of a token.
    depth
        Number of blocks of the network.
    heads
        Number of heads of each attention.
    """

    classes: int
    frames: int = 8
    size: int = 224
    patch: int = 16
    width: int = 768
    depth: int = 12
    heads: int = 12

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            most = _DEEPEST if field.name == "depth" else 1_000_000
            if type(value) is not int or not 1 <= value <= most:
                raise ConfigError(
                    f"{field.name} of a TimeSformer must be a whole number, 1 to {most:,}, "
                    f"got {quoted(value)}"
                )
        for whole, part in (("size", "patch"), ("width", "heads")):
            if getattr(self, whole) % getattr(self, part):
                raise ConfigError(
                    f"{whole} of a TimeSformer must be a multiple of its {part}, got "
                    f"{getattr(self, whole)} and {getattr(self, part)}"
                )

    @property
    def places(self) -> int:
        """Number of patches of a frame."""
        return (self.size // self.patch) ** 2


class Attention(nn.Module):
    """Weights of one attention; the block decides which tokens attend to which."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)


class Block(nn.Module):
    """Attention in time, attention in space, and a two-layer perceptron on every token."""

    def __init__(self, options: TimeSformerOptions) -> None:
        super().__init__()
        width = options.width
        self.frames, self.heads, self.head = options.frames, options.heads, width // options.heads
        self.time_norm = nn.LayerNorm(width, eps=_EPSILON)
        self.time = Attention(width)
        self.time_out = nn.Linear(width, width)
        self.space_norm = nn.LayerNorm(width, eps=_EPSILON)
        self.space = Attention(width)
        self.mlp_norm = nn.LayerNorm(width, eps=_EPSILON)
        self.mlp_in = nn.Linear(width, 4 * width)
        self.mlp_out = nn.Linear(4 * width, width)

    def forward(self, tokens: Tensor, shots: int) -> Tensor:
        """Return all tokens after this block; ``shots`` is the number of tokens of each place."""
        tokens = self._with_time(tokens, shots)
        seen = self._look_in_space(self.space_norm(tokens), shots)
        by_clip = seen[:shots].view(-1, self.frames, seen.shape[1])
        of_clip = by_clip.mean(dim=1, keepdim=True).expand_as(by_clip).flatten(0, 1)
        return self._with_mlp(tokens + torch.slice_scatter(seen, of_clip, end=shots))

    def finish(self, tokens: Tensor, shots: int) -> Tensor:
        """Return the token of each clip after this block, without computing the others."""
        tokens = self._with_time(tokens, shots)
        seen = self._look_for_clip(self.space_norm(tokens), shots)
        of_clip = seen.view(-1, self.frames, seen.shape[1]).mean(dim=1)
        return self._with_mlp(tokens[: shots : self.frames] + of_clip)

    def _with_time(self, tokens: Tensor, shots: int) -> Tensor:
        qkv = self.time.qkv(self.time_norm(tokens)[shots:])
        seen = attend_within(qkv.view(-1, self.frames, qkv.shape[1]), self.heads).flatten(0, 1)
        # One product instead of two on every token: (x A + a) B + b = x (A B) + (a B + b).
        weight = self.time_out.weight @ self.time.out.weight
        bias = (self.time_out.weight * self.time.out.bias).sum(dim=1) + self.time_out.bias
        return tokens + F.pad(F.linear(seen, weight, bias), (0, 0, shots, 0))

    def _with_mlp(self, tokens: Tensor) -> Tensor:
        return tokens + cast(Tensor, self.mlp_out(F.gelu(self.mlp_in(self.mlp_norm(tokens)))))

    def _look_in_space(self, tokens: Tensor, shots: int) -> Tensor:
        query, key, value = (
            part.view(-1, shots, self.heads, self.head).permute(1, 2, 0, 3)
            for part in self.space.qkv(tokens).chunk(3, dim=1)
        )
        with sdpa_kernel(_FASTEST_FIRST, set_priority=True):
            seen = F.scaled_dot_product_attention(query, key, value)
        return self.space.out(seen.permute(2, 0, 1, 3).reshape_as(tokens))  # type: ignore[no-any-return]

    def _look_for_clip(self, tokens: Tensor, shots: int) -> Tensor:
        """Attention of the clip's tokens alone, without computing keys and values of the others.

        The product of a query q and a key K x is (K'q) x, and the weighted sum of V x is V of
        that of x; a bias of keys adds the same to every score, which the softmax cancels.
        """
        heads, head, width = self.heads, self.head, tokens.shape[1]
        to_query, to_key, to_value = self.space.qkv.weight.chunk(3)
        query_bias, _, value_bias = self.space.qkv.bias.chunk(3)
        query = F.linear(tokens[:shots], to_query, query_bias).view(shots, heads, head)
        projected = torch.einsum("she,hed->shd", query, to_key.view(heads, head, width))
        projected = F.pad(projected, (0, 0, 0, -heads % 8))  # matrix units want rows of 16 bytes
        frames = tokens.view(-1, shots, width).transpose(0, 1)
        score = frames @ projected.transpose(1, 2) * head**-0.5
        total = (score.softmax(dim=1).transpose(1, 2) @ frames)[:, :heads]
        seen = torch.einsum("shd,hed->she", total, to_value.view(heads, head, width))
        return self.space.out(seen.flatten(1) + value_bias)  # type: ignore[no-any-return]


def attend_within(qkv: Tensor, heads: int) -> Tensor:
    """Attention within each group: (groups, size, 3 * width) to (groups, size, width)."""
    if _KERNELS is not None and _KERNELS.can_attend(qkv, heads):
        return _KERNELS.attend_within(qkv, heads)  # type: ignore[no-any-return]
    parts = (part.view(*part.shape[:2], heads, -1) for part in qkv.chunk(3, dim=2))
    query, key, value = (part.transpose(1, 2) for part in parts)
    return F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)


class TimeSformer(nn.Module):
    """Network that classifies clips, or gives their features.

    Tokens are the rows of one table, ordered by place, clip and frame; the clip's own token has
    place 0 and a copy for every frame.  So the frames of a place are neighbours, the places of a
    frame (a "shot") are one stride apart, and neither attention copies its input.  Under
    ``torch.autocast`` tokens are bfloat16 from the first product on; weights stay float32.
    """

    def __init__(self, options: TimeSformerOptions) -> None:
        super().__init__()
        self.options = options
        width = options.width
        self.patches = nn.Linear(3 * options.patch**2, width)
        self.clip_token = nn.Parameter(torch.zeros(width))
        self.place_embedding = nn.Parameter(torch.zeros(1 + options.places, width))
        self.time_embedding = nn.Parameter(torch.zeros(options.frames, width))
        self.blocks = nn.ModuleList(Block(options) for _ in range(options.depth))
        self.norm = nn.LayerNorm(width, eps=_EPSILON)
        self.head = nn.Linear(width, options.classes)
        self._draw_weights()

    @property
    def _blocks(self) -> list[Block]:
        return cast("list[Block]", list(self.blocks))

    def _draw_weights(self) -> None:
        """Draw small random weights; attention in time is zero at first in all blocks but one."""
        for name, weight in self.named_parameters():
            if (weight.ndim == 2 and name != "time_embedding") or name == "clip_token":
                nn.init.trunc_normal_(weight, std=0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(weight)
        for block in self._blocks[1:]:
            nn.init.zeros_(block.time_out.weight)

    def forward(self, clips: Tensor) -> Tensor:
        """Logits, shape (B, classes), of normalised clips, shape (B, F, 3, H, W)."""
        return self.head(self.features(clips))  # type: ignore[no-any-return]

    def features(self, clips: Tensor) -> Tensor:
        """Return the token of each clip before the head, normalised, shape (B, width)."""
        tokens = self._embed(clips)
        shots = clips.shape[0] * clips.shape[1]
        *first, last = self._blocks
        for block in first:
            tokens = block(tokens, shots)
        return self.norm(last.finish(tokens, shots))  # type: ignore[no-any-return]

    def _embed(self, clips: Tensor) -> Tensor:
        """Return the tokens of clips and patches, with position and time embeddings added."""
        o = self.options
        if clips.shape[1:] != (o.frames, 3, o.size, o.size):
            raise DataError(
                f"clips must have the shape (B, {o.frames}, 3, {o.size}, {o.size}), "
                f"got {tuple(clips.shape)}"
            )
        side = o.size // o.patch
        pieces = clips.reshape(*clips.shape[:3], side, o.patch, side, o.patch)
        patches = self.patches(pieces.permute(3, 5, 0, 1, 2, 4, 6).flatten(4).flatten(0, 1))
        # The embeddings take the type of the product, so that all tokens have it.
        where = self.place_embedding.to(patches.dtype)[:, None, None]
        when = self.time_embedding.to(patches.dtype)
        of_clip = self.clip_token.to(patches.dtype) + where[:1]
        tokens = torch.cat([of_clip.expand_as(patches[:1]), patches + where[1:] + when])
        return tokens.flatten(0, 2)


def normalize(
    clips: Tensor, mean: Tensor | float = MEAN, deviation: Tensor | float = DEVIATION
) -> Tensor:
    """Normalise uint8 pixels, (B, F, H, W, 3), to clips for the network, (B, F, 3, H, W)."""
    return (clips.permute(0, 1, 4, 2, 3).float() / 255 - mean) / deviation


# --- weights of the transformers library ---------------------------------------------------


def from_hf(state: Mapping[str, Tensor], options: TimeSformerOptions) -> dict[str, Tensor]:
    """Convert the weights of ``TimesformerForVideoClassification``, of its model, or of ours.

    Embeddings of another number of places or frames are resampled to those of ``options``; a
    head for another number of classes is left out, and a head may be missing.
    """
    is_ours = "clip_token" in state
    if not is_ours and not any(name.startswith(names.PREFIX) for name in state):
        state = {names.PREFIX + name: weight for name, weight in state.items()}
    blocks = {found[1] for name in state if (found := names.BLOCK.match(name))}
    if blocks and len(blocks) != options.depth:
        raise DataError(
            f"weights of a TimeSformer must have {options.depth} blocks, got {len(blocks)}"
        )
    ours: dict[str, Tensor] = {}
    for name, shape in _shapes(replace(options, depth=len(blocks) or 1)).items():
        theirs = name if is_ours else names.their_name(name)
        if theirs in state:
            weight = names.in_our_shape(name, state[theirs], shape)
            ours |= {} if weight is None else {name: weight}
        elif not name.startswith(names.HEAD):
            raise DataError(
                f"weights of a TimeSformer must have {theirs!r}, got {len(state)} others; "
                f"are they of TimesformerForVideoClassification with divided attention?"
            )
    return ours


def load_hf(model: TimeSformer, state: Mapping[str, Tensor]) -> bool:
    """Load the transformers library's weights; return True if the head is among them.

    A head for other classes keeps its random weights: that is how training begins from Kinetics.
    """
    ours = from_hf(state, model.options)
    model.load_state_dict(ours, strict=False)
    return "head.weight" in ours


def _shapes(options: TimeSformerOptions) -> dict[str, torch.Size]:
    with torch.device("meta"):
        return {name: weight.shape for name, weight in TimeSformer(options).state_dict().items()}
