"""What is done in the generated clips, what it looks like, and what people say about it.

The words stand in ``fiction.toml``.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

View: TypeAlias = Literal["clear", "busy", "hidden"]
Voice: TypeAlias = Literal["now", "unsaid", "silent", "soon", "done", "astray"]


class Look(NamedTuple):
    """What a keystep looks like: how a thing of a colour and a shape moves."""

    motion: str
    colour: str
    shape: str


@dataclass(frozen=True)
class Keystep:
    """A keystep: what is seen, and what people say when they do it.

    Attributes
    ----------
    plain
        What is done, in other words than the name's; each can stand after "we will".
    vague
        Sentences that speak of it without saying what can be seen.
    """

    look: Look
    plain: tuple[str, ...]
    vague: tuple[str, ...]


class Step(NamedTuple):
    """A keystep in a task's procedure.

    Attributes
    ----------
    often
        Share of the videos in which it is done at all.
    swap
        Share of the videos in which it comes after the next one.
    again
        Share of the videos in which it is done a second time, one keystep later.
    """

    keystep: str
    often: float = 1.0
    swap: float = 0.0
    again: float = 0.0


_WRITTEN: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))

KEYSTEPS = {
    name: Keystep(Look(*one["look"].split()), tuple(one["plain"]), tuple(one["vague"]))
    for name, one in _WRITTEN["keysteps"].items()
}
"""All keysteps by name."""

TASKS = {task: tuple(Step(**step) for step in steps) for task, steps in _WRITTEN["tasks"].items()}
"""The true procedures: an order of keysteps, and how people depart from it."""

# What each of these says stands beside it in the file.
SAID: dict[str, list[str]] = {name: _WRITTEN[name] for name in ("now", "soon", "done", "astray")}
HUES: dict[str, int] = _WRITTEN["hues"]
VIEWS: dict[View, float] = _WRITTEN["views"]
VOICES: dict[View, dict[Voice, float]] = _WRITTEN["voices"]
CHAT: list[str] = _WRITTEN["chat"]
