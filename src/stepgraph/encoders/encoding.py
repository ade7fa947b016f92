"""Encoding of many videos, also into a folder; one that fails does not stop the others.

Filling a folder may be interrupted at any time.  A video with a stored file is skipped, a file is
written atomically, and its bytes depend on the video and the encoder alone: so several killed
runs together leave the same files as one complete run.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from stepgraph.core import Features, Video
from stepgraph.encoders import WORDED, Encoder, EncoderOptions
from stepgraph.encoders.stored_features import FeatureStore, StoredEncoder
from stepgraph.errors import ConfigError, DataError
from stepgraph.files.arrays.checks import Wanted
from stepgraph.ingest.language import reads_as_english
from stepgraph.problems import Problems
from stepgraph.progress import track

# Videos of narration that are encoded together: enough to fill batches, few enough for memory.
# Video files are encoded one by one.
_TOGETHER = 512


def encode_each(
    videos: Iterable[Video], encoder: Encoder, problems: Problems | None = None
) -> Iterator[tuple[Video, Features]]:
    """Yield each video with its features.

    Parameters
    ----------
    problems
        Receives videos that cannot be encoded, and the others go on; if not given, the first
        such video is an error.
    """
    if isinstance(encoder, StoredEncoder):
        yield from encoder.read_each(videos)
        return
    together = 1 if encoder.options.uses_vision else _TOGETHER
    remaining = iter(videos)
    while block := list(islice(remaining, together)):
        yield from _encode_block(block, encoder, problems)


def _encode_block(
    block: list[Video], encoder: Encoder, problems: Problems | None
) -> Iterator[tuple[Video, Features]]:
    try:
        found = _checked(block, encoder)
    except (DataError, OSError) as error:
        if len(block) > 1:
            for video in block:  # one by one, it is seen which
                yield from _encode_block([video], encoder, problems)
        elif problems is None:
            raise
        else:
            note_failure(block[0], error, problems)
    else:
        for video, features in zip(block, found, strict=True):
            if problems is not None:
                _note_doubts(video, features, encoder, problems)
            yield video, features


def _place(video: Video) -> str:
    return str(video.path or f"video {video.id!r}")


def _note_doubts(video: Video, features: Features, encoder: Encoder, problems: Problems) -> None:
    """Note a video without text on the screen, or with narration that is not English."""
    where = _place(video)
    if encoder.options.kind == "ocr" and not len(features.vectors):
        what = "must show text that can be read, got none; is it large enough?"
        problems.add(where, "video without text on the screen", what)
    if encoder.options.name == EncoderOptions.name and not reads_as_english(video.transcript):
        what = (
            "must be English for the built-in model, got another language; use a "
            "multilingual model (--encoder text:FOLDER)"
        )
        problems.add(where, "narration that is not English", what)


def note_failure(
    video: Video,
    error: DataError | OSError,
    problems: Problems,
    kind: str = "video that cannot be encoded",
) -> None:
    """Note a video that failed, and why."""
    what = str(error) if isinstance(error, DataError) else f"got {error.strerror or error}"
    where = _place(video)
    problems.add(where, kind, what.removeprefix(f"{where}: "), fatal=True)


def _checked(block: list[Video], encoder: Encoder) -> list[Features]:
    """Encode videos and check the result, since the encoder may be the user's own."""
    found = list(encoder.encode_videos(block))
    expected, got = [video.id for video in block], [getattr(one, "video", None) for one in found]
    if got != expected:
        raise ConfigError(
            f"encoder {encoder.options.name!r} must give the features of each video in order, "
            f"got {got[:5]} for {expected[:5]}"
        )
    for video, one in zip(block, found, strict=True):
        Wanted(_place(video)).finished(one.vectors)
    return found


@dataclass
class Encoded:
    """Result of encoding: numbers of videos written, and skipped as already stored.

    Rows are the vectors written, and frames those encoded for them (0 for sentences).
    """

    written: int = 0
    skipped: int = 0
    rows: int = 0
    frames: int = 0
    seconds: float = 0.0

    def per_second(self, count: int) -> float:
        """Rate per second of a count, such as ``frames``."""
        return count / self.seconds if self.seconds > 0 else 0.0


def encode_to(
    store: FeatureStore, videos: Iterable[Video], encoder: Encoder, problems: Problems
) -> Encoded:
    """Encode the videos whose features are not stored yet.

    A video that cannot be encoded or written is noted as a problem, and the others go on; an
    encoder that cannot work at all is an error.
    """
    store.prepare(encoder.options)
    done, started = Encoded(), time.perf_counter()
    missing = _missing(track(videos, "encoding"), store, done)
    for _, rows in write_each(store, encode_each(missing, encoder, problems), problems):
        done.written += 1
        done.rows += rows
        done.frames += rows * frames_of(encoder)
    done.seconds = time.perf_counter() - started
    return done


def write_each(
    store: FeatureStore, found: Iterable[tuple[Video, Features]], problems: Problems
) -> Iterator[tuple[str, int]]:
    """Write the features of videos; yield the id and number of rows of each one written."""
    for video, features in found:
        try:
            store.write(features)
        except (DataError, OSError) as error:
            note_failure(video, error, problems, "features not written")
            continue
        yield video.id, len(features.vectors)


def _missing(videos: Iterable[Video], store: FeatureStore, done: Encoded) -> Iterator[Video]:
    """Yield the videos to encode, each once, and count the others as skipped."""
    begun: set[str] = set()
    for video in videos:
        if video.id in begun or store.has(video.id):
            done.skipped += 1
            continue
        begun.add(video.id)
        yield video


def frames_of(encoder: Encoder) -> int:
    """Number of frames that an encoder takes for a row: 0 for sentences, 1 if not stated."""
    if encoder.options.kind in WORDED:
        return 0
    frames = getattr(getattr(encoder, "clips", None), "frames", 1)
    return frames if isinstance(frames, int) else 1
