"""Training of an encoder from a folder of labels."""

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

from stepgraph.encoders.model_folders import find_weights
from stepgraph.errors import ConfigError, DataError
from stepgraph.ingest.frames import ClipOptions
from stepgraph.labelling.folders import open_labels
from stepgraph.networks.checkpoints import Trained, read_header, save_checkpoint, trained_videos
from stepgraph.networks.timesformer import TimeSformer, TimeSformerOptions, load_hf
from stepgraph.networks.weights import read_weights
from stepgraph.problems import Problems
from stepgraph.training.batches import Source, StoredSource, StreamedSource, too_short
from stepgraph.training.clip_store import ClipStore, fill
from stepgraph.training.loop import BEST, fit
from stepgraph.training.schedule import Team, TrainingOptions, joined
from stepgraph.training.state import EpochRecord, read_state
from stepgraph.training.targets import Examples, Which, load_examples

ENCODER, BEST_ENCODER = "encoder.safetensors", "best.safetensors"
_NOTHING = Trained(frozenset(), whole=True)
# More processes than this do not read faster, and all hold memory.
_WORKERS = 8


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """Result of a training: the encoder, to be used as ``own:PATH``, and its learning curve.

    ``best`` is the encoder of the epoch with the lowest mean loss, ``losses`` has the mean loss of
    every step; ``clips`` and ``videos`` count those used, ``problems`` has those that were not.
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
    """Train a video model on pseudo-labels, or continue an interrupted training.

    Started by ``torchrun``, all its processes train one model together.

    Parameters
    ----------
    labels_folder
        Folder that :func:`~stepgraph.labelling.folders.label_source` wrote.
    output
        Folder of the result: the encoder, the curve, logs, and the state to continue from.
    model
        The network; ``classes`` must be the number of keysteps.
    options
        The paper's, if not given.
    initial
        Weights to begin with: a TimeSformer of the transformers library (a file, or its folder)
        or one of ours; a head for other keysteps is left out.
    which
        Labels of the task graph (``graph``), or those of the baseline (``argmax``).
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
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            network = TimeSformer(model)
        before = load_initial(network, initial, keysteps) if initial else _NOTHING
        source = _open_source(examples, model, options, output, team=team, problems=problems)
        beginning = None if initial is None else _digest(network)
        identity = _identity(model, options, source.examples, team, which=which, initial=beginning)
        how, failed = fit(network, source, options, output, team=team, identity=identity)
        if team.leads:
            extra = {
                **{"window": options.window, "stride": examples.hop, "labels": which},
                "videos": sorted(before.videos | source.examples.used()),
                "videos_whole": before.whole,
            }
            save_checkpoint(output / ENCODER, network, keysteps, extra)
            network.load_state_dict(read_state(output / BEST)["model"])
            save_checkpoint(output / BEST_ENCODER, network, keysteps, extra)
        team.wait()
    for one in failed:
        problems.add(one.where, one.kind, one.what, fatal=one.fatal)
    used = source.examples
    return TrainingResult(
        output / ENCODER,
        output / BEST_ENCODER,
        np.array(how.losses, dtype=np.float64),
        tuple(how.epochs),
        clips=len(used),
        videos=len(used.used()),
        problems=problems,
    )


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
        # Training on a CPU leaves no time for workers.
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
    mask = examples.clip < counts[examples.video]
    if not mask.any():
        raise DataError(
            f"{store.folder}: must hold some of the labelled clips, got none: {problems.summary()}"
        )
    return examples if mask.all() else examples.only(mask)


def load_initial(network: TimeSformer, path: Path, keysteps: Sequence[str]) -> Trained:
    """Load initial weights, of the transformers library's TimeSformer or of one of ours.

    A head of ours for other keysteps is not loaded.  Returns the videos that the weights were
    trained on, if they are ours.
    """
    files = find_weights(path) if path.is_dir() else [path]
    if not files:
        raise DataError(
            f"{path}: must be a model of the transformers library, got a folder without weights"
        )
    state = {name: weight for file in files for name, weight in read_weights(file).items()}
    before = Trained(frozenset(), whole=False)
    if "clip_token" in state:
        before = trained_videos(path)
        if read_header(path).keysteps != tuple(keysteps):
            state = {name: w for name, w in state.items() if not name.startswith("head.")}
    load_hf(network, state)
    return before


def _identity(
    model: TimeSformerOptions,
    options: TrainingOptions,
    examples: Examples,
    team: Team,
    *,
    which: Which,
    initial: str | None,
) -> dict[str, Any]:
    """Collect everything that decides the outcome of a training."""
    decisive = asdict(options)
    del decisive["running"]
    content = {"model": asdict(model), **decisive, "which": which, "labels": examples.digest()}
    content["initial"] = initial
    if options.clips == "streamed":
        # The clips of a batch depend on the workers that decode them.
        content |= {"processes": team.world, "workers": options.running.workers}
    return content


def _digest(network: TimeSformer) -> str:
    """Hash the initial weights, independently of their file."""
    hashed = hashlib.sha256()
    for name, weight in network.state_dict().items():
        hashed.update(name.encode() + weight.contiguous().numpy().tobytes())
    return hashed.hexdigest()[:16]
