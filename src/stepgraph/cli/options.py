"""Options that several verbs share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

SOURCE_HELP = (
    "folder of videos and transcripts, one such file, a manifest, 'demo', 'generated', "
    "crosstask:PATH, coin:PATH or howto100m:PATH"
)


def make_verb(added: Any, name: str, function: Any) -> argparse.ArgumentParser:
    """Add a verb; its function's docstring says what it does."""
    summary = function.__doc__
    verb: argparse.ArgumentParser = added.add_parser(
        name, help=summary[0].lower() + summary[1:].rstrip("."), description=summary
    )
    verb.set_defaults(run=function)
    return verb


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


def add_vocabulary_option(verb: argparse.ArgumentParser) -> None:
    """The keysteps that may occur."""
    verb.add_argument(
        "--vocabulary",
        type=Path,
        metavar="FILE",
        help="keysteps, one a line, or a saved vocabulary",
    )


def add_output(verb: argparse.ArgumentParser, default: str, kind: str) -> None:
    """Where results are written."""
    verb.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path(default),
        metavar=kind,
        help=f"where to write (default: {default})",
    )


def add_json(verb: argparse.ArgumentParser) -> None:
    """Results for programs."""
    verb.add_argument("--json", action="store_true", help="print one JSON object")


def add_min_score(verb: argparse.ArgumentParser) -> None:
    """What is counted when a graph is mined."""
    verb.add_argument(
        "--min-score",
        type=float,
        default=float("-inf"),
        metavar="X",
        help="mine only rows whose best score is at least this (default: all, as in the paper)",
    )


def add_encoder_options(
    verb: argparse.ArgumentParser, default: str = "the decoder is made for"
) -> None:
    """Which encoder, or which two; ``default`` says what is taken without any."""
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
    add_rate(group)
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


def add_rate(group: Any) -> None:
    """How much time a row of stored features or scores covers."""
    group.add_argument(
        "--every",
        type=float,
        metavar="SECONDS",
        help="what a row of stored features or scores covers (default: 1)",
    )


def add_decoder_options(verb: argparse.ArgumentParser) -> None:
    """Which decoder, and its options."""
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
