"""Options that several verbs share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepgraph.errors import ConfigError

if TYPE_CHECKING:
    from stepgraph.datasets import Shard

from stepgraph.cli.fields import add_fields

SOURCE_HELP = (
    "folder of videos and transcripts, one such file, a manifest, 'demo', 'generated', "
    "crosstask:PATH, coin:PATH or howto100m:PATH"
)


def add_source(verb: argparse.ArgumentParser) -> None:
    """Where the videos come from, and how they are opened."""
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
        default="1/1",
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


def _shard(text: str) -> Shard:
    from stepgraph.datasets import Shard

    try:
        return Shard.parse(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def add_vocabulary_option(verb: argparse.ArgumentParser) -> None:
    """The keysteps that may occur."""
    verb.add_argument(
        "--vocabulary",
        type=Path,
        metavar="FILE",
        help="keysteps, one a line, or a saved vocabulary",
    )


def add_graph(verb: argparse.ArgumentParser, *, required: bool, meaning: str) -> None:
    """A graph that was mined before."""
    verb.add_argument("--graph", type=Path, required=required, metavar="FILE", help=meaning)


def add_output(verb: argparse.ArgumentParser, default: str | None, kind: str) -> None:
    """Where results are written."""
    verb.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path(default) if default else None,
        metavar=kind,
        help=f"where to write (default: {default})" if default else "also write it there",
    )


def add_json(verb: argparse.ArgumentParser) -> None:
    """Results for programs."""
    verb.add_argument("--json", action="store_true", help="print one JSON object")


def add_format(verb: argparse.ArgumentParser) -> None:
    """How a table is printed."""
    verb.add_argument(
        "--format", choices=("text", "markdown", "json"), default="text", help="default: text"
    )
    verb.add_argument(
        "--json", dest="format", action="store_const", const="json", help="same as --format json"
    )


def add_mining_options(verb: argparse.ArgumentParser) -> None:
    """What is counted when a graph is mined."""
    from stepgraph.graph import MiningOptions

    add_fields(verb.add_argument_group("mining"), MiningOptions)


def add_scoring_options(
    verb: argparse.ArgumentParser, default: str = "the decoder is made for"
) -> None:
    """What scores the videos; ``default`` says which encoder is taken without any option."""
    from stepgraph.encoders import EncoderOptions
    from stepgraph.scoring.scales import SCALES

    group = verb.add_argument_group(
        "scoring", f"Without any of these, the encoder is the one that {default}."
    )
    add_encoder_name(group)
    names = ("also", "fusion", "context", "task_names", "blend", "window")
    add_fields(group, EncoderOptions, names)
    add_stored(group, "--features", "features instead of encoding: see stepgraph encode")
    add_stored(
        group,
        "--scores",
        "scores (.pt, .npy, .npz, .h5, .parquet, .pkl) instead of any encoder's",
    )
    group.add_argument(
        "--scale",
        choices=SCALES,
        default="raw",
        help="of stored scores (default: raw)",
    )
    add_rate(group)
    group.add_argument(
        "--all-videos",
        action="store_true",
        help="count videos without stored features or scores as unobserved; else they are left "
        "out",
    )


def add_encoder_name(group: Any, *, required: bool = False) -> None:
    """The encoder by name."""
    group.add_argument(
        "--encoder",
        required=required,
        metavar="NAME",
        help="text:minilm, another of 'stepgraph encoders', or module:function of yours",
    )


def add_stored(group: Any, flag: str, meaning: str) -> None:
    """A folder or file of numbers that were computed before."""
    group.add_argument(flag, type=Path, metavar="DIR", help=f"stored {meaning}")


def add_rate(group: Any) -> None:
    """How much time a row of stored features or scores covers."""
    group.add_argument(
        "--every",
        type=float,
        default=1.0,
        metavar="SECONDS",
        help="what a row of stored features or scores covers (default: 1)",
    )


def add_decoder_options(verb: argparse.ArgumentParser) -> None:
    """Which decoder, and its options."""
    from stepgraph.decoders import DEFAULT_DECODER

    group = verb.add_argument_group("decoding", "'stepgraph decoders' lists all with options.")
    group.add_argument(
        "--decoder",
        metavar="NAME",
        help=f"{DEFAULT_DECODER} (default), another of 'stepgraph decoders', or module:Class of "
        f"yours; --threshold alone means path-search",
    )
    group.add_argument(
        "--threshold",
        type=float,
        metavar="X",
        help="least score of an anchor of path-search (default: 0.4)",
    )
    group.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other option of the decoder, such as stay=0.9",
    )
