"""Verbs of the assistant: the next step, missing steps, mistakes, and plans."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from difflib import get_close_matches

from stepgraph.assistant import open_executions
from stepgraph.assistant.answers import Assistant, AssistantAnswer
from stepgraph.cli.arguments import render
from stepgraph.errors import printable


def ask_next(args: argparse.Namespace) -> str:
    """Print the most probable successors of the steps done so far."""
    assistant = _open(args)
    done = _listed(assistant, _done(args))
    return _render(args, assistant.next(done, task=args.task, top=args.top), "no step follows")


def ask_missing(args: argparse.Namespace) -> str:
    """Print steps that should be done by now and are not, with their support."""
    assistant = _open(args)
    done = _listed(assistant, _done(args))
    found = assistant.missing(done, task=args.task, threshold=args.threshold)
    return _render(args, found, "nothing is missing")


def ask_mistakes(args: argparse.Namespace) -> str:
    """Print steps that are early, repeated or unknown, with their support."""
    found = _open(args).mistakes(_done(args), task=args.task, threshold=args.threshold)
    return _render(args, found, "no mistake")


def plan(args: argparse.Namespace) -> str:
    """Plan ways from one keystep to another, shortest or with a given number of steps."""
    found = _open(args).plans(
        args.first, args.second, steps=args.steps, task=args.task, top=args.top
    )
    lines = [f"{one.probability:.2f}  {' → '.join(map(printable, names))}" for names, one in found]
    plans = [
        {"keysteps": names, "probability": one.probability, "task": one.task}
        for names, one in found
    ]
    return render(args, "\n".join(lines) or "no plan found", plans=plans)


def _open(args: argparse.Namespace) -> Assistant:
    return Assistant(open_executions(args.source).done)


def _done(args: argparse.Namespace) -> list[str]:
    if args.done == ["-"]:
        return [line.strip() for line in sys.stdin if line.strip()]
    return list(args.done)


def _listed(assistant: Assistant, done: Sequence[str]) -> list[str]:
    """Return the steps that occur in executions; warn of the others."""
    listed = {*assistant.names.keysteps}
    for step in dict.fromkeys(one for one in done if one not in listed):
        near = "".join(f"; the nearest is {one!r}" for one in get_close_matches(step, listed, 1))
        what = printable(f"{step!r} must be a step of the executions, so it is ignored{near}")
        print(f"stepgraph: warning: {what}", file=sys.stderr)
    return [one for one in done if one in listed]


def _render(args: argparse.Namespace, found: Sequence[AssistantAnswer], nothing: str) -> str:
    lines = [
        f"{one.score:.2f}  {one.kind}: {printable(one.step)}"
        + (f"  ({printable(one.why)})" if one.why else "")
        for one in found
    ]
    return render(args, "\n".join(lines) or nothing, answers=[one._asdict() for one in found])
