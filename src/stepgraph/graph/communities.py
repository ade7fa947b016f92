"""Communities of keysteps, found from the transitions between them."""

from __future__ import annotations

from typing import Any

from stepgraph.graph.shortest_paths import Matrix


def find_communities(counts: Matrix) -> list[list[int]]:
    """Divide the positions of a matrix of counts into communities, the largest first.

    Greedy modularity (Clauset, Newman and Moore 2004) of the transitions of both directions
    together; the diagonal does not count.  A position without any transition is in none.
    """
    from networkx import Graph
    from networkx.algorithms.community import greedy_modularity_communities

    both_ways = (counts + counts.T).tocoo()
    network: Any = Graph()
    for first, second, count in zip(*both_ways.coords, both_ways.data, strict=True):
        if first < second:
            network.add_edge(int(first), int(second), weight=int(count))
    found = greedy_modularity_communities(network, weight="weight") if network else []
    return sorted(map(sorted, found), key=lambda community: (-len(community), community))
