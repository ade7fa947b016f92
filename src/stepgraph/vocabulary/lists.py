"""Read a vocabulary from a list that a person wrote, or as it was saved."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from stepgraph.core import Vocabulary
from stepgraph.errors import DataError
from stepgraph.files.disk import MIB, read_text, require_file
from stepgraph.vocabulary.saving import read_vocabulary_json

_BULLET = re.compile(r"^(?:[-*•]|\d+[.)])(?:\s+|$)")


_JSON = re.compile(r'\s*\{\s*("|\}|$)')


def read_vocabulary(path: str | Path) -> Vocabulary:
    """Read a vocabulary from a text file, or from ``vocabulary.json`` as it was saved.

    In text, each line is a keystep and ``# headings`` name tasks.  Blank lines and list marks
    (``-``, ``*``, ``1.``) are ignored.  A keystep may stand under several headings; it is then
    one keystep of several tasks.
    """
    path = Path(path)
    if _is_json(path):
        return read_vocabulary_json(path)
    return _parse(read_text(path, limit=16 * MIB).splitlines(), str(path))


def _is_json(path: Path) -> bool:
    require_file(path)
    try:
        with path.open("rb") as file:
            head = file.read(64)
    except OSError:
        return False  # reading it as text says why
    wide = head.startswith((b"\xff\xfe", b"\xfe\xff"))
    return bool(_JSON.match(head.decode("utf-16" if wide else "utf-8-sig", "replace")))


def make_vocabulary(keysteps: Sequence[str]) -> Vocabulary:
    """Make a vocabulary from lines as they would stand in a file.

    >>> make_vocabulary(["# Make tea", "boil water", "add leaves"]).tasks
    {'Make tea': (0, 1)}
    """
    return _parse(keysteps, "vocabulary")


def _parse(lines: Iterable[str], origin: str) -> Vocabulary:
    names: dict[str, str] = {}  # as compared: as first written
    tasks: dict[str, list[str]] = {}
    loose: dict[str, int] = {}
    current: list[str] | None = None
    for number, line in enumerate(lines, start=1):
        text = " ".join(line.split())
        if not text:
            continue
        if text.startswith("#"):
            current = _open_task(text, tasks, f"{origin}:{number}")
            continue
        text = _BULLET.sub("", text)
        if not text:
            continue
        key = text.casefold()
        repeated = key in loose if current is None else key in current
        if repeated:
            raise DataError(
                f"{origin}:{number}: keysteps of a task must differ, got {text!r} again; "
                f"remove one of the two lines"
            )
        names.setdefault(key, text)
        if current is None:
            loose[key] = number
        else:
            current.append(key)
    _check(names, tasks, origin)
    position = {key: index for index, key in enumerate(names)}
    members = {task: tuple(position[key] for key in keys) for task, keys in tasks.items()}
    return Vocabulary(tuple(names.values()), members)


def _open_task(text: str, tasks: dict[str, list[str]], where: str) -> list[str]:
    task = text.lstrip("#").strip()
    if not task:
        raise DataError(f"{where}: a heading must name a task, got {text!r}")
    if task in tasks:
        raise DataError(
            f"{where}: tasks must differ, got {task!r} again; put its keysteps under one heading"
        )
    tasks[task] = []
    return tasks[task]


def _check(names: dict[str, str], tasks: dict[str, list[str]], origin: str) -> None:
    if len(names) < 2:
        found = "none" if not names else f"only {next(iter(names.values()))!r}"
        raise DataError(
            f"{origin}: must list at least 2 keysteps, one a line, got {found}; "
            f"a graph of transitions needs something to go from and to"
        )
    for task, keys in tasks.items():
        if not keys:
            raise DataError(f"{origin}: task {task!r} must have at least one keystep, got none")
