"""Functions that readers of data sets share: ids, narration, checked segments, truth files.

A mistake is added to the problems of the data set with its place, and reading goes on.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stepgraph.core import LONGEST, Labels, Segment, Sentence, Video, Vocabulary
from stepgraph.errors import DataError, quoted
from stepgraph.files.cells import read_cell
from stepgraph.files.disk import listed, read_text
from stepgraph.files.ids import check_id
from stepgraph.ingest.formats import (
    is_transcript,
    read_transcript,
    transcript_preference,
    transcript_stem,
)
from stepgraph.problems import Problems

_COLUMNS = ["video", "start", "end", "keystep"]
_TIME_RULE = "a time must be a number of seconds of at least 0 and at most a week"


def lines_of(path: Path) -> list[tuple[str, str]]:
    """Lines that are not blank, with their places; byte order marks and line ends are gone."""
    lines = enumerate(read_text(path).split("\n"), start=1)
    return [(f"{path}:{number}", line) for number, line in lines if line.strip()]


def has_id(id: str, where: str, problems: Problems) -> bool:
    """Check that the id of a video is valid; a video with another one is left out."""
    try:
        return bool(check_id(id))
    except DataError as error:
        problems.add(where, "bad id", str(error), fatal=True)
        return False


def checked_segment(
    times: tuple[float, float],
    keystep: int,
    where: str,
    problems: Problems,
    *,
    length: float = math.inf,
) -> Segment | None:
    """Make a segment of valid times, cut at the ``length`` of the video, or None."""
    start, end = times
    for time in times:
        if not 0 <= time <= LONGEST:
            problems.add(where, "impossible time", f"{_TIME_RULE}, got {time}")
            return None
    if end <= start:
        what = f"end must be after start, got start {start} and end {end}"
        problems.add(where, "reversed segment", what)
        return None
    if end > length:
        what = f"end must be within the {length:g} seconds of the video, got {end}"
        problems.add(where, "segment past the end", what)
    return Segment(start, min(end, length), keystep) if start < length else None


def read_truth(
    path: Path,
    vocabulary: Vocabulary,
    lengths: Mapping[str, float],
    problems: Problems,
    *,
    only: str = "",
) -> dict[str, list[Segment]]:
    """Read segments by video from a CSV file with the columns video, start, end, keystep.

    ``lengths`` are the durations in seconds, infinite where unknown; a video that is not among
    them is a mistake.  ``only`` is the video of rows without one.
    """
    segments: defaultdict[str, list[Segment]] = defaultdict(list)
    try:
        rows = list(csv_rows(path))
    except DataError as error:
        problems.add_error(error, "unreadable file", str(path))
        return segments
    header = [cell.lower() for cell in rows[0][1]] if rows else []
    if header != _COLUMNS:
        # The error shows nothing of a file that is no truth at all: it may hold anything.
        got = quoted(", ".join(header)) if set(header) & set(_COLUMNS) else "none of them"
        what = f"columns must be {', '.join(_COLUMNS)}, got {got}"
        problems.add(f"{path}:1", "wrong columns", what)
        return segments
    for where, row in rows[1:]:
        if len(row) != len(_COLUMNS):
            problems.add(where, "wrong column count", f"must have 4 columns, got {len(row)}")
            continue
        video = row[0] or only
        if video in lengths:
            segment = _segment(row, vocabulary, where, problems, length=lengths[video])
            if segment is not None:
                segments[video].append(segment)
            continue
        what = f"video {video[:80]!r} must be among the videos, got none of that name"
        if not video:
            what = f"a video must be named, since the file is of {len(lengths)} videos, got none"
        problems.add(where, "unlisted video", what)
    return segments


def csv_rows(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Rows of a CSV file that are not blank, with their places."""
    rows = csv.reader(read_text(path).split("\n"))
    try:
        for row in rows:
            cells = [read_cell(cell.strip()) for cell in row]
            if any(cells):
                yield f"{path}:{rows.line_num}", cells
    except csv.Error as error:
        raise DataError(
            f"{path}:{rows.line_num}: must be CSV, got an error ({error}); is a quote not closed?"
        ) from error


def _segment(
    cells: Sequence[str], vocabulary: Vocabulary, where: str, problems: Problems, *, length: float
) -> Segment | None:
    _, start, end, name = cells
    times = []
    for text in (start, end):
        try:
            times.append(float(text))
        except ValueError:
            problems.add(where, "bad number", f"{_TIME_RULE}, got {text[:60]!r}")
            return None
    try:
        keystep = vocabulary.index(name, hints=problems.counts["unknown keystep"] < 20)
    except DataError as error:
        problems.add(where, "unknown keystep", str(error))
        return None
    return checked_segment((times[0], times[1]), keystep, where, problems, length=length)


@dataclass(frozen=True, eq=False)
class Truth(Mapping[str, Labels]):
    """Labels by video, made on access, so that a stated duration of a week fills no memory."""

    vocabulary: Vocabulary
    done: Mapping[str, tuple[float, list[Segment]]]  # duration of each video, and its segments

    def __getitem__(self, video: str) -> Labels:
        duration, segments = self.done[video]
        return Labels.from_segments(video, segments, self.vocabulary, duration=duration)

    def __iter__(self) -> Iterator[str]:
        return iter(self.done)

    def __len__(self) -> int:
        return len(self.done)


def labelled(
    videos: Iterable[Video], segments: Mapping[str, list[Segment]], vocabulary: Vocabulary
) -> tuple[tuple[Video, ...], Truth]:
    """Return videos, with their tasks, that last until their truth ends, and the truth of each."""
    lasting = []
    truth = {}
    for video in videos:
        done = segments.get(video.id, [])
        if done:
            # The one task that lists all true keysteps of a video is shown, never used.
            listing = (set(vocabulary.tasks_of(segment.keystep)) for segment in done)
            fitting = set.intersection(*listing)
            task = video.task or (fitting.pop() if len(fitting) == 1 else None)
            duration = max(video.duration, *(segment.end for segment in done))
            video = replace(video, task=task, duration=duration)
            truth[video.id] = duration, done
        lasting.append(video)
    return tuple(lasting), Truth(vocabulary, truth)


@dataclass(frozen=True)
class Narration:
    """Transcripts by video, in one or several folders."""

    folders: tuple[Path, ...]
    files: Mapping[str, Path]

    @classmethod
    def beside(cls, folder: Path, problems: Problems, *names: str) -> Narration:
        """Find transcripts in folders of these names, if they exist; the earlier one wins."""
        folders = tuple(folder / name for name in names)
        files: dict[str, Path] = {}
        for place in filter(Path.is_dir, reversed(folders)):
            try:
                paths = [path for path in listed(place) if not path.name.startswith(".")]
            except DataError as error:
                problems.add_error(error, "unreadable folder", str(place), fatal=True)
                continue
            found = best_transcripts(path for path in paths if is_transcript(path))
            files |= {video.name: path for video, path in found.items()}
        return cls(folders, files)

    def read(self, video: str, problems: Problems) -> tuple[Sentence, ...] | None:
        """Transcript of a video: empty without a narration, None if the narration is broken."""
        path = self.files.get(video)
        if path is None:
            return ()
        try:
            return read_transcript(path, problems=problems)
        except DataError as error:
            problems.add_error(error, "unreadable narration", str(path))
            return None

    def check(
        self, wanted: Sequence[str], listed: Collection[str], where: Path, problems: Problems
    ) -> None:
        """Report wanted videos without narration, and narration of unlisted videos."""
        silent = [video for video in wanted if video not in self.files]
        if silent:
            names = " or ".join(folder.name for folder in self.folders)
            several = f" and {len(silent) - 1:,} others" if len(silent) > 1 else ""
            what = f"a video must be narrated in {names}, got nothing for {silent[0]!r}{several}"
            scope = f"{len(silent):,} of {len(wanted):,} videos"
            problems.add(str(where), "without narration", what, scope=scope)
        stray = [path for video, path in self.files.items() if video not in listed]
        if stray:
            several = f"; so are {len(stray) - 1:,} more" if len(stray) > 1 else ""
            what = f"narration must be of a listed video, got that of another{several}"
            kind, scope = "with narration of unlisted videos", f"{len(stray):,} files"
            problems.add(str(stray[0]), kind, what, scope=scope)

    def missing(self, count: int, of_what: str) -> tuple[str, ...]:
        """Describe how much narration is missing, and where to put it."""
        if not count:
            return ()
        where = self.folders[0]
        return (f"narration of {count:,} {of_what}: not published; put transcripts into {where}",)


def best_transcripts(paths: Iterable[Path]) -> dict[Path, Path]:
    """Best one of several transcripts of each video, by the video's path without suffix."""
    best: dict[Path, Path] = {}
    for path in paths:
        stem = transcript_stem(path)
        place = path.parent / stem
        rivals = (best.get(place, path), path)
        best[place] = min(rivals, key=lambda one: transcript_preference(one, stem))
    return best
