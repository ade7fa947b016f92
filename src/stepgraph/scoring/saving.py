"""Save the scores of a video, and load them again."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from stepgraph.core import Scores
from stepgraph.files.headers import FileKind, as_seconds, as_text, header, reading_fields
from stepgraph.files.saved_arrays import read_saved, write_arrays
from stepgraph.vocabulary.saving import require_as_saved, vocabulary_fields, vocabulary_of

SCORES_KIND = FileKind("stepgraph-scores", 1, "file of scores", "make it with: sg.save")


def save_scores(scores: Scores, path: str | Path) -> None:
    """Save the scores of a video with their vocabulary as ``.npz``, whole or not at all."""
    fields = header(SCORES_KIND.format, SCORES_KIND.version, scores.vocabulary)
    fields |= {"video": scores.video, "hop": scores.hop}
    fields |= vocabulary_fields(scores.vocabulary)
    write_arrays(
        Path(path), fields, values=scores.values, observed=scores.observed.astype(np.uint8)
    )


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
