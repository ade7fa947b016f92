"""Encoders without a text tower: published networks for features, your own for recognition.

``timesformer:`` gives features of clips, and no vectors of keysteps.  ``own:`` takes a checkpoint
of ``stepgraph train`` and uses its classifier in place of a text tower: the vector of a row holds
the square roots of all class probabilities, that of a keystep is a one-hot vector, so that their
product is the root of the keystep's probability.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import Vocabulary
from stepgraph.encoders import EncoderOptions
from stepgraph.encoders.model_folders import (
    PUBLISHED,
    fetch_folder,
    find_folder,
    find_weights,
    read_config,
    read_pixel_settings,
    three_numbers,
)
from stepgraph.encoders.visual import (
    VisualEncoder,
    as_array,
    pick_device,
)
from stepgraph.errors import ConfigError, DataError
from stepgraph.files.disk import require_file
from stepgraph.ingest.frames import ClipOptions

if TYPE_CHECKING:
    from stepgraph.networks.timesformer import TimeSformer, TimeSformerOptions

_KIND = "timesformer"
# Seconds of a clip that the published weights were trained on: every 32nd of 30 frames a second.
_PUBLISHED_WINDOW = 8.5
_OWN_WINDOW = 1.0


class NetworkModel:
    """A TimeSformer that gives features or, with ``classify``, the square roots of probabilities.

    ``colors`` are the mean and deviation of colours, if not those of the published weights.
    """

    def __init__(
        self,
        network: TimeSformer,
        window: float,
        *,
        colors: tuple[Sequence[float], Sequence[float]] | None = None,
        classify: bool = False,
    ) -> None:
        self.device = pick_device()
        self._network = network.eval().to(self.device)
        self._colors = colors
        self._classify = classify
        size = network.options.size
        self.clips = ClipOptions(network.options.frames, window, height=size, width=size)

    def encode_clips(self, frames: NDArray[np.uint8]) -> NDArray[np.float32]:
        """See :class:`~stepgraph.encoders.visual.VisualModel`."""
        import torch

        from stepgraph.networks.timesformer import normalize

        with torch.inference_mode():
            colors = [torch.tensor(c, device=self.device) for c in self._colors or ()]
            pixels = torch.tensor(frames, device=self.device)
            clips = normalize(pixels, *(color.view(3, 1, 1) for color in colors))
            if self._classify:
                vectors = self._network(clips).float().softmax(dim=1).sqrt()
            else:
                vectors = self._network.features(clips)
        return as_array(vectors)

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Raise an error: the network has no text tower."""
        raise ConfigError(f"a TimeSformer must be given clips, got {len(texts)} texts")


class FeatureEncoder(VisualEncoder):
    """Encoder of features only: it encodes videos, but no keysteps."""

    def encode_keysteps(self, vocabulary: Vocabulary) -> NDArray[np.float32]:
        """Refuse: the network has no text tower."""
        raise ConfigError(
            f"encoder {self.options.name!r} must encode the names of {len(vocabulary)} keysteps, "
            f"got one of features only; use it with encode and probe, or train on it "
            f"(stepgraph train) and use own:CHECKPOINT"
        )


class OwnEncoder(VisualEncoder):
    """Encoder from the classifier of your own checkpoint; ``task_names`` have no effect."""

    def __init__(self, options: EncoderOptions, path: Path) -> None:
        super().__init__(options, partial(_load_own, path, classify=True))
        self._path = path

    def encode_keysteps(self, vocabulary: Vocabulary) -> NDArray[np.float32]:
        """See :class:`~stepgraph.encoders.Encoder`; keysteps it was not trained on are zeros."""
        from stepgraph.networks.checkpoints import read_header

        names = read_header(self._path).keysteps
        folded = {_folded(name): place for place, name in reversed([*enumerate(names)])}
        places = folded | {name: place for place, name in reversed([*enumerate(names)])}
        vectors = np.zeros((len(vocabulary), len(names)), dtype=np.float32)
        for keystep, name in enumerate(vocabulary.keysteps):
            place = places.get(name, places.get(_folded(name)))
            if place is not None:
                vectors[keystep, place] = 1
        if not vectors.any():
            raise DataError(
                f"{self._path}: must be trained on keysteps of the vocabulary, got none of its "
                f"{len(vocabulary)} among the {len(names)} it was trained on, such as "
                f"{names[0]!r}; is it the checkpoint of another vocabulary?"
            )
        return vectors


def make_timesformer(options: EncoderOptions) -> FeatureEncoder:
    """Make an encoder of features: ``timesformer:FOLDER``, ``:NAME``, or ``:CHECKPOINT``."""
    path = Path(os.path.expanduser(options.model))
    if path.is_file():
        return FeatureEncoder(options, partial(_load_own, path, classify=False))
    find_folder(_KIND, options.model)  # a path where nothing is must not wait for a video
    return FeatureEncoder(options, partial(_load_published, options.model))


def make_own(options: EncoderOptions) -> OwnEncoder:
    """Make an encoder of a checkpoint of your own: ``own:CHECKPOINT``."""
    path = Path(os.path.expanduser(options.model))
    require_file(path, "checkpoint of stepgraph train")
    return OwnEncoder(options, path)


def _folded(name: str) -> str:
    return " ".join(name.casefold().split())


def _load_own(path: Path, *, classify: bool) -> NetworkModel:
    from stepgraph.networks.checkpoints import load_checkpoint, read_header

    window = read_header(path).extra.get("window", _OWN_WINDOW)
    if not isinstance(window, int | float) or not 0 < window <= 3600:
        raise DataError(f"{path}: window must be between 0 and 3600 seconds, got {window!r}")
    return NetworkModel(load_checkpoint(path)[0], window, classify=classify)


def _load_published(model: str) -> NetworkModel:
    from stepgraph.networks.timesformer import TimeSformer, from_hf
    from stepgraph.networks.weights import read_weights

    folder = fetch_folder(_KIND, model)
    options, files = _read_options(folder), find_weights(folder)
    state = {name: weight for file in files for name, weight in read_weights(file).items()}
    try:
        ours = from_hf(state, options)
    except DataError as error:
        raise DataError(f"{folder}: {error}") from error
    network = TimeSformer(options)  # only now: before, it might have been of any size
    network.load_state_dict(ours, strict=False)
    return NetworkModel(network, _PUBLISHED_WINDOW, colors=_read_colors(folder))


def _read_options(folder: Path) -> TimeSformerOptions:
    """Read the shape of the network from the library's config.json; its head is not used."""
    from stepgraph.networks.timesformer import TimeSformerOptions

    path, config = folder / "config.json", read_config(_KIND, folder)
    published = PUBLISHED[_KIND]
    sizes = {ours: config.get(*theirs) for ours, theirs in published["sizes"].items()}
    try:
        options = TimeSformerOptions(classes=1, **sizes)
    except ConfigError as error:
        raise DataError(f"{path}: {error}") from error
    for name, must in (published["fixed"] | {"intermediate_size": 4 * options.width}).items():
        if config.get(name, must) != must:
            raise DataError(
                f"{path}: {name} must be {must!r}, got {config[name]!r}; "
                f"such a TimeSformer cannot be read"
            )
    return options


def _read_colors(folder: Path) -> tuple[Sequence[float], Sequence[float]] | None:
    """Read the mean and deviation of colours, if the folder has them."""
    path, settings = read_pixel_settings(folder)
    if "image_std" not in settings:
        return None
    try:
        return three_numbers(settings["image_mean"]), three_numbers(settings["image_std"], above=0)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{path}: image_mean and image_std must be three numbers each, got {error}"
        ) from error
