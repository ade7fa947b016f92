"""Save a vocabulary, and load it again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepgraph.core import Vocabulary
from stepgraph.errors import DataError, quoted
from stepgraph.files.disk import MIB, read_json
from stepgraph.files.headers import (
    FileKind,
    as_list,
    as_text,
    as_whole,
    check_header,
    header,
    reading_fields,
    write_fields,
)

VOCABULARY_KIND = FileKind(
    "stepgraph-vocabulary", 1, "vocabulary", "make one with: stepgraph vocabulary"
)


def load_vocabulary(path: str | Path) -> Vocabulary:
    """Load a vocabulary that :func:`save_vocabulary` wrote."""
    path = Path(path)
    content = read_json(path, limit=4096 * MIB)
    check_header(content, path, VOCABULARY_KIND)
    with reading_fields(path, VOCABULARY_KIND):
        vocabulary = vocabulary_of(content)
    remedy = "a vocabulary to edit is a text file, one keystep a line"
    require_as_saved(vocabulary, content, path, remedy)
    return vocabulary


def require_as_saved(
    vocabulary: Vocabulary, content: Mapping[str, Any], path: Path, remedy: str
) -> None:
    """Refuse a file whose vocabulary is not the one it was saved with."""
    if vocabulary.fingerprint != content.get("fingerprint"):
        raise DataError(
            f"{path}: must hold the keysteps it was saved with (fingerprint "
            f"{quoted(content.get('fingerprint'))}), got others ({vocabulary.fingerprint!r}); "
            f"was it edited? {remedy}"
        )


def vocabulary_of(content: Mapping[str, Any]) -> Vocabulary:
    """The vocabulary in the fields of a saved file."""
    return Vocabulary(
        tuple(map(as_text, as_list(content["keysteps"]))),
        {
            as_text(name): tuple(map(as_whole, as_list(ks)))
            for name, ks in content["tasks"].items()
        },
    )


def save_vocabulary(vocabulary: Vocabulary, path: str | Path) -> None:
    """Save a vocabulary as JSON, whole or not at all."""
    first = header(VOCABULARY_KIND.format, VOCABULARY_KIND.version, vocabulary)
    write_fields(first | vocabulary_fields(vocabulary), path)


def vocabulary_fields(vocabulary: Vocabulary) -> dict[str, Any]:
    """Fields of a saved file that hold the vocabulary."""
    return {
        "keysteps": list(vocabulary.keysteps),
        "tasks": {task: list(members) for task, members in vocabulary.tasks.items()},
    }
