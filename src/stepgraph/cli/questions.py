"""The verbs that answer questions: of a graph, of a vocabulary, of a folder of data."""

from __future__ import annotations

import argparse
import json
from functools import reduce

from stepgraph.cli.verbs import must_be_writable
from stepgraph.problems import Problems


def graph_show(args: argparse.Namespace) -> str:
    """Print what a graph holds: its size and its strongest directional pairs."""
    from stepgraph import files
    from stepgraph.export.tables import describe_graph

    return describe_graph(files.load(args.graph), top=args.top, as_json=args.json)


def graph_next(args: argparse.Namespace) -> str:
    """Print which keysteps most probably follow one."""
    from stepgraph import files
    from stepgraph.export.tables import describe_next

    graph = files.load(args.graph)
    keystep = graph.vocabulary.index(args.keystep)
    return describe_next(graph, keystep, top=args.top, as_json=args.json)


def graph_path(args: argparse.Namespace) -> str:
    """Print the most probable path between two keysteps."""
    from stepgraph import files
    from stepgraph.export.tables import describe_path

    graph = files.load(args.graph)
    first, second = graph.vocabulary.index(args.first), graph.vocabulary.index(args.second)
    return describe_path(graph, first, second, as_json=args.json)


def graph_relation(args: argparse.Namespace) -> str:
    """Print how two keysteps relate."""
    from stepgraph import files
    from stepgraph.export.tables import describe_relation

    graph = files.load(args.graph)
    first, second = graph.vocabulary.index(args.first), graph.vocabulary.index(args.second)
    return describe_relation(graph, first, second, as_json=args.json)


def graph_merge(args: argparse.Namespace) -> str:
    """Add up graphs that were mined from different videos with one vocabulary."""
    from stepgraph import files
    from stepgraph.graph import TaskGraph

    must_be_writable(args.output.parent)
    merged = reduce(TaskGraph.merge, map(files.load, args.graphs))
    files.save(merged, args.output)
    return (
        f"{args.output}: {len(args.graphs)} graphs, {merged.counts.nnz} transitions, "
        f"mined from {len(merged.mined_on)} videos"
    )


def vocabulary(args: argparse.Namespace) -> str:
    """Build a vocabulary, show it, and save it."""
    from stepgraph import files
    from stepgraph.export.tables import describe_vocabulary
    from stepgraph.sourcing import add_noise_from, source_vocabulary

    if args.output:
        must_be_writable(args.output.parent)
    problems = Problems(strict=args.strict)
    built = source_vocabulary(
        args.source,
        articles=args.articles,
        min_videos=args.min_videos,
        max_steps=args.max_steps,
        problems=problems,
    )
    if args.noise:
        built = add_noise_from(built, args.noise_from, factor=args.noise, seed=args.seed)
    if args.output:
        files.save_vocabulary(built, args.output)
    return describe_vocabulary(built, problems, output=args.output, as_json=args.json)


def datasets(args: argparse.Namespace) -> str:
    """Say which data sets lie in a folder, what they hold, and what is missing."""
    from stepgraph.datasets.survey import survey
    from stepgraph.export.tables import describe_survey

    found = survey(args.folder)
    if args.json:
        return json.dumps([one.to_json() for one in found], ensure_ascii=False, indent=1)
    return describe_survey(found)
