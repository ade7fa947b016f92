"""The task graph: mining, queries, communities of keysteps."""

from __future__ import annotations

from stepgraph.graph.communities import find_communities
from stepgraph.graph.mining import mine_graph
from stepgraph.graph.order import DIRECTIONAL_SHARE
from stepgraph.graph.shortest_paths import Matrix
from stepgraph.graph.task_graph import (
    MiningOptions,
    Relation,
    TaskGraph,
    Transition,
)
from stepgraph.graph.traces import TIMING_BINS

__all__ = [
    "DIRECTIONAL_SHARE",
    "TIMING_BINS",
    "Matrix",
    "MiningOptions",
    "Relation",
    "TaskGraph",
    "Transition",
    "find_communities",
    "mine_graph",
]
