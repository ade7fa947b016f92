"""Save any artefact, and load it again: the file says what it is."""

from __future__ import annotations

from pathlib import Path

from stepgraph.core import Vocabulary
from stepgraph.graph import TaskGraph
from stepgraph.graph.saving import load_graph, save_graph
from stepgraph.vocabulary.saving import save_vocabulary


def save(artefact: TaskGraph | Vocabulary, path: str | Path) -> None:
    """Save an artefact as JSON, whole or not at all."""
    if isinstance(artefact, Vocabulary):
        save_vocabulary(artefact, path)
    else:
        save_graph(artefact, path)


def load(path: str | Path) -> TaskGraph:
    """Load what :func:`save` wrote."""
    return load_graph(path)
