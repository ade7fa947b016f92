"""The labels of the clips of one video: what the graph says, and what plain argmax says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import BACKGROUND, Scores, Timeline
from stepgraph.decoders.path import best_keysteps
from stepgraph.scoring.products import part_of_row

ORIGINS = ("anchor", "path", "label")
"""As in a timeline: heard or seen clearly; found along the graph; the decoder does not tell."""

TOP = 3
"""Best keysteps that are kept of each clip, for the loss that matches distributions."""


@dataclass(frozen=True, eq=False)
class ClipLabels:
    """Labels of the clips of one video, each array one entry a clip; ``docs/formats.md``.

    ``path`` is None where only a transcript was there; ``task`` is what the decoder thinks, never
    the truth.  ``keystep`` is the graph's label, ``argmax`` that of plain argmax, ``BACKGROUND``
    where there is none; ``origin`` is a position in :data:`ORIGINS`, or -1.  Numbers are nan
    where unknown.  ``top_keysteps`` and ``top_scores``, shape (T, 3), begin with the best; -1 and
    minus infinity where there is none.
    """

    video: str
    path: str | None
    task: str | None
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    keystep: NDArray[np.int32]
    origin: NDArray[np.int8]
    confidence: NDArray[np.float32]
    score: NDArray[np.float32]
    argmax: NDArray[np.int32]
    argmax_score: NDArray[np.float32]
    top_keysteps: NDArray[np.int32]
    top_scores: NDArray[np.float32]
    words: tuple[str | None, ...]

    def __len__(self) -> int:
        return len(self.keystep)


def label_clips(timeline: Timeline) -> ClipLabels:
    """The clips of one recognised video with their labels."""
    video, labels, scores = timeline.video, timeline.labels, timeline.scores
    rows = np.arange(len(labels))
    labelled = labels.keysteps != BACKGROUND
    top_keysteps, top_scores = best_of(scores)
    own = scores.values[rows, np.maximum(labels.keysteps, 0)]
    confidence = np.full(len(rows), np.nan) if labels.confidence is None else labels.confidence
    intervals = np.array([[said.start, said.end] for said in video.transcript]).reshape(-1, 2)
    said = part_of_row(intervals, len(rows), labels.hop)
    return ClipLabels(
        video=video.id,
        path=None if video.path is None else str(video.path.absolute()),
        task=next(iter(labels.tasks or {}), None),
        start=(rows * labels.hop).astype(np.float64),
        # A started last row may reach past the end of the video.
        end=np.minimum((rows + 1) * labels.hop, np.maximum(video.duration, rows * labels.hop)),
        keystep=labels.keysteps.astype(np.int32),
        origin=np.where(labelled, _origins(timeline), -1).astype(np.int8),
        confidence=np.where(labelled, confidence, np.nan).astype(np.float32),
        score=np.where(labelled & scores.observed, own, np.nan).astype(np.float32),
        argmax=best_keysteps(scores).astype(np.int32),
        argmax_score=np.where(scores.observed, top_scores[:, 0], np.nan).astype(np.float32),
        top_keysteps=top_keysteps,
        top_scores=top_scores,
        words=tuple(video.transcript[part].text if part >= 0 else None for part in said.tolist()),
    )


def _origins(timeline: Timeline) -> NDArray[np.int64]:
    anchors = timeline.labels.anchors
    if anchors is None or (timeline.labels.confidence is None and not anchors.any()):
        return np.full(len(timeline.labels), ORIGINS.index("label"))
    return np.where(anchors, ORIGINS.index("anchor"), ORIGINS.index("path"))


def best_of(scores: Scores) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The best keysteps of each row and their scores, shape (T, 3).

    Of several that score alike the first comes first, as in argmax.  Where nothing was observed,
    and past the last keystep, they are -1 and minus infinity.
    """
    left = np.where(scores.observed[:, None], scores.values, np.float32(-np.inf))
    keysteps = np.full((len(scores), TOP), -1, dtype=np.int32)
    best = np.full((len(scores), TOP), -np.inf, dtype=np.float32)
    rows = np.arange(len(scores))
    # A few passes over all are far cheaper than sorting ten thousand keysteps of every row.
    for place in range(min(TOP, len(scores.vocabulary))):
        found = left.argmax(axis=1)
        best[:, place] = left[rows, found]
        keysteps[:, place] = np.where(best[:, place] > -np.inf, found, -1)
        left[rows, found] = -np.inf
    return keysteps, best
