"""Every row of the paper as a method behind one interface.

A method is made ready for a :class:`~stepgraph.experiments.setting.Setting` once, and then labels
one video after the other.  What it cannot do on the data at hand it says by raising
:class:`~stepgraph.experiments.setting.NotAvailableError` with the reason.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeAlias

from stepgraph.core import Labels, Scores
from stepgraph.decoders import Argmax, Decoder, PathSearch
from stepgraph.decoders.auto_regressive import train_auto_regressive
from stepgraph.decoders.baselines import (
    AdaptiveThreshold,
    Random,
    cluster_keysteps,
    linear_graph,
    non_probabilistic,
    prune_keysteps,
)
from stepgraph.decoders.dtw import DropDTW, Graph2Vid
from stepgraph.decoders.markov import BayesFilter, Viterbi
from stepgraph.decoders.path import best_keysteps
from stepgraph.errors import DataError
from stepgraph.experiments.paper import MODALITIES
from stepgraph.experiments.setting import NotAvailableError, Setting
from stepgraph.graph import TaskGraph, mine_graph
from stepgraph.scoring.fusion import fuse

Labeller: TypeAlias = Callable[[Scores], Labels]
"""From the scores of one video to its labels."""


@dataclass(frozen=True)
class Method:
    """A row of a table.

    Attributes
    ----------
    name
        As the paper prints it.
    prepare
        From a setting and a modality to what labels one video.
    about
        What it is and with which options, for the notes; ``{threshold}``, ``{seed}`` and
        ``{clusters}`` are filled in.
    modalities
        Those for which the paper has it.
    task_level
        Whether it is told the task of each video.
    spread
        Whether its standard errors are measured.
    identity
        What tells it from another method of the same name and description.
    """

    name: str
    prepare: Callable[[Setting, str], Labeller]
    about: str = ""
    modalities: tuple[str, ...] = tuple(MODALITIES)
    task_level: bool = False
    spread: bool = False
    identity: str = ""

    def described(self, setting: Setting) -> str:
        """What it is, with the options of the setting filled in."""
        return self.about.format(
            threshold=f"{setting.options.threshold:g}",
            seed=setting.options.seed,
            clusters=_clusters_of(setting),
        )

    def label(self, setting: Setting, modality: str) -> dict[str, Labels]:
        """Labels of all videos with a truth, and with a known task if that is needed."""
        if modality not in self.modalities:
            readable = " and ".join(self.modalities)
            raise NotAvailableError(f"{self.name} reads {readable} scores only")
        videos = setting.evaluated(modality)
        if self.task_level:
            _require_tasks(setting)
            videos = (one for one in videos if one.video in setting.tasks)
        labeller = self.prepare(setting, modality)
        return {one.video: labeller(one) for one in videos}


def open_method(name: str, decoder: Decoder, about: str = "") -> Method:
    """A decoder on the mined graph of all tasks."""

    def prepare(setting: Setting, modality: str) -> Labeller:
        graph = setting.graphs[modality]
        return lambda scores: decoder.decode(scores, graph)

    return Method(name, prepare, about or repr(decoder))


def path_search(name: str, threshold: float) -> Method:
    """Path search with a threshold of its own."""
    return open_method(name, PathSearch(threshold))


def _random(setting: Setting, modality: str) -> Labeller:
    return _with(Random(setting.options.seed), setting.graphs[modality])


def _argmax(setting: Setting, modality: str) -> Labeller:
    return _with(Argmax(), setting.graphs[modality])


def _ours(setting: Setting, modality: str) -> Labeller:
    return _with(PathSearch(setting.options.threshold_of(modality)), setting.graphs[modality])


def _linear(setting: Setting, modality: str) -> Labeller:
    if not setting.vocabulary.tasks:
        raise NotAvailableError("no order of keysteps: the vocabulary has no tasks that list them")
    return _with(
        PathSearch(setting.options.threshold_of(modality)), linear_graph(setting.vocabulary)
    )


def _non_probabilistic(setting: Setting, modality: str) -> Labeller:
    graph = non_probabilistic(setting.graphs[modality])
    return _with(PathSearch(setting.options.threshold_of(modality)), graph)


def _pruning(setting: Setting, modality: str) -> Labeller:
    count = _clusters_of(setting)
    clusters = cluster_keysteps(setting.keystep_vectors, count, setting.options.seed)
    graph = setting.graphs[modality]
    return lambda scores: Argmax().decode(prune_keysteps(scores, clusters), graph)


def _auto_regressive(setting: Setting, modality: str) -> Labeller:
    preliminary = (best_keysteps(one) for one in setting.scored(modality))
    size, graph = len(setting.vocabulary), setting.graphs[modality]
    # Before torch is imported: its waiting threads would take the cores from whoever else works.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        decoder = train_auto_regressive(preliminary, size, seed=setting.options.seed)
    except DataError as error:
        raise NotAvailableError(f"the transformer cannot be trained: {error}") from error
    return _with(decoder, graph)


def _fusion(weight: float) -> Callable[[Setting, str], Labeller]:
    """Path search on blended scores: so much of the video's, the rest of the text's."""

    def prepared(setting: Setting, modality: str) -> Labeller:
        text = {one.video: one for one in setting.scored("text")}
        fused = {
            one.video: fuse(one, text[one.video], weight=weight) for one in setting.scored("video")
        }
        graph = mine_graph(fused.values(), setting.vocabulary)
        search = PathSearch(setting.options.threshold_of(modality))
        return lambda scores: search.decode(fused[scores.video], graph)

    return prepared


def _with(decoder: Decoder, graph: TaskGraph) -> Labeller:
    return lambda scores: decoder.decode(scores, graph)


def _clusters_of(setting: Setting) -> int:
    """How many clusters Pruning Keysteps makes: the paper does not say."""
    keysteps = len(setting.vocabulary)
    return min(len(setting.vocabulary.tasks) or max(2, keysteps // 6), keysteps)


def _require_tasks(setting: Setting) -> None:
    if not setting.vocabulary.tasks:
        raise NotAvailableError("no tasks: the vocabulary does not say which keysteps are whose")
    if not any(video in setting.truth for video in setting.tasks):
        raise NotAvailableError("task unknown: the source does not say which task a video shows")


def _on_task(decoder: Decoder, *, in_order: bool = False) -> Callable[[Setting, str], Labeller]:
    """Allow only the keysteps of the video's own task.

    Parameters
    ----------
    in_order
        Take the order in which the data set lists them as the graph, not the mined one.
    """

    def prepare(setting: Setting, modality: str) -> Labeller:
        return on_task(decoder, setting, modality, in_order=in_order)

    return prepare


def on_task(
    decoder: Decoder, setting: Setting, modality: str, *, in_order: bool = False
) -> Labeller:
    """Label videos with the keysteps of their own tasks; see :func:`_on_task`."""

    @cache
    def graph_of(members: tuple[int, ...]) -> TaskGraph:
        if in_order:
            return TaskGraph.from_order(setting.vocabulary, [members])
        return setting.graphs[modality].restrict(members)

    def label(scores: Scores) -> Labels:
        members = setting.members(scores.video)
        try:
            return decoder.decode(scores.restrict(members), graph_of(members))
        except DataError as error:  # a task of too many keysteps without order
            task = setting.tasks[scores.video]
            raise NotAvailableError(f"task {task!r} cannot be aligned: {error}") from error

    return label


RANDOM = Method("Random", _random, "a keystep drawn for each row with narration, seed {seed}")
VIDEOCLIP = Method("VideoCLIP", _argmax, "argmax of video scores", ("video", "video-text"))
DISTANT = Method("DistantSup.", _argmax, "argmax of text scores", ("text",))
LINEAR = Method(
    "Linear Steps",
    _linear,
    "path search (threshold {threshold}) on chains of each task's keysteps as the data set lists "
    "them",
)
AUTO_REGRESSIVE = Method(
    "Auto-Reg",
    _auto_regressive,
    "a transformer trained on the preliminary labels of all videos, seed {seed}",
)
PRUNING = Method(
    "Pruning Keysteps",
    _pruning,
    "argmax within the best of {clusters} clusters of keysteps (k-means, seed {seed}), as many as "
    "there are tasks; the paper does not say how many",
)
OURS = Method("Ours", _ours, "path search, threshold {threshold}", spread=True)
NON_PROBABILISTIC = Method(
    "Non-probabilistic",
    _non_probabilistic,
    "path search, threshold {threshold}, each transition that was seen as likely as any other",
)
ADAPTIVE = open_method(
    "Adaptive Threshold",
    AdaptiveThreshold(0.5),
    "path search that keeps the better half of each video's rows",
)
FUSION = Method(
    "Video-Text Fusion",
    _fusion(0.5),
    "path search, threshold {threshold}, on the mean of text and video scores",
    ("video-text",),
)
WEIGHTED_FUSION = Method(
    "Weighted Fusion",
    _fusion(0.7),
    "the same with 0.7 of the video scores; the paper says only that it is similar",
    ("video-text",),
)
BRF = open_method(
    "BRF", BayesFilter(), f"Bayes recursive filter, ε = {BayesFilter().epsilon:g}, causal"
)
VITERBI = open_method(
    "Viterbi (not in the paper)",
    Viterbi(),
    f"temperature {Viterbi().temperature:g}, self-loop {Viterbi().stay:g}, "
    f"floor {Viterbi().floor:g}",
)


def _task_random(setting: Setting, modality: str) -> Labeller:
    return on_task(Random(setting.options.seed), setting, modality)


def _task_ours(setting: Setting, modality: str) -> Labeller:
    return on_task(PathSearch(setting.options.threshold_of(modality)), setting, modality)


_TASK_LEVEL = (
    Method(
        "Random",
        _task_random,
        "a keystep of the task drawn for each row with narration, seed {seed}",
    ),
    Method("Bag of Steps", _on_task(Argmax()), "argmax among the task's keysteps"),
    Method(
        "Drop-DTW",
        _on_task(DropDTW(), in_order=True),
        f"the order is the data set's; rows are dropped at the {DropDTW().percentile:g}th "
        f"percentile of the match costs",
    ),
    Method(
        "Graph2Vid",
        _on_task(Graph2Vid()),
        "over all topological orders of the mined graph of the task, cycles broken by the counts "
        "(the published one is parsed from a recipe's text)",
    ),
    Method(
        "Ours",
        _task_ours,
        "path search, threshold {threshold}, on the mined graph restricted to the task",
        spread=True,
    ),
)
TASK_LEVEL = tuple(replace(method, task_level=True) for method in _TASK_LEVEL)
"""The rows of table 2."""
