"""The score stage: from videos to how well each keystep explains each of their rows.

Whoever scores goes through here, so that all scores are on one scale and each comes with its
video.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import Features, Scores, Video, Vocabulary
from stepgraph.encoders import Encoder, EncoderOptions
from stepgraph.encoders.each import encode_each
from stepgraph.encoders.text import TextEncoder
from stepgraph.encoders.vectors import TaskVectors
from stepgraph.problems import Problems
from stepgraph.scoring.fusion import Fused
from stepgraph.scoring.products import Products
from stepgraph.scoring.scales import standardise
from stepgraph.scoring.stored_scores import StoredScores

Scorer: TypeAlias = Encoder | Fused | StoredScores
"""What scores come from: an encoder, two of them, or scores that were computed elsewhere."""


class Scored(NamedTuple):
    """The scores of a video, with the video."""

    video: Video
    scores: Scores


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
    return (one.scores for one in score_each(videos, vocabulary, scorer, hop, problems))


def score_each(
    videos: Iterable[Video],
    vocabulary: Vocabulary,
    scorer: Scorer,
    hop: float = 1.0,
    problems: Problems | None = None,
) -> Iterator[Scored]:
    """Score each video; see :func:`score`."""
    if isinstance(scorer, StoredScores):
        for video, scores in scorer.read_each(videos, vocabulary, hop, problems):
            yield Scored(video, scores)
    elif isinstance(scorer, Fused):
        first, second = scorer.first, scorer.second
        again = second.encode_keysteps(vocabulary)
        for video, scores in score_each(videos, vocabulary, first, hop, problems):
            for _, features in encode_each([video], second, problems):
                other = score_features(features, again, vocabulary, second.options, hop)
                yield Scored(video, scorer.fusion.join(scores, other))
    else:
        keysteps = scorer.encode_keysteps(vocabulary)
        tasks = scorer.encode_tasks(vocabulary) if isinstance(scorer, TextEncoder) else None
        for video, features in encode_each(videos, scorer, problems):
            scores = score_features(features, keysteps, vocabulary, scorer.options, hop, tasks)
            yield Scored(video, scores)


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
    scores = Products(features, keysteps, vocabulary, hop=hop, tasks=tasks)
    return scores if encoder.modality == "text" else standardise(scores)
