"""All formats of results by name, and a function that writes results in some of them.

Each format is an entry in its own module: in ``FORMATS`` with a file for each video, in
``TOGETHER`` with one file for all, in ``FROM_MEDIA`` where video files are needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from stepgraph.core import Result
from stepgraph.errors import ConfigError, DataError, DiskError
from stepgraph.export import annotators, clips, editors, players, tags, timeline
from stepgraph.files.disk import write_text
from stepgraph.files.ids import file_in
from stepgraph.problems import Problems

EACH = timeline.FORMATS | players.FORMATS | annotators.FORMATS | editors.FORMATS
FROM_MEDIA = clips.COPIES | {"cvat": tags.write_cvat}
NAMES = tuple(sorted({*EACH, *annotators.TOGETHER, *FROM_MEDIA}))
"""Names of the formats that results can be written in."""


def write_results(
    results: Iterable[Result],
    folder: Path,
    formats: Sequence[str],
    problems: Problems | None = None,
) -> list[Path]:
    """Write results in some formats; return the paths of the files.

    Parameters
    ----------
    formats
        Names in :data:`NAMES`.
    problems
        Collects videos that cannot be written; if not given, the first is an error.
    """
    unknown = [name for name in formats if name not in NAMES]
    if unknown:
        raise ConfigError(f"format must be one of {', '.join(NAMES)}, got {unknown[0]!r}")
    written: list[Path] = []
    shown: list[Result] = []
    seen = set[str]()
    for result in results:
        try:
            _require_one(result, seen)
            written += _write_one(result, folder, formats)
        except DiskError:
            raise
        except DataError as error:
            if problems is None:
                raise
            problems.add_error(error, "video not written", result.video.id, fatal=True)
            continue
        shown.append(timeline.seen_in(result, folder))
    for name in [name for name in formats if name in annotators.TOGETHER]:
        for file, convert in annotators.TOGETHER[name].items():
            write_text(folder / file, convert(shown))
            written.append(folder / file)
    return written


def _require_one(result: Result, seen: set[str]) -> None:
    """Refuse a second result of a video, whose files would replace those of the first."""
    if result.video.id in seen:
        raise DataError(f"results must be of different videos, got two of {result.video.id!r}")
    seen.add(result.video.id)


def _write_one(result: Result, folder: Path, formats: Sequence[str]) -> list[Path]:
    written: list[Path] = []
    for name in formats:
        if name in FROM_MEDIA:
            written += FROM_MEDIA[name](result, folder)
        elif name in EACH:
            suffix, convert = EACH[name]
            path = file_in(folder, result.video.id, suffix)
            write_text(path, convert(timeline.seen_in(result, path.parent)))
            written.append(path)
    return written
