"""A proposed vocabulary, with what speaks for each of its steps, as a list that people edit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from stepgraph.core import Vocabulary
from stepgraph.core.videos import short_clock
from stepgraph.errors import ConfigError, one_line
from stepgraph.vocabulary.evidence import COMMENT
from stepgraph.vocabulary.lists import make_vocabulary

STEPS = 12
"""Steps of a task that are proposed where nobody says how many."""
# Share of a task's videos in which a step is said, where nobody says how many.
_SHARE = 0.1
_FEWEST = 2
# Other words for a step that are shown.
_SHOWN = 4


@dataclass(frozen=True)
class SuggestOptions:
    """How much is to be proposed.

    Attributes
    ----------
    tasks
        How many tasks the videos show; as many as they tell by themselves if not given.
    steps
        How many steps of a task are listed at most, 2 or more; 12 if not given.
    min_videos
        In how many videos of its task a step must be said; a tenth of them, at least 2, if not
        given.
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
        """In how many of so many videos a step must be said."""
        return self.min_videos or max(_FEWEST, math.ceil(_SHARE * videos))


class Example(NamedTuple):
    """What somebody said of a step: in which video, when (seconds), in which words."""

    video: str
    time: float
    text: str


@dataclass(frozen=True)
class SuggestedStep:
    """A proposed keystep, and what speaks for it.

    Attributes
    ----------
    videos
        How many videos of the task say it, in these or like words.
    optional
        Whether fewer than half of the task's videos may show it.
    also
        In which other words it is said, the most frequent first.
    """

    name: str
    videos: int
    optional: bool
    also: tuple[str, ...]
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class SuggestedTask:
    """A task that some videos were found to show: their ids, and its steps in their order."""

    name: str
    videos: tuple[str, ...]
    steps: tuple[SuggestedStep, ...]


@dataclass(frozen=True)
class SuggestedVocabulary:
    """Tasks with steps; those of most videos first.

    Attributes
    ----------
    loose
        Videos of which no task was found, or no step that recurs.
    """

    tasks: tuple[SuggestedTask, ...]
    loose: tuple[str, ...] = ()

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The same as a list is read."""
        return make_vocabulary(self.to_text().split("\n"))

    def to_text(self) -> str:
        """A list to be edited: deleting a line deletes a step; the evidence is in comments."""
        found = sum(len(task.videos) for task in self.tasks)
        lines = [
            f"{COMMENT} Proposed from what is said in {found} videos. Delete, rename and reorder;",
            f"{COMMENT} then ask what is missing: stepgraph steps check THIS_FILE SOURCE",
        ]
        for task in self.tasks:
            lines += ["", f"# {task.name}", f"{COMMENT} {len(task.videos)} videos"]
            for step in task.steps:
                lines += [step.name, *_evidence(step, len(task.videos))]
        return "\n".join(lines) + "\n"

    def to_json(self) -> dict[str, Any]:
        """The same for programs."""
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
            "loose": list(self.loose),
        }


def _evidence(step: SuggestedStep, videos: int) -> Iterator[str]:
    also = f", also: {'; '.join(step.also[:_SHOWN])}" if step.also else ""
    optional = "optional, " if step.optional else ""
    yield f"    {COMMENT} {optional}said in {step.videos} of {videos} videos{also}"
    for one in step.examples:
        said = one_line(f"{one.video} {short_clock(one.time)}: {one.text}")
        yield f"    {COMMENT} {said}"


def distinct(names: Sequence[str]) -> list[str]:
    """Names that differ: what comes again gets a number.

    >>> distinct(["Make tea", "Fix a chair", "Make tea"])
    ['Make tea', 'Fix a chair', 'Make tea 2']
    """
    used: dict[str, int] = {}
    found = []
    for name in names:
        used[name] = used.get(name, 0) + 1
        found.append(name if used[name] == 1 else f"{name} {used[name]}")
    return found
