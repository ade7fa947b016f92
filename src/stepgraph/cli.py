"""The command line: one verb per stage, one function per verb.

Results go to stdout, progress and warnings to stderr.  Exit code 0 is success, 1 an error said
in one line, 2 wrong usage.  Nothing heavy is imported before a verb runs, so that help is instant.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepgraph import __version__, progress
from stepgraph.errors import DataError, StepgraphError

if TYPE_CHECKING:
    from stepgraph.core import Dataset
    from stepgraph.encoders import Encoder
    from stepgraph.pipeline import Evaluation

SOURCE_HELP = "folder of videos and transcripts, one such file, 'demo', or crosstask:PATH"


def run() -> None:
    """Entry point of the ``stepgraph`` command."""
    sys.exit(main())


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    args = _parser().parse_args(argv)
    warnings.showwarning = _show_warning
    try:
        with progress.shown():
            answer = args.run(args)
        print(answer)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _fail(
            "interrupted; what was encoded so far is kept, run the same command again to go on"
        )
    except BrokenPipeError:
        # The reader of a pipe left; python must not complain about it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (StepgraphError, OSError) as error:
        if args.debug:
            raise
        return _fail(str(error))
    return 0


def _fail(message: str) -> int:
    print(f"stepgraph: error: {' '.join(message.split())}", file=sys.stderr)
    return 1


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"stepgraph: warning: {message}", file=sys.stderr)


def demo(args: argparse.Namespace) -> str:
    """Run the whole job on the embedded corpus and write a report."""
    from stepgraph import datasets, files, pipeline
    from stepgraph.export.timeline import write_timeline

    _must_be_writable(args.output)
    dataset = datasets.open_source("demo")
    # Counting only what was heard clearly makes the picture of the graph readable.
    evaluation = _measure(dataset, "path-search", min_score=0.5)
    files.save(evaluation.graph, args.output / "graph.json")
    for timeline in pipeline.recognize_all(dataset.videos, evaluation.graph):
        write_timeline(timeline, args.output / "keysteps")
    report = args.output / "report.html"
    _write_report(evaluation, report, "stepgraph demo")
    return f"{_table(evaluation)}\n\nOpen {report} in a browser; graph and keysteps lie beside it."


def mine(args: argparse.Namespace) -> str:
    """Mine a task graph from many narrated videos."""
    from stepgraph import datasets, files, pipeline

    _must_be_writable(args.output.parent)
    dataset = datasets.open_source(args.source, skip_bad=args.skip_bad)
    vocabulary = pipeline.choose_vocabulary(dataset, args.vocabulary)
    graph = pipeline.mine(
        dataset,
        vocabulary,
        encoder=_encoder(args),
        min_score=args.min_score,
        max_gap=args.max_gap,
    )
    files.save(graph, args.output)
    return (
        f"{args.output}: {len(vocabulary)} keysteps, {graph.counts.nnz} transitions between them, "
        f"mined from {len(graph.mined_on)} videos"
    )


def recognize(args: argparse.Namespace) -> str:
    """Recognise the keysteps of videos with a graph mined earlier."""
    from stepgraph import datasets, decoders, files, pipeline
    from stepgraph.export.timeline import to_text, write_timeline

    _must_be_writable(args.output)
    graph = files.load(args.graph)
    videos = list(datasets.open_source(args.source, skip_bad=args.skip_bad).videos)
    decoder = decoders.load_decoder(args.decoder, **_decoder_options(args))
    timelines = pipeline.recognize_all(
        progress.track(videos, "recognising"), graph, decoder=decoder
    )
    lines = []
    for timeline in timelines:
        chapters, *_ = write_timeline(timeline, args.output)
        lines.append(to_text(timeline) if len(videos) == 1 else f"{chapters}")
    return "\n".join([*lines, f"{len(videos)} videos: keysteps and chapters in {args.output}"])


def evaluate(args: argparse.Namespace) -> str:
    """Measure a decoder on videos whose truth is known."""
    from stepgraph import datasets, files

    if args.report is None and not args.json:
        args.report = Path("report.html")
    if args.report:
        _must_be_writable(args.report.parent)
    dataset = datasets.open_source(args.source, skip_bad=args.skip_bad)
    graph = None
    if args.graph:
        graph = files.load(args.graph)
        if dataset.vocabulary:
            files.same_vocabulary(graph, dataset.vocabulary, args.graph)
    evaluation = _measure(
        dataset,
        args.decoder,
        _decoder_options(args),
        encoder=None if graph and graph.encoder else _encoder(args),
        graph=graph,
        min_score=args.min_score,
    )
    if args.report:
        _write_report(evaluation, args.report, f"stepgraph evaluate {args.source}")
    if args.json:
        return json.dumps(_measured_json(evaluation, args), indent=1)
    return f"{_table(evaluation)}\n\nOpen {args.report} in a browser."


def _measure(
    dataset: Dataset,
    decoder: str,
    options: dict[str, float] | None = None,
    **how: Any,
) -> Evaluation:
    """Evaluate the decoder asked for, beside plain argmax."""
    from stepgraph import decoders, pipeline

    chosen = {"argmax": decoders.load_decoder("argmax")}
    chosen[decoder] = decoders.load_decoder(decoder, **(options or {}))
    return pipeline.run_evaluation(dataset, chosen, **how)


def _measured_json(evaluation: Evaluation, args: argparse.Namespace) -> dict[str, Any]:
    from dataclasses import asdict

    from stepgraph import decoders

    encoder = evaluation.graph.encoder
    decoder = decoders.load_decoder(args.decoder, **_decoder_options(args))
    return evaluation.measured[-1].report.to_json() | {
        "options": asdict(decoder),  # type: ignore[call-overload]
        "source": args.source,
        "keysteps": len(evaluation.graph.vocabulary),
        "encoder": asdict(encoder) if encoder else None,
        "stepgraph": __version__,
    }


def _write_report(evaluation: Evaluation, path: Path, command: str) -> None:
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
    from stepgraph.export.tables import metrics_table

    return metrics_table([one.report for one in evaluation.measured])


def graph_show(args: argparse.Namespace) -> str:
    """Print what a graph holds: its size and its strongest directional pairs."""
    from stepgraph import files
    from stepgraph.export.tables import describe_graph

    return describe_graph(files.load(args.graph), top=args.top, as_json=args.json)


def graph_next(args: argparse.Namespace) -> str:
    """Print which keysteps most probably follow one."""
    from stepgraph import files
    from stepgraph.export.tables import describe_next

    graph = files.load(args.graph)
    keystep = graph.vocabulary.index(args.keystep)
    return describe_next(graph, keystep, top=args.top, as_json=args.json)


def graph_path(args: argparse.Namespace) -> str:
    """Print the most probable path between two keysteps."""
    from stepgraph import files
    from stepgraph.export.tables import describe_path

    graph = files.load(args.graph)
    first, second = graph.vocabulary.index(args.first), graph.vocabulary.index(args.second)
    return describe_path(graph, first, second, as_json=args.json)


def graph_relation(args: argparse.Namespace) -> str:
    """Print how two keysteps relate."""
    from stepgraph import files
    from stepgraph.export.tables import describe_relation

    graph = files.load(args.graph)
    first, second = graph.vocabulary.index(args.first), graph.vocabulary.index(args.second)
    return describe_relation(graph, first, second, as_json=args.json)


def _encoder(args: argparse.Namespace) -> Encoder:
    from stepgraph.encoders import load_encoder

    return load_encoder(args.encoder, context=args.context, task_names=args.task_names)


def _decoder_options(args: argparse.Namespace) -> dict[str, float]:
    return {} if args.threshold is None else {"threshold": args.threshold}


def _must_be_writable(folder: Path) -> None:
    """Find out before the work that its results can be kept; make nothing yet."""
    existing = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not (existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)):
        reason = "is not writable" if existing.is_dir() else "is not a folder"
        raise DataError(
            f"{folder}: must be a folder that can be written, got one that {reason}"
            if existing == folder
            else f"{folder}: must be a folder that can be made, got {existing}, which {reason}"
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="stepgraph",
        description="Mine a task graph from narrated how-to videos, and recognise the keysteps "
        "of new ones.",
    )
    parser.add_argument("--version", action="version", version=f"stepgraph {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    _add_demo(verbs)
    _add_mine(verbs)
    _add_recognize(verbs)
    _add_evaluate(verbs)
    _add_graph(verbs)
    return parser


def _add_demo(verbs: Any) -> None:
    verb = _verb(verbs, "demo", demo)
    verb.add_argument("-o", "--output", type=Path, default=Path("demo-report"), metavar="DIR")


def _add_mine(verbs: Any) -> None:
    verb = _verb(verbs, "mine", mine)
    _add_source(verb)
    verb.add_argument("--vocabulary", type=Path, metavar="FILE", help="keysteps, one a line")
    verb.add_argument("-o", "--output", type=Path, default=Path("graph.json"), metavar="FILE")
    _add_min_score(verb)
    verb.add_argument(
        "--max-gap",
        type=float,
        default=float("inf"),
        metavar="SECONDS",
        help="longest silence across which one keystep follows another (default: no limit)",
    )
    _add_encoder_options(verb)


def _add_recognize(verbs: Any) -> None:
    verb = _verb(verbs, "recognize", recognize)
    _add_source(verb)
    verb.add_argument("--graph", type=Path, required=True, metavar="FILE", help="a mined graph")
    verb.add_argument("-o", "--output", type=Path, default=Path("keysteps"), metavar="DIR")
    _add_decoder_options(verb)


def _add_evaluate(verbs: Any) -> None:
    verb = _verb(verbs, "evaluate", evaluate)
    _add_source(verb)
    verb.add_argument(
        "--graph",
        type=Path,
        metavar="FILE",
        help="a graph mined elsewhere (default: mine the source, without its truth)",
    )
    verb.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="where to write the HTML report (default: report.html; with --json none)",
    )
    verb.add_argument("--json", action="store_true", help="print one JSON object")
    _add_min_score(verb)
    _add_encoder_options(verb)
    _add_decoder_options(verb)


def _add_graph(verbs: Any) -> None:
    verb = verbs.add_parser("graph", help="ask a mined graph", description="Ask a mined graph.")
    questions = verb.add_subparsers(title="questions", metavar="QUESTION", required=True)
    for name, function, keysteps in (
        ("show", graph_show, ()),
        ("next", graph_next, ("keystep",)),
        ("path", graph_path, ("first", "second")),
        ("relation", graph_relation, ("first", "second")),
    ):
        question = _verb(questions, name, function)
        question.add_argument("graph", type=Path, metavar="GRAPH")
        for keystep in keysteps:
            question.add_argument(keystep, metavar="KEYSTEP")
        if name in ("show", "next"):
            question.add_argument("--top", type=int, default=10 if name == "show" else 4)
        question.add_argument("--json", action="store_true", help="print one JSON object")


def _verb(verbs: Any, name: str, function: Any) -> argparse.ArgumentParser:
    summary = function.__doc__
    verb: argparse.ArgumentParser = verbs.add_parser(
        name, help=summary[0].lower() + summary[1:].rstrip("."), description=summary
    )
    verb.set_defaults(run=function)
    return verb


def _add_source(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("source", metavar="SOURCE", help=SOURCE_HELP)
    verb.add_argument(
        "--skip-bad", action="store_true", help="leave out transcripts that cannot be read"
    )


def _add_min_score(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--min-score",
        type=float,
        default=float("-inf"),
        metavar="X",
        help="mine only rows whose best score is at least this (default: all, as in the paper)",
    )


def _add_encoder_options(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--encoder",
        default="text:minilm",
        metavar="NAME",
        help="text:minilm (default), or text: and a sentence-transformers name or folder",
    )
    verb.add_argument(
        "--context", type=int, default=0, metavar="N", help="neighbouring sentences to embed with"
    )
    verb.add_argument(
        "--task-names", action="store_true", help="embed keysteps also with their task's name"
    )


def _add_decoder_options(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--decoder",
        default="path-search",
        metavar="NAME",
        help="path-search (default) or argmax",
    )
    verb.add_argument(
        "--threshold",
        type=float,
        metavar="X",
        help="least score of an anchor of path-search (default: 0.4)",
    )
