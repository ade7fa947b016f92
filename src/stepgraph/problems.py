"""Mistakes in the input, collected and counted while the rest is processed.

Data sets as they are published contain mistakes.  A reader adds each one here with its file and
line and goes on; a strict reader stops at the first.  Most concern an input that is still used.
A fatal one excludes its input, and only these make a command fail.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from stepgraph.errors import DataError, StepgraphError, one_line

# Problems of one kind that are kept in full; the others are only counted, so that a file of a
# million bad lines does not fill the memory.
_KEPT = 20


@dataclass(frozen=True)
class Problem:
    """Mistake in an input: where it is (``file:line``), its kind, and a description.

    Attributes
    ----------
    fatal
        True if the input, such as a video that cannot be read, has no result.
    scope
        Inputs concerned, if there are several: ``2,401 of 2,750 videos``.
    """

    where: str
    kind: str
    what: str
    fatal: bool = False
    scope: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class Problems:
    """Mistakes found so far.

    Parameters
    ----------
    strict
        Raise the first mistake as a :class:`~stepgraph.errors.StepgraphError`.

    Examples
    --------
    >>> problems = Problems()
    >>> problems.add("a.csv:7", "reversed segment", "end must be after start, got 4 and 2")
    >>> print(problems.summary())
    1 reversed segment (a.csv:7: end must be after start, got 4 and 2)
    >>> len(problems), len(problems.failed)
    (1, 0)
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.found: list[Problem] = []
        self._seen: Counter[tuple[str, bool]] = Counter()  # by kind and whether it is fatal

    def add(
        self, where: str, kind: str, what: str, *, fatal: bool = False, scope: str = ""
    ) -> None:
        """Count one mistake, or raise it if strict; see :class:`Problem`."""
        if self.strict:
            raise DataError(f"{where}: {what}")
        self._seen[kind, fatal] += 1
        if self._seen[kind, fatal] <= _KEPT:
            where, what = one_line(where), one_line(what)
            self.found.append(Problem(where, kind, what, fatal, scope))

    def add_error(
        self, error: StepgraphError, kind: str, origin: str, *, fatal: bool = False
    ) -> None:
        """Count an error whose message may begin with its place, or raise it if strict."""
        if self.strict:
            raise error
        message = str(error)
        found = re.match(rf"({re.escape(origin)}(?::\d+)?): ", message)
        where, begin = (found[1], found.end()) if found else (origin, 0)
        self.add(where, kind, message[begin:], fatal=fatal)

    def take(self, other: Problems, *kinds: str) -> None:
        """Add the mistakes of another collection, all or those of some kinds."""
        chosen = set(kinds) or set(other.counts)
        self._seen += Counter({key: n for key, n in other._seen.items() if key[0] in chosen})
        self.found += [problem for problem in other.found if problem.kind in chosen]

    @property
    def seen(self) -> list[tuple[str, bool, int]]:
        """Number of mistakes of each kind, fatal ones apart: (kind, fatal, count)."""
        return [(kind, fatal, count) for (kind, fatal), count in self._seen.items()]

    @classmethod
    def recall(cls, found: Iterable[Problem], seen: Iterable[tuple[str, bool, int]]) -> Problems:
        """Rebuild the collection of another process or run."""
        problems = cls()
        problems.found = list(found)
        problems._seen = Counter({(kind, fatal): count for kind, fatal, count in seen})
        return problems

    @property
    def counts(self) -> Counter[str]:
        """Number of mistakes of each kind."""
        found: Counter[str] = Counter()
        for (kind, _), count in self._seen.items():
            found[kind] += count
        return found

    @property
    def failed(self) -> Problems:
        """Fatal mistakes; where there are any, a command has failed in part."""
        fatal = Problems()
        fatal.found = [problem for problem in self.found if problem.fatal]
        fatal._seen = Counter({key: count for key, count in self._seen.items() if key[1]})
        return fatal

    def __len__(self) -> int:
        return self._seen.total()

    def summary(self) -> str:
        """Summarise on one line: the number and first mistake of each kind, and the fatal ones."""
        return "; ".join(self._of_kind(kind, count) for kind, count in self.counts.items())

    def _of_kind(self, kind: str, count: int) -> str:
        first, *others = (problem for problem in self.found if problem.kind == kind)
        fatal = [problem.where for problem in others if problem.fatal]
        more = self._seen[kind, True] - first.fatal - len(fatal)
        named = ", ".join(fatal) + (f" and {more:,} more" if more else "")
        many = first.scope or (f"{count:,} ×" if count > 1 else "1")
        return f"{many} {kind} ({first}{f'; also {named}' if fatal else ''})"
