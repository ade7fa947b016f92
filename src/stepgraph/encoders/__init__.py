"""The Encoder protocol, and encoders by name.

Nothing heavy is imported here: a model is loaded when a text is met that is not in the cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import Features, Video, Vocabulary
from stepgraph.errors import ConfigError

__all__ = ["Encoder", "EncoderOptions", "load_encoder"]


@dataclass(frozen=True)
class EncoderOptions:
    """What an encoder is made from; a graph remembers it.

    Attributes
    ----------
    name
        ``text:minilm`` (built in), or ``text:`` and the name or folder of any
        sentence-transformers model.
    context
        How many sentences before and after a sentence are embedded together with it.
    task_names
        Embed each keystep also behind the name of its task, and average.
    blend
        Average the embedding of a sentence alone with that of it and its neighbours, so that
        neither what is said just here nor what it is about is lost.
    """

    name: str = "text:minilm"
    context: int = 0
    task_names: bool = False
    blend: bool = False

    def __post_init__(self) -> None:
        kind, _, model = self.name.partition(":")
        if kind != "text" or not model:
            raise ConfigError(
                f"encoder must be 'text:minilm' or 'text:' and the name or folder of a "
                f"sentence-transformers model, got {self.name!r}"
            )
        if not isinstance(self.context, int) or self.context < 0:
            raise ConfigError(f"context must be at least 0 sentences, got {self.context}")
        if self.blend and not self.context:
            raise ConfigError("blend must have neighbours to blend with, got context 0")


class Encoder(Protocol):
    """Anything that puts videos and keystep names into one space of unit vectors."""

    @property
    def options(self) -> EncoderOptions:
        """What :func:`load_encoder` makes this encoder from."""
        ...

    def encode_keysteps(self, vocabulary: Vocabulary) -> NDArray[np.float32]:
        """Unit vectors of all keysteps, shape (K, D)."""
        ...

    def encode_videos(self, videos: Iterable[Video]) -> Iterator[Features]:
        """Unit vectors of the parts of each video, in the order of the videos."""
        ...


def load_encoder(
    name: str | EncoderOptions = "text:minilm", *, context: int = 0, task_names: bool = False
) -> Encoder:
    """Make an encoder by name, or from all its options; see :class:`EncoderOptions`."""
    from stepgraph.encoders.text import TextEncoder

    if isinstance(name, EncoderOptions):
        if context or task_names:
            raise ConfigError("context and task_names must stand in the options, got both")
        return TextEncoder(name)
    return TextEncoder(EncoderOptions(name, context, task_names))
