"""What all encoders that look have in common: rows of a video in, unit vectors out.

A model is two functions, one for clips and one for texts; :class:`VisualEncoder` makes an
encoder of it.  Which model, and what its weights are, is the business of other modules.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stepgraph import progress
from stepgraph.core import Features, Video, Vocabulary, rows_in
from stepgraph.encoders import EncoderOptions
from stepgraph.encoders.vectors import keystep_vectors, unit
from stepgraph.errors import ConfigError, DataError
from stepgraph.ingest.frames import ClipOptions, read_clips

# Frames encoded together: enough to keep the device busy, few enough for its memory.
_FRAMES = {"cpu": 32, "cuda": 256}
_TEXTS = 256
# Weights as transformers looks for them: one file, or several with an index.
_WEIGHTS = ("model*.safetensors", "pytorch_model*.bin")
_BESIDES = ("*.json", "*.txt", "*.model")


class VisualModel(Protocol):
    """A network with an eye and, where it can read, a tongue."""

    @property
    def clips(self) -> ClipOptions:
        """What it looks at for one row."""
        ...

    def encode_clips(self, frames: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Vectors of clips, from shape (B, F, H, W, 3) to (B, D); of any length."""
        ...

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of texts, shape (N, D); of any length."""
        ...


class VisualEncoder:
    """Encode a video by what is to be seen in it, one vector a row.

    Parameters
    ----------
    options
        See :class:`~stepgraph.encoders.EncoderOptions`; ``window`` replaces the model's own.
    load
        Makes the model; called once, when something must be encoded.
    """

    def __init__(self, options: EncoderOptions, load: Callable[[], VisualModel]) -> None:
        self._options = options
        self._load = load

    @property
    def options(self) -> EncoderOptions:
        """See :class:`~stepgraph.encoders.Encoder`."""
        return self._options

    @cached_property
    def model(self) -> VisualModel:
        """The network, loaded when first asked for."""
        # Spinning threads halve the speed where another process is busy; this must be set
        # before torch is imported.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        return self._load()

    @property
    def clips(self) -> ClipOptions:
        """What is looked at for one row."""
        clips = self.model.clips
        window = self.options.window
        return clips if window is None else replace(clips, window=window)

    def encode_keysteps(self, vocabulary: Vocabulary) -> NDArray[np.float32]:
        """See :class:`~stepgraph.encoders.Encoder`; a keystep is encoded by its plain name."""
        return keystep_vectors(vocabulary, self._encode_texts, task_names=self.options.task_names)

    def encode_videos(self, videos: Iterable[Video]) -> Iterator[Features]:
        """See :class:`~stepgraph.encoders.Encoder`; a video is decoded once, in order."""
        for video in videos:
            batch = max(1, _FRAMES[pick_device()] // self.clips.frames)
            yield encode_rows(video, self.clips, self.model.encode_clips, batch=batch)

    def _encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        parts = [texts[start : start + _TEXTS] for start in range(0, len(texts), _TEXTS)]
        return unit(np.concatenate([self.model.encode_texts(part) for part in parts]))


def encode_rows(
    video: Video,
    clips: ClipOptions,
    encode: Callable[[NDArray[np.uint8]], NDArray[np.float32]],
    *,
    batch: int,
) -> Features:
    """Encode each row of a video file by the clip that begins with it.

    Parameters
    ----------
    encode
        From clips, shape (B, F, H, W, 3), to their vectors, shape (B, D).
    batch
        How many clips are encoded together.

    Returns
    -------
    Features
        Unit vectors.  Each is of its own row alone, however far its clip looks ahead.
    """
    if video.path is None:
        raise DataError(
            f"video {video.id!r} must have a video file to be looked at, got a transcript alone; "
            f"put the file beside it, or use an encoder that hears, such as text:minilm"
        )
    rows = rows_in(video.duration, clips.stride)
    remaining = read_clips(video.path, clips, duration=video.duration)
    starts: list[float] = []
    vectors = [np.zeros((0, 1), dtype=np.float32)]
    with progress.counting(f"looking at {video.id}", rows) as done:
        while block := list(islice(remaining, batch)):
            vectors.append(encode(np.stack([clip.frames for clip in block])))
            starts += [clip.start for clip in block]
            done(len(block))
    found = np.concatenate(vectors[1:] or vectors)
    _require_finite(found, starts, video)
    ends = np.minimum(np.array(starts) + clips.stride, video.duration)
    intervals = np.stack([np.array(starts), ends], axis=1)
    return Features(video.id, video.duration, unit(found), intervals)


def pick_device() -> str:
    """``cuda`` where there is a GPU, else ``cpu``."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def find_folder(kind: str, model: str) -> Path | None:
    """Folder of a model, or None for a name under which the hub may have one."""
    folder = Path(os.path.expanduser(model))  # leaves an unknown ~user alone
    if folder.is_dir():
        return folder.resolve()
    if model.startswith((".", "~", os.sep)):
        raise ConfigError(
            f"{kind} encoder {model!r} must be the folder of a {kind} model, "
            f"got a path where no folder is"
        )
    return None


def fetch_folder(kind: str, model: str) -> Path:
    """Folder of a model: a folder here, the user's hub cache, or downloaded into that."""
    folder = find_folder(kind, model)
    if folder is not None:
        return folder
    import logging

    from huggingface_hub import snapshot_download

    # The client says much about every attempt to reach the hub.
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    try:
        folder = Path(snapshot_download(model, local_files_only=True))
        if (folder / "config.json").is_file() and find_weights(folder):
            return folder
    except (OSError, ValueError):
        pass  # not here yet
    try:
        folder = Path(snapshot_download(model, allow_patterns=[*_BESIDES, _WEIGHTS[0]]))
        if not find_weights(folder):
            snapshot_download(model, allow_patterns=_WEIGHTS[1])
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{kind} encoder {model!r} must be a {kind} model that is a folder here, lies in the "
            f"local model cache, or can be downloaded; got: {first_line(error)}"
        ) from error
    return folder


def find_weights(folder: Path) -> list[Path]:
    """Files of weights in the folder of a model, those that are preferred alone."""
    found = (sorted(folder.glob(pattern)) for pattern in _WEIGHTS)
    return next((files for files in found if files), [])


def first_line(error: BaseException) -> str:
    """What another library says in many lines, in its first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].removeprefix("Got: ") if lines else type(error).__name__


@contextmanager
def quiet_library() -> Iterator[None]:
    """Keep bars and remarks of transformers from the terminal while a model is loaded."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _require_finite(vectors: NDArray[np.float32], starts: Sequence[float], video: Video) -> None:
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise DataError(
            f"{video.path}: vectors must be finite numbers, got others for {len(bad)} of "
            f"{len(vectors)} rows, the first at {starts[bad[0]]:g} s; are the weights whole?"
        )
