"""Fill a folder with the features of many videos, as often interrupted as need be.

A video whose file is there is skipped, a file is there only when it is whole, and its bytes
depend on the video and the encoder alone: so however often a run is killed, the runs together
leave what one run would have left.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from stepgraph import progress
from stepgraph.core import Features, Video
from stepgraph.encoders import Encoder
from stepgraph.encoders.feature_store import HEADER, FeatureStore
from stepgraph.errors import ConfigError, DataError
from stepgraph.problems import Problems

# Videos of narration that are encoded together; one that is looked at is encoded alone.
_TOGETHER = 512


@dataclass(frozen=True)
class Failure:
    """A video that has no features now, and why, in one line."""

    video: str
    what: str


@dataclass(frozen=True)
class Encoded:
    """What became of the videos so far.

    Attributes
    ----------
    written, skipped
        Videos encoded, and videos whose features were there already.
    failures
        Videos that could not be read, encoded or written.
    rows, frames
        Vectors written, and how many frames were looked at for them (0 for narration).
    seconds
        Time spent on encoding and writing.
    """

    written: int = 0
    skipped: int = 0
    failures: tuple[Failure, ...] = ()
    rows: int = 0
    frames: int = 0
    seconds: float = 0.0

    @property
    def failed(self) -> int:
        """How many videos have no features now."""
        return len(self.failures)

    def per_second(self, count: int) -> float:
        """How many of something were done in a second, such as ``frames``."""
        return count / self.seconds if self.seconds > 0 else 0.0


def encode_to(
    store: FeatureStore,
    videos: Iterable[Video],
    encoder: Encoder,
    problems: Problems,
    *,
    report: Callable[[Encoded], None] | None = None,
) -> Encoded:
    """Encode the videos whose features are not there yet.

    A video that cannot be encoded or written is a problem, and the others go on; an encoder that
    cannot work at all is an error.

    Parameters
    ----------
    report
        Called after each video with what was done so far.
    """
    filling = _Filling(store, encoder, problems, report)
    store.prepare(encoder.options)
    leftovers = _find_leftovers(store.path)
    _remove(leftovers.pop(store.path / HEADER, []))
    remaining = iter(progress.track(videos, "encoding"))
    together = _TOGETHER if encoder.options.modality == "text" else 1
    while block := list(islice(remaining, together)):
        filling.fill(block, leftovers)
    return filling.state()


class _Filling:
    """A folder being filled, and the counts so far."""

    def __init__(
        self,
        store: FeatureStore,
        encoder: Encoder,
        problems: Problems,
        report: Callable[[Encoded], None] | None,
    ) -> None:
        self.store = store
        self.encoder = encoder
        self.problems = problems
        self.report = report
        self.written = self.skipped = self.rows = self.frames = 0
        self.failures: list[Failure] = []
        self.seconds = 0.0

    def state(self) -> Encoded:
        return Encoded(
            self.written,
            self.skipped,
            tuple(self.failures),
            self.rows,
            self.frames,
            self.seconds,
        )

    def fill(self, block: Sequence[Video], leftovers: dict[Path, list[Path]]) -> None:
        missing = {video.id: video for video in block if not self.store.has(video.id)}
        self.skipped += len(block) - len(missing)
        for video in missing.values():
            _remove(leftovers.pop(Path(self.store.where(video.id)), []))
        started = time.perf_counter()
        for video, found in _encoded(list(missing.values()), self.encoder):
            self._keep(video, found)
            self.seconds += time.perf_counter() - started
            started = time.perf_counter()
            if self.report is not None:
                self.report(self.state())

    def _keep(self, video: Video, found: Features | DataError | OSError) -> None:
        if isinstance(found, Features):
            try:
                self.store.write(found)
            except (DataError, OSError) as error:
                self._fail(video, error, "features not written")
                return
            self.written += 1
            self.rows += len(found.vectors)
            self.frames += len(found.vectors) * _frames_of(self.encoder)
        else:
            self._fail(video, found, "video that could not be encoded")

    def _fail(self, video: Video, error: DataError | OSError, kind: str) -> None:
        what = str(error) if isinstance(error, DataError) else f"got {error.strerror or error}"
        where = str(video.path or f"video {video.id!r}")
        self.failures.append(Failure(video.id, f"{where}: {what.removeprefix(f'{where}: ')}"))
        self.problems.add(where, kind, what.removeprefix(f"{where}: "))


def _encoded(
    block: list[Video], encoder: Encoder
) -> Iterator[tuple[Video, Features | DataError | OSError]]:
    """Features of each video, or what went wrong with it."""
    if len(block) > 1:
        try:
            found = _checked(block, encoder)
        except (DataError, OSError):
            pass  # one by one, it is seen which
        else:
            yield from zip(block, found, strict=True)
            return
    for video in block:
        try:
            [features] = _checked([video], encoder)
        except (DataError, OSError) as error:
            yield video, error
        else:
            yield video, features


def _checked(block: list[Video], encoder: Encoder) -> list[Features]:
    found = list(encoder.encode_videos(block))
    expected, got = [video.id for video in block], [features.video for features in found]
    if got != expected:
        raise ConfigError(
            f"encoder {encoder.options.name!r} must give the features of each video in order, "
            f"got {got[:5]} for {expected[:5]}"
        )
    return found


def _frames_of(encoder: Encoder) -> int:
    """Frames that an encoder looks at for a row; one that does not say so looks at one."""
    if encoder.options.modality == "text":
        return 0
    frames = getattr(getattr(encoder, "clips", None), "frames", 1)
    return frames if isinstance(frames, int) else 1


def _find_leftovers(folder: Path) -> dict[Path, list[Path]]:
    """Half-written files of runs that were killed, by what they would have become.

    They are removed when their video comes again, so that two runs which fill one folder with
    different videos leave each other alone.
    """
    found: dict[Path, list[Path]] = {}
    for path in folder.rglob(".*.partial"):
        name, _, process = path.name.removesuffix(".partial").rpartition(".")
        if process.isdecimal() and not _is_alive(int(process)):
            found.setdefault(path.with_name(name[1:]), []).append(path)
    return found


def _remove(paths: list[Path]) -> None:
    for path in paths:
        with suppress(OSError):  # still in use, or gone
            path.unlink()


def _is_alive(process: int) -> bool:
    """Whether another process may still be writing."""
    # Windows cannot be asked like this, but does not let go of a file that is in use.
    if os.name == "nt" or process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
