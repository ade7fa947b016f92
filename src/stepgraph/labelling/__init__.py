"""Label a corpus with the task graph: the pseudo-labelled corpus D' of the paper.

One row a clip, in sharded parquet files that any program reads; the labels of plain argmax stand
beside those of the graph, so that a model can be trained on either.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, is_dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from stepgraph.core import Video
from stepgraph.decoders import DECODERS, Decoder, load_decoder
from stepgraph.encoders import Encoder
from stepgraph.encoders.stored_features import StoredEncoder
from stepgraph.graph import TaskGraph
from stepgraph.labelling.clips import ORIGINS, TOP, ClipLabels, label_clips
from stepgraph.labelling.shards import (
    LabelFolder,
    Provenance,
    Recognise,
    Shard,
    open_labels,
    read_labels,
    write_labels,
)
from stepgraph.labelling.statistics import Change, LabelStatistics, label_statistics
from stepgraph.pipeline import recognize_all
from stepgraph.pipeline.scorers import open_scorer, options_of
from stepgraph.problems import Problems
from stepgraph.scoring import Scorer
from stepgraph.scoring.fusion import Fused
from stepgraph.scoring.stored_scores import StoredScores

__all__ = [
    "ORIGINS",
    "TOP",
    "Change",
    "ClipLabels",
    "LabelFolder",
    "LabelStatistics",
    "Provenance",
    "Recognise",
    "Shard",
    "describe",
    "graph_fingerprint",
    "label_clips",
    "label_source",
    "label_statistics",
    "open_labels",
    "read_labels",
    "write_labels",
]


def label_source(
    videos: Iterable[Video],
    graph: TaskGraph,
    folder: Path,
    *,
    decoder: Decoder | None = None,
    encoder: Scorer | None = None,
    problems: Problems | None = None,
) -> LabelFolder:
    """Label every clip of every video, or go on with a folder that was begun.

    Parameters
    ----------
    decoder
        :class:`~stepgraph.TaskMarkov` if not given.
    encoder
        The one that the graph was mined with if not given.
    problems
        Receives the videos that cannot be labelled; the others are.
    """
    decoder = decoder or load_decoder()
    encoder = _remembering(encoder or open_scorer(graph=graph))
    options = options_of(encoder)
    provenance = Provenance(
        graph.vocabulary,
        graph_fingerprint(graph),
        describe(decoder),
        asdict(options) if options else {"scores": str(getattr(encoder, "path", ""))},
    )
    recognise = partial(recognize_all, graph=graph, decoder=decoder, encoder=encoder)
    return write_labels(videos, recognise, folder, provenance, problems=problems)


class _Remembering:
    """An encoder that encodes the keysteps once, however many parts a corpus comes in."""

    def __init__(self, encoder: Encoder) -> None:
        self.options = encoder.options
        self.encode_videos = encoder.encode_videos
        self.encode_keysteps = lru_cache(1)(encoder.encode_keysteps)


def _remembering(encoder: Scorer) -> Scorer:
    if isinstance(encoder, StoredScores | StoredEncoder):
        return encoder
    if isinstance(encoder, Fused):
        first, second = _Remembering(encoder.first), _Remembering(encoder.second)
        return replace(encoder, first=first, second=second)
    return _Remembering(encoder)


def describe(decoder: Decoder) -> dict[str, Any]:
    """Name and options of a decoder as plain values.

    >>> from stepgraph.decoders import PathSearch
    >>> describe(PathSearch(threshold=0.5))
    {'name': 'path-search', 'threshold': 0.5}
    """
    names = {kind: name for name, kind in DECODERS.items()}
    name = names.get(type(decoder), type(decoder).__qualname__)
    if not is_dataclass(decoder) or isinstance(decoder, type):
        return {"name": name, "options": repr(decoder)}
    return {"name": name, **json.loads(json.dumps(asdict(decoder), default=repr))}


def graph_fingerprint(graph: TaskGraph) -> str:
    """A short hash of all that a graph says about keysteps."""
    digest = hashlib.sha256(graph.vocabulary.fingerprint.encode())
    counts = graph.counts
    for values in (counts.indptr, counts.indices, counts.data):
        digest.update(np.ascontiguousarray(values, dtype="<i8").tobytes())
    if graph.timing is not None:
        digest.update(np.ascontiguousarray(graph.timing, dtype="<i8").tobytes())
    return digest.hexdigest()[:16]
