"""Check a list of keysteps against videos: unmentioned, missing, duplicate, misordered steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from stepgraph.core import Dataset, Video, Vocabulary
from stepgraph.decoders import TaskMarkov
from stepgraph.decoders.learning import learn_graph
from stepgraph.decoders.observations import observe
from stepgraph.errors import DataError
from stepgraph.graph.order import DIRECTIONAL_SHARE
from stepgraph.graph.order_statistics import OrderStatistics
from stepgraph.graph.parameters import listed_tasks
from stepgraph.graph.traces import MOST_KEYSTEPS
from stepgraph.pipeline import choose_vocabulary, counted, nothing_left, open_scorer, options_of
from stepgraph.pipeline.name_matches import SAME_SENTENCE, NameMatches, match_names, recurring
from stepgraph.pipeline.suggesting import PhraseCorpus, as_dataset, encode_of, listen
from stepgraph.problems import Problems
from stepgraph.scoring import Scorer, score
from stepgraph.vocabulary.phrases import read_name
from stepgraph.vocabulary.suggested import Mention, SuggestOptions
from stepgraph.vocabulary.suggesting import (
    Encode,
    choose,
    examples,
    least_recurrence,
    stood_for,
    title_near,
)

# Share of a task's videos that must mention a step saliently, as for a proposed step.
MENTIONED = 0.1
# In fewer videos a tenth is less than two: hardly any phrase recurs in the same words.
_FEW = 20
# Most missing phrases to report for a task.
_MISSING = 5

Kind = Literal["unrelated", "unmentioned", "missing", "duplicate", "order"]


class Finding(NamedTuple):
    """Contradiction between a list and the videos.

    Attributes
    ----------
    kind
        ``unrelated``: no step covers a phrase that videos often use.  ``unmentioned``: a step
        that few videos mention.  ``missing``: a phrase that many videos use and no step covers.
        ``duplicate``: two steps that match the same sentences.  ``order``: two steps of which the
        second is usually done first.
    keysteps
        The step or the two steps, or the phrase; all steps of the task for ``unrelated``.
    videos, of
        Number of the task's videos that agree, and of all; for two steps, of those with both.
    examples
        Sentences with the phrase.
    """

    kind: Kind
    task: str
    keysteps: tuple[str, ...]
    videos: int
    of: int
    examples: tuple[Mention, ...] = ()


@dataclass(frozen=True)
class Check:
    """Findings, and the number of videos of each task, with tasks that have none."""

    findings: tuple[Finding, ...]
    videos: dict[str, int]

    def of(self, kind: Kind) -> list[Finding]:
        """Return the findings of one kind, those of most videos first."""
        return [one for one in self.findings if one.kind == kind]


def check_steps(
    vocabulary: Vocabulary | Sequence[str] | str | Path,
    videos: str | Path | Dataset | Iterable[Video],
    *,
    encoder: Scorer | None = None,
    problems: Problems | None = None,
    **options: int | None,
) -> Check:
    """Compare a list of keysteps with videos; the order of the list is no prior.

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
    corpus = listen(dataset, problems=problems)
    scorer = encoder or open_scorer()
    encode = encode_of(scorer)
    scores = {
        one.video: one
        for one in counted(score(corpus.videos, listed, scorer), corpus.videos, "scoring")
    }
    graph = learn_graph(
        scores.values(), listed, decoder=TaskMarkov(order_weight=0.0), encoder=options_of(scorer)
    )
    if graph.statistics is None:
        raise nothing_left(dataset, "a video that can be mined", problems)
    found: list[Finding] = []
    for task in graph.statistics.videos:
        of_task = graph.statistics.of_task(task)
        names = [listed.keysteps[keystep] for keystep in of_task.keysteps]
        members = graph.traces.tasks[task] if graph.traces else {}
        own = corpus.of([n for n, video in enumerate(corpus.videos) if video.id in members])
        matches = match_names([observe(scores[video.id]) for video in own.videos], names, encode)
        unmentioned = _unmentioned(task, names, of_task, matches)
        places = dict(zip(names, of_task.position.tolist(), strict=True))
        missing = _missing(task, places, own, matches, chosen, encode)
        pairs = _duplicates(task, names, matches)
        pairs += _out_of_order(task, names, of_task, chosen.fewest(of_task.videos))
        # A step that is not mentioned has no sentence, so pairs with it are left out.
        silent = {one.keysteps[0] for one in unmentioned}
        found += unmentioned + missing + [one for one in pairs if not silent & {*one.keysteps}]
    counts = {task: graph.statistics.videos.get(task, 0) for task in listed_tasks(listed)}
    return Check(tuple(sorted(found, key=lambda one: -one.videos)), counts)


def _require_short(listed: Vocabulary) -> None:
    """Refuse a task with more keysteps than an emission trace can hold, before any work."""
    for task, members in listed_tasks(listed).items():
        if len(members) > MOST_KEYSTEPS:
            raise DataError(
                f"task {task!r} must have at most {MOST_KEYSTEPS} steps to be checked, got "
                f"{len(members)}; put a heading ('# Name of the task') above those of each task"
            )


def _unmentioned(
    task: str, names: Sequence[str], counted: OrderStatistics, matches: NameMatches
) -> list[Finding]:
    """Find steps that few videos mention, averaged over two ways of matching.

    A name embedded with its task is similar to any sentence of the task; a short name embedded
    without it may be similar to none.
    """
    in_words = np.isfinite(matches.level).any()
    both = (counted.salient + matches.salient.sum(axis=0)) / 2 if in_words else counted.salient
    return [
        Finding("unmentioned", task, (name,), int(salient), counted.videos)
        for name, salient in zip(names, both.tolist(), strict=True)
        if salient < MENTIONED * counted.videos
    ]


def _missing(
    task: str,
    listed: dict[str, float],
    corpus: PhraseCorpus,
    matches: NameMatches,
    options: SuggestOptions,
    encode: Encode,
) -> list[Finding]:
    size, title = len(corpus.videos), read_name(task)
    kinds = corpus.kinds()
    about = title_near(kinds, [title] if title else [], encode)
    kinds = [kind for kind, only_title in zip(kinds, about, strict=True) if not only_title]
    stands, often = stood_for(kinds, listed, encode), least_recurrence(size)
    unrelated = all(
        len(kind.videos) < often
        for kind, is_listed in zip(kinds, stands, strict=True)
        if is_listed
    )
    left = [kind for kind, is_listed in zip(kinds, stands, strict=True) if not is_listed]
    fewest = options.fewest(size)
    found = choose(left, encode, most=_MISSING, fewest=fewest, often=often)
    # Where no phrase recurs, the list is not at fault.
    against = (
        [Finding("unrelated", task, tuple(listed), size, size)] if unrelated and found else []
    )
    if size < _FEW:
        room = _MISSING - len(found)
        found += recurring(left, matches, found, encode, most=room, fewest=fewest)
    return against + [
        Finding(
            "missing", task, (one.kind.name,), len(one.videos), size, examples(one, corpus.videos)
        )
        for one in found
    ]


def _duplicates(task: str, names: Sequence[str], matches: NameMatches) -> list[Finding]:
    sentence = matches.sentence[(matches.sentence >= 0).all(axis=1)]
    same, videos = (sentence[:, :, None] == sentence[:, None]).sum(axis=0), len(sentence)
    first, second = np.nonzero(np.triu(same > SAME_SENTENCE * videos, 1))
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    return [
        Finding("duplicate", task, (names[one], names[other]), int(same[one, other]), videos)
        for one, other in pairs
    ]


def _out_of_order(
    task: str, names: Sequence[str], counted: OrderStatistics, fewest: int
) -> list[Finding]:
    after, both = counted.before.T, counted.before + counted.before.T
    against = (both >= fewest) & (counted.precedence().T >= DIRECTIONAL_SHARE)
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
