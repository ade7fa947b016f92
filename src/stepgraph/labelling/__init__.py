"""Label a corpus with the task graph: the pseudo-labelled corpus D' of the paper.

One row a clip, in parquet files that any program reads; the labels of plain argmax stand
beside those of the graph, so that a model can be trained on either.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from stepgraph.core import Video
from stepgraph.decoders import DECODERS, Decoder, load_decoder
from stepgraph.graph import TaskGraph
from stepgraph.labelling.folders import LabelFolder, Provenance, write_labels
from stepgraph.pipeline import open_scorer, recognize_all
from stepgraph.problems import Problems
from stepgraph.scoring import Scorer, StoredScores


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
    encoder = encoder or open_scorer(graph=graph)
    if isinstance(encoder, StoredScores):
        read = {"scale": encoder.scale, "seconds_per_row": encoder.seconds_per_row}
        scoring = {"scores": str(encoder.path), **read}
    else:
        scoring = asdict(encoder.options)
    fingerprint = graph_fingerprint(graph)
    provenance = Provenance(graph.vocabulary, fingerprint, describe(decoder), scoring)
    recognise = partial(recognize_all, graph=graph, decoder=decoder, encoder=encoder)
    return write_labels(videos, recognise, folder, provenance, problems=problems)


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
