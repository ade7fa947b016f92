"""A proposed vocabulary, with notes on each of its steps, as a list that people edit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from stepgraph.core import Vocabulary
from stepgraph.core.videos import short_clock
from stepgraph.errors import ConfigError, one_line
from stepgraph.vocabulary.lists import make_vocabulary
from stepgraph.vocabulary.notes import COMMENT

STEPS = 12
"""Maximum number of steps that are proposed for a task, by default."""
# Minimum share of a task's videos that mention a step, by default.
_SHARE = 0.1
_FEWEST = 2
# Maximum number of other phrases for a step that are shown.
_SHOWN = 4


@dataclass(frozen=True)
class SuggestOptions:
    """Options for the proposal of steps.

    Attributes
    ----------
    tasks
        Number of tasks that the videos show (default: estimated from the videos).
    steps
        Maximum number of steps of a task, 2 or more (default: 12).
    min_videos
        Minimum number of videos of its task that mention a step (default: a tenth of them, at
        least 2).
    """

    tasks: int | None = None
    steps: int | None = None
    min_videos: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("tasks", 1), ("steps", 2), ("min_videos", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigError(f"{name} must be at least {least}, got {value}")

    def fewest(self, videos: int) -> int:
        """Minimum number of videos that mention a step, for a task of ``videos``."""
        return self.min_videos or max(_FEWEST, math.ceil(_SHARE * videos))


class Mention(NamedTuple):
    """A mention of a step: its video, its time in seconds, and its words."""

    video: str
    time: float
    text: str


@dataclass(frozen=True)
class SuggestedStep:
    """A proposed keystep, and the mentions that support it.

    Attributes
    ----------
    videos
        Number of videos of the task that mention it, in these or similar words.
    optional
        True if probably fewer than half of the task's videos show it.
    also
        Other phrases for it, the most frequent first.
    """

    name: str
    videos: int
    optional: bool
    also: tuple[str, ...]
    examples: tuple[Mention, ...]


@dataclass(frozen=True)
class SuggestedTask:
    """A proposed task: the ids of the videos that show it, and its steps in order."""

    name: str
    videos: tuple[str, ...]
    steps: tuple[SuggestedStep, ...]


@dataclass(frozen=True)
class SuggestedVocabulary:
    """Proposed tasks with their steps, those with the most videos first.

    Attributes
    ----------
    unassigned
        Unassigned videos: no task was found for them, or no step that recurs.
    """

    tasks: tuple[SuggestedTask, ...]
    unassigned: tuple[str, ...] = ()

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Vocabulary that results from reading :meth:`to_text` as a list."""
        return make_vocabulary(self.to_text().split("\n"))

    def to_text(self) -> str:
        """Format as a list to edit: deleting a line deletes a step; the notes are comments."""
        found = sum(len(task.videos) for task in self.tasks)
        lines = [
            f"{COMMENT} Proposed from the narration of {found} videos. Delete, rename and",
            f"{COMMENT} reorder; then check the list: stepgraph steps check THIS_FILE SOURCE",
        ]
        for task in self.tasks:
            lines += ["", f"# {task.name}", f"{COMMENT} {len(task.videos)} videos"]
            for step in task.steps:
                lines += [step.name, *_notes(step, len(task.videos))]
        return "\n".join(lines) + "\n"

    def to_json(self) -> dict[str, Any]:
        """Convert to fields for JSON."""
        return {
            "tasks": [
                {
                    "task": task.name,
                    "videos": list(task.videos),
                    "steps": [
                        {
                            "keystep": step.name,
                            "videos": step.videos,
                            "optional": step.optional,
                            "also": list(step.also),
                            "examples": [one._asdict() for one in step.examples],
                        }
                        for step in task.steps
                    ],
                }
                for task in self.tasks
            ],
            "unassigned": list(self.unassigned),
        }


def _notes(step: SuggestedStep, videos: int) -> Iterator[str]:
    also = f", also: {'; '.join(step.also[:_SHOWN])}" if step.also else ""
    optional = "optional, " if step.optional else ""
    yield f"    {COMMENT} {optional}mentioned in {step.videos} of {videos} videos{also}"
    for one in step.examples:
        mention = one_line(f"{one.video} {short_clock(one.time)}: {one.text}")
        yield f"    {COMMENT} {mention}"


def distinct(names: Sequence[str]) -> list[str]:
    """Make names unique: a repeated name gets a number.

    >>> distinct(["Make tea", "Fix a chair", "Make tea"])
    ['Make tea', 'Fix a chair', 'Make tea 2']
    """
    used: dict[str, int] = {}
    found = []
    for name in names:
        used[name] = used.get(name, 0) + 1
        found.append(name if used[name] == 1 else f"{name} {used[name]}")
    return found
