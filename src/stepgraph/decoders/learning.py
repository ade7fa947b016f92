"""Learn the habits of a corpus while it is mined: its tasks, and when and how keysteps come.

Each video is heard once, with what the vocabulary alone says; nothing here sees truth.  What is
said clearly at which time is counted at once.  How it is said is learned at the end, from a
bounded number of videos of each task, labelled with the times that were counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from hashlib import sha256
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import entr

from stepgraph.core import Labels, Scores, Vocabulary
from stepgraph.decoders.hearing import Heard, hear
from stepgraph.decoders.task_markov import TaskMarkov
from stepgraph.decoders.tasks import (
    task_evidence,
    task_posterior,
    task_stretches,
    tasks_of,
)
from stepgraph.graph import TIMING_BINS, TaskGraph, mine_graph
from stepgraph.graph.habits import Habits, Words, listed_tasks, sample
from stepgraph.graph.layers import Layers
from stepgraph.scoring.products import Products

Floats: TypeAlias = NDArray[np.float64]

# Videos of a task, and of all tasks, whose words are learned from.
_VIDEOS, _ALL_VIDEOS = 400, 1000
# Videos of a task whose words are learned from: more of them tell little more.
_WORDS = 100
# Share of an even spread in the scatter of words: with few sentences no direction is certain.
_SHRINKAGE = 0.1


def learn_graph(
    videos: Iterable[Scores],
    vocabulary: Vocabulary,
    *,
    decoder: TaskMarkov | None = None,
    **options: Any,
) -> TaskGraph:
    """Mine a graph and the habits of its corpus, in one pass over the videos.

    Parameters
    ----------
    videos, vocabulary, options
        See :func:`~stepgraph.mine_graph`.
    decoder
        The recogniser that is to use the habits.
    """
    learner = Learner(vocabulary, decoder)
    graph = mine_graph(learner.watch(videos), vocabulary, **options)
    graph = replace(graph, habits=learner.habits(graph))
    return replace(graph, layers=learner.layers(graph))


class Learner:
    """Watch a corpus go by, then tell its habits.

    Parameters
    ----------
    vocabulary
        What its videos are scored with.
    decoder
        The recogniser that is to use what is learned.
    """

    def __init__(self, vocabulary: Vocabulary, decoder: TaskMarkov | None = None) -> None:
        self._tasks = listed_tasks(vocabulary)
        self._listed = any(vocabulary.tasks.values())
        self._decoder = decoder or TaskMarkov()
        self._evidence: dict[str, NDArray[np.float32]] = {}
        self._videos: defaultdict[str, float] = defaultdict(float)
        self._timing: dict[str, Floats] = {}
        self._kept: defaultdict[str, dict[str, Products]] = defaultdict(dict)
        self._met: Counter[str] = Counter()

    def watch(self, videos: Iterable[Scores]) -> Iterator[Scores]:
        """Give the scores of videos on, and remember what they tell."""
        for scores in videos:
            self._add(scores)
            yield scores

    def _add(self, scores: Scores) -> None:
        heard = hear(scores)
        if not len(heard.said):
            return
        evidence = task_evidence(heard, self._tasks)
        posterior = task_posterior(self._tasks, evidence, None)
        task = next(iter(posterior))
        total = sum(posterior.values())
        if not total:
            return
        if len(task_stretches(heard, self._tasks, evidence)) > 1:
            return  # what is said of several tasks tells nothing about the course of one
        share = posterior[task] / total
        self._evidence[scores.video] = evidence.astype(np.float32)
        if len(self._evidence) > 10_000:
            self._evidence = sample(self._evidence)
        self._videos[task] += share
        timing = share * self._when(heard, task)
        self._timing[task] = timing + self._timing.get(task, 0.0)
        if isinstance(scores, Products):
            self._keep(task, scores)

    def _when(self, heard: Heard, task: str) -> Floats:
        """When keysteps are said clearly: where the best leads the second, squared, (n, 20)."""
        members = self._tasks[task]
        counts = np.zeros((len(members), TIMING_BINS))
        values = heard.closeness(task, members).keysteps
        if len(members) < 2 or not np.isfinite(values).all():
            return counts
        log_emission = self._decoder.log_emission(values, heard.weight)
        second, first = np.partition(log_emission, -2, axis=1)[:, -2:].T
        [rows] = np.nonzero(heard.moment >= 0)
        moment = heard.moment[rows]
        when = rows * TIMING_BINS // len(heard.moment)
        clear = (first - second)[moment] ** 2
        np.add.at(counts, (log_emission.argmax(axis=1)[moment], when), clear)
        # A video counts once for each keystep that it speaks of; how many these are, is told by
        # how evenly it speaks (the perplexity of their shares).
        shares = counts.sum(axis=1) / max(counts.sum(), 1e-9)
        counts *= np.exp(entr(shares).sum()) / max(counts.sum(), 1e-9)
        return counts

    def _keep(self, task: str, scores: Products) -> None:
        self._kept[task][scores.video] = scores
        self._met[task] += 1
        if len(self._kept[task]) > 2 * self._allowed():
            self._kept[task] = dict(self._chosen(task))

    def _allowed(self) -> int:
        """Videos a task to keep: as many as all tasks can keep of those that were met of them."""
        left, tasks = _ALL_VIDEOS, len(self._met)
        for met in sorted(self._met.values()):
            if met * tasks > left:
                return min(_VIDEOS, max(1, left // tasks))
            left, tasks = left - met, tasks - 1
        return _VIDEOS

    def _chosen(self, task: str) -> list[tuple[str, Products]]:
        """The same videos in whatever order they came."""
        return sorted(self._kept[task].items(), key=_by_hash)[: self._allowed()]

    def habits(self, graph: TaskGraph) -> Habits:
        """What was learned, to be kept in the graph that was mined from the same videos."""
        names = tuple(self._tasks)
        evidence = sample(self._evidence)
        found = Habits(names, evidence, dict(self._videos), dict(self._timing), {})
        if not self._listed:
            return found
        return replace(found, words=self._learn_words(replace(graph, habits=found)))

    def layers(self, graph: TaskGraph) -> Layers | None:
        """Recognise the videos that were kept, each as one of its task, and count what is done.

        Every row counts: what is left empty for a reader may still tell an order.
        """
        decoder = replace(self._decoder, background=0.0, change_cost=0.0)
        imagined = decoder.order * decoder.order_videos
        found = None
        known = tasks_of(graph)
        for task in sorted(known.keys() & self._kept.keys()):
            videos = []
            for video, scores in self._chosen(task):
                keysteps = decoder.label_task(hear(scores), task, self._tasks[task], graph)
                videos.append(Labels(video, keysteps, scores.vocabulary, scores.hop))
            counted = Layers.of_videos(task, videos, imagined)
            found = counted if found is None else found + counted
        return found

    def _learn_words(self, graph: TaskGraph) -> dict[str, Words]:
        """One linear discriminant a task, with the scatter of all tasks together."""
        said = {}
        for task in self._kept:
            kept = [scores for _, scores in sorted(self._chosen(task)[:_WORDS], key=itemgetter(0))]
            if len(kept) > 1 and len(self._tasks[task]) > 1:
                said[task] = self._labelled(task, kept, graph)
        if not said:
            return {}
        undo = _whitening([vectors for vectors, _ in said.values()])
        return {task: _discriminant(*pair, undo) for task, pair in said.items()}

    def _labelled(
        self, task: str, videos: list[Products], graph: TaskGraph
    ) -> tuple[NDArray[np.float32], Floats]:
        """Vectors of all sentences of a task, and how probable each keystep is in each."""
        vectors, labels = [], []
        for scores in videos:
            heard = hear(scores)
            close = heard.closeness(task, self._tasks[task]).keysteps
            rows = self._decoder.weigh(heard, close, task, graph)
            spoken = heard.moment >= 0
            sums = np.zeros((len(heard.said), rows.shape[1]))
            np.add.at(sums, heard.moment[spoken], rows[spoken])
            labels.append(sums / heard.weight[:, None])
            vectors.append(scores.vectors[heard.said])
        return np.concatenate(vectors), np.concatenate(labels)


def _whitening(tasks: list[NDArray[np.float32]]) -> Callable[[Floats], Floats]:
    """What divides by the shrunk scatter of the vectors of tasks, each about its own mean.

    With fewer sentences than dimensions it is done in their span (Woodbury's identity).
    """
    sentences, width = sum(map(len, tasks)), tasks[0].shape[1]
    share = (1 - _SHRINKAGE) / sentences
    if sentences < width:
        around = np.concatenate([_around(vectors) for vectors in tasks])
        even = _SHRINKAGE * (np.square(around).sum() / sentences / width + 1e-9)
        inner = cho_factor(even * np.eye(sentences) + share * around @ around.T)
        return lambda means: (means - share * cho_solve(inner, around @ means.T).T @ around) / even
    scatter = np.zeros((width, width))
    for vectors in tasks:
        scatter += _around(vectors).T @ _around(vectors)
    even = _SHRINKAGE * (np.trace(scatter) / sentences / width + 1e-9)
    outer = cho_factor(even * np.eye(width) + share * scatter)
    return lambda means: cho_solve(outer, means.T).T


def _around(vectors: NDArray[np.float32]) -> Floats:
    exact = vectors.astype(np.float64)
    exact -= exact.mean(axis=0)
    return exact


def _discriminant(
    vectors: NDArray[np.float32], labels: Floats, undo: Callable[[Floats], Floats]
) -> Words:
    """Fisher's linear discriminant of classes that are known with probabilities only."""
    middle = vectors.mean(axis=0, dtype=np.float64)
    means = labels.T @ vectors / np.maximum(labels.sum(axis=0), 1e-6)[:, None] - middle
    directions = undo(means)
    bias = -0.5 * (means * directions).sum(axis=1) - directions @ middle
    return Words(directions.astype(np.float32), bias)


def _by_hash(item: tuple[str, object]) -> bytes:
    return sha256(item[0].encode()).digest()
