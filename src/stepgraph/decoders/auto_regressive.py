"""The paper's Auto-Regressive baseline: a transformer that revises labels from their context.

It is trained on the preliminary labels of unlabelled videos alone: some labels of a sequence are
masked, and it predicts them from the others.  The paper specifies no more than "transformer";
``docs/method.md`` documents the other choices.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import BACKGROUND, Labels, Scores, runs, without_repetitions
from stepgraph.errors import ConfigError, DataError
from stepgraph.graph import TaskGraph

if TYPE_CHECKING:
    import torch

Integers: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float32]

_LONGEST = 64
_WIDTH, _HEADS, _LAYERS = 64, 4, 2
_BATCH, _RATE = 32, 2e-3
# Share of the labels masked in training; decoding masks every eighth at a time, about as many.
_HIDDEN, _STRIDE = 0.15, 8


@dataclass(frozen=True, eq=False)
class AutoRegressive:
    """Revise the best keystep of each observed row by a transformer's prediction from context.

    The label is the keystep with the highest ``score + weight * log p``, with ``p`` the
    transformer's probability given the other labels of the video.  Unobserved rows are
    background.  Made by :func:`train_auto_regressive`.

    Attributes
    ----------
    network
        Transformer, trained for a vocabulary of ``keysteps`` keysteps.
    weight
        Score that one nat of log-probability is worth; with 0 the labels stay as they are.
    """

    network: torch.nn.ModuleDict
    keysteps: int
    weight: float = 0.05

    def __post_init__(self) -> None:
        if not 0 <= self.weight < math.inf:
            raise ConfigError(f"weight must be a number from 0 on, got {self.weight}")

    def decode(self, scores: Scores, graph: TaskGraph) -> Labels:
        """See :class:`~stepgraph.decoders.Decoder`; the graph is not consulted."""
        if len(scores.vocabulary) != self.keysteps:
            raise DataError(
                f"scores of video {scores.video!r} must be over the {self.keysteps} keysteps that "
                f"the transformer was trained for, got {len(scores.vocabulary)}"
            )
        labeled = scores.observed & (scores.values > -math.inf).any(axis=1)
        values = scores.values[labeled]
        preliminary = values.argmax(axis=1)
        # Rows of one run share its prediction, and keep their own scores.
        lengths = [last - first for first, last in runs(preliminary)]
        run = np.repeat(np.arange(len(lengths)), lengths)
        expected = self.expect(without_repetitions(preliminary))
        keysteps = np.full(len(scores), BACKGROUND, dtype=np.int64)
        keysteps[labeled] = (values + np.float32(self.weight) * expected[run]).argmax(axis=1)
        return Labels(scores.video, keysteps, scores.vocabulary, scores.hop)

    def expect(self, sequence: Integers) -> Floats:
        """Predict each label from the others: log-probability in nats, shape (N, K)."""
        import torch

        parts = [np.zeros((0, self.keysteps), np.float32)]
        with torch.inference_mode():
            for part in _cut(sequence):
                hidden = np.arange(len(part)) % _STRIDE == np.arange(_STRIDE)[:, None]
                tokens = np.where(hidden, self.keysteps, part)
                log_p = _log_probabilities(self.network, torch.from_numpy(tokens))
                # Each label is masked in exactly one of the passes.
                parts.append(log_p.numpy()[np.arange(len(part)) % _STRIDE, np.arange(len(part))])
        return np.concatenate(parts)


def train_auto_regressive(
    sequences: Iterable[Integers],
    keysteps: int,
    *,
    seed: int = 0,
    epochs: int = 20,
    weight: float = 0.05,
) -> AutoRegressive:
    """Train on the preliminary labels of unlabelled videos.

    The same sequences and seed give the same decoder on one machine.

    Parameters
    ----------
    sequences
        Labels of the rows of one video each, such as those of ``Argmax``; background is left out.
    keysteps
        Size of the vocabulary.
    epochs
        Number of passes over the sequences, each with other labels masked.
    weight
        See :class:`AutoRegressive`.
    """
    if not isinstance(epochs, int) or epochs < 0:
        raise ConfigError(f"epochs must be a whole number from 0 on, got {epochs!r}")
    if not isinstance(seed, int) or seed < 0:
        raise ConfigError(f"seed must be a whole number from 0 on, got {seed!r}")
    parts = [
        part
        for sequence in sequences
        for part in _cut(without_repetitions(sequence))
        if len(part) > 1
    ]
    if not parts:
        raise DataError(
            "sequences must hold two different keysteps in a row at least once, got none that "
            "do; there is no context to learn from"
        )
    highest = max(int(part.max()) for part in parts)
    if highest >= keysteps:
        raise DataError(f"labels of sequences must be below {keysteps}, got {highest}")
    # Spinning threads halve the speed where another process is busy; this must be set before
    # torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import torch

    # The state of the caller's random generator does not change.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = _make_network(keysteps)
        _fit(network, parts, keysteps, epochs, np.random.default_rng(seed))
    return AutoRegressive(network.eval(), keysteps, weight)


def _cut(sequence: Integers) -> Iterator[Integers]:
    if len(sequence):
        yield from np.array_split(sequence, math.ceil(len(sequence) / _LONGEST))


def _make_network(keysteps: int) -> torch.nn.ModuleDict:
    """Build the network; two tokens follow the keysteps: the mask and the padding."""
    from torch import nn

    layer = nn.TransformerEncoderLayer(
        _WIDTH, _HEADS, 2 * _WIDTH, dropout=0.0, batch_first=True, norm_first=True
    )
    embedding = nn.Embedding(keysteps + 2, _WIDTH)
    nn.init.normal_(embedding.weight, std=_WIDTH**-0.5)
    return nn.ModuleDict(
        {
            "embedding": embedding,
            "position": nn.Embedding(_LONGEST, _WIDTH),
            "encoder": nn.TransformerEncoder(layer, _LAYERS, enable_nested_tensor=False),
            "norm": nn.LayerNorm(_WIDTH),
        }
    )


def _log_probabilities(network: torch.nn.ModuleDict, tokens: torch.Tensor) -> torch.Tensor:
    """Compute the log-probability of every keystep at every position, in nats, shape (B, N, K)."""
    import torch

    table = network.get_parameter("embedding.weight")
    keysteps = len(table) - 2
    place = network.get_parameter("position.weight")[: tokens.shape[1]]
    padding = tokens == keysteps + 1
    states = network["encoder"](
        network["embedding"](tokens) + place,
        src_key_padding_mask=padding if padding.any() else None,
    )
    # The output layer shares the embeddings of the input layer.
    logits = network["norm"](states) @ table[:keysteps].T
    return torch.log_softmax(logits, dim=-1)


def _fit(
    network: torch.nn.ModuleDict,
    parts: Sequence[Integers],
    keysteps: int,
    epochs: int,
    rng: np.random.Generator,
) -> None:
    import torch

    steps = epochs * math.ceil(len(parts) / _BATCH)
    optimizer = torch.optim.AdamW(network.parameters(), lr=_RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / (steps + 1))
    for _ in range(epochs):
        order = rng.permutation(len(parts))
        for first in range(0, len(parts), _BATCH):
            chosen = [parts[position] for position in order[first : first + _BATCH]]
            batch, hidden = _hide(chosen, keysteps, rng)
            tokens = torch.from_numpy(np.where(hidden, keysteps, batch))
            log_p = _log_probabilities(network, tokens)[torch.from_numpy(hidden)]
            loss = torch.nn.functional.nll_loss(log_p, torch.from_numpy(batch[hidden]))
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()


def _hide(
    parts: Sequence[Integers], keysteps: int, rng: np.random.Generator
) -> tuple[Integers, NDArray[np.bool_]]:
    """Pad sequences to one batch, and choose the labels to mask: at least one in each."""
    batch = np.full((len(parts), max(map(len, parts))), keysteps + 1, dtype=np.int64)
    for row, part in enumerate(parts):
        batch[row, : len(part)] = part
    chance = np.where(batch <= keysteps, rng.random(batch.shape), 2.0)
    hidden = (chance < _HIDDEN) | (chance == chance.min(axis=1, keepdims=True))
    return batch, hidden
