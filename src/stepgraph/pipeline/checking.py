"""Hold a list of keysteps against videos: what is never heard, missing, alike, or out of order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from stepgraph.core import Dataset, Video, Vocabulary
from stepgraph.decoders import TaskMarkov
from stepgraph.decoders.hearing import hear
from stepgraph.decoders.learning import learn_graph
from stepgraph.errors import DataError
from stepgraph.graph.courses import MOST_KEYSTEPS
from stepgraph.graph.habits import listed_tasks
from stepgraph.graph.layers import Layer
from stepgraph.graph.order import DIRECTIONAL_SHARE
from stepgraph.pipeline import choose_vocabulary, counted, nothing_left, open_scorer, options_of
from stepgraph.pipeline.spoken import SAME_MOMENT, Spoken, find_spoken, recurring
from stepgraph.pipeline.suggesting import Said, as_dataset, encode_of, listen
from stepgraph.problems import Problems
from stepgraph.scoring import Scorer, score
from stepgraph.vocabulary.phrases import read_name
from stepgraph.vocabulary.suggested import Example, SuggestOptions
from stepgraph.vocabulary.suggesting import (
    Encode,
    choose,
    examples,
    said_often,
    stood_for,
    title_near,
)

# Share of a task's videos that must speak of a step clearly: the same as a proposed one needs.
HEARD = 0.1
# Of fewer videos a tenth is less than two: hardly anything is said twice in the same words.
_FEW = 20
# Phrases of a task that are told to be missing.
_MISSING = 5

Kind = Literal["foreign", "unheard", "missing", "alike", "order"]


class Finding(NamedTuple):
    """Something that the videos say against a list.

    Attributes
    ----------
    kind
        ``foreign``: no step stands for anything that the videos often say.  ``unheard``: a step
        that hardly any video speaks of.  ``missing``: a phrase that many do and no step stands
        for.  ``alike``: two steps that are spoken of at the same moments.  ``order``: two steps of
        which the second is done first.
    keysteps
        The step or the two steps, or the phrase; all steps where they are foreign.
    videos, of
        In how many of the task's videos that is so; of two steps, of those that tell of both.
    examples
        What is said, for a phrase.
    """

    kind: Kind
    task: str
    keysteps: tuple[str, ...]
    videos: int
    of: int
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True)
class Check:
    """What was found, and of how many videos of each task; tasks without any are named, too."""

    findings: tuple[Finding, ...]
    videos: dict[str, int]

    def of(self, kind: Kind) -> list[Finding]:
        """Findings of one kind, those of most videos first."""
        return [one for one in self.findings if one.kind == kind]


def check_steps(
    vocabulary: Vocabulary | Sequence[str] | str | Path,
    videos: str | Path | Dataset | Iterable[Video],
    *,
    encoder: Scorer | None = None,
    problems: Problems | None = None,
    **options: int | None,
) -> Check:
    """Say what the videos say against a list of keysteps; the order of the list is not believed.

    Parameters
    ----------
    vocabulary
        A list, a file of one, or a vocabulary.
    videos, encoder, problems
        As of :func:`~stepgraph.suggest_steps`.
    options
        ``min_videos``: see :class:`~stepgraph.vocabulary.suggested.SuggestOptions`.
    """
    problems = problems if problems is not None else Problems()
    dataset, chosen = as_dataset(videos), SuggestOptions(**options)
    listed = choose_vocabulary(dataset, vocabulary)
    _require_short(listed)
    said = listen(dataset, problems=problems)
    scorer = encoder or open_scorer()
    encode = encode_of(scorer)
    scores = {
        one.video: one
        for one in counted(score(said.videos, listed, scorer), said.videos, "scoring")
    }
    graph = learn_graph(
        scores.values(), listed, decoder=TaskMarkov(order=0.0), encoder=options_of(scorer)
    )
    if graph.layers is None:
        raise nothing_left(dataset, "a video that can be mined", problems)
    found: list[Finding] = []
    for task in graph.layers.videos:
        layer = graph.layers.of_task(task)
        names = [listed.keysteps[keystep] for keystep in layer.keysteps]
        members = graph.courses.tasks[task] if graph.courses else {}
        own = said.of([n for n, video in enumerate(said.videos) if video.id in members])
        spoken = find_spoken([hear(scores[video.id]) for video in own.videos], names, encode)
        unheard = _unheard(task, names, layer, spoken)
        places = dict(zip(names, layer.place.tolist(), strict=True))
        missing = _missing(task, places, own, spoken, chosen, encode)
        pairs = _alike(task, names, spoken)
        pairs += _out_of_order(task, names, layer, chosen.fewest(layer.videos))
        # What is not heard is nowhere, and neither at a moment of another step nor before it.
        silent = {one.keysteps[0] for one in unheard}
        found += unheard + missing + [one for one in pairs if not silent & {*one.keysteps}]
    counts = {task: graph.layers.videos.get(task, 0) for task in listed_tasks(listed)}
    return Check(tuple(sorted(found, key=lambda one: -one.videos)), counts)


def _require_short(listed: Vocabulary) -> None:
    """Refuse a task whose course no video can be followed through, before any work."""
    for task, members in listed_tasks(listed).items():
        if len(members) > MOST_KEYSTEPS:
            raise DataError(
                f"task {task!r} must have at most {MOST_KEYSTEPS} steps to be checked, got "
                f"{len(members)}; put a heading ('# Name of the task') above those of each task"
            )


def _unheard(task: str, names: Sequence[str], layer: Layer, spoken: Spoken) -> list[Finding]:
    """Steps that are hardly heard, in the mean of two ways of hearing them.

    With the name of the task any step is near to what is said of the task; without it a short name
    may be near to nothing.
    """
    in_words = np.isfinite(spoken.level).any()
    both = (layer.clear + spoken.clear.sum(axis=0)) / 2 if in_words else layer.clear
    return [
        Finding("unheard", task, (name,), int(clear), layer.videos)
        for name, clear in zip(names, both.tolist(), strict=True)
        if clear < HEARD * layer.videos
    ]


def _missing(
    task: str,
    listed: dict[str, float],
    said: Said,
    spoken: Spoken,
    options: SuggestOptions,
    encode: Encode,
) -> list[Finding]:
    size, title = len(said.videos), read_name(task)
    kinds = said.kinds()
    about = title_near(kinds, [title] if title else [], encode)
    kinds = [kind for kind, only_title in zip(kinds, about, strict=True) if not only_title]
    stands, often = stood_for(kinds, listed, encode), said_often(size)
    foreign = all(
        len(kind.videos) < often
        for kind, is_listed in zip(kinds, stands, strict=True)
        if is_listed
    )
    left = [kind for kind, is_listed in zip(kinds, stands, strict=True) if not is_listed]
    fewest = options.fewest(size)
    found = choose(left, encode, most=_MISSING, fewest=fewest, often=often)
    # Where nothing is said twice, that says nothing against the list.
    against = [Finding("foreign", task, tuple(listed), size, size)] if foreign and found else []
    if size < _FEW:
        room = _MISSING - len(found)
        found += recurring(left, spoken, found, encode, most=room, fewest=fewest)
    return against + [
        Finding(
            "missing", task, (one.kind.name,), len(one.videos), size, examples(one, said.videos)
        )
        for one in found
    ]


def _alike(task: str, names: Sequence[str], spoken: Spoken) -> list[Finding]:
    moment = spoken.moment[(spoken.moment >= 0).all(axis=1)]
    same, videos = (moment[:, :, None] == moment[:, None]).sum(axis=0), len(moment)
    first, second = np.nonzero(np.triu(same > SAME_MOMENT * videos, 1))
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    return [
        Finding("alike", task, (names[one], names[other]), int(same[one, other]), videos)
        for one, other in pairs
    ]


def _out_of_order(task: str, names: Sequence[str], layer: Layer, fewest: int) -> list[Finding]:
    after, both = layer.before.T, layer.before + layer.before.T
    against = (both >= fewest) & (layer.precedence().T >= DIRECTIONAL_SHARE)
    against &= after >= DIRECTIONAL_SHARE * both
    first, second = np.nonzero(np.triu(against, 1))
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    return [
        Finding(
            "order",
            task,
            (names[one], names[other]),
            round(after[one, other]),
            round(both[one, other]),
        )
        for one, other in pairs
    ]
