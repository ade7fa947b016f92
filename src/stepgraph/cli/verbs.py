"""Verbs that work on videos: mine, recognize, evaluate, and demo, which does all three.

Each reads, calls one function, writes, and reports.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from stepgraph import __version__, decoders, pipeline, progress
from stepgraph.cli import arguments
from stepgraph.cli.live import demo_live
from stepgraph.cli.results import annotations_in, serve
from stepgraph.cli.sharing import mine_shared
from stepgraph.core import Dataset
from stepgraph.datasets import open_source
from stepgraph.decoders import DEFAULT_DECODER, Decoder, TaskMarkov, load_decoder
from stepgraph.decoders.learning import learn_graph
from stepgraph.encoders import EncoderOptions, load_encoder
from stepgraph.encoders.encoding import note_failure
from stepgraph.errors import ConfigError, DataError, DiskError
from stepgraph.evaluation.comparison import (
    RESAMPLES,
    PairedDifference,
    compare_counts,
    count_videos,
)
from stepgraph.evaluation.report import ALL_METRICS, Report
from stepgraph.experiments import authors
from stepgraph.export.annotations import with_corrections, write_annotated
from stepgraph.export.formats import write_results
from stepgraph.export.maps import save_maps
from stepgraph.export.report import write_report
from stepgraph.export.results import RESULT_SUFFIX, load_result
from stepgraph.export.terminal import differences_table, metrics_table
from stepgraph.export.timeline import AnyTimeline, fits_youtube, to_text, write_timeline
from stepgraph.files.ids import file_in
from stepgraph.graph import MiningOptions, TaskGraph
from stepgraph.graph.saving import load_graph, mining_fields, same_vocabulary, save_graph
from stepgraph.ingest.screen import note_screen_reading
from stepgraph.pipeline import (
    Evaluation,
    ScorerChoice,
    open_scorer,
    options_of,
    run_evaluation,
    uses_vision,
)
from stepgraph.problems import Problems
from stepgraph.scoring import Scorer
from stepgraph.vocabulary import read_vocabulary


def mine(args: argparse.Namespace) -> str:
    """Mine a task graph from many narrated videos.

    The graph holds the transitions between keysteps, the parameters of the recogniser, and the
    order in which each task is done.  Mining needs a list of keysteps, and no truth.
    """
    arguments.must_be_writable(args.output.parent, args.output)
    scorer, failed = arguments.open_chosen_scorer(args), Problems(strict=args.strict)
    dataset = arguments.open_dataset(args, uses_vision=uses_vision(scorer))
    vocabulary = pipeline.choose_vocabulary(dataset, args.vocabulary)
    decoder = (
        TaskMarkov() if args.order_weight is None else TaskMarkov(order_weight=args.order_weight)
    )
    options = arguments.given_fields(args, MiningOptions)
    annotations = annotations_in(args.corrections, failed)
    how = {"decoder": decoder, "annotations": annotations, **options}
    graph = mine_shared(args, dataset, vocabulary, scorer, how) or pipeline.mine(
        dataset, vocabulary, encoder=scorer, problems=failed, **how
    )
    save_graph(graph, args.output)
    text = (
        f"{args.output}: {len(vocabulary)} keysteps, {graph.counts.nnz} transitions between them, "
        f"mined from {len(graph.mined_on)} videos"
    )
    if annotations:
        text += f", {len(annotations.keys() & set(graph.mined_on))} of them corrected"
    size = {"keysteps": len(vocabulary), "transitions": graph.counts.nnz}
    answer = arguments.render(
        args, text, graph=str(args.output), **size, videos=len(graph.mined_on)
    )
    return arguments.conclude(answer, args, dataset.problems, failed)


def recognize(args: argparse.Namespace) -> str:
    """Recognise the keysteps of videos with a mined graph, and write their chapters to a folder.

    Correct the results with stepgraph view, then run the same command again: your corrections
    stay, and all other rows are recognised anew.  A transcript that cannot be read stops the
    command before any work, unless --skip-bad leaves it out.  Any other video that fails is
    listed, and the others are done.
    """
    arguments.must_be_writable(args.output)
    graph, failed = load_graph(args.graph), Problems(strict=args.strict)
    scorer, decoder = arguments.open_chosen_scorer(args, graph), arguments.open_decoder(args)
    dataset = arguments.open_dataset(args, uses_vision=uses_vision(scorer))
    pipeline.require_narration(dataset, scorer)
    annotations = annotations_in(args.corrections, failed, args.output)
    timelines = pipeline.recognize_all(
        progress.track(dataset.videos, "recognising"),
        graph,
        decoder=decoder,
        encoder=scorer,
        problems=failed,
        annotations=annotations,
    )
    shown, written, tasks, few = "", list[str](), list[str | None](), 0
    for timeline in timelines:
        if args.overlap is not None:
            timeline = replace(timeline, overlap=args.overlap)
        final: AnyTimeline = timeline
        try:
            if timeline.video.id in annotations:
                final = write_annotated(timeline, annotations[timeline.video.id], args.output)
            else:
                write_timeline(timeline, args.output)
        except DiskError:
            raise
        except DataError as error:
            note_failure(timeline.video, error, failed, "timeline not written")
            continue
        shown = f"{to_text(final)}\n" if not written else ""
        written.append(timeline.video.id)
        tasks.append(next(iter(timeline.tasks or {}), None))
        few += not fits_youtube(final)
    save_maps(graph, tasks, args.output)
    if args.format and written:
        results = (load_result(file_in(args.output, one, RESULT_SUFFIX)) for one in written)
        write_results(results, args.output, args.format, failed)
    videos = "1 video" if len(written) == 1 else f"{len(written)} videos"
    text = f"{shown}{videos}: chapters written to {args.output}"
    if few:
        text += f" ({few} with fewer than the three chapters of ten seconds that YouTube needs)"
    if corrected := len(annotations.keys() & set(written)):
        text += f" ({corrected} with corrections)"
    answer = arguments.render(args, text, folder=str(args.output), videos=written)
    answer = arguments.conclude(answer, args, dataset.problems, failed)
    if args.open and written:
        print(answer, flush=True)
        return serve(args.output, failed)
    return answer


def evaluate(args: argparse.Namespace) -> str:
    """Measure a decoder on videos with a truth: the keysteps that people found in them."""
    if args.report is None and not args.json:
        args.report = Path("report.html")
    if args.report:
        arguments.must_be_writable(args.report.parent, args.report)
    if args.output:
        arguments.must_be_writable(args.output)
    evaluation, scorer, options = _evaluate_compat(args) if args.compat else _evaluate(args)
    if args.report:
        write_evaluation(evaluation, args.report, shlex.join(["stepgraph", *args.given]))
    encoder = options_of(scorer)
    content = (
        {"format": "stepgraph-evaluation", "version": 1}
        | evaluation.measured[-1].report.to_json()
        | {
            **options,
            "source": args.source,
            "split": args.split,
            "shard": str(args.shard) if args.shard.parts > 1 else None,
            "videos_with_truth": evaluation.with_truth,
            "keysteps": len(evaluation.graph.vocabulary),
            "encoder": asdict(encoder) if encoder else None,
            "scores": str(args.scores) if args.scores else None,
            "features": str(args.features) if args.features else None,
            "mining": mining_fields(evaluation.graph.mining),
            "problems": len(evaluation.dataset.problems),
            "stepgraph": __version__,
        }
    )
    text = show_metrics(evaluation)
    if args.compare:
        found, second = (
            compare_measured(evaluation, _compared(args)),
            arguments.open_compared(args),
        )
        text += f"\n\n{differences_table(found)}\n\n{arguments.open_decoder(args)} minus {second}."
        differences = {metric: one._asdict() for metric, one in found.items()}
        given: dict[str, Any] = asdict(second) if is_dataclass(second) else {}
        about = {"decoder": args.compare, "options": given, "resamples": RESAMPLES}
        content["compared"] = about | differences
    text += f"\n\nOpen {args.report} in a browser."
    if args.output:
        how = {"decoder": arguments.open_decoder(args), "encoder": scorer}
        text += write_recognized(evaluation, args.output, **how)
    return arguments.conclude(
        arguments.render(args, text, **content), args, evaluation.dataset.problems
    )


def _evaluate(args: argparse.Namespace) -> tuple[Evaluation, Scorer, dict[str, Any]]:
    graph = load_graph(args.graph) if args.graph else None
    mining = arguments.given_fields(args, MiningOptions)
    scorer, decoder = arguments.open_chosen_scorer(args, graph), arguments.open_decoder(args)
    dataset = open_with_truth(args, scorer_uses_vision=uses_vision(scorer))
    if args.corrections:
        dataset = with_corrections(dataset, args.corrections)
    if graph and dataset.vocabulary:
        same_vocabulary(graph, dataset.vocabulary, args.graph)
    evaluation = measure(
        dataset,
        arguments.decoder_name(args),
        decoder,
        scorer,
        beside={_compared(args): arguments.open_compared(args)} if args.compare else {},
        graph=graph,
        background_rows=args.rows != "keystep",
        mining=partial(
            learn_graph, decoder=decoder if isinstance(decoder, TaskMarkov) else None, **mining
        ),
    )
    # A decoder of the user's may have no options.
    options: dict[str, Any] = asdict(decoder) if is_dataclass(decoder) else {}
    return evaluation, scorer, {"options": options}


def _evaluate_compat(args: argparse.Namespace) -> tuple[Evaluation, Scorer, dict[str, Any]]:
    """Measure path search with behaviors of the authors' scripts."""
    args.decoder = "path-search"
    scorer = arguments.open_chosen_scorer(args)
    dataset = open_with_truth(args, scorer_uses_vision=uses_vision(scorer))
    compat = authors.choose_behaviors(args.compat, dataset.name)
    clusters: tuple[int, ...] = ()
    if compat.limit is not None and compat.limit.kind == "cluster":
        encoder = load_encoder(EncoderOptions())
        vectors = encoder.encode_keysteps(pipeline.choose_vocabulary(dataset, None))
        clusters = authors.agglomerate(vectors, compat.limit.distance)
    chosen: dict[str, Decoder] = {
        "argmax": decoders.Argmax(),
        "compat": authors.AuthorsPathSearch(behaviors=compat, clusters=clusters),
    }
    mining = partial(authors.mine_as_authors, behaviors=compat)
    evaluation = run_evaluation(dataset, chosen, encoder=scorer, mining=mining)
    return evaluation, scorer, {"compat": asdict(compat)}


def open_with_truth(args: argparse.Namespace, *, scorer_uses_vision: bool) -> Dataset:
    """Open a source to be measured; its truth determines the vocabulary."""
    dataset = arguments.open_dataset(args, uses_vision=scorer_uses_vision)
    given = read_vocabulary(args.vocabulary) if args.vocabulary else None
    if given is not None and dataset.vocabulary not in (None, given):
        raise ConfigError(
            f"--vocabulary must be the vocabulary of the truth of {args.source}, got another one; "
            f"remove the option"
        )
    return dataset


def measure(
    dataset: Dataset,
    name: str,
    decoder: Decoder,
    scorer: Scorer,
    *,
    beside: Mapping[str, Decoder] | None = None,
    **how: Any,
) -> Evaluation:
    """Evaluate a decoder beside the paper's baseline, its method, and one to compare with."""
    chosen = {each: load_decoder(each) for each in ("argmax", "path-search")}
    chosen.pop(name, None)
    return run_evaluation(
        dataset, chosen | dict(beside or {}) | {name: decoder}, encoder=scorer, **how
    )


def compare_measured(evaluation: Evaluation, other: str) -> dict[str, PairedDifference]:
    """Compare the last measured decoder with another one by every metric."""
    truth, rows = evaluation.dataset.truth, evaluation.measured[-1].report.background_rows
    one, another = (
        count_videos(measured.labels.values(), truth, background_rows=rows)
        for measured in (
            evaluation.measured[-1],
            next(each for each in evaluation.measured if each.name == other),
        )
    )
    return compare_counts([one], [another], tuple(ALL_METRICS))


def _compared(args: argparse.Namespace) -> str:
    """Name the second decoder of a comparison; it may be the first with other options."""
    if args.compare != arguments.decoder_name(args):
        return str(args.compare)
    if arguments.open_compared(args) == arguments.open_decoder(args):
        raise ConfigError(
            f"--compare must be another decoder, or have other options (--compare-option), got "
            f"{args.compare!r} twice"
        )
    return f"{args.compare}, compared"


def write_evaluation(evaluation: Evaluation, path: Path, command: str) -> None:
    """Write the HTML report of an evaluation."""
    write_report(
        path,
        title=f"Keysteps of {evaluation.dataset.name}",
        dataset=evaluation.dataset,
        methods=evaluation.measured,
        graph=evaluation.graph,
        command=command,
    )


def show_metrics(evaluation: Evaluation) -> str:
    """Render the metrics of all decoders, with the number of measured videos."""
    table = metrics_table([one.report for one in evaluation.measured])
    measured, of = len(list(evaluation.dataset.videos)), evaluation.with_truth
    if measured == of:
        return table
    return f"{table} Only {measured} of the {of} videos with a truth have scores."


def demo(args: argparse.Namespace) -> str:
    """Run mining, recognition and evaluation on the included corpus, and write a report."""
    if args.live:
        return demo_live(args)
    arguments.must_be_writable(args.output)
    path = args.output / "report.html"
    if args.video:
        evaluation, reports = _measure_video()
        table, there = metrics_table(reports), "it plays the clips beside their timelines"
        there = f"Open {path} in a browser: {there} (both: picture and sound)."
    else:
        corpus, decoder = open_source("demo"), load_decoder()
        evaluation = measure(corpus, DEFAULT_DECODER, decoder, open_scorer())
        reports = [one.report for one in evaluation.measured]
        table = show_metrics(evaluation)
        there = f"Open {path} in a browser. The graph and the keysteps are beside it."
    save_graph(evaluation.graph, args.output / "graph.json")
    if args.video:
        dataset = _beside(evaluation.dataset, args.output / "clips")
        evaluation = replace(evaluation, dataset=dataset)
    there += write_recognized(evaluation, args.output / "keysteps")
    write_evaluation(evaluation, path, f"stepgraph demo{' --video' * args.video}")
    measured = [report.to_json() for report in reports]
    return arguments.render(args, f"{table}\n\n{there}", measured=measured, report=str(path))


def write_recognized(evaluation: Evaluation, folder: Path, **how: Any) -> str:
    """Write the timelines of measured videos, and return a hint for viewing them."""
    for timeline in pipeline.recognize_all(evaluation.dataset.videos, evaluation.graph, **how):
        write_timeline(timeline, folder)
    save_maps(evaluation.graph, evaluation.graph.vocabulary.tasks, folder)
    return f"\nWatch, search and correct: {_command()} view {shlex.quote(str(folder))}"


def _command() -> str:
    """Return the command that starts this program, which may not be on the PATH."""
    called = Path(sys.argv[0])
    if called.name != "stepgraph":
        return "python -m stepgraph"
    return "stepgraph" if shutil.which("stepgraph") == str(called) else str(called)


def _measure_video() -> tuple[Evaluation, list[Report]]:
    """Measure rendered video files by picture, sound, both, and captions in the picture.

    The returned evaluation is that of picture and sound together.
    """
    from stepgraph.datasets.generated import open_generated

    dataset, reports = open_generated(with_speech=True), []
    for way, how in {
        "sound": ScorerChoice(),
        "picture": ScorerChoice({"name": "colour:motion"}),
        "both": ScorerChoice({"name": "colour:motion", "also": "text:minilm"}),
    }.items():
        evaluation = measure(dataset, DEFAULT_DECODER, load_decoder(), open_scorer(how))
        for one in evaluation.measured:
            reports.append(replace(one.report, decoder=f"{way}: {one.report.decoder}"))
    if find_spec("rapidocr"):
        reports.append(_measure_reading(evaluation.graph))
    return evaluation, reports


def _measure_reading(graph: TaskGraph) -> Report:
    """Measure silent clips, one of each task, by the captions in their pictures."""
    from stepgraph.datasets.generated import open_generated

    clips, reader = (
        open_generated(per_task=1, captions=True),
        open_scorer(ScorerChoice({"name": "ocr"})),
    )
    note_screen_reading(tuple(clips.videos))
    chosen = {f"text, {len(clips.truth)} silent clips: {DEFAULT_DECODER}": load_decoder()}
    [measured] = run_evaluation(clips, chosen, encoder=reader, graph=graph).measured
    return measured.report


def _beside(dataset: Dataset, folder: Path) -> Dataset:
    """Copy the video files of a data set beside the report, which links to them."""
    folder.mkdir(parents=True, exist_ok=True)
    videos = []
    for video in dataset.videos:
        assert video.path is not None, "the generated corpus is video files"
        copied = shutil.copyfile(video.path, folder / video.path.name)
        videos.append(replace(video, path=Path(copied)))
    return replace(dataset, videos=tuple(videos))
