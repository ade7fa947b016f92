"""Propose a vocabulary from narrated videos: group the videos, choose steps, order the steps.

:mod:`stepgraph.vocabulary` finds and chooses the phrases.  This module opens the source and the
encoder, and mines the order of the steps from whole videos, as for any other list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stepgraph.core import Dataset, Video, Vocabulary
from stepgraph.datasets import open_source
from stepgraph.decoders import TaskMarkov
from stepgraph.decoders.learning import learn_graph
from stepgraph.errors import ConfigError, DataError
from stepgraph.graph import TaskGraph
from stepgraph.graph.maps import procedure_of
from stepgraph.ingest.screen import read_screen
from stepgraph.pipeline import counted, nothing_left, open_scorer, options_of
from stepgraph.problems import Problems
from stepgraph.scoring import Scorer, score
from stepgraph.vocabulary import phrases
from stepgraph.vocabulary.grouping import group_videos
from stepgraph.vocabulary.phrases import Phrase, Usage
from stepgraph.vocabulary.suggested import (
    STEPS,
    SuggestedStep,
    SuggestedTask,
    SuggestedVocabulary,
    SuggestOptions,
    distinct,
)
from stepgraph.vocabulary.suggesting import (
    Chosen,
    Encode,
    PhraseGroup,
    choose,
    collect,
    examples,
    least_recurrence,
    title_near,
)

# Least share of function words in an English narration; English has about half.
_ENGLISH = 0.2


class PhraseCorpus(NamedTuple):
    """Phrases for actions in the narration of a corpus.

    Attributes
    ----------
    videos
        Videos with an English narration.
    phrases
        Phrases of each video, in order of time.
    titles
        Phrases for the subject of each video, from its narration or its file name.
    """

    videos: tuple[Video, ...]
    phrases: tuple[list[Phrase], ...]
    titles: tuple[list[Phrase], ...]

    def of(self, places: Sequence[int]) -> PhraseCorpus:
        """Select some videos by index."""
        return PhraseCorpus(
            tuple(self.videos[place] for place in places),
            tuple(self.phrases[place] for place in places),
            tuple(self.titles[place] for place in places),
        )

    def kinds(self) -> list[PhraseGroup]:
        """Group equal phrases."""
        return collect(self.phrases, [video.duration for video in self.videos])


def suggest_steps(
    videos: str | Path | Dataset | Iterable[Video],
    *,
    encoder: Scorer | None = None,
    screen: bool = False,
    problems: Problems | None = None,
    **options: int | None,
) -> SuggestedVocabulary:
    """Propose keysteps that recur across videos, grouped by the tasks of the videos.

    Parameters
    ----------
    videos
        Narrated videos: anything :func:`~stepgraph.open_source` opens, or an open data set,
        whose vocabulary and truth are not used.
    encoder
        Embeds phrases to compare their meanings; the built-in one if not given.
    screen
        Read the text in the pictures of video files, too.
    problems
        Collects videos without an English narration.
    options
        ``tasks``, ``steps`` and ``min_videos``: see
        :class:`~stepgraph.vocabulary.suggested.SuggestOptions`.

    Examples
    --------
    >>> proposed = suggest_steps("demo", tasks=6)
    >>> [step.name for step in proposed.tasks[-1].steps][:3]
    ['crush the spices', 'boil water', 'pour the milk']
    """
    chosen, problems = SuggestOptions(**options), problems if problems is not None else Problems()
    dataset = as_dataset(videos)
    corpus = listen(dataset, screen=screen, problems=problems)
    scorer = encoder or open_scorer()
    encode = encode_of(scorer)
    if (chosen.tasks or 1) > len(corpus.videos):
        raise ConfigError(
            f"tasks must be at most the number of videos with an English narration, "
            f"{len(corpus.videos)}, got {chosen.tasks}"
        )
    parts = group_videos([_words(video) for video in corpus.videos], chosen.tasks)
    found: list[tuple[PhraseCorpus, list[Chosen]]] = []
    for part in range(int(parts.max(initial=-1)) + 1):
        own = corpus.of(np.flatnonzero(parts == part).tolist())
        found.append((own, _choose_steps(own, chosen, encode)))
    groups = [(own, steps) for own, steps in found if len(steps) > 1]
    if not groups:
        several = {None: " (of several tasks with --tasks N)", 1: ""}
        raise DataError(
            f"{dataset.name}: videos must mention recurring steps, got none in these "
            f"{len(corpus.videos)} videos; give more videos of one task"
            f"{several.get(chosen.tasks, ', fewer tasks (--tasks)')}, or lower min_videos "
            f"(--min-videos)"
        )
    names = distinct([_task_name(own, corpus) for own, _ in groups])
    tasks = tuple(
        SuggestedTask(name, tuple(video.id for video in own.videos), _as_steps(own, steps))
        for name, (own, steps) in zip(names, groups, strict=True)
    )
    grouped = {video for task in tasks for video in task.videos}
    unassigned = tuple(video.id for video in dataset.videos if video.id not in grouped)
    return _ordered(SuggestedVocabulary(tasks, unassigned), corpus.videos, scorer)


def as_dataset(videos: str | Path | Dataset | Iterable[Video]) -> Dataset:
    """Return the videos as a data set that holds them in memory."""
    if isinstance(videos, str | Path):
        videos = open_source(videos)
    if isinstance(videos, Dataset):
        return replace(videos, videos=tuple(videos.videos))
    return Dataset("videos", tuple(videos))


def listen(dataset: Dataset, *, screen: bool = False, problems: Problems) -> PhraseCorpus:
    """Find the phrases for actions in the videos with an English narration."""
    videos = []
    for video in dataset.videos:
        if screen and video.path is not None:
            shown = sorted((*video.transcript, *read_screen(video.path)))
            video = replace(video, transcript=tuple(shown))
        if not video.transcript:
            problems.add(f"video {video.id!r}", "no narration", "must be narrated, got no words")
        elif phrases.joining_share(video.transcript) < _ENGLISH:
            what = "must be narrated in English to propose steps from it, got another language"
            problems.add(f"video {video.id!r}", "not in English", what)
        else:
            videos.append(video)
    if not videos:
        raise nothing_left(dataset, "videos with an English narration", problems)
    usage = Usage(video.transcript for video in videos)
    corpus, titles = [], []
    for video in counted(videos, videos, "finding phrases"):
        corpus.append(phrases.find_phrases(video.transcript, usage))
        name = phrases.words_of_name(video.id)
        titles.append(phrases.find_titles(video.transcript, usage, name))
    return PhraseCorpus(tuple(videos), tuple(corpus), tuple(titles))


def encode_of(scorer: Scorer) -> Encode:
    """Return the text embedding function of an encoder, or raise an error without one."""
    encode = getattr(scorer, "encode_texts", None)
    if encode is None:
        raise DataError("encoder must embed text to propose steps, got one that does not; omit it")
    found: Encode = encode
    return found


def _words(video: Video) -> list[str]:
    return phrases.content_words(video.transcript) + _name_words(video)


def _name_words(video: Video) -> list[str]:
    return list(dict.fromkeys(phrases.words_of_name(video.id).split()))


def _choose_steps(corpus: PhraseCorpus, options: SuggestOptions, encode: Encode) -> list[Chosen]:
    kinds = corpus.kinds()
    title = _title(corpus, corpus)
    about = title_near(kinds, [title] if title else [], encode)
    kinds = [kind for kind, only_title in zip(kinds, about, strict=True) if not only_title]
    fewest = options.fewest(len(corpus.videos))
    often = min(fewest, least_recurrence(len(corpus.videos)))
    return choose(kinds, encode, most=options.steps or STEPS, fewest=fewest, often=often)


def _title(corpus: PhraseCorpus, everything: PhraseCorpus) -> Phrase | None:
    """Find the subject that most videos of a group, and few others, announce."""
    here = Counter(key for titles in corpus.titles for key in {one.key for one in titles})
    there = Counter(key for titles in everything.titles for key in {one.key for one in titles})
    best = max(here, key=lambda key: (here[key] ** 2 / there[key], key), default=None)
    if best is None or here[best] < least_recurrence(len(corpus.videos)):
        return None
    fitting = [one for titles in corpus.titles for one in titles if one.key == best]
    texts = Counter(one.text for one in fitting)
    return max(fitting, key=lambda one: texts[one.text])


def _task_name(corpus: PhraseCorpus, everything: PhraseCorpus) -> str:
    title = _title(corpus, everything)
    if title:
        return title.text.capitalize()
    named = Counter(word for video in corpus.videos for word in _name_words(video))
    shared = [word for word, videos in named.items() if 2 * videos >= len(corpus.videos)]
    if shared:
        return " ".join(shared).capitalize()
    here = Counter(thing for one in corpus.phrases for thing in {phrase.thing for phrase in one})
    there = Counter(
        thing for one in everything.phrases for thing in {phrase.thing for phrase in one}
    )
    return max(here, key=lambda thing: (here[thing] ** 2 / there[thing], thing)).capitalize()


def _as_steps(corpus: PhraseCorpus, chosen: Sequence[Chosen]) -> tuple[SuggestedStep, ...]:
    steps: dict[str, SuggestedStep] = {}
    for one in chosen:
        also = Counter({kind.name: len(kind.videos) for kind in one.kinds[1:]})
        others = tuple(name for name, _ in also.most_common() if name != one.kind.name)
        found = examples(one, corpus.videos)
        steps.setdefault(
            one.kind.name, SuggestedStep(one.kind.name, len(one.videos), False, others, found)
        )
    return tuple(steps.values())


def _ordered(
    proposed: SuggestedVocabulary, videos: Sequence[Video], scorer: Scorer
) -> SuggestedVocabulary:
    """Order steps as the videos do them, and mark optional ones."""
    graph = mine_unordered(videos, proposed.vocabulary, scorer)
    tasks = []
    for task in proposed.tasks:
        own = {step.name: step for step in task.steps}
        found = procedure_of(graph, task.name)
        steps = [
            replace(own[graph.vocabulary.keysteps[step.keystep]], optional=step.optional)
            for step in found.steps
        ]
        tasks.append(replace(task, steps=tuple(steps)))
    return replace(proposed, tasks=tuple(tasks))


def mine_unordered(videos: Sequence[Video], vocabulary: Vocabulary, scorer: Scorer) -> TaskGraph:
    """Mine a graph with weight 0 for the listed order."""
    scores = counted(score(videos, vocabulary, scorer), videos, "scoring the proposed steps")
    decoder = TaskMarkov(order_weight=0.0)
    return learn_graph(scores, vocabulary, decoder=decoder, encoder=options_of(scorer))
