"""Read a folder of one's own: videos and transcripts that share a stem.

Beside them may lie ``steps.txt`` (the vocabulary) and ``truth.csv`` (video, start, end,
keystep), which make the folder a data set that can be evaluated.  The embedded corpus is such
a folder.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from stepgraph.core import Dataset, Labels, Segment, Video, Vocabulary
from stepgraph.disk import read_text
from stepgraph.errors import DataError, StepgraphError
from stepgraph.ingest import MEDIA_SUFFIXES, TRANSCRIPT_SUFFIXES, open_video, transcript_stem
from stepgraph.vocabulary import read_vocabulary

VOCABULARY_FILE = "steps.txt"
TRUTH_FILE = "truth.csv"
_TRUTH_COLUMNS = ["video", "start", "end", "keystep"]

# What this program and yt-dlp write beside a video; no transcript of anything.
_NOT_TRANSCRIPTS = (".chapters.vtt", ".steps.json", ".info.json")


def open_folder(path: Path, *, name: str = "", skip_bad: bool = False) -> Dataset:
    """Open every video or transcript below a folder; its id is its path without suffixes."""
    vocabulary_file, truth_file = path / VOCABULARY_FILE, path / TRUTH_FILE
    vocabulary = read_vocabulary(vocabulary_file) if vocabulary_file.is_file() else None
    videos = tuple(_open_all(path, skip_bad=skip_bad))
    truth: Mapping[str, Labels] = {}
    if vocabulary is not None and truth_file.is_file():
        segments = read_truth(truth_file, vocabulary, {video.id for video in videos})
        videos = tuple(_as_long_as_truth(video, segments[video.id]) for video in videos)
        videos = tuple(_with_task(video, segments[video.id], vocabulary) for video in videos)
        truth = {
            video.id: Labels.from_segments(
                video.id, segments[video.id], vocabulary, duration=video.duration
            )
            for video in videos
            if segments[video.id]
        }
    return Dataset(name or str(path), videos, vocabulary, truth)


def open_file(path: Path) -> Dataset:
    """Open one video or transcript."""
    return Dataset(str(path), (open_video(path),))


def read_truth(
    path: Path, vocabulary: Vocabulary, videos: set[str]
) -> defaultdict[str, list[Segment]]:
    """Read segments by video from a CSV file with the columns video, start, end, keystep."""
    rows = csv.reader(read_text(path).splitlines())
    header = [cell.strip().lower() for cell in next(rows, [])]
    if header != _TRUTH_COLUMNS:
        raise DataError(
            f"{path}:1: columns must be {', '.join(_TRUTH_COLUMNS)}, got {', '.join(header)!r}"
        )
    segments: defaultdict[str, list[Segment]] = defaultdict(list)
    for row in rows:
        if not any(cell.strip() for cell in row):
            continue
        where = f"{path}:{rows.line_num}"
        if len(row) != len(_TRUTH_COLUMNS):
            raise DataError(f"{where}: must have 4 columns, got {len(row)}")
        video, start, end, keystep = (cell.strip() for cell in row)
        if video not in videos:
            raise DataError(
                f"{where}: video {video!r} must be in the folder, got none of that name"
            )
        try:
            segment = Segment(_seconds(start), _seconds(end), vocabulary.index(keystep))
        except DataError as error:
            raise DataError(f"{where}: {error}") from error
        if segment.end <= segment.start:
            raise DataError(f"{where}: end must be after start, got start {start} and end {end}")
        segments[video].append(segment)
    return segments


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise DataError(f"a time must be a number of seconds of at least 0, got {text!r}")
    return value


def _as_long_as_truth(video: Video, segments: list[Segment]) -> Video:
    """A video lasts at least until its last true keystep ends."""
    return replace(video, duration=max([video.duration, *(s.end for s in segments)]))


def _with_task(video: Video, segments: list[Segment], vocabulary: Vocabulary) -> Video:
    """Name the one task that lists all true keysteps of a video; it is shown, never used."""
    done = {segment.keystep for segment in segments}
    fitting = [task for task, members in vocabulary.tasks.items() if done <= set(members)]
    return replace(video, task=fitting[0]) if done and len(fitting) == 1 else video


def _open_all(folder: Path, *, skip_bad: bool) -> Iterator[Video]:
    found = _find(folder)
    if not found:
        raise DataError(
            f"{folder}: must contain transcripts ({', '.join(TRANSCRIPT_SUFFIXES)}) or videos "
            f"with a text track, got none; put each video's transcript beside it, same name"
        )
    problems: list[StepgraphError] = []
    videos = []
    for video_id, path in found.items():
        try:
            videos.append(replace(open_video(path), id=video_id))
        except StepgraphError as error:
            problems.append(error)
    if problems and not (skip_bad and videos):
        several = f"{len(problems)} of {len(found)} transcripts cannot be read, the first is "
        hint = "" if len(problems) == len(found) else "; --skip-bad goes on without"
        raise DataError(
            f"{several if len(problems) > 1 else ''}{problems[0]}{hint}"
        ) from problems[0]
    yield from videos


def _find(folder: Path) -> dict[str, Path]:
    """What to open for each id: the media file if there is one, else the best transcript."""
    suffixes = (*MEDIA_SUFFIXES, *TRANSCRIPT_SUFFIXES)
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        name = path.name.lower()
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if hidden or not name.endswith(suffixes) or name.endswith(_NOT_TRANSCRIPTS):
            continue
        if not path.is_file() or _is_our_own(path):
            continue
        video_id = str(path.parent.relative_to(folder) / transcript_stem(path))
        rank = suffixes.index(path.suffix.lower())
        if video_id not in found or rank < suffixes.index(found[video_id].suffix.lower()):
            found[video_id] = path
    return found


def _is_our_own(path: Path) -> bool:
    """A graph or timeline that was saved into the folder of its videos."""
    if path.suffix.lower() != ".json":
        return False
    with path.open("rb") as file:
        return b'"format": "stepgraph-' in file.read(64)
