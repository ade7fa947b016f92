"""Stored features as an encoder, so that nothing after it need know that they were stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import Features, Video, Vocabulary
from stepgraph.encoders import Encoder, EncoderOptions, load_encoder
from stepgraph.encoders.feature_store import FeatureStore, of_length_one
from stepgraph.encoders.model_folders import require_named
from stepgraph.errors import ConfigError, DataError
from stepgraph.files.arrays import SUFFIXES, Kind, read_array
from stepgraph.files.stored import Reading
from stepgraph.problems import Problems

KEYSTEPS = "keysteps"
"""Stem of the file with a vector for each keystep, in a folder of features."""

_FUNCTION = "stepgraph.encoders.stored_features:make_stored"


class StoredEncoder:
    """Take videos from stored features, and keysteps from the encoder that made them.

    Parameters
    ----------
    path, seconds_per_row, problems
        See :class:`FeatureStore`; videos without features that can be read are problems, too.
    encoder
        Encodes the keysteps.  If not given, ``keysteps.npy`` (or another format) in the folder
        has their vectors, K by D in the order of the vocabulary; or else the encoder that the
        folder names is loaded, if it is not a function of somebody's.
    all_videos
        Give those videos, too, without a vector: they are unobserved.  Else they are left out.
    """

    def __init__(
        self,
        path: Path,
        encoder: Encoder | None = None,
        *,
        seconds_per_row: float | None = 1.0,
        problems: Problems | None = None,
        all_videos: bool = False,
    ) -> None:
        self._all_videos = all_videos
        self._store = FeatureStore(path, seconds_per_row=seconds_per_row, problems=problems)
        self._encoder = encoder
        if encoder is not None:
            self._store.require(encoder.options)
        self._store.files.names("")  # make sure now that there is something to read

    @property
    def options(self) -> EncoderOptions:
        """See :class:`~stepgraph.encoders.Encoder`: those of the encoder behind the features."""
        if self._encoder is not None:
            return self._encoder.options
        return self._store.encoder or EncoderOptions(_FUNCTION)

    def encode_keysteps(self, vocabulary: Vocabulary) -> NDArray[np.float32]:
        """See :class:`~stepgraph.encoders.Encoder`."""
        path = None if self._encoder is not None else self._find_keysteps()
        if path is not None:
            vectors = _read_keysteps(path, vocabulary, self._store.width)
        else:
            if self._encoder is None:
                self._encoder = self._load()
            vectors = self._encoder.encode_keysteps(vocabulary)
        self._store.width = vectors.shape[1]
        return vectors

    def encode_videos(self, videos: Iterable[Video]) -> Iterator[Features]:
        """See :class:`~stepgraph.encoders.Encoder`."""
        return (features for _, features in self.read_each(videos))

    def read_each(self, videos: Iterable[Video]) -> Iterator[tuple[Video, Features]]:
        """Give each video with its features; a file is read when its video comes."""
        reading = Reading(self._store.files, self._store.problems)
        for video in videos:
            found = reading.attempt(video.id, partial(self._store.read, video))
            if found is not None or self._all_videos:
                yield video, found if found is not None else _nothing(video)
        reading.finish()

    def _find_keysteps(self) -> Path | None:
        # In a folder of our own, keysteps.npz would be a video of that name.
        suffixes = [one for one in SUFFIXES if self._store.encoder is None or one != ".npz"]
        paths = (self._store.path / f"{KEYSTEPS}{suffix}" for suffix in suffixes)
        return next((path for path in paths if path.is_file()), None)

    def _load(self) -> Encoder:
        options = self._store.encoder
        if options is None:
            raise ConfigError(
                f"{self._store.path}: must have a vector for each keystep "
                f"({KEYSTEPS}.npy, K x D) or an encoder for them, got neither; choose the encoder "
                f"that made the features with --encoder"
            )
        require_named(options, f"{self._store.path}: encoder")
        return load_encoder(options)


def make_stored(options: EncoderOptions) -> StoredEncoder:
    """Refuse: a graph that was mined from features alone does not say where they are."""
    raise ConfigError(
        f"encoder {options.name!r} must be told where its features are, got no folder; "
        f"give it with --features"
    )


def _read_keysteps(path: Path, vocabulary: Vocabulary, width: int | None) -> NDArray[np.float32]:
    kind = Kind("vectors of keysteps", hint="were they computed with another encoder?")
    vectors = read_array(path, kind=kind, width=width)
    if len(vectors) != len(vocabulary):
        raise DataError(
            f"{path}: vectors of keysteps must be {len(vocabulary)}, one for each keystep, "
            f"got {len(vectors)}; were they computed with another vocabulary?"
        )
    return of_length_one(vectors)


def _nothing(video: Video) -> Features:
    empty = np.zeros((0, 1), np.float32)
    return Features(video.id, video.duration, empty, np.zeros((0, 2), np.float64))
