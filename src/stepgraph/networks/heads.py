"""Heads trained on frozen features: a small MLP on their mean, or a transformer on all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

Rows = Sequence[NDArray[np.float32]]

_WIDTH = 256  # numbers between the layers
_DROPOUT = 0.1
_BATCH = 64  # examples a step
_RATE, _DECAY = 1e-3, 1e-2  # of AdamW; the rate falls to zero along a cosine
_AT_ONCE = 256  # examples that are predicted together


class MLP(nn.Module):
    """Two-layer perceptron on the mean of the rows."""

    def __init__(self, size: int, classes: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.LayerNorm(size),
            nn.Linear(size, _WIDTH),
            nn.GELU(),
            nn.Dropout(_DROPOUT),
            nn.Linear(_WIDTH, classes),
        )

    def forward(self, rows: Tensor, there: Tensor) -> Tensor:
        """Logits, shape (B, classes); ``there`` masks the rows (B, T, D) that are no padding."""
        mean = (rows * there[..., None]).sum(1) / there.sum(1, keepdim=True)
        logits: Tensor = self.layers(mean)
        return logits


class Transformer(nn.Module):
    """One block of self-attention over the rows in order, classified at an additional token."""

    def __init__(self, size: int, classes: int) -> None:
        super().__init__()
        self.enter = nn.Sequential(nn.LayerNorm(size), nn.Linear(size, _WIDTH))
        self.token = nn.Parameter(torch.zeros(1, 1, _WIDTH))
        self.block = nn.TransformerEncoderLayer(
            _WIDTH,
            nhead=_WIDTH // 64,
            dim_feedforward=2 * _WIDTH,
            dropout=_DROPOUT,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.leave = nn.Sequential(nn.LayerNorm(_WIDTH), nn.Linear(_WIDTH, classes))

    def forward(self, rows: Tensor, there: Tensor) -> Tensor:
        """Logits; see :class:`MLP`."""
        tokens = self.enter(rows)
        tokens = tokens + _waves(tokens.shape[1], tokens.device)
        tokens = torch.cat([self.token.expand(len(tokens), -1, -1), tokens], dim=1)
        hidden = F.pad(~there, (1, 0), value=False)
        logits: Tensor = self.leave(self.block(tokens, src_key_padding_mask=hidden)[:, 0])
        return logits


HEADS = {"mlp": MLP, "transformer": Transformer}


def _waves(length: int, device: torch.device) -> Tensor:
    """Sinusoidal encodings of positions, sines and cosines by turns (Vaswani et al., 2017)."""
    place = torch.arange(length, device=device)[:, None]
    speed = torch.exp(torch.arange(0, _WIDTH, 2, device=device) * (-np.log(10_000.0) / _WIDTH))
    return torch.stack([torch.sin(place * speed), torch.cos(place * speed)], dim=2).flatten(1)


def fit(
    name: str, rows: Rows, labels: NDArray[np.int64], classes: int, *, epochs: int, seed: int
) -> nn.Module:
    """Train a head on examples: rows (T, D) each, one label each."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head = HEADS[name](rows[0].shape[1], classes).to(device)
        optimiser = torch.optim.AdamW(head.parameters(), lr=_RATE, weight_decay=_DECAY)
        steps = epochs * -(-len(rows) // _BATCH)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
        order = np.random.default_rng(seed)
        head.train()
        for _ in range(epochs):
            shuffled = order.permutation(len(rows))
            for start in range(0, len(rows), _BATCH):
                chosen = shuffled[start : start + _BATCH]
                logits = head(*_padded([rows[at] for at in chosen], device))
                truth = torch.from_numpy(labels[chosen]).to(device)
                optimiser.zero_grad()
                loss = F.cross_entropy(logits, truth)
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                schedule.step()
    return head.eval()


@torch.no_grad()
def predict(head: nn.Module, rows: Rows) -> NDArray[np.float32]:
    """Logits of examples, shape (N, classes)."""
    device = next(head.parameters()).device
    blocks = (rows[start : start + _AT_ONCE] for start in range(0, len(rows), _AT_ONCE))
    return np.concatenate([head(*_padded(block, device)).cpu().numpy() for block in blocks])


def _padded(rows: Rows, device: torch.device | str) -> tuple[Tensor, Tensor]:
    """Pad the rows of several examples to one block; return it with the mask of real rows."""
    block = pad_sequence([torch.from_numpy(one) for one in rows], batch_first=True)
    lengths = torch.tensor([len(one) for one in rows])
    there = torch.arange(block.shape[1]) < lengths[:, None]
    return block.to(device), there.to(device)
