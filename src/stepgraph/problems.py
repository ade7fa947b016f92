"""What was wrong in the input, counted and kept while the rest goes on.

Data sets as they are published contain mistakes.  A reader adds each one here with its file and
line and goes on; a strict reader stops at the first.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from stepgraph.errors import DataError

# Problems of one kind that are kept in full; the others are only counted, so that a file of a
# million bad lines does not fill the memory.
_KEPT = 20


@dataclass(frozen=True)
class Problem:
    """One mistake: where it is (``file:line``), which kind it is, and what it is in words."""

    where: str
    kind: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class Problems:
    """Mistakes found so far.

    Parameters
    ----------
    strict
        Make the first mistake a :class:`~stepgraph.errors.DataError`.

    Examples
    --------
    >>> problems = Problems()
    >>> problems.add("a.csv:7", "reversed segment", "end must be after start, got 4 and 2")
    >>> print(problems.summary())
    1 reversed segment (a.csv:7: end must be after start, got 4 and 2)
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.counts: Counter[str] = Counter()
        self.found: list[Problem] = []

    def add(self, where: str, kind: str, what: str) -> None:
        """Count one mistake, or stop at it."""
        if self.strict:
            raise DataError(f"{where}: {what}")
        self.counts[kind] += 1
        if self.counts[kind] <= _KEPT:
            self.found.append(Problem(where, kind, what))

    def take(self, other: Problems, *kinds: str) -> None:
        """Add all mistakes of some kinds that another found."""
        for kind in kinds:
            if other.counts[kind]:
                self.counts[kind] += other.counts[kind]
        self.found += [problem for problem in other.found if problem.kind in kinds]

    def __len__(self) -> int:
        return self.counts.total()

    def summary(self) -> str:
        """One line: how many of each kind, with the first of each."""
        first = {problem.kind: problem for problem in reversed(self.found)}
        return "; ".join(f"{count} {kind} ({first[kind]})" for kind, count in self.counts.items())
