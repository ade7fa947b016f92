"""Pretraining on pseudo-labels, from video files to a downstream table.

A small TimeSformer is trained on the pseudo-labels of some videos: once on those of the task
graph, once on those of plain argmax and once on those of each control without a graph.  Its frozen
features are probed on other videos.  It is the paper's experiment on HowTo100M with 128 GPUs, on a
scale that a laptop computes in minutes.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stepgraph.core import Dataset, Features, Video, Vocabulary
from stepgraph.decoders import Decoder, PathSearch
from stepgraph.decoders.controls import AnchorsOnly, ArgmaxHold, HalvedGaps
from stepgraph.encoders import Encoder
from stepgraph.errors import DataError
from stepgraph.evaluation.metrics import split_standard_error
from stepgraph.experiments.methods import written_notes
from stepgraph.experiments.probing import ProbeOptions, halves, probe
from stepgraph.experiments.setting import Numbers, Options, ResultStore, content_of, digest
from stepgraph.experiments.table import HEADS, PROBES, Cell, Column, Row, Table, measured_cell
from stepgraph.graph import mine_graph
from stepgraph.labelling.folders import label_source
from stepgraph.labelling.statistics import LabelStatistics, label_statistics
from stepgraph.pipeline import choose_vocabulary
from stepgraph.progress import track
from stepgraph.scoring import score

if TYPE_CHECKING:
    from stepgraph.networks.timesformer import TimeSformer, TimeSformerOptions
    from stepgraph.training.schedule import TrainingOptions

SEEDS = 3
"""Number of trainings of each model, each with another initialisation."""

_ROWS = {
    "untrained": "no pretraining",
    "argmax": "argmax labels (DistantSup.)",
    "graph": "task-graph labels (Ours)",
    "halved": "No graph: gaps halved",
    "anchors": "No graph: anchors only",
    "hold": "No graph: argmax held",
}
"""Rows of the table by the kind of labels; the first model is not trained."""


@dataclass(frozen=True, eq=False)
class Corpus:
    """Videos to pretrain on, whose truth is not used, and two parts to probe with."""

    pretraining: Dataset
    train: Dataset
    test: Dataset

    @property
    def vocabulary(self) -> Vocabulary:
        """Vocabulary of all three parts."""
        return choose_vocabulary(self.pretraining, None)


def make_transfer_table(
    dataset: Dataset, encoder: Encoder, options: Options, folder: Path | None
) -> Table:
    """Pretrain on the labels of a data set and probe the features.

    Parameters
    ----------
    dataset
        Videos with files, narration and truth; the generated corpus brings others to probe
        with, any other is divided: half to pretrain on, the rest to probe.
    folder
        Folder for results, labels and models, to continue after an interruption; None stores
        nothing.
    """
    corpus = divide(dataset, options.seed)
    given = _fingerprint(corpus, encoder, options)
    numbers: dict[str, list[Numbers]] = {name: [] for name in _ROWS}
    with tempfile.TemporaryDirectory(prefix="stepgraph-") as passing:
        place = folder or Path(passing)
        state = ResultStore(place / "transfer.state.json")
        # Files of other options are left alone.
        own = place / given[:12]
        decoders: dict[str, Decoder] = {
            "graph": PathSearch(options.threshold),
            "halved": HalvedGaps(options.threshold),
            "anchors": AnchorsOnly(options.threshold),
            "hold": ArgmaxHold(),
        }
        statistics = _label(corpus, encoder, decoders, own)["graph"]
        for seed, which in track(list(product(range(SEEDS), _ROWS)), "pretraining and probing"):
            settings = {"labels": which, "seed": seed, "input": given}
            job = partial(_measure, corpus, which, seed, own)
            numbers[which].append(state.get(settings, job))
        shutil.rmtree(own / "clips", ignore_errors=True)
    rows = tuple(
        Row(HEADS[head], name, tuple(_cell(numbers[which], head, p) for p in PROBES))
        for head in HEADS
        for which, name in _ROWS.items()
    )
    columns = tuple(Column(one, name) for one, name in PROBES.items())
    parts: dict[str, Dataset] = vars(corpus)
    notes = written_notes(
        "transfer",
        **{part: f"{len(tuple(one.videos))} videos of {one.name}" for part, one in parts.items()},
        encoder=encoder.options.name,
        keysteps=len(corpus.vocabulary),
        labels=statistics,
        seeds=SEEDS,
    )
    title = "Pretraining on pseudo-labels, probed downstream: SR keystep, TR task, SF next keystep"
    return Table("transfer", title, columns, rows, tuple(notes))


def _fingerprint(corpus: Corpus, encoder: Encoder, options: Options) -> str:
    """Hash of all that determines the labels, the models and their probes."""
    parts = (corpus.pretraining, corpus.train, corpus.test)
    files = [video.path.stat().st_size for part in parts for video in part.videos if video.path]
    contents = [content_of(part.videos, part.truth) for part in parts]
    given = {"vocabulary": corpus.vocabulary, "data": contents, "files": files}
    return digest(given | {"encoder": encoder.options, "options": options})


def divide(dataset: Dataset, seed: int) -> Corpus:
    """Divide a data set into three parts without a common video."""
    if any(video.path is None for video in dataset.videos):
        raise DataError(
            f"{dataset.name}: must have a video file for each video to be pretrained on, got "
            f"transcripts alone; take 'generated', or a folder of videos with truth.csv"
        )
    name, _, number = dataset.name.partition(":")
    if name == "generated":
        from stepgraph.datasets.generated import open_generated

        first = int(number or 0)
        parts = [open_generated(first + more, per_task=9) for more in (1, 2)]
        return Corpus(dataset, parts[0], parts[1])
    pretraining, rest = halves(dataset, share=0.5, seed=seed)
    return Corpus(pretraining, *halves(rest, share=0.6, seed=seed))


def _label(
    corpus: Corpus, encoder: Encoder, decoders: Mapping[str, Decoder], place: Path
) -> dict[str, LabelStatistics]:
    """Label videos with the graph mined from them, without their truth."""
    videos = tuple(corpus.pretraining.videos)
    scores = score(videos, corpus.vocabulary, encoder)
    graph = mine_graph(scores, corpus.vocabulary, encoder=encoder.options)
    for name, decoder in decoders.items():
        label_source(videos, graph, _labels(place, name), decoder=decoder, encoder=encoder)
    return {name: label_statistics(_labels(place, name)) for name in decoders}


def _labels(place: Path, which: str) -> Path:
    """Return the folder of some labels; those of argmax lie beside those of the graph."""
    return place / "labels" / ("graph" if which == "argmax" else which)


def small_model(classes: int) -> TimeSformerOptions:
    """Make the options of a TimeSformer that a CPU trains in a minute."""
    from stepgraph.networks.timesformer import TimeSformerOptions

    return TimeSformerOptions(classes, frames=4, size=32, patch=8, width=64, depth=2, heads=2)


def small_training(seed: int, clips: Path) -> TrainingOptions:
    """Make options for training from scratch; rates exceed the paper's, which uses Kinetics."""
    from stepgraph.training.schedule import Phase, Running, TrainingOptions

    return TrainingOptions(
        phases=(Phase("adamw", 12, 1e-3, drops=(9, 12), weight_decay=0.05),),
        batch=64,
        crop=0.5,
        light=0.3,
        seed=seed,
        running=Running(device="cpu", store=clips, logs=False, workers=0),
    )


def _measure(corpus: Corpus, which: str, seed: int, place: Path) -> Numbers:
    network = _network(corpus, which, seed, place)
    features = {
        video.id: features
        for part in (corpus.train, corpus.test)
        for video, features in _features(network, part.videos, place / "clips")
    }
    probed = probe(corpus.train, corpus.test, features, ProbeOptions(seeds=1, epochs=15))
    return {f"{one.head} {one.probe}": one.accuracy for one in probed}


def _network(corpus: Corpus, which: str, seed: int, place: Path) -> TimeSformer:
    import torch

    from stepgraph.networks.checkpoints import load_checkpoint
    from stepgraph.networks.timesformer import TimeSformer
    from stepgraph.training.pretraining import train

    model = small_model(len(corpus.vocabulary))
    if which == "untrained":
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return TimeSformer(model).eval()
    result = train(
        _labels(place, which),
        place / f"{which}-{seed}",
        model=model,
        options=small_training(seed, place / "clips"),
        which="argmax" if which == "argmax" else "graph",
    )
    network, _ = load_checkpoint(result.checkpoint)
    return network.eval()


def _features(
    network: TimeSformer, videos: Iterable[Video], clips: Path
) -> Iterator[tuple[Video, Features]]:
    """Yield the token of each clip, from pixels that are decoded once for all models."""
    import torch

    from stepgraph.encoders.vectors import unit
    from stepgraph.ingest.frames import ClipOptions
    from stepgraph.networks.timesformer import normalize
    from stepgraph.training.clip_store import ClipStore

    o = network.options
    store = ClipStore(clips, ClipOptions(frames=o.frames, height=o.size, width=o.size))
    for video in videos:
        assert video.path is not None, "divide() saw to that"
        count = store.count(video.id, video.path)
        if count is None:
            count = store.write(video.id, video.path)
        pixels = torch.from_numpy(np.stack([store.read(video.id, at) for at in range(count)]))
        with torch.no_grad():
            parts = torch.split(pixels, 64)
            vectors = [network.features(normalize(some)).numpy() for some in parts]
        starts = np.arange(count, dtype=np.float64)
        intervals = np.stack([starts, np.minimum(starts + 1, video.duration)], axis=1)
        yield video, Features(video.id, video.duration, unit(np.concatenate(vectors)), intervals)


def _cell(numbers: Sequence[Numbers], head: str, name: str) -> Cell:
    values = [one[f"{head} {name}"] or 0.0 for one in numbers]
    return measured_cell(float(np.mean(values)), "percent", split_standard_error(values))
