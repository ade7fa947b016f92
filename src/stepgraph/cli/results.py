"""Verbs that work on the results of recognize."""

from __future__ import annotations

import argparse
import sys
import webbrowser
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from stepgraph.cli import arguments
from stepgraph.errors import DataError, one_line, quoted
from stepgraph.export.annotations import AnnotatedSegment, read_annotations
from stepgraph.export.corrections import AnnotatedStep, read_corrections, to_truth
from stepgraph.export.formats import write_results
from stepgraph.export.maps import load_maps
from stepgraph.export.results import read_results
from stepgraph.export.terminal import plural
from stepgraph.export.timeline import on_one_line, short_clock
from stepgraph.files.disk import write_text
from stepgraph.problems import Problems
from stepgraph.progress import track
from stepgraph.viewer.pages import write_site
from stepgraph.viewer.searching import Index, SearchHit
from stepgraph.viewer.server import Server, Shown


def export(args: argparse.Namespace) -> str:
    """Write results in the formats of other programs."""
    folder = args.output or args.results
    arguments.must_be_writable(folder)
    failed = Problems(strict=args.strict)
    results = track(read_results(args.results, failed), "exporting")
    written = write_results(results, folder, args.format, failed)
    text = f"{plural(len(written), 'file')} written to {folder}"
    answer = arguments.render(
        args, text, folder=str(folder), files=[str(path) for path in written]
    )
    return arguments.conclude(answer, args, failed)


def view(args: argparse.Namespace) -> str:
    """Watch, search and correct results in a browser.

    A correction is saved beside its result, as VIDEO.corrected.json; the result stays as it is.
    Run stepgraph recognize again to recognise the other rows around the corrections.
    """
    failed = Problems(strict=args.strict)
    if args.export is not None:
        results = track(read_results(args.results, failed), "reading")
        page = write_site(results, args.export, load_maps(args.results), youtube=args.youtube)
        return arguments.conclude(f"Open {page} in a browser.", args, failed)
    shown = Shown(args.results, failed, youtube=args.youtube)
    return arguments.conclude(show_page(shown, args.port, browser=args.open), args, failed)


def serve(folder: Path, problems: Problems) -> str:
    """Show results that were just made."""
    return show_page(Shown(folder, problems))


def show_page(shown: Shown, port: int = 0, *, browser: bool = True) -> str:
    """Serve the page of results until it is stopped, and show it in a browser."""
    if shown.problems:
        print(f"stepgraph: warning: {one_line(shown.problems.summary())}", file=sys.stderr)
    with Server(shown, port) as server:
        print(f"{server.address}\nOnly this computer can see it. Stop it with Ctrl+C.", flush=True)
        if browser:
            webbrowser.open(server.address)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    return "stopped"


def truth(args: argparse.Namespace) -> str:
    """Write corrections, and annotations of other programs, as a truth for stepgraph evaluate."""
    arguments.must_be_new(args)
    steps: list[AnnotatedStep] = []
    for path in args.files:
        if path.is_dir():
            corrected = (result for result in read_results(path) if result.corrected)
            steps += [
                AnnotatedStep(result.video.id, one.start, one.end, one.keystep)
                for result in corrected
                for one in result
            ]
        else:
            steps += read_corrections(path)
    if not steps:
        raise DataError(
            f"{quoted(', '.join(map(str, args.files)))}: must hold steps that a person corrected "
            f"or annotated, got none; correct some in stepgraph view or another program "
            f"(predictions are not a truth)"
        )
    write_text(args.output, to_truth(steps))
    videos = len({step.video for step in steps})
    text = f"{args.output}: {plural(len(steps), 'step')} of {plural(videos, 'video')}"
    return arguments.render(args, text, truth=str(args.output), steps=len(steps), videos=videos)


def annotations_in(
    given: Path | None, problems: Problems, default: Path | None = None
) -> dict[str, tuple[AnnotatedSegment, ...]]:
    """Read annotation from results; a folder that the user names must hold some."""
    folder = given or default
    if folder is None:
        return {}
    found = read_annotations(folder, problems)
    if given is not None and not found and not problems:
        raise DataError(
            f"{given}: must hold corrected results, got none; "
            f"correct some with: stepgraph view {given}"
        )
    return found


def search(args: argparse.Namespace) -> str:
    """Find the sentences in results that match a question."""
    failed = Problems(strict=args.strict)
    index = Index(args.results, failed)
    hits = index.search(" ".join(args.question), args.top)
    text = "\n".join(map(_hit, hits)) or "no result has a transcript to search"
    found = [asdict(one) for one in hits]
    answer = arguments.render(args, text, sentences=len(index), hits=found)
    return arguments.conclude(answer, args, failed)


def _hit(hit: SearchHit) -> str:
    done = f"  [{on_one_line(hit.keystep)}]" if hit.keystep else ""
    text = on_one_line(hit.text)
    return f"{hit.score:.2f}  {hit.video} {short_clock(hit.start)}{done}  {text}"
