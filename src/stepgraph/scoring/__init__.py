"""The score stage: from videos to the score of each keystep on each of their rows.

Every caller scores through this module, so that all scores are on one scale and each comes with
its video.
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
from stepgraph.encoders.encoding import encode_each
from stepgraph.encoders.vectors import TaskVectors
from stepgraph.errors import ConfigError
from stepgraph.files.arrays import ArrayContent, open_arrays
from stepgraph.files.stored import Reading, check_seconds, note_length, stored_rows
from stepgraph.problems import Problems
from stepgraph.scoring.embeddings import VocabularyEmbeddings, embed_vocabulary
from stepgraph.scoring.fusion import Fused, standardize, to_scale
from stepgraph.scoring.lazy import LazyScores


@dataclass(frozen=True)
class StoredScores:
    """Scores that another program computed, an array for each video, instead of an encoder's.

    The authors of the paper publish theirs as tensors (``<video>.pt``) and as pickles
    (``<video>.pkl``); anybody can bring their own in any format of :mod:`stepgraph.files.arrays`.
    All have shape (rows, keysteps), with columns in the order of the vocabulary: the files do
    not record that order, so only the number of columns can be checked.

    Row ``t`` of a video takes the stored row that covers its middle.  Rows past the last stored
    one are unobserved; stored rows past the end of the video are left out.  Both are problems if
    they are more than a row.

    Attributes
    ----------
    path
        Folder with ``<video>.npy`` or another of :data:`stepgraph.files.arrays.SUFFIXES` (of
        several the first is read), or one file with the scores of each video.
    scale
        Scale that the scores are mapped to, one of :data:`~stepgraph.scoring.fusion.SCALES`.
    seconds_per_row
        Seconds that one stored row covers.
    all_videos
        Give videos without usable scores as well, with all rows unobserved; by default they are
        left out.
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
        """Yield each video with its stored scores, which are read one video at a time.

        If none of the stored scores can be used, the first problem is raised as an error, since
        nothing is left to decode.

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
"""Origin of scores: an encoder, two of them, or stored scores."""


def score(
    videos: Iterable[Video],
    vocabulary: Vocabulary,
    scorer: Scorer,
    *,
    hop: float = 1.0,
    problems: Problems | None = None,
) -> Iterator[Scores]:
    """Score every keystep on every row of each video: the paper's ``f(v, n) . f(k)``.

    Videos are scored as they are drawn, so a generator over a large corpus is fine.  Scores of
    visual encoders are mapped to the scale of sentence similarities, for which thresholds and
    temperatures are chosen.

    Parameters
    ----------
    hop
        Length of a row in seconds.
    problems
        Receives videos that cannot be scored, and the others go on; if not given, the first such
        video is an error.
    """
    return (scores for _, scores in score_each(videos, vocabulary, scorer, hop, problems))


def score_each(
    videos: Iterable[Video],
    vocabulary: Vocabulary,
    scorer: Scorer,
    hop: float = 1.0,
    problems: Problems | None = None,
    embeddings: VocabularyEmbeddings | None = None,
) -> Iterator[tuple[Video, Scores]]:
    """Score each video; see :func:`score`.  ``embeddings`` holds the encoded vocabulary."""
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
        keysteps, tasks, encoder = embeddings or embed_vocabulary(scorer, vocabulary)
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
        Options of the encoder of both, which decide the scale.
    tasks
        Vectors of the keysteps within each task, for decoders that use them.
    """
    if len(features.vectors) and keysteps.shape != (len(vocabulary), *features.vectors.shape[1:]):
        raise ConfigError(
            f"encoder {encoder.name!r} must give each keystep a vector as long as those of "
            f"videos, got shapes {keysteps.shape} and {features.vectors.shape}"
        )
    scores = LazyScores(features, keysteps, vocabulary, hop=hop, tasks=tasks)
    return scores if encoder.kind in WORDED else standardize(scores)
