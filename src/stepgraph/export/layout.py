"""Where the keysteps of a task graph lie in its picture.

Each task, or community where there are no tasks, becomes one panel: keysteps are put in the
order that the mined transitions prefer, then in layers from top to bottom; crossings are
reduced by barycentres and long edges are led around what lies between (Sugiyama's method).
All of it is deterministic, and nothing here knows how the picture is written.
"""

from __future__ import annotations

import math
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from stepgraph.graph import TaskGraph, find_communities
from stepgraph.graph.order import partial_order

# Lengths are pixels at the size at which the picture is shown.
CHARACTER, LINE, PADDING = 7.0, 16.0, 12.0
GAP, LANE, LANE_GAP, LAYER_GAP, MARGIN = 34.0, 2.0, 20.0, 46.0, 24.0

# A panel with more keysteps than this cannot be read; it is split.
PANEL_KEYSTEPS = 24
SWEEPS = 12


class Node(NamedTuple):
    """One keystep of a panel: its centre, its size and its name cut into lines."""

    keystep: int
    x: float
    y: float
    width: float
    height: float
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Link:
    """A transition; the probability is that of going there once the keystep is left."""

    start: int
    end: int
    probability: float
    count: int


class Edge(NamedTuple):
    """A transition that is drawn through ``points``, from the start's border to the end's."""

    link: Link
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Panel:
    """One task or community; ``leaving`` are the transitions to keysteps of other panels."""

    title: str
    width: float
    height: float
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    leaving: tuple[Link, ...]


@dataclass(frozen=True)
class Picture:
    """Panels, the most travelled first, and the keysteps they show, the most used first."""

    panels: tuple[Panel, ...]
    keysteps: tuple[int, ...]


def draw_graph(graph: TaskGraph, *, strongest: int = 3, limit: int = 300) -> Picture:
    """Lay out the strongest transitions of the most used keysteps.

    Parameters
    ----------
    strongest
        Transitions drawn per keystep, the self-loop left out.
    limit
        Keysteps drawn; those with most transitions are kept.
    """
    counts = graph.counts
    use = np.asarray(counts.sum(axis=0)).ravel() + np.asarray(counts.sum(axis=1)).ravel()
    use = use - 2 * counts.diagonal()
    shown = [int(keystep) for keystep in np.argsort(-use, kind="stable")[:limit]]
    wanted = set(shown)
    groups = [
        (task, [one for one in dict.fromkeys(members) if one in wanted])
        for task, members in graph.vocabulary.tasks.items()
    ]
    grouped = {one for _, members in groups for one in members}
    groups += _community_groups(graph, [one for one in shown if one not in grouped])
    panels = [
        _panel(title, members, graph, strongest)
        for name, whole in groups
        if whole
        for title, members in _split(name, whole, graph)
    ]
    # A task without transitions of its own has nothing to show.
    panels = [panel for panel in panels if panel.edges] or panels[:1]
    panels.sort(key=lambda panel: -sum(edge.link.count for edge in panel.edges))
    drawn = {node.keystep for panel in panels for node in panel.nodes}
    return Picture(tuple(panels), tuple(one for one in shown if one in drawn))


def strongest_links(graph: TaskGraph, keystep: int, limit: int) -> list[Link]:
    """Most probable next keysteps, given that the keystep is left at all."""
    # Read from the stored row: indexing a sparse array by two integers costs far more.
    row = slice(graph.counts.indptr[keystep], graph.counts.indptr[keystep + 1])
    others = graph.counts.indices[row] != keystep
    total = int(graph.counts.data[row][others].sum())
    return [
        Link(keystep, edge.keystep, edge.count / total, edge.count)
        for edge in graph.following(keystep, limit)
    ]


def wrap(name: str) -> tuple[str, ...]:
    """Cut a name into at most three lines for a box of the picture.

    >>> wrap("pour mixture into cup")
    ('pour mixture into', 'cup')
    """
    return tuple(textwrap.wrap(name, 18, max_lines=3, placeholder=" …")) or (name,)


def _box_size(lines: Sequence[str]) -> tuple[float, float]:
    """Width and height of a box; capitals, CJK and emoji are wider than other letters."""
    wide = max(
        sum(
            2.0 if unicodedata.east_asian_width(letter) in "WF" else 1 + letter.isupper() / 4
            for letter in line
        )
        for line in lines
    )
    return max(72.0, wide * CHARACTER + 2 * PADDING), len(lines) * LINE + PADDING


def _community_groups(graph: TaskGraph, keysteps: Sequence[int]) -> list[tuple[str, list[int]]]:
    """Communities of keysteps without a task, each named after its most used keystep.

    ``keysteps`` must be in order of use.  Those without any transition are in none.
    """
    names, members = graph.vocabulary.keysteps, sorted(keysteps)
    communities = [
        [members[position] for position in community]
        for community in find_communities(graph.counts[members][:, members])
    ]
    return [(f"around “{names[min(one, key=keysteps.index)]}”", one) for one in communities]


def _split(title: str, members: list[int], graph: TaskGraph) -> list[tuple[str, list[int]]]:
    """Cut a group that is too large to be read along its order."""
    pieces = math.ceil(len(members) / PANEL_KEYSTEPS)
    if pieces == 1:
        return [(title, members)]
    ordered = _in_order(members, graph)
    size = math.ceil(len(members) / pieces)
    return [
        (f"{title} ({piece + 1} of {pieces})", ordered[piece * size : (piece + 1) * size])
        for piece in range(pieces)
    ]


def _in_order(members: Sequence[int], graph: TaskGraph) -> list[int]:
    """Order keysteps by when in a video they are done, else by how many come before them."""
    earlier = [one.bit_count() for one in partial_order(graph.counts_between(members), 0.5)]
    ranked = sorted(zip(graph.mean_times[list(members)], earlier, members, strict=True))
    return [keystep for _, _, keystep in ranked]


def _panel(title: str, members: list[int], graph: TaskGraph, strongest: int) -> Panel:
    inside, leaving = [], []
    for keystep in members:
        links = strongest_links(graph, keystep, len(graph.vocabulary))
        inside += [link for link in links if link.end in members][:strongest]
        leaving += [link for link in links[:strongest] if link.end not in members]
    order = _in_order(members, graph)
    lines = [wrap(graph.vocabulary.keysteps[keystep]) for keystep in order]
    sizes = [_box_size(one) for one in lines]
    layers, chains = _slots(order, inside)
    lanes = sum(map(len, layers)) - len(order)
    widths = np.array([width for width, _ in sizes] + [LANE] * lanes)
    layers = _reduce_crossings(layers, chains)
    x = _straighten(layers, chains, widths)
    spans, height = _spans(layers, chains, [height for _, height in sizes])
    nodes = tuple(
        Node(keystep, float(x[slot]), sum(spans[slot]) / 2, *sizes[slot], lines[slot])
        for slot, keystep in enumerate(order)
    )
    routes = _routes(chains, x, widths, spans)
    edges = tuple(
        Edge(link, tuple(points if order[chain[0]] == link.start else points[::-1]))
        for link, chain, points in zip(inside, chains, routes, strict=True)
    )
    width = float((x + widths / 2).max()) + MARGIN
    return Panel(title, width, height, nodes, edges, tuple(leaving))


def assign_layers(order: Sequence[int], links: Iterable[Link]) -> list[int]:
    """Layer of each keystep of ``order``: below all earlier ones that it is linked with.

    Keysteps without a link go last; at most three share a layer, four in a large panel.
    """
    above: list[set[int]] = [set() for _ in order]
    linked: set[int] = set()
    for link in links:
        early, late = sorted((order.index(link.start), order.index(link.end)))
        above[late].add(early)
        linked |= {early, late}
    room = 3 if len(order) <= 12 else 4
    layers = [0] * len(order)
    taken: Counter[int] = Counter()
    for slot in sorted(range(len(order)), key=lambda slot: slot not in linked):
        # What nothing leads to stands beside what comes before it, not at the top.
        beside = layers[slot - 1] if slot else 0
        layer = max((layers[one] + 1 for one in above[slot]), default=beside)
        if slot not in linked and linked:
            layer = max(layers[one] for one in linked) + 1
        while taken[layer] >= room:
            layer += 1
        layers[slot] = layer
        taken[layer] += 1
    return layers


def _slots(order: list[int], links: list[Link]) -> tuple[list[list[int]], list[list[int]]]:
    """Slots of each layer, and of each edge from top to bottom.

    Slots are the keysteps in ``order``, then a lane for each layer that a long edge passes.
    """
    layer_of = assign_layers(order, links)
    layers: list[list[int]] = [[] for _ in range(max(layer_of) + 1)]
    for slot, layer in enumerate(layer_of):
        layers[layer].append(slot)
    chains = []
    lane = len(order)
    for link in links:
        ends = order.index(link.start), order.index(link.end)
        top, bottom = sorted(ends, key=layer_of.__getitem__)
        passed = range(layer_of[top] + 1, layer_of[bottom])
        for layer in passed:
            layers[layer].append(lane + layer - passed.start)
        chains.append([top, *range(lane, lane + len(passed)), bottom])
        lane += len(passed)
    return layers, chains


def _neighbours(chains: list[list[int]], down: bool) -> dict[int, list[int]]:
    """Slots linked with each slot, in the layer below or above it."""
    found: dict[int, list[int]] = {}
    for upper, lower in (pair for chain in chains for pair in pairwise(chain)):
        found.setdefault(upper if down else lower, []).append(lower if down else upper)
    return found


def _reduce_crossings(layers: list[list[int]], chains: list[list[int]]) -> list[list[int]]:
    """Sort each layer by the mean position of its neighbours, downwards and upwards in turn."""
    best, fewest = layers, _crossings(layers, chains)
    for sweep in range(SWEEPS):
        neighbours = _neighbours(chains, down=bool(sweep % 2))
        layers = [list(layer) for layer in layers]
        place = {slot: at / len(layer) for layer in layers for at, slot in enumerate(layer)}
        for layer in reversed(layers) if sweep % 2 else layers:
            means = {
                slot: float(np.mean([place[one] for one in neighbours.get(slot, [slot])]))
                for slot in layer
            }
            layer.sort(key=lambda slot, means=means: (means[slot], place[slot]))  # type: ignore[misc]
            place.update({slot: at / len(layer) for at, slot in enumerate(layer)})
        crossings = _crossings(layers, chains)
        if crossings < fewest:
            best, fewest = layers, crossings
    return best


def _crossings(layers: list[list[int]], chains: list[list[int]]) -> int:
    place = {slot: at for layer in layers for at, slot in enumerate(layer)}
    layer_of = {slot: number for number, layer in enumerate(layers) for slot in layer}
    steps: dict[int, list[tuple[int, int]]] = {}
    for chain in chains:
        for upper, lower in pairwise(chain):
            steps.setdefault(layer_of[upper], []).append((place[upper], place[lower]))
    ends = (np.array(pairs).T for pairs in steps.values())
    return sum(
        int(((upper[:, None] < upper) & (lower[:, None] > lower)).sum()) for upper, lower in ends
    )


def _straighten(
    layers: list[list[int]], chains: list[list[int]], widths: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Horizontal centres: close to those of the neighbours, in order and without overlap."""
    x = np.zeros(len(widths))
    for sweep in range(SWEEPS):
        neighbours = _neighbours(chains, down=bool(sweep % 2))
        for layer in reversed(layers) if sweep % 2 else layers:
            wanted = [np.mean([x[one] for one in neighbours.get(slot, [slot])]) for slot in layer]
            gaps = [
                (widths[a] + widths[b]) / 2 + (LANE_GAP if LANE in widths[[a, b]] else GAP)
                for a, b in pairwise(layer)
            ]
            offsets = np.concatenate([[0.0], np.cumsum(gaps)])
            # Centred offsets, so that equal wishes spread to both sides.
            offsets -= offsets[-1] / 2
            # With the least distances taken off, "in order" is all that is left to ensure.
            x[layer] = isotonic_regression(np.array(wanted) - offsets).x + offsets
    return np.asarray(x - (x - widths / 2).min() + MARGIN)


def _spans(
    layers: list[list[int]], chains: list[list[int]], heights: Sequence[float]
) -> tuple[dict[int, tuple[float, float]], float]:
    """Top and bottom of each slot, and the height of the panel."""
    upper = {slot for chain in chains for slot in chain[:-1]}
    spans, top, gap = {}, MARGIN, 0.0
    for layer in layers:
        top += gap
        tall = max(heights[slot] for slot in layer if slot < len(heights))
        for slot in layer:
            half = (heights[slot] if slot < len(heights) else tall) / 2
            spans[slot] = (top + tall / 2 - half, top + tall / 2 + half)
        top += tall
        gap = LAYER_GAP if upper & set(layer) else LAYER_GAP / 3
    return spans, top + MARGIN


def _routes(
    chains: list[list[int]],
    x: NDArray[np.float64],
    widths: NDArray[np.float64],
    spans: dict[int, tuple[float, float]],
) -> Iterator[list[tuple[float, float]]]:
    """Points of each edge from top to bottom; ends at one side of a box are spread along it."""
    ends: dict[tuple[int, bool], list[tuple[float, int]]] = {}
    for number, chain in enumerate(chains):
        ends.setdefault((chain[0], True), []).append((float(x[chain[1]]), number))
        ends.setdefault((chain[-1], False), []).append((float(x[chain[-2]]), number))
    ports = {}
    for (slot, leaving), meeting in ends.items():
        step = min(26.0, 0.8 * widths[slot] / len(meeting))
        for position, (_, number) in enumerate(sorted(meeting)):
            shift = (position - (len(meeting) - 1) / 2) * step
            ports[number, leaving] = float(x[slot] + shift)
    for number, chain in enumerate(chains):
        lanes = [(float(x[lane]), border) for lane in chain[1:-1] for border in spans[lane]]
        top = ports[number, True], spans[chain[0]][1]
        bottom = ports[number, False], spans[chain[-1]][0]
        yield [top, *lanes, bottom]
