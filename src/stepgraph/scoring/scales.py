"""Scores of different encoders on one scale.

Every encoder has a scale of its own: a cosine of 0.3 is much for CLIP and little for MiniLM.
Thresholds and temperatures are meant for the latter's, so other scores are brought to it, one
video at a time and without looking at any truth.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from stepgraph.core import Scores
from stepgraph.errors import ConfigError

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
    spread = float(known.std()) if known.size else 0.0
    if spread < 1e-9:
        return scores  # all alike, or nothing to compare: there is no scale to change
    stretch = max(1.0, _expected_best(_MANY) / _expected_best(len(scores.vocabulary)))
    values = (scores.values - known.mean()) / spread * (stretch * COMMON_SPREAD) + COMMON_MEAN
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
