"""Save the features of one video, and load them again; a folder of many is a FeatureStore."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from stepgraph import __version__
from stepgraph.core import Features
from stepgraph.files.headers import FileKind, as_seconds, as_text, reading_fields
from stepgraph.files.saved_arrays import read_saved, write_arrays

FEATURES_KIND = FileKind(
    "stepgraph-video-features", 1, "file of a video's features", "make it with: sg.save"
)


def save_features(features: Features, path: str | Path) -> None:
    """Save the features of a video as ``.npz``, whole or not at all."""
    fields = {
        "format": FEATURES_KIND.format,
        "version": FEATURES_KIND.version,
        "stepgraph": __version__,
        "video": features.video,
        "duration": features.duration,
    }
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
