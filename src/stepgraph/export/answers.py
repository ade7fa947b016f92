"""Text and JSON of answers from a graph: procedures, successors, relations and differences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import islice, pairwise
from typing import Any, NamedTuple

from stepgraph.errors import printable
from stepgraph.evaluation.order import OrderCheck
from stepgraph.export.drawing import made_of
from stepgraph.export.terminal import as_json_text, columns, percent, plural
from stepgraph.export.timeline import short_clock
from stepgraph.graph import Relation, TaskGraph
from stepgraph.graph.comparing import Deviation, Difference
from stepgraph.graph.maps import Procedure
from stepgraph.graph.order_statistics import END, Precedence
from stepgraph.graph.ties import TIED, Ties, share_a_task, ties_of


def describe_graph(graph: TaskGraph, maps: Sequence[Procedure], *, top: int, as_json: bool) -> str:
    """Describe the size of a graph, its procedures, and its strongest directional pairs."""
    pairs = directional_pairs(graph, top)
    if as_json:
        return as_json_text(
            keysteps=len(graph.vocabulary),
            tasks=len(graph.vocabulary.tasks),
            transitions=graph.counts.nnz,
            videos=len(graph.mined_on),
            directional=[_relation_json(graph, pair) for pair in pairs],
            ties=_ties_json(graph, ties_of(graph), top),
            orders=[_map_json(one) for one in maps],
        )
    names = graph.vocabulary.keysteps
    size = (
        f"{len(names)} keysteps of {len(graph.vocabulary.tasks)} tasks, {graph.counts.nnz} "
        f"transitions between them, mined from {len(graph.mined_on)} videos."
    )
    lines = [("first", "then", "there", "back")]
    lines += [(names[p.first], names[p.second], f"{p.forward}", f"{p.backward}") for p in pairs]
    found = columns(lines) if pairs else "No pair of keysteps is directional."
    orders = "".join(map(_map_table, maps[:top]))
    if maps[top:]:
        orders += f"\n… and {plural(len(maps) - top, 'more task')} (--top, --task)\n"
    directions = f"Strongest directions between neighbouring rows, within a task:\n{found}"
    return f"{size}\n{orders}\n{directions}{_describe_ties(graph, ties_of(graph))}"


def _ties_json(graph: TaskGraph, ties: Ties, top: int) -> dict[str, Any]:
    names = graph.vocabulary.keysteps
    tasks = [
        one._asdict()
        | {"ratio": one.ratio}
        | {"pairs": [[names[first], names[second], count] for first, second, count in one.pairs]}
        for one in ties.strongest(top)
    ]
    counts = {"changes": ties.changes, "across": int(ties.between.sum()), "share": ties.share}
    return counts | {"tasks": tasks}


def _describe_ties(graph: TaskGraph, ties: Ties) -> str:
    """Describe the share of transitions that join different tasks, and the most joined tasks."""
    if not ties.changes or len(ties.tasks) < 2:
        return ""
    names = graph.vocabulary.keysteps
    lines = [("most connected tasks", "", "times chance", "mostly by")]
    for one in ties.strongest(3, pairs=1):
        if one.ratio >= TIED:
            carried = " → ".join(names[keystep] for keystep in one.pairs[0][:2])
            lines.append((one.first, one.second, f"{one.ratio:.1f}", carried))
    none = f"No two tasks are connected {TIED:g} times as often as by chance."
    found = columns(lines) if lines[1:] else none
    return (
        f"\n\nTies across tasks: {_share(ties.share)} of {ties.changes:,} transitions between "
        f"different keysteps connect\nkeysteps that no task lists together. Such a transition is "
        f"probably a wrong match,\nor one step under two names.\n{found}"
    )


def _map_json(one: Procedure) -> dict[str, Any]:
    """Convert the keysteps of a task to JSON, in the order in which recognised videos do them."""
    names = one.vocabulary.keysteps
    steps = [
        step._asdict()
        | {"keystep": names[step.keystep], "optional": step.optional}
        | {
            "next": [
                arrow._asdict() | {"first": names[arrow.first], "second": _name(one, arrow.second)}
                for arrow in one.successions_from(step.keystep)[:4]
            ]
        }
        for step in one.steps
    ]
    return {"task": one.task, "videos": one.videos, "keysteps": steps}


def _map_table(one: Procedure) -> str:
    lines = [("keystep", "", "confident match in", "at", "takes", "most probably next", "")]
    for step in one.steps:
        after = one.successions_from(step.keystep)
        following = next(((_name(one, a.second), _share(a.share)) for a in after), ("", ""))
        often = "optional?" if step.optional else ""
        takes = f"{step.seconds:.0f} s" if step.seconds else "–"
        salient = f"{step.videos}" if one.videos else "–"
        name = one.vocabulary.keysteps[step.keystep]
        lines.append((name, often, salient, _share(step.position), takes, *following))
    return f"\n{printable(one.task)}, {made_of(one)}:\n{columns(lines)}\n"


def _name(one: Procedure, keystep: int) -> str:
    return "(the end)" if keystep == END else one.vocabulary.keysteps[keystep]


def directional_pairs(graph: TaskGraph, top: int) -> list[Relation]:
    """List the directional pairs of one task with the largest surplus of one direction."""
    # Both directions of a pair meet in the difference; the positive one is the surplus.
    surplus = (graph.counts - graph.counts.T).tocoo()
    # Two keysteps that no task shares give no direction: one is not of the video's task.
    shared = share_a_task(graph.vocabulary, *surplus.coords) & (surplus.data > 0)
    order = sorted(
        (-int(value), int(first), int(second))
        for first, second, value in zip(
            *(x[shared] for x in (*surplus.coords, surplus.data)), strict=True
        )
    )
    relations = (graph.relation(first, second) for _, first, second in order)
    return list(islice((one for one in relations if one.kind == "directional"), top))


def describe_next(graph: TaskGraph, keystep: int, *, top: int, as_json: bool) -> str:
    """Describe the most probable successors, in recognised videos and by transitions."""
    names = graph.vocabulary.keysteps
    every = graph.following(keystep, limit=len(names))
    changes = sum(edge.count for edge in every)
    found = [(names[e.keystep], e.count / changes, e.probability, e.count) for e in every[:top]]
    done = [
        one._asdict() | {"keystep": "(the end)" if one.keystep == END else names[one.keystep]}
        for one in (graph.statistics.successors_of(keystep, top) if graph.statistics else [])
    ]
    if as_json:
        keys = ("keystep", "proportion", "probability", "count")
        rows = [dict(zip(keys, one, strict=True)) for one in found]
        return as_json_text(keystep=names[keystep], next=rows, recognised=done)
    if not found and not done:
        return f"No keystep was seen after {names[keystep]!r}."
    lines = [("next", "proportion", "seen")]
    lines += [(name, _share(chance), f"{seen}") for name, chance, _, seen in found]
    where = f"After {names[keystep]!r}, in neighbouring rows:"
    text = f"{where}\n{columns(lines)}" if found else f"{where} none was seen."
    if done:
        table = [("next", "proportion", "90 % interval", "seen")]
        table += [(n["keystep"], _share(n["share"]), _range(n), f"{n['seen']}") for n in done]
        seen = f"After {names[keystep]!r}, in recognised videos:\n{columns(table)}"
        text = f"{seen}\n\n{text}"
    return text


def describe_path(graph: TaskGraph, first: int, second: int, *, as_json: bool) -> str:
    """Describe the most probable path between two keysteps."""
    names = graph.vocabulary.keysteps
    path = graph.path(first, second)
    if as_json:
        if path is None:
            return as_json_text(path=None, probability=None)
        cost = sum(float(graph.costs[a, b]) for a, b in pairwise(path))
        shown = [names[keystep] for keystep in path]
        return as_json_text(path=shown, probability=math.exp(-cost))
    if path is None:
        return f"No path leads from {names[first]!r} to {names[second]!r}."
    return " → ".join(printable(names[keystep]) for keystep in path)


def describe_relation(graph: TaskGraph, first: int, second: int, *, as_json: bool) -> str:
    """Describe the relation of two keysteps: precedence by task, and transitions."""
    relation = graph.relation(first, second)
    orders = graph.statistics.precedences(first, second) if graph.statistics else []
    if as_json:
        rows = [one._asdict() for one in orders]
        return as_json_text(**_relation_json(graph, relation), orders=rows)
    by_rows = _describe_relation(graph, relation)
    if not graph.statistics:
        return by_rows
    lines = [_describe_order(graph, first, second, one) for one in orders]
    return "\n".join(
        [
            *(lines or ["No task with both has a recognised video."]),
            f"In neighbouring rows: {by_rows}",
        ]
    )


def _describe_order(graph: TaskGraph, first: int, second: int, found: Precedence) -> str:
    """Describe the proportion of videos with one keystep first, for tasks that agree about it."""
    names = graph.vocabulary.keysteps
    where = ", ".join(map(printable, found.tasks[:3]))
    where += f" and {plural(len(found.tasks) - 3, 'more task')}" if found.tasks[3:] else ""
    return (
        f"{where}: {names[first]!r} is done before {names[second]!r} in {_share(found.share)} of "
        f"videos (90 % interval: {_range(found._asdict())}); recognised in this order in "
        f"{found.before:.0f}, in the other in {found.after:.0f}."
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


def describe_order(
    one: Procedure,
    places: Sequence[tuple[float, float]],
    needs: Mapping[str, Sequence[str]] | None = None,
    *,
    as_json: bool,
) -> str:
    """Describe the order of a task: range of positions and prerequisites of each keystep."""
    names, needed = one.vocabulary.keysteps, needs or {}
    if as_json:
        steps = [
            {"keystep": names[step.keystep], "earliest": low, "latest": high}
            | {"needs": [*needed.get(names[step.keystep], ())]}
            for step, (low, high) in zip(one.steps, places, strict=True)
        ]
        return as_json_text(task=one.task, videos=one.videos, order=steps)
    numbers = {names[step.keystep]: str(at) for at, step in enumerate(one.steps, 1)}
    lines = [("", "keystep", "between", "needs")]
    for (name, number), (low, high) in zip(numbers.items(), places, strict=True):
        before = [numbers[other] for other in needed.get(name, ()) if other in numbers]
        lines.append((number, name, f"{low:.0f} – {high:.0f}", ", ".join(before)))
    return f"{printable(one.task)}, {made_of(one)}:\n{columns(lines)}"


def describe_differences(found: Sequence[Difference], *, top: int, as_json: bool) -> str:
    """Describe the differences between two graphs in the given order."""
    if as_json:
        return as_json_text(differences=[one._asdict() for one in found[:top]])
    if not found:
        return "The videos of the two graphs show no significant difference."
    lines = [("task", "what", "first", "second")]
    lines += [(one.task, one.what, _share(one.first), _share(one.second)) for one in found[:top]]
    more = f"\n… and {len(found) - top} more (--top)" if found[top:] else ""
    return f"{columns(lines)}{more}"


class VideoDeviations(NamedTuple):
    """Deviations of a video from the norm of its task."""

    video: str
    task: str
    deviations: Sequence[Deviation]


def describe_deviations(videos: Sequence[VideoDeviations], *, as_json: bool) -> str:
    """Describe the deviations of videos from the norms of their tasks, one after the other."""
    if as_json:
        content = [
            one._asdict() | {"deviations": [each._asdict() for each in one.deviations]}
            for one in videos
        ]
        return as_json_text(videos=content)
    return "\n\n".join(map(_deviations_table, videos)) or "No video shows a task of the graph."


def _deviations_table(one: VideoDeviations) -> str:
    video, task = printable(one.video), printable(one.task)
    if not one.deviations:
        return f"{video} does not deviate from the norm of {task}."
    lines = [("at", "what", "why")]
    for each in one.deviations:
        lines.append(("" if each.start is None else short_clock(each.start), each.what, each.why))
    return f"{video} ({task}):\n{columns(lines)}"


def describe_check(found: Sequence[OrderCheck], *, as_json: bool) -> str:
    """Describe the agreement of a graph's order with the truth."""
    if as_json:
        content = [one._asdict() for one in found]
        defined = [{k: None if v != v else v for k, v in one.items()} for one in content]
        return as_json_text(tasks=defined[:-1], mean=defined[-1])
    head = ("", "videos", "pairs", "right direction", "next", "best possible", "covered")
    intervals = ("strongest", "precision", "before in interval", "next in interval")
    rows = [(one.task, f"{one.videos}", f"{one.pairs}", *map(percent, one[3:])) for one in found]
    return columns([(*head, *intervals), *rows])


def _relation_json(graph: TaskGraph, relation: Relation) -> dict[str, Any]:
    names = graph.vocabulary.keysteps
    return relation._asdict() | {"first": names[relation.first], "second": names[relation.second]}


def _share(share: float) -> str:
    return f"{100 * share:.0f} %"


def _range(found: dict[str, Any]) -> str:
    return f"{100 * found['low']:.0f} to {100 * found['high']:.0f} %"
