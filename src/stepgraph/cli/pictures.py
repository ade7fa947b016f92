"""The verbs that hand a graph on: as a picture, or as a file for another program."""

from __future__ import annotations

import argparse
from difflib import get_close_matches

from stepgraph.cli.asked import must_be_writable
from stepgraph.errors import ConfigError, DataError, quoted
from stepgraph.export.drawing import draw_heat, draw_next, draw_task, made_of, task_maps
from stepgraph.export.exchange import write_network
from stepgraph.export.svg import write_picture
from stepgraph.export.terminal import plural
from stepgraph.graph.maps import TaskMap
from stepgraph.graph.saving import load_graph


def graph_draw(args: argparse.Namespace) -> str:
    """Draw how a task is done (the one of most videos), what comes next, or who shares what."""
    must_be_writable(args.output.parent, args.output)
    graph = load_graph(args.graph)
    maps = task_maps(graph)
    if args.heat:
        write_picture(draw_heat(maps), args.output)
        return f"{args.output}: which of {len(maps)} tasks uses which keystep"
    if args.next:
        keystep = graph.vocabulary.index(args.next)
        having = [one for one in maps if keystep in {step.keystep for step in one.steps}]
        if not having:
            raise DataError(f"keystep {quoted(args.next)} must follow or lead somewhere, got none")
        write_picture(draw_next(having, keystep), args.output)
        return f"{args.output}: what comes next after {quoted(args.next)}"
    found = find_task(maps, args.task) if args.task else maps[0]
    write_picture(draw_task(found), args.output)
    others = (
        f"; {plural(len(maps) - 1, 'other task')}: --task" if maps[1:] and not args.task else ""
    )
    return f"{args.output}: {quoted(found.task)}, {made_of(found)}{others}"


def graph_export(args: argparse.Namespace) -> str:
    """Write how tasks are done as a file for Gephi, Graphviz, networkx or a spreadsheet."""
    must_be_writable(args.output.parent, args.output)
    graph = load_graph(args.graph)
    maps = task_maps(graph)
    chosen = [find_task(maps, args.task)] if args.task else maps
    files = write_network(graph, chosen, args.output, args.format)
    arrows = sum(len(found.arrows) for found in chosen)
    return (
        f"{', '.join(map(str, files))}: {plural(len(chosen), 'task')}, {plural(arrows, 'arrow')}"
    )


def find_task(maps: list[TaskMap], name: str) -> TaskMap:
    """The map of a task by its name; an unknown one is answered with the nearest."""
    known = {found.task: found for found in maps}
    if name not in known:
        near = get_close_matches(name[:200], known, n=3, cutoff=0.4) or list(known)[:3]
        raise ConfigError(
            f"a task must be one of the {len(known)} of the graph, got {quoted(name)}; "
            f"did you mean {' or '.join(map(quoted, near))}?"
        )
    return known[name]
