"""Norms of tasks, stored beside results.

A graph may be large, and may be left behind when results are moved.  The norms of the tasks in the
results are small, and are all that a page of results needs of a graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from stepgraph import __version__
from stepgraph.core import Vocabulary
from stepgraph.decoders.tasks import tasks_of
from stepgraph.errors import StepgraphError
from stepgraph.files.disk import read_json
from stepgraph.files.headers import (
    FileKind,
    as_list,
    as_text,
    as_whole,
    check_header,
    reading_fields,
    write_fields,
)
from stepgraph.graph import TaskGraph
from stepgraph.graph.comparing import Norm, norm_of
from stepgraph.graph.maps import END, START, Procedure, ProcedureStep, Succession, procedure_of
from stepgraph.graph.shares import Share
from stepgraph.vocabulary.notes import notes_of

MAPS = "maps.json"
"""Name of the file in a folder of results."""
MAPS_KIND = FileKind("stepgraph-maps", 2, "file of maps", "make it with: stepgraph recognize")


def save_maps(graph: TaskGraph, tasks: Iterable[str | None], folder: Path) -> None:
    """Store the norms of some tasks of a graph, and keep those of other tasks in the file."""
    path, members = folder / MAPS, tasks_of(graph)
    contents: dict[str, Any] = {}
    with suppress(StepgraphError):  # an unreadable file is replaced
        contents = {task: _content(one) for task, one in load_maps(folder).items()}
    for task in dict.fromkeys(tasks):
        if task is not None and task in members:
            procedure = procedure_of(graph, task, members[task])
            statistics = graph.statistics if procedure.videos else None
            contents[task] = _content(
                norm_of(statistics, procedure) if statistics else Norm(procedure, {}, {})
            )
    if contents:
        fields = {"format": MAPS_KIND.format, "version": MAPS_KIND.version}
        write_fields(fields | {"stepgraph": __version__, "tasks": [*contents.values()]}, path)


def load_maps(folder: Path) -> dict[str, Norm]:
    """Load the stored norm of each task; empty where there is no file."""
    path = folder / MAPS
    if not path.is_file():
        return {}
    content = read_json(path)
    check_header(content, path, MAPS_KIND)
    with reading_fields(path, MAPS_KIND):
        found = [_norm(one) for one in as_list(content["tasks"])]
    return {one.procedure.task: one for one in found}


def of_names(names: Sequence[str], notes: Any = None) -> Vocabulary:
    """Make a vocabulary of some names, with unused names added up to the minimum of two."""
    filled = (*names, *(" " * count for count in range(1, 3 - len(names))))
    return Vocabulary(filled, {}, notes_of(notes, names))


def _content(norm: Norm) -> dict[str, Any]:
    """Convert a norm to JSON, with keysteps as indices of its own list of names."""
    procedure = norm.procedure
    place = {step.keystep: at for at, step in enumerate(procedure.steps)} | {
        START: START,
        END: END,
    }
    words = procedure.vocabulary
    notes = {
        words.keysteps[step.keystep]: list(words.notes[step.keystep])
        for step in procedure.steps
        if step.keystep in words.notes
    }
    return {
        "task": procedure.task,
        "videos": procedure.videos,
        "keysteps": [words.keysteps[step.keystep] for step in procedure.steps],
        "steps": [[place[step.keystep], *_rounded(step[1:])] for step in procedure.steps],
        "successions": [
            [place[a.first], place[a.second], *_rounded(a[2:])] for a in procedure.successions
        ],
        "precedences": [
            [place[a], place[b], *_rounded(one)] for (a, b), one in norm.before.items()
        ],
        "repetitions": [[place[one], round(mean, 3)] for one, mean in norm.times.items()],
        **({"notes": notes} if notes else {}),
    }


def _rounded(numbers: Iterable[float]) -> list[float]:
    return [round(one, 4) for one in numbers]


def _norm(content: Mapping[str, Any]) -> Norm:
    names = tuple(as_text(one) for one in as_list(content["keysteps"]))
    steps = tuple(
        ProcedureStep(_place(at, names), *_numbers(*rest)) for at, *rest in content["steps"]
    )
    arrows = tuple(
        Succession(_place(first, names, START), _place(second, names, END), *_numbers(*rest))
        for first, second, *rest in content["successions"]
    )
    words = of_names(names, content.get("notes"))
    procedure = Procedure(
        as_text(content["task"]), _count(content["videos"]), steps, arrows, words
    )
    before = {
        (_place(first, names), _place(second, names)): Share(*map(_finite, rest))
        for first, second, *rest in content["precedences"]
    }
    times = {_place(one, names): _finite(mean) for one, mean in content["repetitions"]}
    return Norm(procedure, before, times)


def _place(value: Any, names: tuple[str, ...], end: int | None = None) -> int:
    if as_whole(value) != end and not 0 <= value < len(names):
        raise TypeError(f"an index of {len(names)} keysteps was expected, got {value!r:.40}")
    return int(value)


def _numbers(count: Any, *rest: Any) -> tuple[Any, ...]:
    return _count(count), *map(_finite, rest)


def _count(value: Any) -> int:
    return int(_finite(as_whole(value)))


def _finite(value: Any) -> float:
    if type(value) not in (int, float) or not abs(value) < 1e9:
        raise TypeError(f"a number was expected, got {value!r:.40}")
    return float(value)
