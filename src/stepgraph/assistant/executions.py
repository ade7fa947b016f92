"""Executions as data: the sequence of keysteps of each, and which of them are mistakes.

The layout is a folder with ``executions.csv`` (execution, task, split, step, mistake; one row a
step, in order) and, where the true order is known, ``graphs/<task>.json`` (``steps`` with START
and END, ``edges`` as pairs of names, the first directly before the second).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from pathlib import Path
from typing import Any

from stepgraph.core import Dataset, Segment
from stepgraph.datasets import REGISTRY, find_published, open_source
from stepgraph.datasets.reading import Truth, csv_rows
from stepgraph.errors import ConfigError, DataError, and_got, quoted
from stepgraph.export.annotators import EXECUTIONS as FILE
from stepgraph.export.annotators import EXECUTIONS_COLUMNS as COLUMNS
from stepgraph.export.annotators import execution_rows
from stepgraph.files.disk import listed, read_json, write_text
from stepgraph.files.headers import as_list, as_text
from stepgraph.graph import TaskGraph
from stepgraph.graph.saving import load_graph
from stepgraph.ingest import Listening
from stepgraph.problems import Problems

START, END = "START", "END"
"""Names of the beginning and the end in a true order."""

Edge = tuple[str, str]
_TRAIN, _TEST = ("train", "training"), ("test", "testing", "val", "valid", "validation")
_WRONG = {"1": True, "true": True, "yes": True, "mistake": True, "error": True, "1.0": True}
_RIGHT = {"": False, "0": False, "false": False, "no": False, "correct": False, "0.0": False}
_WORDS = _WRONG | _RIGHT | {"none": False, "nan": False, "wrong": True}


@dataclass(frozen=True)
class Execution:
    """Execution of a task: its steps by name in order, and which of them are mistakes.

    A ``written`` one is not observed: it is a pseudo-execution of the listed order.
    """

    id: str
    task: str
    split: str
    steps: tuple[str, ...]
    mistakes: tuple[bool, ...] = ()
    written: bool = False

    @property
    def is_correct(self) -> bool:
        """True if no step is a mistake."""
        return not any(self.mistakes)


@dataclass(frozen=True, eq=False)
class Executions:
    """Executions of a source, with the true orders of some tasks.

    Attributes
    ----------
    graphs
        Direct pairs (first, second) of the true order of each task, where that is known.
    """

    name: str
    done: tuple[Execution, ...]
    graphs: Mapping[str, frozenset[Edge]] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)

    def of_split(self, split: str) -> list[Execution]:
        """Executions of one split, ``train`` or ``test``."""
        return [one for one in self.done if one.split == split]

    def by_task(self) -> dict[str, list[Execution]]:
        """Executions of each task, in the order of their first appearance."""
        found: dict[str, list[Execution]] = {}
        for one in self.done:
            found.setdefault(one.task, []).append(one)
        return found


def open_executions(source: str | Path, *, strict: bool = False) -> Executions:
    """Open executions: ``executions:PATH``, a mined graph, or a source of videos with truth.

    The true keysteps of ``crosstask:PATH`` and ``coin:PATH`` are read also for videos without
    narration, their published splits as ``train`` and ``test``.

    >>> demo = open_executions("demo")
    >>> len(demo.done), demo.done[0].steps[:2]
    (36, ('turn it upside down', 'pull the joint apart'))
    """
    text = str(source)
    kind, colon, rest = text.partition(":")
    if colon and kind == "executions":
        if not rest.strip():
            raise ConfigError("source 'executions:' must name a path after the colon, got none")
        return read_executions(Path(os.path.expanduser(rest)), strict=strict)
    if os.path.isfile(text) and text.endswith(".json"):
        return executions_of_graph(load_graph(Path(text)), text)
    splits = find_published(kind).splits[1:] if colon and kind in REGISTRY else ()
    listening = Listening(needed=False, uses_speech=False)
    problems, done = Problems(), list[Execution]()
    for split in splits or ("all",):
        dataset = open_source(text, split=split, listening=listening, strict=strict or None)
        for one in ("duplicate video", "bad task", "bad number", "unknown step number"):
            if dataset.problems.counts[one]:
                problems.take(dataset.problems, one)
        done += _of_truth(dataset, _split(split))
    if not done:
        raise DataError(
            f"{text}: must have a truth or be executions:PATH or a mined graph, got none of these"
        )
    return Executions(kind if splits else Path(text).name, tuple(done), problems=problems)


def _split(text: str) -> str:
    name = text.strip().lower()
    splits = {**dict.fromkeys(_TRAIN, "train"), **dict.fromkeys(_TEST, "test"), "all": ""}
    return splits.get(name, name)


def _of_truth(dataset: Dataset, split: str) -> Iterable[Execution]:
    truth, vocabulary = dataset.truth, dataset.vocabulary
    for video in dataset.videos:
        if vocabulary is None or video.id not in truth:
            continue
        # Segments that overlap are all done, though only one labels a row.
        exact = truth.done[video.id][1] if isinstance(truth, Truth) else None
        segments: list[Segment] = sorted(exact or truth[video.id].segments())
        steps = tuple(vocabulary.keysteps[one.keystep] for one in segments)
        yield Execution(video.id, video.task or "", split, steps)


def executions_of_graph(graph: TaskGraph, name: str) -> Executions:
    """Executions recognised in the videos of a graph, and pseudo-executions in listed order."""
    if graph.statistics is None:
        raise ConfigError(
            f"{name}: must hold recognised videos for this question, got none; mine it from "
            f"narration with this version of stepgraph"
        )
    names, statistics, done = graph.vocabulary.keysteps, graph.statistics, list[Execution]()
    for task in statistics.videos:
        for video, recognised in statistics.sequences(task).items():
            done.append(Execution(video, task, "", tuple(names[one] for one in recognised)))
        steps = tuple(names[one] for one in statistics.of_task(task).keysteps)
        for number in range(statistics.written(task)):
            done.append(Execution(f"listed order {number}", task, "", steps, written=True))
    return Executions(name, tuple(done))


def read_executions(folder: Path, *, strict: bool = False) -> Executions:
    """Read executions from a folder, or from its CSV file."""
    path = folder / FILE if folder.is_dir() else folder
    problems = Problems(strict=strict)
    rows = list(csv_rows(path))
    header = [cell.strip().lower() for cell in rows[0][1]] if rows else []
    if not {"execution", "step"} <= {*header}:
        raise DataError(
            f"{path}:1: columns must be {', '.join(COLUMNS)}, got {quoted(', '.join(header))}"
        )
    found: dict[tuple[str, str, str], tuple[list[str], list[bool]]] = {}
    for where, row in rows[1:]:
        if len(row) != len(header):
            what = f"must have {len(header)} columns, got {len(row)}"
            problems.add(where, "wrong column count", what)
            continue
        cells = dict(zip(header, row, strict=True))
        _add_row(found, cells, where, problems)
    done = tuple(
        Execution(id, task, split, tuple(steps), tuple(mistakes))
        for (task, split, id), (steps, mistakes) in found.items()
    )
    if not done:
        first = f"; {problems.found[0]}" if problems.found else ""
        raise DataError(f"{path}: must list executions, got none{first}")
    graphs = _read_graphs(path.parent / "graphs", done, problems)
    return Executions(folder.name, done, graphs, problems)


def _add_row(
    found: dict[tuple[str, str, str], tuple[list[str], list[bool]]],
    cells: Mapping[str, str],
    where: str,
    problems: Problems,
) -> None:
    id, step, word = cells["execution"], " ".join(cells["step"].split()), cells.get("mistake", "")
    if not id:
        problems.add(where, "row without execution", "an execution must be named, got none")
        return
    if word.lower() not in _WORDS:
        what = f"mistake must be 0 or 1, true or false, or empty, got {quoted(word, 40)}"
        problems.add(where, "bad mistake", what)
        return
    key = cells.get("task", ""), _split(cells.get("split", "")), id
    steps, mistakes = found.setdefault(key, ([], []))
    if step:  # without one, the row is an execution without steps
        steps.append(step)
        mistakes.append(_WORDS[word.lower()])


def _read_graphs(
    folder: Path, done: Sequence[Execution], problems: Problems
) -> dict[str, frozenset[Edge]]:
    """Read the true orders of tasks; names match up to case, spaces and punctuation."""
    files = [one for one in listed(folder) if one.suffix == ".json"] if folder.is_dir() else []
    exact = {file.stem: file for file in files}
    plain = {_plain(file.stem): file for file in files}
    spelt = {_plain(step): step for one in done for step in one.steps}
    spelt |= {step: step for one in done for step in one.steps}  # as written, where so written
    found, used = {}, set[Path]()
    for task in sorted({one.task for one in done}):
        file = exact.get(task) or plain.get(_plain(task))
        if file is not None:
            found[task] = _read_graph(file, spelt)
            used.add(file)
            shown = {step for one in done if one.task == task for step in one.steps}
            for step in sorted({*chain(*found[task])} - shown - {START, END}):
                what = f"a true step must occur in an execution of its task, got {quoted(step)}"
                problems.add(str(file), "true step in no execution", what)
    for file in sorted({*files} - used):
        what = (
            f"a true order must be named after a task of the executions, got {quoted(file.stem)}"
        )
        problems.add(str(file), "true order of no task", f"{what}; it is left out")
    return found


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold() or name


def _read_graph(path: Path, spelt: Mapping[str, str]) -> frozenset[Edge]:
    content: Any = read_json(path)
    try:
        steps = content["steps"]
        listing = steps if isinstance(steps, dict) else {as_text(one): one for one in steps}
        names = {str(key): " ".join(as_text(name).split()) for key, name in listing.items()}
        names |= {name: name for name in names.values()}
        edges = {
            (_named(names[str(first)], spelt), _named(names[str(second)], spelt))
            for first, second in map(as_list, as_list(content["edges"]))
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"{path}: must hold 'steps', a list of names, and 'edges', pairs of them"
            f"{and_got(error)}"
        ) from error
    before: dict[str, set[str]] = {}
    for first, second in edges:
        before.setdefault(second, set()).add(first)
    try:
        list(TopologicalSorter(before).static_order())
    except CycleError as error:
        raise DataError(
            f"{path}: edges must have no cycle, got {quoted(' → '.join(error.args[1]), 120)}"
        ) from error
    return frozenset(edges)


def _named(name: str, spelt: Mapping[str, str]) -> str:
    if name.upper() in (START, END):
        return name.upper()
    return spelt.get(name, spelt.get(_plain(name), name))


def write_executions(done: Iterable[Execution], folder: Path) -> Path:
    """Write executions into a folder in the layout that :func:`read_executions` reads."""
    rows = ((one.id, one.task, one.split, one.steps, one.mistakes) for one in done)
    write_text(folder / FILE, execution_rows(rows))
    return folder / FILE
