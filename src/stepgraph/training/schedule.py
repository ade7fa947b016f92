"""Options of a training: phases, learning rates, and all others; and its group of processes.

The paper: 15 epochs with SGD at 5e-3, then 15 with AdamW at 5e-5, "decayed progressively by 10
times in epochs 11 and 14".  Epochs are counted from 1 in each phase, so that epochs 1 to 10 have
the full rate, 11 to 13 a tenth of it, 14 and 15 a hundredth.  Momentum and weight decay, which
the paper does not state, are those of the work it follows (Lin et al., CVPR 2022).

One process trains, or several train one model together, as torchrun starts them.
"""

from __future__ import annotations

import gc
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from stepgraph.errors import ConfigError


def _require(holds: bool, what: str, rule: str, value: object) -> None:
    if not holds:
        raise ConfigError(f"{what} must be {rule}, got {value!r}")


def _require_whole(what: str, value: object, *, least: int) -> None:
    holds = type(value) is int and value >= least
    _require(holds, what, f"a whole number from {least} on", value)


@dataclass(frozen=True)
class Phase:
    """Some epochs with one optimiser, at a rate that drops to a tenth from some epochs on.

    AdamW has momenta of its own and ignores that of SGD.

    >>> phase = Phase("sgd", epochs=15, rate=5e-3)
    >>> [f"{phase.rate_in(epoch):g}" for epoch in (1, 10, 11, 13, 14, 15)]
    ['0.005', '0.005', '0.0005', '0.0005', '5e-05', '5e-05']
    """

    optimiser: Literal["sgd", "adamw"]
    epochs: int
    rate: float
    drops: tuple[int, ...] = (11, 14)
    momentum: float = 0.9
    weight_decay: float = 1e-4

    def __post_init__(self) -> None:
        accepted = self.optimiser in ("sgd", "adamw")
        _require(accepted, "optimiser", "'sgd' or 'adamw'", self.optimiser)
        _require_whole("epochs of a phase", self.epochs, least=1)
        for drop in self.drops:
            _require_whole("an epoch in which the rate drops", drop, least=1)
        _require(0 < self.rate < math.inf, "rate", "more than 0", self.rate)
        _require(0 <= self.momentum < 1, "momentum", "at least 0 and less than 1", self.momentum)
        decays = 0 <= self.weight_decay < math.inf
        _require(decays, "weight_decay", "at least 0", self.weight_decay)

    def rate_in(self, epoch: int) -> float:
        """Learning rate of an epoch, counted from 1."""
        dropped = sum(epoch >= drop for drop in self.drops)
        return float(self.rate / 10**dropped)


PAPER = (Phase("sgd", 15, 5e-3), Phase("adamw", 15, 5e-5))
"""The phases of the paper."""


def short_phases(epochs: int, phases: Iterable[Phase] = PAPER) -> tuple[Phase, ...]:
    """Change the number of epochs of every phase; its rate drops after the same shares of them.

    >>> [phase.drops for phase in short_phases(6)]
    [(5, 6), (5, 6)]
    >>> short_phases(15) == PAPER
    True
    """
    _require_whole("epochs of a phase", epochs, least=1)
    found = []
    for phase in phases:
        drops = {(drop - 1) * epochs // phase.epochs + 1 for drop in phase.drops}
        # In the first epoch nothing has been learned yet that a lower rate could refine.
        found.append(replace(phase, epochs=epochs, drops=tuple(sorted(drops - {1}))))
    return tuple(found)


@dataclass(frozen=True)
class Running:
    """Options of running a training, which do not decide its outcome.

    Attributes
    ----------
    device
        ``cpu`` or ``cuda`` (default: the GPU if there is one).
    workers
        Number of processes that read clips (default: on a GPU one for each CPU, up to 8, on a
        CPU none, so that the process itself reads).
    compile
        Compile the model with torch first (default: on a GPU): a minute at the start, faster
        afterwards.  If it fails without having been requested, training goes on without.
    save_every
        Number of steps between saved states, beside one at the end of every epoch.
    store
        Folder of decoded clips, which trainings on the same videos may share (default: beside
        the result).
    videos
        Folder of the videos, if they were moved since they were labelled.
    logs
        Write logs for TensorBoard.
    """

    device: str | None = None
    workers: int | None = None
    compile: bool | None = None
    save_every: int = 2000
    store: Path | None = None
    videos: Path | None = None
    logs: bool = True

    def __post_init__(self) -> None:
        if self.workers is not None:
            _require_whole("workers", self.workers, least=0)
        _require_whole("save_every", self.save_every, least=1)


@dataclass(frozen=True)
class TrainingOptions:
    """Options that decide the outcome of a training, and those of running it.

    Attributes
    ----------
    phases
        Optimisers, epochs and rates, one after the other.
    batch
        Number of clips in a step, over all processes.
    window
        Length of a clip in seconds, from the start of its row.
    loss
        Loss on the labels (cross entropy), or on the distribution over the three best keysteps
        (divergence from the softmax of their scores).
    temperature
        Divisor of scores before the softmax of the distribution.
    precision
        Number format of the network: float32 gives the same on every machine, bfloat16 is several
        times as fast on a GPU.
    clips
        Decode every video once into a folder (stored), or again in every epoch (streamed), for
        a corpus too large to store.
    buffer
        Number of clips in the shuffle buffer of a streaming worker.
    flip
        Mirror half of the clips.  Off by default, since keysteps may distinguish left and right.
    crop
        Least share of a picture that a random square crop keeps, 1 for no crop.
    light
        Strength of random changes of contrast, brightness and colour, from 0 to 1 (0.3 is strong).
    seed
        Seed of all random numbers.
    running
        Options of running the training.
    """

    phases: tuple[Phase, ...] = PAPER
    batch: int = 32
    window: float = 1.0
    loss: Literal["labels", "distribution"] = "labels"
    temperature: float = 1.0
    precision: Literal["float32", "bfloat16"] = "float32"
    clips: Literal["stored", "streamed"] = "stored"
    buffer: int = 256
    flip: bool = False
    crop: float = 1.0
    light: float = 0.0
    seed: int = 0
    running: Running = field(default_factory=Running)

    def __post_init__(self) -> None:
        if not self.phases:
            raise ConfigError("phases must be at least one, got none")
        for name, least in (("batch", 1), ("buffer", 1), ("seed", 0)):
            _require_whole(name, getattr(self, name), least=least)
        for name, hint in get_type_hints(TrainingOptions).items():
            if get_origin(hint) is Literal:
                value, choices = getattr(self, name), get_args(hint)
                _require(value in choices, name, f"one of {', '.join(choices)}", value)
        for name in ("window", "temperature"):
            value = getattr(self, name)
            _require(0 < value < math.inf, name, "more than 0", value)
        _require(0 < self.crop <= 1, "crop", "above 0 and at most 1", self.crop)
        _require(0 <= self.light <= 1, "light", "between 0 and 1", self.light)


class Epoch(NamedTuple):
    """One epoch of the plan: its phase from 0 on, its number in it from 1 on, and its rate."""

    phase: int
    number: int
    rate: float


def plan(phases: Iterable[Phase]) -> list[Epoch]:
    """List all epochs in order."""
    return [
        Epoch(position, number, phase.rate_in(number))
        for position, phase in enumerate(phases)
        for number in range(1, phase.epochs + 1)
    ]


def make_optimizer(phase: Phase, network: torch.nn.Module) -> torch.optim.Optimizer:
    """Make a new optimiser for a phase; it does not take over the state of another phase."""
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    # One kernel for all weights instead of several for each.
    fused = all(weight.is_cuda for weight in weights)
    how: dict[str, Any] = {"lr": phase.rate, "weight_decay": phase.weight_decay, "fused": fused}
    if phase.optimiser == "adamw":
        return torch.optim.AdamW(weights, **how)
    return torch.optim.SGD(weights, momentum=phase.momentum, **how)


# The others wait while one still decodes its videos.
_PATIENCE = timedelta(days=1)


@dataclass(frozen=True)
class Team:
    """Rank of this process among all processes of a training, and the device it computes on."""

    device: torch.device
    rank: int = 0
    world: int = 1

    @property
    def leads(self) -> bool:
        """True for the process that writes files."""
        return self.rank == 0

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum of the values of all processes."""
        if self.world > 1:
            distributed.all_reduce(values)
        return values

    def wait(self) -> None:
        """Wait until all processes have reached this point."""
        if self.world > 1:
            # Only the value makes this process wait, too, and not its GPU alone.
            self.sum(torch.zeros(1, device=self.device)).item()

    def wrap(self, network: nn.Module) -> nn.Module:
        """Average gradients over all processes; all begin with the weights of the first."""
        if self.world == 1:
            return network
        devices = [self.device] if self.device.type == "cuda" else None
        return DistributedDataParallel(network, device_ids=devices)


ALONE = Team(torch.device("cpu"))
"""One process on the CPU."""


@contextmanager
def joined(device: str | None = None) -> Iterator[Team]:
    """Join the processes that torchrun started, if it did; by default on a GPU if there is one."""
    kind = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if kind.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(f"device must be available, got {kind!r} and no GPU that torch can use")
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield Team(torch.device(kind))
        return
    rank, local = int(os.environ["RANK"]), int(os.environ.get("LOCAL_RANK", "0"))
    chosen = torch.device(kind, local) if kind == "cuda" else torch.device(kind)
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    distributed.init_process_group("nccl" if chosen.type == "cuda" else "gloo", timeout=_PATIENCE)
    try:
        yield Team(chosen, rank, world)
        distributed.barrier()  # a process that leaves early would end the others
    finally:
        gc.collect()  # what still holds on to the group lets go of it now, and not at the exit
        distributed.destroy_process_group()
