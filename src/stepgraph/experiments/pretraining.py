"""Check that no model is measured on videos that it was trained on."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from stepgraph.encoders import WORDED, Encoder
from stepgraph.errors import ConfigError, DataError
from stepgraph.files.disk import read_text
from stepgraph.labelling.folders import open_labels
from stepgraph.scoring import StoredScores

Model: TypeAlias = Encoder | StoredScores
"""A trained model, or features or scores that one made."""


@dataclass(frozen=True)
class Pretraining:
    """Videos that models were trained on, and the rule for measuring on those.

    Attributes
    ----------
    given
        Ids of videos by the name of a model, beside those listed in its checkpoint.
    allow_shared
        Note videos that are in both instead of refusing them.
    """

    given: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    allow_shared: bool = False

    def check(
        self, models: Mapping[str, Model], tests: Mapping[str, Collection[str]]
    ) -> tuple[str, ...]:
        """Compare the videos of each model with each test set, by their exact ids.

        A head's training videos are compared with its own test set alone (``divide``), since a
        head of one data set is never measured on another.  Only the model's training videos
        matter here.

        Returns
        -------
        notes
            Notes on shared videos, and on models whose training videos are not all known.
        """
        for name in self.given.keys() - models.keys():
            choices = ", ".join(models) or "none"
            raise ConfigError(f"pretrained_on must name one of the models ({choices}), got {name}")
        notes, unknown = [], []
        for name, model in models.items():
            trained, is_whole = trained_on(model)
            if name not in self.given and not is_whole:
                unknown.append(name)
            for test, videos in tests.items():
                shared = sorted((trained | set(self.given.get(name, ()))) & set(videos))
                if not shared:
                    continue
                got = f"{len(shared)} of {len(videos):,}, such as {shared[0]!r}"
                if not self.allow_shared:
                    raise DataError(
                        f"{name}: must be trained on no test video of {test}, got {got};"
                        f" train it without them, or set allow_shared for a note in the table"
                    )
                notes.append(
                    f"{name} was trained on test videos of {test}: {got}; its figures there are "
                    f"not comparable with those of others."
                )
        if unknown:
            notes.append(
                f"No full list of training videos, so some of them may be among the measured "
                f"videos: {', '.join(unknown)}."
            )
        return tuple(notes)


def trained_on(model: Model) -> tuple[frozenset[str], bool]:
    """Return ids of the videos that a model was trained on, and True if these are all.

    Stored features follow the checkpoint that made them, if it still exists at its path.
    """
    if isinstance(model, StoredScores):
        return frozenset(), False
    options = model.options
    if options.kind in (*WORDED, "colour"):
        return frozenset(), True  # trained on sentences, or not at all
    path = Path(os.path.expanduser(options.model))
    if options.kind in ("own", "timesformer") and path.is_file():
        from stepgraph.networks.checkpoints import trained_videos

        return trained_videos(path)
    return frozenset(), False


def read_pretraining(place: Path) -> tuple[str, ...]:
    """Read ids of videos: all of a folder of labels, or one a line of a text file."""
    if place.is_dir():
        parts = open_labels(place).parts
        return tuple(video for part in parts for video in part.videos if video not in part.failed)
    lines = (line.strip() for line in read_text(place).splitlines())
    return tuple(line for line in lines if line)
