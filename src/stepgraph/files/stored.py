"""Reading of stored features and stored scores: one array for each video, or none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import LONGEST, Video, rows_in
from stepgraph.errors import ConfigError, DataError
from stepgraph.files.arrays import ArrayFiles
from stepgraph.problems import Problems

_Loaded = TypeVar("_Loaded")


def check_seconds(**options: float) -> None:
    """Refuse row lengths below 0.001 seconds or above a week."""
    for name, seconds in options.items():
        if not 1e-3 <= seconds <= LONGEST:
            raise ConfigError(f"{name} must be between 0.001 seconds and a week, got {seconds!r}")


@dataclass
class Reading:
    """Reader of arrays one after the other, which counts successes and keeps the first error."""

    stored: ArrayFiles
    problems: Problems
    done: int = 0
    first: DataError | None = None

    def attempt(self, video: str, load: Callable[[], _Loaded]) -> _Loaded | None:
        """Load the array of a video; if it is missing or unreadable, note that and return None."""
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
            what = f"must be the only file of its video, got {', '.join(names)}; this one is used"
            kind = f"several files of stored {noun}"
            self.problems.add(self.stored.where(video), kind, what)
        return bool(names)

    def _note(self, video: str, error: DataError) -> None:
        self.first = self.first or error
        where = self.stored.where(video)
        what = str(error).removeprefix(f"{where}: ")
        self.problems.add(where, f"unreadable stored {self.stored.kind.noun}", what, fatal=True)

    def finish(self) -> None:
        """Raise the first error if no array at all could be used."""
        if self.first is not None and not self.done:
            raise self.first


def note_length(
    stored: ArrayFiles, rows: int, video: Video, seconds_per_row: float, problems: Problems
) -> None:
    """Note an array that is more than a row shorter or longer than its video."""
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
    """Return the stored row that covers the middle of each row of a video.

    >>> stored_rows(3.0, 1.0, 2.0).tolist()
    [0, 0, 1]
    """
    middle = (np.arange(rows_in(duration, hop)) + 0.5) * hop
    # Times carry float noise; a middle on a border belongs to the later row.
    position: NDArray[np.int64] = np.floor(middle / seconds_per_row + 1e-9).astype(np.int64)
    return position
