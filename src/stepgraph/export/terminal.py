"""Tables and sentences for a terminal: metrics, and what a graph says."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from stepgraph.core import Vocabulary
from stepgraph.datasets import Found
from stepgraph.decoders.tasks import tasks_of
from stepgraph.errors import printable
from stepgraph.evaluation.order import OrderCheck
from stepgraph.evaluation.report import METRICS, Report
from stepgraph.graph import Relation, TaskGraph
from stepgraph.problems import Problems


def metrics_table(reports: Sequence[Report]) -> str:
    """Metrics in percent, one line per decoder, with what they were measured on."""
    lines: list[tuple[str, ...]] = [
        ("", "Acc pooled", "Acc / keystep", "IoU pooled", "IoU / keystep")
    ]
    for report in reports:
        lines.append((report.decoder, *(_percent(getattr(report, name)) for name in METRICS)))
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
            orders=[order_of_task(graph, task) for task in recognised_tasks(graph)],
        )
    names = graph.vocabulary.keysteps
    size = (
        f"{len(names)} keysteps of {len(graph.vocabulary.tasks)} tasks, {graph.counts.nnz} "
        f"transitions between them, mined from {len(graph.mined_on)} videos."
    )
    lines = [("first", "then", "there", "back")]
    lines += [(names[p.first], names[p.second], f"{p.forward}", f"{p.backward}") for p in pairs]
    found = _columns(lines) if pairs else "No pair of keysteps has a clear direction yet."
    tasks = recognised_tasks(graph)
    orders = "".join(map(partial(_task_table, graph), tasks[:top]))
    if tasks[top:]:
        orders += f"\n… and {len(tasks) - top} tasks more (--top)\n"
    return f"{size}\n{orders}\nStrongest directions of neighbouring rows:\n{found}"


def recognised_tasks(graph: TaskGraph) -> list[str]:
    """Tasks whose order is known from recognised videos, those of most videos first."""
    videos = graph.layers.videos if graph.layers else {}
    return sorted(videos, key=lambda task: (-videos[task], task))


def order_of_task(graph: TaskGraph, task: str) -> dict[str, Any]:
    """The keysteps of a task in the order in which recognised videos do them."""
    layers, names = graph.layers, graph.vocabulary.keysteps
    assert layers is not None, "only recognised tasks are asked for"
    steps, members = [], tasks_of(graph)[task]
    for keystep in layers.order(members):
        rows, shown = int(layers.rows[keystep]), int(layers.shown[keystep])
        steps.append(
            {
                "keystep": names[keystep],
                "videos": shown,
                "rows": round(rows / shown, 1) if shown else None,
                "next": [
                    {"keystep": names[one], "count": count}
                    for one, count in layers.next_after(keystep, among=members)
                ],
            }
        )
    return {"task": task, "videos": layers.videos[task], "keysteps": steps}


def _task_table(graph: TaskGraph, task: str) -> str:
    order = order_of_task(graph, task)
    lines = [("keystep", "videos, of any task", "rows each", "most often next")]
    for step in order["keysteps"]:
        following = next(iter(step["next"]), {"keystep": ""})["keystep"]
        lines.append((step["keystep"], f"{step['videos']}", f"{step['rows'] or ''}", following))
    times = "1 video does" if order["videos"] == 1 else f"{order['videos']} videos do"
    title = f"{printable(task)}, as {times} it (recognised, not true):"
    return f"\n{title}\n{_columns(lines)}\n"


def directional_pairs(graph: TaskGraph, top: int) -> list[Relation]:
    """Directional pairs with the largest surplus of one direction over the other."""
    # Both directions of a pair meet in the difference; the positive one is the surplus.
    surplus = (graph.counts - graph.counts.T).tocoo()
    order = sorted(
        (-int(value), int(first), int(second))
        for first, second, value in zip(*surplus.coords, surplus.data, strict=True)
        if value > 0
    )
    relations = (graph.relation(first, second) for _, first, second in order)
    return list(islice((one for one in relations if one.kind == "directional"), top))


def describe_next(graph: TaskGraph, keystep: int, *, top: int, as_json: bool) -> str:
    """Most probable next keysteps; the chance is that among changes of keystep."""
    names = graph.vocabulary.keysteps
    every = graph.following(keystep, limit=len(names))
    changes = sum(edge.count for edge in every)
    found = [(names[e.keystep], e.count / changes, e.probability, e.count) for e in every[:top]]
    done = graph.layers.next_after(keystep, top) if graph.layers else []
    if as_json:
        keys = ("keystep", "chance", "probability", "count")
        return _json(
            keystep=names[keystep],
            next=[dict(zip(keys, f, strict=True)) for f in found],
            recognised=[{"keystep": names[one], "count": count} for one, count in done],
        )
    if not found and not done:
        return f"Nothing was seen to follow {names[keystep]!r}."
    lines = [("next", "chance", "seen")]
    lines += [(name, f"{100 * chance:.0f} %", f"{seen}") for name, chance, _, seen in found]
    text = f"After {names[keystep]!r}:\n{_columns(lines)}" if found else "None was seen."
    if done:
        table = _columns([("next", "seen"), *((names[one], f"{count}") for one, count in done)])
        seen = f"After {names[keystep]!r}, in recognised videos:\n{table}"
        text = f"{seen}\n\nBy neighbouring rows. {text}"
    return text


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
        layers = graph.layers
        order = None if layers is None else layers.precedence(first, second)._asdict()
        return _json(**_relation_json(graph, relation), order=order)
    return f"{_describe_relation(graph, relation)}{_describe_order(graph, first, second)}"


def _describe_order(graph: TaskGraph, first: int, second: int) -> str:
    """In how many recognised videos one comes before the other, where any was recognised."""
    if graph.layers is None:
        return ""
    names, found = graph.vocabulary.keysteps, graph.layers.precedence(first, second)
    if not found.before + found.after:
        return "\nNo recognised video shows both."
    return (
        f"\nIn {found.before} of {found.before + found.after} recognised videos that show both, "
        f"{names[first]!r} is done before {names[second]!r}: {100 * found.share:.0f} % "
        f"({100 * found.low:.0f} to {100 * found.high:.0f} %), the written order counted as "
        f"{graph.layers.imagined:.0f} videos."
    )


def _describe_relation(graph: TaskGraph, relation: Relation) -> str:
    names = graph.vocabulary.keysteps
    a, b = names[relation.first], names[relation.second]
    counts = f"{a!r} → {b!r} was seen {relation.forward} times, the reverse {relation.backward}"
    if relation.kind == "unconnected":
        return f"unconnected: {a!r} and {b!r} never follow one another."
    if relation.kind == "connected":
        return f"connected: either may come first ({counts})."
    before, after = (a, b) if relation.forward > relation.backward else (b, a)
    return f"directional: {before!r} comes before {after!r} ({counts})."


def describe_check(found: Sequence[OrderCheck], *, as_json: bool) -> str:
    """What a graph says about order, beside the truth."""
    if as_json:
        said = [one._asdict() for one in found]
        defined = [{k: None if v != v else v for k, v in one.items()} for one in said]
        return _json(tasks=defined[:-1], mean=defined[-1])
    head = ("", "videos", "clear pairs", "right", "next", "possible", "covered")
    rows = [(one.task, f"{one.videos}", f"{one.pairs}", *map(_percent, one[3:])) for one in found]
    return _columns([head, *rows])


def _percent(share: float) -> str:
    return "–" if math.isnan(share) else f"{100 * share:.1f}"


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
