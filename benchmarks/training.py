"""Does reading clips keep up with learning: ``python -m benchmarks.training [--small]``.

Fills a store with pictures of noise, then trains a TimeSformer on it through the library's own
loop: on one batch that is never read (``learning alone``), and on clips read at random by some
workers.  Prints one JSON object for each: clips a second, and the share of learning alone.
Without a GPU, ``--small`` trains a network of a few million weights.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import torch

from stepgraph.ingest.frames import Clip, ClipOptions
from stepgraph.networks.timesformer import TimeSformer, TimeSformerOptions
from stepgraph.problems import Problems
from stepgraph.training import clip_store as stores
from stepgraph.training.batches import Batch, Source, StoredSource
from stepgraph.training.clip_store import ClipStore, fill
from stepgraph.training.loop import fit
from stepgraph.training.schedule import Phase, Running, TrainingOptions, joined
from stepgraph.training.targets import Examples

# The loop waits for the device after every so many steps; only whole rounds are timed.
ROUND = 20


def noise(_: Path, options: ClipOptions) -> Iterator[Clip]:
    chance = np.random.default_rng(0)
    shape = (options.frames, options.height, options.width, 3)
    for row in range(600):
        yield Clip(float(row), row + 1.0, chance.integers(0, 256, shape, dtype=np.uint8))


def examples_of(rounds: int, batch: int, classes: int) -> Examples:
    count = (rounds + 1) * ROUND * batch
    chance = np.random.default_rng(0)
    return Examples(
        {"noise": Path(__file__)},
        (600,),
        np.zeros(count, np.int32),
        chance.integers(0, 600, count).astype(np.int32),
        chance.integers(0, classes, count).astype(np.int32),
        (),
    )


class Timed:
    """A source whose batches are timed, or replaced by the first one."""

    def __init__(self, source: Source, steps: int, *, read: bool) -> None:
        self.source, self.steps, self.read = source, steps, read
        self.examples, self.blank = source.examples, source.blank
        self.asked: list[float] = []

    def batches(self, epoch: int, first: int) -> Iterator[Batch]:
        batches = self.source.batches(epoch, first)
        batch = next(batches)
        for _ in range(self.steps):
            self.asked.append(time.perf_counter())
            yield batch
            batch = next(batches, batch) if self.read else batch

    def rate(self, batch: int) -> float:
        """Clips a second, without the first round."""
        return batch * (self.steps - 1 - ROUND) / (self.asked[-1] - self.asked[ROUND])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a small network, for a CPU")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3, help=f"of {ROUND} steps each")
    parser.add_argument("--workers", type=int, nargs="*", default=[0, 4, 8])
    parser.add_argument("--compile", action="store_true", help="let torch compile the network")
    given = parser.parse_args()
    shape = TimeSformerOptions(10_588)
    if given.small:
        shape = TimeSformerOptions(100, frames=4, size=64, width=128, depth=4, heads=4)
    clips = ClipOptions(shape.frames, 8.0, 1.0, shape.size, shape.size)
    examples = examples_of(given.rounds, given.batch, shape.classes)
    running = Running(compile=given.compile, logs=False)
    options = TrainingOptions((Phase("adamw", 1, 1e-5),), given.batch, running=running)
    with tempfile.TemporaryDirectory() as folder, joined() as team:
        store = ClipStore(Path(folder) / "clips", clips)
        with mock.patch.object(stores, "read_clips", noise):
            fill(store, examples.videos, examples.clips, problems=Problems())
        network = TimeSformer(shape)
        alone = 0.0
        for workers in (None, *given.workers):
            source = Timed(
                StoredSource(
                    examples,
                    store,
                    options,
                    workers=workers or 0,
                    team=team,
                ),
                (given.rounds + 1) * ROUND + 1,
                read=workers is not None,
            )
            fit(network, source, options, Path(folder) / f"run-{workers}", team=team, identity={})
            rate = source.rate(given.batch)
            alone = alone or rate
            said = {
                "bench": "learning alone" if workers is None else "reading and learning",
                "workers": workers,
                "clips_per_second": round(rate, 1),
                "share": round(rate / alone, 3),
                "batch": given.batch,
                "frames": shape.frames,
                "size": shape.size,
                "compiled": given.compile,
                "device": torch.cuda.get_device_name() if team.device.type == "cuda" else "cpu",
                "torch": torch.__version__,
                "python": platform.python_version(),
            }
            print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
