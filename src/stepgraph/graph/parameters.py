"""Parameters of the recogniser: task prior, timing histograms and sentence classifiers.

None of them is fitted on truth; :mod:`stepgraph.decoders.learning` fits them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from stepgraph.core import Vocabulary
from stepgraph.graph.traces import Floats, first_by_hash

# Most videos that the task prior is fitted on, sampled by a hash of their ids, so that graphs of
# parts of a corpus, once merged, have the same sample as a graph of all of it.
SAMPLE = 2000
# Grid of the Dirichlet concentration of the task prior: from one-sided to uniform.
_LEAST, _MOST, _TRIED, _FINER = 1e-3, 1e3, 25, 3
_ROUNDS = 30


def listed_tasks(vocabulary: Vocabulary) -> dict[str, tuple[int, ...]]:
    """Return the keysteps of each task; keysteps under no heading are a task of their own."""
    tasks = {name: members for name, members in vocabulary.tasks.items() if members}
    unlisted = tuple(sorted({*range(len(vocabulary))}.difference(*tasks.values())))
    if not tasks:
        return {"everything": unlisted}
    name = "other keysteps"
    while name in tasks:
        name += ", too"
    return tasks | ({name: unlisted} if unlisted else {})


class SentenceClassifier(NamedTuple):
    """Sentence classifier of a task: a linear discriminant of sentence embeddings.

    Attributes
    ----------
    vectors : shape (n, D)
    bias : shape (n,)
    """

    vectors: NDArray[np.float32]
    bias: Floats


@dataclass(frozen=True, eq=False)
class RecognizerParameters:
    """Parameters of the recogniser, fitted on a corpus; tasks without a video have none.

    Attributes
    ----------
    tasks
        Names of all tasks that a video may show, in the order of the vocabulary.
    log_evidence
        Log-evidence of each task for each sampled video, shape (Z,), in nats.
    videos
        Sum of the posteriors of each task over the videos in which it is the most probable.
    timing
        Timing histogram of the keysteps of a task, shape (n, 20): the sum over its videos of
        ``margin_timing``, weighted by the posterior of the task.
    classifiers
        Sentence classifiers of the tasks with two sampled videos and two keysteps at least.
    """

    tasks: tuple[str, ...]
    log_evidence: Mapping[str, NDArray[np.float32]]
    videos: Mapping[str, float]
    timing: Mapping[str, Floats]
    classifiers: Mapping[str, SentenceClassifier]

    @cached_property
    def log_prior(self) -> Floats:
        """Log of the prior of each task, fitted on the corpus, in nats, shape (Z,)."""
        log_evidence = np.array([*self.log_evidence.values()], dtype=np.float64)
        return learn_prior(log_evidence.reshape(len(self.log_evidence), len(self.tasks)))

    @cached_property
    def best_two(self) -> Floats:
        """Log-evidence of the second-best and best task of each video, in nats, shape (V, 2)."""
        if len(self.tasks) < 2 or not self.log_evidence:
            return np.zeros((0, 2))
        ranked = np.sort(np.stack([*self.log_evidence.values()]), axis=1)[:, -2:].astype(
            np.float64
        )
        return ranked[np.isfinite(ranked).all(axis=1)]

    def merge(self, other: RecognizerParameters) -> RecognizerParameters:
        """Merge with the parameters that were fitted on other videos."""
        log_evidence = first_by_hash({**self.log_evidence, **other.log_evidence}, SAMPLE)
        videos = {
            task: self.videos.get(task, 0.0) + other.videos.get(task, 0.0)
            for task in self.tasks
            if task in self.videos or task in other.videos
        }
        timing = {
            task: np.sum([one.timing[task] for one in (self, other) if task in one.timing], axis=0)
            for task in videos
        }
        classifiers = dict(other.classifiers)
        for task, mine in self.classifiers.items():
            classifiers[task] = self._joined(mine, other, task)
        return replace(
            self, log_evidence=log_evidence, videos=videos, timing=timing, classifiers=classifiers
        )

    def _joined(
        self, mine: SentenceClassifier, other: RecognizerParameters, task: str
    ) -> SentenceClassifier:
        """Average two sentence classifiers, weighted by the numbers of their videos."""
        if task not in other.classifiers:
            return mine
        share = self.videos[task] / (self.videos[task] + other.videos[task])
        theirs = other.classifiers[task]
        vectors = share * mine.vectors + (1 - share) * theirs.vectors
        return SentenceClassifier(
            vectors.astype(np.float32), share * mine.bias + (1 - share) * theirs.bias
        )


def learn_prior(log_evidence: Floats) -> Floats:
    """Fit the log prior of tasks, shape (Z,), to the log-evidence of many videos.

    Expectation maximisation of a mixture whose weights have a symmetric Dirichlet prior.  Its
    concentration is fitted as well (empirical Bayes): it is low for a corpus of two tasks among a
    thousand, and high for one in which every task occurs once.

    Parameters
    ----------
    log_evidence : shape (V, Z), in nats

    Examples
    --------
    >>> one_sided = np.array([[3.0, 0.0, 0.0]] * 30 + [[0.0, 0.5, 0.0]])
    >>> np.exp(learn_prior(one_sided)).round(1).tolist()
    [1.0, 0.0, 0.0]
    >>> each_once = np.array([[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 3.0]])
    >>> np.exp(learn_prior(each_once)).round(2).tolist()
    [0.33, 0.33, 0.33]
    """
    videos, tasks = log_evidence.shape
    log_prior = np.full(tasks, -np.log(tasks))
    for _ in range(_ROUNDS):
        weighted = log_evidence + log_prior
        counts = np.exp(weighted - logsumexp(weighted, axis=1, keepdims=True)).sum(axis=0)
        concentration = _concentration(counts)
        log_prior = np.log((counts + concentration) / (videos + concentration * tasks))
    return log_prior


def _concentration(counts: Floats) -> float:
    """Fit the Dirichlet concentration that maximises the marginal likelihood of the counts."""
    low, high, size = _LEAST, _MOST, len(counts)
    for _ in range(_FINER):
        each = np.geomspace(low, high, _TRIED)
        likely = gammaln(each * size) - gammaln(each * size + counts.sum())
        likely += (gammaln(counts[:, None] + each) - gammaln(each)).sum(axis=0)
        best = int(likely.argmax())
        low, high = each[max(0, best - 1)], each[min(_TRIED - 1, best + 1)]
    return float(each[best])
