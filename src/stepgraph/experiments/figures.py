"""Figures of the paper that show results, drawn from any mined graph and any labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from stepgraph.core import Labels
from stepgraph.decoders.tasks import rank_tasks
from stepgraph.errors import DataError, StepgraphError
from stepgraph.evaluation.metrics import accuracy
from stepgraph.export.answers import directional_pairs
from stepgraph.export.drawing import NEXT, fan
from stepgraph.export.svg import SvgPart, alone, stacked, write_picture
from stepgraph.export.tracks import VideoTracks, draw_tracks
from stepgraph.export.transitions import (
    changes_from,
    draw_circle,
    draw_transitions,
    most_used_keysteps,
)
from stepgraph.graph import TaskGraph
from stepgraph.graph.maps import Procedure, Succession

# Numbers of directional pairs, of keysteps with successors, and of videos at each end.
_PAIRS, _EXAMPLES, _ENDS = 6, 4, 2
_ROWS = "Counted from neighbouring rows of narration, wrong matches included."


class Figure(NamedTuple):
    """Figure of the paper: its file and caption, or no file and the reason."""

    number: str
    file: Path | None
    caption: str


def write_figures(
    folder: Path,
    graph: TaskGraph,
    labels: Mapping[str, Mapping[str, Labels]],
    truth: Mapping[str, Labels],
) -> list[Figure]:
    """Write every figure of the paper that shows results, as SVG.

    Parameters
    ----------
    graph
        Mined as in the paper, from the best keysteps of neighbouring rows.
    labels
        Labels by video for each method; figure 4 compares the last with the first.
    truth
        Truth by video; without any, figure 4 is left out.
    """
    drawings: list[tuple[str, str, Callable[[], str]]] = [
        ("3 left", "directional keysteps of one task", partial(_directions, graph)),
        ("3 centre", "the most probable next keysteps of some", partial(_nexts, graph)),
        ("3 right", "transitions within tasks and across", partial(draw_transitions, graph)),
        ("4", "labels beside the truth, best and worst", partial(_examples, labels, truth)),
        ("5", "35 keysteps with five transitions of each", partial(draw_circle, graph)),
    ]
    sketch = "a sketch of the method by hand; it shows no result"
    return [
        *(Figure(number, None, sketch) for number in ("1", "2")),
        *(_write(folder, *one) for one in drawings),
    ]


def _write(folder: Path, number: str, caption: str, draw: Callable[[], str]) -> Figure:
    try:
        picture = draw()
    except StepgraphError as error:
        return Figure(number, None, str(error))
    path = folder / f"figure-{number.replace(' ', '-')}.svg"
    write_picture(picture, path)
    return Figure(number, path, caption)


def _directions(graph: TaskGraph) -> str:
    """Draw figure 3, left: pairs with one dominant direction."""
    maps = []
    for one in directional_pairs(graph, _PAIRS):
        share = one.forward / (one.forward + one.backward)
        arrow = Succession(one.first, one.second, one.forward, share, share, share)
        maps.append((one.first, _bare(graph, [arrow])))
    note = "Beside each arrow: the share of the pair's transitions in its direction."
    return _fans("Directional keysteps", [note, _ROWS], maps)


def _nexts(graph: TaskGraph) -> str:
    """Draw figure 3, centre: successors of the most frequent keysteps of different tasks."""
    chosen: list[int] = []
    covered = set[str]()
    for keystep in most_used_keysteps(graph, len(graph.vocabulary)):
        tasks = graph.vocabulary.tasks_of(keystep)
        if not covered.intersection(tasks):
            chosen.append(keystep)
            covered.update(tasks)
    maps = []
    for keystep in chosen[:_EXAMPLES]:
        found = changes_from(graph, keystep, NEXT)
        arrows = [
            Succession(keystep, to.keystep, to.count, share, share, share) for to, share in found
        ]
        maps.append((keystep, _bare(graph, arrows)))
    note = "Most frequent keysteps of some tasks; percent of their transitions, no self-loops."
    return _fans(f"The {NEXT} most probable next keysteps", [note, _ROWS], maps)


def _bare(graph: TaskGraph, arrows: Sequence[Succession]) -> Procedure:
    return Procedure("", 0, (), tuple(arrows), graph.vocabulary)


def _fans(title: str, notes: Sequence[str], maps: Sequence[tuple[int, Procedure]]) -> str:
    if not maps:
        raise DataError(f"{title.lower()} must be in the graph to be drawn, got none")
    parts = [part for keystep, found in maps for part in (fan(found, keystep), SvgPart(20))]
    return alone(title, notes, stacked([SvgPart(12), *parts]))


def _examples(labels: Mapping[str, Mapping[str, Labels]], truth: Mapping[str, Labels]) -> str:
    """Draw figure 4: videos with the largest gains and losses of the last method on the first."""
    covered = [
        video
        for video, true in truth.items()
        if (true.keysteps >= 0).any() and all(video in found for found in labels.values())
    ]
    if not covered or len(labels) < 2:
        raise DataError(
            "figure 4 must have labels of two methods and a truth, got none of a video"
        )
    first, *_, last = labels.values()
    gains = {v: accuracy(truth[v], last[v]) - accuracy(truth[v], first[v]) for v in covered}
    ranked = sorted(covered, key=lambda video: -gains[video])
    shown = dict.fromkeys([*ranked[:_ENDS], *ranked[-_ENDS:]])
    videos = []
    for video in shown:
        task = next(iter(rank_tasks(truth[video])), "no task")
        head = f"{video} ({task}): {100 * gains[video]:+.0f} points of accuracy"
        videos.append(
            VideoTracks(head, truth[video], {name: one[video] for name, one in labels.items()})
        )
    before, *_, after = labels
    note = (
        f"Of {len(covered):,} videos: those in which {after} gains most beside {before}, then "
        f"those in which it gains least or loses."
    )
    return draw_tracks("Labels beside the truth", [note], videos)
