"""State of a training on disk, from which it continues as if it had not been interrupted.

It is written atomically, and read as tensors and plain values only: an untrusted file cannot run
code.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import nn

from stepgraph.errors import ConfigError
from stepgraph.files.disk import parse_json, replacing, write_text
from stepgraph.files.headers import FileKind, as_text, as_whole, check_header, reading_fields
from stepgraph.labelling.folders import shortened
from stepgraph.networks.weights import read_saved

_KIND = FileKind("stepgraph-training", 1, "state of a training", "delete it to begin anew")


@dataclass(frozen=True)
class EpochRecord:
    """Results of one epoch: means over its clips.

    Phases, and epochs within theirs, are counted from 1; accuracy is the share of clips whose
    best keystep is the pseudo-label.
    """

    phase: int
    epoch: int
    rate: float
    loss: float
    accuracy: float
    clips: int


@dataclass
class Position:
    """Progress of a training: epochs that are complete, and steps of the next one.

    Losses are means of every step so far; loss, correct and clips are sums over the steps of the
    epoch that is not complete.
    """

    epoch: int = 0
    step: int = 0
    losses: list[float] = field(default_factory=list)
    epochs: list[EpochRecord] = field(default_factory=list)
    loss: float = 0.0
    correct: float = 0.0
    clips: int = 0


def write_curve(path: Path, records: Sequence[EpochRecord]) -> None:
    """Write a CSV file with one line an epoch."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow([field.name for field in fields(EpochRecord)])
    writer.writerows(astuple(record) for record in records)
    write_text(path, buffer.getvalue())


def save_state(
    path: Path,
    identity: Mapping[str, Any],
    position: Position,
    network: nn.Module,
    optimiser: torch.optim.Optimizer | None,
) -> None:
    """Write the state of a training; without an optimiser it cannot be continued."""
    content: dict[str, Any] = {
        "format": _KIND.format,
        "version": _KIND.version,
        "identity": json.dumps(identity),
        "epoch": position.epoch,
        "step": position.step,
        "losses": torch.tensor(position.losses, dtype=torch.float64),
        "records": [asdict(record) for record in position.epochs],
        "sums": [position.loss, position.correct, position.clips],
        "model": network.state_dict(),
        "optimiser": optimiser.state_dict() if optimiser else None,
        "chance": [torch.get_rng_state()],
    }
    if torch.cuda.is_available():
        content["chance"].append(torch.cuda.get_rng_state())
    # The error of torch for a full disk is obscure, that of python is plain.
    buffer = io.BytesIO()
    torch.save(content, buffer)
    with replacing(path) as partial:
        partial.write_bytes(buffer.getbuffer())


def read_state(path: Path) -> dict[str, Any]:
    """Read a file of :func:`save_state`, on the CPU, without running any code in it."""
    content = read_saved(path, f"the whole {_KIND.noun}")
    check_header(content, path, _KIND)
    state: dict[str, Any] = content
    return state


def require_same(path: Path, state: Mapping[str, Any], identity: Mapping[str, Any]) -> None:
    """Refuse to continue a training that began with another identity."""
    with reading_fields(path, _KIND):
        begun = dict(parse_json(as_text(state["identity"]), f"{path}: identity"))
    wanted = json.loads(json.dumps(identity))
    for name in {**begun, **wanted}:
        if begun.get(name) != wanted.get(name):
            raise ConfigError(
                f"{path}: must continue as it began, with {name} {shortened(begun.get(name))}, "
                f"got {shortened(wanted.get(name))}; give the same, or another output folder"
            )


def position_of(path: Path, state: Mapping[str, Any]) -> Position:
    """Read the progress of the training from its state."""
    with reading_fields(path, _KIND):
        records = [EpochRecord(**record) for record in state["records"]]
        losses = state["losses"].tolist()
        epoch, step = as_whole(state["epoch"]), as_whole(state["step"])
        if epoch != len(records) or step < 0:
            raise ValueError(f"{len(records)} records of {epoch} epochs, and {step} steps")
        return Position(epoch, step, losses, records, *state["sums"])
