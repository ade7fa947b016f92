"""Layout of the picture of a task: positions of keysteps, and the choice of arrows.

Keysteps are put in ranks from top to bottom, in the order in which they are done.  Crossings are
reduced by barycentres, and long arrows are led around the boxes between (Sugiyama et al., 1981).
All of it is deterministic and independent of the picture's format.
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepgraph.graph.maps import END, START, Procedure, ProcedureStep, Succession

# Lengths are pixels at the size at which the picture is shown.
CHARACTER, LINE, PADDING = 7.4, 16.0, 14.0
GAP, LANE, LANE_GAP, LAYER_GAP, MARGIN, SHARE = 28.0, 2.0, 20.0, 46.0, 16.0, 36.0
# Units of width of a line of a box, and the most lines of a name.
WRAPPED, _LINES = 22.0, 16
# Two boxes side by side can still be read on a telephone.
_SIDE_BY_SIDE = 2
_SWEEPS = 12

MOST = 60
"""Limit on the keysteps drawn of one task, so that the picture stays legible."""
# Arrows out of a keystep are drawn until their proportions reach this sum; a further one needs a
# least proportion, and one that leads back a least lower end of its interval.
_HELD, _FURTHER, _BACK, _EACH = 0.75, 0.2, 0.2, 3


class Node(NamedTuple):
    """A keystep, ``START`` or ``END``: centre, size, name in lines, and a note."""

    keystep: int
    x: float
    y: float
    width: float
    height: float
    lines: tuple[str, ...]
    note: str = ""


class Edge(NamedTuple):
    """Arrow drawn through ``points``, from the border of one box to another's."""

    arrow: Succession
    points: tuple[tuple[float, float], ...]
    back: bool


@dataclass(frozen=True)
class Layout:
    """Picture of a task: steps from START at the top to END at the bottom."""

    width: float
    height: float
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


def drawn_steps(found: Procedure) -> tuple[ProcedureStep, ...]:
    """Select the steps to draw, in order: all, or those with mentions in most videos."""
    seen: Counter[int] = Counter()
    for arrow in found.successions:
        seen.update({arrow.first: arrow.seen, arrow.second: arrow.seen})
    ranked = sorted(found.steps, key=lambda step: (-step.videos, -seen[step.keystep]))[:MOST]
    drawn = {step.keystep for step in ranked}
    return tuple(step for step in found.steps if step.keystep in drawn)


def drawn_arrows(found: Procedure) -> list[Succession]:
    """Select the arrows to draw, least probable first.

    Each step has the arrows with most of its successors.  Beyond them, every step can be reached
    from START and leads to END: where no video shows an arrow of that direction, one with count 0
    stands for the order alone.
    """
    order = [START, *(step.keystep for step in drawn_steps(found)), END]
    place = {keystep: at for at, keystep in enumerate(order)}
    drawn_ones = [
        arrow for arrow in found.successions if arrow.first in place and arrow.second in place
    ]
    chosen: dict[tuple[int, int], Succession] = {}
    for keystep in order:
        held = 0.0
        leaving = sorted((one for one in drawn_ones if one.first == keystep), key=_strength)
        for arrow in leaving[:_EACH]:
            if held < _HELD and (not held or arrow.share >= _FURTHER):
                held += arrow.share
                if place[arrow.second] > place[keystep] or arrow.low >= _BACK:
                    chosen[arrow[:2]] = arrow
    forward = sorted(
        (one for one in drawn_ones if place[one.first] < place[one.second]), key=_strength
    )
    for before, keystep in pairwise(order):
        onward = [one for one in chosen if place[one[0]] < place[one[1]]]
        if all(first != before for first, _ in onward):
            leaving = [one for one in forward if one.first == before]
            arrow = next(iter(leaving), Succession(before, keystep, 0, 0.0, 0.0, 0.0))
            chosen[arrow[:2]] = arrow
            onward.append(arrow[:2])
        if all(second != keystep for _, second in onward):
            coming = [one for one in forward if one.second == keystep]
            arrow = next(iter(coming), Succession(before, keystep, 0, 0.0, 0.0, 0.0))
            chosen[arrow[:2]] = arrow
    return sorted(chosen.values(), key=_strength, reverse=True)


def _strength(arrow: Succession) -> tuple[float, ...]:
    return -arrow.share, -arrow.seen, arrow.first, arrow.second


def lay_out(found: Procedure) -> Layout:
    """Lay out the steps of a task and the arrows between them."""
    names = found.vocabulary.keysteps
    order = [START, *(step.keystep for step in drawn_steps(found)), END]
    arrows = drawn_arrows(found)
    ends = {START: ("START",), END: ("END",)}
    lines = [ends.get(keystep) or wrap(names[keystep]) for keystep in order]
    shown = {step.keystep: step.videos for step in found.steps if found.videos}
    notes = [
        f"{shown[keystep]:,} of {found.videos:,} videos" if keystep in shown else ""
        for keystep in order
    ]
    sizes = [box_size(one, note) for one, note in zip(lines, notes, strict=True)]
    ranks, chains = _slots(order, arrows)
    widths = np.full(sum(map(len, ranks)), LANE)
    widths[: len(order)] = [width for width, _ in sizes]
    ranks = _reduce_crossings(ranks, chains)
    x = _straighten(ranks, chains, widths, [1.0 + arrow.seen**2 for arrow in arrows])
    spans, height = _spans(ranks, [height for _, height in sizes])
    nodes = tuple(
        Node(keystep, float(x[slot]), sum(spans[slot]) / 2, *sizes[slot], lines[slot], notes[slot])
        for slot, keystep in enumerate(order)
    )
    edges = []
    for arrow, chain, points in zip(
        arrows, chains, _routes(chains, x, widths, spans), strict=True
    ):
        back = order[chain[0]] != arrow.first
        edges.append(Edge(arrow, tuple(points[::-1] if back else points), back))
    # Beside an arrow, where it leaves its box, stands its share.
    right = max([float((x + widths / 2).max()), *(edge.points[0][0] + SHARE for edge in edges)])
    return Layout(right + MARGIN, height, nodes, tuple(edges))


def wrap(name: str, longest: float = WRAPPED) -> tuple[str, ...]:
    """Cut a name into lines at its spaces, and within words that are longer than a line.

    >>> wrap("pour the mixture into the cup")
    ('pour the mixture into the', 'cup')
    """
    lines = [""]
    for word in name.split() or [name]:
        if lines[-1] and text_width(f"{lines[-1]} {word}") <= longest:
            lines[-1] += f" {word}"
            continue
        if lines[-1]:
            lines.append("")
        for letter in word:
            if lines[-1] and text_width(lines[-1] + letter) > longest:
                lines.append("")
            lines[-1] += letter
    return (*lines[: _LINES - 1], f"{lines[_LINES - 1]}…") if lines[_LINES:] else tuple(lines)


def text_width(text: str) -> float:
    """Estimate the width of text in letters of middle width, for sans-serif type."""
    return sum(map(_letter_width, text))


def _letter_width(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return 2.0
    if letter in "mwMW@%—…":
        return 1.5
    return 0.6 if letter in "fijlrtI .,:;!|'()[]" else 1.3 if letter.isupper() else 1.05


def box_size(lines: Sequence[str], note: str = "") -> tuple[float, float]:
    """Return width and height of a box of these lines, with a small note beneath them."""
    wide = max(*map(text_width, lines), 0.85 * text_width(note)) * CHARACTER
    tall = (len(lines) + 0.9 * bool(note)) * LINE
    return max(72.0, wide + 2 * PADDING), tall + PADDING


def assign_ranks(order: Sequence[int], arrows: Sequence[Succession]) -> list[int]:
    """Assign a rank to each keystep of ``order``, in which ranks never decrease.

    Keysteps in one rank are consecutive in the order, with no arrow between them.
    """
    place = {keystep: at for at, keystep in enumerate(order)}
    above: defaultdict[int, set[int]] = defaultdict(set)
    for arrow in arrows:
        early, late = sorted((place[arrow.first], place[arrow.second]))
        above[late].add(early)
    ranks = [0] * len(order)
    for slot in range(1, len(order)):
        lowest = ranks[slot - 1]
        lowest += ranks[:slot].count(lowest) >= _SIDE_BY_SIDE
        ranks[slot] = max([lowest, *(ranks[one] + 1 for one in above[slot])])
    return ranks


def _slots(order: list[int], arrows: list[Succession]) -> tuple[list[list[int]], list[list[int]]]:
    """List the slots of each rank, and of each edge from top to bottom.

    Slots are the keysteps in ``order``, then a lane for each rank that a long edge passes.
    """
    rank_of = assign_ranks(order, arrows)
    ranks: list[list[int]] = [[] for _ in range(max(rank_of) + 1)]
    for slot, rank in enumerate(rank_of):
        ranks[rank].append(slot)
    chains = []
    lane = len(order)
    for arrow in arrows:
        ends = order.index(arrow.first), order.index(arrow.second)
        top, bottom = sorted(ends, key=rank_of.__getitem__)
        passed = range(rank_of[top] + 1, rank_of[bottom])
        for rank in passed:
            ranks[rank].append(lane + rank - passed.start)
        chains.append([top, *range(lane, lane + len(passed)), bottom])
        lane += len(passed)
    return ranks, chains


def _neighbors(chains: list[list[int]], down: bool) -> dict[int, list[tuple[int, int]]]:
    """Collect the slots linked with each slot in the rank below or above it, with their chain."""
    found: dict[int, list[tuple[int, int]]] = {}
    for number, chain in enumerate(chains):
        for upper, lower in pairwise(chain):
            here, there = (upper, lower) if down else (lower, upper)
            found.setdefault(here, []).append((there, number))
    return found


def _reduce_crossings(ranks: list[list[int]], chains: list[list[int]]) -> list[list[int]]:
    """Sort each rank by the mean position of its neighbours, downwards and upwards in turn."""
    best, fewest = ranks, _crossings(ranks, chains)
    for sweep in range(_SWEEPS):
        neighbors = _neighbors(chains, down=bool(sweep % 2))
        ranks = [list(rank) for rank in ranks]
        place = {slot: at for rank in ranks for at, slot in enumerate(rank)}
        for rank in reversed(ranks) if sweep % 2 else ranks:
            means = {
                slot: float(np.mean([place[one] for one, _ in neighbors.get(slot, [(slot, 0)])]))
                for slot in rank
            }
            rank.sort(key=lambda slot, means=means: (means[slot], place[slot]))  # type: ignore[misc]
            place.update({slot: at for at, slot in enumerate(rank)})
        crossings = _crossings(ranks, chains)
        if crossings < fewest:
            best, fewest = ranks, crossings
    return best


def _crossings(ranks: list[list[int]], chains: list[list[int]]) -> int:
    place = {slot: at for rank in ranks for at, slot in enumerate(rank)}
    rank_of = {slot: number for number, rank in enumerate(ranks) for slot in rank}
    steps: dict[int, list[tuple[int, int]]] = {}
    for chain in chains:
        for upper, lower in pairwise(chain):
            steps.setdefault(rank_of[upper], []).append((place[upper], place[lower]))
    ends = (np.array(pairs).T for pairs in steps.values())
    return sum(
        int(((upper[:, None] < upper) & (lower[:, None] > lower)).sum()) for upper, lower in ends
    )


def _straighten(
    ranks: list[list[int]],
    chains: list[list[int]],
    widths: NDArray[np.float64],
    pull: Sequence[float],
) -> NDArray[np.float64]:
    """Compute horizontal centres: close to those of the neighbours, in order and without overlap.

    A neighbour's weight is that of the arrow between, so that frequent transitions run straight.
    """
    from scipy.optimize import isotonic_regression

    x = np.zeros(len(widths))
    for sweep in range(_SWEEPS):
        neighbors = _neighbors(chains, down=bool(sweep % 2))
        for rank in reversed(ranks) if sweep % 2 else ranks:
            near = [neighbors.get(slot, [(slot, 0)]) for slot in rank]
            pulls = [[pull[chain] for _, chain in one] for one in near]
            wanted = [
                np.average([x[slot] for slot, _ in one], weights=weights)
                for one, weights in zip(near, pulls, strict=True)
            ]
            gaps = [
                (widths[a] + widths[b]) / 2 + (LANE_GAP if LANE in widths[[a, b]] else GAP)
                for a, b in pairwise(rank)
            ]
            offsets = np.concatenate([[0.0], np.cumsum(gaps)])
            # With the least distances taken off, "in order" is all that is left to ensure.
            weights = [sum(one) for one in pulls]
            free = isotonic_regression(np.array(wanted) - offsets, weights=weights)
            x[rank] = free.x + offsets
    return np.asarray(x - (x - widths / 2).min() + MARGIN)


def _spans(
    ranks: list[list[int]], heights: Sequence[float]
) -> tuple[dict[int, tuple[float, float]], float]:
    """Compute top and bottom of each slot, and the height of the picture."""
    spans, top = {}, MARGIN
    for rank in ranks:
        tall = max(heights[slot] for slot in rank if slot < len(heights))
        for slot in rank:
            half = (heights[slot] if slot < len(heights) else tall) / 2
            spans[slot] = (top + tall / 2 - half, top + tall / 2 + half)
        top += tall + LAYER_GAP
    return spans, top - LAYER_GAP + MARGIN


def _routes(
    chains: list[list[int]],
    x: NDArray[np.float64],
    widths: NDArray[np.float64],
    spans: dict[int, tuple[float, float]],
) -> Iterator[list[tuple[float, float]]]:
    """Yield the points of each edge from top to bottom; ends at one side of a box are spread."""
    ends: dict[tuple[int, bool], list[tuple[float, int]]] = {}
    for number, chain in enumerate(chains):
        ends.setdefault((chain[0], True), []).append((float(x[chain[1]]), number))
        ends.setdefault((chain[-1], False), []).append((float(x[chain[-2]]), number))
    ports = {}
    for (slot, leaving), meeting in ends.items():
        step = min(36.0, 0.8 * widths[slot] / len(meeting))
        for position, (_, number) in enumerate(sorted(meeting)):
            shift = (position - (len(meeting) - 1) / 2) * step
            ports[number, leaving] = float(x[slot] + shift)
    for number, chain in enumerate(chains):
        lanes = [(float(x[lane]), border) for lane in chain[1:-1] for border in spans[lane]]
        top = ports[number, True], spans[chain[0]][1]
        bottom = ports[number, False], spans[chain[-1]][0]
        yield [top, *lanes, bottom]
