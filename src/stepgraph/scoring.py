"""Compare the parts of a video with keystep names, on a regular grid of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import (
    Features,
    Scores,
    Video,
    Vocabulary,
    require_same_vocabulary,
    rows_in,
)
from stepgraph.encoders import Encoder
from stepgraph.errors import ConfigError, DataError


def score(
    videos: Iterable[Video], vocabulary: Vocabulary, encoder: Encoder, *, hop: float = 1.0
) -> Iterator[Scores]:
    """Score every keystep on every row of each video: the paper's ``f(v, n) . f(k)``.

    Videos are taken as they come, so a generator over a large corpus is fine.
    """
    keysteps = encoder.encode_keysteps(vocabulary)
    for features in encoder.encode_videos(videos):
        yield score_features(features, keysteps, vocabulary, hop=hop)


def score_features(
    features: Features, keysteps: NDArray[np.float32], vocabulary: Vocabulary, *, hop: float = 1.0
) -> Scores:
    """Score one video from its features.

    Parameters
    ----------
    keysteps : shape (K, D)
        Unit vectors of the keysteps.
    """
    rows = rows_in(features.duration, hop)
    part = part_of_row(features.intervals, rows, hop)
    observed = part >= 0
    values = np.zeros((rows, len(vocabulary)), dtype=np.float32)
    if observed.any():
        values[observed] = (features.vectors @ keysteps.T)[part[observed]]
    return Scores(features.video, values, observed, vocabulary, hop)


def part_of_row(intervals: NDArray[np.float64], rows: int, hop: float) -> NDArray[np.int64]:
    """Which interval covers most of each row, or -1 where none covers any of it.

    Of two that cover the same share, the earlier is taken.

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


def fuse(first: Scores, second: Scores, *, weight: float = 0.5) -> Scores:
    """Blend the scores of two modalities: ``weight`` of the first, the rest of the second.

    A row that only one of them observed keeps that one's scores.

    >>> one = Scores("v", np.ones((1, 2), np.float32), np.ones(1, bool), Vocabulary(("a", "b")))
    >>> fuse(one, one, weight=0.3).values.tolist()
    [[1.0, 1.0]]
    """
    _require_same_rows(first, second)
    if not 0 <= weight <= 1:
        raise ConfigError(f"weight must be between 0 and 1, got {weight}")
    shares = np.where(second.observed, weight, 1.0) * first.observed
    both = np.where(second.observed | ~first.observed, 1.0 - shares, 0.0)
    values = shares[:, None] * first.values + both[:, None] * second.values
    return replace(
        first, values=values.astype(np.float32), observed=first.observed | second.observed
    )


def prioritise(
    first: Scores, second: Scores, *, first_threshold: float, second_threshold: float
) -> Scores:
    """Let the first modality speak where it is certain, else the second: the paper's video-text.

    The result is to be decoded with a threshold of 0: a score is by how much a keystep exceeds
    the threshold of the modality that speaks, so that anchors of both stay anchors and the first
    wins where they disagree.
    """
    _require_same_rows(first, second)
    ahead = first.values - np.float32(first_threshold)
    behind = second.values - np.float32(second_threshold)
    certain = first.observed & (ahead.max(axis=1) >= 0)
    other = second.observed & ~certain & ((behind.max(axis=1) >= 0) | ~first.observed)
    values = np.where(other[:, None], behind, ahead)
    return replace(first, values=values, observed=first.observed | second.observed)


def _require_same_rows(first: Scores, second: Scores) -> None:
    require_same_vocabulary(
        first.vocabulary, second.vocabulary, f"scores of video {first.video!r} to fuse"
    )
    if (first.video, len(first), first.hop) != (second.video, len(second), second.hop):
        raise DataError(
            f"scores to fuse must be of one video and its rows, got {first.video!r} with "
            f"{len(first)} rows and {second.video!r} with {len(second)}"
        )
