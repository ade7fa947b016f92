"""Store of decoded clips on disk, one file a video, for random access.

Reading a video in order is several times faster than seeking in it, and a training reads every
clip tens of times.  So each video is decoded once, by several processes, into a file of plain
pixels that is then mapped into memory.  A picture that several clips share is stored once.
Files are written atomically; existing ones are not decoded again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from functools import lru_cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from stepgraph.errors import DataError
from stepgraph.files.disk import read_json, replacing, write_text
from stepgraph.files.headers import FileKind, as_whole, reading_fields
from stepgraph.ingest.frames import ClipOptions, read_clips
from stepgraph.problems import Problems
from stepgraph.progress import counting

UNDECODABLE = "video that cannot be decoded"
"""Kind of the problem with a video that cannot be decoded."""

_KIND = FileKind("stepgraph-clips", 1, "note on decoded clips", "delete it and run again")
_HEADER = "clips.json"
# Files that stay open: enough for the videos of several batches.
_OPEN = 512


class ClipStore:
    """A folder of decoded clips, made if missing; one with other options is refused."""

    def __init__(self, folder: Path, options: ClipOptions) -> None:
        self.folder = folder
        self.options = options
        self._opened = lru_cache(_OPEN)(self._open)
        header = {"format": _KIND.format, "version": _KIND.version, "options": asdict(options)}
        path = folder / _HEADER
        if not path.exists():
            write_text(path, json.dumps(header, indent=1) + "\n")
        elif (found := read_json(path)) != header:
            raise DataError(
                f"{path}: must describe clips as {header['options']}, got {str(found)[:300]}; "
                f"choose another folder, or delete this one"
            )

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "options": self.options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["folder"], state["options"])  # type: ignore[misc]

    def count(self, video: str, path: Path) -> int | None:
        """Number of stored clips of a video; None if it is not stored, or its file has changed."""
        if not self._path(video, ".json").exists():
            return None
        source, clips = self._note(video)
        return clips if source == _stamp(path) else None

    def read(self, video: str, clip: int) -> NDArray[np.uint8]:
        """Read one clip, shape (F, H, W, 3)."""
        pictures, numbers = self._opened(video)
        return np.asarray(pictures[numbers[clip]])

    def write(self, video: str, path: Path) -> int:
        """Decode and store all clips of a video; return their number."""
        clips = 0
        with replacing(self._path(video, ".npy")) as partial, partial.open("wb") as file:
            shape = (0, self.options.height, self.options.width, 3)
            _write_header(file, shape)
            stored: dict[int, int] = {}
            for clip in read_clips(path, self.options):
                times = self._picture_times(np.array([clips]))[0].tolist()
                for moment, picture in zip(times, clip.frames, strict=True):
                    if moment not in stored:
                        stored[moment] = len(stored)
                        file.write(np.ascontiguousarray(picture, dtype=np.uint8).tobytes())
                clips += 1
            file.seek(0)
            _write_header(file, (len(stored), *shape[1:]))
        # Written last: with it the video is complete.
        content = {"video": video, "source": _stamp(path), "clips": clips}
        write_text(self._path(video, ".json"), json.dumps(content) + "\n")
        return clips

    def bytes_of(self, clips: int) -> int:
        """Size in bytes of the first ``clips`` clips of a video."""
        size = self.options.height * self.options.width * 3
        return size * len(np.unique(self._picture_times(np.arange(clips))))

    def _open(self, video: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        path = self._path(video, ".npy")
        _, clips = self._note(video)
        try:
            # Of a size that is then refused, and of strange escapes in a header.
            with np.errstate(over="ignore"), warnings.catch_warnings(action="ignore"):
                pictures = np.load(path, mmap_mode="r")
            # Every clip has a picture that no clip before it has.
            numbers = self._numbers(min(clips, len(pictures) + 1))
            if pictures.shape[1:] != (self.options.height, self.options.width, 3):
                raise ValueError(f"pictures of shape {pictures.shape[1:]}")
            if not numbers.size or numbers.max() >= len(pictures):
                raise ValueError(f"{len(pictures)} pictures for {clips} clips")
        except Exception as error:  # damaged files fail in any way there is
            raise DataError(
                f"{path}: must be decoded clips, got {error}; delete it and run again"
            ) from error
        return pictures, numbers

    def _note(self, video: str) -> tuple[Any, int]:
        """Read the stored stamp of a video's file, and its number of clips."""
        path = self._path(video, ".json")
        content = read_json(path)
        with reading_fields(path, _KIND):
            return content["source"], as_whole(content["clips"])

    def _picture_times(self, clips: NDArray[np.int64]) -> NDArray[np.int64]:
        """Times of the pictures of clips in whole microseconds, which identify shared pictures."""
        o = self.options
        parts = (np.arange(o.frames) + 0.5) * (o.window / o.frames)
        return np.rint((clips[:, None] * o.stride + parts) * 1e6).astype(np.int64)

    def _numbers(self, clips: int) -> NDArray[np.int64]:
        """Indices of the stored pictures of each clip, shape (T, F), in order of first use."""
        times = self._picture_times(np.arange(clips))
        _, first, number = np.unique(times, return_index=True, return_inverse=True)
        rank = np.empty_like(first)
        rank[np.argsort(first)] = np.arange(len(first))
        return rank[number].reshape(times.shape)

    def _path(self, video: str, suffix: str) -> Path:
        # Ids hold slashes and may be longer than names of files.
        name = hashlib.sha256(video.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self.folder / f"{name}{suffix}"


def _write_header(file: Any, shape: tuple[int, ...]) -> None:
    # numpy leaves room in it for the first number to grow, so that it can be written again.
    npy.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})


def _stamp(path: Path) -> list[int]:
    """Size and modification time of a file, to detect changes; empty if it is missing."""
    try:
        state = path.stat()
    except OSError:
        return []
    return [state.st_size, state.st_mtime_ns]


def fill(
    store: ClipStore,
    videos: Mapping[str, Path],
    clips: Sequence[int],
    *,
    problems: Problems,
    workers: int = 0,
    share: tuple[int, int] = (0, 1),
) -> None:
    """Decode the videos that are not stored yet; note those that fail as problems.

    ``clips``, the expected number for each video, decides the disk space that must be free.  A
    share ``(i, n)`` is every n-th video, from the i-th on; other processes decode the rest.
    """
    missing = {video: path for video, path in videos.items() if store.count(video, path) is None}
    lengths = dict(zip(videos, clips, strict=True))
    needed = sum(store.bytes_of(lengths[video]) for video in missing)
    free = shutil.disk_usage(store.folder).free
    if needed > free:
        raise DataError(
            f"{store.folder}: must have room for {needed / 1e9:,.1f} GB of decoded clips, got "
            f"{free / 1e9:,.1f} GB free; choose another folder for them, train on smaller or "
            f"fewer pictures, or stream the clips"
        )
    own = set(tuple(videos)[share[0] :: share[1]])
    missing = {video: path for video, path in missing.items() if video in own}
    with counting("decoding (videos)", len(missing)) as done:
        for video, error in zip(missing, _decode(store, missing, workers), strict=True):
            if error is not None:
                problems.add(f"video {video!r}", UNDECODABLE, error, fatal=True)
            done(1)


def _decode(store: ClipStore, videos: Mapping[str, Path], workers: int) -> Iterator[str | None]:
    """Decode videos; yield the error message of each in order, or None."""
    job = partial(_write, store)
    if workers < 2 or len(videos) < 2:
        yield from map(job, videos, videos.values())
        return
    # Not forked: this process may hold threads, locks and a GPU.
    context = get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(videos)), mp_context=context) as pool:
        try:
            yield from pool.map(job, videos, videos.values())
        except BrokenProcessPool as error:
            raise DataError(
                f"{store.folder}: decoding processes must finish, got one that was killed; is "
                f"there enough memory? use fewer workers and run again, decoded videos are kept"
            ) from error


def _write(store: ClipStore, video: str, path: Path) -> str | None:
    try:
        store.write(video, path)
    except DataError as error:
        if str(error).startswith(str(store.folder)):
            raise  # the store is at fault, not the video
        return str(error)
    return None
