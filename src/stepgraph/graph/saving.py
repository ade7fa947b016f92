"""Files of task graphs: saving and loading.

A file of another kind, of a newer program or of another vocabulary is refused, not misread.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from stepgraph.core import Vocabulary
from stepgraph.encoders import EncoderOptions
from stepgraph.errors import DataError, quoted
from stepgraph.files.disk import MIB, read_json
from stepgraph.files.headers import (
    FileKind,
    as_list,
    as_text,
    as_whole,
    check_header,
    header,
    reading_fields,
    write_fields,
)
from stepgraph.graph.saving_parameters import (
    parameters_fields,
    parameters_of,
    traces_fields,
    traces_of,
)
from stepgraph.graph.shortest_paths import Matrix
from stepgraph.graph.task_graph import MiningOptions, TaskGraph
from stepgraph.graph.traces import TIMING_BINS
from stepgraph.vocabulary.lists import vocabulary_fields, vocabulary_of
from stepgraph.vocabulary.notes import notes_fields

GRAPH_KIND = FileKind("stepgraph-graph", 2, "task graph", "make one with: stepgraph mine")


def save_graph(graph: TaskGraph, path: str | Path) -> None:
    """Save a task graph as JSON, whole or not at all."""
    write_fields(graph_fields(graph), path)


def graph_fields(graph: TaskGraph) -> dict[str, Any]:
    """Return all fields of a task graph, as its file stores them."""
    encoder = asdict(graph.encoder) if graph.encoder else None
    timing = None if graph.timing is None else _triples(graph.timing)
    return (
        header(GRAPH_KIND.format, GRAPH_KIND.version, graph.vocabulary)
        | {"encoder": encoder, "mining": mining_fields(graph.mining)}
        | vocabulary_fields(graph.vocabulary)
        | notes_fields(graph.vocabulary)
        | {"mined_on": list(graph.mined_on), "counts": _triples(graph.counts), "timing": timing}
        | {
            "parameters": parameters_fields(graph.parameters),
            "traces": traces_fields(graph.traces),
        }
    )


def load_graph(path: str | Path) -> TaskGraph:
    """Load a task graph that :func:`save_graph` wrote."""
    path = Path(path)
    content = read_json(path, limit=4096 * MIB)
    check_header(content, path, GRAPH_KIND)
    with reading_fields(path, GRAPH_KIND):
        vocabulary = vocabulary_of(content)
        options, timing = content["encoder"], content["timing"]
        shape = len(vocabulary), TIMING_BINS
        graph = TaskGraph(
            vocabulary,
            _matrix(content["counts"], (len(vocabulary), len(vocabulary))),
            tuple(map(as_text, as_list(content["mined_on"]))),
            EncoderOptions(**options) if options else None,
            _mining_of(content["mining"]),
            None if timing is None else _matrix(timing, shape).toarray(),
            parameters_of(content.get("parameters"), vocabulary),
            traces_of(content.get("traces"), vocabulary),
        )
    if vocabulary.fingerprint != content.get("fingerprint"):
        raise DataError(
            f"{path}: must be a graph of the vocabulary it was saved with (fingerprint "
            f"{quoted(content.get('fingerprint'))}), got another one "
            f"({vocabulary.fingerprint!r}); was it edited? mine it again"
        )
    return graph


def mining_fields(options: MiningOptions | None) -> dict[str, float | None] | None:
    """Return the options of mining for JSON: no limit is null, since JSON has no infinity."""
    if options is None:
        return None
    return {key: value if math.isfinite(value) else None for key, value in asdict(options).items()}


def _mining_of(fields: Any) -> MiningOptions | None:
    if fields is None:
        return None
    given = {key: value for key, value in fields.items() if value is not None}
    if not all(isinstance(value, int | float) for value in given.values()):
        raise TypeError(f"numbers were expected, got {fields!r}"[:200])
    return MiningOptions(**{key: float(value) for key, value in given.items()})


def _triples(matrix: Any) -> list[list[int]]:
    """List the row, column and value of each entry that is not zero."""
    entries = coo_array(matrix)
    triples: list[list[int]] = np.stack([*entries.coords, entries.data], axis=1).tolist()
    return triples


def _matrix(triples: Any, shape: tuple[int, int]) -> Matrix:
    """Check a list of such triples, and build the matrix."""
    for triple in as_list(triples):
        if len(list(map(as_whole, as_list(triple)))) != 3:
            raise TypeError(f"counts must be triples, got {triple!r}"[:200])
    table = np.asarray(triples, dtype=np.int64).reshape(len(triples), 3)
    if len(table) and (table[:, :2].min() < 0 or (table[:, :2].max(axis=0) >= shape).any()):
        raise DataError(f"counts of keysteps that are not among the {shape[0]} of its vocabulary")
    row, column, count = table.T
    if (count < 0).any():
        raise DataError(f"counts must be at least 0, got {count.min()}")
    return csr_array(coo_array((count, (row, column)), shape=shape))


def same_vocabulary(graph: TaskGraph, vocabulary: Vocabulary, where: str | Path) -> None:
    """Refuse a graph of another vocabulary than the one in use."""
    if graph.vocabulary != vocabulary:
        raise DataError(
            f"{where}: must be a graph of the vocabulary in use ({len(vocabulary)} keysteps, "
            f"fingerprint {vocabulary.fingerprint}), got one of {len(graph.vocabulary)} keysteps, "
            f"fingerprint {graph.vocabulary.fingerprint}; mine it again with that vocabulary"
        )
