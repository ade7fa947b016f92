"""What scores videos: an encoder, two of them, stored features or stored scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stepgraph.decoders import DEFAULT_DECODER, encoder_for
from stepgraph.encoders import Encoder, EncoderOptions
from stepgraph.encoders.model_folders import require_named
from stepgraph.encoders.stored_features import StoredEncoder
from stepgraph.errors import ConfigError
from stepgraph.graph import TaskGraph
from stepgraph.problems import Problems
from stepgraph.scoring import Scorer
from stepgraph.scoring.fusion import Fused, open_encoder
from stepgraph.scoring.stored_scores import StoredScores


@dataclass(frozen=True)
class Asked:
    """What a user asked to score with; the rest follows from the graph and the decoder.

    Attributes
    ----------
    encoder
        Options of :class:`~stepgraph.encoders.EncoderOptions`, those that were given.
    features
        Stored features to take instead of what the first encoder makes of the videos.
    scores
        Stored scores to take instead of any encoder's.
    scale, seconds_per_row, all_videos
        See :class:`~stepgraph.scoring.stored_scores.StoredScores`.
    problems
        Receives what is odd about stored features.
    """

    encoder: Mapping[str, Any] = field(default_factory=dict)
    features: Path | None = None
    scores: Path | None = None
    scale: str = "raw"
    seconds_per_row: float = 1.0
    all_videos: bool = False
    problems: Problems | None = None

    def __post_init__(self) -> None:
        if self.scores is not None and (self.encoder or self.features is not None):
            raise ConfigError(
                "scores must come from one place, got stored scores and an encoder; "
                "remove --scores, or the options of the encoder"
            )
        if self.scores is None and self.scale != "raw":
            raise ConfigError("scale must be of stored scores, got none; give them with --scores")
        if self.all_videos and self.scores is None and self.features is None:
            raise ConfigError(
                "all videos must be asked for with stored scores or features, got neither; "
                "others are never left out"
            )


def open_scorer(
    asked: Asked | None = None,
    *,
    graph: TaskGraph | None = None,
    decoder: str = DEFAULT_DECODER,
) -> Scorer:
    """Open what scores videos: the one answer to the question which encoder is meant.

    What was asked for comes first; then what the graph was mined with; then what the decoder is
    made for.  To name any option of the encoder without a graph is to start from a plain one.
    """
    asked = asked or Asked()
    if asked.scores is not None:
        return StoredScores(asked.scores, asked.scale, asked.seconds_per_row, asked.all_videos)
    if asked.features is None:
        return open_encoder(_encoder_options(asked.encoder, graph, decoder))
    if not asked.encoder.keys() & {"name", "also"}:
        return _open_stored(asked, None)  # the folder says which encoder, or has the keysteps
    encoder = open_encoder(_encoder_options(asked.encoder, graph, decoder))
    if isinstance(encoder, Fused):
        return replace(encoder, first=_open_stored(asked, encoder.first))
    return _open_stored(asked, encoder)


def _open_stored(asked: Asked, encoder: Encoder | None) -> Encoder:
    assert asked.features is not None, "this is asked for features"
    return StoredEncoder(
        asked.features,
        encoder,
        seconds_per_row=asked.seconds_per_row,
        problems=asked.problems,
        all_videos=asked.all_videos,
    )


def _encoder_options(
    given: Mapping[str, Any], graph: TaskGraph | None, decoder: str
) -> EncoderOptions:
    mined = graph.encoder if graph is not None else None
    named = (given.get("name"), given.get("also"))
    # To name the same again is to allow it, and not to choose another one.
    if mined is not None and (named[0] is None or named == (mined.name, mined.also)):
        meant = replace(mined, **given)
        require_named(meant, "encoder of the graph", typed=named)
        return meant
    own = encoder_for(decoder)
    if not given:
        return own
    hearing = {"context", "task_names", "blend"}
    if "also" in given and not hearing & given.keys():
        # Two encoders: the one that hears is as the decoder likes it.
        given = {name: getattr(own, name) for name in hearing} | dict(given)
    return EncoderOptions(**given)


def options_of(scorer: Scorer) -> EncoderOptions | None:
    """Options of the encoder behind scores, where one is known."""
    return None if isinstance(scorer, StoredScores) else scorer.options


def looks(scorer: Scorer) -> bool:
    """Whether videos are scored without their narration."""
    options = options_of(scorer)
    return options is None or options.looks
