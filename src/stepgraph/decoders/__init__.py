"""The Decoder protocol, and decoders by name.

A decoder is a frozen dataclass of its options with a method ``decode``.  To add one, write the
class into a module of this folder: it is found there, under the name of its class in kebab case.
A decoder from elsewhere is named as ``module:Class``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import is_dataclass, replace
from importlib import import_module
from inspect import Parameter, signature
from pkgutil import iter_modules
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import UNANNOTATED, Labels, Scores
from stepgraph.decoders.dtw import DropDTW, Graph2Vid
from stepgraph.decoders.markov import BayesFilter, Viterbi
from stepgraph.decoders.path import Argmax, PathSearch
from stepgraph.decoders.task_markov import TaskMarkov
from stepgraph.encoders import EncoderOptions
from stepgraph.errors import ConfigError
from stepgraph.graph import TaskGraph
from stepgraph.renamed import renamed

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
    "checked_decode",
    "decoder_class",
    "encoder_for",
    "load_decoder",
]


class Decoder(Protocol):
    """Anything that can label a video.

    It fits no parameters, keeps no state between videos, and gives the same labels for the same
    input.
    """

    def decode(self, scores: Scores, graph: TaskGraph) -> Labels:
        """Label every row of ``scores``."""
        ...


def _find_decoders() -> Iterator[tuple[str, type[Any]]]:
    """Yield the name and the class of every decoder of this folder that needs no options.

    They are discovered rather than registered, so that a decoder is one file and no list has to
    name it; all of these modules are light to import.
    """
    for module in iter_modules(__path__, f"{__name__}."):
        for kind in vars(import_module(module.name)).values():
            if (
                isinstance(kind, type)
                and is_dataclass(kind)
                and kind.__module__ == module.name
                and hasattr(kind, "decode")
                and not any(one.default is Parameter.empty for one in _options(kind).values())
            ):
                yield re.sub("(?<=[a-z])(?=[A-Z])", "-", kind.__name__).lower(), kind


def _options(kind: type[Any]) -> dict[str, Parameter]:
    """Parameters of the constructor of a class, by name."""
    return {
        name: one
        for name, one in signature(kind).parameters.items()
        if one.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    }


DECODERS: dict[str, type[Any]] = dict(sorted(_find_decoders()))
"""The decoders of this package by name."""

DEFAULT_DECODER = "task-markov"


def decoder_class(name: str) -> type[Any]:
    """Return the class of a decoder, by its name or as ``module:Class``.

    >>> decoder_class("path-search").__name__
    'PathSearch'
    """
    if name in DECODERS:
        return DECODERS[name]
    module, _, attribute = name.partition(":")
    if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*", name):
        raise ConfigError(
            f"decoder must be one of {', '.join(DECODERS)}, or a class of yours as "
            f"'module:Class', got {name!r}"
        )
    try:
        found = getattr(import_module(module), attribute, None)
    except ImportError as error:
        raise ConfigError(
            f"decoder {name!r} must be in a module that can be imported, got: {error}; does it "
            f"lie on PYTHONPATH?"
        ) from error
    if not isinstance(found, type) or not callable(getattr(found, "decode", None)):
        what = "nothing of that name" if found is None else f"{found!r}, which has none"
        raise ConfigError(
            f"decoder {name!r} must be a class with a method decode(scores, graph), got {what}"
        )
    return found


def load_decoder(name: str = DEFAULT_DECODER, /, **options: Any) -> Decoder:
    """Make a decoder by name, or one of the user's own as ``module:Class``.

    >>> load_decoder("path-search", threshold=0.5)
    PathSearch(threshold=0.5)
    """
    kind = decoder_class(name)
    accepted = _options(kind)
    takes_any = Parameter.VAR_KEYWORD in (p.kind for p in signature(kind).parameters.values())
    for option in options:
        if option not in accepted and not takes_any:
            new = renamed(kind.__name__, option)
            hint = f"that is now {new!r}" if new else f"it has {', '.join(accepted) or 'none'}"
            raise ConfigError(f"decoder {name!r} has no option {option!r}; {hint}")
    for option, parameter in accepted.items():
        if option not in options and parameter.default is Parameter.empty:
            raise ConfigError(f"decoder {name!r} requires its option {option!r}, got none")
    decoder: Decoder = kind(**options)
    return decoder


def checked_decode(decoder: Decoder, scores: Scores, graph: TaskGraph) -> Labels:
    """Decode, and check that the result labels these scores, since users may supply decoders.

    Annotated rows get the label of their annotation.
    """
    labels: Any = decoder.decode(scores, graph)
    rule = f"decoder {type(decoder).__name__} must return Labels of the video that it was given"
    if not isinstance(labels, Labels):
        raise ConfigError(f"{rule}, {scores.video!r}, got {type(labels).__name__}")
    if (labels.video, len(labels)) != (scores.video, len(scores)):
        raise ConfigError(
            f"{rule}, {scores.video!r} with {len(scores)} rows, got {labels.video!r} with "
            f"{len(labels)}"
        )
    return labels if scores.annotation is None else _as_annotated(labels, scores.annotation)


def _as_annotated(labels: Labels, annotation: NDArray[np.int64]) -> Labels:
    """Replace the labels of annotated rows by their annotation, with confidence 1."""
    annotated = annotation != UNANNOTATED
    sure, anchors = labels.confidence, labels.anchors
    return replace(
        labels,
        keysteps=np.where(annotated, annotation, labels.keysteps),
        anchors=None if anchors is None else np.where(annotated, annotation >= 0, anchors),
        confidence=None if sure is None else np.where(annotated, 1.0, sure),
    )


def encoder_for(name: str) -> EncoderOptions:
    """Options of the encoder whose scores a decoder is made for; by default the paper's."""
    options: EncoderOptions = getattr(decoder_class(name), "encoder", EncoderOptions())
    return options
