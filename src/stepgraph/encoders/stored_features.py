"""Stored features of videos: reading and writing folders, and an encoder that gives them.

Code that uses the encoder does not depend on the features being stored.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepgraph import __version__
from stepgraph.core import LONGEST, Features, Video, Vocabulary
from stepgraph.encoders import Encoder, EncoderOptions, load_encoder
from stepgraph.encoders.model_folders import require_named
from stepgraph.errors import ConfigError, DataError
from stepgraph.files.arrays import (
    SUFFIXES,
    ArrayContent,
    ArrayFiles,
    open_arrays,
    read_array,
    read_arrays,
)
from stepgraph.files.arrays.checks import Wanted
from stepgraph.files.disk import MIB, read_json, replacing, write_text
from stepgraph.files.headers import FileKind, check_header, reading_fields
from stepgraph.files.ids import file_in
from stepgraph.files.stored import Reading, check_seconds, note_length, stored_rows
from stepgraph.problems import Problems

KEYSTEPS = "keysteps"
"""Stem of the file with a vector for each keystep, in a folder of features."""

HEADER = "features.json"
"""File of a folder of features with the options of their encoder."""

HEADER_KIND = FileKind(
    "stepgraph-features", 1, "header of stored features", "make them with: stepgraph encode"
)

_ARRAYS = ("vectors", "intervals", "duration")
_HOP = 1.0  # seconds of a row
_FUNCTION = "stepgraph.encoders.stored_features:make_stored"


class _OwnFiles(ArrayFiles):
    """Files of a folder of features: one for each video, with vectors and their times."""

    def file(self, video: str) -> Path | None:
        """File of a video; None for an id that cannot name a file."""
        try:
            return file_in(self.path, video, ".npz")
        except DataError:
            return None

    def names(self, video: str) -> list[str]:
        file = self.file(video)
        return [file.name] if file is not None and file.is_file() else []

    def where(self, video: str) -> str:
        return str(self.file(video) or self.path / video)

    def absence(self) -> str:
        return "must be a file of stored features, got none; run stepgraph encode again"


class FeatureStore:
    """Features of many videos, in a folder or in one file of another program.

    Parameters
    ----------
    seconds_per_row
        Seconds that one row of foreign arrays covers; None spreads the rows of each array evenly
        over its video.  They are resampled to rows of a second, each with the vector that covers
        its middle.  Features of our own are stored with their times.
    problems
        Receives videos that are shorter or longer than their features; strict if not given.
    """

    def __init__(
        self,
        path: Path,
        *,
        seconds_per_row: float | None = 1.0,
        problems: Problems | None = None,
    ) -> None:
        if seconds_per_row is not None:
            check_seconds(seconds_per_row=seconds_per_row)
        self.path = path
        self.problems = problems if problems is not None else Problems(strict=True)
        self.width: int | None = None
        self._seconds_per_row = seconds_per_row
        header = path / HEADER
        self.encoder = _read_header(header) if header.is_file() else None
        self._own = _OwnFiles(path)

    @cached_property
    def files(self) -> ArrayFiles:
        """Files that hold the features; those of another program are opened on first use."""
        return self._own if self.encoder is not None else open_arrays(self.path)

    def has(self, video: str) -> bool:
        """Check that stepgraph wrote features of a video, and that their file is complete."""
        file = self._own.file(video)
        if file is None:
            return False
        try:
            # What is at the end of a file lists all that is in it.
            with zipfile.ZipFile(file) as archive:
                return archive.namelist() == [f"{name}.npy" for name in _ARRAYS]
        except (OSError, zipfile.BadZipFile):
            return False

    def where(self, video: str) -> str:
        """Path of the features of a video, present or expected, for the start of a message."""
        return self.files.where(video)

    def read(self, video: Video) -> Features:
        """Read the features of a video.

        Foreign vectors are scaled to length 1 (zeros stay zeros), cut at the end of the video,
        and noted as a problem if they are more than a row shorter or longer.
        """
        if not self.files.names(video.id):
            raise DataError(f"{self.where(video.id)}: {self.files.absence()}")
        features = self._read_own(video) if self.encoder else self._read_foreign(video)
        if len(features.vectors):
            self.width = features.vectors.shape[1]
        return features

    def _read_own(self, video: Video) -> Features:
        where = self.where(video.id)
        vectors, intervals, seconds = read_arrays(Path(where), _ARRAYS)
        # A video without a sentence has no vectors, and so no width.
        wanted = Wanted(where, width=self.width if vectors.size else None)
        wanted.check(vectors.shape, str(vectors.dtype))
        _check_times(where, intervals, seconds, len(vectors))
        if abs(float(seconds) - video.duration) > _HOP:
            longer = "shorter" if float(seconds) < video.duration else "longer"
            self.problems.add(
                where,
                f"features {longer} than the video",
                f"must be of a video of {video.duration:g} s, got one of {float(seconds):g} s; "
                f"was it cut since? delete the file and run stepgraph encode again",
            )
        return Features(
            video.id, video.duration, wanted.finished(vectors), intervals.astype(np.float64)
        )

    def _read_foreign(self, video: Video) -> Features:
        vectors = self.files.read(video.id, self.width)
        seconds = self._seconds_per_row
        if seconds is None:
            seconds = video.duration / len(vectors) if len(vectors) and video.duration else 1.0
        note_length(self.files, len(vectors), video, seconds, self.problems)
        position = stored_rows(video.duration, _HOP, seconds)
        rows = np.flatnonzero(position < len(vectors))
        ends = np.minimum((rows + 1) * _HOP, video.duration)
        intervals = np.stack([rows * _HOP, ends], axis=1).astype(np.float64)
        return Features(
            video.id, video.duration, of_length_one(vectors[position[rows]]), intervals
        )

    def prepare(self, options: EncoderOptions) -> None:
        """Prepare to write: make the folder, or check that it is of the same encoder."""
        if self.encoder is not None:
            self.require(options)
            return
        if self.path.exists() and not self.path.is_dir():
            raise DataError(f"{self.path}: must be a folder to fill with features, got a file")
        if self.path.is_dir() and any(not name.startswith(".") for name in os.listdir(self.path)):
            raise DataError(
                f"{self.path}: must be a new or empty folder, or one that stepgraph encode "
                f"filled, got a folder without {HEADER}; choose another output folder"
            )
        content = {
            "format": HEADER_KIND.format,
            "version": HEADER_KIND.version,
            "stepgraph": __version__,
            "encoder": asdict(options),
        }
        write_text(self.path / HEADER, json.dumps(content, indent=1) + "\n")
        self.encoder = options

    def require(self, options: EncoderOptions) -> None:
        """Refuse features that another encoder made."""
        for key, new in asdict(options).items():
            old = getattr(self.encoder, key, new)
            # Names of tasks are put before keysteps only; videos are the same with and without.
            if old != new and key != "task_names":
                raise DataError(
                    f"{self.path}: must hold features of the chosen encoder ({key} {new!r}), "
                    f"got a folder of another one ({key} {old!r} in {HEADER}); choose the same "
                    f"encoder, or another folder"
                )

    def write(self, features: Features) -> None:
        """Write the features of a video atomically, as the same bytes every time."""
        path = file_in(self.path, features.video, ".npz")
        vectors = np.ascontiguousarray(features.vectors, "<f4")
        Wanted(f"video {features.video!r}").finished(vectors)
        if not len(vectors):  # what an encoder makes of nothing has any width
            vectors = np.zeros((0, 1), "<f4")
        intervals = np.ascontiguousarray(features.intervals, "<f8")
        duration = np.array(features.duration, "<f8")
        with replacing(path) as partial_file, partial_file.open("wb") as file:
            # Nothing in what numpy writes depends on when and where.
            np.savez(file, vectors=vectors, intervals=intervals, duration=duration)
            file.flush()
            # A name must not outlive what it names, also where the power fails.
            os.fsync(file.fileno())


def _read_header(path: Path) -> EncoderOptions:
    content = read_json(path, limit=MIB)
    check_header(content, path, HEADER_KIND)
    with reading_fields(path, HEADER_KIND):
        return EncoderOptions(**content["encoder"])


def _check_times(
    where: str, intervals: NDArray[np.float64], seconds: NDArray[np.float64], rows: int
) -> None:
    sane = seconds.shape == () and 0 <= seconds <= LONGEST and intervals.shape == (rows, 2)
    if not sane or not (np.isfinite(intervals).all() and (np.diff(intervals) >= 0).all()):
        raise DataError(
            f"{where}: must have a start and an end in seconds for each of its {rows:,} vectors, "
            f"got shape {intervals.shape} or times that are none; encode the video again"
        )


def of_length_one(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale each row to length 1, from any length above 0; zeros stay zeros."""
    length = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1.0), dtype=np.float32)


class StoredEncoder:
    """Encoder of videos from stored features, and of keysteps by the encoder that made them.

    Parameters
    ----------
    path, seconds_per_row, problems
        See :class:`FeatureStore`; videos without readable features are problems as well.
    encoder
        Encodes the keysteps.  If not given, ``keysteps.npy`` (or another format) in the folder
        has their vectors, K by D in the order of the vocabulary; or else the encoder that the
        folder names is loaded, if it is built in or in the local cache.
    all_videos
        Give such videos as well, unobserved and without a vector.  Else they are left out.
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
        """See :class:`~stepgraph.encoders.Encoder`: those of the encoder of the features."""
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
        """Yield each video with its features, which are read one file at a time."""
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
                f"({KEYSTEPS}.npy, K x D) or an encoder for them, got neither; name the encoder "
                f"that made the features (--encoder)"
            )
        require_named(options, f"{self._store.path}: encoder")
        return load_encoder(options)


def make_stored(options: EncoderOptions) -> StoredEncoder:
    """Raise an error: a graph that was mined from features does not record their folder."""
    raise ConfigError(
        f"encoder {options.name!r} requires a folder of features (--features), got none"
    )


def _read_keysteps(path: Path, vocabulary: Vocabulary, width: int | None) -> NDArray[np.float32]:
    kind = ArrayContent("vectors of keysteps", hint="were they computed with another encoder?")
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
