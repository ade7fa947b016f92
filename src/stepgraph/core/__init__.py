"""Data types that every stage takes and returns.

All of them are frozen and checked once, when they are made.  Row ``t`` of anything with rows
covers ``[t * hop, (t + 1) * hop)`` seconds.  A keystep is its position in the vocabulary;
names appear only where something is read or shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepgraph.core.alternatives import Alternatives as Alternatives
from stepgraph.core.rows import UNANNOTATED as UNANNOTATED
from stepgraph.core.rows import clamp, label_rows
from stepgraph.core.videos import LONGEST as LONGEST
from stepgraph.core.videos import Chapter as Chapter
from stepgraph.core.videos import Result as Result
from stepgraph.core.videos import Sentence as Sentence
from stepgraph.core.videos import Video as Video
from stepgraph.core.vocabulary import Vocabulary as Vocabulary
from stepgraph.core.vocabulary import is_unicode as is_unicode
from stepgraph.core.vocabulary import require_same_vocabulary as require_same_vocabulary
from stepgraph.errors import ConfigError, DataError
from stepgraph.problems import Problems

BACKGROUND = -1
"""The label of a row on which no keystep is done."""

OVERLAP = 0.4
"""Minimum IoU of a chapter with all rows of its keystep, from 0 to 1."""


class Segment(NamedTuple):
    """One keystep, done from ``start`` to ``end`` (seconds, half open)."""

    start: float
    end: float
    keystep: int


@dataclass(frozen=True, eq=False)
class Features:
    """Vectors of one video, each with the interval of time it describes.

    Sentences and clips share this type; later stages treat both alike.

    Attributes
    ----------
    vectors : shape (N, D), float32
        Vectors of unit length, or means of several such vectors of one part.
    intervals : shape (N, 2), start and end in seconds, in order of start
    """

    video: str
    duration: float
    vectors: NDArray[np.float32]
    intervals: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or self.intervals.shape != (len(self.vectors), 2):
            raise DataError(
                f"features of video {self.video!r} must have shapes (N, D) and (N, 2), "
                f"got {self.vectors.shape} and {self.intervals.shape}"
            )


@dataclass(frozen=True, eq=False)
class Scores:
    """Similarity of each keystep to each row of one video.

    Attributes
    ----------
    values : shape (T, K), float32, higher is better
    observed : shape (T,), bool
        False where there was nothing to score, such as a second without narration.
        ``values`` is ignored there, so no sentinel number is ever needed.
    annotation : shape (T,), int64, or None
        Annotated keystep of each row, ``BACKGROUND``, or ``UNANNOTATED``.
        :meth:`annotate` clamps ``values`` to it.

    Examples
    --------
    >>> values = np.array([[0.1, 0.7], [0.9, 0.2]], dtype=np.float32)
    >>> Scores("v", values, np.ones(2, bool), Vocabulary(("boil", "pour"))).best()[0].tolist()
    [1, 0]
    """

    video: str
    values: NDArray[np.float32]
    observed: NDArray[np.bool_]
    vocabulary: Vocabulary
    hop: float = 1.0
    annotation: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        expected = (len(self.observed), len(self.vocabulary))
        if self.values.shape != expected:
            raise DataError(
                f"scores of video {self.video!r} must have shape {expected} "
                f"(rows, keysteps), got {self.values.shape}; "
                f"were they computed with another vocabulary?"
            )

    def __len__(self) -> int:
        return len(self.observed)

    def restrict(self, keysteps: Iterable[int]) -> Scores:
        """Allow only some keysteps; every other one scores minus infinity."""
        allowed = np.isin(np.arange(len(self.vocabulary)), list(keysteps))
        return self.with_values(np.where(allowed, self.values, np.float32(-np.inf)))

    def annotate(self, segments: Iterable[Segment]) -> Scores:
        """Clamp annotated rows to their annotation, and mark them as observed.

        The annotated keystep of a row scores the maximum of the video, at least 1; every other
        one scores minus infinity, as all do on a row annotated as background.

        >>> values = np.array([[0.1, 0.7], [0.9, 0.2], [0.5, 0.4]], dtype=np.float32)
        >>> scores = Scores("v", values, np.ones(3, bool), Vocabulary(("boil", "pour")))
        >>> annotation = scores.annotate([Segment(0, 1, 0), Segment(1, 2, BACKGROUND)])
        >>> annotation.values[:2].max(axis=1).tolist()
        [1.0, -inf]
        """
        annotation = label_rows(segments, len(self), self.hop, UNANNOTATED)
        values = clamp(self.values.copy(), annotation, np.arange(len(self.vocabulary)))
        observed = self.observed | (annotation != UNANNOTATED)
        return Scores(self.video, values, observed, self.vocabulary, self.hop, annotation)

    def with_values(self, values: NDArray[np.float32]) -> Scores:
        """Return scores of the same rows with other values, without an annotation."""
        return Scores(self.video, values, self.observed, self.vocabulary, self.hop)

    def best(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The best keystep of each row, and its score; meaningless where unobserved."""
        keysteps = self.values.argmax(axis=1)
        return keysteps, self.values[np.arange(len(self)), keysteps]

    def at(self, rows: slice, keystep: int) -> NDArray[np.float32]:
        """Scores of one keystep on some rows."""
        return self.values[rows, keystep]


@dataclass(frozen=True, eq=False)
class Labels:
    """The keystep of every row of one video; predictions and truth share this type.

    Attributes
    ----------
    keysteps : shape (T,), int64
        A position in the vocabulary, or ``BACKGROUND``.
    anchors : shape (T,), bool, or None
        Rows whose score reaches the anchor threshold of the decoder; None for a decoder
        without anchors.
    confidence : shape (T,), float64 in [0, 1], or None
        Estimated probability that the label of each row is right.
    tasks
        Posterior of each task for the whole video, the most probable first; the remaining
        mass is the probability of none of them.  None if the decoder gives no posteriors.
    alternatives
        Most probable keysteps of each row, the label among them, if the decoder gives them.

    Examples
    --------
    >>> tea = Vocabulary(("boil", "pour"))
    >>> labels = Labels.from_segments("v", [Segment(1.0, 3.0, 1)], tea, duration=4.0)
    >>> labels.keysteps.tolist()
    [-1, 1, 1, -1]
    >>> labels.segments()
    [Segment(start=1.0, end=3.0, keystep=1)]
    """

    video: str
    keysteps: NDArray[np.int64]
    vocabulary: Vocabulary
    hop: float = 1.0
    anchors: NDArray[np.bool_] | None = None
    confidence: NDArray[np.float64] | None = None
    tasks: Mapping[str, float] | None = None
    alternatives: Alternatives | None = None

    def __post_init__(self) -> None:
        low, high = BACKGROUND, len(self.vocabulary) - 1
        if self.keysteps.ndim != 1:
            raise DataError(
                f"labels of video {self.video!r} must have one dimension, "
                f"got shape {self.keysteps.shape}"
            )
        if self.keysteps.size and not low <= self.keysteps.min() <= self.keysteps.max() <= high:
            raise DataError(
                f"labels of video {self.video!r} must be between {low} and {high}, "
                f"got {self.keysteps.min()} to {self.keysteps.max()}"
            )
        for name in ("anchors", "confidence"):
            value = getattr(self, name)
            if value is not None and value.shape != self.keysteps.shape:
                raise DataError(
                    f"{name} of video {self.video!r} must have shape {self.keysteps.shape}, "
                    f"got {value.shape}"
                )

    def __len__(self) -> int:
        return len(self.keysteps)

    @classmethod
    def from_segments(
        cls,
        video: str,
        segments: Iterable[Segment],
        vocabulary: Vocabulary,
        *,
        duration: float,
        hop: float = 1.0,
    ) -> Labels:
        """Label each row whose middle lies in a segment; where two overlap the later wins."""
        keysteps = label_rows(segments, rows_in(duration, hop), hop, BACKGROUND)
        return cls(video, keysteps, vocabulary, hop)

    def segments(self) -> list[Segment]:
        """Runs of equal labels, background left out."""
        return [
            Segment(first * self.hop, last * self.hop, int(self.keysteps[first]))
            for first, last in runs(self.keysteps)
            if self.keysteps[first] != BACKGROUND
        ]

    def outline(self, overlap: float = OVERLAP) -> Labels:
        """Merge and drop segments, so that fewer and longer ones remain: the chapters.

        The chapters maximise the sum of IoU - ``overlap``.  The IoU is that of the rows of a
        chapter and all rows of its keystep, each row weighted by its confidence.  A keystep that
        returns briefly is dropped, and one that is interrupted briefly goes on.  Each chapter has
        an IoU above ``overlap``; 0 keeps every segment.

        Examples
        --------
        >>> tea = Vocabulary(("boil", "pour"))
        >>> labels = Labels("v", np.array([1, 0, 0, 0, 1, 1, 0, 1, 1]), tea)
        >>> labels.outline().keysteps.tolist()
        [-1, 0, 0, 0, 1, 1, 1, 1, 1]
        """
        if not 0 <= overlap <= 1:
            raise ConfigError(f"overlap must be between 0 and 1, got {overlap}")
        keysteps = np.full_like(self.keysteps, BACKGROUND)
        sure = np.ones(len(self)) if self.confidence is None else self.confidence
        for first, last in _chapters(self.keysteps, np.maximum(sure, 1e-6), overlap):
            keysteps[first:last] = self.keysteps[first]
        return replace(self, keysteps=keysteps)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Videos with their vocabulary, and the truth of some or none of them, kept apart.

    Attributes
    ----------
    videos
        May be iterated again and again; a large data set reads them from disk each time.
    problems
        Mistakes in the files; readers that stream add to them while they are iterated.
    """

    name: str
    videos: Iterable[Video]
    vocabulary: Vocabulary | None = None
    truth: Mapping[str, Labels] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)


def rows_in(duration: float, hop: float = 1.0) -> int:
    """Count the rows that cover ``duration`` seconds; a started row counts.

    >>> rows_in(9.2), rows_in(9.0), rows_in(0.0)
    (10, 9, 0)
    """
    # Times carry float noise (0.1 * 3); a billionth of a row is not a started row.
    return max(0, math.ceil(duration / hop - 1e-9))


def runs(values: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield the first and past-the-last position of each run of equal values.

    >>> list(runs(np.array([4, 4, 7])))
    [(0, 2), (2, 3)]
    """
    if values.size == 0:
        return
    borders = np.flatnonzero(np.diff(values)) + 1
    edges = [0, *borders.tolist(), len(values)]
    yield from pairwise(edges)


def _chapters(
    keysteps: NDArray[np.int64], weight: NDArray[np.float64], overlap: float
) -> Iterator[tuple[int, int]]:
    """Yield the first and past-the-last row of each chapter of an outline, the last one first.

    A chapter begins and ends with a run of its keystep; other ends would lower its IoU.
    """
    borders = np.array([*runs(keysteps)], dtype=np.int64).reshape(-1, 2)
    start, end = np.append(0.0, weight.cumsum())[borders.T]
    names, size = keysteps[borders[:, 0]], end - start
    # Highest sum over the chapters up to each run, and the run with which the last one begins.
    best, begun = np.zeros(len(names) + 1), np.full(len(names) + 1, -1)
    for run in range(len(names)):
        best[run + 1] = best[run]
        [same] = np.nonzero((names == names[run]) & (names != BACKGROUND))
        since = same[same <= run]
        shared = size[since][::-1].cumsum()[::-1]
        either = end[run] - start[since] + size[same].sum() - shared
        worth = best[since] + shared / either - overlap
        if worth.max(initial=0.0) > best[run]:
            best[run + 1], begun[run + 1] = worth.max(), since[worth.argmax()]
    last = len(names)
    while last > 0:
        if begun[last] >= 0:
            yield int(borders[begun[last], 0]), int(borders[last - 1, 1])
        last = int(begun[last]) if begun[last] >= 0 else last - 1


def without_repetitions(keysteps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sequence of keysteps: background is dropped, then each run is taken once.

    >>> without_repetitions(np.array([4, 4, -1, 4, 7, 7, 4])).tolist()
    [4, 7, 4]
    """
    present = keysteps[keysteps != BACKGROUND]
    # The first row, and every row that differs from the one before it.
    return np.asarray(present[np.diff(present, prepend=BACKGROUND) != 0], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Timeline:
    """Chapters of one video, with its labels and scores; iterating it yields the chapters.

    Attributes
    ----------
    overlap
        Minimum IoU of a chapter with all rows of its keystep: see :meth:`Labels.outline`.
    """

    video: Video
    labels: Labels
    scores: Scores
    overlap: float = OVERLAP

    def __iter__(self) -> Iterator[Chapter]:
        return iter(self.chapters)

    @cached_property
    def chapters(self) -> tuple[Chapter, ...]:
        """Chapters, one for each segment of the outline; ``labels.segments()`` has them all."""
        outline = self.labels.outline(self.overlap)
        return tuple(self._chapter(segment) for segment in outline.segments())

    @property
    def tasks(self) -> Mapping[str, float] | None:
        """Posterior of each task, if the decoder gives it."""
        return self.labels.tasks

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the vocabulary."""
        return self.labels.vocabulary.fingerprint

    @property
    def task(self) -> str | None:
        """Most probable task; None if the posteriors of all tasks sum to less than 0.5."""
        tasks = self.labels.tasks or {}
        return next(iter(tasks), None) if sum(tasks.values()) >= 0.5 else None

    def _task_of(self, keystep: int) -> str | None:
        """Return the task of the video, or the first to list ``keystep`` if that one does not."""
        listing = self.labels.vocabulary.tasks_of(keystep)
        return listing[0] if self.task and listing and self.task not in listing else self.task

    def _chapter(self, segment: Segment) -> Chapter:
        hop, confidence = self.labels.hop, self.labels.confidence
        rows = slice(round(segment.start / hop), round(segment.end / hop))
        own = self.labels.keysteps[rows] == segment.keystep
        [observed] = np.nonzero(self.scores.observed[rows])
        values = self.scores.at(rows, segment.keystep)[observed]
        # Rows on which the keystep is excluded have no score of it.
        observed, values = observed[np.isfinite(values)], values[np.isfinite(values)]
        names = self.labels.vocabulary.keysteps
        others = (self.labels.alternatives or Alternatives.none(0)).over(rows, segment.keystep)
        return Chapter(
            segment.start,
            # A started last row may reach past the end of the video.
            min(segment.end, max(self.video.duration, segment.start)),
            names[segment.keystep],
            float(values.mean()) if values.size else None,
            self._origin(rows, own),
            None if confidence is None else float((own * confidence[rows]).mean()),
            self._words(rows.start + observed[values.argmax()] + 0.5) if values.size else None,
            self._task_of(segment.keystep),
            tuple((names[one], sure) for one, sure in others),
        )

    @cached_property
    def _sentences(self) -> tuple[list[str], NDArray[np.float64]]:
        """Texts of the sentences in order of start; their starts and ends, shape (2, N)."""
        sentences = sorted(self.video.transcript, key=lambda one: one.start)
        times = np.array([(one.start, one.end) for one in sentences]).T
        return [one.text for one in sentences], times

    def _words(self, row: float) -> str | None:
        """Text of the sentence nearest to a position in rows, the first of several."""
        (texts, times), time = self._sentences, row * self.labels.hop
        if not texts:
            return None
        return texts[int(np.maximum(times[0] - time, time - times[1]).clip(0).argmin())]

    def _origin(self, rows: slice, own: NDArray[np.bool_]) -> Literal["anchor", "path", "label"]:
        anchors, confidence = self.labels.anchors, self.labels.confidence
        if anchors is None or (confidence is None and not anchors.any()):
            return "label"  # path search without an anchor keeps its preliminary labels
        return "anchor" if np.any(own & anchors[rows]) else "path"
