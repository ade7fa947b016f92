"""Save the labels of a video, and load them again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import Labels
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
from stepgraph.vocabulary.saving import require_as_saved, vocabulary_fields, vocabulary_of

LABELS_KIND = FileKind(
    "stepgraph-video-labels", 1, "file of a video's labels", "make it with: sg.save"
)


def save_labels(labels: Labels, path: str | Path) -> None:
    """Save the labels of a video with their vocabulary as JSON, whole or not at all."""
    anchors, confidence = labels.anchors, labels.confidence
    write_fields(
        header(LABELS_KIND.format, LABELS_KIND.version, labels.vocabulary)
        | vocabulary_fields(labels.vocabulary)
        | {
            "video": labels.video,
            "hop": labels.hop,
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
