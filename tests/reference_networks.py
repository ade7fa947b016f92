"""Published networks as plain sums over named weights: slow, obvious, sharing no code with ours.

Each is written from its paper: S3D-G from Xie et al. (2018) with the space-to-depth stem, the
padding and the text tower of Miech et al. (2020); VideoCLIP from Xu et al. (2021) over BERT
(Devlin et al., 2019).  ``w`` maps names of weights to tensors.
"""

import math

import torch
from torch.nn import functional as F

from stepgraph.networks.timesformer_names import their_name

BLOCKS = ("3b", "3c", "4b", "4c", "4d", "4e", "4f", "5b", "5c")


def convolve(w, name, number, x, before=(0, 0, 0), after=(0, 0, 0)):
    """Pad, convolve, normalise by the running statistics, cut off below zero."""
    sides = [side for pair in zip(before, after, strict=True) for side in pair]
    padded = F.pad(x, (*sides[4:], *sides[2:4], *sides[:2]))
    y = F.conv3d(padded, w[f"{name}.conv{number}.weight"])
    bn = f"{name}.bn{number}."
    scale = w[bn + "weight"] / torch.sqrt(w[bn + "running_var"] + 1e-5)
    shift = w[bn + "bias"] - w[bn + "running_mean"] * scale
    return (y * scale.view(-1, 1, 1, 1) + shift.view(-1, 1, 1, 1)).clamp(min=0)


def separable(w, name, x):
    """A filter of 3 x 3 over the picture, then one of 3 over time."""
    x = convolve(w, name, 1, x, (0, 1, 1), (0, 1, 1))
    return convolve(w, name, 2, x, (1, 0, 0), (1, 0, 0))


def gate(w, name, x):
    mean = x.flatten(2).mean(2)
    logits = mean @ w[f"{name}.fc.weight"].T + w[f"{name}.fc.bias"]
    return x / (1 + torch.exp(-logits))[:, :, None, None, None]


def pool(x, size, stride, before):
    """Largest value of each window, one window after the other; outside is nothing."""
    lengths = x.shape[2:]
    parts = []
    counts = [
        length if step == 1 else math.ceil(length / 2)
        for length, step in zip(lengths, stride, strict=True)
    ]
    for place in torch.cartesian_prod(*map(torch.arange, counts)).tolist():
        window = x
        for axis in range(3):
            first = place[axis] * stride[axis] - before[axis]
            last = min(first + size[axis], lengths[axis])
            first = max(first, 0)
            window = window.narrow(axis + 2, first, last - first)
        parts.append(window.amax(dim=(2, 3, 4)))
    return torch.stack(parts, dim=2).unflatten(2, counts)


def mixed(w, name, x):
    one = convolve(w, f"{name}.conv_b0", 1, x)
    two = separable(w, f"{name}.conv_b1_b", convolve(w, f"{name}.conv_b1_a", 1, x))
    three = separable(w, f"{name}.conv_b2_b", convolve(w, f"{name}.conv_b2_a", 1, x))
    four = convolve(w, f"{name}.conv_b3_b", 1, pool(x, (3, 3, 3), (1, 1, 1), (1, 1, 1)))
    branches = [gate(w, f"{name}.gating_b{n}", y) for n, y in enumerate((one, two, three, four))]
    return torch.cat(branches, dim=1)


def s3d_features(w, clips, shapes=None):
    """Mean of the last block, shape (B, 1024); ``shapes`` collects what each stage gives."""
    shapes = {} if shapes is None else shapes
    # Eight neighbouring pixels become channels: time slowest, then height, width, colour.
    cubes = [
        clips[:, :, t::2, h::2, v::2] for t in range(2) for h in range(2) for v in range(2)
    ]  # fmt: skip
    x = convolve(w, "conv1", 1, torch.cat(cubes, dim=1), (0, 1, 1), (1, 2, 2))
    shapes["conv1"] = tuple(x.shape[1:])
    x = pool(x, (1, 3, 3), (1, 2, 2), (0, 0, 0))
    x = separable(w, "conv_2c", convolve(w, "conv_2b", 1, x))
    shapes["conv_2c"] = tuple(x.shape[1:])
    x = pool(gate(w, "gating", x), (1, 3, 3), (1, 2, 2), (0, 0, 0))
    for block in BLOCKS:
        if block == "4b":
            x = pool(x, (3, 3, 3), (2, 2, 2), (0, 0, 0))
        if block == "5b":
            x = pool(x, (2, 2, 2), (2, 2, 2), (0, 0, 0))
        x = mixed(w, f"mixed_{block}", x)
        shapes[f"mixed_{block}"] = tuple(x.shape[1:])
    return x.flatten(2).mean(2)


def s3d(w, clips):
    return s3d_features(w, clips) @ w["fc.weight"].T + w["fc.bias"]


def s3d_text(w, words):
    """One text, word by word."""
    hidden = torch.full((2048,), -math.inf)
    for word in words:
        vector = w["text_module.word_embd.weight"][word]
        features = w["text_module.fc1.weight"] @ vector + w["text_module.fc1.bias"]
        hidden = torch.maximum(hidden, features.clamp(min=0))
    return w["text_module.fc2.weight"] @ hidden + w["text_module.fc2.bias"]


def linear(w, name, x):
    return x @ w[name + ".weight"].T + w[name + ".bias"]


def norm(w, name, x, eps):
    centered = x - x.mean(-1, keepdim=True)
    spread = torch.sqrt((centered**2).mean(-1, keepdim=True) + eps)
    return centered / spread * w[name + ".weight"] + w[name + ".bias"]


def gelu(x):
    return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))


def attention(w, name, x, seen):
    """Each head on its own: only tokens that are ``seen`` are looked at."""
    query, key, value = (linear(w, f"{name}.self.{one}", x) for one in ("query", "key", "value"))
    heads = []
    for start in range(0, x.shape[-1], 64):
        part = slice(start, start + 64)
        logits = query[:, part] @ key[:, part].T / 8
        logits[:, ~seen] = -math.inf
        heads.append(torch.softmax(logits, dim=1) @ value[:, part])
    return norm(
        w, f"{name}.output.LayerNorm", x + linear(w, f"{name}.output.dense", torch.cat(heads, 1)),
        1e-12,
    )  # fmt: skip


def bert(w, name, tokens, places, seen, layers):
    """Outputs of BERT for one row of embedded tokens, shape (L, width)."""
    embedded = f"{name}.embeddings."
    x = tokens + w[embedded + "position_embeddings.weight"][places]
    x = x + w[embedded + "token_type_embeddings.weight"][0]
    x = norm(w, embedded + "LayerNorm", x, 1e-12)
    for layer in range(layers):
        at = f"{name}.encoder.layer.{layer}"
        x = attention(w, f"{at}.attention", x, seen)
        inner = gelu(linear(w, f"{at}.intermediate.dense", x))
        x = norm(w, f"{at}.output.LayerNorm", x + linear(w, f"{at}.output.dense", inner), 1e-12)
    return x


def videoclip_video(w, features, layers, *, look_at_first):
    """Outputs for [CLS], the seconds of one video and [SEP]."""
    mlp = "video_encoder.videomlp."
    seconds = gelu(linear(w, mlp + "linear1", features))
    seconds = linear(w, mlp + "linear2", norm(w, mlp + "LayerNorm", seconds, 1e-5))
    words = w["video_encoder.bert.embeddings.word_embeddings.weight"]
    tokens = torch.cat([words[101:102], seconds, words[102:103]])
    places = [0, *range(1, len(features) + 1), 33]
    seen = torch.ones(len(tokens), dtype=torch.bool)
    seen[0] = look_at_first
    return bert(w, "video_encoder.bert", tokens, places, seen, layers)


def videoclip_text(w, pieces, layers):
    """Mean over the tokens of one text and [SEP]."""
    ids = [101, *pieces, 102]
    tokens = w["text_encoder.embeddings.word_embeddings.weight"][ids]
    seen = torch.ones(len(ids), dtype=torch.bool)
    return bert(w, "text_encoder", tokens, list(range(len(ids))), seen, layers)[1:].mean(0)


def as_of_library(state):
    """Weights of our TimeSformer under the transformers library's names and in its shapes."""
    found = {}
    for name, weight in state.items():
        if name == "patches.weight":
            side = math.isqrt(weight.shape[1] // 3)
            weight = weight.reshape(-1, 3, side, side)
        elif name in ("clip_token", "place_embedding", "time_embedding"):
            weight = weight.reshape(1, -1, weight.shape[-1])
        found[their_name(name)] = weight
    return found
