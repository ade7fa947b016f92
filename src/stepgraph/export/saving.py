"""Save the labels, scores, features or report of a video, and load them again."""

from __future__ import annotations

import math
from dataclasses import fields as fields_of
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepgraph import __version__
from stepgraph.core import Features, Labels, Scores
from stepgraph.errors import quoted
from stepgraph.evaluation.report import Report
from stepgraph.files.disk import MIB, read_json
from stepgraph.files.headers import (
    FileKind,
    as_list,
    as_seconds,
    as_text,
    as_whole,
    check_header,
    header,
    reading_fields,
    write_fields,
)
from stepgraph.files.saved_arrays import read_saved, write_arrays
from stepgraph.vocabulary.saving import require_as_saved, vocabulary_fields, vocabulary_of

_REMEDY = "make it with: sg.save"
LABELS_KIND = FileKind("stepgraph-video-labels", 1, "file of a video's labels", _REMEDY)
SCORES_KIND = FileKind("stepgraph-scores", 1, "file of scores", _REMEDY)
FEATURES_KIND = FileKind("stepgraph-video-features", 1, "file of a video's features", _REMEDY)
REPORT_KIND = FileKind(
    "stepgraph-evaluation", 1, "report", "make one with: stepgraph evaluate --json"
)


def _first(kind: FileKind, labelled: Labels | Scores) -> dict[str, Any]:
    vocabulary = labelled.vocabulary
    first = header(kind.format, kind.version, vocabulary) | vocabulary_fields(vocabulary)
    return first | {"video": labelled.video, "hop": labelled.hop}


def save_labels(labels: Labels, path: str | Path) -> None:
    """Save the labels of a video with their vocabulary as JSON, whole or not at all."""
    anchors, confidence = labels.anchors, labels.confidence
    write_fields(
        _first(LABELS_KIND, labels)
        | {
            "rows": labels.keysteps.tolist(),
            "anchors": None if anchors is None else anchors.astype(int).tolist(),
            "confidence": None if confidence is None else confidence.tolist(),
            "probable_tasks": None if labels.tasks is None else dict(labels.tasks),
        },
        path,
    )


def load_labels(path: str | Path) -> Labels:
    """Load labels that :func:`save_labels` wrote."""
    path = Path(path)
    content = read_json(path, limit=4096 * MIB)
    check_header(content, path, LABELS_KIND)
    with reading_fields(path, LABELS_KIND):
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


def save_scores(scores: Scores, path: str | Path) -> None:
    """Save the scores of a video with their vocabulary as ``.npz``, whole or not at all."""
    observed = scores.observed.astype(np.uint8)
    write_arrays(Path(path), _first(SCORES_KIND, scores), values=scores.values, observed=observed)


def load_scores(path: str | Path) -> Scores:
    """Load scores that :func:`save_scores` wrote."""
    fields, (values, observed) = read_saved(Path(path), SCORES_KIND, ("values", "observed"))
    with reading_fields(Path(path), SCORES_KIND):
        if observed.ndim != 1 or np.isnan(values).any():
            raise TypeError("observed must be a number a row, and scores must be numbers")
        scores = Scores(
            as_text(fields["video"]),
            values.astype(np.float32, copy=False),
            observed.astype(bool),
            vocabulary_of(fields),
            as_seconds(fields["hop"], 0.001),
        )
    require_as_saved(scores.vocabulary, fields, Path(path), "make it again")
    return scores


def save_features(features: Features, path: str | Path) -> None:
    """Save the features of a video as ``.npz``; a folder of many is a ``FeatureStore``."""
    kind, about = FEATURES_KIND, {"video": features.video, "duration": features.duration}
    first = {"format": kind.format, "version": kind.version, "stepgraph": __version__}
    fields = first | about
    write_arrays(Path(path), fields, vectors=features.vectors, intervals=features.intervals)


def load_features(path: str | Path) -> Features:
    """Load features that :func:`save_features` wrote."""
    fields, (vectors, intervals) = read_saved(Path(path), FEATURES_KIND, ("vectors", "intervals"))
    with reading_fields(Path(path), FEATURES_KIND):
        return Features(
            as_text(fields["video"]),
            as_seconds(fields["duration"]),
            vectors.astype(np.float32, copy=False),
            intervals.astype(np.float64, copy=False),
        )


def save_report(report: Report, path: str | Path) -> None:
    """Save a report as JSON, whole or not at all."""
    first = {"format": REPORT_KIND.format, "version": REPORT_KIND.version}
    write_fields(first | {"stepgraph": __version__} | report.to_json(), path)


def load_report(path: str | Path) -> Report:
    """Load a report, or what ``evaluate --json`` printed; what stands beside it is left out."""
    path = Path(path)
    content = read_json(path)
    check_header(content, path, REPORT_KIND)
    with reading_fields(path, REPORT_KIND):
        found = {one.name: content[one.name] for one in fields_of(Report)}
        for one in fields_of(Report):
            value = found[one.name]
            if one.type == "float" and value is None:
                found[one.name] = math.nan  # JSON has none
            elif not isinstance(value, _TYPES[str(one.type)]) or isinstance(value, bool):
                raise TypeError(f"{one.name} must be a {one.type}, got {quoted(value)}")
        return Report(**found)


_TYPES: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float)}
