"""Videos, their sentences, and chapters by name, made by a timeline or read from a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from stepgraph.errors import DataError

LONGEST = 7 * 24 * 3600.0
"""Maximum duration of a video in seconds: a week.  More is a mistake in the input."""


def short_clock(seconds: float) -> str:
    """Format seconds as minutes and seconds, and hours if there are any."""
    whole = int(seconds)
    hours = f"{whole // 3600}:{whole // 60 % 60:02}" if whole >= 3600 else f"{whole // 60}"
    return f"{hours}:{whole % 60:02}"


class Sentence(NamedTuple):
    """Text of a transcript from ``start`` to ``end`` (seconds)."""

    start: float
    end: float
    text: str


@dataclass(frozen=True)
class Video:
    """One video: its duration in seconds, its transcript, its file and its task, if known."""

    id: str
    duration: float
    transcript: tuple[Sentence, ...] = ()
    path: Path | None = None
    task: str | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.duration <= LONGEST:
            raise DataError(
                f"duration of video {self.id!r} must be between 0 seconds and a week, "
                f"got {self.duration!r}"
            )


@dataclass(frozen=True)
class Chapter:
    """One keystep of a timeline.

    Attributes
    ----------
    score
        Mean score of the keystep over the observed rows of the chapter; None without any.
    confidence
        Mean confidence of the chapter's rows, if the decoder gives one; rows with another label
        count as 0.
    words
        Sentence nearest to the row with the highest score of the keystep, if there is one.
    origin
        ``anchor`` if a row of the keystep is an anchor, ``path`` if none is, ``label`` if the
        decoder gives no anchors, ``corrected`` if a person corrected it.
    task
        Task of which the chapter is a part, if one is probable.
    alternatives
        Up to three other keysteps that it may show, with their mean probability, the most
        probable first; none if the decoder gives none.
    """

    start: float
    end: float
    keystep: str
    score: float | None
    origin: Literal["anchor", "path", "label", "corrected"]
    confidence: float | None = None
    words: str | None = None
    task: str | None = None
    alternatives: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Result:
    """A timeline as a file holds it: chapters by name, without labels and scores.

    Attributes
    ----------
    tasks
        As in :class:`~stepgraph.core.Labels`, the five most probable ones.
    fingerprint
        Fingerprint of the vocabulary of the chapters.
    corrected
        True if a person corrected the chapters.
    """

    video: Video
    chapters: tuple[Chapter, ...]
    tasks: Mapping[str, float] | None = None
    fingerprint: str = ""
    corrected: bool = False

    def __iter__(self) -> Iterator[Chapter]:
        return iter(self.chapters)
