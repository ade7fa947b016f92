"""The score stage: from videos to how well each keystep explains each of their rows.

Whoever scores goes through here, so that all scores are on one scale and each comes with its
video.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import Features, Scores, Video, Vocabulary
from stepgraph.encoders import Encoder, EncoderOptions
from stepgraph.encoders.each import encode_each
from stepgraph.encoders.text import TextEncoder
from stepgraph.encoders.vectors import TaskVectors
from stepgraph.problems import Problems
from stepgraph.scoring.fusion import Fused, standardise
from stepgraph.scoring.products import Products
from stepgraph.scoring.stored_scores import StoredScores

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
) -> Iterator[tuple[Video, Scores]]:
    """Score each video; see :func:`score`."""
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
        keysteps = scorer.encode_keysteps(vocabulary)
        tasks = scorer.encode_tasks(vocabulary) if isinstance(scorer, TextEncoder) else None
        for video, features in encode_each(videos, scorer, problems):
            options = scorer.options
            yield video, score_features(features, keysteps, vocabulary, options, hop, tasks)


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
