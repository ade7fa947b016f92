"""The verbs that look at video files: encode, and the demo with pictures."""

from __future__ import annotations

import argparse
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from stepgraph.cli.asked import finish, must_be_writable, open_dataset, say
from stepgraph.cli.verbs import measure, write_evaluation
from stepgraph.problems import Problems

if TYPE_CHECKING:
    from stepgraph.core import Dataset
    from stepgraph.pipeline.measuring import Evaluation


def demo_video(args: argparse.Namespace) -> str:
    """Run the whole job on rendered video files: what is seen, what is heard, and both."""
    from stepgraph import pipeline
    from stepgraph.datasets import open_source
    from stepgraph.decoders import DEFAULT_DECODER, load_decoder
    from stepgraph.export.terminal import metrics_table
    from stepgraph.export.timeline import write_timeline
    from stepgraph.graph.saving import save_graph
    from stepgraph.pipeline.scorers import Asked, open_scorer

    must_be_writable(args.output)
    dataset = open_source("generated")
    ways = {
        "heard": Asked(),
        "seen": Asked({"name": "colour:motion"}),
        "both": Asked({"name": "colour:motion", "also": "text:minilm"}),
    }
    reports, evaluation = [], None
    for way, asked in ways.items():
        evaluation = measure(dataset, DEFAULT_DECODER, load_decoder(), open_scorer(asked))
        for one in evaluation.measured:
            reports.append(replace(one.report, decoder=f"{way}: {one.report.decoder}"))
    assert evaluation is not None, "there are three ways"
    save_graph(evaluation.graph, args.output / "graph.json")
    for timeline in pipeline.recognize_all(dataset.videos, evaluation.graph):
        write_timeline(timeline, args.output / "keysteps")
    shown = replace(evaluation, dataset=_beside(evaluation, args.output / "clips"))
    report = args.output / "report.html"
    write_evaluation(shown, report, "stepgraph demo --video")
    text = (
        f"{metrics_table(reports)}\n\n"
        f"Open {report} in a browser: it plays the clips beside their timelines (both: seen and "
        f"heard)."
    )
    return say(args, text, measured=[one.to_json() for one in reports], report=str(report))


def _beside(evaluation: Evaluation, folder: Path) -> Dataset:
    """The data set with its video files copied beside the report, which links to them."""
    folder.mkdir(parents=True, exist_ok=True)
    videos = []
    for video in evaluation.dataset.videos:
        assert video.path is not None, "the generated corpus is video files"
        copied = shutil.copyfile(video.path, folder / video.path.name)
        videos.append(replace(video, path=Path(copied)))
    return replace(evaluation.dataset, videos=tuple(videos))


def encode(args: argparse.Namespace) -> str:
    """Encode videos into a folder of features; run it again to go on after an interruption."""
    from stepgraph.cli.fields import given_fields
    from stepgraph.encoders import EncoderOptions, load_encoder
    from stepgraph.encoders.feature_store import FeatureStore
    from stepgraph.encoders.filling import encode_to

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
