"""Read a user's own videos: a folder of videos and transcripts that share a stem, or a manifest.

Beside them may lie ``steps.txt`` (the vocabulary) and ``truth.csv`` (video, start, end,
keystep), which make them a data set that can be evaluated; the embedded corpus is such a folder.
A manifest is one JSON object a line, or a CSV file with a header.  A row needs a media file or a
transcript, all else is optional; paths are relative to the manifest, and ``truth`` names a CSV
file, one for all rows or one for each.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from stepgraph.core import Dataset, Segment, Video, Vocabulary, rows_in
from stepgraph.datasets import reading
from stepgraph.errors import DataError, StepgraphError, quoted
from stepgraph.files.ids import check_id
from stepgraph.ingest import Listening, formats, open_video, speech, whisper
from stepgraph.ingest.media import NoTextTrackError
from stepgraph.problems import Problems
from stepgraph.progress import note, track
from stepgraph.vocabulary import read_vocabulary

VOCABULARY_FILES = ("steps.txt", "vocabulary.json")
TRUTH_FILE = "truth.csv"

# Parts of a download that was interrupted: "talk.f137.mp4", "talk.temp.mp4".
_PART_OF_DOWNLOAD = re.compile(r"\.(?:f\d+(?:-\d+)?|temp)\.\w+$")
COLUMNS = ("id", "media", "transcript", "task", "truth")
"""Columns of a manifest."""


class Own(NamedTuple):
    """Options for opening a user's own videos; see :func:`~stepgraph.open_source`."""

    strict: bool | None = None
    vocabulary: Vocabulary | None = None
    listening: Listening = Listening()


def open_folder(path: Path, how: Own, *, name: str = "") -> Dataset:
    """Open every video or transcript below a folder; its id is its path without suffixes."""
    problems = Problems(strict=how.strict is not False)
    vocabulary = vocabulary_of(path) or how.vocabulary
    found = _find(path, problems)
    if not found:
        raise DataError(
            f"{path}: must contain videos ({', '.join(formats.MEDIA_SUFFIXES)}) or transcripts "
            f"({', '.join(formats.TRANSCRIPT_SUFFIXES)}), got none; check the path"
        )
    files = {
        video_id: (file, None)
        for video_id, file in found.items()
        if reading.has_id(video_id, str(file), problems)
    }
    videos = open_all(files, problems, how)
    own = path / TRUTH_FILE
    truth = {own: list(found)} if own.is_file() else {}
    return with_truth(Dataset(name or str(path), videos, vocabulary, problems=problems), truth)


def open_file(path: Path, how: Own) -> Dataset:
    """Open one video or transcript."""
    problems = Problems(strict=how.strict is True)
    try:
        video = open_video(path, listening=how.listening.reading, problems=problems)
    except NoTextTrackError:
        if how.listening == how.listening.reading:
            raise
        _note_transcription([path], 1, how.listening.speech)
        video = open_video(path, listening=how.listening, problems=problems)
    check_id(video.id)
    return Dataset(str(path), (video,), how.vocabulary, problems=problems)


def vocabulary_of(folder: Path) -> Vocabulary | None:
    """Read the vocabulary that lies in a folder, if there is one."""
    steps, saved = (folder / name for name in VOCABULARY_FILES)
    if steps.is_file():
        return read_vocabulary(steps)
    # Any video may be called "vocabulary"; only a file that was saved as one is one.
    return read_vocabulary(saved) if saved.is_file() and _is_our_own(saved) else None


def open_all(
    files: Mapping[str, tuple[Path, Path | None]],
    problems: Problems,
    how: Own,
) -> tuple[Video, ...]:
    """Open videos by id, each from its file and transcript; if none can be, it is an error.

    Speech recognition comes last: it takes long, so all other files are read before.
    """
    failed, flaws = Problems(), Problems(strict=how.strict is True)
    videos: dict[str, Video] = {}
    unwritten: dict[str, Path] = {}

    def open_one(video_id: str, transcript: Path | None, listening: Listening) -> None:
        path = files[video_id][0]
        try:
            video = open_video(path, transcript, listening=listening, problems=flaws)
            videos[video_id] = replace(video, id=video_id)
        except StepgraphError as error:
            if isinstance(error, NoTextTrackError) and listening != how.listening:
                unwritten[video_id] = path
                return
            kind = "unreadable video or transcript"
            if isinstance(error, whisper.UnheardError) and how.strict is not True:
                flaws.add_error(error, kind, str(path), fatal=True)
            else:
                failed.add_error(error, kind, str(transcript or path), fatal=True)

    for video_id, (_, transcript) in track(files.items(), "reading", len(files)):
        open_one(video_id, transcript, how.listening.reading)
    if unwritten and not (failed and problems.strict):
        _note_transcription(unwritten.values(), len(files), how.listening.speech)
        for video_id in track(list(unwritten), "transcribing"):
            open_one(video_id, None, how.listening)
    if not videos:
        failed.take(flaws.failed)
    if failed and (problems.strict or not videos):
        hint = "; --skip-bad leaves them out" if videos else ""
        reasons = dict.fromkeys(one.what for one in failed.found)
        each = ", ".join(
            f"({number}) {', '.join(one.where for one in failed.found if one.what == why)}: {why}"
            for number, why in enumerate(reasons, 1)
        )
        unnamed = len(failed) - len(failed.found)
        more = f"; {unnamed:,} more" if unnamed else ""
        several = f"{len(failed)} of {len(files)} videos cannot be read: {each}{more}"
        raise DataError(f"{failed.found[0] if len(failed) == 1 else several}{hint}")
    for part in (failed, flaws):
        problems.take(part)
    return tuple(videos[video_id] for video_id in files if video_id in videos)


def _note_transcription(paths: Iterable[Path], count: int, model: Path | None) -> None:
    new = [path for path in paths if speech.recall(path, model) is None]
    if len(new) == count == 1:
        note(f"transcribing: {new[0]} has no transcript")
    elif new:
        note(f"transcribing: {len(new)} of {count} videos have no transcript")


def with_truth(
    dataset: Dataset, files: Mapping[Path, Sequence[str]], *, alone: bool = False
) -> Dataset:
    """Add the truth in files of the given videos; ``alone``, a file of one need not name it."""
    if dataset.vocabulary is None:
        return dataset
    # Only a video file states its duration; a transcript ends before the video does.  A started
    # row is whole.
    readable = find_spec("av") is not None
    lengths = {
        video.id: float(rows_in(video.duration))
        for video in dataset.videos
        if video.path and readable
    }
    segments: dict[str, list[Segment]] = {}
    for path, ids in files.items():
        # A video that could not be opened may have a truth all the same.
        lasting = {video: lengths.get(video, math.inf) for video in ids}
        only = ids[0] if alone and len(ids) == 1 else ""
        segments |= reading.read_truth(
            path, dataset.vocabulary, lasting, dataset.problems, only=only
        )
    videos, truth = reading.labelled(dataset.videos, segments, dataset.vocabulary)
    return replace(dataset, videos=videos, truth=truth)


def _find(folder: Path, problems: Problems) -> dict[str, Path]:
    """File to open for each id: the media file if there is one, else the best transcript."""

    def note(error: OSError) -> None:
        what = f"must be a folder that can be listed, got {error.strerror}; check its permissions"
        problems.add(str(error.filename), "unreadable folder", what, fatal=True)

    files = []
    for place, folders, names in os.walk(folder, onerror=note):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files += [path for name in names if _is_candidate(path := Path(place, name))]
    # Of a video and its sound, the video.
    by_kind = sorted(
        files, key=lambda path: (path.suffix.lower() not in formats.SOUND_SUFFIXES, path)
    )
    media = {path.with_suffix(""): path for path in by_kind if _is_media(path)}
    transcripts = [
        path
        for path in files
        if not _is_media(path)
        and not {path.with_suffix(""), path.parent / formats.transcript_stem(path)} & media.keys()
    ]
    found = media | reading.best_transcripts(transcripts)
    relative = (place.relative_to(folder).as_posix() for place in found)
    # A name in another encoding than the system's could never be written into a result.
    ids = (name.encode("utf-8", "backslashreplace").decode() for name in relative)
    return dict(sorted(zip(ids, found.values(), strict=True)))


def _is_candidate(path: Path) -> bool:
    # What cannot even be looked at is reported when it is opened.
    if path.name.startswith(".") or (os.access(path, os.F_OK) and not path.is_file()):
        return False
    if _is_media(path):
        return not _PART_OF_DOWNLOAD.search(path.name.lower())
    return formats.is_transcript(path) and not _is_our_own(path)


def _is_media(path: Path) -> bool:
    return path.suffix.lower() in formats.MEDIA_SUFFIXES


def _is_our_own(path: Path) -> bool:
    """Check for a graph, timeline or vocabulary that was saved beside its videos."""
    if path.suffix.lower() != ".json":
        return False
    try:
        with path.open("rb") as file:
            return b'"format": "stepgraph-' in file.read(64)
    except OSError:  # opening it gives a better error
        return False


class _Row(NamedTuple):
    """One video of the manifest: its media file or transcript, or both, its task and truth."""

    id: str
    files: tuple[Path, Path | None]
    task: str | None
    truth: Path | None


def open_manifest(path: Path, how: Own) -> Dataset:
    """Open the videos that a manifest lists, with their truth."""
    problems = Problems(strict=how.strict is not False)
    rows = _rows(path, problems)
    if not rows:
        first = f"; {problems.found[0]}" if problems.found else ""
        raise DataError(f"{path}: must list videos that can be opened, got none{first}")
    vocabulary = vocabulary_of(path.parent) or how.vocabulary
    files = {row.id: row.files for row in rows.values()}
    videos = open_all(files, problems, how)
    videos = tuple(replace(video, task=rows[video.id].task) for video in videos)
    truth: defaultdict[Path, list[str]] = defaultdict(list)
    for row in rows.values():
        if row.truth is not None:
            truth[row.truth].append(row.id)
    dataset = Dataset(str(path), videos, vocabulary, problems=problems)
    return with_truth(dataset, truth, alone=True)


def _rows(path: Path, problems: Problems) -> dict[str, _Row]:
    """Rows by id, without those that cannot be used."""
    rows: dict[str, _Row] = {}
    lines = reading.lines_of(path)
    is_json = bool(lines) and lines[0][1].lstrip().startswith("{")
    found = _json_fields(lines, problems) if is_json else _csv_fields(path, problems)
    for where, fields in found:
        row = _row(fields, where, path.parent, problems)
        if row is not None and rows.setdefault(row.id, row) is not row:
            what = f"ids must differ, got {row.id!r} again; give one of the two another id"
            problems.add(where, "duplicate video", what, fatal=True)
    return rows


def _json_fields(
    lines: Iterable[tuple[str, str]], problems: Problems
) -> Iterator[tuple[str, dict[str, str]]]:
    """Cells by column of each row, with its place; empty cells are left out."""
    for where, line in lines:
        try:
            record = json.loads(line)
            got = repr(line.strip()[:60])
        except (ValueError, RecursionError) as error:
            record, got = None, f"an error ({error})"
        if not isinstance(record, dict):
            what = f"must be one JSON object, got {got}"
            problems.add(where, "unreadable row", what, fatal=True)
            continue
        _check_columns(record, where, problems)
        fields = {name: record[name] for name in COLUMNS if record.get(name) not in (None, "")}
        wrong = [name for name, value in fields.items() if not isinstance(value, str)]
        if wrong:
            what = f"{wrong[0]} must be text, got {quoted(fields[wrong[0]], 60)}"
            problems.add(where, "unreadable row", what, fatal=True)
        else:
            yield where, fields


def _csv_fields(path: Path, problems: Problems) -> Iterator[tuple[str, dict[str, str]]]:
    rows = reading.csv_rows(path)
    first, cells = next(rows, (f"{path}:1", []))
    header = [cell.lower() for cell in cells]
    if not {"media", "transcript"} & set(header) or len(set(header)) < len(header):
        raise DataError(
            f"{first}: a manifest must begin with its columns, each once "
            f"({', '.join(COLUMNS)}; media or transcript at least), got "
            f"{quoted(', '.join(header), 80)}"
        )
    _check_columns(header, first, problems)
    for where, row in rows:
        if len(row) != len(header):
            what = f"must have {len(header)} columns, got {len(row)}"
            problems.add(where, "wrong column count", what, fatal=True)
            continue
        named = zip(header, row, strict=True)
        yield where, {name: cell for name, cell in named if cell and name in COLUMNS}


def _check_columns(names: Iterable[str], where: str, problems: Problems) -> None:
    unknown = [name for name in names if name not in COLUMNS]
    if unknown:
        what = f"columns must be among {', '.join(COLUMNS)}, got {quoted(', '.join(unknown), 80)}"
        problems.add(where, "unknown column", what)


def _row(fields: Mapping[str, str], where: str, folder: Path, problems: Problems) -> _Row | None:
    paths: dict[str, Path] = {}
    for name in [name for name in ("media", "transcript", "truth") if name in fields]:
        path = folder / fields[name]
        # os.path answers False for a name that no file can have.
        if os.path.isfile(path):
            paths[name] = path
            continue
        what = f"{name} must be a file, got {quoted(str(path))}, which does not exist"
        problems.add(where, "missing file", what, fatal=name != "truth")
        if name != "truth":
            return None
    files = [paths[name] for name in ("media", "transcript") if name in paths]
    if not files:
        what = "must name a media file or a transcript, got none"
        problems.add(where, "unreadable row", what, fatal=True)
        return None
    stem = files[0].stem if "media" in paths else formats.transcript_stem(files[0])
    video_id = fields.get("id") or stem
    if not reading.has_id(video_id, where, problems):
        return None
    both = (files[0], files[1] if len(files) > 1 else None)
    return _Row(video_id, both, fields.get("task"), paths.get("truth"))
