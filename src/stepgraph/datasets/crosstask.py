"""Read the CrossTask release.

Its own layout: ``tasks_primary.txt``, ``tasks_related.txt``, ``videos.csv``, ``videos_val.csv``
and ``annotations/<task>_<video>.csv``; and narration where the user has it, in ``narration/``
or in ``crosstask_processed/``.  The vocabulary is the unique keysteps of the chosen tasks, in
the order of the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from stepgraph.core import Dataset, Labels, Segment, Sentence, Video, Vocabulary
from stepgraph.datasets.folder import transcripts_in
from stepgraph.datasets.truth import checked_segment, is_number, lines_of, require_split
from stepgraph.errors import ConfigError, DataError
from stepgraph.files.disk import read_text
from stepgraph.ingest import read_transcript
from stepgraph.problems import Problems
from stepgraph.progress import track

# Seconds after the last word in which a true keystep is still believed.
_LONGEST_SILENCE = 1800.0

SPLITS = ("all", "train", "val")
_TASK_FILES = {"primary": "tasks_primary.txt", "related": "tasks_related.txt"}
_NARRATION = ("narration", "crosstask_processed")

# A video of a task: the ids of both.
_Pair = tuple[str, str]


@dataclass(frozen=True)
class _Task:
    """One block of a task file; an annotation counts its keysteps from 1."""

    id: str
    name: str
    keysteps: tuple[str, ...]


@dataclass(frozen=True)
class _Release:
    """What the files of the release list, before any narration or annotation is read.

    Attributes
    ----------
    listed, validation
        Lines of ``videos.csv`` and ``videos_val.csv``; empty where the file is not there.
    """

    folder: Path
    primary: Mapping[str, _Task]
    related: Mapping[str, _Task]
    listed: Mapping[_Pair, int]
    validation: Mapping[_Pair, int]
    annotated: Mapping[_Pair, Path]
    narrated: Mapping[str, Path]

    @cached_property
    def videos_val(self) -> frozenset[str]:
        """Videos of the validation split, by video alone: none may be in both splits."""
        return frozenset(video for _, video in self.validation)

    def is_in(self, split: str, video: str) -> bool:
        """Tell whether a video belongs to a split."""
        return split == "all" or (video in self.videos_val) == (split == "val")

    def tasks(self, chosen: str) -> dict[str, _Task]:
        """Tasks by id, of the primary ones, the related ones, or all."""
        known = {"primary": self.primary, "related": self.related}
        parts = known.values() if chosen == "all" else [known[chosen]]
        return {task_id: task for part in parts for task_id, task in part.items()}


@dataclass(frozen=True)
class _Choice:
    """A video to open, of the task that it is taken for."""

    video: str
    task: _Task
    narration: Path | None
    annotation: Path | None


def open_crosstask(
    folder: Path,
    *,
    strict: bool = False,
    split: str = "all",
    tasks: str = "primary",
    narrated: bool = True,
) -> Dataset:
    """Open the narrated videos of the chosen tasks, with their truth.

    A video is taken to last until the last sentence or the last true keystep ends, since the
    release does not say how long it is.  Annotated videos come first, in the order of their
    files; a video of several tasks is taken for the first of them.

    Parameters
    ----------
    split
        ``val``: the videos in ``videos_val.csv``; ``train``: the others; or ``all``.
    tasks
        ``primary``, ``related`` (of which the release has no annotation) or ``all``.
    narrated
        Only narrated videos; else all those that are annotated, too, for who has their pictures.
    """
    require_split(split, SPLITS, "crosstask")
    if tasks not in (*_TASK_FILES, "all"):
        raise ConfigError(f"tasks must be 'primary', 'related' or 'all', got {tasks!r}")
    problems = Problems(strict=strict)
    release = _read_release(folder, problems)
    chosen = release.tasks(tasks)
    vocabulary = _vocabulary(chosen, folder, tasks)
    if split != "all" and not release.validation:
        raise DataError(
            f"{folder / 'videos_val.csv'}: must list the videos of the split, got none; "
            f"take split 'all' or fetch the file from the release"
        )
    _check_release(release, problems)
    choices = list(_choose(release, chosen, split, narrated=narrated))
    if narrated:
        _check_narration(release, chosen, split, problems)
    if not choices:
        raise _nothing_to_open(release, split, tasks)
    return _open(choices, vocabulary, problems)


def read_crosstask_vocabulary(folder: Path, problems: Problems) -> Vocabulary:
    """Read the keysteps of the primary tasks; narration and annotation need not be there."""
    return _vocabulary(_read_release(folder, problems).tasks("primary"), folder, "primary")


def survey_crosstask(folder: Path) -> dict[str, int]:
    """Count what lies in a CrossTask folder, without reading narration or annotation."""
    release = _read_release(folder, Problems())
    keysteps = [name for task in release.primary.values() for name in task.keysteps]
    known = {video for _, video in (*release.listed, *release.annotated)}
    return {
        "tasks": len(release.primary),
        "related_tasks": len(release.related),
        "steps": len(keysteps),
        "unique_keysteps": len(set(keysteps)),
        "listed_videos": len(release.listed),
        "annotated_videos": len(release.annotated),
        "narrated_videos": len(known & set(release.narrated)),
    }


def annotated_without_narration(folder: Path) -> int:
    """How many annotated videos cannot be used for want of narration."""
    release = _read_release(folder, Problems())
    return len({video for _, video in release.annotated} - set(release.narrated))


def _read_release(folder: Path, problems: Problems) -> _Release:
    primary, related = (folder / name for name in _TASK_FILES.values())
    annotations = sorted((folder / "annotations").glob("[!.]*.csv"))
    validation = folder / "videos_val.csv"
    return _Release(
        folder=folder,
        primary=_read_tasks(primary, problems),
        related=_read_tasks(related, problems) if related.is_file() else {},
        listed=_read_list(folder / "videos.csv", problems),
        # Without it there is one split less, and nothing is wrong with the rest.
        validation=_read_list(validation, problems) if validation.is_file() else {},
        annotated={_pair_of(path): path for path in annotations},
        narrated=transcripts_in(*(folder / name for name in _NARRATION)),
    )


def _pair_of(annotation: Path) -> _Pair:
    task_id, _, video_id = annotation.stem.partition("_")
    return task_id, video_id


def _read_tasks(path: Path, problems: Problems) -> dict[str, _Task]:
    """Read blocks of five lines: id, name, address, number of keysteps, keysteps."""
    tasks: dict[str, _Task] = {}
    lines = [line.strip() for line in read_text(path).split("\n")]
    starts = [i for i, line in enumerate(lines) if line and (i == 0 or not lines[i - 1])]
    for start in starts:
        where = f"{path}:{start + 1}"
        task = _read_task(lines[start : start + 5], where, problems)
        if task is not None and task.id in tasks:
            problems.add(where, "bad task", f"tasks must differ, got {task.id!r} again")
        elif task is not None:
            tasks[task.id] = task
    if not tasks:
        first = f"; {problems.found[0]}" if problems.found else ""
        raise DataError(f"{path}: must list tasks, got none{first}")
    return tasks


def _read_task(block: list[str], where: str, problems: Problems) -> _Task | None:
    if len(block) < 5 or not (block[3].isascii() and block[3].isdigit()):
        rule = "a task must have 5 lines (id, name, address, number of keysteps, keysteps)"
        problems.add(where, "bad task", f"{rule}, got {block}")
        return None
    names = tuple(name.strip() for name in block[4].split(","))
    if len(names) != int(block[3]) or not all(names):
        got = len([name for name in names if name])
        problems.add(where, "bad task", f"must list {block[3]} keysteps, got {got}")
        return None
    return _Task(block[0], block[1], names)


def _vocabulary(tasks: Mapping[str, _Task], folder: Path, chosen: str) -> Vocabulary:
    if not tasks:
        raise DataError(
            f"{folder / _TASK_FILES['related']}: must list the {chosen} tasks, got none; "
            f"fetch it from the release, or take the primary tasks"
        )
    positions: dict[str, int] = {}
    for task in tasks.values():
        for name in task.keysteps:
            positions.setdefault(name, len(positions))
    members = {
        task.name: tuple(dict.fromkeys(positions[name] for name in task.keysteps))
        for task in tasks.values()
    }
    try:
        return Vocabulary(tuple(positions), members)
    except DataError as error:
        raise DataError(f"{folder}: {error}") from error


def _read_list(path: Path, problems: Problems) -> dict[_Pair, int]:
    """Lines by task and video of a file of task, video and address."""
    pairs: dict[_Pair, int] = {}
    try:
        lines = lines_of(path)
    except DataError as error:
        kind = "unreadable file" if path.exists() else "missing file"
        problems.add_error(error, kind, str(path))
        return pairs
    for number, line in lines:
        where = f"{path}:{number}"
        cells = [cell.strip().strip('"') for cell in line.split(",")]
        if len(cells) != 3:
            what = f"must be 'task,video,address', got {len(cells)} columns in {line[:60]!r}"
            problems.add(where, "wrong column count", what)
        elif (pair := (cells[0], cells[1])) in pairs:
            what = f"a video must be listed once for a task, got {cells[1]!r} of {cells[0]} again"
            problems.add(where, "duplicate video", what)
        else:
            pairs[pair] = number
    return pairs


def _check_release(release: _Release, problems: Problems) -> None:
    """Count what the files of the release say against each other."""
    tasks = release.tasks("all")
    listed = release.folder / "videos.csv"
    places = {pair: f"{listed}:{line}" for pair, line in release.listed.items()}
    places |= {pair: str(path) for pair, path in release.annotated.items() if pair not in places}
    for (task_id, video), where in places.items():
        if task_id not in tasks:
            what = f"task of video {video!r} must be in a task file, got {task_id!r}"
            problems.add(where, "missing task", what)
    for pair, path in release.annotated.items():
        if release.listed and pair not in release.listed:
            what = f"video {pair[1]!r} must be listed for its task in videos.csv, got no such line"
            problems.add(str(path), "unlisted video", what)
    for (task_id, video), line in release.validation.items():
        if release.listed and (task_id, video) not in release.listed:
            what = f"video {video!r} must be listed in videos.csv too, got no such line"
            where = f"{release.folder / 'videos_val.csv'}:{line}"
            problems.add(where, "unlisted video", what)
    known = {video for _, video in places}
    stray = [path for video, path in release.narrated.items() if video not in known]
    if stray:
        what = f"narration must be of listed videos, got {len(stray):,} of others"
        problems.add(str(stray[0]), "unlisted narration", what)


def _choose(
    release: _Release, tasks: Mapping[str, _Task], split: str, *, narrated: bool
) -> Iterator[_Choice]:
    """Videos of the tasks and the split: annotated ones, then the others."""
    taken = set()
    for task_id, video in (*release.annotated, *release.listed):
        narration = release.narrated.get(video)
        annotation = release.annotated.get((task_id, video))
        usable = narration is not None or (annotation is not None and not narrated)
        if video in taken or task_id not in tasks or not usable:
            continue
        if release.is_in(split, video):
            taken.add(video)
            yield _Choice(video, tasks[task_id], narration, annotation)


def _check_narration(
    release: _Release, tasks: Mapping[str, _Task], split: str, problems: Problems
) -> None:
    """Count videos that lack narration, and narrated ones that lack truth."""
    listed = release.folder / "videos.csv"
    first: dict[str, _Pair] = {}
    for pair in dict.fromkeys((*release.annotated, *release.listed)):
        if pair[0] in tasks and release.is_in(split, pair[1]):
            rival = first.setdefault(pair[1], pair)
            if rival != pair and pair in release.annotated:
                what = f"video {pair[1]!r} must be annotated once, got it for {rival[0]} too"
                problems.add(str(release.annotated[pair]), "duplicate video", what)
    silent = [video for video in first if video not in release.narrated]
    if silent:
        what = (
            f"videos must be narrated in {' or '.join(_NARRATION)}, got none for {len(silent):,} "
            f"of {len(first):,}, such as {silent[0]!r}"
        )
        problems.add(str(listed), "incomplete narration", what)
    for video, pair in first.items():
        # The release annotates no related task.
        expected = pair[0] in release.primary and video in release.narrated
        if expected and pair not in release.annotated:
            what = f"narrated video {video!r} must have annotations/{'_'.join(pair)}.csv, got none"
            problems.add(f"{listed}:{release.listed[pair]}", "video without truth", what)


def _nothing_to_open(release: _Release, split: str, tasks: str) -> DataError:
    if split == "all" and tasks == "primary":
        return DataError(
            f"{release.folder}: must contain annotations/<task>_<video>.csv and "
            f"narration/<video>.json of the same videos, got {len(release.annotated)} annotations "
            f"and none with narration"
        )
    return DataError(
        f"{release.folder}: must contain narration of the videos asked for (split {split!r}, "
        f"{tasks} tasks), got {len(release.narrated)} narrations and none of them"
    )


def _open(choices: list[_Choice], vocabulary: Vocabulary, problems: Problems) -> Dataset:
    videos = []
    truth = {}
    for choice in track(choices, "reading narration"):
        transcript: tuple[Sentence, ...] = ()
        segments = _read_segments(choice, vocabulary, problems)
        if choice.narration is not None:
            try:
                transcript = read_transcript(choice.narration, problems=problems)
            except DataError as error:
                problems.add_error(error, "unreadable narration", str(choice.narration))
                continue
            segments = _near_the_narration(segments, transcript, choice, problems)
        ends = [sentence.end for sentence in transcript] + [segment.end for segment in segments]
        video = Video(choice.video, max(ends, default=0.0), transcript, task=choice.task.name)
        videos.append(video)
        if segments:
            truth[video.id] = Labels.from_segments(
                video.id, segments, vocabulary, duration=video.duration
            )
    if not videos:
        first = next(one for one in problems.found if one.kind == "unreadable narration")
        raise DataError(
            f"{Path(first.where).parent}: must hold narration that can be read, got none in "
            f"{len(choices)} files; {first}"
        )
    return Dataset("crosstask", tuple(videos), vocabulary, truth, problems)


def _near_the_narration(
    segments: list[Segment],
    transcript: tuple[Sentence, ...],
    choice: _Choice,
    problems: Problems,
) -> list[Segment]:
    """Leave out what begins long after the last word; how long a video is, is not published."""
    last = max((sentence.end for sentence in transcript), default=0.0) + _LONGEST_SILENCE
    for segment in segments:
        if segment.start > last:
            what = f"a segment must begin while the video lasts, got {segment.start:g} seconds"
            problems.add(str(choice.annotation), "segment past the end", what)
    return [segment for segment in segments if segment.start <= last]


def _read_segments(choice: _Choice, vocabulary: Vocabulary, problems: Problems) -> list[Segment]:
    path = choice.annotation
    if path is None:
        return []
    try:
        lines = lines_of(path)
    except DataError as error:
        problems.add_error(error, "unreadable file", str(path))
        return []
    if not lines:
        problems.add(str(path), "empty annotation", "must hold 'step,start,end', got no line")
    places = [vocabulary.index(name) for name in choice.task.keysteps]
    found = (_read_segment(line, places, f"{path}:{number}", problems) for number, line in lines)
    return [segment for segment in found if segment is not None]


def _read_segment(
    line: str, keysteps: list[int], where: str, problems: Problems
) -> Segment | None:
    cells = [cell.strip() for cell in line.split(",")]
    numbers = [cell for cell in cells if is_number(cell)]
    if len(cells) != 3 or len(numbers) != 3:
        kind = "bad number" if len(cells) == 3 else "wrong column count"
        problems.add(where, kind, f"must be 'step,start,end', got {line[:60]!r}")
        return None
    step, start, end = map(float, cells)
    if step not in range(1, len(keysteps) + 1):
        what = f"step must be between 1 and {len(keysteps)}, got {cells[0]}"
        problems.add(where, "unknown step number", what)
        return None
    return checked_segment((start, end), keysteps[int(step) - 1], where, problems)
