"""Scores of different encoders on one scale, and the fusion of two modalities.

Every encoder has a scale of its own: a cosine of 0.3 is high for CLIP and low for MiniLM.
Thresholds and temperatures are chosen for the latter, so other scores are mapped to its scale,
one video at a time and without any truth.
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
data set and modality.  The paper does not mention them."""


def rescale(scores: Scores, low: float, high: float) -> Scores:
    """Map scores linearly so that ``low`` becomes -1 and ``high`` 1; they are not clipped.

    The authors do this before they compare scores with a threshold: see :data:`EXTREMA`.
    """
    if not -math.inf < low < high < math.inf:
        raise ConfigError(f"low must be below high, both finite, got {low!r} and {high!r}")
    middle, half = (low + high) / 2, (high - low) / 2
    values = (scores.values.astype(np.float64) - middle) / half
    return scores.with_values(values.astype(np.float32))


COMMON_MEAN = 0.15
COMMON_SPREAD = 0.10
"""Mean and standard deviation of all scores of a video, typical of sentence embeddings of
narration: 0.14 to 0.16 and 0.09 to 0.10 for MiniLM on CrossTask and on the embedded corpus."""

# With fewer keysteps than this, the expected maximum of the scores is lower by their number alone.
_MANY = 50

SCALES = ("raw", "common", *EXTREMA)
"""Names of scales: unchanged, the common one, or the authors' fixed extrema."""


def standardize(scores: Scores) -> Scores:
    """Map the scores of one video to the common scale.

    A linear map gives all scores together the mean and the standard deviation of sentence
    similarities; their order stays.  With few keysteps the deviation is larger, since the better
    of two scores can never be far from their mean.

    >>> from stepgraph import Vocabulary
    >>> values = np.array([[10.0, 30.0], [30.0, 10.0]], np.float32)
    >>> raw = Scores("v", values, np.ones(2, bool), Vocabulary(("boil", "pour")))
    >>> standardize(raw).values.astype(float).round(2).tolist()
    [[-0.23, 0.53], [0.53, -0.23]]
    """
    finite = scores.values[scores.observed].astype(np.float64)
    finite = finite[np.isfinite(finite)]
    if not finite.size or finite.min() == finite.max():
        return scores  # all alike, or nothing to compare: there is no scale to change
    scale = max(1.0, _expected_best(_MANY) / _expected_best(len(scores.vocabulary)))
    values = (scores.values - finite.mean()) / finite.std() * (scale * COMMON_SPREAD) + COMMON_MEAN
    return scores.with_values(values.astype(np.float32))


def _expected_best(count: int) -> float:
    """Expected maximum of ``count`` standard normal numbers, in deviations (Blom, 1958)."""
    return float(ndtri((count - 0.375) / (count + 0.25)))


def to_scale(scores: Scores, scale: str) -> Scores:
    """Map the scores of one video to a scale of :data:`SCALES`."""
    if scale not in SCALES:
        raise ConfigError(f"scale must be one of {', '.join(SCALES)}, got {scale!r}")
    if scale == "raw":
        return scores
    return standardize(scores) if scale == "common" else rescale(scores, *EXTREMA[scale])


@dataclass(frozen=True)
class Fusion:
    """Rule that fuses the scores of two modalities.

    Attributes
    ----------
    weight
        Weight of the first in a weighted mean, from 0 to 1; None for the paper's rule: the first
        where it is confident, else the second.
    threshold
        Score from which on a modality is confident.

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
        """Make a fusion from ``priority``, ``mean``, or the weight of the first as a number."""
        return cls(fusion_weight(name))

    @property
    def name(self) -> str:
        """Name from which :meth:`named` makes this fusion."""
        if self.weight is None:
            return "priority"
        return "mean" if self.weight == 0.5 else f"{self.weight:g}"

    def join(self, first: Scores, second: Scores) -> Scores:
        """Fuse the scores of both, which must be on one scale."""
        if self.weight is not None:
            return fuse(first, second, weight=self.weight)
        return prioritize(
            first, second, first_threshold=self.threshold, second_threshold=self.threshold
        )


@dataclass(frozen=True, eq=False)
class Fused:
    """Two encoders of different modalities, whose scores are fused."""

    first: Encoder
    second: Encoder
    fusion: Fusion = Fusion()

    @property
    def options(self) -> EncoderOptions:
        """Options from which :func:`open_encoder` makes this."""
        of_text = next(
            (one.options for one in (self.first, self.second) if one.options.uses_text),
            self.first.options,
        )
        return replace(
            self.first.options,
            context=of_text.context,
            task_names=of_text.task_names,
            blend=of_text.blend,
            also=self.second.options.name,
            fusion=self.fusion.name,
        )


def open_encoder(options: EncoderOptions) -> Encoder | Fused:
    """Make the encoder of the options, or two encoders to fuse."""
    if options.also is None:
        return load_encoder(options)
    both = []
    for name in (options.name, options.also):
        one = EncoderOptions(name, task_names=options.task_names)
        if one.uses_text:
            one = replace(one, context=options.context, blend=options.blend)
        else:
            one = replace(one, window=options.window)
        both.append(load_encoder(one))
    return Fused(both[0], both[1], Fusion.named(options.fusion))


def fuse(first: Scores, second: Scores, *, weight: float = 0.5) -> Scores:
    """Average the scores of two modalities: ``weight`` of the first, the rest of the second.

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
        rows = np.flatnonzero((part > 0) & (shares > 0))
        values[rows] += part[rows, None].astype(np.float32) * scores.values[rows]
    return Scores(
        first.video, values, first.observed | second.observed, first.vocabulary, first.hop
    )


def prioritize(
    first: Scores, second: Scores, *, first_threshold: float, second_threshold: float
) -> Scores:
    """Take the first modality where it is confident, else the second: the paper's video-text.

    A score is its margin over the threshold of its modality, plus the threshold of the second:
    anchors of both stay anchors, and the first wins where they disagree.  Where neither is
    confident, the first is taken if it observed the row.
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
