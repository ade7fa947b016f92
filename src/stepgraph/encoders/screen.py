"""Encoder of text in the picture (OCR), with the sentence model of the text encoder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from stepgraph.core import Features, Sentence, Video
from stepgraph.encoders.text import TextEncoder
from stepgraph.errors import DataError
from stepgraph.ingest.screen import read_screen


class ScreenEncoder(TextEncoder):
    """Encode a video by the text in its pictures, on the same scale as narration."""

    def encode_videos(self, videos: Iterable[Video]) -> Iterator[Features]:
        """See :class:`~stepgraph.encoders.Encoder`; text that was read before is cached."""
        return super().encode_videos(replace(video, transcript=_shown(video)) for video in videos)


def _shown(video: Video) -> tuple[Sentence, ...]:
    if video.path is None:
        raise DataError(
            f"video {video.id!r} must have a video file to be read, got a transcript alone; "
            f"put the file beside it, or use an encoder of narration, such as text:minilm"
        )
    return read_screen(video.path)
