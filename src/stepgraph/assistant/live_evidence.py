"""Similarity of the sentences so far to all tasks, as sums that grow with each sentence.

They give the log-evidence that :mod:`stepgraph.decoders.observations` computes of a whole video.
The last few sentences stay open: the next ones complete their context and may cut them short.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from stepgraph.decoders.observations import Targets
from stepgraph.decoders.tasks import CANDIDATES, FLOOR, NAT, SOFTNESS, SWITCH_COST
from stepgraph.scoring.lazy import part_of_row

Floats: TypeAlias = NDArray[np.float64]
Vector: TypeAlias = NDArray[np.float32]

# Sentences in the sums whose similarities are kept, since they may begin another task.
_AT_HAND = 256


@dataclass(eq=False)
class _SentenceSums:
    """Sums over sentences, each weighted by its number of rows.

    Attributes
    ----------
    rows
    ever : shape (S,)
        Highest similarity to each keystep and title so far.
    total : shape (S,)
        Sum of the similarities to each keystep and title.
    explained, ahead, ahead_squared : shape (Z,)
        Sums for each task: its highest similarity; its title's similarity less that of its best
        keystep; and the square of this difference.
    """

    rows: float
    ever: Floats
    total: Floats
    explained: Floats
    ahead: Floats
    ahead_squared: Floats


@dataclass(eq=False)
class ScoredSentence:
    """Sentence: start, end, vector, and similarities to all keysteps and titles, shape (S,)."""

    start: float
    end: float
    vector: Vector
    found: Vector
    rows: int = 0


def similarities(targets: Targets, vectors: Vector, where: slice = slice(None)) -> Vector:
    """Similarities of sentences to keysteps and titles, all or a slice of them, shape (N, S).

    Where the targets have no vectors, ``vectors`` are scores of all keysteps already.
    """
    if targets.vectors is None:
        return vectors[:, targets.keysteps[where]]
    found: Vector = vectors @ targets.vectors[where].T
    return found


class EvidenceAccumulator:
    """Sums over the sentences so far, or since the task last changed.

    Parameters
    ----------
    targets
        Keysteps and titles of all tasks.
    open_sentences
        Number of last sentences that may still change.
    origin
        First row that is observed; rows count from there.
    """

    def __init__(self, targets: Targets, open_sentences: int, origin: int = 0) -> None:
        self.targets, self.origin = targets, origin
        self.sentences: list[ScoredSentence] = []
        self.part: list[int] = []
        self._open_sentences = open_sentences
        self._settled = 0  # number of sentences in the sums
        self._revised: set[int] = set()
        sizes = np.diff(targets.first, append=len(targets.keysteps))
        self._sizes, self._titles = sizes, targets.keysteps < 0
        size, tasks = len(targets.keysteps), len(sizes)
        self._sums = _SentenceSums(
            0.0, np.full(size, -np.inf), np.zeros(size), *np.zeros((3, tasks))
        )
        self._best, self._since = np.zeros(tasks), np.zeros(tasks, dtype=np.int64)

    def add(self, start: float, end: float, vector: Vector, found: Vector) -> None:
        """Add a sentence, in seconds from the origin; cut the one before if they overlap."""
        if self.sentences and self.sentences[-1].end > start:
            self.sentences[-1].end = start
        self.sentences.append(ScoredSentence(start, end, vector, found))

    def revise(self, number: int, vector: Vector, found: Vector) -> None:
        """Replace the vector and similarities of a sentence, if it is still open."""
        if number >= self._settled:
            self.sentences[number].vector, self.sentences[number].found = vector, found
            self._revised.add(number)

    def advance(self, rows: int) -> int:
        """Advance to a number of whole rows; return the first row whose observation changed.

        Sentences that were added since the last call take effect.
        """
        # The last settled sentence may cover a part of the first row that is open.
        first = max(0, self._settled - 1)
        near = self.sentences[first:]
        opened = self.sentences[self._settled :]
        base = min(len(self.part), floor(opened[0].start)) if opened else len(self.part)
        intervals = np.array([(one.start, one.end) for one in near]).reshape(-1, 2) - base
        part = part_of_row(intervals, rows - base, 1.0)
        part[part >= 0] += first
        old = np.full(len(part), -2)
        old[: len(self.part) - base] = self.part[base:]
        changed = np.flatnonzero((part != old) | np.isin(part, [*self._revised]))
        self.part[base:] = part.tolist()
        for number, one in enumerate(opened, self._settled):
            one.rows = int((part == number).sum())
        self._revised.clear()
        self._settle()
        return base + int(changed[0]) if len(changed) else rows

    def _settle(self) -> None:
        """Add the sentences to the sums that will not change any more."""
        last = max(self._settled, len(self.sentences) - self._open_sentences)
        for one in self.sentences[self._settled : last]:
            if one.rows:
                self._turn(one)
                self._sums = self._with(self._sums, one)
        for one in self.sentences[max(0, self._settled - _AT_HAND) : max(0, last - _AT_HAND)]:
            one.found = np.zeros(0, np.float32)  # it is in the sums
        self._settled = last

    def _turn(self, one: ScoredSentence) -> None:
        """Extend the best path through the tasks by a sentence; see ``task_segments``."""
        closest = np.maximum.reduceat(one.found, self.targets.first).astype(np.float64)
        shares = np.exp((closest - closest.max()) / SOFTNESS)
        among = np.partition(shares, -min(len(shares), CANDIDATES))[-CANDIDATES:].sum()
        other = self._best.max() - SWITCH_COST
        self._since[self._best < other] = floor(one.start)
        self._best = np.maximum(self._best, other) + one.rows * np.log(FLOOR + shares / among)

    def turned(self) -> int:
        """First row of the current task on the best path."""
        return int(self._since[self._best.argmax()])

    def _with(self, sums: _SentenceSums, one: ScoredSentence) -> _SentenceSums:
        found, first = one.found.astype(np.float64), self.targets.first
        closest = np.maximum.reduceat(found, first)
        keysteps = np.maximum.reduceat(np.where(self._titles, -np.inf, found), first)
        last = found[first + self._sizes - 1]
        ahead = np.where(np.isfinite(keysteps), last - keysteps, 0.0)
        return _SentenceSums(
            sums.rows + one.rows,
            np.maximum(sums.ever, found),
            sums.total + one.rows * found,
            sums.explained + one.rows * closest,
            sums.ahead + one.rows * ahead,
            sums.ahead_squared + one.rows * ahead**2,
        )

    def state(self) -> EvidenceState:
        """Compute log-evidence and means over all sentences, open ones included."""
        sums = self._sums
        for one in self.sentences[self._settled :]:
            if one.rows:
                sums = self._with(sums, one)
        rows = max(sums.rows, 1.0)
        ever = np.add.reduceat(np.maximum(sums.ever, -1.0), self.targets.first) / self._sizes
        mean = sums.ahead / rows
        spread = np.sqrt(np.maximum(sums.ahead_squared / rows - mean**2, 0.0))
        log_evidence = (sums.explained / rows + ever) / NAT
        none = np.full(len(log_evidence), -np.inf)
        return EvidenceState(log_evidence if sums.rows else none, sums.total / rows, mean, spread)


@dataclass(frozen=True, eq=False)
class EvidenceState:
    """Log-evidence of the tasks, and means over rows.

    Attributes
    ----------
    log_evidence : shape (Z,)
        Log-evidence of each task, in nats.
    mean : shape (S,)
        Mean similarity to each keystep and title.
    ahead, spread : shape (Z,)
        Mean and standard deviation of the similarity of each title less that of the best keystep.
    """

    log_evidence: Floats
    mean: Floats
    ahead: Floats
    spread: Floats
