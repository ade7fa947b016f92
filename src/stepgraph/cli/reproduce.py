"""The verb that measures the paper's tables."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from stepgraph.cli.verbs import must_be_writable, open_dataset, warn_of_problems

if TYPE_CHECKING:
    from stepgraph.core import Dataset, Scores


def reproduce(args: argparse.Namespace) -> str:
    """Measure a table of the paper on any source with truth, beside what the paper prints."""
    from stepgraph import files
    from stepgraph.encoders import EncoderOptions, load_encoder
    from stepgraph.experiments import run_table
    from stepgraph.sourcing import source_vocabulary

    if args.output:
        must_be_writable(args.output)
    dataset = open_dataset(args)
    options = EncoderOptions(args.encoder, args.context, args.task_names)
    table = run_table(
        args.table,
        dataset,
        encoder=load_encoder(options),
        state=args.output / f"{args.table}.state.json" if args.output else None,
        seed=args.seed,
        threshold=args.threshold,
        split=args.split,
        graph=files.load(args.graph) if args.graph else None,
        noise=source_vocabulary(args.noise_from) if args.noise_from else None,
        scores=_video_scores(args.video_scores, dataset),
        video_threshold=args.video_threshold,
    )
    warn_of_problems(dataset)
    if args.output:
        _write(table.to_markdown(), args.output / f"{args.table}.md")
        _write(table.to_json(), args.output / f"{args.table}.json")
    shown = {"text": table.to_text, "markdown": table.to_markdown, "json": table.to_json}
    return shown[args.format]()


def _video_scores(folder: Path | None, dataset: Dataset) -> dict[str, list[Scores]]:
    from stepgraph.stored import read_scores

    if folder is None or dataset.vocabulary is None:
        return {}
    problems = dataset.problems
    return {
        "video": list(read_scores(dataset.videos, dataset.vocabulary, folder, problems=problems))
    }


def _write(text: str, path: Path) -> None:
    from stepgraph.disk import write_text

    write_text(path, text.rstrip("\n") + "\n")
