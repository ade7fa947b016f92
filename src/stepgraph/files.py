"""Load and save artefacts in their versioned machine formats.

Every file begins with its format, its version and the fingerprint of its vocabulary, so that a
file of another kind, of a newer program or of another vocabulary is refused, not misread.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from stepgraph import __version__
from stepgraph.core import Vocabulary
from stepgraph.disk import MIB, read_json, write_text
from stepgraph.encoders import EncoderOptions
from stepgraph.errors import DataError, StepgraphError
from stepgraph.graph import TaskGraph

GRAPH_FORMAT = "stepgraph-graph"
GRAPH_VERSION = 1


def header(format_name: str, version: int, vocabulary: Vocabulary) -> dict[str, Any]:
    """First fields of every artefact."""
    return {
        "format": format_name,
        "version": version,
        "stepgraph": __version__,
        "fingerprint": vocabulary.fingerprint,
    }


def save(graph: TaskGraph, path: str | Path) -> None:
    """Save a task graph as JSON, whole or not at all."""
    counts = coo_array(graph.counts)
    triples = np.stack([*counts.coords, counts.data], axis=1).tolist()
    content = header(GRAPH_FORMAT, GRAPH_VERSION, graph.vocabulary) | {
        "encoder": asdict(graph.encoder) if graph.encoder else None,
        "keysteps": list(graph.vocabulary.keysteps),
        "tasks": {task: list(members) for task, members in graph.vocabulary.tasks.items()},
        "mined_on": list(graph.mined_on),
        "counts": triples,
    }
    # One line per field: small enough to read, and a difference of two graphs is legible.
    fields = (
        f'"{key}": {json.dumps(value, ensure_ascii=False)}' for key, value in content.items()
    )
    write_text(Path(path), "{" + ",\n".join(fields) + "}\n")


def load(path: str | Path) -> TaskGraph:
    """Load a task graph that :func:`save` wrote."""
    path = Path(path)
    content = read_json(path, limit=4096 * MIB)
    _check_header(content, path)
    try:
        vocabulary = Vocabulary(
            tuple(map(_text, _list(content["keysteps"]))),
            {_text(name): tuple(map(_whole, ks)) for name, ks in content["tasks"].items()},
        )
        options = content["encoder"]
        graph = TaskGraph(
            vocabulary,
            _counts(content["counts"], len(vocabulary)),
            tuple(map(_text, _list(content["mined_on"]))),
            EncoderOptions(**options) if options else None,
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        what = (
            str(error) if isinstance(error, StepgraphError) else f"{type(error).__name__}: {error}"
        )
        raise DataError(
            f"{path}: must be a task graph as stepgraph saves it, got {what}"
        ) from error
    if vocabulary.fingerprint != content.get("fingerprint"):
        raise DataError(
            f"{path}: must be a graph of the vocabulary it was saved with (fingerprint "
            f"{content.get('fingerprint')!r}), got another one ({vocabulary.fingerprint!r}); "
            f"was it edited? mine it again"
        )
    return graph


def _check_header(content: Any, path: Path) -> None:
    found = content.get("format") if isinstance(content, dict) else type(content).__name__
    if found != GRAPH_FORMAT:
        raise DataError(
            f"{path}: must be a task graph (format {GRAPH_FORMAT!r}), got {found!r}; "
            f"make one with: stepgraph mine"
        )
    version = content.get("version")
    if not isinstance(version, int) or version < 1:
        raise DataError(f"{path}: version must be a number of at least 1, got {version!r}")
    if version > GRAPH_VERSION:
        raise DataError(
            f"{path}: format version must be at most {GRAPH_VERSION}, got {version}; it was saved "
            f"by a newer stepgraph ({content.get('stepgraph')}), so upgrade this one"
        )


def _counts(triples: Any, size: int) -> Any:
    for triple in _list(triples):
        if len(list(map(_whole, _list(triple)))) != 3:
            raise TypeError(f"counts must be triples, got {triple!r}"[:200])
    table = np.asarray(triples, dtype=np.int64).reshape(-1, 3)
    source, target, count = table.T
    if len(table) and (table[:, :2].min() < 0 or table[:, :2].max() >= size):
        raise DataError(f"counts of keysteps that are not among the {size} of its vocabulary")
    return csr_array(coo_array((count, (source, target)), shape=(size, size)))


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"a list was expected, got {value!r}"[:200])
    return value


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"whole numbers were expected, got {value!r}"[:200])
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"names must be text, got {value!r}"[:200])
    return value


def same_vocabulary(graph: TaskGraph, vocabulary: Vocabulary, where: str | Path) -> None:
    """Refuse a graph of another vocabulary than the one in use."""
    if graph.vocabulary != vocabulary:
        raise DataError(
            f"{where}: must be a graph of the vocabulary in use ({len(vocabulary)} keysteps, "
            f"fingerprint {vocabulary.fingerprint}), got one of {len(graph.vocabulary)} keysteps, "
            f"fingerprint {graph.vocabulary.fingerprint}; mine it again with that vocabulary"
        )
