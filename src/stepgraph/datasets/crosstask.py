"""Read the CrossTask release.

Its own layout: ``tasks_primary.txt``, ``videos.csv``, ``annotations/<task>_<video>.csv``; and
narration where the user has it, as ``narration/<video>.json``.  The vocabulary is the unique
keysteps of the primary tasks, in the order of the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stepgraph.core import LONGEST, Dataset, Labels, Segment, Video, Vocabulary
from stepgraph.disk import read_text
from stepgraph.errors import DataError
from stepgraph.ingest import read_transcript
from stepgraph.progress import track


@dataclass(frozen=True)
class _Task:
    """One block of the task file; ``keysteps`` are positions in the vocabulary."""

    id: str
    name: str
    keysteps: tuple[int, ...]


def open_crosstask(folder: Path) -> Dataset:
    """Open the narrated videos of the primary tasks, with their truth.

    A video is taken to last until the last sentence or the last true keystep ends, since the
    release does not say how long it is.
    """
    tasks, vocabulary = _read_tasks(folder / "tasks_primary.txt")
    videos: dict[str, Video] = {}
    truth: dict[str, Labels] = {}
    files = sorted((folder / "annotations").glob("*.csv"))
    narrated = [(file, *_narration(file, folder)) for file in files]
    present = [item for item in narrated if item[1] in tasks and item[3].is_file()]
    if not present:
        raise DataError(
            f"{folder}: must contain annotations/<task>_<video>.csv and narration/<video>.json of "
            f"the same videos, got {len(files)} annotations and none with narration"
        )
    for file, task_id, video_id, narration in track(present, "reading narration"):
        task = tasks[task_id]
        transcript = read_transcript(narration)
        segments = _read_segments(file, task)
        ends = [sentence.end for sentence in transcript] + [segment.end for segment in segments]
        video = Video(video_id, max(ends, default=0.0), transcript, task=task.name)
        if video_id in videos:
            raise DataError(f"{file}: video {video_id!r} must be annotated once, got it twice")
        videos[video_id] = video
        truth[video_id] = Labels.from_segments(
            video_id, segments, vocabulary, duration=video.duration
        )
    return Dataset("crosstask", tuple(videos.values()), vocabulary, truth)


def _narration(annotation: Path, folder: Path) -> tuple[str, str, Path]:
    task_id, _, video_id = annotation.stem.partition("_")
    return task_id, video_id, folder / "narration" / f"{video_id}.json"


def _read_tasks(path: Path) -> tuple[dict[str, _Task], Vocabulary]:
    """Read blocks of five lines: id, name, address, number of keysteps, keysteps."""
    positions: dict[str, int] = {}
    tasks: dict[str, _Task] = {}
    lines = [line.strip() for line in read_text(path).splitlines()]
    for start in _blocks(lines):
        block = lines[start : start + 5]
        where = f"{path}:{start + 1}"
        if len(block) < 5 or not (block[3].isascii() and block[3].isdigit()):
            raise DataError(
                f"{where}: a task must have 5 lines (id, name, address, number of keysteps, "
                f"keysteps), got {block}"
            )
        names = [name.strip() for name in block[4].split(",")]
        if len(names) != int(block[3]):
            raise DataError(f"{where}: must list {block[3]} keysteps, got {len(names)}")
        keysteps = tuple(positions.setdefault(name, len(positions)) for name in names)
        tasks[block[0]] = _Task(block[0], block[1], keysteps)
    if not tasks:
        raise DataError(f"{path}: must list tasks, got none")
    members = {task.name: task.keysteps for task in tasks.values()}
    return tasks, Vocabulary(tuple(positions), members)


def _blocks(lines: list[str]) -> list[int]:
    """Positions of the first line of each block between blank lines."""
    return [i for i, line in enumerate(lines) if line and (i == 0 or not lines[i - 1])]


def _read_segments(path: Path, task: _Task) -> list[Segment]:
    segments = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if not line.strip():
            continue
        cells = line.split(",")
        try:
            step, start, end = int(cells[0]), float(cells[1]), float(cells[2])
        except (ValueError, IndexError) as error:
            raise DataError(
                f"{path}:{number}: must be 'step,start,end', got {line[:60]!r}"
            ) from error
        if not 1 <= step <= len(task.keysteps):
            raise DataError(
                f"{path}:{number}: step must be between 1 and {len(task.keysteps)}, got {step}"
            )
        if not 0 <= start < end <= LONGEST:
            raise DataError(
                f"{path}:{number}: end must be after start, got start {start} and end {end}"
            )
        segments.append(Segment(start, end, task.keysteps[step - 1]))
    return segments
