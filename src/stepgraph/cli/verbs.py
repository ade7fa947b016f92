"""The verbs that work on videos: demo, mine, recognize, evaluate.

Each reads, calls one function, writes, and says what happened.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepgraph import __version__, progress
from stepgraph.errors import ConfigError, DataError, IncompleteError
from stepgraph.problems import Problems

if TYPE_CHECKING:
    from stepgraph.core import Dataset, Vocabulary
    from stepgraph.encoders import Encoder, EncoderOptions
    from stepgraph.graph import TaskGraph
    from stepgraph.pipeline import Evaluation, StoredScores
    from stepgraph.scoring.fusion import Fused


def demo(args: argparse.Namespace) -> str:
    """Run the whole job on the embedded corpus and write a report."""
    if args.video:
        from stepgraph.cli.looking import demo_video

        return demo_video(args)
    from stepgraph import datasets, pipeline
    from stepgraph.decoders import DEFAULT_DECODER
    from stepgraph.export.timeline import write_timeline
    from stepgraph.graph import mine_graph
    from stepgraph.graph.saving import save_graph

    must_be_writable(args.output)
    dataset = datasets.open_source("demo")
    # Counting only what was heard clearly makes the picture of the graph readable.
    evaluation = measure(dataset, DEFAULT_DECODER, mining=partial(mine_graph, min_score=0.5))
    save_graph(evaluation.graph, args.output / "graph.json")
    for timeline in pipeline.recognize_all(dataset.videos, evaluation.graph):
        write_timeline(timeline, args.output / "keysteps")
    report = args.output / "report.html"
    write_evaluation(evaluation, report, "stepgraph demo")
    return (
        f"{_table(evaluation)} Rows whose best score is under 0.5 did not vote.\n\n"
        f"Open {report} in a browser; graph and keysteps lie beside it."
    )


def mine(args: argparse.Namespace) -> str:
    """Mine a task graph from many narrated videos."""
    from stepgraph import pipeline
    from stepgraph.graph.saving import save_graph

    must_be_writable(args.output.parent, args.output)
    encoder, failed = open_asked(args), Problems()
    dataset = open_dataset(args, looks=encoder.options.looks)
    vocabulary = pipeline.choose_vocabulary(dataset, args.vocabulary)
    graph = pipeline.mine(
        dataset,
        vocabulary,
        encoder=encoder,
        min_score=args.min_score,
        max_gap=args.max_gap,
        problems=failed,
    )
    if not graph.mined_on:
        why = f": {failed.summary()}" if failed else ""
        raise DataError(f"{args.source}: must hold a video that can be mined, got none{why}")
    save_graph(graph, args.output)
    answer = (
        f"{args.output}: {len(vocabulary)} keysteps, {graph.counts.nnz} transitions between them, "
        f"mined from {len(graph.mined_on)} videos"
    )
    return finish(answer, args, dataset, failed)


def recognize(args: argparse.Namespace) -> str:
    """Recognise the keysteps of videos with a graph mined earlier."""
    from stepgraph import decoders, pipeline
    from stepgraph.export.timeline import to_text, write_timeline
    from stepgraph.graph.saving import load_graph

    must_be_writable(args.output)
    graph, failed = load_graph(args.graph), Problems()
    encoder = open_asked(args, graph) if encoder_was_asked(args) else pipeline.encoder_of(graph)
    dataset = open_dataset(args, looks=encoder.options.looks)
    decoder = decoders.load_decoder(decoder_name(args), **decoder_options(args))
    timelines = pipeline.recognize_all(
        progress.track(dataset.videos, "recognising"),
        graph,
        decoder=decoder,
        encoder=encoder,
        problems=failed,
    )
    shown, written = "", 0
    for timeline in timelines:
        write_timeline(timeline, args.output)
        shown, written = f"{to_text(timeline)}\n", written + 1
    videos_in_words = "1 video" if written == 1 else f"{written} videos"
    answer = f"{shown if written == 1 else ''}{videos_in_words}: chapters in {args.output}"
    return finish(answer, args, dataset, failed)


def evaluate(args: argparse.Namespace) -> str:
    """Measure a decoder on videos whose truth is known."""
    from stepgraph.graph import mine_graph
    from stepgraph.graph.saving import load_graph, same_vocabulary

    if args.report is None and not args.json:
        args.report = Path("report.html")
    if args.report:
        must_be_writable(args.report.parent, args.report)
    if args.compat:
        return _evaluate_compat(args)
    graph = load_graph(args.graph) if args.graph else None
    if args.scale != "raw" and not args.scores:
        raise ConfigError("--scale must be of stored scores, got none; give them with --scores")
    if args.scores and encoder_was_asked(args):
        raise ConfigError("--scores must stand instead of an encoder, got both; leave one away")
    ready = graph is not None and graph.encoder is not None and not encoder_was_asked(args)
    encoder = None if ready or args.scores else open_asked(args, graph)
    options = encoder.options if encoder else graph.encoder if ready and graph else None
    args.used = options
    looks = bool(args.scores) or (options is not None and options.looks)
    dataset = open_dataset(args, looks=looks)
    if graph and dataset.vocabulary:
        same_vocabulary(graph, dataset.vocabulary, args.graph)
    if graph and math.isfinite(args.min_score):
        raise ConfigError("--min-score must not be given with a graph, which is mined already")
    evaluation = measure(
        dataset,
        decoder_name(args),
        decoder_options(args),
        encoder=encoder,
        graph=graph,
        scores=stored_scores(args, args.scores),
        mining=partial(mine_graph, min_score=args.min_score),
    )
    if args.report:
        write_evaluation(evaluation, args.report, shlex.join(["stepgraph", *args.given]))
    answer = f"{_table(evaluation)}\n\nOpen {args.report} in a browser."
    if args.json:
        answer = json.dumps(_measured_json(evaluation, args), indent=1)
    return finish(answer, args, dataset, Problems())


def stored_scores(args: argparse.Namespace, path: Path | None) -> StoredScores | None:
    """Scores on disk, if they are asked for."""
    from stepgraph.pipeline import StoredScores

    if path is None:
        return None
    return StoredScores(path, args.scale, 1.0 if args.every is None else args.every)


def _evaluate_compat(args: argparse.Namespace) -> str:
    """Measure path search with behaviours of the authors' scripts."""
    from dataclasses import asdict

    from stepgraph import decoders, pipeline
    from stepgraph.encoders import EncoderOptions, load_encoder
    from stepgraph.experiments.authors import (
        CompatPathSearch,
        agglomerate,
        choose_compat,
        mine_compat,
    )

    for option in ("graph", "scores", "decoder", "threshold", "encoder", "context", "option"):
        if getattr(args, option):
            raise ConfigError(f"--compat must stand alone, got --{option} beside it")
    dataset = open_dataset(args)
    compat = choose_compat(args.compat, dataset.name)
    encoder = load_encoder(EncoderOptions())
    clusters: tuple[int, ...] = ()
    if compat.limit is not None and compat.limit.kind == "cluster":
        vectors = encoder.encode_keysteps(pipeline.choose_vocabulary(dataset, None))
        clusters = agglomerate(vectors, compat.limit.distance)
    chosen: dict[str, decoders.Decoder] = {
        "argmax": decoders.Argmax(),
        "compat": CompatPathSearch(compat=compat, clusters=clusters),
    }
    mining = partial(mine_compat, compat=compat)
    evaluation = pipeline.run_evaluation(dataset, chosen, encoder=encoder, mining=mining)
    warn_of_problems(dataset)
    if args.json:
        report = evaluation.measured[-1].report.to_json()
        return json.dumps(report | {"compat": asdict(compat)}, indent=1)
    if args.report:
        write_evaluation(evaluation, args.report, shlex.join(["stepgraph", *args.given]))
    return _table(evaluation)


def open_dataset(args: argparse.Namespace, *, looks: bool = False) -> Dataset:
    """Open the source of a verb with the options that say how.

    Who looks at video files needs no transcript, and goes on past a file that cannot be read.
    """
    from stepgraph.datasets import open_source
    from stepgraph.ingest import Listening

    strict = True if args.strict else False if args.skip_bad or looks else None
    asked = _vocabulary(args)
    dataset = open_source(
        args.source,
        strict=strict,
        split=args.split,
        vocabulary=asked,
        shard=args.shard,
        listening=Listening(needed=not looks, speech=args.speech),
    )
    if args.run is evaluate and asked is not None and dataset.vocabulary not in (None, asked):
        raise ConfigError(
            f"{args.source}: must be evaluated with the vocabulary that its truth refers to, got "
            f"another one with --vocabulary; leave it away"
        )
    return dataset


def warn_of_problems(dataset: Dataset) -> None:
    """Say in one line what was wrong in the files of a data set."""
    if dataset.problems:
        print(
            f"stepgraph: warning: {dataset.name}: problems, the rest was used: "
            f"{dataset.problems.summary()}",
            file=sys.stderr,
        )


_FAILED = ("unreadable video or transcript", "video that cannot be encoded")


def finish(answer: str, args: argparse.Namespace, dataset: Dataset, failed: Problems) -> str:
    """Answer, and say what failed; that is an error unless bad files were to be skipped."""
    if args.skip_bad or not any(dataset.problems.counts[kind] for kind in _FAILED):
        warn_of_problems(dataset)
    else:
        failed.take(dataset.problems, *_FAILED)
    if getattr(args, "stored", None):
        print(f"stepgraph: warning: stored features: {args.stored.summary()}", file=sys.stderr)
    if not failed:
        return answer
    message = f"{len(failed)} failed, the rest is done: {failed.summary()}"
    if args.skip_bad:
        print(f"stepgraph: warning: {message}", file=sys.stderr)
        return answer
    for problem in failed.found if len(failed) > 1 else ():
        print(f"stepgraph: failed: {problem}", file=sys.stderr)
    raise IncompleteError(message, answer)


def must_be_writable(folder: Path, file: Path | None = None) -> None:
    """Find out before the work that its results can be kept; make nothing yet."""
    if file is not None and file.is_dir():
        raise DataError(f"{file}: must be a file to write, got a folder; name a file in it")
    existing = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not (existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)):
        reason = "is not writable" if existing.is_dir() else "is not a folder"
        raise DataError(
            f"{folder}: must be a folder that can be written, got one that {reason}"
            if existing == folder
            else f"{folder}: must be a folder that can be made, got {existing}, which {reason}"
        )


def _vocabulary(args: argparse.Namespace) -> Vocabulary | None:
    from stepgraph.vocabulary import read_vocabulary

    path = getattr(args, "vocabulary", None)
    return read_vocabulary(path) if path else None


def measure(
    dataset: Dataset, decoder: str, options: dict[str, float] | None = None, **how: Any
) -> Evaluation:
    """Evaluate the decoder asked for, beside the paper's baseline and its method."""
    from stepgraph import decoders, pipeline
    from stepgraph.encoders import load_encoder

    chosen = {name: decoders.load_decoder(name) for name in ("argmax", "path-search")}
    chosen.pop(decoder, None)
    chosen[decoder] = decoders.load_decoder(decoder, **(options or {}))
    if how.get("encoder") is None and how.get("graph") is None and how.get("scores") is None:
        how["encoder"] = load_encoder(decoders.encoder_for(decoder))
    return pipeline.run_evaluation(dataset, chosen, **how)


def _measured_json(evaluation: Evaluation, args: argparse.Namespace) -> dict[str, Any]:
    from dataclasses import asdict

    from stepgraph import decoders
    from stepgraph.graph.saving import mining_fields

    encoder = args.used
    decoder = decoders.load_decoder(decoder_name(args), **decoder_options(args))
    return (
        {"format": "stepgraph-evaluation", "version": 1}
        | evaluation.measured[-1].report.to_json()
        | {
            "options": asdict(decoder),  # type: ignore[call-overload]
            "source": args.source,
            "split": args.split,
            "keysteps": len(evaluation.graph.vocabulary),
            "encoder": asdict(encoder) if encoder else None,
            "mining": mining_fields(evaluation.graph.mining),
            "problems": len(evaluation.dataset.problems),
            "stepgraph": __version__,
        }
    )


def write_evaluation(evaluation: Evaluation, path: Path, command: str) -> None:
    """Write the HTML report of an evaluation."""
    from stepgraph.export.report import Method, write_report

    write_report(
        path,
        title=f"Keysteps of {evaluation.dataset.name}",
        dataset=evaluation.dataset,
        methods=[Method(one.name, one.report, one.labels) for one in evaluation.measured],
        graph=evaluation.graph,
        command=command,
    )


def _table(evaluation: Evaluation) -> str:
    from stepgraph.export.terminal import metrics_table

    return metrics_table([one.report for one in evaluation.measured])


def open_asked(args: argparse.Namespace, graph: TaskGraph | None = None) -> Encoder | Fused:
    """Make the encoder asked for, or the two; stored features stand in for the first.

    What is not asked for is as the graph has it.
    """
    from dataclasses import replace

    from stepgraph.scoring.fusion import Fused, open_encoder

    if args.features is None:
        return open_encoder(encoder_options(args, graph))
    if not args.encoder and not args.also:
        return open_stored(args, None)  # the folder says which encoder, or has the keysteps
    encoder = open_encoder(encoder_options(args, graph))
    if isinstance(encoder, Fused):
        return replace(encoder, first=open_stored(args, encoder.first))
    return open_stored(args, encoder)


def open_stored(args: argparse.Namespace, encoder: Encoder | None) -> Encoder:
    """Stored features; what is odd about them is kept to be said at the end."""
    from stepgraph.encoders.stored_features import StoredEncoder

    args.stored = Problems(strict=bool(args.strict))
    seconds = 1.0 if args.every is None else args.every
    return StoredEncoder(args.features, encoder, seconds_per_row=seconds, problems=args.stored)


_ENCODER_OPTIONS = ("context", "task_names", "blend", "window", "also", "fusion")


def encoder_was_asked(args: argparse.Namespace) -> bool:
    """Whether any option says which encoder to take."""
    asked = ("encoder", "features", *_ENCODER_OPTIONS)
    return any(getattr(args, name) is not None for name in asked)


def encoder_options(args: argparse.Namespace, graph: TaskGraph | None = None) -> EncoderOptions:
    """The options given; what is not, as the graph has it, or as the decoder likes it."""
    from dataclasses import replace

    from stepgraph.decoders import encoder_for
    from stepgraph.encoders import EncoderOptions
    from stepgraph.pipeline import encoder_of

    given = {name: getattr(args, name) for name in _ENCODER_OPTIONS}
    given = {name: value for name, value in given.items() if value is not None}
    if args.encoder:
        given["name"] = args.encoder
    elif graph is not None and graph.encoder is not None:
        if graph.encoder.is_function:
            encoder_of(graph)  # says that a file must not choose what is run
        return replace(graph.encoder, **given)
    if not given:
        return encoder_for(decoder_name(args))
    if "also" in given and not {"context", "task_names", "blend"} & given.keys():
        own = encoder_for(decoder_name(args))
        given = {"task_names": own.task_names, "context": own.context, "blend": own.blend} | given
    return EncoderOptions(**given)


def decoder_name(args: argparse.Namespace) -> str:
    """The decoder asked for; a threshold alone asks for the one that has it."""
    from stepgraph.decoders import DEFAULT_DECODER

    if getattr(args, "decoder", None):
        return str(args.decoder)
    return DEFAULT_DECODER if getattr(args, "threshold", None) is None else "path-search"


def decoder_options(args: argparse.Namespace) -> dict[str, float]:
    """Options of the decoder as they were given."""
    options = {} if args.threshold is None else {"threshold": args.threshold}
    for given in args.option:
        name, _, value = given.partition("=")
        try:
            options[name.replace("-", "_")] = float(value)
        except ValueError as error:
            raise ConfigError(f"--option must be like stay=0.9, got {given!r}") from error
    return options
