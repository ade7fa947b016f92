"""Read the CrossTask release.

Its own layout: ``tasks_primary.txt``, ``tasks_related.txt``, ``videos.csv``, ``videos_val.csv``
and ``annotations/<task>_<video>.csv``; and narration where the user has it, in ``narration/``
or in ``crosstask_processed/``.  The vocabulary is the unique keysteps of the primary tasks, in
the order of the file; the release annotates no related task.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from stepgraph.core import Dataset, Segment, Video, Vocabulary
from stepgraph.datasets import Opening, Published
from stepgraph.datasets.reading import Narration, checked_segment, has_id, labelled, lines_of
from stepgraph.errors import DataError, quoted
from stepgraph.files.disk import read_text
from stepgraph.problems import Problems
from stepgraph.progress import track
from stepgraph.vocabulary.lists import vocabulary_of_tasks

# Maximum seconds from the last word to the start of a true keystep.
_LONGEST_SILENCE = 1800.0

_PRIMARY, _RELATED = "tasks_primary.txt", "tasks_related.txt"
_LIST, _VALIDATION, _ANNOTATIONS = "videos.csv", "videos_val.csv", "annotations"

# A video of a task: the ids of both.
_Pair = tuple[str, str]


class _Task(NamedTuple):
    """One block of a task file; an annotation counts its keysteps from 1."""

    name: str
    keysteps: tuple[str, ...]


@dataclass(frozen=True)
class _CrossTaskRelease:
    """Contents of the lists of the release, and paths of its annotation and narration files."""

    folder: Path
    primary: Mapping[str, _Task]
    related: Mapping[str, _Task]
    listed: Mapping[_Pair, str]
    validation: Mapping[_Pair, str]
    annotated: Mapping[_Pair, Path]
    narration: Narration

    @property
    def places(self) -> dict[_Pair, str]:
        """Place where each video of a task is listed, else annotated; annotated ones first."""
        return {pair: str(path) for pair, path in self.annotated.items()} | dict(self.listed)

    @property
    def vocabulary(self) -> Vocabulary:
        """The keysteps of the primary tasks, for which neither narration nor truth is read."""
        tasks = {task.name: task.keysteps for task in self.primary.values()}
        names = [name for task in self.primary.values() for name in task.keysteps]
        return vocabulary_of_tasks(names, tasks, self.folder)


def _open(folder: Path, how: Opening) -> Dataset:
    """Open the narrated videos of the primary tasks, with their truth.

    Annotated videos come first, in the order of their files; a video of several tasks is taken
    for the first of them.
    """
    problems = Problems(strict=how.strict)
    release = _read_release(folder, problems)
    if how.split != "all" and not release.validation:
        raise DataError(
            f"{folder / _VALIDATION}: must list the videos of the split, got none; "
            f"take split 'all' or fetch the file from the release"
        )
    _check_release(release, problems)
    # By video alone: none may be in both splits.
    validation = {video for _, video in release.validation}
    pairs: dict[str, _Pair] = {}
    for pair in release.places:
        in_split = how.split == "all" or (pair[1] in validation) == (how.split == "val")
        if pair[0] not in release.primary or not in_split:
            continue
        rival = pairs.setdefault(pair[1], pair)
        if rival != pair and pair in release.annotated and how.narrated:
            what = f"video {pair[1]!r} must be annotated once, got it for {rival[0]} too"
            problems.add(str(release.annotated[pair]), "duplicate video", what)
    if how.narrated:
        _check_narration(release, pairs, problems)
    chosen = [
        pair
        for video, pair in pairs.items()
        if video in release.narration.files or (pair in release.annotated and not how.narrated)
    ]
    if not chosen:
        raise DataError(
            f"{folder}: must contain annotations/<task>_<video>.csv and narration/<video>.json of "
            f"the same videos (split {how.split!r}), got {len(release.annotated)} annotations and "
            f"none with narration"
        )
    return _read_videos(release, chosen, how.films, problems)


def _survey(folder: Path) -> tuple[dict[str, int], tuple[str, ...]]:
    """Count what lies in a CrossTask folder, without reading narration or annotation."""
    release = _read_release(folder, Problems())
    keysteps = [name for task in release.primary.values() for name in task.keysteps]
    annotated = {video for _, video in release.annotated}
    listed = {video for _, video in release.places}
    counts = {
        "tasks": len(release.primary),
        "related_tasks": len(release.related),
        "steps": len(keysteps),
        "unique_keysteps": len(set(keysteps)),
        "listed_videos": len(release.listed),
        "annotated_videos": len(release.annotated),
        "narrated_videos": len(listed & release.narration.files.keys()),
    }
    where = "the CrossTask release on GitHub (DmZhukov/CrossTask)"
    parts = (_RELATED, _LIST, _VALIDATION, _ANNOTATIONS)
    missing = [f"{part}: in {where}" for part in parts if not (folder / part).exists()]
    silent = len(annotated - release.narration.files.keys())
    return counts, (*missing, *release.narration.missing(silent, "annotated videos"))


PUBLISHED = Published(
    title="CrossTask",
    marks=(_PRIMARY,),
    open=_open,
    survey=_survey,
    vocabulary=lambda folder, problems: _read_release(folder, problems).vocabulary,
    splits=("all", "train", "val"),
)


def _read_release(folder: Path, problems: Problems) -> _CrossTaskRelease:
    related, validation = folder / _RELATED, folder / _VALIDATION
    files = sorted((folder / _ANNOTATIONS).glob("[!.]*.csv"))
    annotations = [(path, path.stem.partition("_")) for path in files]
    return _CrossTaskRelease(
        folder=folder,
        primary=_read_tasks(folder / _PRIMARY, problems),
        related=_read_tasks(related, problems) if related.is_file() else {},
        listed=_read_list(folder / _LIST, problems),
        # Without it there is one split less, and nothing is wrong with the rest.
        validation=_read_list(validation, problems) if validation.is_file() else {},
        annotated={
            (task, video): path
            for path, (task, mark, video) in annotations
            if not mark or has_id(video, str(path), problems)
        },
        narration=Narration.beside(folder, problems, "narration", "crosstask_processed"),
    )


def _read_tasks(path: Path, problems: Problems) -> dict[str, _Task]:
    """Read blocks of five lines: id, name, address, number of keysteps, keysteps."""
    tasks: dict[str, _Task] = {}
    lines = [line.strip() for line in read_text(path).split("\n")]
    starts = [i for i, line in enumerate(lines) if line and (i == 0 or not lines[i - 1])]
    for start in starts:
        where = f"{path}:{start + 1}"
        task = _read_task(lines[start : start + 5], where, problems)
        if task is not None and lines[start] in tasks:
            problems.add(where, "bad task", f"tasks must differ, got {quoted(lines[start])} again")
        elif task is not None:
            tasks[lines[start]] = task
    if not tasks:
        first = f"; {problems.found[0]}" if problems.found else ""
        raise DataError(f"{path}: must list tasks, got none{first}")
    return tasks


def _read_task(block: list[str], where: str, problems: Problems) -> _Task | None:
    if len(block) < 5 or not re.fullmatch("[0-9]{1,6}", block[3]):
        rule = "a task must have 5 lines (id, name, address, number of keysteps, keysteps)"
        problems.add(where, "bad task", f"{rule}, got {quoted(block)}")
        return None
    names = tuple(name.strip() for name in block[4].split(","))
    if len(names) != int(block[3]) or not all(names):
        got = len([name for name in names if name])
        problems.add(where, "bad task", f"must list {block[3]} keysteps, got {got}")
        return None
    return _Task(block[1], names)


def _read_list(path: Path, problems: Problems) -> dict[_Pair, str]:
    """Places by task and video in a file of task, video and address."""
    pairs: dict[_Pair, str] = {}
    try:
        lines = lines_of(path)
    except DataError as error:
        kind = "unreadable file" if path.exists() else "missing file"
        problems.add_error(error, kind, str(path))
        return pairs
    for where, line in lines:
        cells = [cell.strip().strip('"') for cell in line.split(",")]
        if len(cells) != 3:
            what = f"must be 'task,video,address', got {len(cells)} columns in {line[:60]!r}"
            problems.add(where, "wrong column count", what)
        elif not has_id(cells[1], where, problems):
            continue
        elif (pair := (cells[0], cells[1])) in pairs:
            what = (
                f"a video must be listed once for a task, got {cells[1]!r} of {cells[0]:.40} again"
            )
            problems.add(where, "duplicate video", what)
        else:
            pairs[pair] = where
    return pairs


def _check_release(release: _CrossTaskRelease, problems: Problems) -> None:
    """Report contradictions between the files of the release."""
    for (task_id, video), where in release.places.items():
        if task_id not in release.primary and task_id not in release.related:
            what = f"task of video {video!r} must be in a task file, got {quoted(task_id, 40)}"
            problems.add(where, "missing task", what)
    if not release.listed:
        return
    for pair, place in (*release.annotated.items(), *release.validation.items()):
        if pair not in release.listed:
            what = f"video {pair[1]!r} must be listed for its task in {_LIST}, got no such line"
            problems.add(str(place), "unlisted video", what)


def _check_narration(
    release: _CrossTaskRelease, pairs: Mapping[str, _Pair], problems: Problems
) -> None:
    """Report videos that lack narration, and narrated ones that lack truth."""
    places = release.places
    listed = {video for _, video in places}
    release.narration.check(list(pairs), listed, release.folder / _LIST, problems)
    for video, pair in pairs.items():
        if video in release.narration.files and pair not in release.annotated:
            what = f"narrated video {video!r} must have annotations/{'_'.join(pair)}.csv, got none"
            problems.add(places[pair], "video without truth", what)


def _read_videos(
    release: _CrossTaskRelease, chosen: list[_Pair], films: Mapping[str, Path], problems: Problems
) -> Dataset:
    vocabulary = release.vocabulary
    videos: list[Video] = []
    truth: dict[str, list[Segment]] = {}
    for task_id, video_id in track(chosen, "reading narration"):
        task, annotation = release.primary[task_id], release.annotated.get((task_id, video_id))
        segments = _read_segments(annotation, task, vocabulary, problems) if annotation else []
        transcript = release.narration.read(video_id, problems)
        if transcript is None:
            continue
        last_word = max((sentence.end for sentence in transcript), default=0.0)
        film = films.get(video_id)
        videos.append(Video(video_id, last_word, transcript, film, task.name))
        # Durations are not published, and without narration there is no estimate.
        silent = video_id not in release.narration.files
        truth[video_id] = []
        for segment in segments:
            if silent or segment.start <= last_word + _LONGEST_SILENCE:
                truth[video_id].append(segment)
            else:
                what = f"a segment must begin while the video lasts, got {segment.start:g} seconds"
                problems.add(str(annotation), "segment past the end", what)
    if not videos:
        first = next(one for one in problems.found if one.kind == "unreadable narration")
        raise DataError(
            f"{Path(first.where).parent}: must hold narration that can be read, got none in "
            f"{len(chosen)} files; {first}"
        )
    lasting, labels = labelled(videos, truth, vocabulary)
    return Dataset("crosstask", lasting, vocabulary, labels, problems)


def _read_segments(
    path: Path, task: _Task, vocabulary: Vocabulary, problems: Problems
) -> list[Segment]:
    try:
        lines = lines_of(path)
    except DataError as error:
        problems.add_error(error, "unreadable file", str(path))
        return []
    if not lines:
        problems.add(str(path), "empty annotation", "must hold 'step,start,end', got no line")
    places = [vocabulary.index(name) for name in task.keysteps]
    found = (_read_segment(line, places, where, problems) for where, line in lines)
    return [segment for segment in found if segment is not None]


def _read_segment(
    line: str, keysteps: list[int], where: str, problems: Problems
) -> Segment | None:
    cells = line.split(",")
    try:
        step, start, end = map(float, cells)
    except ValueError:
        kind = "bad number" if len(cells) == 3 else "wrong column count"
        problems.add(where, kind, f"must be 'step,start,end', got {line[:60]!r}")
        return None
    if step not in range(1, len(keysteps) + 1):
        what = f"step must be between 1 and {len(keysteps)}, got {step:g}"
        problems.add(where, "unknown step number", what)
        return None
    return checked_segment((start, end), keysteps[int(step) - 1], where, problems)
