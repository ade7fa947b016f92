"""What the options of a verb mean: which data set, which scores, which decoder, what is an error.

The verbs ask here; nothing here computes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from stepgraph.cli.fields import given_fields, parse_option
from stepgraph.core import Dataset
from stepgraph.datasets import open_source
from stepgraph.decoders import DEFAULT_DECODER, Decoder, decoder_class, load_decoder
from stepgraph.encoders import EncoderOptions
from stepgraph.errors import ConfigError, DataError, IncompleteError, one_line
from stepgraph.files.disk import write_text
from stepgraph.graph import TaskGraph
from stepgraph.ingest import Listening
from stepgraph.pipeline import Asked, open_scorer
from stepgraph.problems import Problems
from stepgraph.scoring import Scorer
from stepgraph.vocabulary import read_vocabulary


def open_dataset(args: argparse.Namespace, *, looks: bool = False) -> Dataset:
    """Open the source of a verb with the options that say how.

    Who looks at video files needs no transcript, and goes on past a file that cannot be read.
    """
    strict = True if args.strict else False if args.skip_bad or looks else None
    asked = getattr(args, "vocabulary", None)
    return open_source(
        args.source,
        strict=strict,
        split=args.split,
        vocabulary=read_vocabulary(asked) if asked else None,
        shard=args.shard,
        listening=Listening(needed=not looks, speech=args.speech),
    )


def open_asked(args: argparse.Namespace, graph: TaskGraph | None = None) -> Scorer:
    """Open what scores the videos of a verb."""
    given = given_fields(args, EncoderOptions)
    if args.encoder:
        given["name"] = args.encoder
    args.stored = Problems(strict=bool(args.strict))
    asked = Asked(
        given, args.features, args.scores, args.scale, args.every, args.all_videos, args.stored
    )
    decoder = decoder_name(args) if "decoder" in args else DEFAULT_DECODER
    return open_scorer(asked, graph=graph, decoder=decoder)


def decoder_name(args: argparse.Namespace) -> str:
    """The decoder asked for; a threshold alone asks for the one that has it."""
    if args.decoder:
        return str(args.decoder)
    return DEFAULT_DECODER if args.threshold is None else "path-search"


def open_decoder(args: argparse.Namespace) -> Decoder:
    """Make the decoder asked for, with the options that were given."""
    name = decoder_name(args)
    kind = decoder_class(name)
    own = {name: getattr(args, name, None) for name in ("threshold", "background")}
    options = {name: value for name, value in own.items() if value is not None}
    return load_decoder(name, **(options | dict(parse_option(one, kind) for one in args.option)))


def say(args: argparse.Namespace, text: str, **content: Any) -> str:
    """The answer of a verb: text for people, or one JSON object."""
    return json.dumps(content, ensure_ascii=False, indent=1) if args.json else text


def finish(answer: str, args: argparse.Namespace, *found: Problems) -> str:
    """Answer, and say what went wrong; a lost input is an error unless it was to be skipped."""
    all_found, lost = Problems(), Problems()
    for problems in (*found, getattr(args, "stored", Problems())):
        all_found.take(problems)
        lost.take(problems.failed)
    if lost and not args.skip_bad:
        for problem in lost.found if len(lost) > 1 else ():
            print(f"stepgraph: failed: {one_line(str(problem))}", file=sys.stderr)
        raise IncompleteError(f"{len(lost)} failed, the rest is done: {lost.summary()}", answer)
    if all_found:
        source = f"{args.source}: " if "source" in args else ""
        found_in = f"{source}problems, the rest was used: {all_found.summary()}"
        print(f"stepgraph: warning: {one_line(found_in)}", file=sys.stderr)
    return answer


def show_table(table: Any, args: argparse.Namespace, name: str, problems: Problems) -> str:
    """Answer with a table in the format asked for; it is also written where that was asked."""
    if args.output:
        for suffix, text in (("md", table.to_markdown()), ("json", table.to_json())):
            write_text(args.output / f"{name}.{suffix}", text.rstrip("\n") + "\n")
    shown = {"text": table.to_text, "markdown": table.to_markdown, "json": table.to_json}
    return finish(shown[args.format](), args, problems)


def must_be_writable(folder: Path, file: Path | None = None) -> None:
    """Find out before the work that its results can be kept; make nothing yet."""
    if file is not None and file.is_dir():
        raise DataError(f"{file}: must be a file to write, got a folder; name a file in it")
    existing = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not (existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)):
        reason = "is not writable" if existing.is_dir() else "is not a folder"
        raise DataError(
            f"{folder}: must be a folder that can be written, got one that {reason}"
            if existing == folder
            else f"{folder}: must be a folder that can be made, got {existing}, which {reason}"
        )


def refuse(args: argparse.Namespace, beside: str, options: tuple[str, ...]) -> None:
    """Refuse options that would be ignored beside another one."""
    for option in options:
        if getattr(args, option, None) not in (None, []):
            flag = option.replace("_", "-")
            raise ConfigError(f"--{flag} must not stand beside {beside}, got both; remove one")
