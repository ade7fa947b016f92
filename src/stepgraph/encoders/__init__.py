"""The Encoder protocol, and encoders by name.

Nothing heavy is imported here: a model is loaded when the first text or clip must be encoded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, Protocol, TypeAlias, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import Features, Video, Vocabulary, is_unicode
from stepgraph.errors import ConfigError

# Spinning threads halve the speed of torch beside other work; it reads this when it is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__all__ = ["KINDS", "Encoder", "EncoderOptions", "Precision", "load_encoder"]

KINDS = {
    "text": "stepgraph.encoders.text:TextEncoder",
    "ocr": "stepgraph.encoders.screen:ScreenEncoder",
    "clip": "stepgraph.encoders.pretrained:make_pretrained",
    "siglip": "stepgraph.encoders.pretrained:make_pretrained",
    "xclip": "stepgraph.encoders.pretrained:make_pretrained",
    "s3d": "stepgraph.encoders.milnce:make_s3d",
    "videoclip": "stepgraph.encoders.milnce:make_videoclip",
    "timesformer": "stepgraph.encoders.checkpoints:make_timesformer",
    "own": "stepgraph.encoders.checkpoints:make_own",
    "colour": "stepgraph.encoders.color:make_color",
}
"""Function that makes an encoder of each kind, as ``module:function``, imported when needed."""

WORDED = ("text", "ocr")
"""Kinds that encode sentences, spoken or shown, with scores on the scale of their similarity."""

_KNOWN = (
    "'text:minilm', 'ocr' (text in the picture), a kind and the folder or name of its weights ("
    + ", ".join(f"{kind}:" for kind in KINDS)
    + "), or a function of yours that makes one, as 'module:function'"
)
Precision: TypeAlias = Literal["float32", "bfloat16"]
"""Number format of a network; only float32 gives the same result on every processor."""

_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


@dataclass(frozen=True)
class EncoderOptions:
    """Options of an encoder; a graph stores those it was mined with.

    Attributes
    ----------
    name
        ``text:minilm`` (built in), ``ocr`` (the same for text in the picture), a kind with the
        folder or name of its weights (``clip:FOLDER``), or ``module:function``, a function of
        your own that takes these options and returns an encoder.  See :data:`KINDS`.
    context
        Number of sentences before and after a sentence that are embedded together with it.
    task_names
        Embed each keystep twice, alone and after the name of its task, and average both.
    blend
        Embed each sentence twice, alone and with its context, and average both (requires
        ``context`` of 1 or more).
    window
        Seconds of video that a visual encoder embeds for a row (default: those of its model).
    also
        Second encoder, such as ``text:minilm`` beside ``clip:FOLDER``, whose scores are fused
        with those of the first; ``context`` and ``blend`` then apply to the one that encodes
        sentences.
    fusion
        Rule of the fusion: ``priority`` (the first where it is confident, else the second),
        ``mean``, or the weight of the first; see :class:`~stepgraph.scoring.fusion.Fusion`.
    precision
        Number format of the network: bfloat16 is faster on a GPU and on some processors, and
        its results differ a little from one kind of processor to another.
    """

    name: str = "text:minilm"
    context: int = 0
    task_names: bool = False
    blend: bool = False
    window: float | None = None
    also: str | None = None
    fusion: str = "priority"
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        for field in ("name", "also"):
            object.__setattr__(self, field, full_name(getattr(self, field)))
        for name in (self.name, "text:minilm" if self.also is None else self.also):
            kind, _, model = name.partition(":") if isinstance(name, str) else ("", "", "")
            if not ((kind in KINDS and model) or _is_function(name)):
                raise ConfigError(f"encoder must be {_KNOWN}, got {name!r}")
            if not is_unicode(name):
                raise ConfigError(f"encoder must have a name in Unicode, got {name!r}")
        if self.also == self.name:
            raise ConfigError(f"encoders to fuse must be two, got {self.name!r} twice")
        if self.precision not in get_args(Precision):
            choices = " or ".join(get_args(Precision))
            raise ConfigError(f"precision must be {choices}, got {self.precision!r}")
        fusion_weight(self.fusion)
        if self.fusion != "priority" and self.also is None:
            raise ConfigError(
                f"fusion {self.fusion!r} requires two encoders, got {self.name!r} alone; "
                f"give the second one as 'also' (--also)"
            )
        if not isinstance(self.context, int) or self.context < 0:
            raise ConfigError(f"context must be at least 0 sentences, got {self.context}")
        if self.blend and not self.context:
            raise ConfigError("blend requires a context of at least 1 sentence, got context 0")
        if self.context and not self.uses_text:
            raise ConfigError(f"context must be 0 for {self.name!r}, which encodes no sentences")
        if self.window is not None and (self.kind in WORDED or not 0 < self.window <= 3600):
            raise ConfigError(
                f"window must be between 0 and 3600 seconds, for an encoder of video, got "
                f"{self.window!r} for {self.name!r}"
            )

    @property
    def kind(self) -> str:
        """Part of the name before the colon."""
        return self.name.partition(":")[0]

    @property
    def model(self) -> str:
        """Part of the name after the colon."""
        return self.name.partition(":")[2]

    @property
    def is_function(self) -> bool:
        """True if a function of the user's makes this encoder or the second one."""
        return _is_function(self.name) or _is_function(self.also)

    @property
    def uses_speech(self) -> bool:
        """True if a transcript may be encoded, which a function of the user's may do as well."""
        names = (self.name, self.also or "")
        return self.is_function or any(name.startswith("text:") for name in names)

    @property
    def uses_screen_text(self) -> bool:
        """True if text in the picture is encoded."""
        return any(name.startswith("ocr:") for name in (self.name, self.also or ""))

    @property
    def uses_text(self) -> bool:
        """True if sentences may be encoded, spoken or shown."""
        return self.uses_speech or self.uses_screen_text

    @property
    def uses_vision(self) -> bool:
        """True if a video file may be encoded."""
        return not (self.name.startswith("text:") and (self.also or "text:").startswith("text:"))


def full_name(name: Any) -> Any:
    """Return the full name of an encoder: ``ocr`` is short for ``ocr:minilm``."""
    return "ocr:minilm" if name == "ocr" else name


def fusion_weight(name: str) -> float | None:
    """Return the weight of the first of two encoders for a named fusion; None for priority."""
    if name == "priority":
        return None
    with suppress(TypeError, ValueError):
        weight = 0.5 if name == "mean" else float(name)
        if isinstance(name, str) and 0 <= weight <= 1:
            return weight
    raise ConfigError(
        f"fusion must be priority, mean, or the weight of the first encoder between 0 and 1, "
        f"got {name!r}"
    )


def _is_function(name: object) -> bool:
    return (
        isinstance(name, str)
        and name.partition(":")[0] not in KINDS
        and _FUNCTION.fullmatch(name) is not None
    )


@runtime_checkable
class Encoder(Protocol):
    """Protocol of objects that embed videos and keystep names as unit vectors of one space."""

    @property
    def options(self) -> EncoderOptions:
        """Options from which :func:`load_encoder` makes this encoder."""

    def encode_keysteps(self, vocabulary: Vocabulary) -> NDArray[np.float32]:
        """Unit vectors of all keysteps, shape (K, D)."""

    def encode_videos(self, videos: Iterable[Video]) -> Iterator[Features]:
        """Unit vectors of the sentences or rows of each video, in the order of the videos."""


def load_encoder(
    name: str | EncoderOptions = "text:minilm", *, context: int = 0, task_names: bool = False
) -> Encoder:
    """Make an encoder by name, or from all its options; see :class:`EncoderOptions`."""
    if isinstance(name, EncoderOptions):
        if context or task_names:
            raise ConfigError("context and task_names must be in the options, got one beside them")
        options = name
    else:
        options = EncoderOptions(name, context, task_names)
    if options.also is not None:
        raise ConfigError(
            f"encoder must be a single one, got {options.name!r} and {options.also!r}; open two "
            f"with stepgraph.scoring.fusion.open_encoder"
        )
    try:
        make = _named(options.name) if options.is_function else open_kind(options.kind)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"encoder must be {_KNOWN}, got {options.name!r}: {error}; "
            f"does the module lie on PYTHONPATH?"
        ) from error
    encoder = make(options)  # what a function of the user's raises is theirs, and not caught
    if not isinstance(encoder, Encoder):
        raise ConfigError(
            f"encoder {options.name!r} must return an object with options, encode_keysteps and "
            f"encode_videos, got {type(encoder).__name__}"
        )
    return encoder


def open_kind(kind: str) -> Callable[[EncoderOptions], Encoder]:
    """Import the function that makes encoders of a kind of :data:`KINDS`."""
    return _named(KINDS[kind])


def _named(name: str) -> Callable[[EncoderOptions], Encoder]:
    module, _, function = name.partition(":")
    made: Callable[[EncoderOptions], Encoder] = getattr(import_module(module), function)
    return made
