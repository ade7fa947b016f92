"""Save any artefact, and load it again: the file says what it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from stepgraph.core import Features, Labels, Scores, Timeline, Vocabulary
from stepgraph.errors import DataError, quoted
from stepgraph.evaluation.report import Report
from stepgraph.export import saving
from stepgraph.export.timeline import TIMELINE_FORMAT
from stepgraph.files.disk import MIB, require_file
from stepgraph.files.headers import read_format
from stepgraph.files.saved_arrays import read_fields
from stepgraph.graph import TaskGraph
from stepgraph.graph.saving import GRAPH_KIND, load_graph, save_graph
from stepgraph.vocabulary.saving import VOCABULARY_KIND, load_vocabulary, save_vocabulary

_SAVERS: dict[type, Callable[[Any, str | Path], None]] = {
    Vocabulary: save_vocabulary,
    TaskGraph: save_graph,
    Labels: saving.save_labels,
    Report: saving.save_report,
    Scores: saving.save_scores,
    Features: saving.save_features,
}
_LOADERS: dict[str, Callable[[Path], Any]] = {
    VOCABULARY_KIND.format: load_vocabulary,
    GRAPH_KIND.format: load_graph,
    saving.LABELS_KIND.format: saving.load_labels,
    saving.REPORT_KIND.format: saving.load_report,
    saving.SCORES_KIND.format: saving.load_scores,
    saving.FEATURES_KIND.format: saving.load_features,
}
_KINDS = "a vocabulary, task graph, labels, report, scores or features"


def save(artefact: Any, path: str | Path) -> None:
    """Save an artefact, whole or not at all; of a timeline, its labels.

    Parameters
    ----------
    artefact
        A vocabulary, a task graph, labels of a video or a report, as JSON; scores or features
        of a video, as ``.npz``.
    """
    if isinstance(artefact, Timeline):
        artefact = artefact.labels
    saver = next((_SAVERS[kind] for kind in type(artefact).mro() if kind in _SAVERS), None)
    if saver is None:
        raise DataError(f"what is saved must be {_KINDS}, got a {type(artefact).__name__}")
    saver(artefact, path)


def load(path: str | Path) -> Any:
    """Load what :func:`save` wrote, or what ``stepgraph mine``, ``vocabulary`` and so on did."""
    path = Path(path)
    found = _format_of(path)
    if found not in _LOADERS:
        hint = "; save its labels with sg.save" if found == TIMELINE_FORMAT else ""
        raise DataError(
            f"{path}: must be {_KINDS} that stepgraph saved, got {quoted(found)}{hint}"
        )
    return _LOADERS[found](path)


def _format_of(path: Path) -> str:
    require_file(path)
    with path.open("rb") as file:
        is_archive = file.read(2) == b"PK"  # as .npz is
    return str(
        read_fields(path).get("format") if is_archive else read_format(path, limit=4096 * MIB)
    )
