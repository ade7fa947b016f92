"""Matches of names with the sentences of a task's videos, by similarity.

In six videos hardly any phrase recurs in the same words.  Its recurrence is then measured by
meaning: its similarity to a sentence of another video is as high as that of listed steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepgraph.decoders.observations import Floats, Integers, Observations
from stepgraph.scoring.lazy import LazyScores
from stepgraph.vocabulary.suggesting import Chosen, Encode, PhraseGroup, names_a_step, nearest

# A match is salient from this quantile of the sentences' best similarities in a video on.
_TOP = 0.9
# A name covers another one that matches the same sentence in this share of the videos.
SAME_SENTENCE = 0.5
# Share of the videos with a salient match that a phrase needs where hardly any phrase recurs.
_RECURS = 1 / 3


class NameMatches(NamedTuple):
    """Best matches of names in the videos of a task.

    Attributes
    ----------
    videos
        Observations of the videos.
    sentence : shape (V, n)
        Index of the most similar sentence, -1 where a video has none.
    salient : shape (V, n), bool
        True where that similarity reaches the level of the video.
    level : shape (V,)
        Least similarity of a salient match; infinite where a video has no embeddings.
    """

    videos: tuple[Observations, ...]
    sentence: Integers
    salient: NDArray[np.bool_]
    level: Floats

    def covers(self, other: NameMatches) -> NDArray[np.bool_]:
        """Mark the others that mostly match the same sentence as one of these, shape (m,)."""
        meet = self.salient[:, :, None] & (self.sentence[:, :, None] == other.sentence[:, None])
        times = (meet & other.salient[:, None]).sum(axis=0)
        enough = np.maximum(1, SAME_SENTENCE * other.salient.sum(axis=0))
        found: NDArray[np.bool_] = (times >= enough).any(axis=0)
        return found

    def at(self, number: int) -> NameMatches:
        """Return the matches of one name."""
        return self._replace(
            sentence=self.sentence[:, [number]], salient=self.salient[:, [number]]
        )


def match_names(
    videos: Sequence[Observations],
    names: Sequence[str],
    encode: Encode,
    level: Floats | None = None,
) -> NameMatches:
    """Match names, embedded without their task, with sentences.

    Parameters
    ----------
    level
        Least similarity of a salient match; computed from these names if not given.
    """
    sentence = np.full((len(videos), len(names)), -1, dtype=np.int64)
    best = np.full((len(videos), len(names)), -np.inf)
    levels = np.full(len(videos), np.inf)
    vectors = encode(names)
    for number, one in enumerate(videos):
        embeddings = one.vectors()
        if embeddings is not None and len(embeddings):
            near = embeddings @ vectors.T
            sentence[number], best[number] = near.argmax(axis=0), near.max(axis=0)
            levels[number] = np.quantile(near.max(axis=1), _TOP, method="higher")
    level = levels if level is None else level
    return NameMatches(tuple(videos), sentence, best >= level[:, None], level)


def recurring(
    kinds: Sequence[PhraseGroup],
    steps: NameMatches,
    earlier: Sequence[Chosen],
    encode: Encode,
    *,
    most: int,
    fewest: int,
) -> list[Chosen]:
    """Choose phrases with salient matches in many videos, away from those of listed steps.

    Parameters
    ----------
    kinds
        Phrases that no step covers.
    steps
        Matches of the listed steps.
    earlier
        Phrases chosen before, which are not repeated.
    most
        Most phrases to choose.
    fewest
        Least number of videos with a salient match.
    """
    kinds = [kind for kind in kinds if names_a_step(kind)]
    if not kinds:
        return []
    matches = match_names(steps.videos, [kind.name for kind in kinds], encode, steps.level)
    salient = matches.salient.sum(axis=0)
    free = (salient >= max(fewest, _RECURS * len(steps.videos))) & ~steps.covers(matches)
    free &= ~nearest(kinds, [one.kind for one in earlier], encode)
    own = np.array([len(kind.videos) for kind in kinds])
    order = np.lexsort((-own, -salient))
    chosen: list[Chosen] = []
    for number in order.tolist():
        if len(chosen) < most and free[number]:
            kind = kinds[number]
            chosen.append(Chosen(kind, (kind, _with_mentions(kind, matches.at(number)))))
            free &= ~nearest(kinds, [kind], encode) & ~matches.at(number).covers(matches)
    return chosen


def _with_mentions(kind: PhraseGroup, matches: NameMatches) -> PhraseGroup:
    """Return the phrase with its salient matches as mentions."""
    mentions = []
    for number, one in enumerate(matches.videos):
        if matches.salient[number, 0] and isinstance(one.scores, LazyScores):
            part = one.sources[matches.sentence[number, 0]]
            mentions.append((number, float(one.scores.features.intervals[part, 0])))
    return kind._replace(mentions=tuple(mentions))
