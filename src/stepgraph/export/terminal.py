"""Tables and sentences for a terminal: metrics, vocabularies, contents of a folder."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stepgraph.core import Vocabulary
from stepgraph.datasets import FoundDataset
from stepgraph.errors import printable
from stepgraph.evaluation.comparison import INTERVAL, PairedDifference
from stepgraph.evaluation.report import ALL_METRICS, METRICS, ROWS, Report
from stepgraph.problems import Problems


def metrics_table(reports: Sequence[Report]) -> str:
    """Tabulate metrics in percent, one line per decoder, with the evaluated data."""
    lines: list[tuple[str, ...]] = [
        ("", "Acc pooled", "Acc / keystep", "IoU pooled", "IoU / keystep")
    ]
    for report in reports:
        lines.append((report.decoder, *(percent(getattr(report, name)) for name in METRICS)))
    first = reports[0]
    return (
        f"{columns(lines)}\n\n"
        f"{first.videos} videos, {first.rows:,} rows, {first.keystep_rows:,} of them with a true "
        f"keystep; measured {ROWS[first.background_rows]}.\n"
        f"Graph mined on {first.graph_mined_on}."
    )


def differences_table(found: Mapping[str, PairedDifference]) -> str:
    """Differences of two methods in points, with their intervals."""
    lines: list[tuple[str, ...]] = []
    for key, one in found.items():
        if key == "edit_distance":  # a fraction, and less is better
            value, low, high = (f"{number:+.3f}" for number in one)
        else:
            value, low, high = map(points, one)
        lines.append((ALL_METRICS[key], value, f"[{low}, {high}]"))
    return columns([("", "difference in points", f"{INTERVAL:.0%} interval"), *lines])


def points(share: float) -> str:
    """Format a difference of shares in points, with a dash for nan."""
    return "–" if math.isnan(share) else f"{100 * share:+.2f}"


def plural(number: int, noun: str) -> str:
    """Format a count with its noun in singular or plural."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def percent(share: float) -> str:
    """Format a share in percent, with a dash for nan."""
    return "–" if math.isnan(share) else f"{100 * share:.1f}"


def describe_vocabulary(
    vocabulary: Vocabulary, problems: Problems, *, output: Path | None, as_json: bool
) -> str:
    """Describe the size of a vocabulary, its tasks, and the problems of its sources."""
    shared = sum(len(vocabulary.tasks_of(k)) > 1 for k in range(len(vocabulary)))
    steps = sum(len(members) for members in vocabulary.tasks.values())
    if as_json:
        return as_json_text(
            keysteps=len(vocabulary),
            tasks=len(vocabulary.tasks),
            steps=steps,
            shared_keysteps=shared,
            fingerprint=vocabulary.fingerprint,
            problems=dict(problems.counts),
        )
    lines = [
        f"{len(vocabulary):,} keysteps of {len(vocabulary.tasks):,} tasks ({steps:,} steps; "
        f"{shared:,} keysteps in several tasks), fingerprint {vocabulary.fingerprint}"
    ]
    for task, members in list(vocabulary.tasks.items())[:3]:
        names = ", ".join(printable(vocabulary.keysteps[keystep]) for keystep in members[:4])
        lines.append(f"  {printable(task)}: {names}{', …' if len(members) > 4 else ''}")
    if len(vocabulary.tasks) > 3:
        lines.append(f"  … and {len(vocabulary.tasks) - 3:,} tasks more")
    if problems:
        lines.append(f"{len(problems)} problems: {problems.summary()}")
    if output:
        lines.append(f"Saved as {output}")
    return "\n".join(lines)


def describe_survey(found: Sequence[FoundDataset]) -> str:
    """Describe the data sets in a folder: counts, and missing files, a paragraph each."""
    paragraphs = []
    for one in found:
        lines = [f"{one.name} ({one.source})"]
        held = (f"{count:,} {name.replace('_', ' ')}" for name, count in one.counts.items())
        lines.append(f"  {', '.join(held)}")
        lines += [f"  missing: {missing}" for missing in one.missing]
        paragraphs.append("\n".join(lines))
    return "\n\n".join(paragraphs)


def columns(lines: Sequence[tuple[str, ...]]) -> str:
    """Align the first columns left and those with figures right."""
    lines = [tuple(map(printable, line)) for line in lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    cells = zip(*lines[1:], strict=True)
    figures = [not any(c.isalpha() for cell in column for c in cell) for column in cells]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, figures, strict=True)
        ).rstrip()
        for line in lines
    )


def as_json_text(**content: Any) -> str:
    """Render one JSON object."""
    return json.dumps(content, ensure_ascii=False, indent=1)
