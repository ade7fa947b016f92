"""The first minute: the whole job on a corpus that comes with the package."""

from __future__ import annotations

import argparse
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

from stepgraph import datasets, pipeline
from stepgraph.cli.asked import must_be_writable, say
from stepgraph.cli.verbs import measure, show_metrics, write_evaluation
from stepgraph.core import Dataset
from stepgraph.datasets import open_source
from stepgraph.decoders import DEFAULT_DECODER, load_decoder
from stepgraph.export.terminal import metrics_table
from stepgraph.export.timeline import write_timeline
from stepgraph.graph import mine_graph
from stepgraph.graph.saving import save_graph
from stepgraph.pipeline.measuring import Evaluation
from stepgraph.pipeline.scorers import Asked, open_scorer


def demo(args: argparse.Namespace) -> str:
    """Run the whole job on the embedded corpus and write a report."""
    if args.video:
        return _demo_video(args)

    must_be_writable(args.output)
    dataset = datasets.open_source("demo")
    # Counting only what was heard clearly makes the picture of the graph readable.
    mining = partial(mine_graph, min_score=0.5)
    evaluation = measure(dataset, DEFAULT_DECODER, load_decoder(), open_scorer(), mining=mining)
    save_graph(evaluation.graph, args.output / "graph.json")
    for timeline in pipeline.recognize_all(dataset.videos, evaluation.graph):
        write_timeline(timeline, args.output / "keysteps")
    report = args.output / "report.html"
    write_evaluation(evaluation, report, "stepgraph demo")
    text = (
        f"{show_metrics(evaluation)} Rows whose best score is under 0.5 did not vote.\n\n"
        f"Open {report} in a browser; graph and keysteps lie beside it."
    )
    measured = [one.report.to_json() for one in evaluation.measured]
    return say(args, text, measured=measured, report=str(report))


def _demo_video(args: argparse.Namespace) -> str:
    """Run the whole job on rendered video files: what is seen, what is heard, and both."""
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
