"""Fit the parameters of the recogniser while mining.

The input is the scores of each video, with the embeddings of its sentences and the annotation that
its user made, if any.  Truth is never an input.  One pass over the videos accumulates:

- the log-evidence of every task in each video; the graph fits the prior of the tasks to it;
- for the most probable task of a video, its timing histogram: when each keystep is done;
- for the same task, the emission trace; the graph counts the order of the keysteps in it.

After the pass, the recogniser with this prior and timing labels a sample of the videos of each
task with its posteriors.  The sentence classifiers are fitted to these labels.  The whole fit
leaves out videos without observations, in which no task has any evidence, and videos of several
tasks, which have no single trace.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import BACKGROUND, UNANNOTATED, Scores, Vocabulary
from stepgraph.decoders.observations import Observations, observe
from stepgraph.decoders.task_markov import TaskMarkov
from stepgraph.decoders.tasks import task_log_evidence, task_posterior, task_segments
from stepgraph.graph import TIMING_BINS, TaskGraph, mine_graph
from stepgraph.graph.parameters import (
    SAMPLE,
    RecognizerParameters,
    SentenceClassifier,
    listed_tasks,
)
from stepgraph.graph.traces import (
    LEAST_EMISSION,
    EmissionTrace,
    EmissionTraces,
    Floats,
    Sample,
    first_by_hash,
    is_traceable,
    margin_timing,
    videos_each,
)
from stepgraph.scoring.lazy import LazyScores

# Maximum number of videos that sentence classifiers are fitted on: of one task, and of all tasks
# together, shared out evenly.
_VIDEOS, _ALL_VIDEOS = 100, 1000
# Resolution of shares: coarse enough that their sums are exact, in any order and any shards, for
# millions of videos a task.
_GRID = 2.0**30
# Shrinkage of the scatter matrix towards a multiple of the identity, for few sentences.
_SHRINKAGE = 0.1


def learn_graph(
    videos: Iterable[Scores],
    vocabulary: Vocabulary,
    *,
    decoder: TaskMarkov | None = None,
    **options: Any,
) -> TaskGraph:
    """Mine a graph and fit the parameters of the recogniser, in one pass over the videos.

    Parameters
    ----------
    videos, vocabulary, options
        See :func:`~stepgraph.mine_graph`.
    decoder
        Recogniser that is to use the parameters.
    """
    learner = ParameterFit(vocabulary, decoder)
    graph = mine_graph(learner.watch(videos), vocabulary, **options)
    return replace(graph, parameters=learner.parameters(graph), traces=learner.traces())


class SentenceSample(NamedTuple):
    """Sample of videos for the sentence classifier of each task, and the number sampled from."""

    tasks: Mapping[str, list[str]]
    population: Mapping[str, int]

    def merge(self, other: SentenceSample) -> SentenceSample:
        """Merge two samples into the one that both corpora together would have."""
        names = sorted({*self.population, *other.population})
        population = {
            task: self.population.get(task, 0) + other.population.get(task, 0) for task in names
        }
        most = videos_each(population.values(), _VIDEOS, _ALL_VIDEOS)
        both = ([*self.tasks.get(task, ()), *other.tasks.get(task, ())] for task in names)
        chosen = (list(first_by_hash(dict.fromkeys(videos), most)) for videos in both)
        return SentenceSample(dict(zip(names, chosen, strict=True)), population)


def fit_classifiers(
    graph: TaskGraph, sampled: Mapping[str, Mapping[str, Scores]], decoder: TaskMarkov
) -> TaskGraph:
    """Add sentence classifiers, fitted on some videos of each task, to a graph without them."""
    assert graph.parameters is not None, "sentence classifiers are parameters"
    observations = {
        task: {video: one for video, one in videos.items() if isinstance(one, LazyScores)}
        for task, videos in sampled.items()
    }
    learner = ParameterFit(graph.vocabulary, decoder)
    classifiers = learner._fit_classifiers(replace(graph, traces=None), observations)
    return replace(graph, parameters=replace(graph.parameters, classifiers=classifiers))


class ParameterFit:
    """Accumulate statistics of a corpus in one pass, then return the recogniser's parameters.

    Parameters
    ----------
    vocabulary
        Vocabulary of the scores.
    decoder
        Recogniser that is to use the parameters.
    """

    def __init__(self, vocabulary: Vocabulary, decoder: TaskMarkov | None = None) -> None:
        self._tasks = listed_tasks(vocabulary)
        self._listed = any(vocabulary.tasks.values())
        self._decoder = decoder or TaskMarkov()
        self._log_evidence: Sample[NDArray[np.float32]] = Sample(SAMPLE, SAMPLE)
        self._videos: defaultdict[str, float] = defaultdict(float)
        self._timing: dict[str, Floats] = {}
        self._sentences: Sample[LazyScores] = Sample(_VIDEOS, _ALL_VIDEOS)
        self._traces: Sample[EmissionTrace] = Sample()

    def watch(self, videos: Iterable[Scores]) -> Iterator[Scores]:
        """Yield the scores of videos unchanged, and accumulate their statistics."""
        for scores in videos:
            self._add(scores)
            yield scores

    def _add(self, scores: Scores) -> None:
        """Add the statistics of a video to those of its most probable task, by its posterior."""
        observations = observe(scores)
        if not len(observations.sources):
            return
        log_evidence = task_log_evidence(observations, self._tasks)
        posterior = task_posterior(self._tasks, log_evidence, None)
        task = next(iter(posterior))
        total = sum(posterior.values())
        if not total:
            return
        if len(task_segments(observations, self._tasks, log_evidence)) > 1:
            return
        share = float(_on_grid(posterior[task] / total))
        self._log_evidence.add("", scores.video, log_evidence.astype(np.float32))
        self._videos[task] += share
        timing = _on_grid(share * self._add_trace(observations, task))
        self._timing[task] = timing + self._timing.get(task, 0.0)
        if isinstance(scores, LazyScores):
            self._sentences.add(task, scores.video, scores)

    def _add_trace(self, observations: Observations, task: str) -> Floats:
        """Add the emission trace of a video; return its timing histogram, shape (n, 20).

        The whole histogram is zero if an unannotated observation excludes a keystep.
        """
        members, scores = self._tasks[task], observations.scores
        values = observations.similarity(task, members).keysteps
        rows, runs = observations.runs()
        log_emission = np.zeros((len(rows), len(members)))
        log_emissions = self._decoder.log_emission(values, observations.unannotated_weight)
        unannotated = observations.annotation == UNANNOTATED
        # A trace stores no lower value.
        log_emissions[~unannotated] = np.maximum(log_emissions[~unannotated], LEAST_EMISSION)
        log_emission[runs >= 0] = log_emissions[runs[runs >= 0]]
        if is_traceable(len(observations.index), len(members)):
            # A keystep is salient if its best similarity is in the top decile of the best ones of
            # all observations.  An annotated keystep has the highest similarity of all.
            highest = values.max(axis=1)[unannotated]
            level = np.quantile(highest, 0.9, method="higher") if highest.size else 0.0
            salient = values.max(axis=0) >= level
            trace = EmissionTrace.of_runs(rows, log_emission, salient, scores.hop)
            self._traces.add(task, scores.video, trace)
        if not np.isfinite(values[unannotated]).all():
            return np.zeros((len(members), TIMING_BINS))
        return margin_timing(rows, log_emission)

    def parameters(self, graph: TaskGraph, *, classifiers: bool = True) -> RecognizerParameters:
        """Fit the recogniser's parameters, for the graph that was mined from the same videos."""
        names = tuple(self._tasks)
        log_evidence = self._log_evidence.chosen().get("", {})
        videos = {task: self._videos[task] for task in names if task in self._videos}
        timing = {task: self._timing[task] for task in videos}
        found = RecognizerParameters(names, log_evidence, videos, timing, {})
        if not self._listed or not classifiers:
            return found
        learned = self._fit_classifiers(replace(graph, parameters=found), self._sentences.chosen())
        return replace(found, classifiers=learned)

    def sampled(self) -> SentenceSample:
        """Return the sample of videos for the sentence classifiers."""
        chosen = {task: list(videos) for task, videos in self._sentences.chosen().items()}
        return SentenceSample(chosen, dict(sorted(self._sentences.population.items())))

    def traces(self) -> EmissionTraces:
        """Return the emission traces of the sampled videos of each task."""
        population = dict(sorted(self._traces.population.items()))
        return EmissionTraces(self._traces.chosen(), population, self._decoder.order_weight)

    def _fit_classifiers(
        self, graph: TaskGraph, sampled: Mapping[str, Mapping[str, LazyScores]]
    ) -> dict[str, SentenceClassifier]:
        """Fit one linear discriminant a task, with the pooled scatter of all tasks."""
        sentences = {}
        for task, videos in sampled.items():
            if len(videos) > 1 and len(self._tasks[task]) > 1:
                sentences[task] = self._labeled(task, [*videos.values()], graph)
        if not sentences:
            return {}
        whiten = _whitening([vectors for vectors, _ in sentences.values()])
        return {task: _discriminant(*pair, whiten) for task, pair in sentences.items()}

    def _labeled(
        self, task: str, videos: list[LazyScores], graph: TaskGraph
    ) -> tuple[NDArray[np.float32], Floats]:
        """Embeddings of all sentences of a task, and the posterior of each keystep in each."""
        vectors, labels, expected = [], [], self._decoder.expect(task, graph)
        for scores in videos:
            observations = observe(scores)
            similarity = observations.similarity(task, self._tasks[task]).keysteps
            # No sentence classifier is fitted yet.
            rows = self._decoder.weigh(
                observations, similarity, expected, np.zeros((len(similarity), 1))
            )
            sampled = (observations.index >= 0) & (observations.row_annotation != BACKGROUND)
            sums = np.zeros((len(observations.sources), rows.shape[1]))
            np.add.at(sums, observations.index[sampled], rows[sampled])
            labels.append(sums / observations.weight[:, None])
            vectors.append(scores.vectors[observations.sources])
        return np.concatenate(vectors), np.concatenate(labels)


def _on_grid(values: Any) -> Any:
    """Round to a grid on which sums are exact, so that shards may be added in any order."""
    return np.rint(np.asarray(values) * _GRID) / _GRID


def _whitening(tasks: list[NDArray[np.float32]]) -> Callable[[Floats], Floats]:
    """Return a function that applies the inverse of the shrunk within-task scatter of vectors.

    With fewer sentences than dimensions it works in their span (Woodbury's identity).
    """
    from scipy.linalg import cho_factor, cho_solve

    sentences, width = sum(map(len, tasks)), tasks[0].shape[1]
    share = (1 - _SHRINKAGE) / sentences
    if sentences < width:
        around = np.concatenate([_around(vectors) for vectors in tasks])
        even = _SHRINKAGE * (np.square(around).sum() / sentences / width + 1e-9)
        inner = cho_factor(even * np.eye(sentences) + share * around @ around.T)
        return lambda means: (means - share * cho_solve(inner, around @ means.T).T @ around) / even
    scatter = np.zeros((width, width))
    for vectors in tasks:
        around = _around(vectors)
        scatter += around.T @ around
    even = _SHRINKAGE * (np.trace(scatter) / sentences / width + 1e-9)
    outer = cho_factor(even * np.eye(width) + share * scatter)
    return lambda means: cho_solve(outer, means.T).T


def _around(vectors: NDArray[np.float32]) -> Floats:
    """Subtract the mean vector."""
    exact = vectors.astype(np.float64)
    exact -= exact.mean(axis=0)
    return exact


def _discriminant(
    vectors: NDArray[np.float32], labels: Floats, whiten: Callable[[Floats], Floats]
) -> SentenceClassifier:
    """Fit Fisher's linear discriminant to class probabilities instead of hard labels."""
    middle = vectors.mean(axis=0, dtype=np.float64)
    means = labels.T @ vectors / np.maximum(labels.sum(axis=0), 1e-6)[:, None] - middle
    directions = whiten(means)
    bias = -0.5 * (means * directions).sum(axis=1) - directions @ middle
    return SentenceClassifier(directions.astype(np.float32), bias)
