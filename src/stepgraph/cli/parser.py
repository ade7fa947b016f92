"""The parser of the command line; ``verbs.toml`` describes the verbs and their options.

Many options are fields of classes that are not cheap to import.  These classes, and the function
of a verb, are imported only for the verb that is parsed, so that help is instant.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from stepgraph import __version__
from stepgraph.errors import ConfigError, printable
from stepgraph.renamed import OPTIONS

_WRITTEN = tomllib.loads(Path(__file__).with_name("verbs.toml").read_text("utf-8"))


def make_parser(arguments: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """Make the parser of the command line; ``run`` of the parsed arguments is the verb's function.

    Parameters
    ----------
    arguments
        Arguments to parse: only their verb gets its options.  All verbs do if not given.
    """
    parser = _Parser(
        prog="stepgraph",
        description="Mine a task graph from narrated how-to videos, and recognise the keysteps "
        "(steps of a task) of these or of new videos. 'stepgraph VERB --help' explains a verb.",
    )
    parser.add_argument("--version", action="version", version=f"stepgraph {__version__}")
    _add(parser, ("debug", "offline"))
    chosen = (
        None if arguments is None else next((a for a in arguments if not a.startswith("-")), "")
    )
    _add_verbs(parser, _WRITTEN["verbs"], "verb", chosen)
    return parser


class _Parser(argparse.ArgumentParser):
    """Parser that quotes arguments without control characters, and refuses old options."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        # Without this, an old option would pass as the abbreviation of a new one.
        for old in (one.partition("=")[0] for one in args or ()):
            if old in OPTIONS:
                self.error(f"{old} is now {OPTIONS[old]}")
        return super().parse_known_args(args, namespace)

    def _print_message(self, message: str, file: Any = None) -> None:
        super()._print_message(printable(message, lines=True), file)


def _add_verbs(
    parser: argparse.ArgumentParser, verbs: Mapping[str, Any], noun: str, chosen: str | None = None
) -> None:
    """Add verbs, or the questions below a verb; only the chosen verb gets its options."""
    added = parser.add_subparsers(title=f"{noun}s", metavar=noun.upper(), required=True)
    for name, written in verbs.items():
        verb = added.add_parser(name, help=written["about"])
        if chosen not in (None, name):
            continue
        if "questions" in written:
            _add_verbs(verb, written["questions"], "question")
            continue
        _add(verb, written["takes"], written.get("options", {}))
        run = _named(f"cli.{written['run']}")
        verb.description = run.__doc__
        verb.set_defaults(run=run, refuses=written.get("refuses", {}))


def refuse_what_would_be_ignored(args: argparse.Namespace) -> None:
    """Refuse options that exclude another given option."""

    def is_given(option: str) -> bool:
        value = getattr(args, option.replace("-", "_"), None)
        return value is not False and value not in (None, [])

    for one, others in args.refuses.items():
        for other in others:
            if is_given(one) and is_given(other):
                raise ConfigError(f"--{one} and --{other} are mutually exclusive: remove one")


def _add(group: Any, names: Iterable[str], own: Mapping[str, Any] | None = None) -> None:
    """Add options to a parser or group; a verb's own settings override the common ones."""
    own = own or {}
    for name in names:
        option: dict[str, Any] = _WRITTEN["options"].get(name, {}) | own.get(name, {})
        if "takes" in option:
            _add(_group(group, option), option["takes"], own)
        elif "fields" in option:
            _add_fields(_group(group, option), option)
        else:
            _add_option(group, name, option)


def _group(group: Any, option: Mapping[str, Any]) -> Any:
    if option.get("exclusive"):
        return group.add_mutually_exclusive_group(required="required" in option)
    if "title" in option:
        return group.add_argument_group(option["title"], option.get("about"))
    return group


def _add_fields(group: Any, option: Mapping[str, Any]) -> None:
    from stepgraph.cli.arguments import add_fields

    kind, left_out = _named(option["fields"]), option.get("without", ())
    names = option.get("names", kind.__dataclass_fields__)
    add_fields(group, kind, [name for name in names if name not in left_out])


def _add_option(group: Any, name: str, option: dict[str, Any]) -> None:
    types = {
        **{"path": Path, "str": str, "shard": _shard},
        **{"int": int, "number": _number, "float": float},
    }
    if "type" in option:
        option["type"] = types[option["type"]]
    if isinstance(choices := option.get("choices"), str):
        option["choices"] = _named(choices)
    group.add_argument(*option.pop("flags", [f"--{name}"]), **option)


def _named(name: str) -> Any:
    """Import an object of the package that is written as ``module:name``."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(f"stepgraph.{module}"), attribute)


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 on, got {text!r}")
    return int(text)


def _shard(text: str) -> Any:
    from stepgraph.datasets import Shard

    try:
        return Shard.parse(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
