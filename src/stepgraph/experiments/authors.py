"""Differences of the authors' released scripts from the paper, each as a named option.

The rest of the package follows the paper, whose published numbers came from the scripts.
``Behaviors()`` is the paper, ``Behaviors.authors(...)`` the scripts, and ``Behaviors.alone``
gives each behaviour by itself, so that a table can measure it.  All of it was written from a
description in words; open points are settled below, where they matter.

These need no option: the scripts pool metrics over all rows (``accuracy`` and
``iou`` of an evaluation are pooled), count a sentence once for each second it lasts and mine on
the evaluated videos (so does the package), drop rows without narration before counting
transitions (mining bridges silence, which gives the same counts), and embed text with
all-mpnet-base-v2 (an encoder).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from stepgraph.core import BACKGROUND, Labels, Scores, Vocabulary
from stepgraph.decoders.markov import BayesFilter
from stepgraph.decoders.path import PathSearch, best_keysteps, fill_gaps
from stepgraph.encoders import EncoderOptions
from stepgraph.encoders.vectors import unit
from stepgraph.errors import ConfigError, DataError
from stepgraph.experiments.methods import TABLES
from stepgraph.graph import Matrix, TaskGraph, mine_graph
from stepgraph.graph.mining import transitions
from stepgraph.graph.shortest_paths import Network, cheapest_path, make_network
from stepgraph.scoring.fusion import EXTREMA, rescale


@dataclass(frozen=True)
class Limit:
    """Limit on the keysteps that may be anchors or lie on paths in one video.

    ``"winners"`` allows keysteps that are best on some row with more than ``score``; ``"cluster"``
    those of the cluster with the most scores over it, counted once a sentence and divided by its
    size; none where no score is over it.  Clusters are at least ``distance`` apart.
    """

    kind: Literal["winners", "cluster"]
    score: float
    distance: float = 0.0


@dataclass(frozen=True)
class Behaviors:
    """Behaviours of the scripts to follow; the default is the paper.

    ``tables.toml`` describes each in words.  ``adjacent_forgotten``: the gap is measured from an
    older anchor, and the row overwritten; three and more in a row are taken two by two, so that
    0..7, all confident, become 1, 1, 1, 3, 3, 5, 5, 7 where no path leads between.
    ``unlabelled_end``: a video without anchors stays background, too; rows before the first
    anchor copy it, as they do without.  ``threshold`` takes the place of the decoder's own.

    Examples
    --------
    >>> Behaviors.authors("coin", "video").threshold
    0.0
    """

    raw_costs: bool = False
    first_counted_twice: bool = False
    adjacent_forgotten: bool = False
    unlabelled_end: bool = False
    threshold: float | None = None
    extrema: tuple[float, float] | None = None
    limit: Limit | None = None
    added_belief: float | None = None

    @classmethod
    def authors(cls, dataset: str, modality: str = "text") -> Behaviors:
        """Combine all behaviours, with the numbers for ``crosstask`` or ``coin``."""
        key = f"{dataset}-{modality}"
        if key not in TABLES["authors"]:
            raise ConfigError(
                f"compat must be for crosstask or coin, text or video, got {dataset!r}, "
                f"{modality!r}; the scripts have constants for no other"
            )
        fixed = dict(TABLES["authors"][key])
        if "limit" in fixed:
            fixed["limit"] = Limit(**fixed["limit"])
        return cls(
            raw_costs=True,
            first_counted_twice=True,
            adjacent_forgotten=True,
            unlabelled_end=True,
            extrema=EXTREMA[key],
            added_belief=0.20,
            **fixed,
        )

    @classmethod
    def alone(cls, dataset: str, modality: str = "text") -> dict[str, Behaviors]:
        """Return each behaviour of the authors by itself, by the name of its option."""
        options = vars(cls.authors(dataset, modality))
        return {n: cls(**{n: value}) for n, value in options.items() if value is not None}


def choose_behaviors(names: str, dataset: str) -> Behaviors:
    """Choose behaviours by name, separated by commas; ``authors`` is all of them.

    >>> choose_behaviors("raw_costs,unlabelled_end", "crosstask").raw_costs
    True
    """
    everything = Behaviors.authors(dataset)
    alone = Behaviors.alone(dataset)
    chosen = {}
    for name in names.replace("-", "_").split(","):
        if name == "authors":
            return everything
        if name not in alone:
            raise ConfigError(
                f"compat must be 'authors' or some of {', '.join(alone)}, got {name!r}"
            )
        chosen[name] = getattr(everything, name)
    return Behaviors(**chosen)


def mine_as_authors(
    videos: Iterable[Scores],
    vocabulary: Vocabulary,
    behaviors: Behaviors,
    *,
    encoder: EncoderOptions | None = None,
) -> TaskGraph:
    """Mine a graph as :func:`~stepgraph.graph.mine_graph` does, or as the scripts do.

    With ``first_counted_twice`` the graph depends on the order of the videos.
    """
    if not behaviors.first_counted_twice:
        return mine_graph(videos, vocabulary, encoder=encoder)
    size = len(vocabulary)
    first = np.full(size, -1, dtype=np.int64)

    def watched() -> Iterator[Scores]:
        for scores in videos:
            yield scores
            # After mining has accepted it.
            sources, targets = transitions(scores).T
            found, position = np.unique(sources, return_index=True)
            first[found] = np.where(first[found] < 0, targets[position], first[found])

    graph = mine_graph(watched(), vocabulary, encoder=encoder)
    left = np.flatnonzero(first >= 0)
    ones = np.ones(len(left), dtype=np.int64)
    again = csr_array(coo_array((ones, (left, first[left])), shape=(size, size)))
    return replace(graph, counts=graph.counts + again)


@dataclass(frozen=True)
class AuthorsPathSearch:
    """Path search with some behaviours of the scripts; by default it is ``PathSearch``.

    Only the remaining anchors are anchors of its labels.

    Attributes
    ----------
    threshold
        Least score of an anchor, unless ``behaviors`` have one.
    clusters
        Cluster of each keystep, for a ``behaviors.limit`` by clusters: :func:`agglomerate`.
    """

    threshold: float = 0.4
    behaviors: Behaviors = Behaviors()
    clusters: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        PathSearch(self.threshold)

    def decode(self, scores: Scores, graph: TaskGraph) -> Labels:
        """See :class:`~stepgraph.decoders.Decoder`."""
        graph.require_vocabulary_of(scores)
        behaviors = self.behaviors
        scores = _mapped(scores, behaviors)
        allowed = allowed_keysteps(scores, behaviors.limit, self.clusters)
        if allowed is not None:
            scores = scores.restrict(np.flatnonzero(allowed).tolist())
        best = scores.values.max(axis=1)
        threshold = self.threshold if behaviors.threshold is None else behaviors.threshold
        anchors = scores.observed & (best >= threshold) & (best > -math.inf)
        if behaviors.adjacent_forgotten:
            anchors = without_adjacent(anchors)
        keysteps = np.where(best > -math.inf, best_keysteps(scores), BACKGROUND)
        if anchors.any():
            find = _path_finder(graph, behaviors.raw_costs, allowed)
            keysteps = fill_gaps(keysteps, anchors, find)
        if behaviors.unlabelled_end:
            keysteps[np.flatnonzero(anchors).max(initial=-1) + 1 :] = BACKGROUND
        return Labels(scores.video, keysteps, scores.vocabulary, scores.hop, anchors)


def without_adjacent(anchors: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Remove the earlier of each two anchors on adjacent rows.

    >>> without_adjacent(np.array([1, 1, 0, 1, 0, 1, 1, 1], bool)).astype(int).tolist()
    [0, 1, 0, 1, 0, 0, 1, 1]
    """
    remembered = anchors.copy()
    for row in range(len(anchors) - 1):
        # The later of one pair is not the earlier of the next.
        ends_pair = row > 0 and anchors[row - 1] and not remembered[row - 1]
        if anchors[row] and anchors[row + 1] and not ends_pair:
            remembered[row] = False
    return remembered


def _path_finder(
    graph: TaskGraph, raw: bool, allowed: NDArray[np.bool_] | None
) -> Callable[[int, int], tuple[int, ...] | None]:
    if not raw and allowed is None:
        return graph.path
    network = _raw_network(graph) if allowed is None else _limited_network(graph, raw, allowed)
    return lambda start, end: cheapest_path(network, start, end)


@lru_cache(maxsize=1)  # the videos of a run share one graph
def _raw_network(graph: TaskGraph) -> Network:
    return make_network(graph.probabilities)


def _limited_network(graph: TaskGraph, raw: bool, allowed: NDArray[np.bool_]) -> Network:
    """Return edges between allowed keysteps, with the costs that they have among all."""
    edges = coo_array(graph.probabilities if raw else graph.costs)
    kept = allowed[edges.coords[0]] & allowed[edges.coords[1]]
    source, target = (one[kept] for one in edges.coords)
    costs: Matrix = csr_array(coo_array((edges.data[kept], (source, target)), graph.counts.shape))
    return make_network(costs)


def agglomerate(vectors: NDArray[np.float32], distance: float) -> tuple[int, ...]:
    """Cluster keysteps from the bottom up until clusters are at least ``distance`` apart.

    Ward's linkage of Euclidean distances between unit vectors, scikit-learn's default.
    """
    if not distance > 0:
        raise ConfigError(f"distance must be above 0, got {distance}")
    from sklearn import cluster  # type: ignore[import-untyped, unused-ignore]

    found = cluster.AgglomerativeClustering(n_clusters=None, distance_threshold=distance)
    return tuple(found.fit_predict(unit(vectors)).tolist())


def allowed_keysteps(
    scores: Scores, limit: Limit | None, clusters: tuple[int, ...] = ()
) -> NDArray[np.bool_] | None:
    """Return the keysteps allowed in one video, by scores in [-1, 1]; None without a limit."""
    if limit is None:
        return None
    if limit.kind == "winners":
        best = scores.observed & (scores.values.max(axis=1) > limit.score)
        allowed = np.zeros(len(scores.vocabulary), dtype=bool)
        allowed[scores.values[best].argmax(axis=1)] = True
        return allowed
    if len(clusters) != len(scores.vocabulary):
        raise DataError(
            f"clusters must be one for each of the {len(scores.vocabulary)} keysteps where they "
            f"are the limit, got {len(clusters)}; agglomerate() makes them"
        )
    names, member, size = np.unique(clusters, return_inverse=True, return_counts=True)
    over = (scores.values[_first_rows(scores)] > limit.score).sum(axis=0)
    rate = np.bincount(member, over, minlength=len(names)) / size
    return np.asarray((member == rate.argmax()) & (rate.max() > 0))


def _first_rows(scores: Scores) -> NDArray[np.int64]:
    """Return rows where a sentence begins; rows of one sentence are adjacent with equal scores."""
    rows = np.flatnonzero(scores.observed)
    values = scores.values[rows]
    goes_on = (np.diff(rows) == 1) & (values[1:] == values[:-1]).all(axis=1)
    begins = np.ones(len(rows), dtype=bool)
    begins[1:] = ~goes_on
    return np.asarray(rows[begins], dtype=np.int64)


@dataclass(frozen=True)
class AuthorsBayesFilter:
    """Bayes filter with some behaviours of the scripts; by default it is ``BayesFilter``.

    The scripts' recursion is ``B(0) = s`` and ``B(t) = s + 0.20 * A B(t-1)``; a row's label is
    the keystep with the highest ``B(t)``.  ``A``, not its transpose, multiplies ``B``, and
    nothing is normalised.  ``s`` is zero on a row without narration.  Rows before the first
    observed one are background, and so are rows that allow no keystep.

    Attributes
    ----------
    epsilon
        See :class:`~stepgraph.decoders.markov.BayesFilter`; unused with ``added_belief``.
    """

    epsilon: float = 0.1
    behaviors: Behaviors = Behaviors()

    def __post_init__(self) -> None:
        BayesFilter(self.epsilon)

    def decode(self, scores: Scores, graph: TaskGraph) -> Labels:
        """See :class:`~stepgraph.decoders.Decoder`; no label depends on a later row."""
        scores = _mapped(scores, self.behaviors)
        if self.behaviors.added_belief is None:
            return BayesFilter(self.epsilon).decode(scores, graph)
        graph.require_vocabulary_of(scores)
        allowed = scores.values > -math.inf
        measured_rows = allowed & scores.observed[:, None]
        measured = np.where(measured_rows, scores.values, 0).astype(np.float64)
        keysteps = np.full(len(scores), BACKGROUND, dtype=np.int64)
        belief = np.zeros(len(scores.vocabulary))
        for row, possible in enumerate(allowed):
            expected = graph.probabilities @ belief
            belief = np.where(possible, measured[row] + self.behaviors.added_belief * expected, 0)
            if possible.any() and (scores.observed[row] or belief.any()):
                keysteps[row] = np.where(possible, belief, -math.inf).argmax()
        return Labels(scores.video, keysteps, scores.vocabulary, scores.hop)


def _mapped(scores: Scores, behaviors: Behaviors) -> Scores:
    return scores if behaviors.extrema is None else rescale(scores, *behaviors.extrema)
