"""The verbs that work on results, which recognize wrote."""

from __future__ import annotations

import argparse

from stepgraph.cli import asked
from stepgraph.export.formats import write_results
from stepgraph.export.results import read_results
from stepgraph.export.terminal import plural
from stepgraph.problems import Problems
from stepgraph.progress import track


def export(args: argparse.Namespace) -> str:
    """Write results in the formats of other programs."""
    folder = args.output or args.results
    asked.must_be_writable(folder)
    failed = Problems(strict=args.strict)
    results = track(read_results(args.results, failed), "exporting")
    written = write_results(results, folder, args.format, failed)
    text = f"{plural(len(written), 'file')} written to {folder}"
    answer = asked.say(args, text, folder=str(folder), files=[str(path) for path in written])
    return asked.finish(answer, args, failed)
