"""From a folder of labels to a trained encoder."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from stepgraph.errors import ConfigError, DataError
from stepgraph.ingest.frames import ClipOptions
from stepgraph.labelling import open_labels
from stepgraph.networks.timesformer import (
    TimeSformer,
    TimeSformerOptions,
    load_hf,
    read_header,
    save_checkpoint,
    to_hf,
)
from stepgraph.networks.weights import read_weights
from stepgraph.problems import Problems
from stepgraph.training.batches import Source, StoredSource, StreamedSource, too_short
from stepgraph.training.clip_store import ClipStore, fill
from stepgraph.training.loop import BEST, fit, is_half
from stepgraph.training.schedule import TrainingOptions
from stepgraph.training.state import EpochRecord, read_state
from stepgraph.training.targets import Examples, Which, load_examples
from stepgraph.training.team import Team, joined

ENCODER, BEST_ENCODER = "encoder.safetensors", "best.safetensors"
# More processes than this do not read faster, and all hold memory.
_WORKERS = 8


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """What a training gave.

    Attributes
    ----------
    checkpoint
        The trained encoder, to be used as ``own:PATH``.
    best
        The same of the epoch with the lowest mean loss.
    losses
        Mean loss of every step.
    clips, videos
        How many were learned from.
    problems
        Videos and clips that could not be used.
    """

    checkpoint: Path
    best: Path
    losses: NDArray[np.float64]
    epochs: tuple[EpochRecord, ...]
    clips: int
    videos: int
    problems: Problems


def train(
    labels_folder: Path,
    output: Path,
    *,
    model: TimeSformerOptions,
    options: TrainingOptions | None = None,
    initial: Path | None = None,
    which: Which = "graph",
) -> TrainingResult:
    """Train a video model on pseudo-labels, or go on with a training that was begun.

    Started by ``torchrun``, all its processes train one model together.

    Parameters
    ----------
    labels_folder
        What :func:`~stepgraph.labelling.label_source` wrote.
    output
        Folder of the result: the encoder, the curve, logs, and the state to go on from.
    model
        The network; ``classes`` must be the number of keysteps.
    options
        The paper's, if not given.
    initial
        Weights to begin with: a TimeSformer of the transformers library (a file, or its folder)
        or one of ours; a head for other keysteps is left out.
    which
        Labels of the task graph, or the baseline's of plain argmax.
    """
    options = options or TrainingOptions()
    if which not in ("graph", "argmax"):
        raise ConfigError(f"which must be 'graph' or 'argmax', got {which!r}")
    labels = open_labels(labels_folder)
    keysteps = labels.provenance.vocabulary.keysteps
    if model.classes != len(keysteps):
        raise ConfigError(
            f"{labels_folder}: must be labels of {model.classes} keysteps, as many as the model "
            f"has classes, got {len(keysteps)}; were they made with another vocabulary?"
        )
    problems = Problems()
    examples = load_examples(labels, which, options, problems)
    with joined(options.running.device) as team:
        # First what may be refused at once: decoding may take hours.
        network = _make_network(model, options.seed, initial, keysteps)
        source = _open_source(examples, model, options, output, team=team, problems=problems)
        beginning = None if initial is None else _digest(network)
        identity = _identity(model, options, source.examples, team, which=which, initial=beginning)
        curve = fit(network, source, options, output, team=team, identity=identity)
        extra = {"window": options.window, "stride": examples.hop, "labels": which}
        if team.leads:
            _export(network, output, keysteps, extra)
        team.wait()
    for one in curve.failed:
        problems.add(one.where, one.kind, one.what, lost=one.lost)
    files, used = (output / ENCODER, output / BEST_ENCODER), source.examples
    videos = len(np.unique(used.video))
    return TrainingResult(*files, curve.losses, curve.epochs, len(used), videos, problems)


def _open_source(
    examples: Examples,
    model: TimeSformerOptions,
    options: TrainingOptions,
    output: Path,
    *,
    team: Team,
    problems: Problems,
) -> Source:
    clips = ClipOptions(
        frames=model.frames,
        window=options.window,
        stride=examples.hop,
        height=model.size,
        width=model.size,
    )
    running, workers = options.running, options.running.workers
    if workers is None:
        # Beside a CPU that computes there is no time left that others could use.
        workers = _cpus() if team.device.type == "cuda" else 0
    if options.clips == "streamed":
        return StreamedSource(examples, clips, options, team=team, workers=workers)
    store = ClipStore(running.store or output / "clips", clips)
    share, counts = (team.rank, team.world), examples.clips
    fill(store, examples.videos, counts, problems=problems, workers=workers, share=share)
    team.wait()
    examples = _only_stored(examples, store, problems)
    return StoredSource(examples, store, options, team=team, workers=workers)


def _cpus() -> int:
    # Some of the machine's may be kept from this process.
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(own or 1, _WORKERS)


def _only_stored(examples: Examples, store: ClipStore, problems: Problems) -> Examples:
    """Leave out clips that could not be decoded, or that lie past the end of their video."""
    counts = np.zeros(len(examples.videos), dtype=np.int64)
    for position, (video, path) in enumerate(examples.videos.items()):
        count = store.count(video, path)
        counts[position] = count or 0
        if count is not None and count < examples.clips[position]:
            short = too_short(video, path, examples.clips[position], count)
            problems.add(short.where, short.kind, short.what)
    kept = examples.clip < counts[examples.video]
    if not kept.any():
        raise DataError(
            f"{store.folder}: must hold some of the labelled clips, got none: {problems.summary()}"
        )
    return examples if kept.all() else examples.only(kept)


def _make_network(
    model: TimeSformerOptions, seed: int, initial: Path | None, keysteps: Sequence[str]
) -> TimeSformer:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = TimeSformer(model)
    if initial is not None:
        load_initial(network, initial, keysteps)
    return network


def load_initial(network: TimeSformer, path: Path, keysteps: Sequence[str]) -> None:
    """Begin with the weights of another model.

    Parameters
    ----------
    path
        A file of the transformers library's TimeSformer, the folder of one, or one of ours.
    keysteps
        Names of the classes; a head of ours for other names stays as it was drawn.
    """
    if path.is_dir():
        found = [path / name for name in ("model.safetensors", "pytorch_model.bin")]
        file = next((file for file in found if file.is_file()), None)
        if file is None:
            raise DataError(
                f"{path}: must be a model of the transformers library, got a folder without "
                f"{found[0].name} or {found[1].name}"
            )
        path = file
    state = read_weights(path)
    if "clip_token" in state:
        if read_header(path).keysteps != tuple(keysteps):
            state = {name: w for name, w in state.items() if not name.startswith("head.")}
        state = to_hf(state)
    load_hf(network, state)


def _identity(
    model: TimeSformerOptions,
    options: TrainingOptions,
    examples: Examples,
    team: Team,
    *,
    which: Which,
    initial: str | None,
) -> dict[str, Any]:
    """Everything that decides what is learned."""
    decisive = asdict(options)
    del decisive["running"]
    decisive["precision"] = "bfloat16" if is_half(options, team.device) else "float32"
    said = {"model": asdict(model), **decisive, "which": which, "labels": examples.digest()}
    said["initial"] = initial
    if options.clips == "streamed":
        # Which clips meet in a batch depends on who decodes them.
        said |= {"processes": team.world, "workers": options.running.workers}
    return said


def _digest(network: TimeSformer) -> str:
    """What the weights to begin with are, whatever their file is called."""
    hashed = hashlib.sha256()
    for name, weight in network.state_dict().items():
        hashed.update(name.encode() + weight.contiguous().numpy().tobytes())
    return hashed.hexdigest()[:16]


def _export(
    network: TimeSformer, output: Path, keysteps: Sequence[str], extra: dict[str, Any]
) -> None:
    """Write the trained encoder, and that of the best epoch."""
    save_checkpoint(output / ENCODER, network, keysteps, extra)
    best = TimeSformer(network.options)
    best.load_state_dict(read_state(output / BEST)["model"])
    save_checkpoint(output / BEST_ENCODER, best, keysteps, extra)
