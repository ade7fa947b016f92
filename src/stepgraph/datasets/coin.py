"""Read the COIN release.

``COIN.json`` gives for each video its task, duration, split and true keysteps; narration is
read where the user has it beside the file, in ``narration/``, ``captions/`` or
``coin_processed/``.  The vocabulary is the unique labels of the steps in order of their ids.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from stepgraph.core import LONGEST, Dataset, Segment, Video, Vocabulary
from stepgraph.datasets import Opening, Published
from stepgraph.datasets.reading import Narration, Truth, checked_segment, has_id
from stepgraph.errors import DataError, quoted
from stepgraph.files.disk import MIB, parse_json, read_text
from stepgraph.problems import Problems
from stepgraph.progress import track
from stepgraph.vocabulary.lists import vocabulary_of_tasks

_SPLITS = ("training", "testing")
_FILE = "COIN.json"
_MAX_BYTES = 512 * MIB

# Before a capital that follows a small letter or a digit, and before the last capital of
# several if a small letter follows it.
_WORD_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class _Step(NamedTuple):
    """One true keystep; ``label`` is its name, ``place`` begins every problem with it."""

    id: int
    label: str
    times: tuple[float, float]
    place: str


class _Entry(NamedTuple):
    """One video of the file; ``duration`` in seconds is None if it is missing or impossible."""

    video: str
    task: str | None
    split: str
    duration: float | None
    steps: tuple[_Step, ...]


class _CoinRelease(NamedTuple):
    """The file, its videos, the labels of the steps by id, and the narration beside it."""

    file: Path
    entries: list[_Entry]
    names: dict[int, str]
    narration: Narration

    @property
    def vocabulary(self) -> Vocabulary:
        """The labels in order of their ids; tasks in order of their first steps."""
        steps: defaultdict[str, set[int]] = defaultdict(set)
        for entry in self.entries:
            if entry.task and entry.steps:
                steps[entry.task] |= {step.id for step in entry.steps}
        in_order = sorted(steps, key=lambda task: (min(steps[task]), task))
        tasks = {task: [self.names[step] for step in sorted(steps[task])] for task in in_order}
        return vocabulary_of_tasks(self.names.values(), tasks, self.file)


def _open(path: Path, how: Opening) -> Dataset:
    """Open all videos of a split, narrated or not, with their truth.

    ``path`` is the file ``COIN.json`` or its folder; the vocabulary is that of all splits.
    """
    problems = Problems(strict=how.strict)
    release = _read(path, problems)
    vocabulary, narration = release.vocabulary, release.narration
    chosen = [entry for entry in release.entries if how.split in ("all", entry.split)]
    listed = {entry.video for entry in release.entries}
    narration.check([entry.video for entry in chosen], listed, release.file, problems)
    videos = []
    truth = {}
    for entry in track(chosen, "reading COIN"):
        transcript = narration.read(entry.video, problems) or ()
        segments = _segments(entry, release.names, vocabulary, problems)
        if entry.video in narration.files and not entry.steps:
            what = "a narrated video must have truth, got none"
            problems.add(f"{release.file}: video {entry.video!r}", "video without truth", what)
        duration = entry.duration
        if duration is None:
            ends = [one.end for one in transcript] + [one.end for one in segments]
            duration = max(ends, default=0.0)
        film = how.films.get(entry.video)
        videos.append(Video(entry.video, duration, transcript, film, entry.task))
        if segments:
            truth[entry.video] = duration, segments
    return Dataset("coin", tuple(videos), vocabulary, Truth(vocabulary, truth), problems)


def _survey(path: Path) -> tuple[dict[str, int], tuple[str, ...]]:
    """Count what lies in a COIN folder, without reading narration."""
    _, entries, names, narration = _read(path, Problems())
    splits = [entry.split for entry in entries]
    narrated = len({entry.video for entry in entries} & narration.files.keys())
    counts = {
        "videos": len(entries),
        "training": splits.count("training"),
        "testing": splits.count("testing"),
        "steps": len(names),
        "unique_keysteps": len(set(names.values())),
        "tasks": len({entry.task for entry in entries if entry.task}),
        "narrated_videos": narrated,
    }
    return counts, narration.missing(len(entries) - narrated, "videos")


PUBLISHED = Published(
    title="COIN",
    marks=(_FILE,),
    open=_open,
    survey=_survey,
    vocabulary=lambda path, problems: _read(path, problems).vocabulary,
    splits=("all", *_SPLITS),
)


def task_name(name: str) -> str:
    """Write the name of a COIN task in words.

    >>> task_name("ReplaceABulb"), task_name("ReplaceCDDriveWithSSD"), task_name("MakeRJ45Cable")
    ('Replace A Bulb', 'Replace CD Drive With SSD', 'Make RJ45 Cable')
    """
    return " ".join(_WORD_BORDER.sub(" ", name).split())


def _read(path: Path, problems: Problems) -> _CoinRelease:
    file = path / _FILE if path.is_dir() else path
    entries = _read_entries(file, problems)
    names: dict[int, str] = {}
    for step in (step for entry in entries for step in entry.steps):
        name = names.setdefault(step.id, step.label)
        if name != step.label:
            what = f"step {step.id} must be {quoted(name)} as before, got {quoted(step.label)}"
            problems.add(step.place, "unknown step number", what)
    narration = Narration.beside(file.parent, problems, "narration", "captions", "coin_processed")
    return _CoinRelease(file, entries, dict(sorted(names.items())), narration)


def _read_entries(file: Path, problems: Problems) -> list[_Entry]:
    repeated: set[str] = set()

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = Counter(name for name, value in pairs if isinstance(value, dict))
        repeated.update(name for name, count in names.items() if count > 1)
        return dict(pairs)

    record = parse_json(read_text(file, limit=_MAX_BYTES), str(file), note)
    database = record.get("database") if isinstance(record, dict) else None
    if not isinstance(database, dict) or not database:
        raise DataError(
            f"{file}: must hold an object 'database' of videos, got {quoted(record, 60)}; "
            f"is it COIN's own file?"
        )
    for video in sorted(repeated & database.keys()):
        what = f"video {quoted(video, 80)} must be listed once, got it twice; the last is used"
        problems.add(str(file), "duplicate video", what)
    found = (
        _read_entry(video, fields, f"{file}: video {quoted(video, 80)}", problems)
        for video, fields in database.items()
    )
    entries = [entry for entry in found if entry is not None]
    if not entries:
        raise DataError(f"{file}: must list videos that can be read, got none")
    return entries


def _read_entry(video: str, fields: Any, place: str, problems: Problems) -> _Entry | None:
    if not has_id(video, place, problems):
        return None
    if not isinstance(fields, dict):
        problems.add(place, "unreadable video", f"must be an object, got {quoted(fields, 60)}")
        return None
    task = _text(fields.get("class"))
    if not task:
        what = f"'class' must name the task, got {quoted(fields.get('class'), 60)}"
        problems.add(place, "missing task", what)
    split = fields.get("subset")
    if split not in _SPLITS:
        what = f"'subset' must be 'training' or 'testing', got {quoted(split, 60)}"
        problems.add(place, "unknown split", what)
    duration = _number(fields.get("duration"))
    if duration is None or not 0 < duration <= LONGEST:
        what = f"'duration' must be seconds, over 0, got {quoted(fields.get('duration'), 60)}"
        problems.add(place, "impossible time", what)
        duration = None
    steps = _read_steps(fields.get("annotation"), place, problems)
    return _Entry(video, task_name(task) or None, str(split), duration, steps)


def _read_steps(annotation: Any, place: str, problems: Problems) -> tuple[_Step, ...]:
    if not isinstance(annotation, list):
        what = f"'annotation' must be a list, got {quoted(annotation, 60)}"
        problems.add(place, "unreadable annotation", what)
        return ()
    if not annotation:
        problems.add(place, "empty annotation", "'annotation' must hold keysteps, got none")
    found = (
        _read_step(fields, f"{place}, step {number}", problems)
        for number, fields in enumerate(annotation, start=1)
    )
    return tuple(step for step in found if step is not None)


def _read_step(fields: Any, place: str, problems: Problems) -> _Step | None:
    fields = fields if isinstance(fields, dict) else {}
    number, label = str(fields.get("id")), _text(fields.get("label"))
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        what = f"'id' must be the number of a step, got {quoted(fields.get('id'), 60)}"
        problems.add(place, "unknown step number", what)
        return None
    segment = fields.get("segment")
    times = [_number(time) for time in segment] if isinstance(segment, list) else []
    if not label or len(times) != 2 or times[0] is None or times[1] is None:
        what = f"must have 'label' and 'segment' [start, end], got {quoted(fields, 100)}"
        problems.add(place, "unreadable annotation", what)
        return None
    return _Step(int(number), label, (times[0], times[1]), place)


def _text(value: Any) -> str:
    """One line of text; empty if it is anything else."""
    # Spaces within are kept: two of the published labels differ in nothing else.
    text = value.strip() if isinstance(value, str) else ""
    return text if text.isprintable() else ""


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _segments(
    entry: _Entry, names: Mapping[int, str], vocabulary: Vocabulary, problems: Problems
) -> list[Segment]:
    length = LONGEST if entry.duration is None else entry.duration
    found = (
        checked_segment(
            step.times, vocabulary.index(step.label), step.place, problems, length=length
        )
        for step in entry.steps
        if names[step.id] == step.label
    )
    return [segment for segment in found if segment is not None]
