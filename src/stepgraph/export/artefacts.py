"""Save any artefact, and load it again by the format named in the file."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields as fields_of
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepgraph import __version__
from stepgraph.core import Features, Labels, Result, Scores, Timeline, Vocabulary
from stepgraph.errors import DataError, quoted
from stepgraph.evaluation.report import Report
from stepgraph.export.results import TIMELINE_KIND, load_result
from stepgraph.export.timeline import seen_in, to_json
from stepgraph.files import headers
from stepgraph.files.disk import MIB, read_json, require_file, write_text
from stepgraph.files.headers import FileKind, as_list, as_seconds, as_text, as_whole, read_format
from stepgraph.files.saved_arrays import read_fields, read_saved, write_arrays
from stepgraph.graph import TaskGraph
from stepgraph.graph.saving import GRAPH_KIND, load_graph, save_graph
from stepgraph.vocabulary import lists
from stepgraph.vocabulary.lists import require_as_saved, vocabulary_fields, vocabulary_of

_REMEDY = "make it with: sg.save"
_LABELS = FileKind("stepgraph-video-labels", 1, "file of a video's labels", _REMEDY)
_SCORES = FileKind("stepgraph-scores", 1, "file of scores", _REMEDY)
_FEATURES = FileKind("stepgraph-video-features", 1, "file of a video's features", _REMEDY)
_REPORT = FileKind("stepgraph-evaluation", 1, "report", "make one with: stepgraph evaluate --json")
_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
}


def save(artefact: Any, path: str | Path) -> None:
    """Save an artefact, whole or not at all; of a timeline, its labels are saved.

    Parameters
    ----------
    artefact
        A vocabulary, a task graph, labels or a result of a video, or a report, as JSON; scores or
        features of a video, as ``.npz``.
    """
    if isinstance(artefact, Timeline):
        artefact = artefact.labels
    for kind, write, _ in _ARTEFACTS.values():
        if isinstance(artefact, kind):
            return write(artefact, Path(path))
    raise DataError(f"what is saved must be {_KINDS}, got a {type(artefact).__name__}")


def load(path: str | Path) -> Any:
    """Load a file of :func:`save`, or of a command such as ``stepgraph mine``."""
    path = Path(path)
    require_file(path)
    with path.open("rb") as file:
        is_archive = file.read(2) == b"PK"  # as .npz is
    found = read_fields(path).get("format") if is_archive else read_format(path, limit=4096 * MIB)
    if str(found) not in _ARTEFACTS:
        raise DataError(f"{path}: must be {_KINDS} that stepgraph saved, got {quoted(str(found))}")
    return _ARTEFACTS[str(found)][2](path)


def _first(kind: FileKind, labelled: Labels | Scores) -> dict[str, Any]:
    vocabulary = labelled.vocabulary
    first = headers.header(kind.format, kind.version, vocabulary) | vocabulary_fields(vocabulary)
    return first | {"video": labelled.video, "hop": labelled.hop}


def _marks(kind: FileKind) -> dict[str, Any]:
    """Return the first fields of a file without a vocabulary."""
    return {"format": kind.format, "version": kind.version, "stepgraph": __version__}


def _save_labels(labels: Labels, path: Path) -> None:
    anchors, confidence = labels.anchors, labels.confidence
    rows = {
        "rows": labels.keysteps.tolist(),
        "anchors": None if anchors is None else anchors.astype(int).tolist(),
        "confidence": None if confidence is None else confidence.tolist(),
        "probable_tasks": None if labels.tasks is None else dict(labels.tasks),
    }
    headers.write_fields(_first(_LABELS, labels) | rows, path)


def _load_labels(path: Path) -> Labels:
    content = read_json(path, limit=4096 * MIB)
    headers.check_header(content, path, _LABELS)
    with headers.reading_fields(path, _LABELS):
        tasks = content["probable_tasks"]
        labels = Labels(
            as_text(content["video"]),
            np.array([as_whole(row) for row in as_list(content["rows"])], dtype=np.int64),
            vocabulary_of(content),
            as_seconds(content["hop"], 0.001),
            _array(content["anchors"], bool),
            _array(content["confidence"], np.float64),
            None if tasks is None else {as_text(name): float(p) for name, p in tasks.items()},
        )
    require_as_saved(labels.vocabulary, content, path, "make it again")
    return labels


def _array(values: Any, dtype: type) -> NDArray[Any] | None:
    return None if values is None else np.array(as_list(values), dtype=dtype)


def _save_scores(scores: Scores, path: Path) -> None:
    observed = scores.observed.astype(np.uint8)
    write_arrays(path, _first(_SCORES, scores), values=scores.values, observed=observed)


def _load_scores(path: Path) -> Scores:
    fields, (values, observed) = read_saved(path, _SCORES, ("values", "observed"))
    with headers.reading_fields(path, _SCORES):
        if observed.ndim != 1 or np.isnan(values).any():
            raise TypeError("observed must be a number a row, and scores must be numbers")
        scores = Scores(
            as_text(fields["video"]),
            np.asarray(values, np.float32),
            observed.astype(bool),
            vocabulary_of(fields),
            as_seconds(fields["hop"], 0.001),
        )
    require_as_saved(scores.vocabulary, fields, path, "make it again")
    return scores


def _save_features(features: Features, path: Path) -> None:
    fields = _marks(_FEATURES) | {"video": features.video, "duration": features.duration}
    write_arrays(path, fields, vectors=features.vectors, intervals=features.intervals)


def _load_features(path: Path) -> Features:
    fields, (vectors, intervals) = read_saved(path, _FEATURES, ("vectors", "intervals"))
    with headers.reading_fields(path, _FEATURES):
        return Features(
            as_text(fields["video"]),
            as_seconds(fields["duration"]),
            np.asarray(vectors, np.float32),
            np.asarray(intervals, np.float64),
        )


def _save_report(report: Report, path: Path) -> None:
    headers.write_fields(_marks(_REPORT) | report.to_json(), path)


def load_report(path: Path) -> Report:
    """Load a report, or the output of ``evaluate --json``, whose other fields are ignored."""
    content = read_json(path)
    headers.check_header(content, path, _REPORT)
    with headers.reading_fields(path, _REPORT):
        # Reports until 0.2.0 are over all rows, and lack the field.
        content = {"background_rows": True} | content
        found = {one.name: content[one.name] for one in fields_of(Report)}
        for one in fields_of(Report):
            value = found[one.name]
            if one.type == "float" and value is None:
                found[one.name] = math.nan  # JSON has none
            elif not isinstance(value, _TYPES[str(one.type)]) or (
                isinstance(value, bool) and one.type != "bool"
            ):
                raise TypeError(f"{one.name} must be a {one.type}, got {quoted(value)}")
        return Report(**found)


def _save_result(result: Result, path: Path) -> None:
    write_text(path, to_json(seen_in(result, path.parent)))


_ARTEFACTS: dict[str, tuple[type, Callable[[Any, Path], None], Callable[[Path], Any]]] = {
    lists.VOCABULARY_KIND.format: (Vocabulary, lists.save_vocabulary, lists.load_vocabulary),
    GRAPH_KIND.format: (TaskGraph, save_graph, load_graph),
    _LABELS.format: (Labels, _save_labels, _load_labels),
    _REPORT.format: (Report, _save_report, load_report),
    TIMELINE_KIND.format: (Result, _save_result, load_result),
    _SCORES.format: (Scores, _save_scores, _load_scores),
    _FEATURES.format: (Features, _save_features, _load_features),
}
_KINDS = "a vocabulary, task graph, labels, report, result, scores or features"
