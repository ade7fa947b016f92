"""Scores that were computed elsewhere, one table a video.

The authors of the paper publish theirs as tensors (``<video>.pt``) and as pickles
(``<video>.pkl``); anybody can bring their own in any format of :mod:`stepgraph.files.arrays`.
All are tables of rows by keysteps whose columns stand in the order of the vocabulary: the files
do not say, so only their number can be checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import Scores, Video, Vocabulary
from stepgraph.files import arrays
from stepgraph.files.arrays import Kind, Tables, open_tables
from stepgraph.files.stored import Reading, check_seconds, note_length, stored_rows
from stepgraph.problems import Problems


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
        Holds ``<video>.npy`` or another of :data:`stepgraph.files.arrays.SUFFIXES`; of several the
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
    return arrays.read_table(path, kind=_kind(vocabulary), width=len(vocabulary))


def _kind(vocabulary: Vocabulary) -> Kind:
    hint = "were they computed with another vocabulary?"
    return Kind("scores", "keystep", vocabulary.keysteps, hint)


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
