"""The verbs that look at video files: encode, and the demo with pictures."""

from __future__ import annotations

import argparse
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stepgraph.cli.verbs import finish, measure, must_be_writable, open_dataset, write_evaluation
from stepgraph.problems import Problems

if TYPE_CHECKING:
    from stepgraph.core import Dataset
    from stepgraph.pipeline import Evaluation


def demo_video(args: argparse.Namespace) -> str:
    """Run the whole job on rendered video files: what is seen, what is heard, and both."""
    from stepgraph import pipeline
    from stepgraph.datasets import open_source
    from stepgraph.decoders import DEFAULT_DECODER, encoder_for
    from stepgraph.encoders import EncoderOptions
    from stepgraph.export.terminal import metrics_table
    from stepgraph.export.timeline import write_timeline
    from stepgraph.graph.saving import save_graph
    from stepgraph.scoring.fusion import open_encoder

    must_be_writable(args.output)
    dataset = open_source("generated")
    hearing = encoder_for(DEFAULT_DECODER)
    ways = {
        "heard": hearing,
        "seen": EncoderOptions("colour:motion"),
        "both": replace(hearing, name="colour:motion", also=hearing.name),
    }
    reports, evaluation = [], None
    for way, options in ways.items():
        evaluation = measure(dataset, DEFAULT_DECODER, encoder=open_encoder(options))
        for one in evaluation.measured:
            reports.append(replace(one.report, decoder=f"{way}: {one.report.decoder}"))
    assert evaluation is not None, "there are three ways"
    save_graph(evaluation.graph, args.output / "graph.json")
    for timeline in pipeline.recognize_all(dataset.videos, evaluation.graph):
        write_timeline(timeline, args.output / "keysteps")
    shown = replace(evaluation, dataset=_beside(evaluation, args.output / "clips"))
    report = args.output / "report.html"
    write_evaluation(shown, report, "stepgraph demo --video")
    return (
        f"{metrics_table(reports)}\n\n"
        f"Open {report} in a browser: it plays the clips beside their timelines (both: seen and "
        f"heard)."
    )


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
    from stepgraph.encoders import EncoderOptions, load_encoder
    from stepgraph.encoders.feature_store import FeatureStore
    from stepgraph.encoders.filling import encode_to

    must_be_writable(args.output)
    encoder = load_encoder(EncoderOptions(args.encoder, window=args.window))
    dataset = open_dataset(args, looks=encoder.options.looks)
    failed = Problems(strict=bool(args.strict))
    done = encode_to(FeatureStore(args.output), dataset.videos, encoder, failed)
    speed = f"{done.rows:,} rows, {done.per_second(done.rows):,.1f} rows/s"
    if done.frames:
        speed += f", {done.per_second(done.frames):,.1f} frames/s"
    there = f", {done.skipped} were there" if done.skipped else ""
    answer = f"{args.output}: {done.written} videos encoded ({speed}){there}"
    return finish(answer, args, dataset, failed)
