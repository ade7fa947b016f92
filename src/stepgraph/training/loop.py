"""Training loop for any network, any source of batches, one process or many.

Every step is the mean over a global batch, however the processes share it.  The state is saved at
regular steps; a killed run continues from there and has, on a CPU, bit for bit the same losses as
an uninterrupted one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from stepgraph.errors import DataError, MissingExtraError, one_line
from stepgraph.networks.timesformer import normalize
from stepgraph.problems import Problem
from stepgraph.progress import counting
from stepgraph.training.batches import Batch, Source
from stepgraph.training.schedule import Epoch, Team, TrainingOptions, make_optimizer, plan
from stepgraph.training.state import (
    EpochRecord,
    Position,
    position_of,
    read_state,
    require_same,
    save_state,
    write_curve,
)
from stepgraph.training.targets import distribution_losses

LAST, BEST = "last.pt", "best.pt"
# Steps whose losses stay on the device until they are fetched together.
_FETCHED = 20


def fit(
    network: nn.Module,
    source: Source,
    options: TrainingOptions,
    folder: Path,
    *,
    team: Team,
    identity: Mapping[str, Any],
) -> tuple[Position, list[Problem]]:
    """Train a network, or continue an interrupted training in the folder.

    The network, from normalised clips to logits, is changed in place.  The folder receives
    ``last.pt``, ``best.pt`` (the epoch of lowest mean loss), ``curve.csv`` and logs; a training
    that began with another ``identity``, everything that decides the outcome, is refused.
    Returns the progress, and the problems with streamed clips in this run.
    """
    run = _Run(network.to(team.device), source, options, folder, team, identity)
    with torch.random.fork_rng([team.device] if team.device.type == "cuda" else []):
        torch.manual_seed(options.seed)
        run.resume()
        run.train()
    return run.position, list(run.failed.values())


def compiles(options: TrainingOptions, device: torch.device) -> bool:
    """Decide if torch compiles the network: as the options require, by default on a GPU."""
    if options.running.compile is None:
        return device.type == "cuda"
    return options.running.compile


def _open_logs(folder: Path, step: int) -> Any:
    """Open the logs for TensorBoard; entries of a killed run after ``step`` are dropped."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtraError(
            "logs for TensorBoard need the 'train' extra; run: pip install 'stepgraph[train]', or "
            "train without logs"
        ) from error
    return SummaryWriter(str(folder), purge_step=step or None)


@dataclass
class _Run:
    """A training in progress."""

    network: nn.Module
    source: Source
    options: TrainingOptions
    folder: Path
    team: Team
    identity: Mapping[str, Any]
    position: Position = field(default_factory=Position)
    optimiser: torch.optim.Optimizer | None = None
    pending: list[tuple[Tensor, int]] = field(default_factory=list)
    failed: dict[str, Problem] = field(default_factory=dict)
    fetched: float = field(default_factory=time.perf_counter)
    logs: Any = None

    def __post_init__(self) -> None:
        self.plan = plan(self.options.phases)
        self.half = self.options.precision == "bfloat16"

    def resume(self) -> None:
        """Continue from the state of the last run in this folder, if there is one."""
        path = self.folder / LAST
        if not path.exists():
            return
        state = read_state(path)
        require_same(path, state, self.identity)
        self.position = position_of(path, state)
        try:
            self.network.load_state_dict(state["model"])
            if self.position.epoch < len(self.plan):
                self.optimiser = self._new_optimizer()
                # A phase begins with a new one.
                if self.position.step or self.plan[self.position.epoch].number > 1:
                    self.optimiser.load_state_dict(state["optimiser"])
            torch.set_rng_state(state["chance"][0])
            if self.team.device.type == "cuda" and state["chance"][1:]:
                torch.cuda.set_rng_state(state["chance"][1])
        except (LookupError, TypeError, ValueError, RuntimeError, AttributeError) as error:
            raise DataError(
                f"{path}: must hold this network and its optimiser, got others "
                f"({one_line(str(error), 80)}); delete it to begin anew"
            ) from error

    def _new_optimizer(self) -> torch.optim.Optimizer:
        epoch = self.plan[self.position.epoch]
        return make_optimizer(self.options.phases[epoch.phase], self.network)

    def train(self) -> None:
        """Train all remaining epochs."""
        position, team = self.position, self.team
        model = team.wrap(self.network)
        model.train()
        left = (len(self.plan) - position.epoch) * len(self.source.examples) - position.clips
        with ExitStack() as stack:
            if compiles(self.options, team.device):
                # A missing compiler is an error only if compiling was requested.
                lenient = self.options.running.compile is None
                stack.enter_context(torch._dynamo.config.patch(suppress_errors=lenient))
                model.compile()
            done = stack.enter_context(counting("training (clips)", left))
            if left > 0 and self.options.running.logs and team.leads:
                self.logs = _open_logs(self.folder / "logs", len(position.losses))
                stack.callback(self.logs.close)
            while position.epoch < len(self.plan):
                self._train_epoch(model, done)

    def _train_epoch(self, model: nn.Module, done: Callable[[int], None]) -> None:
        position, epoch = self.position, self.plan[self.position.epoch]
        if self.optimiser is None or (not position.step and epoch.number == 1):
            self.optimiser = self._new_optimizer()
        for group in self.optimiser.param_groups:
            group["lr"] = epoch.rate
        for batch, total in self._batches():
            if total:
                self._learn(model, self.optimiser, batch, total)
            position.step += 1
            saving = position.step % self.options.running.save_every == 0
            if saving or len(self.pending) >= _FETCHED:
                self._fetch(epoch)
            if saving:
                self._save(LAST, self.optimiser)
            done(total)
        self._fetch(epoch)
        self._close_epoch(epoch)

    def _batches(self) -> Iterator[tuple[Batch, int]]:
        """Yield the rest of an epoch's batches, with the number of clips in all processes."""
        batches = self.source.batches(self.position.epoch, self.position.step)
        alone = self.team.world == 1
        while True:
            own = next(batches, None)
            batch = self.source.blank if own is None else own
            self.failed.update((problem.where, problem) for problem in batch.failed)
            if alone or batch.total is not None:
                if own is None:
                    return
                yield batch, batch.real if batch.total is None else batch.total
                continue
            # Streams end at different times: go on until the last has ended.
            counts = torch.tensor([batch.real, own is not None], device=self.team.device)
            total, alive = self.team.sum(counts).tolist()
            if not alive:
                return
            yield batch, total

    def _learn(
        self, model: nn.Module, optimiser: torch.optim.Optimizer, batch: Batch, total: int
    ) -> None:
        device, real = self.team.device, batch.real
        clips, keysteps, *soft = (
            part.to(device, non_blocking=True)
            for part in (batch.clips, batch.keysteps, *batch.soft)
        )
        with torch.autocast(device.type, torch.bfloat16, enabled=self.half):
            logits = model(normalize(clips))
        if self.options.loss == "labels":
            losses = cross_entropy(logits.float(), keysteps, reduction="none")
        else:
            losses = distribution_losses(logits.float(), *soft)
        # A blank clip still takes part, since all processes must.
        loss = losses[:real].sum() if real else losses.sum() * 0
        # Gradients are averaged over the processes; this makes it the mean over the clips.
        torch.autograd.backward(loss * (self.team.world / total))
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        right = (logits.argmax(dim=1) == keysteps)[:real].sum()
        sums = torch.stack([loss.detach(), right.to(loss.dtype)])
        self.pending.append((self.team.sum(sums), total))

    def _fetch(self, epoch: Epoch) -> None:
        """Fetch the losses of the last steps from the device, all at once, and log them."""
        if not self.pending:
            return
        position = self.position
        sums = torch.stack([both for both, _ in self.pending]).tolist()
        clips = [total for _, total in self.pending]
        self.pending.clear()
        for (loss, right), total in zip(sums, clips, strict=True):
            if not math.isfinite(loss):
                raise DataError(
                    f"{self.folder}: loss must be finite, got {loss} in epoch {epoch.number} of "
                    f"phase {epoch.phase + 1}; lower the rate"
                )
            position.losses.append(loss / total)
            position.loss += loss
            position.correct += right
            position.clips += total
        since, self.fetched = self.fetched, time.perf_counter()
        shown = {
            "train/loss": sum(loss for loss, _ in sums) / sum(clips),
            "train/accuracy": sum(right for _, right in sums) / sum(clips),
            "train/rate": epoch.rate,
            "train/clips per second": sum(clips) / max(self.fetched - since, 1e-9),
        }
        self._log(len(position.losses), shown)

    def _close_epoch(self, epoch: Epoch) -> None:
        position = self.position
        if not position.clips:
            why = f": {next(iter(self.failed.values())).what}" if self.failed else ""
            raise DataError(
                f"{self.folder}: an epoch must have at least one clip that can be read, got none"
                f"{why}"
            )
        record = EpochRecord(
            epoch.phase + 1,
            epoch.number,
            epoch.rate,
            position.loss / position.clips,
            position.correct / position.clips,
            position.clips,
        )
        is_best = all(record.loss <= before.loss for before in position.epochs)
        position.epochs.append(record)
        position.epoch, position.step = position.epoch + 1, 0
        position.loss, position.correct, position.clips = 0.0, 0.0, 0
        self._log(position.epoch, {"epoch/loss": record.loss, "epoch/accuracy": record.accuracy})
        # The state last: whatever a kill prevents before it, the next run does again.
        if self.team.leads:
            write_curve(self.folder / "curve.csv", position.epochs)
        if is_best:
            self._save(BEST, None)
        self._save(LAST, self.optimiser)

    def _log(self, step: int, shown: Mapping[str, float]) -> None:
        for name, value in shown.items() if self.logs is not None else ():
            self.logs.add_scalar(name, value, step)

    def _save(self, name: str, optimiser: torch.optim.Optimizer | None) -> None:
        if self.team.leads:
            save_state(self.folder / name, self.identity, self.position, self.network, optimiser)
