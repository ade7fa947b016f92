"""What is trained on frozen features: a small MLP on their mean, or a transformer on all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

Rows = Sequence[NDArray[np.float32]]


@dataclass(frozen=True)
class HeadOptions:
    """How a head is built and trained.

    Attributes
    ----------
    width
        Numbers between its layers.
    epochs, batch, rate, decay
        Passes over the examples, examples a step, and the rate and weight decay of AdamW; the
        rate falls to zero along a cosine.
    dropout
        Share of numbers left out while it trains.
    """

    width: int = 256
    epochs: int = 40
    batch: int = 64
    rate: float = 1e-3
    decay: float = 1e-2
    dropout: float = 0.1


class MLP(nn.Module):
    """Two layers on the mean of the rows."""

    def __init__(self, size: int, classes: int, options: HeadOptions) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.LayerNorm(size),
            nn.Linear(size, options.width),
            nn.GELU(),
            nn.Dropout(options.dropout),
            nn.Linear(options.width, classes),
        )

    def forward(self, rows: Tensor, there: Tensor) -> Tensor:
        """Logits; ``there`` says which of the rows (B, T, D) are no padding."""
        mean = (rows * there[..., None]).sum(1) / there.sum(1, keepdim=True)
        logits: Tensor = self.layers(mean)
        return logits


class Transformer(nn.Module):
    """One block of self-attention over the rows in their order, read at a token of its own."""

    def __init__(self, size: int, classes: int, options: HeadOptions) -> None:
        super().__init__()
        self.enter = nn.Sequential(nn.LayerNorm(size), nn.Linear(size, options.width))
        self.token = nn.Parameter(torch.zeros(1, 1, options.width))
        self.block = nn.TransformerEncoderLayer(
            options.width,
            nhead=max(1, options.width // 64),
            dim_feedforward=2 * options.width,
            dropout=options.dropout,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.leave = nn.Sequential(nn.LayerNorm(options.width), nn.Linear(options.width, classes))

    def forward(self, rows: Tensor, there: Tensor) -> Tensor:
        """Logits; see :class:`MLP`."""
        tokens = self.enter(rows)
        tokens = tokens + _waves(tokens.shape[1], tokens.shape[2], tokens)
        tokens = torch.cat([self.token.expand(len(tokens), -1, -1), tokens], dim=1)
        hidden = F.pad(~there, (1, 0), value=False)
        logits: Tensor = self.leave(self.block(tokens, src_key_padding_mask=hidden)[:, 0])
        return logits


HEADS = {"mlp": MLP, "transformer": Transformer}
"""Heads by name."""


def _waves(length: int, width: int, like: Tensor) -> Tensor:
    """Sines and cosines of the place, as in the first transformer."""
    place = torch.arange(length, device=like.device)[:, None]
    speed = torch.exp(torch.arange(0, width, 2, device=like.device) * (-np.log(10_000.0) / width))
    waves = torch.zeros(length, width, device=like.device)
    waves[:, 0::2] = torch.sin(place * speed)
    waves[:, 1::2] = torch.cos(place * speed[: width // 2])
    return waves


def fit(
    name: str,
    rows: Rows,
    labels: NDArray[np.int64],
    classes: int,
    *,
    options: HeadOptions,
    seed: int,
) -> nn.Module:
    """Train a head on examples: rows (T, D) each, one label each."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head = HEADS[name](rows[0].shape[1], classes, options).to(device)
        optimiser = torch.optim.AdamW(
            head.parameters(), lr=options.rate, weight_decay=options.decay
        )
        steps = options.epochs * -(-len(rows) // options.batch)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
        order = np.random.default_rng(seed)
        head.train()
        for _ in range(options.epochs):
            for chosen in _batches(order.permutation(len(rows)), options.batch):
                logits = head(*_padded([rows[at] for at in chosen], device))
                truth = torch.from_numpy(labels[chosen]).to(device)
                optimiser.zero_grad()
                loss = F.cross_entropy(logits, truth)
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                schedule.step()
    return head.eval()


@torch.no_grad()
def predict(head: nn.Module, rows: Rows, *, batch: int = 256) -> NDArray[np.float32]:
    """Logits of examples, shape (N, classes)."""
    device = next(head.parameters()).device
    found = [
        head(*_padded([rows[at] for at in chosen], device)).float().cpu().numpy()
        for chosen in _batches(np.arange(len(rows)), batch)
    ]
    return np.concatenate(found)


def _batches(order: NDArray[np.int64], batch: int) -> Iterator[NDArray[np.int64]]:
    for start in range(0, len(order), batch):
        yield order[start : start + batch]


def _padded(rows: Rows, device: torch.device | str) -> tuple[Tensor, Tensor]:
    """Rows of several examples as one block, and which of them are real."""
    longest = max(map(len, rows))
    block = np.zeros((len(rows), longest, rows[0].shape[1]), np.float32)
    there = np.zeros((len(rows), longest), bool)
    for number, one in enumerate(rows):
        block[number, : len(one)] = one
        there[number, : len(one)] = True
    return torch.from_numpy(block).to(device), torch.from_numpy(there).to(device)
