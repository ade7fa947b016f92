"""Bidirectional search for the cheapest path between two keysteps.

Two trees of cheapest paths grow towards each other and stop as soon as no cheaper meeting is
possible; the queue has one edge a keystep, the cheapest unused (Spira, 1973).  Small graphs are
searched as the code stands and large ones compiled; both add and compare the same numbers in the
same order, so the path does not depend on which one ran.  No cost may be negative.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush, heapreplace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import coo_array, csr_array

from stepgraph.graph.compiling import compiled

Matrix: TypeAlias = "csr_array[Any, tuple[int, int]]"
"""A square matrix of keysteps by keysteps, compressed by rows."""

Column: TypeAlias = Any
"""Numbers by position: a list in plain Python, an array in compiled code."""

# From this many edges on, a query in plain Python takes 0.1 ms, and compiling is worth it.
COMPILED_FROM = 20_000


class Network(NamedTuple):
    """Edges of both directions, grouped by keystep, the cheapest first.

    Each field holds the edges along their direction and the edges against it.

    Attributes
    ----------
    first : shape (K + 1,) each
        Index of the first edge of each keystep.
    target : shape (E,) each
    cost : shape (E,) each
    """

    first: tuple[Column, Column]
    target: tuple[Column, Column]
    cost: tuple[Column, Column]

    @property
    def compiled(self) -> bool:
        """True where the graph is large enough to be worth compiling."""
        return isinstance(self.first[0], np.ndarray)


def make_network(costs: Matrix) -> Network:
    """Prepare a matrix of costs for many queries; stored zeros are edges that cost nothing."""
    against = csr_array(costs.T)
    # Transposing twice sorts the edges, and their order decides between equal costs.
    along = csr_array(against.T)
    columns = zip(_cheapest_first(along), _cheapest_first(against), strict=True)
    if costs.nnz < COMPILED_FROM:
        return Network(*((one.tolist(), other.tolist()) for one, other in columns))
    return Network(*columns)


def _cheapest_first(costs: Matrix) -> tuple[Column, Column, Column]:
    """Sort the edges of each keystep by cost, and leave loops out: no cheapest path has one."""
    source, _ = coo_array(costs).coords
    order = np.lexsort((costs.data, source))
    order = order[source[order] != costs.indices[order]]
    first = np.searchsorted(source[order], np.arange(len(costs.indptr)))
    target = costs.indices[order].astype(np.int64)
    return first, target, costs.data[order].astype(np.float64)


def cheapest_path(network: Network, start: int, end: int) -> tuple[int, ...] | None:
    """Find the cheapest path, including both ends, or None where there is none.

    Ties are resolved in the same way every time; no keystep occurs twice.

    >>> costs = csr_array(np.array([[0, 1.0, 5.0], [0, 0, 1.0], [0, 0, 0]]))
    >>> cheapest_path(make_network(costs), 0, 2)
    (0, 1, 2)
    """
    if start == end:
        return (start,)
    search = compiled(_meet) if network.compiled else _meet
    make = np.full if network.compiled else lambda size, value: [value] * size
    reached = tuple(make(len(one), math.inf) for one in network.first)
    parent = tuple(make(len(one), at) for one, at in zip(network.first, (start, end), strict=True))
    before, after = search(*network, reached, parent, (int(start), int(end)))
    if before < 0:
        return None
    found = [before]
    while found[-1] != start:
        found.append(int(parent[0][found[-1]]))
    found.reverse()
    if after != before:
        found.append(after)
    while found[-1] != end:
        found.append(int(parent[1][found[-1]]))
    return tuple(found)


def _meet(
    first: Column,
    target: Column,
    cost: Column,
    reached: Column,
    parent: Column,
    ends: tuple[int, int],
) -> tuple[int, int]:
    """Grow a tree from each end until they meet in the cheapest way.

    Returns
    -------
    tuple of int
        The last keystep on the tree from the start and the first on the tree from the end; the
        same one where the trees share it, neighbours where an edge joins them, -1 where nothing
        does.
    """
    best, before, after = math.inf, -1, -1
    start, end = ends
    out, into = first[0][start], first[1][end]
    if out == first[0][start + 1] or into == first[1][end + 1]:
        return before, after
    # Cheapest unused edge of each keystep in a tree: (cost up to its far end, edge, keystep).
    waiting = [(cost[0][out], out, start)], [(cost[1][into], into, end)]
    reached[0][start] = reached[1][end] = 0.0
    # Edges come in order of cost, so that no later meeting in a keystep is cheaper than the first.
    while waiting[0] and waiting[1] and best == math.inf:
        side = 0 if len(waiting[0]) <= len(waiting[1]) else 1
        total, edge, here = waiting[side][0]
        there = target[side][edge]
        if edge + 1 < first[side][here + 1]:
            onward = reached[side][here] + cost[side][edge + 1]
            heapreplace(waiting[side], (onward, edge + 1, here))
        else:
            heappop(waiting[side])
        if reached[side][there] < math.inf:
            continue
        reached[side][there], parent[side][there] = total, here
        if total + reached[1 - side][there] < best:
            best, before, after = total + reached[1 - side][there], there, there
        if first[side][there] < first[side][there + 1]:
            edge = first[side][there]
            heappush(waiting[side], (total + cost[side][edge], edge, there))
    # Two halves that an unused edge joins may still be cheaper.
    for _, unused, here in waiting[0]:
        for edge in range(unused, first[0][here + 1]):
            total = reached[0][here] + cost[0][edge]
            if total >= best:
                break
            there = target[0][edge]
            if total + reached[1][there] < best:
                best, before, after = total + reached[1][there], here, there
    return before, after
