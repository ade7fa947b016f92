"""The verbs: what each does, where its function is, and which options it takes.

An option is said once, and is something that adds itself to the parser of a verb.  Many are fields
of classes that are not cheap to import, so these are imported when a verb is asked for: help must
be instant.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from stepgraph import __version__
from stepgraph.errors import ConfigError, printable

Option: TypeAlias = Callable[[Any], object]
"""Adds itself to a parser, or to a group of one."""


def option(*names: str, **settings: Any) -> Option:
    """An option as argparse knows it."""
    return lambda verb: verb.add_argument(*names, **settings)


def place(name: str, meaning: str, metavar: str = "FILE", **more: Any) -> Option:
    """A file or folder."""
    return option(name, type=Path, metavar=metavar, help=meaning, **more)


def number(name: str, meaning: str, default: float | None = None, metavar: str = "X") -> Option:
    """A number that need not be whole."""
    return option(name, type=float, default=default, metavar=metavar, help=meaning)


def switch(name: str, meaning: str) -> Option:
    """Something to do or not to do."""
    return option(name, action="store_true", help=meaning)


def output(default: str | None, metavar: str, meaning: str = "") -> Option:
    """Where results are written."""
    meaning = meaning or f"where to write (default: {default})"
    standard = Path(default) if default else None
    return option("-o", "--output", type=Path, default=standard, metavar=metavar, help=meaning)


def seed(meaning: str) -> Option:
    """Where chance begins."""
    return option("--seed", type=int, default=0, help=f"{meaning} (default: 0)")


def scale(meaning: str) -> Option:
    """How stored scores are turned into ours."""

    def add(verb: Any) -> None:
        from stepgraph.scoring.fusion import SCALES

        verb.add_argument("--scale", choices=SCALES, default="raw", help=f"{meaning}")

    return add


def fields_of(kind: str, *names: str, without: Iterable[str] = (), group: str = "") -> Option:
    """Fields of a class such as ``graph:MiningOptions`` as options: some, or all but some."""

    def add(verb: Any) -> None:
        from stepgraph.cli.asked import add_fields

        module, _, name = kind.partition(":")
        found = getattr(import_module(f"stepgraph.{module}"), name)
        wanted = names or [one for one in found.__dataclass_fields__ if one not in without]
        add_fields(verb.add_argument_group(group) if group else verb, found, wanted)

    return add


def grouped(title: str, about: str, *options: Option) -> Option:
    """Options under a heading."""

    def add(verb: Any) -> None:
        group = verb.add_argument_group(title, about)
        for one in options:
            one(group)

    return add


def _shard(text: str) -> Any:
    from stepgraph.datasets import Shard

    try:
        return Shard.parse(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def source(verb: argparse.ArgumentParser) -> None:
    """Where the videos come from, and how they are opened."""
    verb.add_argument(
        "source",
        metavar="SOURCE",
        help="folder of videos and transcripts, one such file, a manifest, 'demo', 'generated', "
        "crosstask:PATH, coin:PATH or howto100m:PATH",
    )
    splits = "CrossTask: train, val; COIN: training, testing"
    verb.add_argument("--split", default="all", metavar="NAME", help=splits)
    shard = "only the I-th of N parts of the source, from 1/N to N/N"
    verb.add_argument("--shard", type=_shard, default="1/1", metavar="I/N", help=shard)
    listens = "a faster-whisper model that listens to video files without a transcript"
    place("--speech", listens, "FOLDER")(verb)
    strictness = verb.add_mutually_exclusive_group()
    SKIP_BAD(strictness)
    STRICT(strictness)


SKIP_BAD = switch("--skip-bad", "leave out what cannot be read")
STRICT = switch("--strict", "stop at the first problem")
JSON = switch("--json", "print one JSON object")
VOCABULARY = place("--vocabulary", "keysteps, one a line, or a saved vocabulary")
GRAPH = place("--graph", "a mined graph", required=True)
FORMAT = (
    option("--format", choices=("text", "markdown", "json"), default="text", help="default: text"),
    option(
        "--json", dest="format", action="store_const", const="json", help="same as --format json"
    ),
)
ENCODER = "text:minilm, another of 'stepgraph encoders', or module:function of yours"
_EVERY = "what a row of stored features or scores covers (default: 1)"
EVERY = number("--every", _EVERY, 1.0, "SECONDS")
MINING = fields_of("graph:MiningOptions", group="mining")


def scoring(default: str = "the decoder is made for") -> Option:
    """What scores the videos; ``default`` says which encoder is taken without any option."""
    return grouped(
        "scoring",
        f"Without any of these, the encoder is the one that {default}.",
        option("--encoder", metavar="NAME", help=ENCODER),
        fields_of(
            "encoders:EncoderOptions",
            *("also", "fusion", "context", "task_names", "blend", "window"),
        ),
        place("--features", "stored features instead of encoding: see stepgraph encode", "DIR"),
        place(
            "--scores",
            "stored scores (.pt, .npy, .npz, .h5, .parquet, .pkl) instead of any encoder's",
            "DIR",
        ),
        scale("of stored scores (default: raw)"),
        EVERY,
        switch(
            "--all-videos",
            "count videos without stored features or scores as unobserved; else they are left out",
        ),
    )


ORDER = number(
    "--order", "how far the order of the list is believed, 0 where it has none (default: 1)"
)


def decoding(verb: argparse.ArgumentParser) -> None:
    """Which decoder, and its options."""
    from stepgraph.decoders import DEFAULT_DECODER

    named = (
        f"{DEFAULT_DECODER} (default), another of 'stepgraph decoders', or module:Class of yours; "
        f"--threshold alone means path-search"
    )
    other = "any other option of the decoder, such as stay=0.9"
    grouped(
        "decoding",
        "'stepgraph decoders' lists all with options.",
        option("--decoder", metavar="NAME", help=named),
        number("--threshold", "least score of an anchor of path-search (default: 0.4)"),
        number(
            "--background",
            "share of introduction and farewell in a video, from 0, where "
            "every row is labelled, to 1 (default: 0.13)",
        ),
        ORDER,
        option("--option", action="append", default=[], metavar="NAME=VALUE", help=other),
    )(verb)


def make_parser(asked: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """Make the parser of the command line; ``run`` of what it parses is the verb's function.

    Parameters
    ----------
    asked
        What will be parsed: only the verb in it gets its options.  All do if not given.
    """
    parser = _Parser(
        prog="stepgraph",
        description="Mine a task graph from narrated how-to videos, and recognise the keysteps "
        "of new ones.",
    )
    parser.add_argument("--version", action="version", version=f"stepgraph {__version__}")
    switch("--debug", "show the traceback of an error")(parser)
    switch("--offline", "fetch no model, also none that is named here")(parser)
    added = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    chosen = None if asked is None else next((a for a in asked if not a.startswith("-")), "")
    for name, (about, function, *options) in _VERBS.items():
        verb = added.add_parser(name, help=about)
        if chosen in (None, name):
            _fill(verb, function, options)
    return parser


class _Parser(argparse.ArgumentParser):
    """One that quotes what it was given without its control characters."""

    def _print_message(self, message: str, file: Any = None) -> None:
        super()._print_message(printable(message, lines=True), file)


def _fill(verb: argparse.ArgumentParser, function: str, options: Sequence[Option]) -> None:
    """Add options, and the function that runs, which is imported now and describes the verb."""
    for add in options:
        add(verb)
    if function:
        module, _, name = function.partition(":")
        run = getattr(import_module(f"stepgraph.cli.{module}"), name)
        verb.description = run.__doc__
        verb.set_defaults(run=run)


def _questions(verb: argparse.ArgumentParser) -> None:
    graph, two = option("graph", type=Path, metavar="GRAPH"), ("first", "second")
    asked = verb.add_subparsers(title="questions", metavar="QUESTION", required=True)
    for name, about, keysteps, top in (
        ("show", "its size, and each task in the order in which it is done", (), 10),
        ("next", "which keysteps most probably follow one", ("keystep",), 4),
        ("path", "the most probable path between two keysteps", two, 0),
        ("relation", "how two keysteps relate", two, 0),
    ):
        options = [graph, *(option(keystep, metavar="KEYSTEP") for keystep in keysteps)]
        options += [option("--top", type=int, default=top)] if top else []
        _fill(asked.add_parser(name, help=about), f"questions:graph_{name}", [*options, JSON])
    check = asked.add_parser("check", help="hold its order against the truth of videos")
    _fill(check, "questions:graph_check", [graph, option("source", metavar="SOURCE"), JSON])
    several = option("graphs", type=Path, nargs="+", metavar="GRAPH")
    merge = asked.add_parser("merge", help="add up graphs of different videos")
    _fill(merge, "questions:graph_merge", [several, output("graph.json", "FILE")])


def _each(name: str, metavar: str, meaning: str) -> Option:
    return option(name, action="append", default=[], metavar=metavar, help=meaning)


_VERBS: dict[str, tuple[Any, ...]] = {
    "demo": (
        "run the whole job on a corpus that comes with it",
        "verbs:demo",
        switch("--video", "on rendered video files, seen and heard"),
        output("demo-report", "DIR"),
        JSON,
    ),
    "mine": (
        "mine a task graph from many narrated videos",
        "verbs:mine",
        *(source, VOCABULARY, output("graph.json", "FILE"), JSON, MINING, ORDER, scoring()),
    ),
    "recognize": (
        "recognise the keysteps of videos with a graph",
        "verbs:recognize",
        *(source, GRAPH, output("keysteps", "DIR"), JSON),
        number(
            "--overlap",
            "what a chapter must have in common with all that is found of its keystep, from 0, "
            "where all are written, to 1 (default: 0.4)",
        ),
        *(scoring("the graph was mined with"), decoding),
    ),
    "evaluate": (
        "measure a decoder on videos whose truth is known",
        "verbs:evaluate",
        *(source, VOCABULARY),
        place("--graph", "a graph mined elsewhere (default: mine the source, without its truth)"),
        place(
            "--report", "where to write the HTML report (default: report.html; with --json none)"
        ),
        option(
            "--compat",
            metavar="NAMES",
            help="path search as in the authors' scripts: authors, or some behaviours by name",
        ),
        *(JSON, MINING, scoring(), decoding),
    ),
    "reproduce": (
        "measure a table of the paper, beside what it prints",
        "learning:reproduce",
        option(
            "table",
            metavar="TABLE",
            help="table1, table2, table1-expanded, ablations, metrics, entropy, noise, "
            "thresholds, compat, tasks or transfer",
        ),
        *(source, VOCABULARY),
        place("--graph", "a graph mined on other videos (inductive)"),
        option(
            "--noise-from",
            metavar="SOURCE",
            help="irrelevant keysteps for the table noise, such as articles:PATH",
        ),
        option(
            "--video",
            metavar="NAME",
            help="a video encoder, such as clip:FOLDER (default for 'generated': colour:motion)",
        ),
        place("--features", "stored features of that encoder", "DIR"),
        place("--video-scores", "stored scores of a video model instead", "DIR"),
        *(scale("of these (default: raw)"), EVERY),
        number("--threshold", "default: 0.4", 0.4),
        number(
            "--video-threshold",
            "default: 0.3 for stored scores as in the paper; of an encoder as --threshold",
        ),
        seed("of all that is random"),
        option("--encoder", metavar="NAME", help=ENCODER),
        fields_of("encoders:EncoderOptions", "context", "task_names"),
        *FORMAT,
        output(
            None,
            "DIR",
            "also write it there, and keep what is finished so that an interrupted run goes on",
        ),
    ),
    "graph": ("ask a mined graph", "", _questions),
    "vocabulary": (
        "build a vocabulary",
        "questions:vocabulary",
        option(
            "source",
            metavar="SOURCE",
            help="crosstask:PATH, coin:PATH, howto100m:PATH (with --articles), articles:PATH, "
            "a list of keysteps, or a saved vocabulary",
        ),
        place("--articles", "WikiHow articles", "PATH"),
        option(
            "--min-videos",
            type=int,
            default=100,
            metavar="N",
            help="keep tasks of HowTo100M with at least so many videos (default: 100)",
        ),
        option(
            "--max-steps", type=int, metavar="N", help="take at most so many steps of an article"
        ),
        number("--noise", "mix in irrelevant keysteps", 0.0, "FACTOR"),
        option(
            "--noise-from", metavar="SOURCE", help="where those come from: any SOURCE of this verb"
        ),
        *(seed("of the noise"), output(None, "FILE", "save it there"), STRICT, JSON),
    ),
    "datasets": (
        "say which data sets lie in a folder",
        "questions:datasets",
        *(option("folder", type=Path, metavar="PATH"), JSON),
    ),
    "decoders": ("list the decoders with their options", "questions:decoders", JSON),
    "encoders": ("list the encoders with their options", "questions:encoders", JSON),
    "encode": (
        "encode videos into a folder of features",
        "learning:encode",
        *(source, output("features", "DIR"), JSON),
        option("--encoder", required=True, metavar="NAME", help=ENCODER),
        fields_of("encoders:EncoderOptions", "context", "blend", "window"),
    ),
    "label": (
        "label every clip of many videos, to learn from",
        "learning:label",
        *(source, GRAPH, output("labels", "DIR"), JSON),
        *(scoring("the graph was mined with"), decoding),
    ),
    "train": (
        "train a video model on such labels",
        "learning:train",
        place("labels", "what stepgraph label wrote", "LABELS"),
        output("training", "DIR"),
        place(
            "--initial",
            "weights to begin with: a TimeSformer of transformers, or one of ours",
            "PATH",
        ),
        option(
            "--use",
            choices=("graph", "argmax"),
            default="graph",
            help="labels of the graph (default) or the baseline's",
        ),
        option("--epochs", type=int, metavar="N", help="of each of the two phases (default: 15)"),
        number("--rate", "times the paper's learning rates (default: 1)"),
        fields_of(
            "networks.timesformer:TimeSformerOptions",
            *("frames", "size", "patch", "width", "depth", "heads"),
            group="model",
        ),
        fields_of("training:TrainingOptions", without=("phases", "running"), group="training"),
        fields_of("training:Running", group="running"),
        *(JSON, SKIP_BAD),
    ),
    "probe": (
        "measure what frozen features are worth",
        "learning:probe",
        option("sources", nargs="+", metavar="SOURCE", help="data sets with truth"),
        _each(
            "--features", "NAME=DIR", "stored features of a backbone; may be given several times"
        ),
        _each("--encoder", "NAME=ENCODER", "an encoder to take features from; likewise"),
        fields_of("experiments.probing:ProbeOptions"),
        number(
            "--share",
            "of the videos to train on, where a source has no split of its own (default: 0.7)",
            0.7,
        ),
        *(seed("of that division"), SKIP_BAD, *FORMAT),
        output(None, "DIR", "also write it there"),
    ),
}
"""Every verb by name: what it does, its function, its options."""
