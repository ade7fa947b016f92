"""What recognised videos tell about order: which keystep is done before which, and which next.

Neighbouring seconds of preliminary labels, which the transitions count, carry what belongs
together rather than what comes first: people announce, recall and repeat.  Here whole videos are
counted, after they were recognised.  So a count is one of labels that were found, not of truth.
All counts add up over videos.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.special import betaincinv

from stepgraph.core import Labels, without_repetitions
from stepgraph.graph.shortest_paths import Matrix

Integers: TypeAlias = NDArray[np.int64]

# Share of the probability that lies in a credible interval.
CREDIBLE = 0.9


class Precedence(NamedTuple):
    """In how many videos one keystep is done before another, and in how many after it.

    ``share`` is the expected share of the former, with one imagined video each way; ``low`` and
    ``high`` hold it with a probability of 90 %.
    """

    before: int
    after: int
    share: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Layers:
    """Counts of recognised videos.

    Attributes
    ----------
    videos
        How many videos of each task were counted.
    shown, rows, first, last : shape (K,)
        In how many videos a keystep is done at all, on how many rows, and in how many it is the
        first or the last.
    before : shape (K, K)
        In how many videos the middle of one keystep comes before that of another.
    following : shape (K, K)
        How often one was the next after another.
    """

    videos: Mapping[str, int]
    shown: Integers
    rows: Integers
    first: Integers
    last: Integers
    before: Matrix
    following: Matrix

    @classmethod
    def of_video(cls, task: str, labels: Labels) -> Layers:
        """Count one recognised video."""
        size, keysteps = len(labels.vocabulary), labels.keysteps
        done = np.unique(keysteps[keysteps >= 0])
        sequence = without_repetitions(keysteps)
        middle = np.array([np.median(np.flatnonzero(keysteps == one)) for one in done])
        sooner, later = np.nonzero(middle[:, None] < middle[None, :])
        rows = np.bincount(keysteps[keysteps >= 0], minlength=size)
        return cls(
            {task: 1},
            np.bincount(done, minlength=size),
            rows,
            np.bincount(sequence[:1], minlength=size),
            np.bincount(sequence[-1:], minlength=size),
            _counted(done[sooner], done[later], size),
            _counted(sequence[:-1], sequence[1:], size),
        )

    def __add__(self, other: Layers) -> Layers:
        tasks = {**self.videos, **other.videos}
        videos = {task: self.videos.get(task, 0) + other.videos.get(task, 0) for task in tasks}
        sums = (
            getattr(self, name) + getattr(other, name)
            for name in ("shown", "rows", "first", "last", "before", "following")
        )
        return Layers(dict(sorted(videos.items())), *sums)

    def precedence(self, first: int, second: int) -> Precedence:
        """Say whether one keystep is done before another.

        >>> from stepgraph.core import Vocabulary
        >>> tea = Vocabulary(("boil", "pour"))
        >>> video = Layers.of_video("tea", Labels("v", np.array([0, 0, -1, 1]), tea))
        >>> found = (video + video).precedence(0, 1)
        >>> found.before, found.after, found.share, round(found.low, 2)
        (2, 0, 0.75, 0.37)
        """
        before, after = int(self.before[first, second]), int(self.before[second, first])
        low, high = betaincinv(before + 1, after + 1, [(1 - CREDIBLE) / 2, (1 + CREDIBLE) / 2])
        share = (before + 1) / (before + after + 2)
        return Precedence(before, after, share, float(low), float(high))

    def order(self, keysteps: Sequence[int]) -> list[int]:
        """Put keysteps into the order in which they are done: how many others each comes before.

        Of equals, the one that is listed first comes first.
        """
        places = list(keysteps)
        before = np.asarray(self.before[places][:, places].toarray(), dtype=np.float64)
        shares = (before + 1) / (before + before.T + 2)
        return [places[one] for one in np.argsort(-shares.sum(axis=1), kind="stable")]

    def next_after(
        self, keystep: int, limit: int = 4, *, among: Sequence[int] | None = None
    ) -> list[tuple[int, int]]:
        """Keysteps that most often come next, each with how often it did; of all or of some."""
        row = self.following[[keystep]].tocoo()
        found = sorted(zip(row.coords[1].tolist(), row.data.tolist(), strict=True))
        wanted = [pair for pair in found if among is None or pair[0] in among]
        return sorted(wanted, key=lambda pair: -pair[1])[:limit]


def _counted(source: Integers, target: Integers, size: int) -> Matrix:
    ones = np.ones(len(source), dtype=np.int64)
    return csr_array(coo_array((ones, (source, target)), shape=(size, size)))
