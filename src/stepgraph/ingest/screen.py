"""Read the screen: text that is shown in a video as sentences with their times, offline.

PP-OCRv6, carried by the package ``rapidocr`` (the ``ocr`` extra) and checked against its hashes,
reads one picture a second, if it has changed.  Lines are tracked while they stay.  A line that
stays throughout a video, such as a channel's name, is left out, as is one that is no text.  The
results are cached as transcripts are.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepgraph import progress
from stepgraph.core import Sentence, Video, rows_in
from stepgraph.errors import MissingExtraError
from stepgraph.ingest import media_cache
from stepgraph.ingest.frames import read_pictures
from stepgraph.ingest.media import media_duration

READER_SHA256 = {
    "PP-OCRv6_det_small.onnx": "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f",
    "PP-OCRv6_rec_small.onnx": "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884",
}
"""The files of the model: one finds lines, the other one reads them."""

SIDE = 480
"""Pixels of the shorter side of the pictures that are read."""

CERTAIN, LIKELY = 0.9, 0.7
"""Minimum confidence of a line in one picture only, and of a line in several pictures."""

LASTING_SHARE, LASTING_SECONDS = 0.5, 20
"""Share of a video, and seconds, for which a line must be shown to be left out as lasting."""

_VERSION = 1  # of cached results; those of another version are computed again
_BLOCK, _CHANGE = 8, 8  # pixels of a block, and by how much its mean colour must change
_GAP = 2  # seconds after which a line that was not seen is gone
_RUN = 3  # letters in a row that two readings must share to share any
_WORD = re.compile(r"[^\W\d_]+")
_VOWEL, _NO_WORD = re.compile("[aeiouy]"), re.compile("[^aeiouy]{5}")


class ScreenLine(NamedTuple):
    """A line of text in a picture, and its box in pixels: left, top, right and bottom."""

    text: str
    confidence: float
    box: tuple[float, float, float, float]


def read_screen(path: Path) -> tuple[Sentence, ...]:
    """Read the text that is shown in a video file, or load the cached result."""
    path = Path(path)
    found = recall(path)
    if found is None:
        found = to_sentences(*_read(path))
        content = {"format": "stepgraph-screen", "version": _VERSION, "sentences": found}
        media_cache.keep(_cache_path(path), content, "the text in the picture", "reads it")
    return found


def recall(path: Path) -> tuple[Sentence, ...] | None:
    """Load the cached text of a file, or None."""
    found = media_cache.recall(_cache_path(path))
    return None if found is None else found[0]


def note_screen_reading(videos: Sequence[Video]) -> None:
    """Report how many videos have to be read, which takes time."""
    paths = [video.path for video in videos if video.path is not None]
    new = [path for path in paths if path.is_file() and recall(path) is None]
    if len(new) == len(videos) == 1:
        progress.note(f"reading text in the picture: {new[0]}")
    elif new:
        progress.note(f"reading text in the picture: {len(new)} of {len(videos)} videos are new")


def _cache_path(path: Path) -> Path:
    model = READER_SHA256["PP-OCRv6_rec_small.onnx"][:8]
    return media_cache.cache_path(path, "screen", f"ppocr-{model}-{_VERSION}")


def _read(path: Path) -> tuple[list[list[ScreenLine]], float]:
    """The lines of each second, and the second at which the last one ends."""
    rows: list[list[ScreenLine]] = []
    before, end = np.zeros(0), 0.0
    with progress.counting(f"reading text in {path.name}", rows_in(media_duration(path))) as done:
        for clip in read_pictures(path, SIDE):
            blocks, end = _blocks(clip.frames[0]), clip.end
            if blocks.shape != before.shape or np.abs(blocks - before).max() > _CHANGE:
                rows.append(_lines_in(clip.frames[0]))
                before = blocks
            else:
                rows.append(rows[-1])
            done(1)
    return rows, end


def _blocks(picture: NDArray[np.uint8]) -> NDArray[np.float64]:
    """The mean colour of each block of a picture."""
    height, width = (length // _BLOCK for length in picture.shape[:2])
    whole = picture[: height * _BLOCK, : width * _BLOCK]
    return np.asarray(whole.reshape(height, _BLOCK, width, _BLOCK, 3).mean(axis=(1, 3)))


def _lines_in(picture: NDArray[np.uint8]) -> list[ScreenLine]:
    """Lines that may well be text, each once."""
    found = _load_reader()(np.ascontiguousarray(picture[..., ::-1]))
    boxes = () if found.boxes is None else found.boxes
    lines = [
        ScreenLine(" ".join(text.split()), float(sure), (*box.min(axis=0), *box.max(axis=0)))
        for text, sure, box in zip(found.txts or (), found.scores or (), boxes, strict=True)
        if sure >= LIKELY and is_text(text)
    ]
    return list({_letters(line.text): line for line in reversed(lines)}.values())


def is_text(text: str) -> bool:
    """Check that a line is mostly words: three letters, a vowel, no five consonants in a row.

    >>> [is_text(one) for one in ("fill about 3/4 full", "000", "88 m", "xkrtz wq")]
    [True, False, False, False]
    """
    words = [word for word in _WORD.findall(text) if _is_word(word)]
    solid = sum(map(len, text.split()))
    return any(len(word) >= 3 for word in words) and 2 * sum(map(len, words)) >= solid


def _is_word(word: str) -> bool:
    plain = unicodedata.normalize("NFKD", word.lower())
    if not plain[0].isascii():  # there is no rule for other alphabets
        return True
    return _VOWEL.search(plain) is not None and _NO_WORD.search(plain) is None


def _letters(text: str) -> str:
    return "".join(one for one in text.casefold() if one.isalnum())


def alike(one: str, other: str) -> bool:
    """Check that one of two texts is the other one, misread, half faded, or not complete yet.

    >>> alike("fold until combined", "FOLD UNTIL COMB"), alike("add two eggs", "add two cups")
    (True, False)
    """
    part, whole = sorted((_letters(one), _letters(other)), key=len)
    if part == whole or len(part) < _RUN:
        return part == whole
    blocks = SequenceMatcher(None, part, whole, autojunk=False).get_matching_blocks()
    found = sum(block.size for block in blocks if block.size >= _RUN)
    return len(part) - found <= len(part) // 8


@dataclass
class _Shown:
    """A line while it is shown, with its best reading."""

    first: int
    last: int
    best: ScreenLine
    seen: int = 1

    def is_again(self, line: ScreenLine) -> bool:
        same = _letters(self.best.text) == _letters(line.text)
        return same or (_gap(self.best.box, line.box) <= 0 and alike(self.best.text, line.text))

    def go_on(self, row: int, line: ScreenLine) -> None:
        self.last, self.seen = row, self.seen + 1
        self.best = max(self.best, line, key=lambda one: one.confidence * len(one.text))

    @property
    def height(self) -> float:
        return self.best.box[3] - self.best.box[1]

    def belongs_to(self, other: _Shown) -> bool:
        """Check that both appear and disappear together, one beside or under the other."""
        shared = 1 + min(self.last, other.last) - max(self.first, other.first)
        both = 1 + max(self.last, other.last) - min(self.first, other.first)
        near = _gap(self.best.box, other.best.box) <= min(self.height, other.height)
        return near and 2 * shared >= both


def _gap(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """Pixels between two boxes, 0 or less where they overlap."""
    across = max(one[0], other[0]) - min(one[2], other[2])
    return max(across, max(one[1], other[1]) - min(one[3], other[3]))


def to_sentences(rows: Sequence[Sequence[ScreenLine]], end: float) -> tuple[Sentence, ...]:
    """Convert the lines of each second to sentences; the newest of several lines is taken.

    A sentence lasts from the last picture without it to the next one without it, or shares the
    time between with the sentence there.
    """
    front: list[tuple[int, str]] = [(-1, "")] * len(rows)
    for text, first, last in _texts(_follow(_without_lasting(rows))):
        for row in range(first, last + 1):
            front[row] = max(front[row], (first, text), key=lambda one: (one[0], len(one[1])))
    found, free, row = list[Sentence](), 0.0, 0
    for (_, text), same in groupby(front):
        start, row = row, row + len(list(same))
        if text:
            pause = (start - free) / 2 if found else 0.5
            if found:
                found[-1] = found[-1]._replace(end=free + min(0.5, pause))
            found.append(Sentence(max(0.0, start - min(0.5, pause)), min(row + 0.5, end), text))
            free = float(row)
    return tuple(found)


def _without_lasting(rows: Sequence[Sequence[ScreenLine]]) -> Iterator[list[ScreenLine]]:
    """Yield the lines of each second without those that stay throughout."""
    counts = Counter(_letters(line.text) for lines in rows for line in lines)
    least = max(LASTING_SECONDS, LASTING_SHARE * len(rows))
    lasting = [text for text, count in counts.items() if count >= least]
    for lines in rows:
        yield [line for line in lines if not any(alike(line.text, one) for one in lasting)]


def _follow(rows: Iterable[Sequence[ScreenLine]]) -> list[_Shown]:
    """Track the lines over the seconds; return them in order of appearance."""
    shown: list[_Shown] = []
    going: list[_Shown] = []
    for row, lines in enumerate(rows):
        going = [one for one in going if row - one.last <= _GAP]
        for line in lines:
            again = (one for one in going if one.last < row and one.is_again(line))
            found = next(again, None)
            if found is None:
                shown.append(_Shown(row, row, line))
                going.append(shown[-1])
            else:
                found.go_on(row, line)
    return [one for one in shown if one.seen > 1 or one.best.confidence >= CERTAIN]


def _texts(shown: Iterable[_Shown]) -> Iterator[tuple[str, int, int]]:
    """Join lines that appear and disappear together; yield text, first and last second."""
    captions: list[list[_Shown]] = []
    for one in shown:
        own = next((all_ for all_ in captions[-9:] if any(map(one.belongs_to, all_))), None)
        if own is None:
            captions.append([one])
        else:
            own.append(one)
    for lines in captions:
        height = lines[0].height
        lines.sort(key=lambda one: (round(one.best.box[1] / height), one.best.box[0]))
        first, last = min(one.first for one in lines), max(one.last for one in lines)
        yield " ".join(one.best.text for one in lines), first, last


@lru_cache(maxsize=1)
def _load_reader() -> Any:
    try:
        import rapidocr
    except ImportError as error:
        raise MissingExtraError(
            "reading text in the picture needs the 'ocr' extra; run: pip install 'stepgraph[ocr]'"
        ) from error
    folder = Path(rapidocr.__file__).parent / "models"
    media_cache.require_hashes(folder, READER_SHA256, "the reading model", "rapidocr==3.10.0")
    find, read = (str(folder / name) for name in READER_SHA256)
    # With the paths of both given, it has nothing to download.
    options = {"Det.model_path": find, "Rec.model_path": read, "Det.limit_side_len": SIDE}
    quiet = {"Global.log_level": "critical", "Global.use_cls": False}
    return rapidocr.RapidOCR(params=options | quiet)
