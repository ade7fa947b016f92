"""Notes on the steps of a list: comments that stand indented below them.

``stepgraph steps suggest`` writes them, and people keep, change or add them.  They are untrusted
text: a few short lines of them are kept, and every display must escape them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from stepgraph.core import Vocabulary
from stepgraph.errors import one_line
from stepgraph.files.headers import as_list, as_text

COMMENT = "//"
"""Prefix of a comment in a list."""
MOST = 12
"""Maximum number of notes on a step."""
LONGEST = 300
"""Maximum number of characters of a note; a longer one is cut in its middle."""

# Beginning of the notes on a proposed step; until 0.2.0 it was "said in".
_MENTIONED = re.compile(r"(optional, )?(mentioned|said) in \d+ of \d+ videos")


def with_notes(
    vocabulary: Vocabulary,
    lines: Sequence[str],
    named: Mapping[int, str],
    headings: Mapping[int, str],
) -> Vocabulary:
    """Add the comments that stand below the keysteps of a list to its vocabulary, as notes.

    Notes on a keystep of several tasks begin with the task.

    Parameters
    ----------
    named, headings
        Names of the keysteps and of the tasks by line number; the first line is 1.
    """
    found: defaultdict[int, list[str]] = defaultdict(list)
    for keystep, task, note in _comments(lines, named, headings):
        at = vocabulary.index(keystep)
        shared = task and len(vocabulary.tasks_of(at)) > 1
        found[at].append(f"{task}: {note}" if shared else note)
    return replace(vocabulary, notes=_bounded(found)) if found else vocabulary


def _comments(
    lines: Sequence[str], named: Mapping[int, str], headings: Mapping[int, str]
) -> Iterator[tuple[str, str, str]]:
    """Yield keystep, task and text of each comment that is indented below a keystep.

    A comment that is not indented may be a disabled step.  A second proposal below one keystep
    belongs to a step whose own line was deleted.  Neither is a note on the keystep above it.
    """
    keystep, task, indent, first = None, "", 0, True
    for number, line in enumerate(lines, start=1):
        text, depth = line.strip(), len(line) - len(line.lstrip())
        if not text.startswith(COMMENT) or depth <= indent:
            keystep, task = named.get(number), headings.get(number, task)
            indent, first = depth, True
            continue
        note = text.removeprefix(COMMENT).strip()
        if _MENTIONED.match(note) and not first:
            keystep = None
        if keystep is not None:
            yield keystep, task, note
        first = False


def notes_fields(vocabulary: Vocabulary) -> dict[str, Any]:
    """Field of a saved file that holds the notes; no field if there are none."""
    notes = {
        name: list(vocabulary.notes[at])
        for at, name in enumerate(vocabulary.keysteps)
        if vocabulary.notes.get(at)
    }
    return {"notes": notes} if notes else {}


def notes_of(fields: Any, keysteps: Sequence[str]) -> dict[int, tuple[str, ...]]:
    """Check the notes in the field of a saved file; older files have no such field."""
    if fields is None:
        return {}
    place = {name: at for at, name in enumerate(keysteps)}
    return _bounded({place[n]: map(as_text, as_list(note)) for n, note in fields.items()})


def _bounded(found: Mapping[int, Iterable[str]]) -> dict[int, tuple[str, ...]]:
    """Limit the notes on each keystep to a few short lines that can be shown anywhere."""
    lines = {
        # Cutting may leave two spaces, but reading a note again must not change it again.
        at: [" ".join(one_line(line, LONGEST).split()) for line in note]
        for at, note in sorted(found.items())
    }
    return {at: tuple(filter(None, some))[:MOST] for at, some in lines.items() if any(some)}
