"""Tables and sentences for a terminal: metrics, and what a graph says."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from stepgraph.core import Vocabulary
from stepgraph.datasets import Found
from stepgraph.errors import printable
from stepgraph.evaluation.report import METRICS, Report
from stepgraph.graph import Relation, TaskGraph
from stepgraph.problems import Problems


def metrics_table(reports: Sequence[Report]) -> str:
    """Metrics in percent, one line per decoder, with what they were measured on."""
    lines: list[tuple[str, ...]] = [
        ("", "Acc pooled", "Acc / keystep", "IoU pooled", "IoU / keystep")
    ]
    for report in reports:
        values = (getattr(report, name) for name in METRICS)
        shown = ("–" if math.isnan(value) else f"{100 * value:.1f}" for value in values)
        lines.append((report.decoder, *shown))
    first = reports[0]
    return (
        f"{_columns(lines)}\n\n"
        f"{first.videos} videos, {first.rows:,} rows, {first.keystep_rows:,} of them with a true "
        f"keystep.\nGraph mined on {first.graph_mined_on}."
    )


def describe_graph(graph: TaskGraph, *, top: int, as_json: bool) -> str:
    """Size of a graph and its strongest directional pairs."""
    pairs = directional_pairs(graph, top)
    if as_json:
        return _json(
            keysteps=len(graph.vocabulary),
            tasks=len(graph.vocabulary.tasks),
            transitions=graph.counts.nnz,
            videos=len(graph.mined_on),
            directional=[_relation_json(graph, pair) for pair in pairs],
        )
    names = graph.vocabulary.keysteps
    size = (
        f"{len(names)} keysteps of {len(graph.vocabulary.tasks)} tasks, {graph.counts.nnz} "
        f"transitions between them, mined from {len(graph.mined_on)} videos."
    )
    lines = [("first", "then", "there", "back")]
    lines += [(names[p.first], names[p.second], f"{p.forward}", f"{p.backward}") for p in pairs]
    found = _columns(lines) if pairs else "No pair of keysteps has a clear direction yet."
    return f"{size}\n\nStrongest directions:\n{found}"


def directional_pairs(graph: TaskGraph, top: int) -> list[Relation]:
    """Directional pairs with the largest surplus of one direction over the other."""
    # Both directions of a pair meet in the difference; the positive one is the surplus.
    surplus = (graph.counts - graph.counts.T).tocoo()
    order = sorted(
        (-int(value), int(first), int(second))
        for first, second, value in zip(*surplus.coords, surplus.data, strict=True)
        if value > 0
    )
    found: list[Relation] = []
    for _, first, second in order:
        if len(found) == top:
            break
        relation = graph.relation(first, second)
        if relation.kind == "directional":
            found.append(relation)
    return found


def describe_next(graph: TaskGraph, keystep: int, *, top: int, as_json: bool) -> str:
    """Most probable next keysteps; the chance is that among changes of keystep."""
    names = graph.vocabulary.keysteps
    every = graph.following(keystep, limit=len(names))
    changes = sum(edge.count for edge in every)
    found = [(names[e.keystep], e.count / changes, e.probability, e.count) for e in every[:top]]
    if as_json:
        keys = ("keystep", "chance", "probability", "count")
        return _json(keystep=names[keystep], next=[dict(zip(keys, f, strict=True)) for f in found])
    if not found:
        return f"Nothing was seen to follow {names[keystep]!r}."
    lines = [("next", "chance", "seen")]
    lines += [(name, f"{100 * chance:.0f} %", f"{seen}") for name, chance, _, seen in found]
    return f"After {names[keystep]!r}:\n{_columns(lines)}"


def describe_path(graph: TaskGraph, first: int, second: int, *, as_json: bool) -> str:
    """Most probable path between two keysteps."""
    names = graph.vocabulary.keysteps
    path = graph.path(first, second)
    if as_json:
        if path is None:
            return _json(path=None, probability=None)
        cost = sum(float(graph.costs[a, b]) for a, b in pairwise(path))
        return _json(path=[names[keystep] for keystep in path], probability=math.exp(-cost))
    if path is None:
        return f"No path leads from {names[first]!r} to {names[second]!r}."
    return " → ".join(printable(names[keystep]) for keystep in path)


def describe_relation(graph: TaskGraph, first: int, second: int, *, as_json: bool) -> str:
    """How two keysteps relate, in a sentence."""
    relation = graph.relation(first, second)
    if as_json:
        return _json(**_relation_json(graph, relation))
    names = graph.vocabulary.keysteps
    a, b = names[first], names[second]
    counts = f"{a!r} → {b!r} was seen {relation.forward} times, the reverse {relation.backward}"
    if relation.kind == "unconnected":
        return f"unconnected: {a!r} and {b!r} never follow one another."
    if relation.kind == "connected":
        return f"connected: either may come first ({counts})."
    before, after = (a, b) if relation.forward > relation.backward else (b, a)
    return f"directional: {before!r} comes before {after!r} ({counts})."


def describe_vocabulary(
    vocabulary: Vocabulary, problems: Problems, *, output: Path | None, as_json: bool
) -> str:
    """Size of a vocabulary, its tasks, and what was wrong in its sources."""
    shared = sum(len(vocabulary.tasks_of(k)) > 1 for k in range(len(vocabulary)))
    steps = sum(len(members) for members in vocabulary.tasks.values())
    if as_json:
        return _json(
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


def describe_survey(found: Sequence[Found]) -> str:
    """What lies in a folder: counts, and what is missing, a paragraph each."""
    paragraphs = []
    for one in found:
        lines = [f"{one.name} ({one.source})"]
        held = (f"{count:,} {name.replace('_', ' ')}" for name, count in one.counts.items())
        lines.append(f"  {', '.join(held)}")
        lines += [f"  missing: {missing}" for missing in one.missing]
        paragraphs.append("\n".join(lines))
    return "\n\n".join(paragraphs)


def _relation_json(graph: TaskGraph, relation: Relation) -> dict[str, Any]:
    names = graph.vocabulary.keysteps
    return relation._asdict() | {"first": names[relation.first], "second": names[relation.second]}


def _columns(lines: Sequence[tuple[str, ...]]) -> str:
    """Align the first columns left and those with figures right."""
    lines = [tuple(map(printable, line)) for line in lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    columns = zip(*lines[1:], strict=True)
    figures = [not any(c.isalpha() for cell in column for c in cell) for column in columns]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, figures, strict=True)
        ).rstrip()
        for line in lines
    )


def _json(**content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, indent=1)
