"""One process, or several that train one model together, as torchrun starts them."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from stepgraph.errors import ConfigError

# The others wait while one still decodes its videos.
_PATIENCE = timedelta(days=1)


@dataclass(frozen=True)
class Team:
    """Which of several processes this is, and the device it computes on."""

    device: torch.device
    rank: int = 0
    world: int = 1

    @property
    def leads(self) -> bool:
        """Whether this is the process that writes files."""
        return self.rank == 0

    def sum(self, values: Tensor) -> Tensor:
        """Sum of the values of all processes."""
        if self.world > 1:
            distributed.all_reduce(values)
        return values

    def wait(self) -> None:
        """Go on when all have come here."""
        if self.world > 1:
            # Only the value makes this process wait, too, and not its GPU alone.
            self.sum(torch.zeros(1, device=self.device)).item()

    def wrap(self, network: nn.Module) -> nn.Module:
        """Let every process learn from all; all begin with the weights of the first."""
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
        raise ConfigError(f"device must be there, got {kind!r} and no GPU that torch can use")
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield Team(torch.device(kind))
        return
    rank, local = int(os.environ["RANK"]), int(os.environ.get("LOCAL_RANK", "0"))
    place = torch.device(kind, local) if kind == "cuda" else torch.device(kind)
    if place.type == "cuda":
        torch.cuda.set_device(place)
    distributed.init_process_group("nccl" if place.type == "cuda" else "gloo", timeout=_PATIENCE)
    try:
        yield Team(place, rank, world)
        distributed.barrier()  # one that goes while others still talk to it takes them along
    finally:
        gc.collect()  # what still holds on to the group lets go of it now, and not at the exit
        distributed.destroy_process_group()
