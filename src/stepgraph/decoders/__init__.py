"""The Decoder protocol, and decoders by name.

A decoder is a frozen dataclass of its options.  To add one: write the class, and give it a
name in ``DECODERS``; the command line finds its options by itself.
"""

from __future__ import annotations

from typing import Protocol

from stepgraph.core import Labels, Scores
from stepgraph.decoders.path import Argmax, PathSearch
from stepgraph.errors import ConfigError
from stepgraph.graph import TaskGraph

__all__ = ["DECODERS", "Argmax", "Decoder", "PathSearch", "load_decoder"]


class Decoder(Protocol):
    """Anything that can label a video.

    It learns nothing, keeps no state between videos, and gives the same labels for the same
    input.
    """

    def decode(self, scores: Scores, graph: TaskGraph) -> Labels:
        """Label every row of ``scores``."""
        ...


DECODERS: dict[str, type[Argmax] | type[PathSearch]] = {
    "argmax": Argmax,
    "path-search": PathSearch,
}


def load_decoder(name: str, **options: float) -> Decoder:
    """Make a decoder by name.

    >>> load_decoder("path-search", threshold=0.5)
    PathSearch(threshold=0.5)
    """
    if name not in DECODERS:
        raise ConfigError(f"decoder must be one of {', '.join(DECODERS)}, got {name!r}")
    known = DECODERS[name].__dataclass_fields__
    for option in options:
        if option not in known:
            raise ConfigError(
                f"decoder {name!r} has no option {option!r}; "
                f"it has {', '.join(known) if known else 'none'}"
            )
    return DECODERS[name](**options)
