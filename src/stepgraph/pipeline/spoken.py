"""Where in the videos of a task a name is best said, and whether it is said clearly there.

In six videos hardly anything is said twice in the same words.  That something recurs is then told
by its meaning: a phrase of one video is as near to a moment of another one as listed steps are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepgraph.decoders.hearing import Floats, Heard, Integers
from stepgraph.scoring.products import Products
from stepgraph.vocabulary.suggesting import Chosen, Encode, Kind, names_a_step, nearest

# Said clearly is what is as near to a name as the nearest tenth of all that is said in a video.
_CLEAREST = 0.9
# A name stands for another one that is best said at its moment in so many of the videos.
SAME_MOMENT = 0.5
# Share of the videos in which a phrase must be said clearly, where hardly anything is said twice.
_RECURS = 1 / 3


class Spoken(NamedTuple):
    """How names are said in the videos of a task.

    Attributes
    ----------
    videos
        What is said in them.
    moment : shape (V, n)
        Where in a video each is best said, -1 where nothing is said.
    clear : shape (V, n), bool
        Whether it is said clearly there.
    level : shape (V,)
        How near that is; infinite where nothing is said in vectors.
    """

    videos: tuple[Heard, ...]
    moment: Integers
    clear: NDArray[np.bool_]
    level: Floats

    def covers(self, other: Spoken) -> NDArray[np.bool_]:
        """Which others are mostly best said where one of these is, shape (m,)."""
        meet = self.clear[:, :, None] & (self.moment[:, :, None] == other.moment[:, None])
        times = (meet & other.clear[:, None]).sum(axis=0)
        enough = np.maximum(1, SAME_MOMENT * other.clear.sum(axis=0))
        found: NDArray[np.bool_] = (times >= enough).any(axis=0)
        return found

    def at(self, number: int) -> Spoken:
        """How one of the names is said."""
        return self._replace(moment=self.moment[:, [number]], clear=self.clear[:, [number]])


def find_spoken(
    videos: Sequence[Heard], names: Sequence[str], encode: Encode, level: Floats | None = None
) -> Spoken:
    """Hold names, without that of their task, against what is said.

    Parameters
    ----------
    level
        How near is clear; told by these names themselves if not given.
    """
    moment = np.full((len(videos), len(names)), -1, dtype=np.int64)
    best = np.full((len(videos), len(names)), -np.inf)
    told = np.full(len(videos), np.inf)
    vectors = encode(names)
    for number, one in enumerate(videos):
        said = one.vectors()
        if said is not None and len(said):
            near = said @ vectors.T
            moment[number], best[number] = near.argmax(axis=0), near.max(axis=0)
            told[number] = np.quantile(near.max(axis=1), _CLEAREST, method="higher")
    level = told if level is None else level
    return Spoken(tuple(videos), moment, best >= level[:, None], level)


def recurring(
    kinds: Sequence[Kind],
    steps: Spoken,
    known: Sequence[Chosen],
    encode: Encode,
    *,
    most: int,
    fewest: int,
) -> list[Chosen]:
    """Phrases that are said clearly in many videos, and where no listed step is.

    Parameters
    ----------
    kinds
        Those that no step stands for.
    steps
        How the listed steps are said.
    known
        What was chosen before, which these must not say again.
    most
        How many to choose.
    fewest
        Videos that must say it clearly.
    """
    kinds = [kind for kind in kinds if names_a_step(kind)]
    if not kinds:
        return []
    said = find_spoken(steps.videos, [kind.name for kind in kinds], encode, steps.level)
    clear = said.clear.sum(axis=0)
    free = (clear >= max(fewest, _RECURS * len(steps.videos))) & ~steps.covers(said)
    free &= ~nearest(kinds, [one.kind for one in known], encode)
    own = np.array([len(kind.videos) for kind in kinds])
    order = np.lexsort((-own, -clear))
    chosen: list[Chosen] = []
    for number in order.tolist():
        if len(chosen) < most and free[number]:
            kind = kinds[number]
            chosen.append(Chosen(kind, (kind, _where_clear(kind, said.at(number)))))
            free &= ~nearest(kinds, [kind], encode) & ~said.at(number).covers(said)
    return chosen


def _where_clear(kind: Kind, said: Spoken) -> Kind:
    """The same phrase, as if it were said wherever something like it is said clearly."""
    mentions = []
    for number, one in enumerate(said.videos):
        if said.clear[number, 0] and isinstance(one.scores, Products):
            part = one.said[said.moment[number, 0]]
            mentions.append((number, float(one.scores.features.intervals[part, 0])))
    return kind._replace(mentions=tuple(mentions))
