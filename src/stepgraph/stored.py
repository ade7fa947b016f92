"""Scores that were computed elsewhere, one table a video.

The authors of the paper publish theirs as tensors (``<video>.pt``) and as pickles
(``<video>.pkl``); anybody can bring their own in any format of :mod:`stepgraph.tables`.  All are
tables of rows by keysteps whose columns stand in the order of the vocabulary: the files do not
say, so only their number can be checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from stepgraph import tables
from stepgraph.core import LONGEST, Scores, Video, Vocabulary, rows_in
from stepgraph.errors import ConfigError, DataError
from stepgraph.problems import Problems
from stepgraph.tables import Kind, Tables, open_tables

_Loaded = TypeVar("_Loaded")

EXTREMA = {
    "coin-video": (-23.83, 24.12),
    "crosstask-video": (-63.42, 58.8),
    "coin-text": (-1.0, 1.0),
    "crosstask-text": (-1.0, 1.0),
}
"""Lowest and highest score to :func:`rescale` from: fixed numbers in the authors' scripts, by
data set and by what was scored.  The paper does not mention them."""


def read_scores(
    videos: Iterable[Video],
    vocabulary: Vocabulary,
    folder: Path,
    *,
    hop: float = 1.0,
    seconds_per_row: float = 1.0,
    problems: Problems,
) -> Iterator[Scores]:
    """Read the stored scores of each video, one at a time.

    Row ``t`` takes the stored row that covers its middle.  A video without a table is unobserved,
    as is its end where the table is shorter; what a table has past the end of its video is left
    out.  Both are noted in ``problems`` where they are more than a row.  A video whose table
    cannot be used is noted and unobserved, too; but where that is so of all that there are, the
    first is an error, since nothing is left to go on with.

    Parameters
    ----------
    folder
        Holds ``<video>.npy`` or another of :data:`stepgraph.tables.SUFFIXES`; of several the
        first is taken.  Or one file with a table for each video.
    seconds_per_row
        How much time one row of the tables covers.

    Raises
    ------
    DataError
        For a table that cannot be used, if ``problems`` is strict: finite numbers, with as many
        columns as the vocabulary has keysteps, are what it must hold.
    """
    check_seconds(hop=hop, seconds_per_row=seconds_per_row)
    stored = open_tables(folder, _kind(vocabulary))
    return _read_each(videos, vocabulary, stored, (hop, seconds_per_row), problems)


def read_table(path: Path, vocabulary: Vocabulary) -> NDArray[np.float32]:
    """Read the rows by keysteps of one file, whatever it is called; see :func:`read_scores`."""
    return tables.read_table(path, kind=_kind(vocabulary), width=len(vocabulary))


def _kind(vocabulary: Vocabulary) -> Kind:
    hint = "were they computed with another vocabulary?"
    return Kind("scores", "keystep", vocabulary.keysteps, hint)


def check_seconds(**options: float) -> None:
    """Refuse lengths of rows that no row has."""
    for name, seconds in options.items():
        if not 1e-3 <= seconds <= LONGEST:
            raise ConfigError(f"{name} must be between 0.001 seconds and a week, got {seconds!r}")


def _read_each(
    videos: Iterable[Video],
    vocabulary: Vocabulary,
    stored: Tables,
    rates: tuple[float, float],
    problems: Problems,
) -> Iterator[Scores]:
    hop, seconds_per_row = rates
    width = len(vocabulary)
    reading = Reading(stored, problems)
    for video in videos:
        table = reading.attempt(video.id, partial(stored.read, video.id, width))
        if table is None:
            table = np.zeros((0, width), np.float32)
        else:
            note_length(stored, len(table), video, seconds_per_row, problems)
        yield _resampled(table, video, vocabulary, hop, seconds_per_row)
    reading.finish()


class Stored(Protocol):
    """Something with a table for each video, as far as messages go; see :class:`Tables`."""

    @property
    def kind(self) -> Kind:
        """What the tables hold."""
        ...

    def names(self, video: str) -> list[str]:
        """What holds the table of a video."""
        ...

    def where(self, video: str) -> str:
        """Where the table of a video is or should be."""
        ...

    def absence(self) -> str:
        """What is wrong with a video that has no table."""
        ...


@dataclass
class Reading:
    """Tables being read one after the other, and how that went."""

    stored: Stored
    problems: Problems
    done: int = 0
    first: DataError | None = None

    def attempt(self, video: str, load: Callable[[], _Loaded]) -> _Loaded | None:
        """Load the table of a video, or note why there is none that can be used."""
        if not self._find(video):
            return None
        try:
            loaded = load()
        except DataError as error:
            if self.problems.strict:
                raise
            self._note(video, error)
            return None
        self.done += 1
        return loaded

    def _find(self, video: str) -> bool:
        names, noun = self.stored.names(video), self.stored.kind.noun
        if not names:
            kind = f"video without stored {noun}"
            self.problems.add(self.stored.where(video), kind, self.stored.absence())
        if len(names) > 1:
            what = f"must be the only file of its video, got {', '.join(names)}; this one is read"
            kind = f"several files of stored {noun}"
            self.problems.add(self.stored.where(video), kind, what)
        return bool(names)

    def _note(self, video: str, error: DataError) -> None:
        self.first = self.first or error
        where = self.stored.where(video)
        what = str(error).removeprefix(f"{where}: ")
        self.problems.add(where, f"unreadable stored {self.stored.kind.noun}", what)

    def finish(self) -> None:
        """Stop where not one could be used: nothing is left to go on with."""
        if self.first is not None and not self.done:
            raise self.first


def note_length(
    stored: Stored, rows: int, video: Video, seconds_per_row: float, problems: Problems
) -> None:
    """Note a table that is more than a row shorter or longer than its video."""
    expected = rows_in(video.duration, seconds_per_row)
    if abs(rows - expected) <= 1:
        return
    short = rows < expected
    problems.add(
        stored.where(video.id),
        f"{stored.kind.noun} {'shorter' if short else 'longer'} than the video",
        f"must have {expected:,} rows of {seconds_per_row:g} s, got {rows:,}; "
        f"{'the rest of the video is unobserved' if short else 'those past its end are left out'}",
    )


def stored_rows(duration: float, hop: float, seconds_per_row: float) -> NDArray[np.int64]:
    """Which row of a table covers the middle of each row of a video.

    >>> stored_rows(3.0, 1.0, 2.0).tolist()
    [0, 0, 1]
    """
    middle = (np.arange(rows_in(duration, hop)) + 0.5) * hop
    # Times carry float noise; a middle on a border belongs to the later row.
    position: NDArray[np.int64] = np.floor(middle / seconds_per_row + 1e-9).astype(np.int64)
    return position


def _resampled(
    table: NDArray[np.float32],
    video: Video,
    vocabulary: Vocabulary,
    hop: float,
    seconds_per_row: float,
) -> Scores:
    position = stored_rows(video.duration, hop, seconds_per_row)
    observed = position < len(table)
    values = np.zeros((len(position), len(vocabulary)), np.float32)
    values[observed] = table[position[observed]]
    return Scores(video.id, values, observed, vocabulary, hop)


def rescale(scores: Scores, low: float, high: float) -> Scores:
    """Map scores linearly so that ``low`` becomes -1 and ``high`` 1; others go beyond.

    The authors do this before they compare scores with a threshold: see :data:`EXTREMA`.
    """
    if not -math.inf < low < high < math.inf:
        raise ConfigError(f"low must be below high, both finite, got {low!r} and {high!r}")
    middle, half = (low + high) / 2, (high - low) / 2
    values = (scores.values.astype(np.float64) - middle) / half
    return replace(scores, values=values.astype(np.float32))
