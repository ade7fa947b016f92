"""Training targets of clips: one keystep, or the three best with their weights."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stepgraph.core import BACKGROUND
from stepgraph.errors import DataError
from stepgraph.labelling.clips import TOP, ClipLabels
from stepgraph.labelling.folders import LabelFolder, read_labels
from stepgraph.problems import Problems
from stepgraph.training.schedule import TrainingOptions

Which: TypeAlias = Literal["graph", "argmax"]
"""Origin of labels: the task graph, or the baseline."""


@dataclass(frozen=True, eq=False)
class Examples:
    """The labelled clips of a corpus, in the order of their videos.

    Each video has a file and a number of clips, labelled or not.  Each example, shape (N,), has
    the position of its video, the number of the clip in it, and its label.  ``soft`` has keysteps
    and weights, shape (N, 3) each, for the loss on distributions, else nothing.
    """

    videos: Mapping[str, Path]
    clips: tuple[int, ...]
    video: NDArray[np.int32]
    clip: NDArray[np.int32]
    keystep: NDArray[np.int32]
    soft: tuple[NDArray[Any], ...]
    hop: float = 1.0  # seconds from one clip to the next

    def __len__(self) -> int:
        return len(self.keystep)

    def used(self) -> frozenset[str]:
        """Return the ids of the videos that have an example."""
        names = tuple(self.videos)
        return frozenset(names[position] for position in np.unique(self.video).tolist())

    def digest(self) -> str:
        """Return a short hash of all examples."""
        digest = hashlib.sha256("\n".join(self.videos).encode())
        for values in (self.video, self.clip, self.keystep, *self.soft):
            digest.update(np.ascontiguousarray(values).tobytes())
        return digest.hexdigest()[:16]

    def only(self, mask: NDArray[np.bool_]) -> Examples:
        """Return the examples that ``mask`` selects; the videos keep their positions."""
        return replace(
            self,
            video=self.video[mask],
            clip=self.clip[mask],
            keystep=self.keystep[mask],
            soft=tuple(values[mask] for values in self.soft),
        )


def load_examples(
    labels: LabelFolder, which: Which, options: TrainingOptions, problems: Problems
) -> Examples:
    """Collect the clips that have a label; videos without a file are noted and left out."""
    videos: dict[str, Path] = {}
    clips: list[int] = []
    parts: list[list[NDArray[np.int32]]] = []
    soft: list[tuple[NDArray[np.int32], NDArray[np.float32]]] = []
    for one in read_labels(labels):
        keysteps = one.keystep if which == "graph" else one.argmax
        rows = np.flatnonzero(keysteps != BACKGROUND).astype(np.int32)
        path = _find(one, options.running.videos, problems) if len(rows) else None
        if path is None:
            continue
        parts.append([np.full(len(rows), len(videos), dtype=np.int32), rows, keysteps[rows]])
        if options.loss == "distribution":
            soft.append(soften(one, which, options.temperature, rows))
        videos[one.video] = path
        clips.append(len(one))
    if not videos:
        why = f": {problems.summary()}" if problems else "; label them with a video each"
        raise DataError(
            f"{labels.path}: must have clips with labels of {which!r} and a video file, "
            f"got none of {labels.rows}{why}"
        )
    video, clip, keystep = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    both = tuple(np.concatenate(columns) for columns in zip(*soft, strict=True))
    return Examples(videos, tuple(clips), video, clip, keystep, both, labels.provenance.hop)


def _find(one: ClipLabels, moved: Path | None, problems: Problems) -> Path | None:
    """Find the file of a video, at its path or in the folder ``moved``; note a missing one."""
    what = "a clip must have a video file to be decoded, got a transcript alone"
    if one.path is not None:
        path = Path(one.path)
        if moved is not None:
            path = moved / f"{one.video}{path.suffix}"
        if path.is_file():
            return path
        what = f"a video must be where it was labelled, got nothing at {path}; was it moved?"
    problems.add(f"video {one.video!r}", "video without file", what, fatal=True)
    return None


def soften(
    one: ClipLabels, which: Which, temperature: float, rows: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Compute three keysteps and their weights for each of some clips.

    The weights are the softmax of the scores, divided by ``temperature``.  The label takes the
    best score, so that no other is more probable, and replaces the third keystep if it is not
    among the three.  On unobserved clips the label has all the weight.
    """
    keysteps = one.top_keysteps[rows].astype(np.int32)
    scores = one.top_scores[rows].astype(np.float64)
    label = (one.keystep if which == "graph" else one.argmax)[rows]
    place = np.where(keysteps == label[:, None], np.arange(TOP), TOP).min(axis=1)
    every = np.arange(len(rows))
    place = np.where(scores[:, 0] == -np.inf, 0, np.minimum(place, TOP - 1))
    best = np.where(scores[:, 0] == -np.inf, 0.0, scores[:, 0])
    keysteps[every, place] = label
    scores[every, place] = best
    weights = np.exp((scores - best[:, None]) / temperature)
    weights /= weights.sum(axis=1, keepdims=True)
    return np.where(weights > 0, keysteps, 0).astype(np.int32), weights.astype(np.float32)


def distribution_losses(logits: Tensor, keysteps: Tensor, weights: Tensor) -> Tensor:
    """Kullback-Leibler divergence in nats of predictions from weighted keysteps, shape (B,).

    Weights of a clip, shape (B, 3), add up to 1; those of 0 count for nothing.
    """
    log_predicted = torch.log_softmax(logits, dim=1).gather(1, keysteps.to(torch.int64))
    return (torch.xlogy(weights, weights) - weights * log_predicted).sum(dim=1)
