"""Base of all visual encoders: rows of a video in, unit vectors out.

A model is two functions, one for clips and one for texts; :class:`VisualEncoder` makes an
encoder of it.  Other modules choose the model and load its weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from stepgraph import progress
from stepgraph.core import Features, Video, Vocabulary, rows_in
from stepgraph.encoders import EncoderOptions, Precision
from stepgraph.encoders.vectors import keystep_vectors, unit
from stepgraph.errors import DataError
from stepgraph.ingest.frames import ClipOptions, read_clips

if TYPE_CHECKING:
    import torch

# Frames encoded together: enough to keep the device busy, few enough for its memory.
_FRAMES = {"cpu": 32, "cuda": 256}
_TEXTS = 256


class VisualModel(Protocol):
    """Protocol of networks that embed clips and, with a text tower, texts."""

    @property
    def clips(self) -> ClipOptions:
        """Clip that it takes for one row."""

    def encode_clips(self, frames: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Vectors of clips, from shape (B, F, H, W, 3) to (B, D), not normalised."""

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of texts, shape (N, D), not normalised."""


class VisualEncoder:
    """Encode a video by its pictures, one vector a row.

    The ``window`` of the options replaces the model's own; ``load`` makes the model, once, on
    first use.  ``batch`` clips are encoded together; by default their number depends on the
    device.
    """

    def __init__(
        self, options: EncoderOptions, load: Callable[[], VisualModel], batch: int | None = None
    ) -> None:
        self.options = options
        self._load = load
        self._batch = batch

    @cached_property
    def model(self) -> VisualModel:
        """Network, loaded on first use."""
        with progress.counting(f"loading {self.options.name}"):
            return self._load()

    @property
    def clips(self) -> ClipOptions:
        """Clip that is decoded for one row."""
        clips = self.model.clips
        window = self.options.window
        return clips if window is None else replace(clips, window=window)

    def encode_keysteps(self, vocabulary: Vocabulary) -> NDArray[np.float32]:
        """See :class:`~stepgraph.encoders.Encoder`; one without a word of the model is zeros."""
        names = self.options.task_names
        vectors = keystep_vectors(vocabulary, self._encode_texts, task_names=names)
        if not vectors.any():
            raise DataError(
                f"encoder {self.options.name!r} must have a vector for a word of some keystep, "
                f"got none for {list(vocabulary.keysteps[:3])}; its words are English"
            )
        return vectors

    def encode_videos(self, videos: Iterable[Video]) -> Iterator[Features]:
        """See :class:`~stepgraph.encoders.Encoder`; a video is decoded once, in order."""
        for video in videos:
            batch = self._batch or max(1, _FRAMES[pick_device()] // self.clips.frames)
            encode = self.model.encode_clips
            with computing_in(self.options.precision):
                found = encode_rows(video, self.clips, encode, batch=batch, finish=self._finish)
            yield found

    def _finish(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Compute the vectors of all rows of a video from the model's vectors of their clips."""
        return vectors

    def _encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        parts = [texts[start : start + _TEXTS] for start in range(0, len(texts), _TEXTS)]
        with computing_in(self.options.precision):
            return unit(np.concatenate([self.model.encode_texts(part) for part in parts]))


def encode_rows(
    video: Video,
    clips: ClipOptions,
    encode: Callable[[NDArray[np.uint8]], NDArray[np.float32]],
    *,
    batch: int,
    finish: Callable[[NDArray[np.float32]], NDArray[np.float32]] | None = None,
) -> Features:
    """Encode each row of a video file by the clip that begins with it.

    ``encode`` maps clips, shape (B, F, H, W, 3), to vectors, shape (B, D); ``finish`` maps the
    vectors of all clips to those of all rows, where they differ.  A unit vector belongs to its
    own row alone, even if its clip is longer.
    """
    if video.path is None:
        raise DataError(
            f"video {video.id!r} must have a video file to be encoded, got a transcript alone; "
            f"put the file beside it, or use an encoder of narration, such as text:minilm"
        )
    rows = rows_in(video.duration, clips.stride)
    remaining = read_clips(video.path, clips, duration=video.duration)
    starts: list[float] = []
    vectors = [np.zeros((0, 1), dtype=np.float32)]
    with progress.counting(f"encoding {video.id}", rows) as done:
        while block := list(islice(remaining, batch)):
            vectors.append(encode(np.stack([clip.frames for clip in block])))
            starts += [clip.start for clip in block]
            done(len(block))
    found = np.concatenate(vectors[1:] or vectors)
    if finish is not None and starts:
        found = finish(found)
    bad = np.flatnonzero(~np.isfinite(found).all(axis=1))
    if len(bad):
        raise DataError(
            f"{video.path}: vectors must be finite numbers, got others for {len(bad)} of "
            f"{len(found)} rows, the first at {starts[bad[0]]:g} s; are the weights whole?"
        )
    ends = np.minimum(np.array(starts) + clips.stride, video.duration)
    intervals = np.stack([np.array(starts), ends], axis=1)
    return Features(video.id, video.duration, unit(found), intervals)


def pick_device() -> str:
    """Return ``cuda`` if there is a GPU, else ``cpu``."""
    import torch

    torch.backends.cudnn.allow_tf32 = False  # else convolutions are no float32 on a GPU
    return "cuda" if torch.cuda.is_available() else "cpu"


def as_array(vectors: torch.Tensor) -> NDArray[np.float32]:
    """Convert the vectors of a network to an array."""
    return np.asarray(vectors.float().cpu().numpy(), dtype=np.float32)


@contextmanager
def computing_in(precision: Precision) -> Iterator[None]:
    """Make networks compute in this precision; import torch only if it is not float32."""
    if precision == "float32":
        yield
        return
    import torch

    with torch.autocast(pick_device(), getattr(torch, precision)):
        yield
