"""Similarities between the observations of a video and the keysteps of tasks.

A sentence lasts for many rows; here it is one observation, weighted by its rows.  Similarities to
many tasks are computed in pieces, so that memory does not grow with rows times keysteps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import UNANNOTATED, Scores
from stepgraph.core.rows import clamp
from stepgraph.scoring.lazy import LazyScores, pieces

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Tasks: TypeAlias = Mapping[str, tuple[int, ...]]


class TaskSimilarity(NamedTuple):
    """Similarity of each observation to a task.

    Attributes
    ----------
    keysteps : shape (N, n)
        Similarity to each of its keysteps; minus infinity where one is excluded.
    title : shape (N,) or None
        Similarity to the title of the task, where the scores have its embedding.
    """

    keysteps: Floats
    title: Floats | None


@dataclass(frozen=True, eq=False)
class Observations:
    """Observations on some rows of a video: its sentences, or its observed rows.

    Attributes
    ----------
    scores
        Scores of the whole video.
    index : shape (T,)
        Observation index of each row, -1 where it is unobserved.
    sources : shape (N,)
        Index of each observation among the parts (sentences) or the rows of the scores.
    weight : shape (N,)
        Number of rows of each observation.
    """

    scores: Scores
    index: Integers
    sources: Integers
    weight: Floats

    @cached_property
    def annotation(self) -> Integers:
        """Annotation of each observation, else ``UNANNOTATED``, shape (N,)."""
        if isinstance(self.scores, LazyScores):
            return self.scores.part_annotation[self.sources]
        if self.scores.annotation is None:
            return np.full(len(self.sources), UNANNOTATED)
        return self.scores.annotation[self.sources]

    @property
    def row_annotation(self) -> Integers:
        """Annotation of each row, else ``UNANNOTATED``, shape (T,)."""
        return np.append(self.annotation, UNANNOTATED)[self.index]

    @property
    def unannotated_weight(self) -> Floats:
        """Number of rows of each observation, 0 where it is annotated, shape (N,)."""
        return np.where(self.annotation == UNANNOTATED, self.weight, 0.0)

    def runs(self) -> tuple[Integers, Integers]:
        """Length and observation index of each run of rows, -1 where they are unobserved."""
        starts = np.flatnonzero(np.diff(self.index, prepend=-2))
        return np.diff(starts, append=len(self.index)), self.index[starts]

    def vectors(self) -> NDArray[np.float32] | None:
        """Embeddings of the observations, shape (N, D), or None where the scores have none."""
        return self.scores.vectors[self.sources] if isinstance(self.scores, LazyScores) else None

    def similarity(self, task: str, members: tuple[int, ...]) -> TaskSimilarity:
        """Compute the similarity of every observation to one task."""
        scores, keysteps = self.scores, list(members)
        if not isinstance(scores, LazyScores):
            values = scores.values[self.sources][:, keysteps]
            return TaskSimilarity(values.astype(np.float64), None)
        vectors, title = scores.vectors[self.sources], None
        own = scores.tasks is not None and task in scores.tasks.blocks
        if own and scores.tasks is not None:
            block = scores.tasks.vectors[scores.tasks.blocks[task]]
            found, title = vectors @ block[:-1].T, (vectors @ block[-1]).astype(np.float64)
        else:
            found = vectors @ scores.keysteps[keysteps].T
        found = np.where(scores.allowed[keysteps], found, np.float32(-np.inf))
        found = clamp(found, self.annotation, np.array(keysteps))
        return TaskSimilarity(found.astype(np.float64), title)

    def task_similarity(self, tasks: Tasks) -> Floats:
        """Similarity of the video to each task, averaged over rows and over keysteps, shape (Z,).

        The mean over rows of the most similar keystep, plus the mean over keysteps of the most
        similar row; the title of a task counts as one more keystep.  The first mean alone favours
        long lists, the second short ones.  Minus infinity where every keystep of a task is
        excluded.  An annotated observation has similarity 0 to a task without its keystep.
        """
        targets = targets_of(self.scores, tasks)
        ever = np.full(len(targets.keysteps), -np.inf)
        explained, rows = np.zeros(len(tasks)), np.zeros(len(tasks))
        for piece, found in self._pieces(targets):
            ever = np.maximum(ever, found.max(axis=0))
            closest = np.maximum.reduceat(found, targets.first, axis=1)
            possible = np.isfinite(closest)
            explained += self.weight[piece] @ np.where(possible, closest, 0.0)
            annotated = self.annotation[piece, None] >= 0
            rows += self.weight[piece] @ (possible | annotated)
        possible = np.isfinite(ever)
        observed = np.add.reduceat(np.where(possible, ever, 0.0), targets.first)
        keysteps = np.add.reduceat(possible.astype(np.float64), targets.first)
        total = explained / np.maximum(rows, 1) + observed / np.maximum(keysteps, 1)
        return np.where(rows > 0, total, -np.inf)

    def closest(self, tasks: Tasks) -> Floats:
        """Largest similarity of each observation to a keystep or title of each task, (N, Z)."""
        targets = targets_of(self.scores, tasks)
        found = [
            np.maximum.reduceat(one, targets.first, axis=1) for _, one in self._pieces(targets)
        ]
        return np.concatenate(found).astype(np.float64)

    def _pieces(self, targets: Targets) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """Yield the similarities of some observations at a time to all targets."""
        for piece in pieces(len(self.sources), len(targets.keysteps)):
            if targets.vectors is None:
                found = self.scores.values[self.sources[piece]][:, targets.keysteps]
            else:
                assert isinstance(self.scores, LazyScores), "only these have vectors"
                found = self.scores.vectors[self.sources[piece]] @ targets.vectors.T
                found[:, ~targets.allowed] = -np.inf
                found = clamp(found, self.annotation[piece], targets.keysteps)
            yield piece, found


def observe(scores: Scores, rows: slice = slice(None)) -> Observations:
    """Find the observations of a video or of some of its rows."""
    if isinstance(scores, LazyScores):
        source = scores.part[rows]
    else:
        source = np.where(scores.observed, np.arange(len(scores)), -1)[rows]
    observed = source >= 0
    sources, inverse, weight = np.unique(source[observed], return_inverse=True, return_counts=True)
    index = np.full(len(source), -1, dtype=np.int64)
    index[observed] = inverse
    return Observations(scores, index, sources, weight.astype(np.float64))


class Targets(NamedTuple):
    """Keysteps and titles of all tasks, one task after the other.

    Attributes
    ----------
    keysteps : shape (S,), -1 for a title
    first : shape (Z,), index of the first target of each task
    vectors : shape (S, D) or None
    allowed : shape (S,)
    """

    keysteps: Integers
    first: Integers
    vectors: NDArray[np.float32] | None
    allowed: NDArray[np.bool_]


def targets_of(scores: Scores, tasks: Tasks) -> Targets:
    """Collect the keysteps and titles that observations are compared with to find the task."""
    titles = scores.tasks if isinstance(scores, LazyScores) else None
    lists = []
    for task, members in tasks.items():
        titled = titles is not None and task in titles.blocks
        lists.append(np.array([*members, *([-1] if titled else [])], dtype=np.int64))
    keysteps = np.concatenate(lists)
    sizes = np.array([len(one) for one in lists])
    first = np.cumsum(sizes) - sizes
    if not isinstance(scores, LazyScores):
        return Targets(keysteps, first, None, np.ones(len(keysteps), dtype=bool))
    allowed = (keysteps >= 0) & scores.allowed[keysteps]
    # A title is allowed where any keystep of its task is allowed.
    allowed |= (keysteps < 0) & np.repeat(np.logical_or.reduceat(allowed, first), sizes)
    if titles is not None and [*titles.blocks] == [*tasks]:
        return Targets(keysteps, first, titles.vectors, allowed)
    vectors = scores.keysteps[keysteps]
    for task, start in zip(tasks, first, strict=True):
        if titles is not None and task in titles.blocks:
            block = titles.vectors[titles.blocks[task]]
            vectors[start : start + len(block)] = block
    return Targets(keysteps, first, vectors, allowed)
