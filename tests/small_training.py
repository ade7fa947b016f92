"""A training of a moment: clips of one colour, a network of two layers, and a way to stop it."""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from stepgraph.ingest.frames import ClipOptions
from stepgraph.training.batches import StoredSource, StreamedSource
from stepgraph.training.loop import fit
from stepgraph.training.schedule import ALONE, Phase, Running, TrainingOptions, joined
from stepgraph.training.targets import Examples

CLIP = ClipOptions(frames=2, height=6, width=6)
QUICK = (Phase("sgd", 2, 0.05, drops=(2,)), Phase("adamw", 2, 0.01, drops=(2,)))
QUIET = Running(logs=False)


class Colours:
    """A store of clips in memory: each clip is noise around the colour of its keystep."""

    options = CLIP

    def read(self, video, clip):
        chance = np.random.default_rng([clip, int(video)])
        color = np.array([(0, 0, 0), (200, 0, 0), (0, 200, 0), (0, 0, 200)])[clip % 4]
        noise = chance.integers(0, 50, size=(2, 6, 6, 3))
        return (color + noise).clip(0, 255).astype(np.uint8)


class Small(nn.Module):
    """The mean colour through two layers; with chance, so that its state matters."""

    def __init__(self, classes=4, dropout=0.2):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3)
            self.first, self.second = nn.Linear(3, 8), nn.Linear(8, classes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, clips):
        hidden = self.first(clips.mean(dim=(1, 3, 4)))
        return self.second(self.dropout(torch.tanh(hidden)))


def make_examples(count=22, classes=4):
    clip = np.arange(count, dtype=np.int32)
    soft = np.stack([clip % classes, (clip + 1) % classes, (clip + 2) % classes], axis=1)
    weights = np.tile(np.array([0.5, 0.3, 0.2], np.float32), (count, 1))
    video = (clip // 10).astype(np.int32)
    names = {str(number): None for number in range(int(video[-1]) + 1)}
    keysteps = (clip % classes).astype(np.int32)
    return Examples(names, (10,) * len(names), video, clip, keysteps, (soft, weights))


def make_options(**more):
    given = {"phases": QUICK, "batch": 5, "running": QUIET, **more}
    return TrainingOptions(**given)


def run(folder, options=None, *, network=None, source=None, examples=None, team=ALONE, workers=0):
    options = options or make_options()
    network = network or Small()
    source = source or StoredSource(
        examples or make_examples(),
        Colours(),
        options,
        team=team,
        workers=workers,
    )
    decisive = {name: value for name, value in asdict(options).items() if name != "running"}
    curve, _ = fit(network, source, options, folder, team=team, identity=decisive)
    return curve, network


class Stopped(Exception):
    """What stands for a kill."""


class Stopping:
    """A source that is cut off after so many batches."""

    def __init__(self, source, after):
        self.source, self.left = source, after
        self.examples, self.blank = source.examples, source.blank

    def batches(self, epoch, first):
        for batch in self.source.batches(epoch, first):
            if self.left == 0:
                raise Stopped
            self.left -= 1
            yield batch


CASES = {
    "even": ({}, 20),
    # The last batch has two clips of five, or one, so that a process has none.
    "uneven": ({"seed": 1}, 22),
    "one over": ({"flip": True, "loss": "distribution"}, 21),
    "more processes than clips": ({"batch": 1}, 3),
}


def run_case(name, folder, team=ALONE):
    """The losses of one of the cases that one and several processes must share."""
    more, count = CASES[name]
    network = Small(dropout=0.0)
    curve, _ = run(
        folder / name,
        make_options(**more),
        network=network,
        examples=make_examples(count),
        team=team,
    )
    return {"losses": curve.losses, "epochs": [asdict(one) for one in curve.epochs]}


def stream(folder, videos, team=ALONE):
    """The curve of a training on streamed clips of some videos."""
    examples = make_examples(10 * len(videos))
    examples = replace(examples, videos=videos, clips=(10,) * len(videos))
    examples.clip[:] %= 10
    options = make_options(clips="streamed", buffer=4, batch=6)
    source = StreamedSource(examples, CLIP, options, team=team)
    curve, _ = run(folder / "stream", options, source=source, team=team)
    return {"losses": curve.losses, "epochs": [asdict(one) for one in curve.epochs]}


def main(folder, videos):
    """What torchrun starts: all cases, and a stream that is longer for one than for the other."""
    torch.set_num_threads(1)
    with joined("cpu") as team:
        found = {name: run_case(name, folder, team) for name in CASES}
        names = {path.stem: path for path in sorted(videos.iterdir())}
        found["stream"] = stream(folder, names, team)
        found["world"] = team.world
    if team.leads:
        (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
