"""The score stage: from videos to how well each keystep explains each of their rows.

Whoever scores goes through here, so that all scores are on one scale and each comes with its
video.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import Features, Scores, Video, Vocabulary
from stepgraph.encoders import WORDED, Encoder, EncoderOptions
from stepgraph.encoders.each import encode_each
from stepgraph.encoders.vectors import TaskVectors
from stepgraph.errors import ConfigError
from stepgraph.files.arrays import ArrayContent, open_arrays
from stepgraph.files.stored import Reading, check_seconds, note_length, stored_rows
from stepgraph.problems import Problems
from stepgraph.scoring.fusion import Fused, standardise, to_scale
from stepgraph.scoring.known import Known, know
from stepgraph.scoring.products import Products


@dataclass(frozen=True)
class StoredScores:
    """Scores that were computed elsewhere, an array for each video, instead of an encoder's.

    The authors of the paper publish theirs as tensors (``<video>.pt``) and as pickles
    (``<video>.pkl``); anybody can bring their own in any format of :mod:`stepgraph.files.arrays`.
    All have rows by keysteps, whose columns stand in the order of the vocabulary: the files
    do not say, so only their number can be checked.

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
        stored = open_arrays(
            self.path, ArrayContent("scores", "keystep", vocabulary.keysteps, hint)
        )
        reading, width = Reading(stored, problems), len(vocabulary)
        for video in videos:
            rows = reading.attempt(video.id, partial(stored.read, video.id, width))
            if rows is not None:
                note_length(stored, len(rows), video, self.seconds_per_row, problems)
            elif self.all_videos:
                rows = np.empty((0, width), np.float32)
            else:
                continue
            position = stored_rows(video.duration, hop, self.seconds_per_row)
            observed = position < len(rows)
            values = np.zeros((len(position), width), np.float32)
            values[observed] = rows[position[observed]]
            scores = Scores(video.id, values, observed, vocabulary, hop)
            yield video, to_scale(scores, self.scale)
        reading.finish()


Scorer: TypeAlias = Encoder | Fused | StoredScores
"""What scores come from: an encoder, two of them, or scores that were computed elsewhere."""


def score(
    videos: Iterable[Video],
    vocabulary: Vocabulary,
    scorer: Scorer,
    *,
    hop: float = 1.0,
    problems: Problems | None = None,
) -> Iterator[Scores]:
    """Score every keystep on every row of each video: the paper's ``f(v, n) . f(k)``.

    Videos are taken as they come, so a generator over a large corpus is fine.  Scores of
    encoders that look are brought to the scale of those that hear, since thresholds and
    temperatures are meant for that one.

    Parameters
    ----------
    hop
        Seconds of a row.
    problems
        Where to note a video that cannot be scored, so that the others go on; if not given,
        the first such video is an error.
    """
    return (scores for _, scores in score_each(videos, vocabulary, scorer, hop, problems))


def score_each(
    videos: Iterable[Video],
    vocabulary: Vocabulary,
    scorer: Scorer,
    hop: float = 1.0,
    problems: Problems | None = None,
    known: Known | None = None,
) -> Iterator[tuple[Video, Scores]]:
    """Score each video; see :func:`score`.  What is ``known`` is not encoded again."""
    if isinstance(scorer, StoredScores):
        yield from scorer.read_each(videos, vocabulary, hop, problems)
    elif isinstance(scorer, Fused):
        first, second = scorer.first, scorer.second
        again = second.encode_keysteps(vocabulary)
        for video, scores in score_each(videos, vocabulary, first, hop, problems):
            for _, features in encode_each([video], second, problems):
                other = score_features(features, again, vocabulary, second.options, hop)
                yield video, scorer.fusion.join(scores, other)
    else:
        keysteps, tasks, encoder = known or know(scorer, vocabulary)
        for video, features in encode_each(videos, scorer, problems):
            yield video, score_features(features, keysteps, vocabulary, encoder, hop, tasks)


def score_features(
    features: Features,
    keysteps: NDArray[np.float32],
    vocabulary: Vocabulary,
    encoder: EncoderOptions,
    hop: float = 1.0,
    tasks: TaskVectors | None = None,
) -> Scores:
    """Score one video from its features, on the common scale.

    Parameters
    ----------
    keysteps : shape (K, D)
        Unit vectors of the keysteps.
    encoder
        What made both, which decides their scale.
    tasks
        Vectors of the keysteps within each task, for decoders that ask for them.
    """
    if len(features.vectors) and keysteps.shape != (len(vocabulary), *features.vectors.shape[1:]):
        raise ConfigError(
            f"encoder {encoder.name!r} must give each keystep a vector as long as those of "
            f"videos, got shapes {keysteps.shape} and {features.vectors.shape}"
        )
    scores = Products(features, keysteps, vocabulary, hop=hop, tasks=tasks)
    return scores if encoder.kind in WORDED else standardise(scores)
