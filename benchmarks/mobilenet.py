"""A head on MobileNetV2 against colour and motion: ``python -m benchmarks.mobilenet FOLDER``.

Clips of one seed are labelled from their narration, as ``stepgraph label`` does, and heads are
trained on those labels, on those of plain argmax, and on the truth (what is possible).  All are
measured on clips of other seeds, which nothing was chosen on, with the graph that was mined from
the narration of the first.  Prints one JSON object a line: Acc and IoU, pooled, in percent, of
argmax and of path search.  Features are kept in the folder, so that it can be run again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

import stepgraph as sg
from stepgraph.core import BACKGROUND, Dataset, Features, Scores, Video, Vocabulary
from stepgraph.datasets.generated import open_generated
from stepgraph.encoders import load_encoder
from stepgraph.encoders.checkpoints import MOBILENET, OwnEncoder
from stepgraph.encoders.each import encode_to
from stepgraph.encoders.stored_features import FeatureStore
from stepgraph.graph import TaskGraph
from stepgraph.labelling.folders import label_source
from stepgraph.networks.checkpoints import save_checkpoint
from stepgraph.networks.mobilenet import relate
from stepgraph.problems import Problems
from stepgraph.scoring import score
from stepgraph.training.pictures import BATCH, HEAD, fit, train_head
from stepgraph.training.schedule import TrainingOptions

DECODERS = {"argmax": sg.Argmax(), "path-search": sg.PathSearch(threshold=0.4)}


class Seen:
    """A head on features that are stored: what it makes of a video, without looking again."""

    def __init__(self, head: OwnEncoder, store: FeatureStore, *, alone: bool = False) -> None:
        self.options, self._head, self._store = head.options, head, store
        if alone:  # each row by itself
            head._head.forward = lambda rows: head._head.name(relate(rows))

    def encode_keysteps(self, vocabulary: Vocabulary) -> np.ndarray:
        return self._head.encode_keysteps(vocabulary)

    def encode_videos(self, videos: Sequence[Video]) -> Iterator[Features]:
        for video in videos:
            found = self._store.read(video)
            named = self._head._finish(found.vectors)
            yield Features(video.id, found.duration, named, found.intervals)


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)


def look(folder: Path, seed: int, dataset: Dataset) -> FeatureStore:
    """Features of all clips of a seed, computed once."""
    place, before = folder / f"features-{seed}", time.process_time()
    done = encode_to(FeatureStore(place), dataset.videos, load_encoder(MOBILENET), Problems())
    if done.written:
        seconds = round(time.process_time() - before, 1)
        say(bench="looking", seed=seed, rows=done.rows, frames=done.frames, cpu_seconds=seconds)
    return FeatureStore(place)


def train_on_truth(dataset: Dataset, store: FeatureStore, to: Path) -> Path:
    """A head that was told what is done when."""
    seen, truth = [], []
    for video in dataset.videos:
        rows = relate(torch.from_numpy(store.read(video).vectors))
        keysteps = dataset.truth[video.id].keysteps[: len(rows)]
        seen.append(rows[: len(keysteps)][keysteps != BACKGROUND])
        truth.append(keysteps[keysteps != BACKGROUND])
    targets = torch.from_numpy(np.concatenate(truth)).to(torch.int64)
    options = TrainingOptions((HEAD,), batch=BATCH)
    head, _ = fit(torch.cat(seen), targets, len(dataset.vocabulary), options)
    save_checkpoint(to, head, dataset.vocabulary.keysteps)
    return to


def train_all(folder: Path, seed: int, dataset: Dataset) -> tuple[TaskGraph, dict[str, Path]]:
    """The graph of the narration, and heads by what they were trained on."""
    graph = sg.mine(dataset)
    label_source(dataset.videos, graph, folder / "labels")
    store, heads = look(folder, seed, dataset), {}
    for which in ("graph", "argmax"):
        place, before = folder / f"head-{which}", time.process_time()
        place.mkdir(exist_ok=True)
        if not (place / "features").exists():
            (place / "features").symlink_to(store.path.resolve())
        made = train_head(folder / "labels", place, which=which)
        seconds = round(time.process_time() - before, 1)
        say(bench="training", labels=which, clips=made.clips, cpu_seconds=seconds)
        heads[f"head on MobileNetV2, {which} labels"] = made.checkpoint
    heads["head on MobileNetV2, true labels"] = train_on_truth(
        dataset, store, folder / "head-truth.safetensors"
    )
    return graph, heads


def steadied(scores: Scores) -> Scores:
    """Each row as the mean of itself and its neighbours, as a head has it."""
    values = np.pad(scores.values, ((1, 1), (0, 0)), mode="edge")
    return scores.with_values((values[:-2] + values[1:-1] + values[2:]) / 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--train", type=int, default=0, metavar="SEED")
    parser.add_argument("--test", type=int, nargs="+", default=[1, 2], metavar="SEED")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    graph, heads = train_all(args.folder, args.train, open_generated(args.train))
    for seed in args.test:
        dataset = open_generated(seed)
        store = look(args.folder, seed, dataset)
        colour = list(score(dataset.videos, dataset.vocabulary, load_encoder("colour:motion")))
        methods = {"colour:motion": colour, "colour:motion, rows averaged": map(steadied, colour)}
        for name, path in heads.items():
            encoder = Seen(load_encoder(f"own:{path}"), store)
            methods[name] = list(score(dataset.videos, dataset.vocabulary, encoder))
            encoder = Seen(load_encoder(f"own:{path}"), store, alone=True)
            alone = score(dataset.videos, dataset.vocabulary, encoder)
            methods[f"{name}, rows not averaged"] = list(alone)
        for name, scores in methods.items():
            kept, found = list(scores), {}
            for decoder, one in DECODERS.items():
                labels = [one.decode(each, graph) for each in kept]
                report = sg.evaluate(labels, dataset.truth, decoder=decoder)
                found[decoder] = [round(100 * report.accuracy, 1), round(100 * report.iou, 1)]
            say(bench="recognising", method=name, trained_on=args.train, seed=seed, **found)


if __name__ == "__main__":
    sys.exit(main())
