"""Scores of different encoders on one scale, and those of two modalities as one.

Every encoder has a scale of its own: a cosine of 0.3 is much for CLIP and little for MiniLM.
Thresholds and temperatures are meant for the latter's, so other scores are brought to it, one
video at a time and without looking at any truth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from stepgraph.core import Scores, require_same_vocabulary
from stepgraph.encoders import Encoder, EncoderOptions, fusion_weight, load_encoder
from stepgraph.errors import ConfigError, DataError

EXTREMA = {
    "coin-video": (-23.83, 24.12),
    "crosstask-video": (-63.42, 58.8),
    "coin-text": (-1.0, 1.0),
    "crosstask-text": (-1.0, 1.0),
}
"""Lowest and highest score to :func:`rescale` from: fixed numbers in the authors' scripts, by
data set and by what was scored.  The paper does not mention them."""


def rescale(scores: Scores, low: float, high: float) -> Scores:
    """Map scores linearly so that ``low`` becomes -1 and ``high`` 1; others go beyond.

    The authors do this before they compare scores with a threshold: see :data:`EXTREMA`.
    """
    if not -math.inf < low < high < math.inf:
        raise ConfigError(f"low must be below high, both finite, got {low!r} and {high!r}")
    middle, half = (low + high) / 2, (high - low) / 2
    values = (scores.values.astype(np.float64) - middle) / half
    return scores.with_values(values.astype(np.float32))


COMMON_MEAN = 0.15
COMMON_SPREAD = 0.10
"""Mean and standard deviation of all scores of a video, as sentence embeddings of narration have
them: 0.14 to 0.16 and 0.09 to 0.10 for MiniLM on CrossTask as on the embedded corpus."""

# Of fewer keysteps than this the best stands out less from all of them by mere counting.
_MANY = 50

SCALES = ("raw", "common", *EXTREMA)
"""Scales by name: as it is, the common one, or the authors' fixed extrema."""


def standardise(scores: Scores) -> Scores:
    """Bring the scores of one video to the common scale.

    They are shifted and stretched so that all of them together have the mean and the standard
    deviation that sentence embeddings have; their order stays.  Scores of few keysteps are
    stretched further, since of two the better one can never be far from their mean.

    >>> from stepgraph import Vocabulary
    >>> values = np.array([[10.0, 30.0], [30.0, 10.0]], np.float32)
    >>> raw = Scores("v", values, np.ones(2, bool), Vocabulary(("boil", "pour")))
    >>> standardise(raw).values.astype(float).round(2).tolist()
    [[-0.23, 0.53], [0.53, -0.23]]
    """
    known = scores.values[scores.observed].astype(np.float64)
    known = known[np.isfinite(known)]
    if not known.size or known.min() == known.max():
        return scores  # all alike, or nothing to compare: there is no scale to change
    stretch = max(1.0, _expected_best(_MANY) / _expected_best(len(scores.vocabulary)))
    values = (scores.values - known.mean()) / known.std() * (stretch * COMMON_SPREAD) + COMMON_MEAN
    return scores.with_values(values.astype(np.float32))


def _expected_best(count: int) -> float:
    """How far the best of so many normal numbers is from their mean, in deviations (Blom)."""
    return float(ndtri((count - 0.375) / (count + 0.25)))


def to_scale(scores: Scores, scale: str) -> Scores:
    """Bring the scores of one video to a scale of :data:`SCALES`."""
    if scale not in SCALES:
        raise ConfigError(f"scale must be one of {', '.join(SCALES)}, got {scale!r}")
    if scale == "raw":
        return scores
    return standardise(scores) if scale == "common" else rescale(scores, *EXTREMA[scale])


@dataclass(frozen=True)
class Fusion:
    """How the scores of two modalities become one.

    Attributes
    ----------
    weight
        Share of the first in a weighted mean; None for the paper's way: the first speaks where
        it is certain, else the second.
    threshold
        From which score on a modality is certain.

    Examples
    --------
    >>> Fusion.named("mean"), Fusion.named("0.7")
    (Fusion(weight=0.5, threshold=0.4), Fusion(weight=0.7, threshold=0.4))
    """

    weight: float | None = None
    threshold: float = 0.4

    def __post_init__(self) -> None:
        if self.weight is not None and not 0 <= self.weight <= 1:
            raise ConfigError(f"weight must be between 0 and 1, got {self.weight}")

    @classmethod
    def named(cls, name: str) -> Fusion:
        """``priority``, ``mean``, or the weight of the first as a number."""
        return cls(fusion_weight(name))

    @property
    def name(self) -> str:
        """What :meth:`named` makes it from."""
        if self.weight is None:
            return "priority"
        return "mean" if self.weight == 0.5 else f"{self.weight:g}"

    def join(self, first: Scores, second: Scores) -> Scores:
        """Scores of both, on the scale that they share."""
        if self.weight is not None:
            return fuse(first, second, weight=self.weight)
        return prioritise(
            first, second, first_threshold=self.threshold, second_threshold=self.threshold
        )


@dataclass(frozen=True, eq=False)
class Fused:
    """Two encoders, one for what is seen and one for what is heard, used as if they were one."""

    first: Encoder
    second: Encoder
    fusion: Fusion = Fusion()

    @property
    def options(self) -> EncoderOptions:
        """What :func:`open_encoder` makes this from."""
        hearing = next(
            (one.options for one in (self.first, self.second) if one.options.worded),
            self.first.options,
        )
        return replace(
            self.first.options,
            context=hearing.context,
            task_names=hearing.task_names,
            blend=hearing.blend,
            also=self.second.options.name,
            fusion=self.fusion.name,
        )


def open_encoder(options: EncoderOptions) -> Encoder | Fused:
    """Make the encoder of some options, or the two of them."""
    if options.also is None:
        return load_encoder(options)
    both = []
    for name in (options.name, options.also):
        one = EncoderOptions(name, task_names=options.task_names)
        if one.worded:
            one = replace(one, context=options.context, blend=options.blend)
        else:
            one = replace(one, window=options.window)
        both.append(load_encoder(one))
    return Fused(both[0], both[1], Fusion.named(options.fusion))


def fuse(first: Scores, second: Scores, *, weight: float = 0.5) -> Scores:
    """Blend the scores of two modalities: ``weight`` of the first, the rest of the second.

    A row that only one of them observed keeps that one's scores.

    >>> from stepgraph import Vocabulary
    >>> one = Scores("v", np.ones((1, 2), np.float32), np.ones(1, bool), Vocabulary(("a", "b")))
    >>> fuse(one, one, weight=0.3).values.tolist()
    [[1.0, 1.0]]
    """
    _require_same_rows(first, second)
    if not 0 <= weight <= 1:
        raise ConfigError(f"weight must be between 0 and 1, got {weight}")
    shares = np.where(second.observed, weight, 1.0) * first.observed
    # A keystep that is ruled out scores minus infinity, and no share of that is a number.
    values = np.where(shares[:, None] > 0, np.float32(0), second.values)
    for part, scores in ((shares, first), (1.0 - shares, second)):
        heard = np.flatnonzero((part > 0) & (shares > 0))
        values[heard] += part[heard, None].astype(np.float32) * scores.values[heard]
    return Scores(
        first.video, values, first.observed | second.observed, first.vocabulary, first.hop
    )


def prioritise(
    first: Scores, second: Scores, *, first_threshold: float, second_threshold: float
) -> Scores:
    """Let the first modality speak where it is certain, else the second: the paper's video-text.

    The result is on the scale of the second's threshold: a score is by how much a keystep exceeds
    the threshold of the modality that speaks, so that anchors of both stay anchors and the first
    wins where they disagree.
    """
    _require_same_rows(first, second)
    ahead = first.values - np.float32(first_threshold)
    behind = second.values - np.float32(second_threshold)
    certain = first.observed & (ahead.max(axis=1) >= 0)
    other = second.observed & ~certain & ((behind.max(axis=1) >= 0) | ~first.observed)
    values = np.where(other[:, None], behind, ahead) + np.float32(second_threshold)
    return Scores(
        first.video, values, first.observed | second.observed, first.vocabulary, first.hop
    )


def _require_same_rows(first: Scores, second: Scores) -> None:
    require_same_vocabulary(
        first.vocabulary, second.vocabulary, f"scores of video {first.video!r} to fuse"
    )
    if (first.video, len(first), first.hop) != (second.video, len(second), second.hop):
        raise DataError(
            f"scores to fuse must be of one video and its rows, got {first.video!r} with "
            f"{len(first)} rows and {second.video!r} with {len(second)}"
        )
