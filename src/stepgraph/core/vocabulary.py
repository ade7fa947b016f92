"""The vocabulary: the keysteps that may occur, and the tasks that list them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from stepgraph.errors import DataError, quoted


@dataclass(frozen=True)
class Vocabulary:
    """The keysteps that may occur, in a fixed order, and the tasks they belong to.

    A keystep that several tasks share is one entry that each of them lists.  ``notes`` holds
    the notes of a list on a keystep; vocabularies that differ only there are equal.

    >>> tea = Vocabulary(("boil water", "add leaves"), {"make tea": (0, 1)})
    >>> len(tea), tea.index("add leaves")
    (2, 1)
    """

    keysteps: tuple[str, ...]
    tasks: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    notes: Mapping[int, tuple[str, ...]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.keysteps) < 2:
            raise DataError(
                f"a vocabulary must have at least 2 keysteps, got {len(self.keysteps)}; "
                f"a graph of transitions needs something to go from and to"
            )
        if len(self._positions) != len(self.keysteps):
            twice = sorted(name for name, count in Counter(self.keysteps).items() if count > 1)
            raise DataError(f"keysteps must be unique, got {quoted(twice[:5])} repeatedly")
        for name in (*self.keysteps, *self.tasks):
            if not name.isascii() and not is_unicode(name):
                raise DataError(f"names of a vocabulary must be Unicode text, got {quoted(name)}")
        for task, members in self.tasks.items():
            if any(not 0 <= keystep < len(self.keysteps) for keystep in members):
                raise DataError(
                    f"task {quoted(task)} must list keysteps between 0 and "
                    f"{len(self.keysteps) - 1}, got {list(members)[:5]}"
                )
        # A list that names a keystep again lists it once.
        once = {task: tuple(dict.fromkeys(members)) for task, members in self.tasks.items()}
        object.__setattr__(self, "tasks", once)

    def __len__(self) -> int:
        return len(self.keysteps)

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.keysteps)}

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of all names and tasks; files that belong together share it."""
        tasks = sorted([name, list(members)] for name, members in self.tasks.items())
        text = json.dumps([list(self.keysteps), tasks], ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @cached_property
    def _tasks_of(self) -> dict[int, list[str]]:
        found: defaultdict[int, list[str]] = defaultdict(list)
        for task, members in self.tasks.items():
            for keystep in dict.fromkeys(members):
                found[keystep].append(task)
        return found

    def index(self, name: str, *, hints: bool = True) -> int:
        """Position of a keystep name; with ``hints``, the error suggests the nearest names."""
        if name in self._positions:
            return self._positions[name]
        from difflib import get_close_matches

        # Comparing takes long, and very long names are similar to none.
        others = self.keysteps if hints and len(name) <= 200 else ()
        near = [quoted(one) for one in get_close_matches(name, others, n=3, cutoff=0.4)]
        hint = f"did you mean {' or '.join(near)}?" if near else "none is similar"
        raise DataError(
            f"keystep must be one of the {len(self)} of the vocabulary, got {quoted(name)}; {hint}"
        )

    def tasks_of(self, keystep: int) -> tuple[str, ...]:
        """Names of the tasks that list ``keystep``."""
        return tuple(self._tasks_of.get(keystep, ()))


def require_same_vocabulary(one: Vocabulary, other: Vocabulary, what: str) -> None:
    """Refuse to combine two values of different vocabularies; ``what`` names them."""
    if one is not other and one != other:
        raise DataError(
            f"{what} must share one vocabulary, got one of {len(one)} keysteps (fingerprint "
            f"{one.fingerprint}) and one of {len(other)} (fingerprint {other.fingerprint})"
        )


def is_unicode(text: str) -> bool:
    """Check that text can be encoded; a lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
