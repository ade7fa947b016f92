"""The options of every verb."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from stepgraph import __version__
from stepgraph.cli import questions, reproduce, verbs

SOURCE_HELP = (
    "folder of videos and transcripts, one such file, a manifest, 'demo', crosstask:PATH, "
    "coin:PATH or howto100m:PATH"
)


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of the command line; ``run`` of what it parses is the verb's function."""
    parser = argparse.ArgumentParser(
        prog="stepgraph",
        description="Mine a task graph from narrated how-to videos, and recognise the keysteps "
        "of new ones.",
    )
    parser.add_argument("--version", action="version", version=f"stepgraph {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    added = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    _add_demo(added)
    _add_mine(added)
    _add_recognize(added)
    _add_evaluate(added)
    _add_reproduce(added)
    _add_graph(added)
    _add_vocabulary(added)
    _add_datasets(added)
    return parser


def _add_demo(added: Any) -> None:
    verb = _verb(added, "demo", verbs.demo)
    _add_output(verb, "demo-report", "DIR")


def _add_mine(added: Any) -> None:
    verb = _verb(added, "mine", verbs.mine)
    _add_source(verb)
    _add_vocabulary_option(verb)
    _add_output(verb, "graph.json", "FILE")
    _add_min_score(verb)
    verb.add_argument(
        "--max-gap",
        type=float,
        default=float("inf"),
        metavar="SECONDS",
        help="longest silence across which one keystep follows another (default: no limit)",
    )
    _add_encoder_options(verb)


def _add_recognize(added: Any) -> None:
    verb = _verb(added, "recognize", verbs.recognize)
    _add_source(verb)
    verb.add_argument("--graph", type=Path, required=True, metavar="FILE", help="a mined graph")
    _add_output(verb, "keysteps", "DIR")
    _add_encoder_options(verb, "the graph was mined with")
    _add_decoder_options(verb)


def _add_evaluate(added: Any) -> None:
    verb = _verb(added, "evaluate", verbs.evaluate)
    _add_source(verb)
    _add_vocabulary_option(verb)
    verb.add_argument(
        "--graph",
        type=Path,
        metavar="FILE",
        help="a graph mined elsewhere (default: mine the source, without its truth)",
    )
    verb.add_argument(
        "--scores",
        type=Path,
        metavar="DIR",
        help="take stored scores (.pt, .npy, .npz, .h5, .parquet, .pkl) instead of encoding",
    )
    verb.add_argument(
        "--scale",
        default="raw",
        metavar="NAME",
        help="of stored scores: raw (default), common, or the authors' crosstask-video, "
        "coin-video, crosstask-text, coin-text",
    )
    verb.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="where to write the HTML report (default: report.html; with --json none)",
    )
    verb.add_argument(
        "--compat",
        metavar="NAMES",
        help="path search as in the authors' scripts: authors, or some behaviours by name",
    )
    _add_json(verb)
    _add_min_score(verb)
    _add_encoder_options(verb)
    _add_decoder_options(verb)


def _add_reproduce(added: Any) -> None:
    verb = _verb(added, "reproduce", reproduce.reproduce)
    verb.add_argument(
        "table",
        metavar="TABLE",
        help="table1, table2, table1-expanded, ablations, metrics, entropy, noise, thresholds, "
        "compat or tasks",
    )
    _add_source(verb)
    _add_vocabulary_option(verb)
    verb.add_argument(
        "--graph", type=Path, metavar="FILE", help="a graph mined on other videos (inductive)"
    )
    verb.add_argument(
        "--noise-from",
        metavar="SOURCE",
        help="irrelevant keysteps for the table noise, such as articles:PATH",
    )
    verb.add_argument(
        "--video",
        metavar="NAME",
        help="a video encoder, such as clip:FOLDER (default for 'generated': colour:motion)",
    )
    verb.add_argument(
        "--features", type=Path, metavar="DIR", help="stored features of that encoder"
    )
    verb.add_argument(
        "--video-scores", type=Path, metavar="DIR", help="stored scores of a video model instead"
    )
    verb.add_argument(
        "--scale", default="raw", metavar="NAME", help="of these scores: raw (default) or common"
    )
    verb.add_argument("--threshold", type=float, default=0.4, metavar="X", help="default: 0.4")
    verb.add_argument(
        "--video-threshold",
        type=float,
        metavar="X",
        help="default: 0.3 for stored scores as in the paper; of an encoder as --threshold",
    )
    verb.add_argument("--seed", type=int, default=0, help="of all that is random (default: 0)")
    verb.add_argument("--encoder", default="text:minilm", metavar="NAME")
    verb.add_argument("--context", type=int, default=0, metavar="N")
    verb.add_argument("--task-names", action="store_true")
    verb.add_argument(
        "--format", choices=("text", "markdown", "json"), default="text", help="default: text"
    )
    verb.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="also write it there, and keep what is finished so that an interrupted run goes on",
    )


def _add_graph(added: Any) -> None:
    verb = added.add_parser("graph", help="ask a mined graph", description="Ask a mined graph.")
    asked = verb.add_subparsers(title="questions", metavar="QUESTION", required=True)
    for name, function, keysteps in (
        ("show", questions.graph_show, ()),
        ("next", questions.graph_next, ("keystep",)),
        ("path", questions.graph_path, ("first", "second")),
        ("relation", questions.graph_relation, ("first", "second")),
    ):
        question = _verb(asked, name, function)
        question.add_argument("graph", type=Path, metavar="GRAPH")
        for keystep in keysteps:
            question.add_argument(keystep, metavar="KEYSTEP")
        if name in ("show", "next"):
            question.add_argument("--top", type=int, default=10 if name == "show" else 4)
        _add_json(question)
    merge = _verb(asked, "merge", questions.graph_merge)
    merge.add_argument("graphs", type=Path, nargs="+", metavar="GRAPH")
    _add_output(merge, "graph.json", "FILE")


def _add_vocabulary(added: Any) -> None:
    verb = _verb(added, "vocabulary", questions.vocabulary)
    verb.add_argument(
        "source",
        metavar="SOURCE",
        help="crosstask:PATH, coin:PATH, howto100m:PATH (with --articles), articles:PATH, "
        "a list of keysteps, or a saved vocabulary",
    )
    verb.add_argument("--articles", type=Path, metavar="PATH", help="WikiHow articles")
    verb.add_argument(
        "--min-videos",
        type=int,
        default=100,
        metavar="N",
        help="keep tasks of HowTo100M with at least so many videos (default: 100)",
    )
    verb.add_argument(
        "--max-steps", type=int, metavar="N", help="take at most so many steps of an article"
    )
    verb.add_argument(
        "--noise", type=float, default=0.0, metavar="FACTOR", help="mix in irrelevant keysteps"
    )
    verb.add_argument(
        "--noise-from", metavar="SOURCE", help="where those come from: any SOURCE of this verb"
    )
    verb.add_argument("--seed", type=int, default=0, help="of the noise (default: 0)")
    verb.add_argument("-o", "--output", type=Path, metavar="FILE", help="save it there")
    verb.add_argument("--strict", action="store_true", help="stop at the first problem")
    _add_json(verb)


def _add_datasets(added: Any) -> None:
    verb = _verb(added, "datasets", questions.datasets)
    verb.add_argument("folder", type=Path, metavar="PATH")
    _add_json(verb)


def _verb(added: Any, name: str, function: Any) -> argparse.ArgumentParser:
    summary = function.__doc__
    verb: argparse.ArgumentParser = added.add_parser(
        name, help=summary[0].lower() + summary[1:].rstrip("."), description=summary
    )
    verb.set_defaults(run=function)
    return verb


def _add_source(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("source", metavar="SOURCE", help=SOURCE_HELP)
    verb.add_argument(
        "--split",
        default="all",
        metavar="NAME",
        help="CrossTask: train, val; COIN: training, testing",
    )
    verb.add_argument(
        "--shard",
        type=_shard,
        default=(0, 1),
        metavar="I/N",
        help="only the I-th of N parts of the source, from 1/N to N/N",
    )
    verb.add_argument(
        "--speech",
        type=Path,
        metavar="FOLDER",
        help="a faster-whisper model that listens to video files without a transcript",
    )
    strictness = verb.add_mutually_exclusive_group()
    strictness.add_argument(
        "--skip-bad", action="store_true", help="leave out what cannot be read"
    )
    strictness.add_argument("--strict", action="store_true", help="stop at the first problem")


def _shard(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    try:
        chosen = int(part) - 1, int(parts)
    except ValueError:
        chosen = -1, 0
    if not 0 <= chosen[0] < chosen[1]:
        raise argparse.ArgumentTypeError(f"must be like 2/8, from 1/8 to 8/8, got {text!r}")
    return chosen


def _add_vocabulary_option(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--vocabulary",
        type=Path,
        metavar="FILE",
        help="keysteps, one a line, or a saved vocabulary",
    )


def _add_output(verb: argparse.ArgumentParser, default: str, kind: str) -> None:
    verb.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path(default),
        metavar=kind,
        help=f"where to write (default: {default})",
    )


def _add_json(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--json", action="store_true", help="print one JSON object")


def _add_min_score(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--min-score",
        type=float,
        default=float("-inf"),
        metavar="X",
        help="mine only rows whose best score is at least this (default: all, as in the paper)",
    )


def _add_encoder_options(
    verb: argparse.ArgumentParser, default: str = "the decoder is made for"
) -> None:
    group = verb.add_argument_group(
        "encoder", f"Without any of these, the encoder is the one that {default}."
    )
    group.add_argument(
        "--encoder",
        metavar="NAME",
        help="text:minilm, text:MODEL, clip:MODEL, siglip:MODEL, xclip:MODEL, s3d:FOLDER, "
        "videoclip:FOLDER, own:FILE, colour:motion, or module:function of yours",
    )
    group.add_argument(
        "--also",
        metavar="NAME",
        help="a second encoder to fuse with it, such as text:minilm beside clip:MODEL",
    )
    group.add_argument(
        "--fusion",
        metavar="HOW",
        help="priority (default: the first where it is certain), mean, or the first's weight",
    )
    group.add_argument(
        "--features",
        type=Path,
        metavar="DIR",
        help="stored features instead of encoding: see stepgraph encode",
    )
    group.add_argument(
        "--window", type=float, metavar="SECONDS", help="of video that one row looks at"
    )
    group.add_argument(
        "--context", type=int, metavar="N", help="neighbouring sentences to embed with"
    )
    group.add_argument(
        "--task-names",
        action="store_true",
        default=None,
        help="embed keysteps also with their task's name",
    )
    group.add_argument(
        "--blend",
        action="store_true",
        default=None,
        help="average each sentence alone with it and its neighbours",
    )


def _add_decoder_options(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--decoder",
        metavar="NAME",
        help="task-markov (default), path-search, argmax, viterbi, bayes-filter, drop-dtw or "
        "graph2vid; --threshold alone means path-search",
    )
    verb.add_argument(
        "--threshold",
        type=float,
        metavar="X",
        help="least score of an anchor of path-search (default: 0.4)",
    )
    verb.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="any other option of the decoder, such as stay=0.9",
    )
