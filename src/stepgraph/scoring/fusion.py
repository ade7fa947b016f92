"""The scores of two modalities as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import tee

import numpy as np

from stepgraph.core import Scores, Video, Vocabulary, require_same_vocabulary
from stepgraph.encoders import Encoder, EncoderOptions, load_encoder
from stepgraph.errors import ConfigError, DataError, StepgraphError
from stepgraph.problems import Problems
from stepgraph.scoring.rows import score, score_features
from stepgraph.scoring.scales import standardise


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
