"""Write down what is said in a video file, with a speech recogniser that lies on this machine.

Needs faster-whisper, the ``speech`` extra, and a folder with a model of it.  Nothing is fetched
from anywhere: a model is a large file of which its user should know.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from stepgraph.core import Sentence
from stepgraph.errors import DataError, MissingExtraError, reason
from stepgraph.ingest.cleaning import clean
from stepgraph.ingest.cues import Cue, checked
from stepgraph.ingest.media import opened

MODEL_FILES = ("model.bin", "config.json", "tokenizer.json")
"""What the folder of a model must hold; without the last one faster-whisper would download it."""


def transcribe(path: Path, model: Path) -> tuple[Sentence, ...]:
    """Return the clean sentences that a recogniser hears in a video file.

    Stretches without a voice are passed over, since recognisers make up words for music.  The
    ``model`` is the folder of one of faster-whisper (CTranslate2); see :data:`MODEL_FILES`.
    """
    path, model = Path(path), Path(model)
    _require_model(model, path)
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


def _require_model(model: Path, path: Path) -> None:
    """Refuse what faster-whisper would try to download."""
    try:
        import faster_whisper  # noqa: F401 - only to know whether it is there
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: recognising speech needs the 'speech' extra; "
            f"run: pip install 'stepgraph[speech]'"
        ) from error
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
