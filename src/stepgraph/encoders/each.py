"""Each video through an encoder; one that cannot be encoded stops no other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from stepgraph.core import Features, Video
from stepgraph.encoders import Encoder
from stepgraph.encoders.stored_features import StoredEncoder
from stepgraph.errors import ConfigError, DataError
from stepgraph.problems import Problems

# Videos of narration that are encoded together; one that is looked at is encoded alone.
_TOGETHER = 512


def encode_each(
    videos: Iterable[Video], encoder: Encoder, problems: Problems | None = None
) -> Iterator[tuple[Video, Features]]:
    """Give each video with its features.

    Parameters
    ----------
    problems
        Where to note a video that cannot be encoded, so that the others go on; if not given,
        the first such video is an error.
    """
    if isinstance(encoder, StoredEncoder):
        yield from encoder.read_each(videos)
        return
    together = 1 if encoder.options.looks else _TOGETHER
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
        yield from zip(block, found, strict=True)


def note_failure(
    video: Video,
    error: DataError | OSError,
    problems: Problems,
    kind: str = "video that cannot be encoded",
) -> None:
    """Note a video that is lost, and why."""
    what = str(error) if isinstance(error, DataError) else f"got {error.strerror or error}"
    where = str(video.path or f"video {video.id!r}")
    problems.add(where, kind, what.removeprefix(f"{where}: "), lost=True)


def _checked(block: list[Video], encoder: Encoder) -> list[Features]:
    """Features of some videos, which an encoder of the user's may get wrong."""
    found = list(encoder.encode_videos(block))
    expected, got = [video.id for video in block], [features.video for features in found]
    if got != expected:
        raise ConfigError(
            f"encoder {encoder.options.name!r} must give the features of each video in order, "
            f"got {got[:5]} for {expected[:5]}"
        )
    return found
