"""Verbs that answer questions about a graph, a vocabulary or a folder of data."""

from __future__ import annotations

import argparse
import json
import warnings
from functools import reduce
from typing import Any

from stepgraph.cli.arguments import list_fields, must_be_writable, render
from stepgraph.cli.maps import find_task
from stepgraph.datasets import build_vocabulary, survey
from stepgraph.decoders import DECODERS
from stepgraph.encoders import KINDS, EncoderOptions, open_kind
from stepgraph.errors import ConfigError
from stepgraph.export import answers, terminal
from stepgraph.export.drawing import task_maps
from stepgraph.graph import TaskGraph
from stepgraph.graph.saving import load_graph, save_graph
from stepgraph.problems import Problems
from stepgraph.vocabulary import add_noise
from stepgraph.vocabulary.lists import save_vocabulary


def graph_show(args: argparse.Namespace) -> str:
    """Print the size of a graph, how each task is done, and its strongest directional pairs.

    The table of a task has a line for each keystep: "confident match in" (the number of
    videos in which its best score is in the top tenth), "at" (its place in them), "takes" (its
    length), and its most probable successor.
    """
    graph = load_graph(args.graph)
    maps = [one for one in task_maps(graph) if one.videos and one.videos >= args.min_videos]
    if args.task:
        maps = [find_task(task_maps(graph), args.task)]
    return answers.describe_graph(graph, maps, top=args.top, as_json=args.json)


def graph_next(args: argparse.Namespace) -> str:
    """Print the most probable successors of a keystep."""
    graph = load_graph(args.graph)
    keystep = graph.vocabulary.index(args.keystep)
    return answers.describe_next(graph, keystep, top=args.top, as_json=args.json)


def graph_path(args: argparse.Namespace) -> str:
    """Print the most probable path of transitions from one keystep to another."""
    graph = load_graph(args.graph)
    first, second = graph.vocabulary.index(args.first), graph.vocabulary.index(args.second)
    return answers.describe_path(graph, first, second, as_json=args.json)


def graph_relation(args: argparse.Namespace) -> str:
    """Print how often one keystep is done before another, and the transitions between them."""
    graph = load_graph(args.graph)
    first, second = graph.vocabulary.index(args.first), graph.vocabulary.index(args.second)
    return answers.describe_relation(graph, first, second, as_json=args.json)


def graph_merge(args: argparse.Namespace) -> str:
    """Merge graphs that were mined from different videos with one vocabulary."""
    must_be_writable(args.output.parent)
    graphs = [load_graph(path) for path in args.graphs]
    bare = [f"{p}" for p, graph in zip(args.graphs, graphs, strict=True) if not graph.traces]
    if bare and len(bare) < len(graphs):
        # Shown as one line by the command line.
        warnings.warn(
            f"{', '.join(bare[:5])}: holds no recognised videos, like all graphs of release 0.1; "
            f"so the merged graph holds none",
            stacklevel=2,
        )
    merged = reduce(TaskGraph.merge, graphs)
    save_graph(merged, args.output)
    return (
        f"{args.output}: {len(args.graphs)} graphs, {merged.counts.nnz} transitions, "
        f"mined from {len(merged.mined_on)} videos"
    )


def vocabulary(args: argparse.Namespace) -> str:
    """Build a vocabulary, the list of all keysteps with their tasks, and print its size."""
    if args.output:
        must_be_writable(args.output.parent)
    problems = Problems(strict=args.strict)
    built = build_vocabulary(
        args.source,
        articles=args.articles,
        min_videos=args.min_videos,
        max_steps=args.max_steps,
        problems=problems,
    )
    if args.noise:
        if args.noise_from is None:
            raise ConfigError(
                "--noise requires --noise-from; pass a source, such as --noise-from articles:PATH"
            )
        others = build_vocabulary(args.noise_from)
        built = add_noise(built, others, factor=args.noise, seed=args.seed)
    if args.output:
        save_vocabulary(built, args.output)
    return terminal.describe_vocabulary(built, problems, output=args.output, as_json=args.json)


def datasets(args: argparse.Namespace) -> str:
    """List the data sets in a folder, their content, and missing files."""
    found = survey(args.folder)
    if args.json:
        return json.dumps([one._asdict() for one in found], ensure_ascii=False, indent=1)
    return terminal.describe_survey(found)


def decoders(args: argparse.Namespace) -> str:
    """List the decoders, with their options and defaults."""
    found: list[dict[str, Any]] = [
        {"name": name, "about": _first_line(kind), "options": list_fields(kind)}
        for name, kind in DECODERS.items()
    ]
    if args.json:
        return json.dumps(found, ensure_ascii=False, indent=1)
    blocks = [f"{one['name']}\n  {one['about']}\n{_options(one['options'])}" for one in found]
    return "\n".join([*blocks, "module:Class\n  A decoder of your own: see docs/extending.md."])


def encoders(args: argparse.Namespace) -> str:
    """List the kinds of encoders, and the options that they share."""
    found = [{"name": f"{kind}:", "about": _first_line(open_kind(kind))} for kind in KINDS]
    options = list_fields(EncoderOptions)
    lines = [f"{one['name']}MODEL\n  {one['about']}" for one in found]
    own = "module:function\n  A function of your own that makes one: see docs/extending.md."
    text = "\n".join([*lines, own, "\nOptions that they share:", _options(options)])
    return render(args, text, encoders=found, options=options)


def _first_line(thing: Any) -> str:
    return (thing.__doc__ or "").strip().split("\n")[0].replace("``", "")


def _options(options: list[dict[str, Any]]) -> str:
    """Format one line for each option: name, default, description."""
    return "".join(
        f"    {one['name']}={one['default']}  {one['about']} ({one['type']})\n" for one in options
    )
