"""The verbs of the assistant: what comes next, what is missing, what is wrong, and plans."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from difflib import get_close_matches

from stepgraph.assistant import open_executions
from stepgraph.assistant.answers import Assistant, Told
from stepgraph.cli.asked import say
from stepgraph.errors import printable


def ask_next(args: argparse.Namespace) -> str:
    """Say what most probably comes next after what was done."""
    assistant = _open(args)
    done = _known(assistant, _done(args))
    return _tell(args, assistant.next(done, task=args.task, top=args.top), "nothing")


def ask_missing(args: argparse.Namespace) -> str:
    """Say what should have been done by now and was not, with the evidence."""
    assistant = _open(args)
    done = _known(assistant, _done(args))
    found = assistant.missing(done, task=args.task, threshold=args.threshold)
    return _tell(args, found, "nothing is missing")


def ask_mistakes(args: argparse.Namespace) -> str:
    """Say what was done too early, again, or is unknown, with the evidence."""
    found = _open(args).mistakes(_done(args), task=args.task, threshold=args.threshold)
    return _tell(args, found, "no mistake")


def plan(args: argparse.Namespace) -> str:
    """Plan ways from one keystep to another, as short as executions allow or in so many steps."""
    found = _open(args).plans(
        args.first, args.second, steps=args.steps, task=args.task, top=args.top
    )
    lines = [f"{one.probability:.2f}  {' → '.join(map(printable, names))}" for names, one in found]
    plans = [
        {"keysteps": names, "probability": one.probability, "task": one.task}
        for names, one in found
    ]
    return say(args, "\n".join(lines) or "no way leads there", plans=plans)


def _open(args: argparse.Namespace) -> Assistant:
    return Assistant(open_executions(args.source).done)


def _done(args: argparse.Namespace) -> list[str]:
    if args.done == ["-"]:
        return [line.strip() for line in sys.stdin if line.strip()]
    return list(args.done)


def _known(assistant: Assistant, done: Sequence[str]) -> list[str]:
    """The steps that executions do; of others it is said that they tell nothing."""
    known = {*assistant.names.keysteps}
    for step in dict.fromkeys(one for one in done if one not in known):
        near = "".join(f"; the nearest is {one!r}" for one in get_close_matches(step, known, 1))
        what = printable(f"{step!r} must be a step of the executions to tell anything{near}")
        print(f"stepgraph: warning: {what}", file=sys.stderr)
    return [one for one in done if one in known]


def _tell(args: argparse.Namespace, found: Sequence[Told], nothing: str) -> str:
    lines = [
        f"{one.score:.2f}  {one.kind}: {printable(one.step)}"
        + (f"  ({printable(one.why)})" if one.why else "")
        for one in found
    ]
    return say(args, "\n".join(lines) or nothing, told=[one._asdict() for one in found])
