"""The verbs that learn from labels: label, train, probe."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepgraph.cli.verbs import (
    decoder_name,
    decoder_options,
    encoder_was_asked,
    finish,
    must_be_writable,
    open_asked,
    open_dataset,
)
from stepgraph.errors import ConfigError, IncompleteError
from stepgraph.problems import Problems

if TYPE_CHECKING:
    from stepgraph.experiments.downstream import Backbone, Divided


def label(args: argparse.Namespace) -> str:
    """Label every clip of many videos with a task graph, to learn from."""
    from stepgraph import decoders, pipeline
    from stepgraph.graph.saving import load_graph
    from stepgraph.labelling import label_source, label_statistics

    must_be_writable(args.output)
    graph, failed = load_graph(args.graph), Problems()
    encoder = open_asked(args, graph) if encoder_was_asked(args) else pipeline.encoder_of(graph)
    dataset = open_dataset(args, looks=encoder.options.looks)
    decoder = decoders.load_decoder(decoder_name(args), **decoder_options(args))
    label_source(
        dataset.videos,
        graph,
        args.output,
        decoder=decoder,
        encoder=encoder,
        problems=failed,
    )
    return finish(str(label_statistics(args.output)), args, dataset, failed)


def train(args: argparse.Namespace) -> str:
    """Train a video model on labels, on one process or on many started by torchrun."""
    from dataclasses import replace

    from stepgraph.labelling import open_labels
    from stepgraph.networks.timesformer import TimeSformerOptions
    from stepgraph.training import PAPER, Running, TrainingOptions, short_phases
    from stepgraph.training import train as run_training

    must_be_writable(args.output)
    keysteps = open_labels(args.labels).provenance.vocabulary
    shape = {name: getattr(args, name) for name in ("frames", "size", "patch", "width", "depth")}
    phases = PAPER if args.epochs is None else short_phases(args.epochs, PAPER)
    if args.rate is not None:
        phases = tuple(replace(phase, rate=args.rate * phase.rate) for phase in phases)
    options = TrainingOptions(
        phases=phases,
        batch=args.batch,
        window=args.window,
        loss=args.loss,
        clips="streamed" if args.stream else "stored",
        flip=args.flip,
        seed=args.seed,
        running=Running(compile=args.compile, workers=args.workers, videos=args.videos),
    )
    result = run_training(
        args.labels,
        args.output,
        model=TimeSformerOptions(len(keysteps), heads=args.heads, **shape),
        options=options,
        initial=args.initial,
        which=args.use,
    )
    answer = (
        f"{result.checkpoint}: trained on {result.clips:,} clips of {result.videos} videos, loss "
        f"{result.epochs[0].loss:.3f} in the first epoch and {result.epochs[-1].loss:.3f} in the "
        f"last\nUse it: stepgraph recognize VIDEO --graph GRAPH --encoder own:{result.checkpoint}"
    )
    if result.problems and not args.skip_bad:
        summary = result.problems.summary()
        raise IncompleteError(
            f"{len(result.problems)} failed, the rest is done: {summary}", answer
        )
    return answer


def probe(args: argparse.Namespace) -> str:
    """Measure what frozen features are worth: keysteps, tasks, and what comes next."""
    from stepgraph.experiments.downstream import make_downstream_table
    from stepgraph.experiments.probing import ProbeOptions
    from stepgraph.files.disk import write_text

    if args.output:
        must_be_writable(args.output)
    options = ProbeOptions(
        seeds=args.seeds, epochs=args.epochs, heads=_names(args.heads), probes=_names(args.probes)
    )
    problems = Problems()
    backbones = _backbones(args, problems)
    divided = [_divided(source, args) for source in args.sources]
    table = make_downstream_table(divided, backbones, options)
    if args.output:
        write_text(args.output / "downstream.md", table.to_markdown().rstrip("\n") + "\n")
        write_text(args.output / "downstream.json", table.to_json().rstrip("\n") + "\n")
    shown = {"text": table.to_text, "markdown": table.to_markdown, "json": table.to_json}
    if problems:
        print(f"stepgraph: warning: left out: {problems.summary()}", file=sys.stderr)
    return shown[args.format]()


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _backbones(args: argparse.Namespace, problems: Problems) -> dict[str, Backbone]:
    """Encoders and folders of features by the names they have in the table."""
    from stepgraph.encoders import load_encoder
    from stepgraph.encoders.stored_features import StoredEncoder

    found: dict[str, Backbone] = {}
    for given in args.features:
        name, equals, folder = given.partition("=")
        folder = folder if equals else name
        stored = StoredEncoder(Path(folder), problems=problems)
        _add_backbone(found, name, stored.encode_videos)
    for given in args.encoder:
        name, equals, encoder = given.partition("=")
        _add_backbone(found, name, load_encoder(encoder if equals else name).encode_videos)
    if not found:
        raise ConfigError(
            "probe must have features to probe, got none; pass --features NAME=DIR, filled by "
            "stepgraph encode, or --encoder NAME"
        )
    return found


def _add_backbone(found: dict[str, Backbone], name: str, backbone: Backbone) -> None:
    if name in found:
        raise ConfigError(f"backbones must have different names, got {name!r} twice")
    found[name] = backbone


_SPLITS = {"crosstask": ("train", "val"), "coin": ("training", "testing")}


def _divided(source: str, args: argparse.Namespace) -> Divided:
    """A data set by its own split, by two sources, or at random."""
    from stepgraph.datasets import open_source
    from stepgraph.experiments.downstream import divide
    from stepgraph.experiments.probing import halves
    from stepgraph.ingest import Listening

    kind = source.partition(":")[0]
    how: dict[str, Any] = {"listening": Listening(needed=False), "strict": False}
    if kind in _SPLITS:
        train_part, test_part = (open_source(source, split=part, **how) for part in _SPLITS[kind])
        return divide(kind, train_part, test_part)
    dataset = open_source(source, **how)
    return divide(dataset.name, *halves(dataset, share=args.share, seed=args.seed))
