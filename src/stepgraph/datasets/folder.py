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

from stepgraph.core import LONGEST, Dataset, Labels, Segment, Video, Vocabulary
from stepgraph.disk import read_text
from stepgraph.errors import DataError, StepgraphError
from stepgraph.ingest import (
    MEDIA_SUFFIXES,
    TRANSCRIPT_SUFFIXES,
    open_video,
    transcript_preference,
    transcript_stem,
)
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
    found = _find(path)
    videos = tuple(_open_all(path, found, skip_bad=skip_bad))
    truth: Mapping[str, Labels] = {}
    if vocabulary is not None and truth_file.is_file():
        segments = read_truth(truth_file, vocabulary, set(found))
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
    rows = _csv_rows(path)
    header = [cell.strip().lower() for cell in next(rows, (1, []))[1]]
    if header != _TRUTH_COLUMNS:
        raise DataError(
            f"{path}:1: columns must be {', '.join(_TRUTH_COLUMNS)}, got {', '.join(header)!r}"
        )
    segments: defaultdict[str, list[Segment]] = defaultdict(list)
    for number, row in rows:
        where = f"{path}:{number}"
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


def _csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, with their line numbers."""
    rows = csv.reader(read_text(path).splitlines())
    try:
        for row in rows:
            if any(cell.strip() for cell in row):
                yield rows.line_num, row
    except csv.Error as error:
        raise DataError(
            f"{path}:{rows.line_num}: must be CSV, got an error ({error}); is a quote not closed?"
        ) from error


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= LONGEST:
        raise DataError(
            f"a time must be a number of seconds of at least 0 and at most a week, got {text!r}"
        )
    return value


def _as_long_as_truth(video: Video, segments: list[Segment]) -> Video:
    """A video lasts at least until its last true keystep ends."""
    return replace(video, duration=max([video.duration, *(s.end for s in segments)]))


def _with_task(video: Video, segments: list[Segment], vocabulary: Vocabulary) -> Video:
    """Name the one task that lists all true keysteps of a video; it is shown, never used."""
    done = {segment.keystep for segment in segments}
    fitting = [task for task, members in vocabulary.tasks.items() if done <= set(members)]
    return replace(video, task=fitting[0]) if done and len(fitting) == 1 else video


def _open_all(folder: Path, found: Mapping[str, Path], *, skip_bad: bool) -> Iterator[Video]:
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
    files = [path for path in sorted(folder.rglob("*")) if _is_candidate(path, folder)]
    media = {
        _id(path, path.stem, folder): path for path in files if _suffix(path) in MEDIA_SUFFIXES
    }
    transcripts: dict[str, Path] = {}
    for path in files:
        stem = transcript_stem(path)
        video_id = _id(path, stem, folder)
        if _suffix(path) in MEDIA_SUFFIXES or {video_id, _id(path, path.stem, folder)} & set(
            media
        ):
            continue
        rival = transcripts.setdefault(video_id, path)
        if transcript_preference(path, stem) < transcript_preference(rival, stem):
            transcripts[video_id] = path
    return dict(sorted((media | transcripts).items()))


def _is_candidate(path: Path, folder: Path) -> bool:
    name = path.name.lower()
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    known = name.endswith((*MEDIA_SUFFIXES, *TRANSCRIPT_SUFFIXES))
    return (
        known
        and not hidden
        and not name.endswith(_NOT_TRANSCRIPTS)
        and path.is_file()
        and not _is_our_own(path)
    )


def _suffix(path: Path) -> str:
    return path.suffix.lower()


def _id(path: Path, stem: str, folder: Path) -> str:
    video_id = (path.parent.relative_to(folder) / stem).as_posix()
    # A name in another encoding than the system's could never be written into a result.
    return video_id.encode("utf-8", "backslashreplace").decode()


def _is_our_own(path: Path) -> bool:
    """A graph or timeline that was saved into the folder of its videos."""
    if path.suffix.lower() != ".json":
        return False
    with path.open("rb") as file:
        return b'"format": "stepgraph-' in file.read(64)
