"""The verbs that learn: encode, label, train, probe."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from stepgraph.cli.asked import (
    finish,
    must_be_writable,
    open_asked,
    open_dataset,
    open_decoder,
    say,
    show_table,
)
from stepgraph.cli.fields import given_fields
from stepgraph.datasets import open_source
from stepgraph.encoders import Encoder, EncoderOptions, load_encoder
from stepgraph.encoders.feature_store import FeatureStore
from stepgraph.encoders.filling import encode_to
from stepgraph.encoders.stored_features import StoredEncoder
from stepgraph.errors import ConfigError
from stepgraph.experiments.downstream import Divided, divide, make_downstream_table
from stepgraph.experiments.probing import ProbeOptions, halves
from stepgraph.graph.saving import load_graph
from stepgraph.ingest import Listening
from stepgraph.pipeline.scorers import looks
from stepgraph.problems import Problems


def encode(args: argparse.Namespace) -> str:
    """Encode videos into a folder of features; run it again to go on after an interruption."""
    must_be_writable(args.output)
    options = EncoderOptions(**{"name": args.encoder} | given_fields(args, EncoderOptions))
    encoder = load_encoder(options)
    dataset = open_dataset(args, looks=options.looks)
    failed = Problems(strict=args.strict)
    done = encode_to(FeatureStore(args.output), dataset.videos, encoder, failed)
    speed = f"{done.rows:,} rows, {done.per_second(done.rows):,.1f} rows/s"
    if done.frames:
        speed += f", {done.per_second(done.frames):,.1f} frames/s"
    there = f", {done.skipped} were there" if done.skipped else ""
    text = f"{args.output}: {done.written} videos encoded ({speed}){there}"
    answer = say(args, text, folder=str(args.output), **asdict(done))
    return finish(answer, args, dataset.problems, failed)


def label(args: argparse.Namespace) -> str:
    """Label every clip of many videos with a task graph, to learn from."""
    from stepgraph.labelling import label_source, label_statistics

    must_be_writable(args.output)
    graph, failed = load_graph(args.graph), Problems(strict=args.strict)
    scorer, decoder = open_asked(args, graph), open_decoder(args)
    dataset = open_dataset(args, looks=looks(scorer))
    label_source(
        dataset.videos, graph, args.output, decoder=decoder, encoder=scorer, problems=failed
    )
    statistics = label_statistics(args.output)
    answer = say(args, str(statistics), folder=str(args.output), **asdict(statistics))
    return finish(answer, args, dataset.problems, failed)


def train(args: argparse.Namespace) -> str:
    """Train a video model on labels, on one process or on many started by torchrun."""
    from stepgraph.labelling import open_labels
    from stepgraph.networks.timesformer import TimeSformerOptions
    from stepgraph.training import PAPER, Running, TrainingOptions, short_phases
    from stepgraph.training import train as run_training

    must_be_writable(args.output)
    keysteps = open_labels(args.labels).provenance.vocabulary
    phases = PAPER if args.epochs is None else short_phases(args.epochs, PAPER)
    if args.rate is not None:
        phases = tuple(replace(phase, rate=args.rate * phase.rate) for phase in phases)
    running = Running(**given_fields(args, Running))
    result = run_training(
        args.labels,
        args.output,
        model=TimeSformerOptions(len(keysteps), **given_fields(args, TimeSformerOptions)),
        options=TrainingOptions(phases, running=running, **given_fields(args, TrainingOptions)),
        initial=args.initial,
        which=args.use,
    )
    first, last = result.epochs[0].loss, result.epochs[-1].loss
    text = (
        f"{result.checkpoint}: trained on {result.clips:,} clips of {result.videos} videos, loss "
        f"{first:.3f} in the first epoch and {last:.3f} in the last\n"
        f"Use it: stepgraph recognize VIDEO --graph GRAPH --encoder own:{result.checkpoint}"
    )
    counts = {"clips": result.clips, "videos": result.videos, "losses": [first, last]}
    answer = say(args, text, checkpoint=str(result.checkpoint), **counts)
    return finish(answer, args, result.problems)


def probe(args: argparse.Namespace) -> str:
    """Measure what frozen features are worth: keysteps, tasks, and what comes next."""
    if args.output:
        must_be_writable(args.output)
    options = ProbeOptions(**given_fields(args, ProbeOptions))
    problems = Problems()
    backbones = _backbones(args, problems)
    divided = [_divided(source, args, problems) for source in args.sources]
    table = make_downstream_table(divided, backbones, options, problems)
    return show_table(table, args, "downstream", problems)


def _backbones(args: argparse.Namespace, problems: Problems) -> dict[str, Encoder]:
    """Encoders and folders of features by the names they have in the table."""
    found: dict[str, Encoder] = {}
    for text in (*args.features, *args.encoder):
        name, equals, place = text.partition("=")
        if name in found:
            raise ConfigError(f"backbones must have different names, got {name!r} twice")
        place = place if equals else name
        is_stored = text in args.features
        found[name] = (
            StoredEncoder(Path(place), problems=problems) if is_stored else load_encoder(place)
        )
    if not found:
        raise ConfigError(
            "probe must have features to probe, got none; pass --features NAME=DIR, filled by "
            "stepgraph encode, or --encoder NAME"
        )
    return found


_SPLITS = {"crosstask": ("train", "val"), "coin": ("training", "testing")}


def _divided(source: str, args: argparse.Namespace, problems: Problems) -> Divided:
    """A data set by its own split, by two sources, or at random."""
    kind = source.partition(":")[0]
    how: dict[str, Any] = {"listening": Listening(needed=False), "strict": False}
    parts = [open_source(source, split=part, **how) for part in _SPLITS.get(kind, ("all",))]
    for part in parts:
        problems.take(part.problems)
    if len(parts) == 2:
        return divide(kind, *parts)
    [dataset] = parts
    return divide(dataset.name, *halves(dataset, share=args.share, seed=args.seed))
