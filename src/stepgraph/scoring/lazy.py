"""Lazy scores: products of vectors, computed only for the rows and keysteps that are used.

A day of video and ten thousand keysteps have a billion scores; their vectors are small.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import UNANNOTATED, Features, Scores, Segment, Vocabulary, rows_in
from stepgraph.core.rows import clamp, label_rows
from stepgraph.encoders.vectors import TaskVectors
from stepgraph.errors import DataError

LARGEST = 2**31
"""Maximum bytes of all scores of one video."""

# Scores that are computed at a time.
_PIECE = 2**22


class LazyScores(Scores):
    """Scores of one video as products of the vectors of its parts and of the keysteps.

    Attributes
    ----------
    vectors : shape (N, D)
        Embeddings of the parts: sentences, or clips of rows.
    part : shape (T,)
        Index of the part of each row, -1 where there is none.
    keysteps : shape (K, D)
    tasks
        Vectors of the keysteps within each task, if the encoder distinguishes them.
    allowed : shape (K,), bool
        The keysteps that may occur; all others score minus infinity.
    part_annotation : shape (N,)
        Annotated keystep of each part, else ``UNANNOTATED``.
    """

    def __new__(cls, *_: Any, **fields: Any) -> Any:
        """Make plain scores if ``values`` are given, as when a field is replaced."""
        return Scores(**fields) if "values" in fields else super().__new__(cls)

    def __init__(
        self,
        features: Features,
        keysteps: NDArray[np.float32],
        vocabulary: Vocabulary,
        *,
        hop: float = 1.0,
        tasks: TaskVectors | None = None,
        allowed: NDArray[np.bool_] | None = None,
    ) -> None:
        part = part_of_row(features.intervals, rows_in(features.duration, hop), hop)
        every = np.ones(len(vocabulary), dtype=bool)
        self.__dict__.update(
            video=features.video,
            observed=part >= 0,
            vocabulary=vocabulary,
            hop=hop,
            features=features,
            vectors=features.vectors,
            part=part,
            keysteps=keysteps,
            tasks=tasks,
            allowed=every if allowed is None else allowed,
            part_annotation=np.full(len(features.vectors), UNANNOTATED),
        )

    features: Features
    vectors: NDArray[np.float32]
    part: NDArray[np.int64]
    keysteps: NDArray[np.float32]
    tasks: TaskVectors | None
    allowed: NDArray[np.bool_]
    part_annotation: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"Products({self.video!r}, {len(self)} rows, {len(self.vocabulary)} keysteps)"

    @cached_property
    def values(self) -> NDArray[np.float32]:
        """All scores, shape (T, K); refused if they exceed :data:`LARGEST`."""
        rows, size = len(self), len(self.vocabulary)
        if 4 * rows * size > LARGEST:
            raise DataError(
                f"scores of video {self.video!r} must fit into {LARGEST / 1e9:.0f} GB, got "
                f"{rows:,} rows of {size:,} keysteps ({4e-9 * rows * size:.1f} GB); take "
                f"task-markov, path-search or argmax, which need a part of them at a time, or "
                f"fewer keysteps"
            )
        values = np.zeros((rows, size), dtype=np.float32)
        if self.observed.any():
            values[self.observed] = self._of(slice(None))[self.part[self.observed]]
        return values

    def _of(self, parts: slice) -> NDArray[np.float32]:
        found = self.vectors[parts] @ self.keysteps.T
        if not self.allowed.all():
            found = np.where(self.allowed, found, np.float32(-np.inf))
        return clamp(found, self.part_annotation[parts], np.arange(found.shape[1]))

    def best(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """See :meth:`~stepgraph.core.Scores.best`."""
        keysteps = np.zeros(len(self.vectors) + 1, dtype=np.int64)
        highest = np.zeros(len(self.vectors) + 1, dtype=np.float32)
        for piece in pieces(len(self.vectors), len(self.vocabulary)):
            found = self._of(piece)
            keysteps[:-1][piece] = found.argmax(axis=1)
            highest[:-1][piece] = found.max(axis=1)
        # Unobserved rows are part -1, which is the zero behind all others.
        return keysteps[self.part], highest[self.part]

    def at(self, rows: slice, keystep: int) -> NDArray[np.float32]:
        """See :meth:`~stepgraph.core.Scores.at`."""
        part = self.part[rows]
        if not self.allowed[keystep]:
            return np.full(len(part), -np.inf, dtype=np.float32)
        found = np.zeros(len(part), dtype=np.float32)
        present = part[part >= 0]
        products = self.vectors[present] @ self.keysteps[keystep]
        found[part >= 0] = clamp(
            products[:, None], self.part_annotation[present], np.array([keystep])
        )[:, 0]
        return found

    def restrict(self, keysteps: Iterable[int]) -> LazyScores:
        """See :meth:`~stepgraph.core.Scores.restrict`."""
        allowed = np.zeros(len(self.vocabulary), dtype=bool)
        allowed[list(keysteps)] = True
        return self._with(allowed=allowed & self.allowed)

    def annotate(self, segments: Iterable[Segment]) -> LazyScores:
        """See :meth:`~stepgraph.core.Scores.annotate`; annotated rows become parts."""
        annotation = label_rows(segments, len(self), self.hop, UNANNOTATED)
        [rows] = np.nonzero(annotation != UNANNOTATED)
        pairs = np.stack([self.part[rows], annotation[rows]], axis=1)
        new, which = np.unique(pairs, axis=0, return_inverse=True)
        nothing = np.zeros((1, self.vectors.shape[1]), self.vectors.dtype)
        present = np.concatenate([self.vectors, nothing])
        part = self.part.copy()
        part[rows] = len(self.vectors) + which.ravel()
        return self._with(
            # Rows without a sentence have part -1, the zeros behind all others.
            vectors=np.concatenate([self.vectors, present[new[:, 0]]]),
            part_annotation=np.concatenate([self.part_annotation, new[:, 1]]),
            part=part,
            observed=part >= 0,
            annotation=annotation,
        )

    def _with(self, **changed: Any) -> LazyScores:
        made: LazyScores = super().__new__(LazyScores)
        made.__dict__.update({**vars(self), **changed})
        made.__dict__.pop("values", None)  # which were of what has changed
        return made


def pieces(count: int, width: int) -> Iterator[slice]:
    """Split ``count`` parts into slices that fit into memory with ``width`` numbers a part."""
    step = 1 + _PIECE // (1 + width)
    return (slice(first, first + step) for first in range(0, count, step))


def part_of_row(intervals: NDArray[np.float64], rows: int, hop: float) -> NDArray[np.int64]:
    """Return the interval that covers most of each row, or -1 where none covers any of it.

    If two cover the same share, the earlier is taken.

    >>> part_of_row(np.array([[0.0, 1.4], [1.4, 2.0]]), 3, 1.0).tolist()
    [0, 1, -1]
    """
    first = np.clip(np.floor(intervals[:, 0] / hop), 0, rows).astype(np.int64)
    last = np.clip(np.ceil(intervals[:, 1] / hop), first, rows).astype(np.int64)
    # One candidate for each row that an interval touches.
    part = np.repeat(np.arange(len(intervals)), last - first)
    start_of_part = np.repeat(np.cumsum(last - first) - (last - first), last - first)
    row = np.repeat(first, last - first) + np.arange(len(part)) - start_of_part
    covered = np.minimum(intervals[part, 1], (row + 1) * hop) - np.maximum(
        intervals[part, 0], row * hop
    )
    # Written from worst to best, so that the best is written last.
    order = np.lexsort((-part, covered))
    # Less than a billionth of a row is float noise.
    order = order[covered[order] > 1e-9 * hop]
    best = np.full(rows, -1, dtype=np.int64)
    best[row[order]] = part[order]
    return best
