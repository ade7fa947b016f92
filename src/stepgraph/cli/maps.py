"""Verbs for procedures: order, deviations, comparison, pictures and files."""

from __future__ import annotations

import argparse
from difflib import get_close_matches
from pathlib import Path

from stepgraph.assistant.orders import needs_of
from stepgraph.cli.arguments import must_be_writable
from stepgraph.core import Labels, require_same_vocabulary
from stepgraph.datasets import open_source
from stepgraph.errors import ConfigError, DataError, quoted
from stepgraph.evaluation.order import check_order
from stepgraph.export import answers
from stepgraph.export.drawing import draw_heat, draw_next, draw_task, made_of, task_maps
from stepgraph.export.exchange import write_network
from stepgraph.export.svg import write_picture
from stepgraph.export.terminal import plural
from stepgraph.export.transitions import draw_circle, draw_transitions
from stepgraph.graph import TaskGraph
from stepgraph.graph.comparing import Norm, compare, deviations, norm_of
from stepgraph.graph.maps import Procedure, procedure_of
from stepgraph.graph.order_statistics import TaskStatistics
from stepgraph.graph.saving import load_graph
from stepgraph.pipeline import recognize_all


def graph_order(args: argparse.Namespace) -> str:
    """Print the keysteps of a task in the order in which they are done, with intervals."""
    graph = load_graph(args.graph)
    statistics = _statistics(graph, args.graph)
    found = find_task([one for one in task_maps(graph) if one.videos], args.task)
    places = statistics.of_task(found.task).position_ranges()
    return answers.describe_order(
        found,
        [places[step.keystep] for step in found.steps],
        needs_of(graph, found.task),
        as_json=args.json,
    )


def graph_compare(args: argparse.Namespace) -> str:
    """Print the differences between the videos of two graphs."""
    first, second = (_statistics(load_graph(path), path) for path in (args.first, args.second))
    if not first.videos.keys() & second.videos.keys():
        raise ConfigError(
            f"{args.second}: must hold recognised videos of a task of {args.first}, got none; "
            f"were both mined with the same headings?"
        )
    return answers.describe_differences(compare(first, second), top=args.top, as_json=args.json)


def graph_video(args: argparse.Namespace) -> str:
    """Print deviations of videos from the norm: missing, repeated and unusually ordered steps."""
    graph = load_graph(args.graph)
    statistics, source = _statistics(graph, args.graph), open_source(args.source)
    videos, norm = [], dict[str, Norm]()
    for timeline in recognize_all(source.videos, graph):
        task = next(iter(timeline.labels.tasks or {}), "")
        if task not in statistics.videos:
            continue
        if task not in norm:
            norm[task] = norm_of(statistics, procedure_of(graph, task))
        found = deviations(norm[task], timeline.labels.segments())
        videos.append(answers.VideoDeviations(timeline.video.id, task, found))
    return answers.describe_deviations(videos, as_json=args.json)


def graph_check(args: argparse.Namespace) -> str:
    """Compare the order that a graph estimates with the truth of a source, task by task.

    "pairs" have one order in three quarters of the videos; "right direction" is the proportion
    that the graph orders alike.  "next" is how often its most probable successor is the true one
    ("best possible": the upper bound), "covered" how often one of its best four is.  "strongest"
    and "precision" rate its most probable transitions; "in interval" is the proportion of true
    values in its 90 % intervals.  All but counts are percentages.
    """
    graph = load_graph(args.graph)
    statistics = _statistics(graph, args.graph)
    dataset = open_source(args.source, vocabulary=graph.vocabulary)
    truth: dict[str, list[Labels]] = {}
    for video in dataset.videos:
        if video.id in dataset.truth:
            labels = dataset.truth[video.id]
            require_same_vocabulary(labels.vocabulary, graph.vocabulary, "truth and graph")
            truth.setdefault(video.task or "no task", []).append(labels)
    if not truth.keys() & statistics.videos.keys():
        raise DataError(f"{dataset.name}: must have a truth of a task of the graph, got none")
    return answers.describe_check(
        check_order(statistics, truth, least=args.least), as_json=args.json
    )


def _statistics(graph: TaskGraph, path: Path) -> TaskStatistics:
    """Return the order statistics of a graph, or raise an error where it has none."""
    if graph.statistics is None:
        raise ConfigError(
            f"{path}: must hold recognised videos for this question, got none; mine it again "
            f"from narration, with this version of stepgraph"
        )
    return graph.statistics


def graph_draw(args: argparse.Namespace) -> str:
    """Draw a task (by default that of most videos), successors, transitions, or a heat map."""
    must_be_writable(args.output.parent, args.output)
    graph = load_graph(args.graph)
    if args.top is not None and args.keysteps is None:
        raise ConfigError("--top requires --keysteps; remove it")
    if args.transitions:
        write_picture(draw_transitions(graph), args.output)
        return f"{args.output}: transitions between keysteps"
    if args.keysteps is not None:
        top = 5 if args.top is None else args.top
        write_picture(draw_circle(graph, args.keysteps, top), args.output)
        return f"{args.output}: the keysteps with most transitions"
    maps = task_maps(graph)
    if args.heat:
        write_picture(draw_heat(maps), args.output)
        return f"{args.output}: heat map of the keysteps of {len(maps)} tasks"
    if args.next:
        keystep = graph.vocabulary.index(args.next)
        having = [one for one in maps if keystep in {step.keystep for step in one.steps}]
        if not having:
            raise DataError(f"keystep {quoted(args.next)} must have a transition, got none")
        write_picture(draw_next(having, keystep), args.output)
        return f"{args.output}: successors of {quoted(args.next)}"
    found = find_task(maps, args.task) if args.task else maps[0]
    write_picture(draw_task(found), args.output)
    others = (
        f"; {plural(len(maps) - 1, 'other task')}: --task" if maps[1:] and not args.task else ""
    )
    return f"{args.output}: {quoted(found.task)}, {made_of(found)}{others}"


def graph_export(args: argparse.Namespace) -> str:
    """Write procedures as a file for Gephi, Graphviz, networkx or a spreadsheet."""
    must_be_writable(args.output.parent, args.output)
    graph = load_graph(args.graph)
    maps = task_maps(graph)
    chosen = [find_task(maps, args.task)] if args.task else maps
    files = write_network(graph, chosen, args.output, args.format)
    arrows = sum(len(found.successions) for found in chosen)
    return (
        f"{', '.join(map(str, files))}: {plural(len(chosen), 'task')}, {plural(arrows, 'arrow')}"
    )


def find_task(maps: list[Procedure], name: str) -> Procedure:
    """Return the procedure of a task by name; the error for an unknown name lists the nearest."""
    listed = {found.task: found for found in maps}
    if name not in listed:
        near = get_close_matches(name[:200], listed, n=3, cutoff=0.4) or list(listed)[:3]
        raise ConfigError(
            f"task must be one of the {len(listed)} of the graph, got {quoted(name)}; "
            f"did you mean {' or '.join(map(quoted, near))}?"
        )
    return listed[name]
