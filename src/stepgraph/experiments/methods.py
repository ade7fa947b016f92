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

# Each is made for a setting and a modality.
_MakeLabeller: TypeAlias = Callable[[Setting, str], Labeller]
_MakeDecoder: TypeAlias = Callable[[Setting, str], Decoder]
_MakeGraph: TypeAlias = Callable[[Setting, str], TaskGraph]


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
    prepare: _MakeLabeller
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


def _require_tasks(setting: Setting) -> None:
    if not setting.vocabulary.tasks:
        raise NotAvailableError("no tasks: the vocabulary does not say which keysteps are whose")
    if not any(video in setting.truth for video in setting.tasks):
        raise NotAvailableError("task unknown: the source does not say which task a video shows")


def _mined(setting: Setting, modality: str) -> TaskGraph:
    return setting.graphs[modality]


def decoding(make: _MakeDecoder, graph: _MakeGraph = _mined) -> _MakeLabeller:
    """Label with a decoder on a graph of all tasks."""

    def prepare(setting: Setting, modality: str) -> Labeller:
        decoder, on = make(setting, modality), graph(setting, modality)
        return lambda scores: decoder.decode(scores, on)

    return prepare


def on_task(make: _MakeDecoder, *, in_order: bool = False) -> _MakeLabeller:
    """Label with a decoder that may choose only among the keysteps of the video's own task.

    Parameters
    ----------
    in_order
        Take the order in which the data set lists them as the graph, not the mined one.
    """

    def prepare(setting: Setting, modality: str) -> Labeller:
        decoder = make(setting, modality)

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

    return prepare


def always(decoder: Decoder) -> _MakeDecoder:
    """The same decoder, whatever the setting."""
    return lambda _setting, _modality: decoder


def path_search(name: str, threshold: float) -> Method:
    """Path search with a threshold of its own."""
    search = PathSearch(threshold)
    return Method(name, decoding(always(search)), repr(search))


def _searching(setting: Setting, modality: str) -> Decoder:
    return PathSearch(setting.options.threshold_of(modality))


def _drawing(setting: Setting, _: str) -> Decoder:
    return Random(setting.options.seed)


def _auto_regressive(setting: Setting, modality: str) -> Decoder:
    preliminary = (best_keysteps(one) for one in setting.scored(modality))
    # Before torch is imported: its waiting threads would take the cores from whoever else works.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        return train_auto_regressive(
            preliminary, len(setting.vocabulary), seed=setting.options.seed
        )
    except DataError as error:
        raise NotAvailableError(f"the transformer cannot be trained: {error}") from error


def _linear(setting: Setting, _: str) -> TaskGraph:
    if not setting.vocabulary.tasks:
        raise NotAvailableError("no order of keysteps: the vocabulary has no tasks that list them")
    return linear_graph(setting.vocabulary)


def _equally_likely(setting: Setting, modality: str) -> TaskGraph:
    return non_probabilistic(setting.graphs[modality])


def _pruning(setting: Setting, modality: str) -> Labeller:
    count, graph = _clusters_of(setting), setting.graphs[modality]
    clusters = cluster_keysteps(setting.keystep_vectors, count, setting.options.seed)
    return lambda scores: Argmax().decode(prune_keysteps(scores, clusters), graph)


def _clusters_of(setting: Setting) -> int:
    """How many clusters Pruning Keysteps makes: the paper does not say."""
    keysteps = len(setting.vocabulary)
    return min(len(setting.vocabulary.tasks) or max(2, keysteps // 6), keysteps)


def _fusion(weight: float) -> _MakeLabeller:
    """Path search on blended scores: so much of the video's, the rest of the text's."""

    def prepare(setting: Setting, modality: str) -> Labeller:
        text = {one.video: one for one in setting.scored("text")}
        fused = {
            one.video: fuse(one, text[one.video], weight=weight) for one in setting.scored("video")
        }
        graph = mine_graph(fused.values(), setting.vocabulary)
        search = _searching(setting, modality)
        return lambda scores: search.decode(fused[scores.video], graph)

    return prepare


RANDOM = Method(
    "Random", decoding(_drawing), "a keystep drawn for each row with narration, seed {seed}"
)
VIDEOCLIP = Method(
    "VideoCLIP",
    decoding(always(Argmax())),
    "argmax of video scores",
    modalities=("video", "video-text"),
)
DISTANT = Method(
    "DistantSup.", decoding(always(Argmax())), "argmax of text scores", modalities=("text",)
)
LINEAR = Method(
    "Linear Steps",
    decoding(_searching, _linear),
    "path search (threshold {threshold}) on chains of each task's keysteps as the data set lists "
    "them",
)
AUTO_REGRESSIVE = Method(
    "Auto-Reg",
    decoding(_auto_regressive),
    "a transformer trained on the preliminary labels of all videos, seed {seed}",
)
PRUNING = Method(
    "Pruning Keysteps",
    _pruning,
    "argmax within the best of {clusters} clusters of keysteps (k-means, seed {seed}), as many as "
    "there are tasks; the paper does not say how many",
)
OURS = Method("Ours", decoding(_searching), "path search, threshold {threshold}", spread=True)
NON_PROBABILISTIC = Method(
    "Non-probabilistic",
    decoding(_searching, _equally_likely),
    "path search, threshold {threshold}, each transition that was seen as likely as any other",
)
ADAPTIVE = Method(
    "Adaptive Threshold",
    decoding(always(AdaptiveThreshold(0.5))),
    "path search that keeps the better half of each video's rows",
)
FUSION = Method(
    "Video-Text Fusion",
    _fusion(0.5),
    "path search, threshold {threshold}, on the mean of text and video scores",
    modalities=("video-text",),
)
WEIGHTED_FUSION = Method(
    "Weighted Fusion",
    _fusion(0.7),
    "the same with 0.7 of the video scores; the paper says only that it is similar",
    modalities=("video-text",),
)
BRF = Method(
    "BRF",
    decoding(always(BayesFilter())),
    f"Bayes recursive filter, ε = {BayesFilter().epsilon:g}, causal",
)
VITERBI = Method(
    "Viterbi (not in the paper)",
    decoding(always(Viterbi())),
    f"temperature {Viterbi().temperature:g}, self-loop {Viterbi().stay:g}, "
    f"floor {Viterbi().floor:g}",
)

_TASK_LEVEL = (
    Method(
        "Random",
        on_task(_drawing),
        "a keystep of the task drawn for each row with narration, seed {seed}",
    ),
    Method("Bag of Steps", on_task(always(Argmax())), "argmax among the task's keysteps"),
    Method(
        "Drop-DTW",
        on_task(always(DropDTW()), in_order=True),
        f"the order is the data set's; rows are dropped at the {DropDTW().percentile:g}th "
        f"percentile of the match costs",
    ),
    Method(
        "Graph2Vid",
        on_task(always(Graph2Vid())),
        "over all topological orders of the mined graph of the task, cycles broken by the counts "
        "(the published one is parsed from a recipe's text)",
    ),
    Method(
        "Ours",
        on_task(_searching),
        "path search, threshold {threshold}, on the mined graph restricted to the task",
        spread=True,
    ),
)
TASK_LEVEL = tuple(replace(method, task_level=True) for method in _TASK_LEVEL)
"""The rows of table 2."""
