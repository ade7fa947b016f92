"""Make pages of the site from the code: the command line, the Python names, the changes.

mkdocs calls :func:`on_files`; nothing is written into the folder of the sources.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent

STAGES = {
    "The whole job": ("mine", "recognize", "recognize_all"),
    "Reading": ("open_source", "open_video", "read_transcript", "read_vocabulary"),
    "Nouns": (),
    "Stages": ("make_vocabulary", "load_encoder", "score", "mine_graph", "load_decoder"),
    "Decoders": (),
    "The graph": ("TaskGraph", "Transition", "Relation"),
    "Measuring": ("evaluate", "Report", "metrics"),
    "Files": ("load", "save", "write_timeline"),
    "Errors": (),
}
"""Headings of the Python page, with the first names under each; the others are sorted in."""
HOMES = {
    "stepgraph.core": "Nouns",
    "stepgraph.decoders": "Decoders",
    "stepgraph.errors": "Errors",
    "stepgraph.encoders": "Stages",
    "stepgraph.evaluation": "Measuring",
    "stepgraph.export": "Files",
}


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages."""
    from mkdocs.structure.files import File

    for name, text in (
        ("commands", commands_page()),
        ("python", python_page()),
        ("changes", (ROOT / "CHANGELOG.md").read_text("utf-8")),
    ):
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def commands_page() -> str:
    """Make the page of every verb and its options, from the parser itself."""
    from stepgraph.cli.parser import make_parser

    parser = make_parser()
    pieces = [
        "# The command line",
        parser.description or "",
        "Results go to stdout, progress and warnings to stderr. Exit code 0 is success, 1 an "
        "error, in one line, or work that failed in part, 2 wrong usage. "
        "`stepgraph VERB --help` prints the same text.",
        *_options(parser),
        *(piece for name, verb in _verbs(parser) for piece in _verb(f"stepgraph {name}", verb, 2)),
    ]
    return "\n\n".join(piece for piece in pieces if piece) + "\n"


def _verb(name: str, verb: argparse.ArgumentParser, level: int) -> Iterator[str]:
    yield f"{'#' * level} {name}"
    yield (verb.description or "").strip()
    usage = argparse.HelpFormatter(name, width=96)
    usage.add_usage(verb.usage, verb._actions, verb._mutually_exclusive_groups, prefix="")
    yield f"```text\n{usage.format_help().strip()}\n```"
    yield from _options(verb)
    for inner, question in _verbs(verb):
        yield from _verb(f"{name} {inner}", question, level + 1)


def _verbs(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Make a table of a verb's arguments, and one for each named group of options."""
    first, named = [], []
    for group in parser._action_groups:
        rows = [row for action in group._group_actions for row in _row(action)]
        if group.title in ("positional arguments", "options"):
            first += rows
        elif rows:
            named += [f"**{group.title}** {group.description or ''}".strip(), _table(rows)]
    yield from [_table(first), *named] if first else named


def _table(rows: list[str]) -> str:
    return "\n".join(["| option | meaning |", "| --- | --- |", *rows])


def _row(action: argparse.Action) -> Iterator[str]:
    if isinstance(action, (argparse._HelpAction, argparse._SubParsersAction)):
        return
    names = action.option_strings or [str(action.metavar or action.dest)]
    value = "" if action.nargs == 0 or not action.option_strings else f" {_value(action)}"
    written = ", ".join(f"`{name}{value}`" for name in names)
    # help may hold %(default)s, as argparse fills it in
    text = ((action.help or "") % {**vars(action), "prog": "stepgraph"}).replace("|", "\\|")
    yield f"| {written} | {text} |"


def _value(action: argparse.Action) -> str:
    if action.metavar:
        return str(action.metavar)
    if action.choices:
        return "{" + ",".join(str(choice) for choice in action.choices) + "}"
    return action.dest.upper()


def python_page() -> str:
    """Make the page of the public names, each described by its own docstring."""
    import stepgraph

    pieces = [
        "# Python",
        "`import stepgraph as sg` gives these names. Import everything else from its module.",
    ]
    for heading, names in grouped(stepgraph).items():
        pieces.append(f"## {heading}")
        pieces.extend(f"::: {home_of(stepgraph, name)}" for name in names)
    return "\n\n".join(pieces) + "\n"


def grouped(package: Any) -> dict[str, list[str]]:
    """Group the names of the package under the headings of the page."""
    groups = {heading: list(names) for heading, names in STAGES.items()}
    placed = {name for names in groups.values() for name in names}
    for name in package.__all__:
        if name not in placed:
            room = ".".join(home_of(package, name).split(".")[:2])
            groups[HOMES.get(room, "Nouns")].append(name)
    return groups


def home_of(package: Any, name: str) -> str:
    """Return the place of definition of a public name, as ``module.name``."""
    value = getattr(package, name)
    if name == "BACKGROUND":  # a number has no module
        return "stepgraph.core.BACKGROUND"
    return value.__name__ if name == "metrics" else f"{value.__module__}.{name}"
