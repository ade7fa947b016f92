"""Training from files beside training without input: ``python -m benchmarks.gpu.training``.

    PYTHONPATH=src:. python -m benchmarks.gpu.training -o build/training.jsonl   # with a GPU
    PYTHONPATH=src:. python -m benchmarks.gpu.training --tiny                    # a trial without

Writes a store of random clips, as ``stepgraph train`` keeps them (one file a video, no picture
shared between clips), and trains the paper's TimeSformer with the library's own loop and its
defaults, compiled on a GPU: on one batch that is never read again (``no input``), on clips read at
random by some numbers of processes (``from files``), and so once more after the system was told to
forget the files (``from disk``).  One JSON object a line: clips/s, the share of no input, and how
long the loop waited for its reader.  Needs torch, numpy and scipy, and no PyAV.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from stepgraph.ingest.frames import Clip, ClipOptions
from stepgraph.networks.timesformer import TimeSformer, TimeSformerOptions
from stepgraph.training import clip_store as stores
from stepgraph.training.batches import Batch, Source, StoredSource
from stepgraph.training.clip_store import ClipStore
from stepgraph.training.loop import compiles, fit
from stepgraph.training.schedule import Phase, Running, Team, TrainingOptions, joined
from stepgraph.training.targets import Examples

ROUND = 20  # steps after which the loop waits for the device
CLIPS = 200  # of a video


def noise(options: ClipOptions) -> Iterator[Clip]:
    """Clips of different noise; drawing all of it anew would take longer than writing."""
    chance = np.random.default_rng()
    size = options.frames * options.height * options.width * 3
    pool = chance.integers(0, 256, 2 * size, dtype=np.uint8)
    for row in range(CLIPS):
        begin = int(chance.integers(size))
        frames = pool[begin : begin + size].reshape(-1, options.height, options.width, 3)
        yield Clip(float(row), row + 1.0, frames)


def write_store(store: ClipStore, videos: dict[str, Path]) -> dict[str, Any]:
    """Fill the store through its own writer."""
    begun = time.perf_counter()
    with (
        mock.patch.object(stores, "read_clips", lambda _, options: noise(options)),
        ThreadPoolExecutor(8) as pool,
    ):
        list(pool.map(store.write, videos, videos.values()))
    seconds = time.perf_counter() - begun
    size = sum(path.stat().st_size for path in store.folder.iterdir()) / 1e9
    return {"bench": "store", "gb": round(size, 2), "seconds": round(seconds, 1)}


def forget(folder: Path) -> None:
    """Let the system drop what it keeps of the files in memory."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Timed:
    """A source whose batches are timed, and replaced by the first one where none is to be read."""

    def __init__(self, source: Source, steps: int, *, reads: bool) -> None:
        self.source, self.steps, self.reads = source, steps, reads
        self.examples, self.blank = source.examples, source.blank
        self.asked: list[float] = []
        self.waited: list[float] = []

    def batches(self, epoch: int, first: int) -> Iterator[Batch]:
        batches = self.source.batches(epoch, first)
        batch = next(batches)
        for _ in range(self.steps):
            self.asked.append(time.perf_counter())
            yield batch
            begun = time.perf_counter()
            batch = next(batches) if self.reads else batch
            self.waited.append(time.perf_counter() - begun)

    def said(self, batch: int) -> dict[str, Any]:
        """Rates of whole rounds but the first, in which the network is compiled."""
        ends = self.asked[ROUND::ROUND]
        rates = [batch * ROUND / (b - a) for a, b in pairwise(ends)]
        total = self.asked[-1] - self.asked[ROUND]
        return {
            "clips_per_second": round(batch * (len(self.asked) - 1 - ROUND) / total, 1),
            "slowest_round": round(min(rates), 1),
            "median_round": round(statistics.median(rates), 1),
            "waited_share": round(sum(self.waited[ROUND:]) / total, 4),
            "first_round_s": round(ends[0] - self.asked[0], 1),
        }


def examples_of(videos: dict[str, Path], steps: int, batch: int, classes: int) -> Examples:
    """As many examples as are read, each clip of the store as often as any other."""
    chance, count = np.random.default_rng(0), (steps + 1) * batch
    which = np.resize(chance.permutation(len(videos) * CLIPS), count)
    return Examples(
        videos,
        (CLIPS,) * len(videos),
        (which // CLIPS).astype(np.int32),
        (which % CLIPS).astype(np.int32),
        chance.integers(0, classes, count).astype(np.int32),
        (),
    )


def measure(
    shape: TimeSformerOptions, store: ClipStore, videos: dict[str, Path], given: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """No input, files with each number of workers, and the disk with the last of them."""
    steps = (given.rounds + 1) * ROUND + 1
    examples = examples_of(videos, steps, given.batch, shape.classes)
    running = Running(logs=False, compile=False if given.eager else None)
    options = TrainingOptions((Phase("adamw", 1, 1e-5),), given.batch, running=running)
    ways = [("no input", 0), *(("from files", workers) for workers in given.workers)]
    ways.append(("from disk", given.workers[-1]))
    with joined() as team:
        alone = 0.0
        for bench, workers in ways:
            if bench == "from disk":
                forget(store.folder)
            source = StoredSource(examples, store, options, workers=workers, team=team)
            timed = Timed(source, steps, reads=bench != "no input")
            train(shape, timed, options, team)
            said = timed.said(given.batch)
            alone = alone or said["clips_per_second"]
            share = said["clips_per_second"] / alone
            where = torch.cuda.get_device_name() if team.device.type == "cuda" else "cpu"
            yield {
                "bench": bench,
                "workers": workers,
                **said,
                "share_of_no_input": round(share, 3),
                "batch": given.batch,
                "steps": steps,
                "compiled": compiles(options, team.device),
                "device": where,
            }


def train(shape: TimeSformerOptions, timed: Any, options: TrainingOptions, team: Team) -> None:
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        network = TimeSformer(shape)
        fit(network, timed, options, Path(folder), team=team, identity={})


def main() -> None:
    parser = argparse.ArgumentParser(description="Training from files beside no input.")
    parser.add_argument("--tiny", action="store_true", help="a small network, for a CPU")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=10, help=f"of {ROUND} steps each")
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 8])
    parser.add_argument("--gb", type=float, default=10.0, help="size of the store")
    parser.add_argument("--eager", action="store_true", help="do not compile")
    parser.add_argument("--folder", type=Path, help="where the store is written, and removed")
    parser.add_argument("-o", "--output", type=Path, help="JSON lines")
    given = parser.parse_args()
    shape = TimeSformerOptions(10_588)
    if given.tiny:
        shape = TimeSformerOptions(100, frames=4, size=64, width=64, depth=2, heads=4)
        given.gb, given.rounds, given.batch = 0.02, 1, min(given.batch, 8)
    clips = ClipOptions(shape.frames, 1.0, 1.0, shape.size, shape.size)
    size = CLIPS * shape.frames * shape.size**2 * 3
    lines: list[str] = []

    def say(found: dict[str, Any]) -> None:
        lines.append(json.dumps(found))
        print(lines[-1], flush=True)
        if given.output:
            given.output.parent.mkdir(parents=True, exist_ok=True)
            given.output.write_text("\n".join([*lines, ""]), "utf-8")

    cpus = os.cpu_count()
    say({"python": platform.python_version(), "torch": torch.__version__, "cpus": cpus})
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        videos = {
            str(number): Path(__file__) for number in range(max(2, int(given.gb * 1e9 // size)))
        }
        store = ClipStore(Path(folder) / "clips", clips)
        free = shutil.disk_usage(folder).free / 1e9
        say({**write_store(store, videos), "clips": len(videos) * CLIPS, "free_gb": round(free)})
        for found in measure(shape, store, videos, given):
            say(found)


if __name__ == "__main__":
    main()
