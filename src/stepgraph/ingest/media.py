"""Read from a video file what is not picture: its duration, its text track, what is said in it.

Needs PyAV, the ``video`` extra; who is to listen also faster-whisper, the ``speech`` extra, and a
folder with a model of it.  Nothing is fetched from anywhere: a model is a large file of which its
user should know.  Frames are read elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from stepgraph.core import Sentence
from stepgraph.errors import DataError, MissingExtraError, reason
from stepgraph.files.disk import require_file
from stepgraph.ingest.cleaning import Cue, checked, clean
from stepgraph.ingest.timed_text import said_in_ass
from stepgraph.problems import Problems

_TEXT_CODECS = frozenset({"mov_text", "srt", "subrip", "ass", "ssa", "webvtt", "text"})
_FIELDS_BEFORE_TEXT = 8  # ReadOrder,Layer,Style,Name,MarginL,MarginR,MarginV,Effect

MODEL_FILES = ("model.bin", "config.json", "tokenizer.json")
"""What the folder of a model must hold; without the last one faster-whisper would download it."""


class NoTextTrackError(DataError):
    """A video file in which nothing is written."""


def media_duration(path: Path) -> float:
    """Return how many seconds a video file lasts.

    A file that does not state it, such as a recording cut off, is read to its end.
    """
    with opened(path) as container:
        if container.duration is not None:
            seconds = container.duration / 1_000_000  # always in microseconds
        else:
            seconds = max(map(end_of, container.demux()), default=0.0)
    if seconds <= 0:
        raise DataError(f"{path}: must last longer than 0 s, got {seconds}; is it cut off?")
    return float(seconds)


def read_embedded_transcript(
    path: Path, *, problems: Problems | None = None
) -> tuple[Sentence, ...]:
    """Return the clean sentences of the first text track inside a video file."""
    with opened(path) as container:
        stream = _text_track(container, Path(path))
        beginning = (container.start_time or 0) / 1_000_000  # where players show 0:00
        cues = [
            cue
            for packet in container.demux(stream)
            # The packet after the last one has no time and only flushes the decoder.
            if packet.pts is not None
            for cue in _cues_of(packet, str(path), beginning)
        ]
    return clean(checked(cues, str(path), problems, in_order=False))


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Open a video file and give every failure of the library one form."""
    path = Path(path)
    try:
        import av
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: reading a video file needs the 'video' extra; run: pip install av"
        ) from error
    require_file(path, "video file")
    try:
        # FFmpeg takes what stands before a colon in a relative path for a protocol.
        with av.open(str(path.absolute()), metadata_errors="replace") as container:
            yield container
    except (av.error.FFmpegError, OSError) as error:
        raise DataError(
            f"{path}: must be a readable video file, got {error.strerror or error}; "
            f"play it to see whether it is whole"
        ) from error


def end_of(packet: Any) -> float:
    """Seconds up to which a packet lasts, 0 for one without a time."""
    if packet.pts is None:
        return 0.0
    return float((packet.pts + (packet.duration or 0)) * packet.time_base)


def _text_track(container: Any, path: Path) -> Any:
    codecs = [
        stream.codec_context.name if stream.codec_context else "unknown"
        for stream in container.streams.subtitles
    ]
    for stream, codec in zip(container.streams.subtitles, codecs, strict=True):
        if codec in _TEXT_CODECS:
            return stream
    got = f"only tracks of pictures ({', '.join(codecs)})" if codecs else "none"
    raise NoTextTrackError(
        f"{path}: must contain a text track, got {got}; put a transcript beside it, "
        f"such as {path.stem}.srt, or give a speech model with --speech"
    )


def _cues_of(packet: Any, origin: str, beginning: float) -> Iterator[Cue]:
    start = max(0.0, float(packet.pts * packet.time_base) - beginning)
    end = start + float((packet.duration or 0) * packet.time_base)
    for item in packet.decode():
        fields = item.ass.split(b",", _FIELDS_BEFORE_TEXT)
        said = said_in_ass(fields[-1].decode("utf-8", errors="replace"))
        if said is not None:
            yield Cue(start, end, said, f"{origin}: cue at {start:.3f} s")


def transcribe(path: Path, model: Path) -> tuple[Sentence, ...]:
    """Return the clean sentences that a recogniser hears in a video file.

    Stretches without a voice are passed over, since recognisers make up words for music.  The
    ``model`` is the folder of one of faster-whisper (CTranslate2); see :data:`MODEL_FILES`.
    """
    path, model = Path(path), Path(model)
    try:
        import faster_whisper  # noqa: F401 - only to know whether it is there
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: recognising speech needs the 'speech' extra; "
            f"run: pip install 'stepgraph[speech]'"
        ) from error
    # Without all of them faster-whisper would try to download the model.
    missing = [name for name in MODEL_FILES if not (model / name).is_file()]
    if missing:
        got = f"no {' and no '.join(missing)}" if model.is_dir() else "no such folder"
        raise DataError(
            f"{model}: must be the folder of a faster-whisper model ({', '.join(MODEL_FILES)}), "
            f"got {got}; nothing is downloaded, put one there"
        )
    begin = _begin_of_sound(path)
    recogniser = _load(model.resolve())
    try:
        heard, _ = recogniser.transcribe(str(path), vad_filter=True)
        cues = [
            Cue(begin + said.start, begin + said.end, said.text, f"{path}: at {said.start:.2f} s")
            for said in heard
        ]
    except Exception as error:  # its libraries raise whatever they stumble over
        raise DataError(
            f"{path}: sound must be readable with the model {model}, got {reason(error)}; "
            f"play it to see whether it is whole, or take another model"
        ) from error
    return clean(checked(cues, str(path), in_order=False))


def _begin_of_sound(path: Path) -> float:
    """Seconds from the start of the file, as players show it, to its first sound."""
    with opened(path) as container:
        if not container.streams.audio:
            raise DataError(
                f"{path}: must have sound to be listened to, got none; "
                f"put a transcript beside it, such as {path.stem}.srt"
            )
        track = container.streams.audio[0]
        first = float((track.start_time or 0) * track.time_base)
        return max(0.0, first - (container.start_time or 0) / 1_000_000)


@lru_cache(maxsize=1)
def _load(model: Path) -> Any:
    from faster_whisper import WhisperModel

    try:
        # The fastest arithmetic that the processor has; models are often stored in one it lacks.
        return WhisperModel(str(model), compute_type="auto", local_files_only=True)
    except Exception as error:  # its libraries raise whatever they stumble over
        raise DataError(
            f"{model}: must be a readable faster-whisper model, got {reason(error)}; "
            f"fetch or convert it again"
        ) from error
