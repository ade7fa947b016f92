"""Train a small head on the features of MobileNetV2: minutes on a CPU, most of them looking.

What was seen is kept beside the result, so that a run that was interrupted goes on looking where
it was; the head itself takes seconds, and is trained anew.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from stepgraph.core import Video
from stepgraph.encoders import load_encoder
from stepgraph.encoders.checkpoints import MOBILENET
from stepgraph.encoders.each import encode_to
from stepgraph.encoders.stored_features import FeatureStore
from stepgraph.errors import DataError
from stepgraph.labelling.folders import open_labels
from stepgraph.networks.checkpoints import save_checkpoint
from stepgraph.networks.mobilenet import PictureHead, PictureOptions, relate
from stepgraph.problems import Problems
from stepgraph.progress import track
from stepgraph.training.pretraining import ENCODER, TrainingResult
from stepgraph.training.schedule import Phase, TrainingOptions, make_optimiser
from stepgraph.training.state import EpochRecord, write_curve
from stepgraph.training.targets import Examples, Which, load_examples

HEAD = Phase("adamw", 12, 1e-3, drops=(), weight_decay=1e-2)
"""How a head is trained; its rate falls to zero along a cosine."""

BATCH = 128
"""Clips of a step."""

# Of each label so much is spread over all keysteps, so that a wrong one does little harm.
_SMOOTHING = 0.4
_LEAST = 1e-6  # deviation of a number that is always the same


def train_head(
    labels_folder: Path,
    output: Path,
    *,
    options: TrainingOptions | None = None,
    which: Which = "graph",
) -> TrainingResult:
    """Train a head on pseudo-labels; see :func:`~stepgraph.training.pretraining.train`.

    Of the options those of one phase count, the batch, the seed, and where the videos lie.
    """
    options = options or TrainingOptions((HEAD,), batch=BATCH)
    labels, problems = open_labels(labels_folder), Problems()
    keysteps = labels.provenance.vocabulary.keysteps
    examples = load_examples(labels, which, options, problems)
    seen, known = look(examples, output / "features", problems)
    targets = torch.from_numpy(examples.keystep[known]).to(torch.int64)
    head, records = fit(seen, targets, len(keysteps), options)
    save_checkpoint(output / ENCODER, head, keysteps, {"labels": which})
    write_curve(output / "curve.csv", records)
    return TrainingResult(
        output / ENCODER,
        output / ENCODER,
        np.array([record.loss for record in records]),
        tuple(records),
        clips=len(targets),
        videos=len(np.unique(examples.video[known])),
        problems=problems,
    )


def look(examples: Examples, folder: Path, problems: Problems) -> tuple[Tensor, NDArray[np.bool_]]:
    """What is seen in the clip of each example, and of which of them there is something to see."""
    lengths = [count * examples.hop for count in examples.clips]
    videos = [
        Video(name, length, path=path)
        for (name, path), length in zip(examples.videos.items(), lengths, strict=True)
    ]
    encode_to(FeatureStore(folder), videos, load_encoder(MOBILENET), problems)
    store = FeatureStore(folder, problems=problems)
    known = np.zeros(len(examples), dtype=bool)
    seen = []
    for place, video in enumerate(videos):
        if not store.has(video.id):
            continue  # noted above
        rows = relate(torch.from_numpy(store.read(video).vectors))
        own = np.flatnonzero(examples.video == place)
        at = (examples.clip[own] * examples.hop).astype(np.int64)
        known[own] = at < len(rows)
        seen.append(rows[at[at < len(rows)]])
    if not known.any():
        raise DataError(
            f"{folder}: must hold features of some of the labelled clips, got none: "
            f"{problems.summary()}"
        )
    return torch.cat(seen), known


def fit(
    seen: Tensor, targets: Tensor, classes: int, options: TrainingOptions
) -> tuple[PictureHead, list[EpochRecord]]:
    """Train a head on what was seen, shape (N, 2 * 1280), and the keystep of each."""
    [phase], count = options.phases, len(seen)
    steps = phase.epochs * -(-count // options.batch)
    records = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        head = PictureHead(PictureOptions(classes))
        head.mean.copy_(seen.mean(0))
        head.deviation.copy_(seen.std(0, correction=0) + _LEAST)
        optimiser = make_optimiser(phase, head)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
        for epoch in track(range(1, phase.epochs + 1), "training (epochs)"):
            rate, loss, correct = float(schedule.get_last_lr()[0]), 0.0, 0
            for some in torch.randperm(count).split(options.batch):  # type: ignore[no-untyped-call]
                logits = head.name(seen[some])
                wrong = F.cross_entropy(logits, targets[some], label_smoothing=_SMOOTHING)
                optimiser.zero_grad()
                wrong.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                schedule.step()
                loss += wrong.item() * len(some)
                correct += int((logits.argmax(1) == targets[some]).sum())
            records.append(EpochRecord(1, epoch, rate, loss / count, correct / count, count))
    return head.eval(), records
