"""The options of every verb.

Those of a verb are made when it is asked for: many are fields of classes that are not cheap to
import, and help must be instant.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from stepgraph import __version__
from stepgraph.cli.fields import add_fields
from stepgraph.cli.options import (
    add_decoder_options,
    add_encoder_name,
    add_format,
    add_graph,
    add_json,
    add_mining_options,
    add_output,
    add_rate,
    add_scoring_options,
    add_source,
    add_stored,
    add_vocabulary_option,
)


def make_parser(asked: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """Make the parser of the command line; ``run`` of what it parses is the verb's function.

    Parameters
    ----------
    asked
        What will be parsed: only the verb in it gets its options.  All do if not given.
    """
    parser = argparse.ArgumentParser(
        prog="stepgraph",
        description="Mine a task graph from narrated how-to videos, and recognise the keysteps "
        "of new ones.",
    )
    parser.add_argument("--version", action="version", version=f"stepgraph {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    added = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    chosen = None if asked is None else next((a for a in asked if not a.startswith("-")), "")
    for name, verb in _VERBS.items():
        made = added.add_parser(name, help=verb.about)
        if chosen in (None, name):
            _fill(made, verb.function)
            verb.add_options(made)
    return parser


def _fill(verb: argparse.ArgumentParser, function: str) -> None:
    """Let a verb run its function, which is imported now, and say what that says of itself."""
    if function:
        module, _, name = function.partition(":")
        run = getattr(import_module(f"stepgraph.cli.{module}"), name)
        verb.description = run.__doc__
        verb.set_defaults(run=run)


def _add_demo(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--video", action="store_true", help="on rendered video files, seen and heard"
    )
    add_output(verb, "demo-report", "DIR")
    add_json(verb)


def _add_mine(verb: argparse.ArgumentParser) -> None:
    add_source(verb)
    add_vocabulary_option(verb)
    add_output(verb, "graph.json", "FILE")
    add_json(verb)
    add_mining_options(verb)
    add_scoring_options(verb)


def _add_recognize(verb: argparse.ArgumentParser) -> None:
    add_source(verb)
    add_graph(verb, required=True, meaning="a mined graph")
    add_output(verb, "keysteps", "DIR")
    add_json(verb)
    add_scoring_options(verb, "the graph was mined with")
    add_decoder_options(verb)


def _add_evaluate(verb: argparse.ArgumentParser) -> None:
    add_source(verb)
    add_vocabulary_option(verb)
    add_graph(
        verb,
        required=False,
        meaning="a graph mined elsewhere (default: mine the source, without its truth)",
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
    add_mining_options(verb)
    add_scoring_options(verb)
    add_decoder_options(verb)


def _add_reproduce(verb: argparse.ArgumentParser) -> None:
    from stepgraph.encoders import EncoderOptions
    from stepgraph.scoring.scales import SCALES

    verb.add_argument(
        "table",
        metavar="TABLE",
        help="table1, table2, table1-expanded, ablations, metrics, entropy, noise, thresholds, "
        "compat, tasks or transfer",
    )
    add_source(verb)
    add_vocabulary_option(verb)
    add_graph(verb, required=False, meaning="a graph mined on other videos (inductive)")
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
    add_stored(verb, "--features", "features of that encoder")
    add_stored(verb, "--video-scores", "scores of a video model instead")
    verb.add_argument("--scale", choices=SCALES, default="raw", help="of these (default: raw)")
    add_rate(verb)
    verb.add_argument("--threshold", type=float, default=0.4, metavar="X", help="default: 0.4")
    verb.add_argument(
        "--video-threshold",
        type=float,
        metavar="X",
        help="default: 0.3 for stored scores as in the paper; of an encoder as --threshold",
    )
    verb.add_argument("--seed", type=int, default=0, help="of all that is random (default: 0)")
    add_encoder_name(verb)
    add_fields(verb, EncoderOptions, ("context", "task_names"))
    add_format(verb)
    verb.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="also write it there, and keep what is finished so that an interrupted run goes on",
    )


def _add_graph(verb: argparse.ArgumentParser) -> None:
    asked = verb.add_subparsers(title="questions", metavar="QUESTION", required=True)
    for name, about, keysteps in (
        ("show", "its size and its strongest directional pairs", ()),
        ("next", "which keysteps most probably follow one", ("keystep",)),
        ("path", "the most probable path between two keysteps", ("first", "second")),
        ("relation", "how two keysteps relate", ("first", "second")),
    ):
        question = asked.add_parser(name, help=about)
        _fill(question, f"questions:graph_{name}")
        question.add_argument("graph", type=Path, metavar="GRAPH")
        for keystep in keysteps:
            question.add_argument(keystep, metavar="KEYSTEP")
        if name in ("show", "next"):
            question.add_argument("--top", type=int, default=10 if name == "show" else 4)
        add_json(question)
    merge = asked.add_parser("merge", help="add up graphs of different videos")
    _fill(merge, "questions:graph_merge")
    merge.add_argument("graphs", type=Path, nargs="+", metavar="GRAPH")
    add_output(merge, "graph.json", "FILE")


def _add_vocabulary(verb: argparse.ArgumentParser) -> None:
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


def _add_datasets(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("folder", type=Path, metavar="PATH")
    add_json(verb)


def _add_encode(verb: argparse.ArgumentParser) -> None:
    from stepgraph.encoders import EncoderOptions

    add_source(verb)
    add_output(verb, "features", "DIR")
    add_json(verb)
    add_encoder_name(verb, required=True)
    add_fields(verb, EncoderOptions, ("context", "blend", "window"))


def _add_label(verb: argparse.ArgumentParser) -> None:
    add_source(verb)
    add_graph(verb, required=True, meaning="a mined graph")
    add_output(verb, "labels", "DIR")
    add_json(verb)
    add_scoring_options(verb, "the graph was mined with")
    add_decoder_options(verb)


def _add_train(verb: argparse.ArgumentParser) -> None:
    from stepgraph.networks.timesformer import TimeSformerOptions
    from stepgraph.training import Running, TrainingOptions

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
    verb.add_argument(
        "--epochs", type=int, metavar="N", help="of each of the two phases (default: 15)"
    )
    verb.add_argument(
        "--rate", type=float, metavar="X", help="times the paper's learning rates (default: 1)"
    )
    shape = ("frames", "size", "patch", "width", "depth", "heads")
    add_fields(verb.add_argument_group("model"), TimeSformerOptions, shape)
    learned = tuple(one.name for one in fields(TrainingOptions))
    learned = tuple(name for name in learned if name not in ("phases", "running"))
    add_fields(verb.add_argument_group("training"), TrainingOptions, learned)
    add_fields(verb.add_argument_group("running"), Running)
    add_json(verb)
    verb.add_argument("--skip-bad", action="store_true", help="leave out what cannot be read")


def _add_probe(verb: argparse.ArgumentParser) -> None:
    from stepgraph.experiments.probing import ProbeOptions

    verb.add_argument("sources", nargs="+", metavar="SOURCE", help="data sets with truth")
    for name, place, meaning in (
        ("features", "NAME=DIR", "stored features of a backbone; may be given several times"),
        ("encoder", "NAME=ENCODER", "an encoder to take features from; likewise"),
    ):
        verb.add_argument(f"--{name}", action="append", default=[], metavar=place, help=meaning)
    add_fields(verb, ProbeOptions)
    verb.add_argument(
        "--share",
        type=float,
        default=0.7,
        metavar="X",
        help="of the videos to train on, where a source has no split of its own (default: 0.7)",
    )
    verb.add_argument("--seed", type=int, default=0, help="of that division (default: 0)")
    verb.add_argument("--skip-bad", action="store_true", help="leave out what cannot be read")
    add_format(verb)
    add_output(verb, None, "DIR")


class _Verb(NamedTuple):
    """A verb: what it does, where its function is, and what adds its options."""

    about: str
    function: str
    add_options: Callable[[argparse.ArgumentParser], None]


_VERBS = {
    "demo": _Verb("run the whole job on a corpus that comes with it", "demo:demo", _add_demo),
    "mine": _Verb("mine a task graph from many narrated videos", "verbs:mine", _add_mine),
    "recognize": _Verb(
        "recognise the keysteps of videos with a graph", "verbs:recognize", _add_recognize
    ),
    "evaluate": _Verb(
        "measure a decoder on videos whose truth is known", "verbs:evaluate", _add_evaluate
    ),
    "reproduce": _Verb(
        "measure a table of the paper, beside what it prints",
        "reproduce:reproduce",
        _add_reproduce,
    ),
    "graph": _Verb("ask a mined graph", "", _add_graph),
    "vocabulary": _Verb("build a vocabulary", "questions:vocabulary", _add_vocabulary),
    "datasets": _Verb("say which data sets lie in a folder", "questions:datasets", _add_datasets),
    "decoders": _Verb("list the decoders with their options", "questions:decoders", add_json),
    "encoders": _Verb("list the encoders with their options", "questions:encoders", add_json),
    "encode": _Verb("encode videos into a folder of features", "learning:encode", _add_encode),
    "label": _Verb("label every clip of many videos, to learn from", "learning:label", _add_label),
    "train": _Verb("train a video model on such labels", "learning:train", _add_train),
    "probe": _Verb("measure what frozen features are worth", "learning:probe", _add_probe),
}
"""Every verb by name."""
