"""Verbs that encode, label, train and probe, and helpers for the paper's tables."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepgraph.cli import arguments
from stepgraph.cli.sharing import encode_shared, label_shared
from stepgraph.encoders import Encoder, EncoderOptions, load_encoder
from stepgraph.encoders.encoding import encode_to
from stepgraph.encoders.stored_features import HEADER, KEYSTEPS, FeatureStore, StoredEncoder
from stepgraph.errors import ConfigError
from stepgraph.experiments import Table
from stepgraph.experiments.downstream import make_downstream_table, open_divided
from stepgraph.experiments.pretraining import Model, Pretraining, read_pretraining
from stepgraph.experiments.probing import ProbeOptions
from stepgraph.graph.saving import load_graph
from stepgraph.pipeline import require_narration, uses_vision
from stepgraph.problems import Problems
from stepgraph.scoring import StoredScores

if TYPE_CHECKING:
    from stepgraph.training.pretraining import TrainingResult

_BUILT_IN = "colour:motion"


def encode(args: argparse.Namespace) -> str:
    """Encode videos into a folder of features; run the command again to continue it."""
    arguments.must_be_writable(args.output)
    options = EncoderOptions(
        **{"name": args.encoder} | arguments.given_fields(args, EncoderOptions)
    )
    encoder = load_encoder(options)
    dataset = arguments.open_dataset(args, uses_vision=options.uses_vision)
    failed = Problems(strict=args.strict)
    done = encode_shared(args, dataset, encoder, options) or encode_to(
        FeatureStore(args.output), dataset.videos, encoder, failed
    )
    speed = f"{done.rows:,} rows, {done.per_second(done.rows):,.1f} rows/s"
    if done.frames:
        speed += f", {done.per_second(done.frames):,.1f} frames/s"
    there = f", {done.skipped} were already there" if done.skipped else ""
    text = f"{args.output}: {done.written} videos encoded ({speed}){there}"
    answer = arguments.render(args, text, folder=str(args.output), **asdict(done))
    return arguments.conclude(answer, args, dataset.problems, failed)


def label(args: argparse.Namespace) -> str:
    """Label every clip of many videos with a task graph, for stepgraph train."""
    from stepgraph.labelling.folders import label_source
    from stepgraph.labelling.statistics import label_statistics

    arguments.must_be_writable(args.output)
    graph, failed = load_graph(args.graph), Problems(strict=args.strict)
    scorer, decoder = arguments.open_chosen_scorer(args, graph), arguments.open_decoder(args)
    dataset = arguments.open_dataset(args, uses_vision=uses_vision(scorer))
    require_narration(dataset, scorer)
    how: dict[str, Any] = {"decoder": decoder, "encoder": scorer, "problems": failed}
    if not label_shared(args, dataset, graph, how):
        label_source(dataset.videos, graph, args.output, **how)
    statistics = label_statistics(args.output)
    answer = arguments.render(args, str(statistics), folder=str(args.output), **asdict(statistics))
    return arguments.conclude(answer, args, dataset.problems, failed)


def train(args: argparse.Namespace) -> str:
    """Train a video model on labels, in one process or in several that torchrun starts."""
    arguments.must_be_writable(args.output)
    result = _trained(args)
    first, last = result.epochs[0].loss, result.epochs[-1].loss
    text = (
        f"{result.checkpoint}: trained on {result.clips:,} clips of {result.videos} videos, loss "
        f"{first:.3f} in the first epoch and {last:.3f} in the last\n"
        f"Use it: stepgraph recognize VIDEO --graph GRAPH --encoder own:{result.checkpoint}"
    )
    counts = {"clips": result.clips, "videos": result.videos, "losses": [first, last]}
    answer = arguments.render(args, text, checkpoint=str(result.checkpoint), **counts)
    return arguments.conclude(answer, args, result.problems)


def _trained(args: argparse.Namespace) -> TrainingResult:
    from stepgraph.labelling.folders import open_labels
    from stepgraph.networks.timesformer import TimeSformerOptions
    from stepgraph.training.pretraining import train as run_training
    from stepgraph.training.schedule import PAPER, Running, TrainingOptions, short_phases

    keysteps = open_labels(args.labels).provenance.vocabulary
    phases = PAPER if args.epochs is None else short_phases(args.epochs, PAPER)
    if args.rate is not None:
        phases = tuple(replace(phase, rate=args.rate * phase.rate) for phase in phases)
    running = Running(**arguments.given_fields(args, Running))
    return run_training(
        args.labels,
        args.output,
        model=TimeSformerOptions(
            len(keysteps), **arguments.given_fields(args, TimeSformerOptions)
        ),
        options=TrainingOptions(
            phases, running=running, **arguments.given_fields(args, TrainingOptions)
        ),
        initial=args.initial,
        which=args.use,
    )


def probe(args: argparse.Namespace) -> str:
    """Measure frozen features by probes: classifiers for keysteps, tasks and next keysteps."""
    if args.output:
        arguments.must_be_writable(args.output)
    problems = Problems()
    features, encoders = named_places(args.features), named_places(args.encoder)
    table = probed(args, args.sources, open_backbones(features, encoders, problems), problems)
    return arguments.show_table(table, args, "downstream", problems)


def probed(
    args: argparse.Namespace,
    sources: Iterable[str],
    backbones: Mapping[str, Encoder],
    problems: Problems,
) -> Table:
    """Measure the paper's table 4 with the options of probing."""
    options = ProbeOptions(**arguments.given_fields(args, ProbeOptions))
    divided = [open_divided(source, options, problems) for source in sources]
    pretraining = open_pretraining(args)
    return make_downstream_table(divided, backbones, options, problems, pretraining)


def open_backbones(
    features: Mapping[str, str], encoders: Mapping[str, str], problems: Problems
) -> dict[str, Encoder]:
    """Open folders of features and encoders under their names in the table."""
    for name in features.keys() & encoders.keys():
        raise ConfigError(f"backbones must have different names, got {name!r} twice")
    if not (features or encoders):
        raise ConfigError(
            "backbones must be at least one, got none; pass --features NAME=DIR, a folder that "
            "stepgraph encode wrote, or --encoder NAME"
        )
    stored = {name: StoredEncoder(Path(one), problems=problems) for name, one in features.items()}
    return {**stored, **{name: load_encoder(one) for name, one in encoders.items()}}


def open_models(places: Mapping[str, str], problems: Problems) -> dict[str, Model]:
    """Open trained models: folders of features or of scores, and encoders by name."""
    found: dict[str, Model] = {}
    for name, place in places.items():
        folder = Path(place)
        if not folder.is_dir():
            found[name] = load_encoder(place)
        elif any(folder.glob(f"{KEYSTEPS}.*")) or (folder / HEADER).is_file():
            found[name] = StoredEncoder(folder, problems=problems)
        else:
            found[name] = StoredScores(folder)
    return found


def open_pretraining(args: argparse.Namespace) -> Pretraining:
    """Read the videos that models were trained on, where they were given."""
    given = named_places(args.pretrained_on).items()
    ids = {name: read_pretraining(Path(place)) for name, place in given}
    return Pretraining(ids, args.allow_shared)


def named_places(texts: Iterable[str]) -> dict[str, str]:
    """Read ``NAME=SOURCE``; a source alone is its own name."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, place = text.partition("=")
        if name in found:
            raise ConfigError(f"names of models must differ, got {name!r} twice")
        if not name or (equals and not place):
            raise ConfigError(f"a model must be given as NAME=SOURCE, got {text!r}")
        found[name] = place if equals else name
    return found
