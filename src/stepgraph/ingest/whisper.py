"""Recognise speech with a model of faster-whisper (the ``speech`` extra) that lies in a folder."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from stepgraph.core import Sentence
from stepgraph.errors import DataError, MissingExtraError, reason
from stepgraph.ingest.cleaning import Cue, checked, clean
from stepgraph.ingest.media import opened

MODEL_FILES = ("model.bin", "config.json", "tokenizer.json")
"""Files of a model's folder; without the last one faster-whisper would download it."""


class UnheardError(DataError):
    """A file whose speech cannot be recognised; other files are not affected."""


def track_of_sound(container: Any, path: Path) -> Any:
    """The first track of sound of an open file."""
    if not container.streams.audio:
        raise UnheardError(
            f"{path}: must have sound to be transcribed, got none; "
            f"put a transcript beside it, such as {path.stem}.srt"
        )
    return container.streams.audio[0]


def transcribe(path: Path, model: Path) -> tuple[Sentence, ...]:
    """Transcribe a video file to clean sentences with a model of faster-whisper.

    Parts without a voice are skipped, since recognisers make up words for music.  The
    ``model`` is its folder (CTranslate2); see :data:`MODEL_FILES`.
    """
    path, model = Path(path), Path(model)
    try:
        import faster_whisper  # noqa: F401 - only to know whether it is there
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: recognising speech needs the 'speech' extra; "
            f"run: pip install 'stepgraph[speech]'"
        ) from error
    _require_model(model)
    begin = _begin_of_sound(path)
    recognizer = _load_whisper(model.resolve())
    try:
        heard, _ = recognizer.transcribe(str(path), vad_filter=True)
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


def _require_model(model: Path) -> None:
    # Without all of them faster-whisper would try to download the model.
    missing = [name for name in MODEL_FILES if not (model / name).is_file()]
    if missing:
        got = f"no {' and no '.join(missing)}" if model.is_dir() else "no such folder"
        raise DataError(
            f"{model}: must be the folder of a faster-whisper model ({', '.join(MODEL_FILES)}), "
            f"got {got}; nothing is downloaded, put one there"
        )


def _begin_of_sound(path: Path) -> float:
    """Seconds from the start of the file, as players show it, to its first sound."""
    with opened(path) as container:
        track = track_of_sound(container, path)
        first = float((track.start_time or 0) * track.time_base)
        return max(0.0, first - (container.start_time or 0) / 1_000_000)


@lru_cache(maxsize=1)
def _load_whisper(model: Path) -> Any:
    from faster_whisper import WhisperModel

    try:
        # The fastest arithmetic that the processor has; models are often stored in one it lacks.
        return WhisperModel(str(model), compute_type="auto", local_files_only=True)
    except Exception as error:  # its libraries raise whatever they stumble over
        raise DataError(
            f"{model}: must be a readable faster-whisper model, got {reason(error)}; "
            f"fetch or convert it again"
        ) from error
