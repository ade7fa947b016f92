"""The options of every verb."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from stepgraph import __version__
from stepgraph.cli import learning, looking, questions, reproduce, verbs
from stepgraph.cli.options import (
    add_decoder_options,
    add_encoder_options,
    add_json,
    add_min_score,
    add_output,
    add_rate,
    add_source,
    add_vocabulary_option,
    make_verb,
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
    _add_encode(added)
    _add_label(added)
    _add_train(added)
    _add_probe(added)
    return parser


def _add_demo(added: Any) -> None:
    verb = make_verb(added, "demo", verbs.demo)
    verb.add_argument(
        "--video", action="store_true", help="on rendered video files, seen and heard"
    )
    add_output(verb, "demo-report", "DIR")


def _add_mine(added: Any) -> None:
    verb = make_verb(added, "mine", verbs.mine)
    add_source(verb)
    add_vocabulary_option(verb)
    add_output(verb, "graph.json", "FILE")
    add_min_score(verb)
    verb.add_argument(
        "--max-gap",
        type=float,
        default=float("inf"),
        metavar="SECONDS",
        help="longest silence across which one keystep follows another (default: no limit)",
    )
    add_encoder_options(verb)


def _add_recognize(added: Any) -> None:
    verb = make_verb(added, "recognize", verbs.recognize)
    add_source(verb)
    verb.add_argument("--graph", type=Path, required=True, metavar="FILE", help="a mined graph")
    add_output(verb, "keysteps", "DIR")
    add_encoder_options(verb, "the graph was mined with")
    add_decoder_options(verb)


def _add_evaluate(added: Any) -> None:
    verb = make_verb(added, "evaluate", verbs.evaluate)
    add_source(verb)
    add_vocabulary_option(verb)
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
    add_json(verb)
    add_min_score(verb)
    add_encoder_options(verb)
    add_decoder_options(verb)


def _add_reproduce(added: Any) -> None:
    verb = make_verb(added, "reproduce", reproduce.reproduce)
    verb.add_argument(
        "table",
        metavar="TABLE",
        help="table1, table2, table1-expanded, ablations, metrics, entropy, noise, thresholds, "
        "compat, tasks or transfer",
    )
    add_source(verb)
    add_vocabulary_option(verb)
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
    add_rate(verb)
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
        question = make_verb(asked, name, function)
        question.add_argument("graph", type=Path, metavar="GRAPH")
        for keystep in keysteps:
            question.add_argument(keystep, metavar="KEYSTEP")
        if name in ("show", "next"):
            question.add_argument("--top", type=int, default=10 if name == "show" else 4)
        add_json(question)
    merge = make_verb(asked, "merge", questions.graph_merge)
    merge.add_argument("graphs", type=Path, nargs="+", metavar="GRAPH")
    add_output(merge, "graph.json", "FILE")


def _add_vocabulary(added: Any) -> None:
    verb = make_verb(added, "vocabulary", questions.vocabulary)
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
    add_json(verb)


def _add_datasets(added: Any) -> None:
    verb = make_verb(added, "datasets", questions.datasets)
    verb.add_argument("folder", type=Path, metavar="PATH")
    add_json(verb)


def _add_encode(added: Any) -> None:
    verb = make_verb(added, "encode", looking.encode)
    add_source(verb)
    add_output(verb, "features", "DIR")
    verb.add_argument(
        "--encoder", required=True, metavar="NAME", help="such as clip:MODEL; see docs/encoders"
    )
    verb.add_argument(
        "--window", type=float, metavar="SECONDS", help="of video that one row looks at"
    )


def _add_label(added: Any) -> None:
    verb = make_verb(added, "label", learning.label)
    add_source(verb)
    verb.add_argument("--graph", type=Path, required=True, metavar="FILE", help="a mined graph")
    add_output(verb, "labels", "DIR")
    add_encoder_options(verb, "the graph was mined with")
    add_decoder_options(verb)


def _add_train(added: Any) -> None:
    verb = make_verb(added, "train", learning.train)
    verb.add_argument("labels", type=Path, metavar="LABELS", help="what stepgraph label wrote")
    add_output(verb, "training", "DIR")
    verb.add_argument(
        "--initial",
        type=Path,
        metavar="PATH",
        help="weights to begin with: a TimeSformer of transformers, or one of ours",
    )
    verb.add_argument(
        "--use",
        choices=("graph", "argmax"),
        default="graph",
        help="labels of the graph (default) or the baseline's",
    )
    for name, value, meaning in (
        ("frames", 8, "frames of a clip"),
        ("size", 224, "height and width of a frame"),
        ("patch", 16, "height and width of a patch"),
        ("width", 768, "numbers of a token"),
        ("depth", 12, "blocks"),
        ("heads", 12, "heads of attention"),
        ("batch", 32, "clips of a step, of all processes together"),
        ("seed", 0, "of all that is random"),
    ):
        verb.add_argument(
            f"--{name}", type=int, default=value, metavar="N", help=f"{meaning} (default: {value})"
        )
    verb.add_argument(
        "--epochs", type=int, metavar="N", help="of each of the two phases (default: 15)"
    )
    verb.add_argument(
        "--rate", type=float, metavar="X", help="times the paper's learning rates (default: 1)"
    )
    verb.add_argument(
        "--window", type=float, default=1.0, metavar="SECONDS", help="of a clip (default: 1)"
    )
    verb.add_argument(
        "--loss",
        choices=("labels", "distribution"),
        default="labels",
        help="cross entropy with the label (default), or with the three best keysteps",
    )
    verb.add_argument("--flip", action="store_true", help="mirror half of the clips")
    verb.add_argument(
        "--stream", action="store_true", help="decode in every epoch instead of storing clips"
    )
    verb.add_argument("--compile", action="store_true", help="let torch compile the model first")
    verb.add_argument("--workers", type=int, metavar="N", help="processes that read clips")
    verb.add_argument("--videos", type=Path, metavar="DIR", help="where the videos lie now")
    verb.add_argument("--skip-bad", action="store_true", help="leave out what cannot be read")


def _add_probe(added: Any) -> None:
    verb = make_verb(added, "probe", learning.probe)
    verb.add_argument("sources", nargs="+", metavar="SOURCE", help="data sets with truth")
    for name, place, meaning in (
        ("features", "NAME=DIR", "stored features of a backbone; may be given several times"),
        ("encoder", "NAME=ENCODER", "an encoder to take features from; likewise"),
    ):
        verb.add_argument(f"--{name}", action="append", default=[], metavar=place, help=meaning)
    verb.add_argument("--heads", default="mlp,transformer", help="default: mlp,transformer")
    verb.add_argument(
        "--probes", default="keystep,task,forecast", help="default: keystep,task,forecast"
    )
    verb.add_argument("--seeds", type=int, default=3, metavar="N", help="default: 3")
    verb.add_argument("--epochs", type=int, default=40, metavar="N", help="default: 40")
    verb.add_argument(
        "--share",
        type=float,
        default=0.7,
        metavar="X",
        help="of the videos to train on, where a source has no split of its own (default: 0.7)",
    )
    verb.add_argument("--seed", type=int, default=0, help="of that division (default: 0)")
    verb.add_argument(
        "--format", choices=("text", "markdown", "json"), default="text", help="default: text"
    )
    verb.add_argument("-o", "--output", type=Path, metavar="DIR", help="also write it there")
