"""Read a manifest of one's own videos: one JSON object a line, or a CSV file with a header.

Columns are ``id``, ``media``, ``transcript``, ``task`` and ``truth``.  A row needs a media file
or a transcript, all else is optional; paths are relative to the manifest.  ``truth`` names a
CSV file (video, start, end, keystep), one for all rows or one for each.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stepgraph.core import Dataset, Labels, Segment, Video, Vocabulary
from stepgraph.datasets.folder import is_video_id, known_lengths, open_all, vocabulary_of
from stepgraph.datasets.truth import csv_rows, labelled, lines_of, read_truth
from stepgraph.errors import DataError
from stepgraph.ingest import Listening, transcript_stem
from stepgraph.problems import Problems

COLUMNS = ("id", "media", "transcript", "task", "truth")
"""Columns of a manifest."""


@dataclass(frozen=True)
class _Row:
    """One video of the manifest; its files exist.

    ``files`` is what to open, and the transcript of it if that is named.
    """

    id: str
    files: tuple[Path, Path | None]
    task: str | None
    truth: Path | None


def open_manifest(
    path: Path,
    *,
    strict: bool | None = None,
    vocabulary: Vocabulary | None = None,
    listening: Listening = Listening(),
) -> Dataset:
    """Open the videos that a manifest lists, with their truth.

    Parameters
    ----------
    strict
        See :func:`~stepgraph.datasets.folder.open_folder`.
    vocabulary
        What the truth refers to, where no ``steps.txt`` or ``vocabulary.json`` lies beside.
    listening
        See :func:`~stepgraph.open_video`.
    """
    problems = Problems(strict=strict is not False)
    rows = _rows(path, problems)
    if not rows:
        first = f"; {problems.found[0]}" if problems.found else ""
        raise DataError(f"{path}: must list videos that can be opened, got none{first}")
    vocabulary = vocabulary_of(path.parent) or vocabulary
    files = {row.id: row.files for row in rows.values()}
    videos = open_all(files, problems, listening, strict_cues=strict is True)
    videos = tuple(replace(video, task=rows[video.id].task) for video in videos)
    truth: Mapping[str, Labels] = {}
    if vocabulary is not None:
        segments = _read_truth(rows.values(), videos, vocabulary, problems)
        videos, truth = labelled(videos, segments, vocabulary)
    return Dataset(str(path), videos, vocabulary, truth, problems)


def _rows(path: Path, problems: Problems) -> dict[str, _Row]:
    """Rows by id, without those that cannot be used."""
    rows: dict[str, _Row] = {}
    for where, fields in _fields(path, problems):
        row = _row(fields, where, path.parent, problems)
        if row is None:
            continue
        if row.id in rows:
            what = f"ids must differ, got {row.id!r} again; give one of the two another id"
            problems.add(where, "duplicate video", what, lost=True)
            continue
        rows[row.id] = row
    return rows


def _fields(path: Path, problems: Problems) -> Iterator[tuple[str, dict[str, str]]]:
    """Cells by column of each row, with its place; empty cells are left out."""
    lines = lines_of(path)
    if lines and lines[0][1].lstrip().startswith("{"):
        yield from _json_fields(path, lines, problems)
    else:
        yield from _csv_fields(path, problems)


def _json_fields(
    path: Path, lines: Iterable[tuple[int, str]], problems: Problems
) -> Iterator[tuple[str, dict[str, str]]]:
    for number, line in lines:
        where = f"{path}:{number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            what = f"must be one JSON object, got an error ({error})"
            problems.add(where, "unreadable row", what, lost=True)
            continue
        if not isinstance(record, dict):
            what = f"must be one JSON object, got {line.strip()[:60]!r}"
            problems.add(where, "unreadable row", what, lost=True)
            continue
        _check_columns(record, where, problems)
        fields = {name: record[name] for name in COLUMNS if record.get(name) not in (None, "")}
        if all(_is_text(name, value, where, problems) for name, value in fields.items()):
            yield where, fields


def _is_text(name: str, value: Any, where: str, problems: Problems) -> bool:
    if isinstance(value, str):
        return True
    what = f"{name} must be text, got {value!r:.60}"
    problems.add(where, "unreadable row", what, lost=True)
    return False


def _csv_fields(path: Path, problems: Problems) -> Iterator[tuple[str, dict[str, str]]]:
    rows = csv_rows(path)
    number, cells = next(rows, (1, []))
    header = [cell.strip().lower() for cell in cells]
    if not {"media", "transcript"} & set(header) or len(set(header)) < len(header):
        raise DataError(
            f"{path}:{number}: a manifest must begin with its columns, each once "
            f"({', '.join(COLUMNS)}; media or transcript at least), got {', '.join(header)[:80]!r}"
        )
    _check_columns(header, f"{path}:{number}", problems)
    for number, row in rows:
        where = f"{path}:{number}"
        if len(row) != len(header):
            what = f"must have {len(header)} columns, got {len(row)}"
            problems.add(where, "wrong column count", what, lost=True)
            continue
        named = zip(header, (cell.strip() for cell in row), strict=True)
        yield where, {name: cell for name, cell in named if cell and name in COLUMNS}


def _check_columns(names: Iterable[str], where: str, problems: Problems) -> None:
    unknown = [name for name in names if name not in COLUMNS]
    if unknown:
        what = f"columns must be among {', '.join(COLUMNS)}, got {', '.join(unknown)[:80]!r}"
        problems.add(where, "unknown column", what)


def _row(fields: Mapping[str, str], where: str, folder: Path, problems: Problems) -> _Row | None:
    paths: dict[str, Path] = {}
    for name in ("media", "transcript", "truth"):
        path = folder / fields.get(name, "")
        if name in fields and not _is_file(path):
            what = f"{name} must be a file, got {str(path)!r}, where none is"
            problems.add(where, "missing file", what, lost=name != "truth")
            if name != "truth":
                return None
        elif name in fields:
            paths[name] = path
    files = [paths[name] for name in ("media", "transcript") if name in paths]
    if not files:
        what = "must name a media file or a transcript, got none"
        problems.add(where, "unreadable row", what, lost=True)
        return None
    stem = files[0].stem if "media" in paths else transcript_stem(files[0])
    video_id = fields.get("id") or stem
    if not is_video_id(video_id):
        what = f"id must be plain text that does not lead out of a folder, got {video_id[:80]!r}"
        problems.add(where, "unreadable row", what, lost=True)
        return None
    both = (files[0], files[1] if len(files) > 1 else None)
    return _Row(video_id, both, fields.get("task"), paths.get("truth"))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _read_truth(
    rows: Iterable[_Row], videos: Iterable[Video], vocabulary: Vocabulary, problems: Problems
) -> dict[str, list[Segment]]:
    """Segments by video; a file that several rows name is read once."""
    sharing: dict[Path, list[str]] = {}
    for row in rows:
        if row.truth is not None:
            sharing.setdefault(row.truth, []).append(row.id)
    lengths = known_lengths(videos)
    segments: dict[str, list[Segment]] = {}
    for path, ids in sharing.items():
        # A video that could not be opened may have a truth all the same.
        lasting = {video: lengths.get(video, math.inf) for video in ids}
        only = ids[0] if len(ids) == 1 else ""
        segments |= read_truth(path, vocabulary, lasting, problems, only=only)
    return segments
