"""Recognise speech: turn the sound of a file into sentences with their times, offline.

The built-in recogniser is Moonshine tiny for English, carried by the package ``moonshine-voice``
(the ``video`` extra) and checked against its hashes; the other is any model of faster-whisper in
a folder (:mod:`stepgraph.ingest.whisper`).  Nothing is downloaded.  Transcripts are cached beside
the embeddings, by the content of the file and the model, so that none is computed twice.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepgraph import progress
from stepgraph.core import Sentence
from stepgraph.errors import DataError, MissingExtraError, reason
from stepgraph.files.headers import as_seconds, as_text, as_whole
from stepgraph.ingest import media_cache
from stepgraph.ingest.language_check import SENTENCE_END, TOO_MUCH, WORD, LanguageCheck
from stepgraph.ingest.media import opened, packets_of
from stepgraph.ingest.whisper import MODEL_FILES, UnheardError, track_of_sound, transcribe
from stepgraph.problems import Problems

MOONSHINE_SHA256 = {
    "encoder_model.ort": "94e90a4654fc45cdfedb77c4c08e1739f48862998e58fada384b25118134f221",
    "decoder_model_merged.ort": "cf524c4862d36e9e5ab032eddc73637efd822d70e868ac575cf1a46e1e4708a0",
    "tokenizer.bin": "6884b35fd6377d4c4d32336a0bc152f36b64d1e45b6503683cdc238250a8472d",
}
"""The files of the built-in model."""

RATE = 16_000  # samples a second that the model takes
LONGEST_PIECE = 9.5
"""Maximum seconds of sound that are transcribed at once.

Of more than ten seconds without a pause the recogniser would make lines that overlap, and the
words between two of them would come twice.
"""

SHORTEST_PIECE = 4.0
_PAUSE = 0.4  # seconds; where the sound is quietest for so long, it is cut
_WINDOW = 512  # samples of a window of voice detection
_HUSH = 32 * _WINDOW / RATE  # seconds of silence that reset the recogniser
_SHORTEST_LINE = 0.4  # of shorter ones it makes "you", whatever they are
_GAP = 0.2  # seconds without sound after which times are taken from the file again
_LONGEST_GAP = 600.0  # of more the time is wrong, not the sound missing
_LOOP_WORDS, _LOOP_SHARE = 12, 0.25
"""Minimum number of words of a line, and share of unique ones below which it is music."""

_VERSION = 3  # of cached transcripts; those of another version are computed again


class Transcription(NamedTuple):
    """Transcript of a file, the second at which its sound ends, and flaws of the sound.

    ``damaged`` packets of sound could not be decoded; ``language`` is the tag of the track;
    ``unsure`` is the share of words, from 0 to 1, that change in a second transcript.
    """

    sentences: tuple[Sentence, ...]
    end: float
    damaged: int = 0
    language: str = ""
    unsure: float = 0.0


def hear(
    path: Path, model: Path | None = None, *, problems: Problems | None = None
) -> Transcription:
    """Transcribe the speech of a file, or load its cached transcript.

    Parameters
    ----------
    model
        Folder of a model of faster-whisper; if not given, the built-in model is used.
    problems
        Receives a file that has no speech, is damaged or is not in English; if not given, a
        warning reports it.
    """
    path = Path(path)
    heard = recall(path, model)
    if heard is None:
        if model is None:
            heard = _listen(path)
        else:
            sentences = transcribe(path, model)
            heard = Transcription(sentences, sentences[-1].end if sentences else 0.0)
        content = {"format": "stepgraph-speech", "version": _VERSION, **heard._asdict()}
        media_cache.keep(_cache_path(path, model), content, "the transcript", "transcribes")
    noted = Problems() if problems is None else problems
    for kind, what in _blemishes(heard, english=model is None):
        noted.add(str(path), kind, what)
    if noted and problems is None:
        warnings.warn(noted.summary(), stacklevel=2)
    return heard


def recall(path: Path, model: Path | None = None) -> Transcription | None:
    """Load the cached transcript of a file; None if it is missing or damaged."""
    with suppress(DataError, OSError, KeyError, TypeError, ValueError):
        found = media_cache.recall(_cache_path(path, model))
        if found is not None:
            said, rest = found
            more = as_whole(rest["damaged"]), as_text(rest["language"]), rest["unsure"]
            if 0 <= more[-1] <= 1:
                return Transcription(said, as_seconds(rest["end"]), *more)
    return None


def to_srt(sentences: Iterable[Sentence]) -> str:
    """Format sentences as a SubRip file.

    >>> print(to_srt([Sentence(61.5, 63, "Whisk.")]), end="")
    1
    00:01:01,500 --> 00:01:03,000
    Whisk.
    """

    def clock(seconds: float) -> str:
        minutes, milliseconds = divmod(round(1000 * seconds), 60_000)
        second, rest = divmod(milliseconds, 1000)
        return f"{minutes // 60:02}:{minutes % 60:02}:{second:02},{rest:03}"

    return "\n".join(
        f"{number}\n{clock(start)} --> {clock(end)}\n{text}\n"
        for number, (start, end, text) in enumerate(sentences, 1)
    )


def _cache_path(path: Path, model: Path | None) -> Path:
    if model is None:
        listener = f"moonshine-{MOONSHINE_SHA256['encoder_model.ort'][:8]}"
    else:
        state = [(model / name).stat() for name in MODEL_FILES]
        sizes = repr([(one.st_size, one.st_mtime_ns) for one in state])
        listener = f"whisper-{hashlib.blake2b(sizes.encode(), digest_size=4).hexdigest()}"
    return media_cache.cache_path(path, "speech", f"{listener}-{_VERSION}")


def _blemishes(heard: Transcription, *, english: bool) -> Iterator[tuple[str, str]]:
    tag = heard.language.lower()
    if not heard.sentences:
        what = "must contain speech, got silence or music"
        yield "video without speech", f"{what}; put a transcript beside it, or leave it out"
    elif english:
        got = ""
        if tag not in ("", "und", "mul", "zxx") and not tag.startswith("en"):
            got = f"a track marked {tag!r}"
        elif heard.unsure > TOO_MUCH:
            got = f"words of which {100 * heard.unsure:.0f} % change in a second pass"
        if got:
            what = f"speech must be English for the built-in model, got {got}"
            yield "foreign speech", f"{what}; put a transcript beside it, or give a speech model"
    if heard.damaged:
        what = f"sound must be whole, got {heard.damaged} packets that cannot be decoded"
        yield "damaged sound", f"{what}; their speech is missing"


def _listen(path: Path) -> Transcription:
    recognizer = _load_moonshine()
    lines: list[Sentence] = []
    twice = LanguageCheck()
    with opened(path) as container:
        sound = _Sound(container, path)
        with progress.counting(f"transcribing {path.name}", sound.stated) as done:
            for number, (at, piece) in enumerate(cut(sound.runs())):
                first = list(_heard_in(recognizer, at, piece))
                lines += first
                if twice.wants(number):
                    again = _heard_in(recognizer, at, twice.changed(piece))
                    twice.compare(*(" ".join(one.text for one in said) for said in (first, again)))
                done(round(len(piece) / RATE))
    facts = round(sound.end, 3), sound.damaged, sound.language, twice.share
    return Transcription(tuple(_split(lines)), *facts)


def hear_piece(at: float, piece: NDArray[np.float32]) -> tuple[Sentence, ...]:
    """Transcribe a piece of sound that begins ``at`` a second, with the built-in model."""
    return tuple(_split(_heard_in(_load_moonshine(), at, piece)))


def _heard_in(recognizer: Any, at: float, piece: NDArray[np.float32]) -> Iterator[Sentence]:
    """Transcribe a piece of sound to lines with times in the file; drop lines without speech."""
    # Earlier sound, or the content of the memory, would else decide where a voice begins.
    hush = np.zeros(round(_HUSH * RATE), np.float32)
    padded = np.concatenate([hush, piece, hush[: -len(piece) % _WINDOW]])
    for line in recognizer.transcribe_without_streaming(padded, RATE).lines:
        words = WORD.findall(line.text.lower())
        looping = len(words) >= _LOOP_WORDS and len(set(words)) < _LOOP_SHARE * len(words)
        if words and not looping and line.duration >= _SHORTEST_LINE:
            start = line.start_time - _HUSH
            end = at + min(start + line.duration, len(piece) / RATE)
            yield Sentence(at + max(0.0, start), end, " ".join(line.text.split()))


def _split(lines: Iterable[Sentence]) -> Iterator[Sentence]:
    """Split lines into sentences, each with its share of the time, without overlap."""
    free, last = 0.0, ""
    for start, end, text in lines:
        words = text.split()
        # A line begins half a second before its voice; a word said then belongs to the last one.
        if start < free and len(words) > 1 and _bare(words[0]) == last:
            text = text[len(words[0]) :].lstrip()
        start = round(max(start, free), 3)
        if end <= start:
            continue
        parts, length = SENTENCE_END.split(text), (end - start) / len(text)
        for part in parts:
            free = round(min(end, start + length * (len(part) + 1)), 3)
            if start < free:
                yield Sentence(start, free, part)
            start = free
        last = _bare(words[-1])


def _bare(word: str) -> str:
    return "".join(WORD.findall(word.lower()))


def cut(
    runs: Iterable[tuple[float | None, NDArray[np.float32]]],
) -> Iterator[tuple[float, NDArray[np.float32]]]:
    """Cut sound where it is quietest into pieces to transcribe at once, with their starts.

    The sound comes as it is decoded: samples with the time of the first, or None where they
    go on from those before.
    """
    held: list[NDArray[np.float32]] = []
    at, count = 0.0, 0
    for start, samples in runs:
        if start is not None:
            if count:
                yield at, np.concatenate(held)
            held, at, count = [], start, 0
        held.append(samples)
        count += len(samples)
        while count > LONGEST_PIECE * RATE:
            joined = np.concatenate(held)
            end = _quietest(joined[: int(LONGEST_PIECE * RATE)])
            yield at, joined[:end]
            held, at, count = [joined[end:]], at + end / RATE, count - end
    if count:
        yield at, np.concatenate(held)


def _quietest(sound: NDArray[np.float32]) -> int:
    """Middle, in samples, of the quietest pause that leaves a piece long enough."""
    first, width = int(SHORTEST_PIECE * RATE), int(_PAUSE * RATE)
    total = np.cumsum(np.square(sound[first:], dtype=np.float64))
    return first + int(np.argmin(total[width:] - total[:-width])) + width // 2


class _Sound:
    """The first track of sound of an open file, decoded once and in small blocks."""

    def __init__(self, container: Any, path: Path) -> None:
        self._container, self._path = container, path
        self._track = track_of_sound(container, path)
        self.stated = int((container.duration or 0) / 1_000_000) or None
        self.language = str(self._track.metadata.get("language", ""))
        self.damaged, self.end = 0, 0.0

    def runs(self) -> Iterator[tuple[float | None, NDArray[np.float32]]]:
        """Samples as :func:`cut` takes them, whatever the rate and the channels of the file."""
        import av

        beginning = (self._container.start_time or 0) / 1_000_000  # where players show 0:00
        kind, expected, converted = None, 0.0, av.AudioResampler("flt", "mono", RATE)
        start: float | None = None
        for frame in self._frames():
            time = expected if frame.time is None else frame.time - beginning
            gap = _GAP < time - expected < _LONGEST_GAP
            if gap or kind is None:
                start = max(0.0, time)
            if gap or kind != (frame.format.name, frame.layout.name, frame.sample_rate):
                kind = (frame.format.name, frame.layout.name, frame.sample_rate)
                converted = av.AudioResampler("flt", "mono", RATE)
            expected = time + frame.samples / frame.sample_rate
            self.end = max(self.end, expected)
            for one in converted.resample(frame):
                yield start, one.to_ndarray()[0]
                start = None
        if kind is None:
            raise UnheardError(
                f"{self._path}: sound must be decodable, got none that is; "
                f"play it to see whether it is whole"
            )
        for one in converted.resample(None):
            yield None, one.to_ndarray()[0]

    def _frames(self) -> Iterator[Any]:
        import av

        for packet in packets_of(self._container, self._track):
            try:
                yield from self._track.decode(packet)
            except av.error.FFmpegError:
                self.damaged += 1


@lru_cache(maxsize=1)
def _load_moonshine() -> Any:
    try:
        from moonshine_voice import ModelArch, Transcriber, get_assets_path
    except ImportError as error:
        raise MissingExtraError(
            "transcribing a video needs the 'video' extra; run: "
            "pip install 'stepgraph[video]', or put a transcript beside it"
        ) from error
    folder = Path(get_assets_path()) / "tiny-en"
    media_cache.require_hashes(
        folder, MOONSHINE_SHA256, "the speech model", "moonshine-voice==0.1.0"
    )
    try:
        options = {"return_audio_data": "false"}
        return Transcriber(str(folder), ModelArch.TINY, options=options)
    except Exception as error:  # such as a C library that is too old
        raise MissingExtraError(
            f"the speech model must be loadable, got {reason(error)}; it needs glibc 2.34 on "
            f"Linux; put transcripts beside the videos, or give a speech model"
        ) from error
