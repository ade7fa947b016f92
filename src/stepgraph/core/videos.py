"""A video, and what people get of it: chapters by name, made by a timeline or read from a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from stepgraph.errors import DataError

LONGEST = 7 * 24 * 3600.0
"""Seconds of the longest video that is believed: a week.  More is a mistake in the input."""


def short_clock(seconds: float) -> str:
    """Minutes and seconds, and hours where there are any."""
    whole = int(seconds)
    hours = f"{whole // 3600}:{whole // 60 % 60:02}" if whole >= 3600 else f"{whole // 60}"
    return f"{hours}:{whole % 60:02}"


class Sentence(NamedTuple):
    """What was said between ``start`` and ``end`` (seconds)."""

    start: float
    end: float
    text: str


@dataclass(frozen=True)
class Video:
    """One video: how long it is, what is said in it, and where it lies."""

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
        Mean probability of the chapter's rows, where the decoder gives one; rows that it
        labelled otherwise count as 0.
    words
        What was said that speaks most for the keystep, where something was.
    origin
        ``anchor`` where some row was heard or seen clearly, ``path`` where all of it was
        found along the graph, ``label`` where the decoder makes no such difference,
        ``corrected`` where a person said so.
    task
        Which task it is a part of, where one is probable.
    alternatives
        Up to three other keysteps that it may be, with their mean probability, where the decoder
        says so; the most probable first.
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
    """A timeline as it was written: by name, without labels and scores.

    Attributes
    ----------
    tasks
        As in :class:`~stepgraph.core.Labels`, the five most probable ones.
    fingerprint
        Of the vocabulary that the chapters are of.
    corrected
        Whether a person corrected the chapters.
    """

    video: Video
    chapters: tuple[Chapter, ...]
    tasks: Mapping[str, float] | None = None
    fingerprint: str = ""
    corrected: bool = False

    def __iter__(self) -> Iterator[Chapter]:
        return iter(self.chapters)
