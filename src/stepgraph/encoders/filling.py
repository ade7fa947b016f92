"""Fill a folder with the features of many videos, as often interrupted as need be.

A video whose file is there is skipped, a file is there only when it is whole, and its bytes
depend on the video and the encoder alone: so however often a run is killed, the runs together
leave what one run would have left.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stepgraph import progress
from stepgraph.core import Video
from stepgraph.encoders import Encoder
from stepgraph.encoders.each import encode_each, note_failure
from stepgraph.encoders.feature_store import FeatureStore
from stepgraph.errors import DataError
from stepgraph.problems import Problems


@dataclass
class Encoded:
    """What became of the videos: how many were encoded, and how many there already.

    Rows are the vectors written, and frames those looked at for them (0 for narration).
    """

    written: int = 0
    skipped: int = 0
    rows: int = 0
    frames: int = 0
    seconds: float = 0.0

    def per_second(self, count: int) -> float:
        """How many of something were done in a second, such as ``frames``."""
        return count / self.seconds if self.seconds > 0 else 0.0


def encode_to(
    store: FeatureStore, videos: Iterable[Video], encoder: Encoder, problems: Problems
) -> Encoded:
    """Encode the videos whose features are not there yet.

    A video that cannot be encoded or written is a problem, and the others go on; an encoder that
    cannot work at all is an error.
    """
    store.prepare(encoder.options)
    done, started = Encoded(), time.perf_counter()
    missing = _missing(progress.track(videos, "encoding"), store, done)
    for video, features in encode_each(missing, encoder, problems):
        try:
            store.write(features)
        except (DataError, OSError) as error:
            note_failure(video, error, problems, "features not written")
            continue
        done.written += 1
        done.rows += len(features.vectors)
        done.frames += len(features.vectors) * _frames_of(encoder)
    done.seconds = time.perf_counter() - started
    return done


def _missing(videos: Iterable[Video], store: FeatureStore, done: Encoded) -> Iterator[Video]:
    """Videos to encode, each once."""
    begun: set[str] = set()
    for video in videos:
        if video.id in begun or store.has(video.id):
            done.skipped += 1
            continue
        begun.add(video.id)
        yield video


def _frames_of(encoder: Encoder) -> int:
    """Frames that an encoder looks at for a row; one that does not say so looks at one."""
    if encoder.options.modality == "text":
        return 0
    frames = getattr(getattr(encoder, "clips", None), "frames", 1)
    return frames if isinstance(frames, int) else 1
