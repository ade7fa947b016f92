"""VideoCLIP (Xu et al., 2021): two BERTs that embed seconds of video and texts in one space.

The video tower reads one S3D feature a second: a small network makes each a token, [CLS] and [SEP]
are put around them, and six layers follow.  The text tower is BERT.  The vector of a text is the
mean of its outputs, that of a second its own output; a score is their dot product.  BERT is that
of the transformers library; names of weights are those of the published checkpoint.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import BertConfig, BertModel

LONGEST = 32
"""Maximum number of seconds of video that the video tower takes at once."""

MAX_TOKENS = 61
"""Maximum number of tokens of a text, without [CLS] and [SEP], as in training."""

_CLS, _SEP = 101, 102  # of bert-base-uncased
_HEAD = 64  # dimensions of a head, in every BERT that was published
_LAYER = re.compile(r"(video_encoder\.bert|text_encoder)\.encoder\.layer\.(\d+)\.")


@dataclass(frozen=True)
class VideoClipOptions:
    """Sizes of VideoCLIP; the defaults are the published ones."""

    features: int = 512
    width: int = 768
    inner: int = 3072
    video_layers: int = 6
    text_layers: int = 12
    words: int = 30_522
    positions: int = 512


class _VideoTower(nn.Module):
    def __init__(self, options: VideoClipOptions) -> None:
        super().__init__()
        self.bert = _bert(options, options.video_layers)
        to_token = {
            "linear1": nn.Linear(options.features, options.width),
            "gelu": nn.GELU(),
            "LayerNorm": nn.LayerNorm(options.width),
            "linear2": nn.Linear(options.width, options.width),
        }
        self.videomlp = nn.Sequential(OrderedDict(to_token))

    def forward(self, features: Tensor) -> Tensor:
        """Outputs of [CLS], of every second and of [SEP], shape (B, S + 2, width)."""
        batch, seconds, _ = features.shape
        marks = torch.tensor([[_CLS, _SEP]], device=features.device).expand(batch, 2)
        marks = self.bert.embeddings.word_embeddings(marks)
        tokens = torch.cat([marks[:, :1], self.videomlp(features), marks[:, 1:]], dim=1)
        # [SEP] has the place behind the longest video, however short this one is.
        places = torch.arange(seconds + 2, device=features.device)
        places[-1] = LONGEST + 1
        seen = torch.ones_like(tokens[..., 0], dtype=torch.int64)
        seen[:, 0] = 0
        outputs: Tensor = self.bert(
            inputs_embeds=tokens,
            attention_mask=seen,
            token_type_ids=torch.zeros_like(seen),
            position_ids=places.expand(batch, -1),
        ).last_hidden_state
        return outputs


class VideoCLIP(nn.Module):
    """Both towers of VideoCLIP."""

    def __init__(self, options: VideoClipOptions | None = None) -> None:
        super().__init__()
        self.options = options or VideoClipOptions()
        self.video_encoder = _VideoTower(self.options)
        self.text_encoder = _bert(self.options, self.options.text_layers)

    def embed_seconds(self, features: Tensor) -> Tensor:
        """Vectors of each second within its video, from shape (B, S, 512) to (B, S, width).

        A video has at most 32 seconds.  As where the authors label seconds of CrossTask, no token
        attends to [CLS].
        """
        outputs: Tensor = self.video_encoder(features)
        return outputs[:, 1:-1]

    def embed_texts(self, tokens: Tensor, present: Tensor) -> Tensor:
        """Vectors of texts, shape (N, width): the mean of their tokens (N, L) and [SEP]."""
        outputs = self.text_encoder(
            input_ids=tokens,
            attention_mask=present.long(),
            token_type_ids=torch.zeros_like(tokens),
        ).last_hidden_state
        share = present[:, 1:].to(outputs.dtype)
        total = torch.einsum("bsd,bs->bd", outputs[:, 1:], share)
        return total / share.sum(dim=1, keepdim=True)


def embed_rows(model: VideoCLIP, features: Tensor, *, window: int = LONGEST) -> Tensor:
    """Vectors of all seconds of a video of any length, from shape (T, 512) to (T, width).

    Windows of ``window`` seconds are laid every half window, as in the authors' zero-shot
    evaluation on CrossTask (32 every 16), up to the one that reaches the end; the vectors of a
    second from two windows are averaged.  A score is linear in them, so it is averaged as well.
    """
    step = max(1, window // 2)
    # As many as are needed to reach the end.
    starts = range(0, max(1, len(features) - window + step), step) if len(features) else ()
    total = features.new_zeros(len(features), model.options.width)
    seen = features.new_zeros(len(features), 1)
    for start in starts:
        part = features[start : start + window]
        total[start : start + window] += model.embed_seconds(part[None])[0]
        seen[start : start + window] += 1
    return total / seen


def pad_tokens(texts: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Put [CLS] and [SEP] around the tokens of each text, and pad all to one length.

    >>> tokens, present = pad_tokens([[7, 8], [9]])
    >>> tokens.tolist(), present.sum(1).tolist()
    ([[101, 7, 8, 102], [101, 9, 102, 0]], [4, 3])
    """
    rows = [torch.tensor([_CLS, *text[:MAX_TOKENS], _SEP]) for text in texts]
    tokens = nn.utils.rnn.pad_sequence(rows, batch_first=True)
    lengths = torch.tensor([len(row) for row in rows])
    return tokens, torch.arange(tokens.shape[1]) < lengths[:, None]


def options_of(weights: Mapping[str, Tensor]) -> VideoClipOptions:
    """Infer the sizes of a checkpoint from its weights; missing ones are the published ones."""
    given: dict[str, int] = {}
    sizes = {
        ("width", "features"): "video_encoder.videomlp.linear1.weight",
        ("inner",): "text_encoder.encoder.layer.0.intermediate.dense.weight",
        ("words",): "text_encoder.embeddings.word_embeddings.weight",
        ("positions",): "text_encoder.embeddings.position_embeddings.weight",
    }
    for fields, name in sizes.items():
        if name in weights:
            given |= dict(zip(fields, weights[name].shape, strict=False))
    layers = [match.groups() for name in weights if (match := _LAYER.match(name))]
    for tower, field in (("video_encoder.bert", "video_layers"), ("text_encoder", "text_layers")):
        found = {number for whose, number in layers if whose == tower}
        given |= {field: len(found)} if found else {}
    return VideoClipOptions(**given)


def _bert(options: VideoClipOptions, layers: int) -> Any:
    config = BertConfig(
        vocab_size=options.words,
        hidden_size=options.width,
        num_hidden_layers=layers,
        num_attention_heads=max(1, options.width // _HEAD),
        intermediate_size=options.inner,
        max_position_embeddings=options.positions,
    )
    return BertModel(config, add_pooling_layer=False)
