"""Read a manifest of one's own videos: one JSON object a line, or a CSV file with a header.

Columns are ``id``, ``media``, ``transcript``, ``task`` and ``truth``.  A row needs a media file
or a transcript, all else is optional; paths are relative to the manifest.  ``truth`` names a
CSV file (video, start, end, keystep), one for all rows or one for each.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from stepgraph.core import Dataset, Vocabulary
from stepgraph.datasets.folder import open_all, vocabulary_of, with_truth
from stepgraph.datasets.reading import csv_rows, has_id, lines_of
from stepgraph.errors import DataError, quoted
from stepgraph.ingest import Listening
from stepgraph.ingest.naming import transcript_stem
from stepgraph.problems import Problems

COLUMNS = ("id", "media", "transcript", "task", "truth")
"""Columns of a manifest."""


class _Row(NamedTuple):
    """One video of the manifest: what to open, and its transcript if that is named."""

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
    """Open the videos that a manifest lists, with their truth."""
    problems = Problems(strict=strict is not False)
    rows = _rows(path, problems)
    if not rows:
        first = f"; {problems.found[0]}" if problems.found else ""
        raise DataError(f"{path}: must list videos that can be opened, got none{first}")
    vocabulary = vocabulary_of(path.parent) or vocabulary
    files = {row.id: row.files for row in rows.values()}
    videos = open_all(files, problems, listening, strict_cues=strict is True)
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
    lines = lines_of(path)
    is_json = bool(lines) and lines[0][1].lstrip().startswith("{")
    found = _json_fields(lines, problems) if is_json else _csv_fields(path, problems)
    for where, fields in found:
        row = _row(fields, where, path.parent, problems)
        if row is not None and rows.setdefault(row.id, row) is not row:
            what = f"ids must differ, got {row.id!r} again; give one of the two another id"
            problems.add(where, "duplicate video", what, lost=True)
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
            problems.add(where, "unreadable row", what, lost=True)
            continue
        _check_columns(record, where, problems)
        fields = {name: record[name] for name in COLUMNS if record.get(name) not in (None, "")}
        wrong = [name for name, value in fields.items() if not isinstance(value, str)]
        if wrong:
            what = f"{wrong[0]} must be text, got {quoted(fields[wrong[0]], 60)}"
            problems.add(where, "unreadable row", what, lost=True)
        else:
            yield where, fields


def _csv_fields(path: Path, problems: Problems) -> Iterator[tuple[str, dict[str, str]]]:
    rows = csv_rows(path)
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
            problems.add(where, "wrong column count", what, lost=True)
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
        what = f"{name} must be a file, got {quoted(str(path))}, where none is"
        problems.add(where, "missing file", what, lost=name != "truth")
        if name != "truth":
            return None
    files = [paths[name] for name in ("media", "transcript") if name in paths]
    if not files:
        what = "must name a media file or a transcript, got none"
        problems.add(where, "unreadable row", what, lost=True)
        return None
    stem = files[0].stem if "media" in paths else transcript_stem(files[0])
    video_id = fields.get("id") or stem
    if not has_id(video_id, where, problems):
        return None
    both = (files[0], files[1] if len(files) > 1 else None)
    return _Row(video_id, both, fields.get("task"), paths.get("truth"))
