"""Baselines and ablations of the paper that need no kernel of their own.

Two are decoders; the others prepare the scores or the graph for ``Argmax`` or ``PathSearch``: see
``docs/method.md``.  A keystep that scores minus infinity on a row is never its label.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stepgraph.core import BACKGROUND, Labels, Scores, Vocabulary
from stepgraph.decoders.path import PathSearch
from stepgraph.errors import ConfigError, DataError
from stepgraph.graph import TaskGraph


@dataclass(frozen=True)
class Random:
    """Label each row with a random keystep, all equally likely.

    Attributes
    ----------
    seed
        Seed of the random labels, combined with the id of each video.
    silence
        Label unobserved rows, too; else they are background.
    """

    seed: int = 0
    silence: bool = False

    def __post_init__(self) -> None:
        _check_seed(self.seed)

    def decode(self, scores: Scores, graph: TaskGraph) -> Labels:
        """See :class:`~stepgraph.decoders.Decoder`; the graph is not consulted."""
        allowed = scores.values > -math.inf
        if self.silence and scores.observed.any():  # any keystep that the video may show
            somewhere = allowed[scores.observed].any(axis=0)
            allowed = np.where(scores.observed[:, None], allowed, somewhere)
        choices = allowed.sum(axis=1)
        # One number a row, observed or not, so that no label depends on another row.
        position = np.floor(_generator(self.seed, scores.video).random(len(scores)) * choices)
        keysteps = (allowed.cumsum(axis=1) > position[:, None]).argmax(axis=1)
        labeled = (scores.observed | self.silence) & (choices > 0)
        return Labels(
            scores.video,
            np.where(labeled, keysteps, BACKGROUND).astype(np.int64),
            scores.vocabulary,
            scores.hop,
        )


@dataclass(frozen=True)
class AdaptiveThreshold:
    """Run path search with a threshold for each video that makes a share of its rows anchors.

    The rows of a sentence have equal scores, and rows of equal score are all anchors or none are,
    so that the share is at least ``keep`` and may be more.

    Attributes
    ----------
    keep
        Share of the observed rows that become anchors: the paper's half.
    """

    keep: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.keep <= 1:
            raise ConfigError(f"keep must be above 0 and at most 1, got {self.keep}")

    def decode(self, scores: Scores, graph: TaskGraph) -> Labels:
        """See :class:`~stepgraph.decoders.Decoder`."""
        allowed = scores.values > -math.inf
        somewhere = allowed.any(axis=0)
        if not somewhere.all():
            graph = graph.restrict(np.flatnonzero(somewhere).tolist())
        labels = PathSearch(self.threshold(scores)).decode(scores, graph)
        rows = np.flatnonzero(labels.keysteps != BACKGROUND)
        forbidden = rows[~allowed[rows, labels.keysteps[rows]]]
        keysteps = labels.keysteps.copy()
        keysteps[forbidden] = BACKGROUND
        return replace(labels, keysteps=keysteps)

    def threshold(self, scores: Scores) -> float:
        """Score that a share ``keep`` of observed rows reaches; infinite where no row can."""
        best = np.sort(scores.values[scores.observed].max(axis=1))
        kept = math.ceil(self.keep * len(best))
        # A row without any allowed keystep cannot be an anchor.
        possible = best[best > -math.inf]
        return float(possible[-min(kept, len(possible))]) if len(possible) else math.inf


def cluster_keysteps(vectors: NDArray[np.float32], count: int, seed: int = 0) -> NDArray[np.int64]:
    """Cluster keysteps by k-means of their embeddings.

    Parameters
    ----------
    vectors : shape (K, D)
        Embeddings of the keysteps, from ``encoder.encode_keysteps``.
    count
        Clusters to make; equal vectors share one, so there may be fewer.

    Returns
    -------
    shape (K,)
        The cluster of each keystep, a number below ``count``.
    """
    _check_seed(seed)
    if not 1 <= count <= len(vectors):
        raise ConfigError(
            f"count must be between 1 and the {len(vectors)} keysteps, got {count} clusters"
        )
    from sklearn.cluster import KMeans  # type: ignore[import-untyped, unused-ignore]

    distinct = len(np.unique(vectors, axis=0))
    means = KMeans(n_clusters=min(count, distinct), n_init=10, random_state=seed)
    return np.asarray(means.fit_predict(vectors), dtype=np.int64)


def prune_keysteps(scores: Scores, clusters: NDArray[np.int64]) -> Scores:
    """Exclude all keysteps but those of the cluster that fits the video best.

    That is the cluster with the highest mean score over the observed rows and its members, which
    is the average similarity of the clips with them.  Where nothing was observed, nothing is
    pruned.

    Parameters
    ----------
    clusters : shape (K,)
        The cluster of each keystep: see :func:`cluster_keysteps`.
    """
    if clusters.shape != (len(scores.vocabulary),):
        raise DataError(
            f"clusters must have shape {(len(scores.vocabulary),)}, one for each keystep, "
            f"got {clusters.shape}"
        )
    values = scores.values[scores.observed].astype(np.float64)
    allowed = values > -math.inf
    names, member = np.unique(clusters, return_inverse=True)
    total = np.bincount(member, np.where(allowed, values, 0).sum(axis=0))
    number = np.bincount(member, allowed.sum(axis=0))
    if not number.any():
        return scores
    mean = np.where(number > 0, total / np.maximum(number, 1), -math.inf)
    return scores.restrict(np.flatnonzero(clusters == names[mean.argmax()]).tolist())


def linear_graph(vocabulary: Vocabulary) -> TaskGraph:
    """Chain the keysteps of each task in the order in which the vocabulary lists them.

    Tasks that share a keystep cross there; every link counts once for each task that has it.
    """
    if not vocabulary.tasks:
        raise DataError(
            "a linear graph must be made from tasks that list their keysteps in order, "
            "got a vocabulary without tasks"
        )
    return TaskGraph.from_order(vocabulary, vocabulary.tasks.values())


def non_probabilistic(graph: TaskGraph) -> TaskGraph:
    """Replace the count of every transition by 1.

    All transitions out of a keystep are then equally likely, the self-transition included.
    """
    ones = np.ones_like(graph.counts.data)
    counts = csr_array((ones, graph.counts.indices, graph.counts.indptr), shape=graph.counts.shape)
    return replace(graph, counts=counts)


def _check_seed(seed: int) -> None:
    if not isinstance(seed, int) or seed < 0:
        raise ConfigError(f"seed must be a whole number from 0 on, got {seed!r}")


def _generator(seed: int, video: str) -> np.random.Generator:
    digest = hashlib.sha256(video.encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:8], "big")])
