"""Headers of saved files, and checks of their fields on reading."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepgraph import __version__
from stepgraph.core import LONGEST, Vocabulary
from stepgraph.errors import DataError, and_got, one_line, quoted
from stepgraph.files.disk import MIB, read_json, reading, write_text
from stepgraph.renamed import KEYS, with_new_keys

# Every file of ours begins like this; one that another program wrote again may not.
_FORMAT = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"format"\s*:\s*"([\w. -]+)"')


@dataclass(frozen=True)
class FileKind:
    """A kind of saved file: format name, version, noun for messages, and remedy."""

    format: str
    version: int
    noun: str
    remedy: str


def read_format(path: Path, *, limit: int = 64 * MIB) -> str:
    """Read the format name of a saved file, from its first bytes if they contain it."""
    with reading(path) as file:
        if found := _FORMAT.match(file.read(1024)):
            return found[1].decode()
    content = read_json(path, limit=limit)
    found_format = content.get("format") if isinstance(content, dict) else None
    if not isinstance(found_format, str):
        got = f"format {quoted(found_format)}" if isinstance(content, dict) else "no JSON object"
        raise DataError(f"{path}: must be a file that stepgraph saved, with its format, got {got}")
    return found_format


def check_header(content: Any, path: Path, kind: FileKind) -> None:
    """Refuse content of another format or a newer version; give an older one the new keys."""
    found = content.get("format") if isinstance(content, dict) else type(content).__name__
    if found != kind.format:
        raise DataError(
            f"{path}: must be a {kind.noun} (format {kind.format!r}), got {quoted(found)}; "
            f"{kind.remedy}"
        )
    version = content.get("version")
    if not isinstance(version, int) or version < 1:
        raise DataError(f"{path}: version must be a number of at least 1, got {quoted(version)}")
    if version > kind.version:
        program = one_line(str(content.get("stepgraph")), 20)
        raise DataError(
            f"{path}: format version must be at most {kind.version}, got {quoted(version)}; "
            f"it was saved by a newer stepgraph ({program}), so upgrade this one"
        )
    if version < kind.version:
        current = with_new_keys(content, KEYS.get(kind.format, {}))
        content.clear()
        content.update(current)


@contextmanager
def reading_fields(path: Path, kind: FileKind) -> Iterator[None]:
    """Turn every error in the fields of a saved file into a :class:`DataError`."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DataError(
            f"{path}: must be a {kind.noun} as stepgraph saves it{and_got(error)}"
        ) from error


def as_list(value: Any) -> list[Any]:
    """Return a list; raise TypeError for any other value."""
    if not isinstance(value, list):
        raise TypeError(f"a list was expected, got {quoted(value)}")
    return value


def as_whole(value: Any) -> int:
    """Return a whole number; raise TypeError for any other value."""
    if type(value) is not int:
        raise TypeError(f"whole numbers were expected, got {quoted(value)}")
    return value


def as_text(value: Any) -> str:
    """Return a text; raise TypeError for any other value."""
    if not isinstance(value, str):
        raise TypeError(f"text was expected, got {quoted(value)}")
    return value


def as_seconds(value: Any, least: float = 0.0) -> float:
    """Return a time from ``least`` seconds to a week; raise TypeError for any other value."""
    if type(value) not in (int, float) or not least <= value <= LONGEST:
        raise TypeError(f"{least} seconds to a week were expected, got {quoted(value)}")
    return float(value)


def header(format_name: str, version: int, vocabulary: Vocabulary) -> dict[str, Any]:
    """Make the first fields of an artefact."""
    return {
        "format": format_name,
        "version": version,
        "stepgraph": __version__,
        "fingerprint": vocabulary.fingerprint,
    }


def write_fields(content: dict[str, Any], path: str | Path) -> None:
    """Write a saved file as JSON, atomically."""
    # One line per field: small enough to read, and a difference of two files is legible.
    fields = (
        f'"{key}": {json.dumps(value, ensure_ascii=False)}' for key, value in content.items()
    )
    write_text(Path(path), "{" + ",\n".join(fields) + "}\n")
