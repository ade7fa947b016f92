"""TimeSformer as an encoder: published weights for features, one's own for recognition.

``timesformer:`` gives what the network makes of a clip before it names it, for probing; it knows
no keysteps.  ``own:`` takes a checkpoint of ``stepgraph train``, which was trained to tell its
keysteps apart, so that its classifier stands where other encoders have a text tower: the vector
of a row holds the square roots of all probabilities, that of a keystep is one in its own place,
and the score, their product, is the root of the probability of the keystep.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import Vocabulary
from stepgraph.encoders import EncoderOptions
from stepgraph.encoders.model_folders import (
    fetch_folder,
    find_folder,
    find_weights,
    read_config,
    read_pixel_settings,
)
from stepgraph.encoders.visual import VisualEncoder, pick_device, running
from stepgraph.errors import ConfigError, DataError
from stepgraph.files.disk import require_file
from stepgraph.ingest.frames import ClipOptions

if TYPE_CHECKING:
    import torch

    from stepgraph.networks.timesformer import Header, TimeSformer, TimeSformerOptions

_KIND = "timesformer"
# Seconds of a clip that the published weights were trained on: every 32nd of 30 frames a second.
_PUBLISHED_WINDOW = 8.5
_OWN_WINDOW = 1.0
# What the network has but one of, and how the folder of a model calls it.
_FIXED = {
    "attention_type": "divided_space_time",
    "hidden_act": "gelu",
    "qkv_bias": True,
    "num_channels": 3,
    "layer_norm_eps": 1e-6,
}
_SIZES = {
    "frames": ("num_frames", 8),
    "size": ("image_size", 224),
    "patch": ("patch_size", 16),
    "width": ("hidden_size", 768),
    "depth": ("num_hidden_layers", 12),
    "heads": ("num_attention_heads", 12),
}


class NetworkModel:
    """A TimeSformer; see :class:`~stepgraph.encoders.visual.VisualModel`.

    Parameters
    ----------
    network
        With its weights.
    finish
        Makes vectors of normalised clips, with the network or a part of it.
    window
        Seconds that the vector of a row looks at.
    colours
        Mean and deviation of the colours, where they are not those of the published weights.
    """

    def __init__(
        self,
        network: TimeSformer,
        finish: Callable[[TimeSformer, torch.Tensor], torch.Tensor],
        window: float,
        colours: tuple[Sequence[float], Sequence[float]] | None = None,
    ) -> None:
        self.device = pick_device()
        self._network = network.eval().to(self.device)
        self._finish = finish
        self._colours = colours
        size = network.options.size
        self.clips = ClipOptions(network.options.frames, window, height=size, width=size)

    def encode_clips(self, frames: NDArray[np.uint8]) -> NDArray[np.float32]:
        """See :class:`~stepgraph.encoders.visual.VisualModel`."""
        import torch

        with running(self.device):
            clips = self._prepared(torch.tensor(frames, device=self.device))
            vectors = self._finish(self._network, clips).float().cpu().numpy()
        return np.asarray(vectors, dtype=np.float32)

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """It cannot; the encoders below say so before it is asked."""
        raise ConfigError(f"a TimeSformer must be given clips, got {len(texts)} texts")

    def _prepared(self, clips: torch.Tensor) -> torch.Tensor:
        from stepgraph.networks.timesformer import DEVIATION, MEAN, normalise

        pixels = normalise(clips)
        if self._colours is None:
            return pixels
        mean, deviation = (pixels.new_tensor(part).view(3, 1, 1) for part in self._colours)
        return (pixels * DEVIATION + MEAN - mean) / deviation


class TimeSformerEncoder(VisualEncoder):
    """Features of a TimeSformer: videos can be encoded, keysteps cannot."""

    def encode_keysteps(self, vocabulary: Vocabulary) -> NDArray[np.float32]:
        """Refuse: the network has no text tower."""
        raise ConfigError(
            f"encoder {self.options.name!r} must know the names of {len(vocabulary)} keysteps, "
            f"got one that gives features only; use it with encode and probe, or train it "
            f"(stepgraph train --initial) and use own:CHECKPOINT"
        )


class OwnEncoder(VisualEncoder):
    """A checkpoint of one's own, by its classifier.

    Parameters
    ----------
    options
        See :class:`~stepgraph.encoders.EncoderOptions`; ``task_names`` changes nothing here.
    path
        What ``save_checkpoint`` wrote.
    """

    def __init__(self, options: EncoderOptions, path: Path) -> None:
        super().__init__(options, partial(_load_own, path, _root_of_probabilities))
        self._path = path

    @cached_property
    def header(self) -> Header:
        """What the checkpoint says of itself."""
        from stepgraph.networks.timesformer import read_header

        return read_header(self._path)

    def encode_keysteps(self, vocabulary: Vocabulary) -> NDArray[np.float32]:
        """See :class:`~stepgraph.encoders.Encoder`; keysteps it does not know are zeros."""
        names = self.header.keysteps
        folded = {_folded(name): place for place, name in reversed([*enumerate(names)])}
        places = folded | {name: place for place, name in reversed([*enumerate(names)])}
        vectors = np.zeros((len(vocabulary), len(names)), dtype=np.float32)
        for keystep, name in enumerate(vocabulary.keysteps):
            place = places.get(name, places.get(_folded(name)))
            if place is not None:
                vectors[keystep, place] = 1
        if not vectors.any():
            raise DataError(
                f"{self._path}: must know keysteps of the vocabulary, got none of its "
                f"{len(vocabulary)} among the {len(names)} it was trained on, such as "
                f"{names[0]!r}; is it the checkpoint of another vocabulary?"
            )
        return vectors


def make_timesformer(options: EncoderOptions) -> TimeSformerEncoder:
    """Make an encoder of features: ``timesformer:FOLDER``, ``:NAME``, or ``:CHECKPOINT``."""
    path = Path(os.path.expanduser(options.model))
    if path.is_file():
        return TimeSformerEncoder(options, partial(_load_own, path, _features))
    find_folder(_KIND, options.model)  # a path where nothing is must not wait for a video
    return TimeSformerEncoder(options, partial(_load_published, options.model))


def make_own(options: EncoderOptions) -> OwnEncoder:
    """Make an encoder of a checkpoint of one's own: ``own:CHECKPOINT``."""
    path = Path(os.path.expanduser(options.model))
    require_file(path, "checkpoint of stepgraph train")
    return OwnEncoder(options, path)


def _features(network: TimeSformer, clips: torch.Tensor) -> torch.Tensor:
    return network.features(clips)


def _root_of_probabilities(network: TimeSformer, clips: torch.Tensor) -> torch.Tensor:
    logits: torch.Tensor = network(clips)
    return logits.float().softmax(dim=1).sqrt()


def _folded(name: str) -> str:
    return " ".join(name.casefold().split())


def _load_own(
    path: Path, finish: Callable[[TimeSformer, torch.Tensor], torch.Tensor]
) -> NetworkModel:
    from stepgraph.networks.timesformer import load_checkpoint, read_header

    window = read_header(path).extra.get("window", _OWN_WINDOW)
    if not isinstance(window, int | float) or not 0 < window <= 3600:
        raise DataError(f"{path}: window must be between 0 and 3600 seconds, got {window!r}")
    return NetworkModel(load_checkpoint(path)[0], finish, window)


def _load_published(model: str) -> NetworkModel:
    from stepgraph.networks.timesformer import TimeSformer, load_hf
    from stepgraph.networks.weights import read_weights

    folder = fetch_folder(_KIND, model)
    network = TimeSformer(_read_options(folder))
    files = find_weights(folder)
    state = {name: weight for file in files for name, weight in read_weights(file).items()}
    try:
        load_hf(network, state)
    except DataError as error:
        raise DataError(f"{folder}: {error}") from error
    return NetworkModel(network, _features, _PUBLISHED_WINDOW, _read_colours(folder))


def _read_options(folder: Path) -> TimeSformerOptions:
    """Shape of the network from the library's config.json; its head is not needed."""
    from stepgraph.networks.timesformer import TimeSformerOptions

    path, config = folder / "config.json", read_config(_KIND, folder)
    sizes = {ours: config.get(theirs, usual) for ours, (theirs, usual) in _SIZES.items()}
    try:
        options = TimeSformerOptions(classes=1, **sizes)
    except ConfigError as error:
        raise DataError(f"{path}: {error}") from error
    for name, must in (_FIXED | {"intermediate_size": 4 * options.width}).items():
        if config.get(name, must) != must:
            raise DataError(
                f"{path}: {name} must be {must!r}, got {config[name]!r}; "
                f"such a TimeSformer cannot be read"
            )
    return options


def _read_colours(folder: Path) -> tuple[list[float], list[float]] | None:
    """Mean and deviation of colours, where the folder tells."""
    path, settings = read_pixel_settings(folder)
    if "image_std" not in settings:
        return None
    mean, deviation = settings["image_mean"], settings["image_std"]
    for values, least in ((mean, -math.inf), (deviation, 0)):
        if (
            not isinstance(values, list)
            or len(values) != 3
            or not all(isinstance(x, int | float) and least < x < math.inf for x in values)
        ):
            raise DataError(
                f"{path}: image_mean and image_std must be three numbers each, got {values!r}"
            )
    return mean, deviation
