"""Options of the verbs: their parsing, and the data set, scorer and decoder that they select.

Many options are fields of a dataclass, named, typed and explained there.  A field is an option of
its name in kebab case.  Its type decides the parsing, its default the value without the option,
and the class's docstring the help.  Nothing is computed here.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import os
import re
import sys
import types
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from stepgraph.core import Dataset
from stepgraph.datasets import open_source
from stepgraph.decoders import DEFAULT_DECODER, Decoder, decoder_class, load_decoder
from stepgraph.encoders import EncoderOptions
from stepgraph.errors import ConfigError, DataError, IncompleteError, one_line
from stepgraph.files.disk import write_text
from stepgraph.graph import TaskGraph
from stepgraph.ingest import Listening
from stepgraph.ingest.screen import note_screen_reading
from stepgraph.pipeline import ScorerChoice, open_scorer, options_of, uses_speech
from stepgraph.problems import Problems
from stepgraph.renamed import renamed
from stepgraph.scoring import Scorer
from stepgraph.vocabulary import read_vocabulary

_WORDS = {"true": True, "yes": True, "false": False, "no": False}


def add_fields(verb: Any, kind: type[Any], names: Iterable[str] = ()) -> None:
    """Add an option for each field of a dataclass, or for some; absent options are not set."""
    accepted = {one.name: one for one in fields(kind)}
    hints, meanings = get_type_hints(kind), describe_fields(kind)
    for name in names or accepted:
        flag, hint = f"--{name.replace('_', '-')}", hints[name]
        meaning = f"{meanings.get(name, '')} {_default(accepted[name])}".strip().replace("%", "%%")
        if hint in (bool, bool | None):
            action = argparse.BooleanOptionalAction
            verb.add_argument(flag, action=action, default=argparse.SUPPRESS, help=meaning)
            continue
        verb.add_argument(
            flag,
            type=_typed(hint),
            default=argparse.SUPPRESS,
            metavar=_metavar(hint),
            help=meaning,
        )


def given_fields(args: argparse.Namespace, kind: type[Any]) -> dict[str, Any]:
    """Return the fields of a dataclass that were given as options."""
    return {one.name: getattr(args, one.name) for one in fields(kind) if one.name in args}


def parse_option(text: str, kind: type[Any]) -> tuple[str, Any]:
    """Read ``name=value`` as a field of a class, or as a literal where the class has no fields.

    >>> from stepgraph.decoders.baselines import Random
    >>> parse_option("seed=3", Random)
    ('seed', 3)
    """
    name, equals, value = text.partition("=")
    name = name.strip().replace("-", "_")
    if not equals or not name:
        raise ConfigError(f"--option must be NAME=VALUE, such as temperature=0.1, got {text!r}")
    if not is_dataclass(kind):
        with suppress(ValueError, SyntaxError):
            return name, ast.literal_eval(value)
        return name, value
    hints = {one.name: get_type_hints(kind)[one.name] for one in fields(kind)}
    if name not in hints:
        new, accepted = renamed(kind.__name__, name), ", ".join(hints) or "none"
        hint = f"that is now {new!r}" if new else f"it has {accepted}"
        raise ConfigError(f"{kind.__name__} has no option {name!r}; {hint}")
    return name, parse_value(value, hints[name], f"--option {name}")


def parse_value(text: str, hint: Any, what: str) -> Any:
    """Read text as a value of a type: numbers, words, paths, choices, tuples of them, or none."""
    choices = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    if type(None) in choices and text.strip().lower() in ("none", ""):
        return None
    for choice in choices:
        try:
            return _as(text, choice)
        except ValueError:
            continue
    raise ConfigError(f"{what} must be {words_for(hint)}, got {text!r}")


def _as(text: str, hint: Any) -> Any:
    """Convert text to one plain type, or raise a ValueError."""
    if get_origin(hint) is Literal and text in get_args(hint):
        return text
    if get_origin(hint) is tuple:
        parts = (part.strip() for part in text.split(","))
        return tuple(_as(part, get_args(hint)[0]) for part in parts if part)
    if hint is bool and text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if hint in (int, float, str, Path):
        return hint(text)
    raise ValueError(text)


def words_for(hint: Any) -> str:
    """Describe the values of a type in words.

    >>> words_for(int | None)
    'a whole number or none'
    """
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(map(words_for, get_args(hint)))
    if get_origin(hint) is Literal:
        return f"one of {', '.join(get_args(hint))}"
    if get_origin(hint) is tuple:
        return f"{words_for(get_args(hint)[0])}, or several between commas"
    plain = {int: "a whole number", float: "a number", bool: "yes or no", type(None): "none"}
    return plain.get(hint, "text")


def describe_fields(kind: type[Any]) -> dict[str, str]:
    """Return the first sentence on each field in the ``Attributes`` section of a docstring."""
    _, _, section = (kind.__doc__ or "").partition("Attributes\n")
    found: dict[str, str] = {}
    for block in re.split(r"\n(?=    \w)", section.split("\n\n")[0])[1:]:
        head, _, body = block.partition("\n")
        sentence = re.split(r"(?<=[.;])\s", " ".join(body.split()))[0].rstrip(".;")
        plain = re.sub(r":\w+:`~?(?:[\w.]*\.)?([\w]+)`", r"\1", sentence).replace("``", "")
        names = head.split(" : ")[0].split(",")
        found |= {name.strip(): plain[:1].lower() + plain[1:] for name in names}
    return found


def list_fields(kind: type[Any]) -> list[dict[str, Any]]:
    """List name, default, type and description of each field of a dataclass."""
    hints, meanings = get_type_hints(kind), describe_fields(kind)
    return [
        {
            "name": one.name,
            "default": None if default_of(one) is MISSING else default_of(one),
            "type": words_for(hints[one.name]),
            "about": meanings.get(one.name, ""),
        }
        for one in fields(kind)
    ]


def default_of(field: Field[Any]) -> Any:
    """Return the default of a field, or ``MISSING``."""
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


def _default(field: Field[Any]) -> str:
    value = default_of(field)
    if value is MISSING or value is None or value is False:
        return ""
    if isinstance(value, float) and math.isinf(value):
        return "(default: no limit)"
    if isinstance(value, tuple):
        value = ",".join(map(str, value))
    return f"(default: {value})"


def _typed(hint: Any) -> Any:
    def read(text: str) -> Any:
        try:
            return parse_value(text, hint, "it")
        except ConfigError as error:
            raise argparse.ArgumentTypeError(str(error).removeprefix("it ")) from error

    return read


def _metavar(hint: Any) -> str:
    choices = [one for one in get_args(hint) if one is not type(None)] or [hint]
    if get_origin(hint) is Literal:
        return "|".join(get_args(hint))
    return {int: "N", float: "X", Path: "PATH"}.get(choices[0], "NAME")


def open_dataset(args: argparse.Namespace, *, uses_vision: bool = False) -> Dataset:
    """Open the source of a verb with the options that apply to it.

    Visual encoders need no transcript; unreadable files are skipped unless ``--strict`` is given.
    """
    strict = True if args.strict else False if args.skip_bad or uses_vision else None
    vocabulary = getattr(args, "vocabulary", None)
    args.opening = {
        "strict": strict,
        "split": args.split,
        "vocabulary": read_vocabulary(vocabulary) if vocabulary else None,
        "shard": args.shard,
        "listening": Listening(
            needed=not uses_vision,
            speech=args.speech,
            uses_speech=not args.no_speech and getattr(args, "uses_speech", not uses_vision),
            save=args.save_transcripts,
        ),
    }
    dataset = open_source(args.source, **args.opening)
    if getattr(args, "reads", False) and isinstance(dataset.videos, Sequence):
        note_screen_reading(dataset.videos)
    return dataset


def open_chosen_scorer(args: argparse.Namespace, graph: TaskGraph | None = None) -> Scorer:
    """Open the scorer that the options of a verb select."""
    given = given_fields(args, EncoderOptions)
    if args.encoder:
        given["name"] = args.encoder
    args.stored = Problems(strict=bool(args.strict))
    args.arguments = ScorerChoice(
        given, args.features, args.scores, args.scale, args.every, args.all_videos, args.stored
    )
    decoder = decoder_name(args) if "decoder" in args else DEFAULT_DECODER
    scorer = open_scorer(args.arguments, graph=graph, decoder=decoder)
    args.uses_speech = uses_speech(scorer)
    options = options_of(scorer)
    args.reads = options is not None and options.uses_screen_text and args.features is None
    return scorer


def decoder_name(args: argparse.Namespace) -> str:
    """Return the decoder's name; a threshold alone selects path search, which has one."""
    if args.decoder:
        return str(args.decoder)
    return DEFAULT_DECODER if args.threshold is None else "path-search"


def open_decoder(args: argparse.Namespace) -> Decoder:
    """Make the selected decoder with the options that were given."""
    name = decoder_name(args)
    kind = decoder_class(name)
    options = _plain_options(args)
    return load_decoder(name, **(options | dict(parse_option(one, kind) for one in args.option)))


def open_compared(args: argparse.Namespace) -> Decoder:
    """Make the decoder to compare with: the same options where it has them, and its own."""
    kind = decoder_class(args.compare)
    accepted = {one.name for one in fields(kind)} if is_dataclass(kind) else set()
    given = {one.partition("=")[0].strip().replace("-", "_"): one for one in args.option}
    shared = [one for name, one in given.items() if name in accepted]
    options = {name: value for name, value in _plain_options(args).items() if name in accepted}
    named = dict(parse_option(one, kind) for one in (*shared, *args.compare_option))
    return load_decoder(args.compare, **(options | named))


def _plain_options(args: argparse.Namespace) -> dict[str, Any]:
    """Options of decoders that have a flag of their own, as far as they were given."""
    own = {name: getattr(args, name, None) for name in ("threshold", "background", "order_weight")}
    return {name: value for name, value in own.items() if value is not None}


def render(args: argparse.Namespace, text: str, **content: Any) -> str:
    """Render the answer of a verb: text for people, or one JSON object."""
    return json.dumps(content, ensure_ascii=False, indent=1) if args.json else text


def conclude(answer: str, args: argparse.Namespace, *found: Problems) -> str:
    """Return the answer after reporting problems; a failed input is an error unless skipped."""
    all_found, fatal = Problems(), Problems()
    for problems in (*found, getattr(args, "stored", Problems())):
        all_found.take(problems)
        fatal.take(problems.failed)
    if fatal and not args.skip_bad:
        for problem in fatal.found if len(fatal) > 1 else ():
            print(f"stepgraph: failed: {one_line(str(problem))}", file=sys.stderr)
        raise IncompleteError(
            f"{len(fatal)} failed, the others are done: {fatal.summary()}", answer
        )
    if all_found:
        source = f"{args.source}: " if "source" in args else ""
        found_in = f"{source}problems, the rest was used: {all_found.summary()}"
        print(f"stepgraph: warning: {one_line(found_in)}", file=sys.stderr)
    return answer


def show_table(table: Any, args: argparse.Namespace, name: str, problems: Problems) -> str:
    """Render a table in the chosen format, and write it where an output is given."""
    if args.output:
        write_table(table, args.output, name)
    shown = {"text": table.to_text, "markdown": table.to_markdown, "json": table.to_json}
    return conclude(shown[args.format](), args, problems)


def write_table(table: Any, folder: Path, name: str) -> None:
    """Write a table as Markdown and as JSON."""
    for suffix, text in (("md", table.to_markdown()), ("json", table.to_json())):
        write_text(folder / f"{name}.{suffix}", text.rstrip("\n") + "\n")


def must_be_new(args: argparse.Namespace) -> None:
    """Refuse to replace a file before any work, unless ``--overwrite`` is given."""
    must_be_writable(args.output.parent, args.output)
    if args.output.exists() and not args.overwrite:
        raise ConfigError(
            f"{args.output}: must not exist yet, got a file, perhaps one that you edited; "
            f"name another one with -o, or replace it with --overwrite"
        )


def must_be_writable(folder: Path, file: Path | None = None) -> None:
    """Check before any work that results can be written; create nothing yet."""
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
