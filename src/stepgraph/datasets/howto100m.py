"""Read HowTo100M: narration of over a million videos, and the tasks they were found with.

``raw_caption.json`` (or ``caption.json``, which lacks the stop words) is read as a stream.
``HowTo100M_v1.csv`` lists the task each video was found with and ``task_ids.csv`` names the
tasks; without them the videos have no task.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TypeAlias

from stepgraph.core import Dataset, Video, is_unicode
from stepgraph.datasets import Opening, Published
from stepgraph.datasets.howto100m_captions import WHOLE, read_captions
from stepgraph.datasets.reading import has_id
from stepgraph.errors import DataError, quoted
from stepgraph.files.addresses import Location
from stepgraph.files.disk import reading
from stepgraph.ingest.formats import transcript_from_lists
from stepgraph.problems import Problem, Problems
from stepgraph.progress import track

CAPTION_FILES = ("raw_caption.json", "caption.json")
VIDEOS_FILE = "HowTo100M_v1.csv"
TASKS_FILE = "task_ids.csv"
_HOME = "https://www.di.ens.fr/willow/research/howto100m/"

_COLUMNS = ["video_id", "category_1", "category_2", "rank", "task_id"]
_LONGEST_LINE = 1 << 16


# Names of tasks by id, and the ids of the tasks that each video was found with.
_Listing: TypeAlias = tuple[Mapping[str, str], Mapping[str, tuple[str, ...]]]


def _open(folder: Location, how: Opening) -> Dataset:
    """Open the videos, which last until their last sentence ends and are taken once."""
    path = _caption_file(folder)
    if not path.is_file():
        raise _lacks(folder, " or ".join(CAPTION_FILES))
    problems = Problems(strict=how.strict)
    listing: _Listing = ({}, {})
    if (folder / VIDEOS_FILE).is_file() and (folder / TASKS_FILE).is_file():
        listing = _read_listing(folder, problems)
    videos = _Videos(path, listing, how, _ReportedOnce(problems))
    return Dataset("howto100m", videos, problems=problems)


def _caption_file(folder: Location) -> Location:
    """The first caption file that is there, else the first of all."""
    paths = [folder / name for name in CAPTION_FILES]
    return next((path for path in paths if path.is_file()), paths[0])


def _lacks(folder: Location, name: str) -> DataError:
    return DataError(
        f"{folder}: must contain {name}, got no such file; "
        f"the authors of HowTo100M publish it on its project page, {_HOME}"
    )


def read_tasks(folder: Location, problems: Problems) -> list[tuple[str, int]]:
    """Names of the tasks in the order of ``task_ids.csv``, with the number of videos of each."""
    for name in (TASKS_FILE, VIDEOS_FILE):
        if not (folder / name).is_file():
            raise _lacks(folder, name)
    names, tasks_of = _read_listing(folder, problems)
    videos = Counter(task for tasks in tasks_of.values() for task in tasks)
    return [(name, videos[task]) for task, name in names.items()]


def _survey(folder: Path) -> tuple[dict[str, int], tuple[str, ...]]:
    """Count the records, which reads the whole file."""
    captions = _caption_file(folder)
    parts = (VIDEOS_FILE, TASKS_FILE, captions.name)
    where = "the HowTo100M project page (www.di.ens.fr/willow/research/howto100m)"
    missing = [f"{part}: on {where}" for part in parts if not (folder / part).is_file()]
    problems = Problems()
    counts = {"videos": 0}
    if captions.is_file():
        stream = track(read_captions(captions, problems=problems), "counting captions")
        counts["videos"] = sum(1 for _ in stream)
    if not missing:
        counts["tasks"] = len(read_tasks(folder, problems))
    if problems:
        counts["problems"] = len(problems)
    return counts, tuple(missing)


PUBLISHED = Published(
    "HowTo100M", (*CAPTION_FILES, VIDEOS_FILE), _open, _survey, tasks=read_tasks, streamed=True
)


@dataclass(frozen=True, eq=False)
class _Videos:
    """The videos of a caption file, read anew each time they are iterated."""

    path: Location
    listing: _Listing
    how: Opening
    problems: Problems
    bytes: tuple[int, float] = WHOLE

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.path.stat().st_size

    @property
    def stamp(self) -> list[int]:
        """Size and modification time of the file, to detect a change."""
        return [self.size, self.path.stat().st_mtime_ns]

    def between(self, begin: int, end: int, problems: Problems) -> _Videos:
        """Videos whose records begin between two bytes; ``problems`` receive their mistakes."""
        return replace(self, bytes=(begin, end), problems=problems)

    def __iter__(self) -> Iterator[Video]:
        seen: set[str] = set()
        problems, (names, tasks_of) = self.problems, self.listing
        records = read_captions(
            self.path, problems=problems, shard=self.how.shard, between=self.bytes
        )
        for video, lists, position in records:
            place = f"{self.path}: byte {position}: video {quoted(video, 80)}"
            if not has_id(video, place, problems):
                continue
            if video in seen:
                problems.add(place, "duplicate video", "must occur once, got it again; skipped")
                continue
            try:
                sentences = transcript_from_lists(lists, origin=place, problems=problems)
            except DataError as error:
                problems.add_error(error, "broken record", place)
                continue
            seen.add(video)
            duration = sentences[-1].end if sentences else 0.0
            tasks = tasks_of.get(video)
            task = names[tasks[0]] if tasks else None
            yield Video(video, duration, sentences, self.how.films.get(video), task)


class _ReportedOnce(Problems):
    """Passes on each mistake once, however often the file is read."""

    def __init__(self, problems: Problems) -> None:
        super().__init__()
        self._problems = problems
        self._reported: set[Problem] = set()

    def add(self, *args: Any, **kwargs: Any) -> None:
        problem = Problem(*args, **kwargs)
        if problem not in self._reported:
            self._problems.add(**vars(problem))
            self._reported.add(problem)


def _read_names(path: Location, problems: Problems) -> dict[str, str]:
    """Names of the tasks by id, from lines of id, tab and name."""
    names: dict[str, str] = {}
    for number, line in _lines(path, problems):
        task, _, rest = line.partition("\t")
        task, name = task.strip(), " ".join(rest.split())
        if not (task.isascii() and task.isdigit() and name):
            what = f"must be a number, a tab and the name of a task, got {line[:60]!r}"
            problems.add(f"{path}:{number}", "malformed line", what)
        elif task in names:
            what = f"task {task} must occur once, got it again; the first is used"
            problems.add(f"{path}:{number}", "duplicate task", what)
        else:
            names[task] = name
    return names


def _read_listing(folder: Location, problems: Problems) -> _Listing:
    """Read the names of the tasks, and the tasks that each video was found with."""
    names = _read_names(folder / TASKS_FILE, problems)
    path = folder / VIDEOS_FILE
    lines = _lines(path, problems)
    header = next(lines, (1, ""))[1].strip()
    if header.lower().split(",") != _COLUMNS:
        raise DataError(f"{path}:1: columns must be {','.join(_COLUMNS)}, got {header[:60]!r}")
    # One object for each task, not one for each of a million videos.
    alone = {task: (task,) for task in names}
    tasks_of: dict[str, tuple[str, ...]] = {}
    for number, line in lines:
        cells = line.split(",") if '"' not in line else next(csv.reader([line]))
        video, task = cells[0].strip(), cells[-1].strip()
        if len(cells) != len(_COLUMNS) or not video or not task:
            what = f"must be {','.join(_COLUMNS)}, got {line[:60]!r}"
            problems.add(f"{path}:{number}", "malformed line", what)
        elif task not in alone:
            what = f"task of video {video!r} must be one of {TASKS_FILE}, got {task[:20]!r}"
            problems.add(f"{path}:{number}", "unknown task", what)
        elif task in (so_far := tasks_of.get(video, ())):
            what = f"video {video!r} must occur once for task {task}, got it again"
            problems.add(f"{path}:{number}", "duplicate video", what)
        else:
            tasks_of[video] = so_far + alone[task] if so_far else alone[task]
    return names, tasks_of


def _lines(path: Location, problems: Problems) -> Iterator[tuple[int, str]]:
    """Lines that are not blank, with their numbers; no more than one in memory."""
    with reading(path) as file:
        # A byte that is not UTF-8 spoils its line, not the file.
        text = TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape")
        for number, line in enumerate(iter(lambda: text.readline(_LONGEST_LINE), ""), 1):
            if not line.isascii() and not is_unicode(line):
                what = "must be UTF-8, got other bytes; the line is skipped"
                problems.add(f"{path}:{number}", "not UTF-8", what)
            elif line.strip():
                yield number, line.rstrip("\n")
