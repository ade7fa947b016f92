"""Every option of the command line, said once; the verbs choose among them.

An option is something that adds itself to the parser of a verb.  Many are fields of classes that
are not cheap to import, so these are imported when a verb is asked for: help must be instant.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from stepgraph.cli.fields import add_fields
from stepgraph.errors import ConfigError

if TYPE_CHECKING:
    from stepgraph.datasets import Shard

Option: TypeAlias = Callable[[Any], object]
"""Adds itself to a parser, or to a group of one."""


def option(*names: str, **settings: Any) -> Option:
    """An option as argparse knows it."""
    return lambda verb: verb.add_argument(*names, **settings)


def place(name: str, meaning: str, metavar: str = "FILE", **more: Any) -> Option:
    """A file or folder."""
    return option(name, type=Path, metavar=metavar, help=meaning, **more)


def number(name: str, meaning: str, default: float | None = None) -> Option:
    """A number that need not be whole."""
    return option(name, type=float, default=default, metavar="X", help=meaning)


def switch(name: str, meaning: str) -> Option:
    """Something to do or not to do."""
    return option(name, action="store_true", help=meaning)


def output(default: str | None, metavar: str, meaning: str = "") -> Option:
    """Where results are written."""
    meaning = meaning or f"where to write (default: {default})"
    standard = Path(default) if default else None
    return lambda verb: verb.add_argument(
        "-o", "--output", type=Path, default=standard, metavar=metavar, help=meaning
    )


def seed(meaning: str) -> Option:
    """Where chance begins."""
    return option("--seed", type=int, default=0, help=f"{meaning} (default: 0)")


def scale(meaning: str) -> Option:
    """How stored scores are turned into ours."""

    def add(verb: Any) -> None:
        from stepgraph.scoring.scales import SCALES

        verb.add_argument("--scale", choices=SCALES, default="raw", help=f"{meaning}")

    return add


def fields_of(kind: str, *names: str, without: Iterable[str] = (), group: str = "") -> Option:
    """Fields of a class such as ``graph:MiningOptions`` as options: some, or all but some."""

    def add(verb: Any) -> None:
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


def _shard(text: str) -> Shard:
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
EVERY = option(
    "--every",
    type=float,
    default=1.0,
    metavar="SECONDS",
    help="what a row of stored features or scores covers (default: 1)",
)
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
        option("--option", action="append", default=[], metavar="NAME=VALUE", help=other),
    )(verb)
