"""What recognised videos tell about order: which keystep is done before which, and which next.

Neighbouring seconds of preliminary labels, which the transitions count, carry what belongs
together rather than what comes first: people announce, recall and repeat.  Here whole videos are
counted, after they were recognised.  So a count is one of labels that were found, not of truth.
All counts add up over videos.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.special import betaincinv

from stepgraph.core import Labels, Vocabulary, without_repetitions
from stepgraph.graph.shortest_paths import Matrix

Integers: TypeAlias = NDArray[np.int64]

# Share of the probability that lies in a credible interval.
CREDIBLE = 0.9


class Precedence(NamedTuple):
    """In how many videos one keystep is done before another, and in how many after it.

    ``share`` is the expected share of the former, with one imagined video each way and those that
    the written order counts as; ``low`` and ``high`` hold it with a probability of 90 %.
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
    vocabulary
        Whose lists are the written order.
    imagined
        How many videos that order counts as much as, beside those counted; 0 where it was not
        believed.
    """

    videos: Mapping[str, int]
    shown: Integers
    rows: Integers
    first: Integers
    last: Integers
    before: Matrix
    following: Matrix
    vocabulary: Vocabulary
    imagined: float = 0.0

    @classmethod
    def of_videos(cls, task: str, videos: Sequence[Labels], imagined: float = 0.0) -> Layers:
        """Count recognised videos of a task, at least one."""
        vocabulary = videos[0].vocabulary
        rows = [one.keysteps[one.keysteps >= 0] for one in videos]
        sequences = [without_repetitions(one.keysteps) for one in videos]
        pairs = [_before(one.keysteps) for one in videos]
        size = len(vocabulary)
        return cls(
            {task: len(videos)},
            _histogram([np.unique(one) for one in rows], size),
            _histogram(rows, size),
            _histogram([one[:1] for one in sequences], size),
            _histogram([one[-1:] for one in sequences], size),
            _counted(*(np.concatenate(ends) for ends in zip(*pairs, strict=True)), size=size),
            _counted(
                np.concatenate([one[:-1] for one in sequences]),
                np.concatenate([one[1:] for one in sequences]),
                size=size,
            ),
            vocabulary,
            imagined,
        )

    def __add__(self, other: Layers) -> Layers:
        tasks = {**self.videos, **other.videos}
        videos = {task: self.videos.get(task, 0) + other.videos.get(task, 0) for task in tasks}
        return Layers(
            dict(sorted(videos.items())),
            self.shown + other.shown,
            self.rows + other.rows,
            self.first + other.first,
            self.last + other.last,
            self.before + other.before,
            self.following + other.following,
            self.vocabulary,
            min(self.imagined, other.imagined),
        )

    @cached_property
    def _written(self) -> tuple[Matrix, Matrix]:
        """How many lists have one keystep before another, and directly before it."""
        lists = self.vocabulary.tasks.values()
        pairs = [pair for members in lists for pair in combinations(members, 2)]
        near = [pair for members in lists for pair in pairwise(members)]
        size = len(self.vocabulary)
        before, following = (np.array(one, np.int64).reshape(-1, 2) for one in (pairs, near))
        return (
            _counted(before[:, 0], before[:, 1], size=size),
            _counted(following[:, 0], following[:, 1], size=size),
        )

    def precedence(self, first: int, second: int) -> Precedence:
        """Say whether one keystep is done before another.

        >>> from stepgraph.core import Vocabulary
        >>> tea = Vocabulary(("boil", "pour"))
        >>> video = Labels("v", np.array([0, 0, -1, 1]), tea)
        >>> found = Layers.of_videos("tea", [video, video]).precedence(0, 1)
        >>> found.before, found.after, found.share, round(found.low, 2)
        (2, 0, 0.75, 0.37)
        """
        written = self._written[0]
        before, after = int(self.before[first, second]), int(self.before[second, first])
        one = before + 1 + self.imagined * float(written[first, second])
        other = after + 1 + self.imagined * float(written[second, first])
        low, high = betaincinv(one, other, [(1 - CREDIBLE) / 2, (1 + CREDIBLE) / 2])
        return Precedence(before, after, one / (one + other), float(low), float(high))

    def order(self, keysteps: Sequence[int]) -> list[int]:
        """Put keysteps into the order in which they are done: how many others each comes before.

        Of equals, the one that is listed first comes first.
        """
        places = list(keysteps)
        every = self.before + self.imagined * self._written[0]
        before = np.asarray(every[places][:, places].toarray(), dtype=np.float64)
        shares = (before + 1) / (before + before.T + 2)
        return [places[one] for one in np.argsort(-shares.sum(axis=1), kind="stable")]

    def next_after(
        self, keystep: int, limit: int = 4, *, among: Sequence[int] | None = None
    ) -> list[tuple[int, int]]:
        """Keysteps that most often come next, each with how often it did; of all or of some."""
        counted = self.following[[keystep]]
        every = (counted + self.imagined * self._written[1][[keystep]]).tocoo()
        found = sorted(zip((-every.data).tolist(), every.coords[1].tolist(), strict=True))
        wanted = [place for _, place in found if among is None or place in among]
        return [(place, int(counted[0, place])) for place in wanted[:limit]]


def _before(keysteps: Integers) -> tuple[Integers, Integers]:
    """Pairs of keysteps of which the middle of one comes before that of the other."""
    done = np.unique(keysteps[keysteps >= 0])
    middle = np.array([np.median(np.flatnonzero(keysteps == one)) for one in done])
    sooner, later = np.nonzero(middle[:, None] < middle[None, :])
    return done[sooner], done[later]


def _histogram(keysteps: Sequence[Integers], size: int) -> Integers:
    return np.bincount(np.concatenate(keysteps), minlength=size).astype(np.int64)


def _counted(source: Integers, target: Integers, *, size: int) -> Matrix:
    ones = np.ones(len(source), dtype=np.int64)
    return csr_array(coo_array((ones, (source, target)), shape=(size, size)))
