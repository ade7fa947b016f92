"""Mine a task graph from narrated how-to videos, and recognise the keysteps of new ones.

Two verbs do the whole job: :func:`mine` makes a graph from many videos, :func:`recognize`
labels one.  The stages below them (score, mine_graph, decoders, evaluate) stand on their own.
Names are imported when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stepgraph.renamed import install

__version__ = "0.2.0"

install()

if TYPE_CHECKING:
    from stepgraph.assistant import Executions, Order, learn_order, open_executions
    from stepgraph.core import (
        BACKGROUND,
        Chapter,
        Dataset,
        Features,
        Labels,
        Scores,
        Segment,
        Sentence,
        Timeline,
        Video,
        Vocabulary,
    )
    from stepgraph.datasets import open_source
    from stepgraph.decoders import Argmax, Decoder, PathSearch, TaskMarkov, load_decoder
    from stepgraph.encoders import Encoder, load_encoder
    from stepgraph.errors import ConfigError, DataError, MissingExtraError, StepgraphError
    from stepgraph.evaluation import metrics
    from stepgraph.evaluation.report import Report, evaluate
    from stepgraph.export.artefacts import load, save
    from stepgraph.export.timeline import write_timeline
    from stepgraph.graph import Relation, TaskGraph, Transition, mine_graph
    from stepgraph.ingest import open_video, read_transcript
    from stepgraph.pipeline import mine, recognize, recognize_all
    from stepgraph.pipeline.suggesting import suggest_steps
    from stepgraph.scoring import score
    from stepgraph.vocabulary import make_vocabulary, read_vocabulary
    from stepgraph.vocabulary.suggested import SuggestedVocabulary

_HOMES = {
    "assistant": "Executions Order learn_order open_executions",
    "core": "BACKGROUND Chapter Dataset Features Labels Scores Segment Sentence Timeline Video "
    "Vocabulary",
    "datasets": "open_source",
    "decoders": "Argmax Decoder PathSearch TaskMarkov load_decoder",
    "encoders": "Encoder load_encoder",
    "errors": "ConfigError DataError MissingExtraError StepgraphError",
    "evaluation.report": "Report evaluate",
    "export.timeline": "write_timeline",
    "export.artefacts": "load save",
    "graph": "Relation TaskGraph Transition mine_graph",
    "ingest": "open_video read_transcript",
    "pipeline": "mine recognize recognize_all",
    "pipeline.suggesting": "suggest_steps",
    "scoring": "score",
    "vocabulary": "make_vocabulary read_vocabulary",
    "vocabulary.suggested": "SuggestedVocabulary",
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "BACKGROUND",
    "Argmax",
    "Chapter",
    "ConfigError",
    "DataError",
    "Dataset",
    "Decoder",
    "Encoder",
    "Executions",
    "Features",
    "Labels",
    "MissingExtraError",
    "Order",
    "PathSearch",
    "Relation",
    "Report",
    "Scores",
    "Segment",
    "Sentence",
    "StepgraphError",
    "SuggestedVocabulary",
    "TaskGraph",
    "TaskMarkov",
    "Timeline",
    "Transition",
    "Video",
    "Vocabulary",
    "evaluate",
    "learn_order",
    "load",
    "load_decoder",
    "load_encoder",
    "make_vocabulary",
    "metrics",
    "mine",
    "mine_graph",
    "open_executions",
    "open_source",
    "open_video",
    "read_transcript",
    "read_vocabulary",
    "recognize",
    "recognize_all",
    "save",
    "score",
    "suggest_steps",
    "write_timeline",
]


def __getattr__(name: str) -> Any:
    if name == "metrics":
        return import_module("stepgraph.evaluation.metrics")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'stepgraph' has no attribute {name!r}")
    return getattr(import_module(f"stepgraph.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
