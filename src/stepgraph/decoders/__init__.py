"""The Decoder protocol, and decoders by name.

A decoder is a frozen dataclass of its options.  To add one: write the class, and give it a name
in ``DECODERS``.  Baselines that learn from a corpus (pruning, the transformer) or need another
graph (linear steps) are rows of the tables: see ``experiments``.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Protocol

from stepgraph.core import Labels, Scores
from stepgraph.decoders.baselines import AdaptiveThreshold, Random
from stepgraph.decoders.dtw import DropDTW, Graph2Vid
from stepgraph.decoders.markov import BayesFilter, Viterbi
from stepgraph.decoders.path import Argmax, PathSearch
from stepgraph.decoders.task_markov import TaskMarkov
from stepgraph.encoders import EncoderOptions
from stepgraph.errors import ConfigError
from stepgraph.graph import TaskGraph

__all__ = [
    "DECODERS",
    "DEFAULT_DECODER",
    "Argmax",
    "BayesFilter",
    "Decoder",
    "DropDTW",
    "Graph2Vid",
    "PathSearch",
    "TaskMarkov",
    "Viterbi",
    "encoder_for",
    "load_decoder",
]


class Decoder(Protocol):
    """Anything that can label a video.

    It learns nothing, keeps no state between videos, and gives the same labels for the same
    input.
    """

    def decode(self, scores: Scores, graph: TaskGraph) -> Labels:
        """Label every row of ``scores``."""
        ...


DECODERS: dict[str, type[Any]] = {
    "argmax": Argmax,
    "path-search": PathSearch,
    "bayes-filter": BayesFilter,
    "viterbi": Viterbi,
    "drop-dtw": DropDTW,
    "graph2vid": Graph2Vid,
    "adaptive-threshold": AdaptiveThreshold,
    "random": Random,
    "task-markov": TaskMarkov,
}
DEFAULT_DECODER = "task-markov"


def decoder_class(name: str) -> type[Any]:
    """The class of a decoder by name."""
    if name not in DECODERS:
        raise ConfigError(f"decoder must be one of {', '.join(DECODERS)}, got {name!r}")
    return DECODERS[name]


def load_decoder(name: str = DEFAULT_DECODER, **options: Any) -> Decoder:
    """Make a decoder by name.

    >>> load_decoder("path-search", threshold=0.5)
    PathSearch(threshold=0.5)
    """
    if name not in DECODERS:
        raise ConfigError(f"decoder must be one of {', '.join(DECODERS)}, got {name!r}")
    known = [field.name for field in fields(DECODERS[name])]
    for option in options:
        if option not in known:
            raise ConfigError(
                f"decoder {name!r} has no option {option!r}; "
                f"it has {', '.join(known) if known else 'none'}"
            )
    decoder: Decoder = DECODERS[name](**options)
    return decoder


def encoder_for(name: str) -> EncoderOptions:
    """The encoder whose scores a decoder is made for: the paper's, unless it says otherwise."""
    options: EncoderOptions = getattr(DECODERS.get(name), "encoder", EncoderOptions())
    return options
