"""Alternatives to the label of each row of a video, with their probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ALTERNATIVES = 3
"""Maximum number of alternatives per chapter."""
_TOLD = 0.005


class Alternatives(NamedTuple):
    """The keysteps that each row may show, the most probable first, each shape (T, n).

    ``keysteps`` is negative for background, and where there is no other; ``confidence`` is the
    probability of each, from 0 to 1.
    """

    keysteps: NDArray[np.int64]
    confidence: NDArray[np.float64]

    @classmethod
    def none(cls, rows: int) -> Alternatives:
        """Make empty alternatives; one column is more than is shown, for the label itself."""
        shape = (rows, ALTERNATIVES + 1)
        return cls(np.full(shape, -1, dtype=np.int64), np.zeros(shape))

    @classmethod
    def best_of(cls, worth: NDArray[np.float64], names: NDArray[np.int64]) -> Alternatives:
        """Take the most probable keysteps of each row; ``names`` has the keystep of a column."""
        found = cls.none(len(worth))
        best = np.argsort(-worth, axis=1, kind="stable")[:, : ALTERNATIVES + 1]
        found.keysteps[:, : best.shape[1]] = names[best]
        likely = np.take_along_axis(worth, best, axis=1)
        found.confidence[:, : best.shape[1]] = np.maximum(likely, 0.0)
        return found

    def besides(
        self,
        keysteps: NDArray[np.int64],
        probability: NDArray[np.float64],
        confidence: NDArray[np.float64],
    ) -> Alternatives:
        """Give each label its confidence, and rescale the probabilities of the others.

        The remaining mass is divided in proportion to their posteriors.
        """
        left = (1 - confidence) / np.maximum(1 - probability, 1e-12)
        same = self.keysteps == keysteps[:, None]
        shares = np.where(same, confidence[:, None], left[:, None] * self.confidence)
        return Alternatives(self.keysteps, np.clip(shares, 0.0, 1.0))

    def put(self, whole: Alternatives, rows: slice) -> None:
        """Write the alternatives of ``rows`` into those of a whole video."""
        whole.keysteps[rows], whole.confidence[rows] = self

    def over(self, rows: slice, own: int) -> Iterator[tuple[int, float]]:
        """Yield the other keysteps of some rows with their mean probability, highest first."""
        others, places = np.unique(self.keysteps[rows], return_inverse=True)
        sums = np.bincount(places.ravel(), self.confidence[rows].ravel(), len(others))
        sure = sums / max(1, rows.stop - rows.start)
        sure[(others == own) | (others < 0)] = 0.0
        for at in np.argsort(-sure, kind="stable")[:ALTERNATIVES]:
            if sure[at] >= _TOLD:
                yield int(others[at]), float(sure[at])
