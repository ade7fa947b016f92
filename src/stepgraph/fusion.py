"""Scores of different encoders on one scale, and of two modalities as one.

Every encoder has a scale of its own: a cosine of 0.3 is much for CLIP and little for MiniLM.
Thresholds and temperatures are meant for the latter's, so other scores are brought to it, one
video at a time and without looking at any truth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import tee

import numpy as np
from scipy.special import ndtri

from stepgraph.core import Scores, Video, Vocabulary
from stepgraph.encoders import Encoder, EncoderOptions, load_encoder
from stepgraph.errors import ConfigError, StepgraphError
from stepgraph.problems import Problems
from stepgraph.scoring import fuse, prioritise, score, score_features
from stepgraph.stored import EXTREMA, rescale

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
    return replace(scores, values=values.astype(np.float32))


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
    def named(cls, name: str, *, threshold: float = 0.4) -> Fusion:
        """``priority``, ``mean``, or the weight of the first as a number."""
        if name == "priority":
            return cls(None, threshold)
        try:
            return cls(0.5 if name == "mean" else float(name), threshold)
        except ValueError as error:
            raise ConfigError(
                f"fusion must be priority, mean, or the weight of the first encoder between 0 "
                f"and 1, got {name!r}"
            ) from error

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
        both = prioritise(
            first, second, first_threshold=self.threshold, second_threshold=self.threshold
        )
        # Back from "by how much it exceeds the threshold".
        return replace(both, values=both.values + np.float32(self.threshold))


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
            (one.options for one in (self.first, self.second) if one.options.hears),
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
    first, second = (load_encoder(_only(options, name)) for name in (options.name, options.also))
    return Fused(first, second, Fusion.named(options.fusion))


def _only(options: EncoderOptions, name: str) -> EncoderOptions:
    """What concerns one of two encoders."""
    one = EncoderOptions(name, task_names=options.task_names)
    if one.hears:
        return replace(one, context=options.context, blend=options.blend)
    return replace(one, window=options.window)


def score_with(
    videos: Iterable[Video],
    vocabulary: Vocabulary,
    encoder: Encoder | Fused,
    *,
    problems: Problems | None = None,
) -> Iterator[Scores]:
    """Score videos on the common scale, with one encoder or with two.

    Parameters
    ----------
    problems
        Where to note a video that cannot be encoded, so that the others go on; if not given,
        the first such video is an error.
    """
    if isinstance(encoder, Fused):
        position: dict[str, int] = {}
        once, again = tee(_numbered(videos, position))
        firsts = score_with(once, vocabulary, encoder.first, problems=problems)
        seconds = score_with(again, vocabulary, encoder.second, problems=problems)
        return _joined(firsts, seconds, encoder.fusion, position)
    if encoder.options.modality == "text":
        return score(videos, vocabulary, encoder)
    return _score_looking(videos, vocabulary, encoder, problems)


def _score_looking(
    videos: Iterable[Video], vocabulary: Vocabulary, encoder: Encoder, problems: Problems | None
) -> Iterator[Scores]:
    """One video at a time, so that one that cannot be read stops no other."""
    keysteps = encoder.encode_keysteps(vocabulary)
    for video in videos:
        try:
            [features] = encoder.encode_videos([video])
        except StepgraphError as error:
            if problems is None:
                raise
            problems.add(video.id, "video that cannot be encoded", str(error))
            continue
        yield standardise(score_features(features, keysteps, vocabulary))


def _numbered(videos: Iterable[Video], position: dict[str, int]) -> Iterator[Video]:
    """Note as which a video came."""
    for number, video in enumerate(videos):
        position[video.id] = number
        yield video


def _joined(
    firsts: Iterator[Scores],
    seconds: Iterator[Scores],
    fusion: Fusion,
    position: dict[str, int],
) -> Iterator[Scores]:
    """Pair scores by video; one that failed on either side is left out."""
    second = next(seconds, None)
    for first in firsts:
        while second is not None and position[second.video] < position[first.video]:
            second = next(seconds, None)
        if second is None:
            return
        if second.video == first.video:
            yield fusion.join(first, second)
