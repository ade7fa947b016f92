"""Read a transcript while it is written: lines from a pipe, or a subtitle file that grows.

The first lines decide the format: cues of SubRip or WebVTT, lines that begin with their time in
the video (``12.5 text``, ``1:02 text``), or plain lines, each spoken when it arrives.  A line that
cannot be used is noted and skipped.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, Queue
from threading import Thread
from typing import BinaryIO, NamedTuple

from stepgraph.core import LONGEST, Sentence
from stepgraph.errors import DataError, quoted
from stepgraph.ingest.cleaning import BACKWARDS_LIMIT, LAST_SECONDS, LONGEST_TEXT, clean
from stepgraph.ingest.timed_text import TIMES, seconds
from stepgraph.problems import Problems

# A time with a decimal point or a colon; "2 eggs" begins with no time.
_STAMPED = re.compile(
    r"\s*[\[(]?(?:([0-9]{1,7}\.[0-9]{1,9})s?|(?:([0-9]{1,3}):)?([0-9]{1,3}):([0-9]{2}(?:\.[0-9]+)?))"
    r"[\])]?(?:\s*[-–—:])?\s+(.*)"
)
# Longest pause, in seconds; a longer one is a wrong time.
_LONGEST_PAUSE = 3600.0
# Lines that wait to be parsed, and seconds between two reads of a growing file.
_WAITING, _LOOK = 1000, 0.2


class ArrivedSentence(NamedTuple):
    """Sentence, and the time in seconds from which it is available."""

    now: float
    sentence: Sentence


class LineParser:
    """Parser of lines as they arrive.

    Parameters
    ----------
    origin
        Name of the lines in problems.
    problems
        Receives the lines that could not be used.

    Attributes
    ----------
    timed
        True if the lines carry their times; None until that is decided.

    Examples
    --------
    >>> reader = LineParser("-", Problems())
    >>> reader.read("12.5 pour the milk", 0.0)
    [ArrivedSentence(now=12.5, sentence=Sentence(start=12.5, end=17.5, text='pour the milk'))]
    """

    def __init__(self, origin: str, problems: Problems) -> None:
        self.timed: bool | None = None
        self.origin, self._problems = origin, problems
        self._number = 0
        self._cues = False
        self._held: tuple[str, float] | None = None  # perhaps the number of a first cue
        self._cue: tuple[float, float, list[str]] | None = None
        self._before: Sentence | None = None  # before cleaning
        self._last = 0.0
        self._shift, self._odd = 0.0, -1.0

    def skip(self, kind: str, what: str) -> None:
        """Record that the next line cannot be used."""
        self._number += 1
        self.note(kind, what)

    def note(self, kind: str, what: str) -> None:
        """Record that the current line cannot be used as it is."""
        self._problems.add(f"{self.origin}:{self._number}", kind, what)

    def read(self, line: str, arrived: float) -> list[ArrivedSentence]:
        """Parse the next line, with its arrival in seconds; return the sentences it completes."""
        self._number += 1
        text = line.strip()
        if times := TIMES.fullmatch(line.rstrip()):
            done, self._held = self._end_cue(), None
            self.timed = self._cues = True
            self._cue = seconds(times, 1), seconds(times, 5), []
            return done
        if self._cues:
            if not text:
                return self._end_cue()
            if self._cue is not None:
                self._cue[2].append(text)
            return []
        if not text:
            return []
        if self.timed is None and self._held is None:
            if text.startswith("WEBVTT"):
                self.timed = self._cues = True
                return []
            if text.isdecimal():
                self._held = text, arrived
                return []
        found = _STAMPED.fullmatch(text)
        if self.timed is None:
            self.timed = found is not None and self._held is None
        if self.timed:
            return self._stamped(found, text)
        return [*self._release(), *self._arrived(text, arrived)]

    def finish(self) -> list[ArrivedSentence]:
        """Return the sentences that are still open at the end of the input."""
        return [*self._release(), *self._end_cue()]

    def _release(self) -> list[ArrivedSentence]:
        held, self._held = self._held, None
        if held is None:
            return []
        self.timed = False
        return self._arrived(*held)

    def _stamped(self, found: re.Match[str] | None, text: str) -> list[ArrivedSentence]:
        start, rest_of_line = self._last, text  # a line without a time goes on with the one before
        if found is not None:
            plain, hours, minutes, rest, rest_of_line = found.groups()
            at = float(plain) if plain else 60.0 * int(minutes) + float(rest)
            start = self._on_clock(at + 3600.0 * int(hours or 0))
        return self._cleaned(Sentence(start, start + LAST_SECONDS, rest_of_line), start)

    def _arrived(self, text: str, arrived: float) -> list[ArrivedSentence]:
        start = min(max(self._last, arrived - LAST_SECONDS), arrived)
        return self._cleaned(Sentence(start, arrived, text), arrived)

    def _end_cue(self) -> list[ArrivedSentence]:
        cue, self._cue = self._cue, None
        if cue is None or not cue[2]:
            return []
        start, end, lines = cue
        if not 0 <= start <= end <= LONGEST:
            self.note(
                "impossible time",
                f"a cue must end after it starts, and within a week, got {start} and {end}; "
                f"it is left out",
            )
            return []
        placed = self._on_clock(start)
        end = placed + end - start
        return self._cleaned(Sentence(placed, end, "\n".join(lines)), end)

    def _on_clock(self, start: float) -> float:
        """Map a start, in seconds, to a clock that never goes back.

        A single outlier gets the time of the line before; two that agree set a new offset.
        """
        ahead = start + self._shift - self._last
        if -BACKWARDS_LIMIT <= ahead <= _LONGEST_PAUSE:
            self._odd = -1.0
            return max(start + self._shift, self._last)
        self.note(
            "jump in time",
            f"time must advance by at most an hour, got {start} after "
            f"{self._last - self._shift:g}; taken as following directly",
        )
        if self._odd >= 0 and -BACKWARDS_LIMIT <= start - self._odd <= _LONGEST_PAUSE:
            self._shift, self._odd = self._last - self._odd, -1.0
            return max(start + self._shift, self._last)
        self._odd = start
        return self._last

    def _cleaned(self, raw: Sentence, now: float) -> list[ArrivedSentence]:
        """Clean a sentence of markup, and of text that only displays the one before again."""
        near = [raw] if self._before is None else [self._before, raw]
        found = [one for one in clean(near) if one.start == raw.start]
        # Cleaning joins two that start together; the one before was returned already.
        same = self._before is not None and self._before.start == raw.start
        found = list(clean([raw])) if same else found
        self._before, self._last = raw, max(self._last, raw.start)
        return [ArrivedSentence(max(now, self._last), one) for one in found]


class ArrivedLine(NamedTuple):
    """Line and its arrival in seconds; ``data`` is None where only time passed."""

    data: bytes | None
    arrived: float


def arriving(
    stream: BinaryIO,
    *,
    follow: bool = False,
    clock: Callable[[], float] = time.monotonic,
    patience: float = 1.0,
) -> Iterator[ArrivedLine]:
    """Yield lines as they arrive, and one without data whenever ``patience`` runs out.

    Parameters
    ----------
    follow
        Wait for more at the end of the stream: it is a file that grows.
    patience
        Seconds to wait for a line.
    """
    lines: Queue[bytes | None] = Queue(_WAITING)

    def wait() -> None:
        with suppress(ValueError):  # the reader closed the file
            for one in _whole_lines(stream, follow):
                lines.put(one)
        lines.put(None)

    began = clock()
    Thread(target=wait, daemon=True).start()
    while True:
        try:
            data = lines.get(timeout=patience)
        except Empty:
            yield ArrivedLine(None, clock() - began)
            continue
        if data is None:
            return
        yield ArrivedLine(data, clock() - began)


def _whole_lines(stream: BinaryIO, follow: bool) -> Iterator[bytes]:
    """Yield lines without their line breaks, cut just over the longest valid length."""
    begun = b""
    while True:
        piece = stream.readline(LONGEST_TEXT)
        if not piece:
            if follow:
                time.sleep(_LOOK)
                continue
            if begun:
                yield begun
            return
        # A line that is too long keeps one byte too many, to be recognised as such.
        begun = (begun + piece)[: LONGEST_TEXT + 1]
        if piece.endswith(b"\n"):
            yield begun.removesuffix(b"\n")
            begun = b""


def read_live(
    lines: Iterator[ArrivedLine], reader: LineParser, *, must_be_timed: bool = False
) -> Iterator[ArrivedSentence | float]:
    """Yield sentences as they arrive; a number is the time up to which nobody spoke."""
    for data, arrived in lines:
        if data is None:
            if reader.timed is False:
                yield arrived
            continue
        text = _text_of(data, reader)
        yield from () if text is None else reader.read(text, arrived)
        if must_be_timed and reader.timed is False:
            raise DataError(
                f"{reader.origin}: lines must begin with their times unless they arrive live, got "
                f"none; write 12.5 before a line, or pipe them in as they are spoken"
            )
    yield from reader.finish()


def _text_of(data: bytes, reader: LineParser) -> str | None:
    """Decode a line; return None, and record the problem, if it is not usable text."""
    if len(data) > LONGEST_TEXT:
        what = f"a line must have at most {LONGEST_TEXT:,} characters, got more; it is left out"
        reader.skip("line too long", what)
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        shown = quoted(data[:40])
        reader.skip("line that is not text", f"must be UTF-8, got {shown}; it is left out")
        return None
    return text
