"""Scripts of the generated clips: their shots, how visible keysteps are, and their narration.

A script is drawn at random from the true procedure of its task.  Pictures and words fail
independently of the truth, each in its own ways, and seldom both at once.  The keysteps, their
looks and their sentences stand in ``fiction.toml``.
"""

from __future__ import annotations

import tomllib
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np

from stepgraph.core import Sentence

Kind: TypeAlias = Literal["step", "talk", "clutter"]
View: TypeAlias = Literal["clear", "busy", "hidden"]
Voice: TypeAlias = Literal["now", "unsaid", "silent", "soon", "done", "astray"]


class Keystep(NamedTuple):
    """A keystep: the motion of a thing, and the sentences of people who do it.

    ``plain`` are paraphrases of the name, each to follow "we will"; ``vague`` are sentences that
    people say about it without naming what can be seen.
    """

    motion: str
    color: str
    shape: str
    plain: list[str]
    vague: list[str]


class ScriptStep(NamedTuple):
    """A keystep in a task's procedure, and the shares of the videos that deviate from it.

    A share of ``often`` does it, of ``swap`` after the next one, of ``again`` a second time.
    """

    keystep: str
    often: float = 1.0
    swap: float = 0.0
    again: float = 0.0


_WRITTEN: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("fiction.toml").read_text("utf-8")
)

KEYSTEPS = {
    name: Keystep._make([*one["look"].split(), one["plain"], one["vague"]])
    for name, one in _WRITTEN["keysteps"].items()
}
"""All keysteps by name."""

TASKS = {
    task: tuple(ScriptStep(**step) for step in steps) for task, steps in _WRITTEN["tasks"].items()
}
"""The true procedures: an order of keysteps, and the shares of deviations from it."""

# Comments in the file describe each of these.
MENTIONS: dict[str, list[str]] = {
    name: _WRITTEN[name] for name in ("now", "soon", "done", "astray")
}
HUES: dict[str, int] = _WRITTEN["hues"]
VIEWS: dict[View, float] = _WRITTEN["views"]
VOICES: dict[View, dict[Voice, float]] = _WRITTEN["voices"]
CHAT: list[str] = _WRITTEN["chat"]

WORDS_A_SECOND = 4.2  # how fast people speak
_Name = TypeVar("_Name", bound=str)
_PATIENCE = 2.5  # seconds by which a sentence may come late before it is left out


class Shot(NamedTuple):
    """A part of a video without a cut, in whole tenths of seconds.

    ``keystep`` is done in it, or only its thing is held up; ``seed`` is that of its
    pictures.
    """

    start: float
    end: float
    kind: Kind
    keystep: str | None = None
    view: View = "clear"
    seed: int = 0


class Script(NamedTuple):
    """All of one clip: its shots one after the other, and its narration."""

    video: str
    task: str
    shots: tuple[Shot, ...]
    narration: tuple[Sentence, ...]
    seed: int = 0

    @property
    def truth(self) -> list[tuple[float, float, str]]:
        """Start, end and name of each keystep that is done."""
        return [
            (shot.start, shot.end, shot.keystep)
            for shot in self.shots
            if shot.kind == "step" and shot.keystep
        ]


def write_script(task: str, seed: int, number: int) -> Script:
    """Draw a clip of a task; the same numbers give the same clip."""
    rng = np.random.default_rng([seed, zlib.crc32(task.encode()), number])
    shots = tuple(_film(list(_perform(TASKS[task], rng)), task, rng))
    voices: dict[Shot, Voice] = {
        shot: _draw(VOICES[shot.view], rng) if shot.kind == "step" else "unsaid" for shot in shots
    }
    wanted = [one for shot in shots for one in _mention(shot, voices[shot], task, rng)]
    mentions = list(_in_turn(wanted, shots[-1].end))
    quiet = {shot for shot, voice in voices.items() if voice == "silent"}
    chatter = _chatter(mentions, shots, quiet, rng)
    name = task.lower().split(" a ")[-1].replace(" ", "-")
    return Script(
        video=f"{name}-{seed}-{number:02d}",
        task=task,
        shots=shots,
        narration=tuple(sorted([*mentions, *chatter])),
        seed=int(rng.integers(1 << 31)),
    )


def _perform(steps: Sequence[ScriptStep], rng: np.random.Generator) -> Iterator[str]:
    """Draw the keysteps of one execution, in their order."""
    chosen = [step for step in steps if rng.random() < step.often]
    position = 0
    while position < len(chosen) - 1:
        if rng.random() < chosen[position].swap:
            chosen[position : position + 2] = chosen[position + 1], chosen[position]
            position += 1
        position += 1
    again = None
    for step in chosen:
        yield step.keystep
        if again is not None:
            yield again
        again = step.keystep if rng.random() < step.again else None


def _film(keysteps: Sequence[str], task: str, rng: np.random.Generator) -> Iterator[Shot]:
    time = 0.0
    for position, keystep in enumerate(keysteps):
        if position == 0 or rng.random() < 0.4:
            yield (shot := _filler(time, task, rng))
            time = shot.end
        view = _draw(VIEWS, rng)
        end = round(time + rng.uniform(4.0, 8.0), 1)
        yield Shot(time, end, "step", keystep, view, int(rng.integers(1 << 31)))
        time = end
    yield _filler(time, task, rng)


def _filler(time: float, task: str, rng: np.random.Generator) -> Shot:
    """Draw a shot of background: the presenter talks, or the camera looks around."""
    kind: Kind = "talk" if rng.random() < 0.65 else "clutter"
    held = None
    if kind == "talk" and rng.random() < 0.25:
        held = _one([step.keystep for step in TASKS[task]], rng)
    end = round(time + rng.uniform(1.5, 3.5), 1)
    return Shot(time, end, kind, held, seed=int(rng.integers(1 << 31)))


def _mention(
    shot: Shot, voice: Voice, task: str, rng: np.random.Generator
) -> Iterator[tuple[float, str]]:
    """Draw the time and the text of the mention of a keystep, if there is one."""
    if shot.kind != "step" or shot.keystep is None:
        if rng.random() < 0.06:
            keystep = _other(None, task, rng)
            yield shot.start, _one(MENTIONS["astray"], rng).format(_one(keystep.plain, rng))
        return
    keystep = KEYSTEPS[shot.keystep]
    time = shot.start + rng.uniform(0.05, 0.55) * (shot.end - shot.start)
    if voice == "soon":
        time = shot.start - rng.uniform(1.5, 4.0)
    elif voice == "done":
        time = shot.end + rng.uniform(0.0, 1.0)
    elif voice == "astray":
        keystep = _other(shot.keystep, task, rng)
    if voice in MENTIONS:
        yield time, _one(MENTIONS[voice], rng).format(_one(keystep.plain, rng))


def _chatter(
    mentions: Sequence[Sentence],
    shots: Sequence[Shot],
    quiet: Collection[Shot],
    rng: np.random.Generator,
) -> Iterator[Sentence]:
    """Fill the gaps between the mentions with small talk, hints and silence."""
    used = {sentence.text for sentence in mentions}
    starts = [*(sentence.start for sentence in mentions), shots[-1].end]
    ends = [0.0, *(sentence.end for sentence in mentions)]
    for time, until in zip(ends, starts, strict=True):
        time += rng.uniform(0.1, 0.6)
        while time < until - 1:
            shot = next(one for one in shots if time < one.end)
            hints = KEYSTEPS[shot.keystep].vague if shot.kind == "step" and shot.keystep else None
            text = _one(hints if hints and rng.random() < 0.8 else CHAT, rng)
            end = round(time + _length(text), 2)
            if shot in quiet or text in used or end > until or rng.random() < 0.15:
                time += rng.uniform(0.3, 1.0)
                continue
            yield Sentence(round(time, 2), end, text)
            used.add(text)
            time = end + rng.uniform(0.1, 0.6)


def _length(text: str) -> float:
    """Seconds that it takes to say a text."""
    return max(1.0, len(text.split()) / WORDS_A_SECOND)


def _other(keystep: str | None, task: str, rng: np.random.Generator) -> Keystep:
    """Another keystep, half of the time one of the same task."""
    near = [step.keystep for step in TASKS[task]]
    pool = near if rng.random() < 0.5 else list(KEYSTEPS)
    return KEYSTEPS[_one([one for one in pool if one != keystep], rng)]


def _one(texts: Sequence[str], rng: np.random.Generator) -> str:
    return texts[int(rng.integers(len(texts)))]


def _draw(shares: Mapping[_Name, float], rng: np.random.Generator) -> _Name:
    names = list(shares)
    total = np.cumsum(list(shares.values()))
    return names[int(np.searchsorted(total, rng.random() * total[-1]))]


def _in_turn(wanted: Iterable[tuple[float, str]], duration: float) -> Iterator[Sentence]:
    """Schedule sentences one after the other; late, overlong and repeated ones are left out."""
    free, used = 0.0, set()
    for time, text in sorted(wanted):
        start = round(max(time, free), 2)
        end = round(start + _length(text), 2)
        if start <= time + _PATIENCE and end <= duration and text not in used:
            yield Sentence(start, end, text)
            free = end + 0.1
            used.add(text)
