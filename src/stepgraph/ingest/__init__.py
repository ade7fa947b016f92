"""Open video files and transcripts.

Whatever a transcript looked like on disk, what leaves this package is the same: clean
sentences in order of time, in which every spoken word stands once.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stepgraph.core import Sentence, Video
from stepgraph.errors import MissingExtraError
from stepgraph.files.disk import require_file
from stepgraph.ingest import media
from stepgraph.ingest.formats import (
    MEDIA_SUFFIXES,
    find_transcript,
    read_transcript,
    transcript_stem,
)
from stepgraph.problems import Problems

__all__ = ["Listening", "open_video", "read_transcript"]


@dataclass(frozen=True)
class Listening:
    """How to come by what is said in a video file.

    A video of which nothing is to be read is refused if that is ``needed``, else opened without
    a transcript, which is enough for those who only look.  ``speech`` is the folder of a
    faster-whisper model that listens where nothing is written.
    """

    needed: bool = True
    speech: Path | None = None


def open_video(
    path: Path | str,
    transcript: Path | str | None = None,
    *,
    listening: Listening = Listening(),  # noqa: B008 - frozen
    problems: Problems | None = None,
) -> Video:
    """Open a video by its own file or by its transcript alone.

    Its id is the stem of the file.  Its duration is that of the video file; without one, or
    without the ``video`` extra that reads it, the end of the last sentence.

    Parameters
    ----------
    transcript
        What is said in the video file.  If not given, the transcript beside it is taken
        (:func:`find_transcript`), and if there is none, the text track inside it.
    listening
        What to do where there is neither.
    problems
        Where to note cues that are left out; if not given, a warning says so.
    """
    path = Path(path)
    if path.suffix.lower() not in MEDIA_SUFFIXES and transcript is None:
        sentences = read_transcript(path, problems=problems)
        return Video(transcript_stem(path), sentences[-1].end if sentences else 0.0, sentences)
    require_file(path, "video file")
    beside = Path(transcript) if transcript is not None else find_transcript(path)
    if beside is not None:
        sentences = read_transcript(beside, problems=problems)
    else:
        sentences = _hear(path, listening, problems)
    try:
        duration = media.media_duration(path)
    except MissingExtraError:
        if not sentences:
            raise
        duration = sentences[-1].end
    return Video(path.stem, duration, sentences, path)


def _hear(path: Path, listening: Listening, problems: Problems | None) -> tuple[Sentence, ...]:
    """What is said according to the file itself: its text track, or else its sound."""
    try:
        return media.read_embedded_transcript(path, problems=problems)
    except media.NoTextTrackError:
        if listening.speech is not None:
            return media.transcribe(path, listening.speech)
        if listening.needed:
            raise
    return ()
