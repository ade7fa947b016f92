"""Open video files and transcripts.

Every transcript, whatever its format, becomes clean sentences in order of time, in which every
spoken word stands once.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stepgraph.core import Video
from stepgraph.errors import MissingExtraError
from stepgraph.files.disk import require_file, write_text
from stepgraph.ingest import media, speech, whisper
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
    """Options for obtaining the transcript of a video file.

    If no transcript is written, the faster-whisper model in the folder ``speech`` transcribes the
    sound; without one the built-in model does, unless ``uses_speech`` is False.  ``save`` writes
    the result beside the video.  A video that still lacks a transcript is refused if one is
    ``needed``, else opened without one, which is enough for visual encoders.
    """

    needed: bool = True
    speech: Path | None = None
    uses_speech: bool = True
    save: bool = False

    @property
    def reading(self) -> Listening:
        """Options without speech recognition: a file that needs it is refused."""
        return Listening(uses_speech=False) if self.uses_speech or self.speech else self


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
        Transcript of the video file.  If not given, the one beside it is taken
        (:func:`find_transcript`), and if there is none, the text track inside it.
    listening
        Options for a file with neither; if not given, the built-in speech model transcribes it.
    problems
        Receives the cues that are left out; if not given, a warning reports them.
    """
    path = Path(path)
    if path.suffix.lower() not in MEDIA_SUFFIXES and transcript is None:
        sentences = read_transcript(path, problems=problems)
        return Video(transcript_stem(path), sentences[-1].end if sentences else 0.0, sentences)
    require_file(path, "video file")
    beside = Path(transcript) if transcript is not None else find_transcript(path)
    sound = 0.0
    if beside is not None:
        sentences = read_transcript(beside, problems=problems)
    else:
        sentences, sound, *_ = _said(path, listening, problems)
    try:
        duration = media.media_duration(path, sound)
    except MissingExtraError:
        if not sentences:
            raise
        duration = sentences[-1].end
    return Video(path.stem, duration, sentences, path)


def _said(path: Path, listening: Listening, problems: Problems | None) -> speech.Transcription:
    """Transcript in the file itself: its text track, or else its sound, transcribed."""
    try:
        return speech.Transcription(media.read_embedded_transcript(path, problems=problems), 0.0)
    except media.NoTextTrackError:
        if not (listening.uses_speech or listening.speech):
            if listening.needed:
                raise
            return speech.Transcription((), 0.0)
    try:
        heard = speech.hear(path, listening.speech, problems=problems)
    except whisper.UnheardError as error:
        if listening.needed:
            raise
        if problems is not None:
            problems.add_error(error, "video without sound", str(path))
        return speech.Transcription((), 0.0)
    if listening.save and heard.sentences:
        write_text(path.with_suffix(".srt"), speech.to_srt(heard.sentences))
    return heard
