"""Scores that were computed elsewhere, an array for each video.

The authors of the paper publish theirs as tensors (``<video>.pt``) and as pickles
(``<video>.pkl``); anybody can bring their own in any format of :mod:`stepgraph.files.arrays`.
All have rows by keysteps, whose columns stand in the order of the vocabulary: the files
do not say, so only their number can be checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from stepgraph.core import Scores, Video, Vocabulary
from stepgraph.files.arrays import Kind, open_arrays
from stepgraph.files.stored import Reading, check_seconds, note_length, stored_rows
from stepgraph.problems import Problems
from stepgraph.scoring.fusion import to_scale


@dataclass(frozen=True)
class StoredScores:
    """Scores on disk, to be taken instead of an encoder's.

    Row ``t`` of a video takes the stored row that covers its middle.  Its end is unobserved where
    there are fewer stored rows; what is stored past its end is left out.  Both are problems
    where they are more than a row.

    Attributes
    ----------
    path
        Holds ``<video>.npy`` or another of :data:`stepgraph.files.arrays.SUFFIXES`; of several the
        first is taken.  Or one file with the scores of each video.
    scale
        Which of :data:`~stepgraph.scoring.fusion.SCALES` they are brought to.
    seconds_per_row
        How much time one stored row covers.
    all_videos
        Give videos without usable scores, too, all of their rows unobserved; they are left out
        if not asked for.
    """

    path: Path
    scale: str = "raw"
    seconds_per_row: float = 1.0
    all_videos: bool = False

    def read_each(
        self,
        videos: Iterable[Video],
        vocabulary: Vocabulary,
        hop: float = 1.0,
        problems: Problems | None = None,
    ) -> Iterator[tuple[Video, Scores]]:
        """Read the scores of each video when it comes.

        Where not one of those that are there can be used, the first is an error, since nothing
        is left to go on with.

        Parameters
        ----------
        problems
            Receives videos whose scores are missing, unreadable, shorter or longer; strict if not
            given.
        """
        check_seconds(hop=hop, seconds_per_row=self.seconds_per_row)
        problems = problems if problems is not None else Problems(strict=True)
        hint = "were they computed with another vocabulary?"
        stored = open_arrays(self.path, Kind("scores", "keystep", vocabulary.keysteps, hint))
        reading, width = Reading(stored, problems), len(vocabulary)
        for video in videos:
            rows = reading.attempt(video.id, partial(stored.read, video.id, width))
            if rows is not None:
                note_length(stored, len(rows), video, self.seconds_per_row, problems)
            elif self.all_videos:
                rows = np.zeros((0, width), np.float32)
            else:
                continue
            position = stored_rows(video.duration, hop, self.seconds_per_row)
            observed = position < len(rows)
            values = np.zeros((len(position), width), np.float32)
            values[observed] = rows[position[observed]]
            scores = Scores(video.id, values, observed, vocabulary, hop)
            yield video, to_scale(scores, self.scale)
        reading.finish()
