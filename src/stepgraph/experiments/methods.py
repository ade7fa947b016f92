"""Every row of the paper as a method behind one interface, read from ``tables.toml``.

A method is made ready for a setting once, and then labels one video after the other.  What it
cannot do on the data at hand it says by raising ``NotAvailableError`` with the reason.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

from stepgraph.core import Labels, Scores
from stepgraph.decoders import DECODERS, Argmax, Decoder, PathSearch, load_decoder
from stepgraph.decoders.auto_regressive import train_auto_regressive
from stepgraph.decoders.baselines import (
    cluster_keysteps,
    linear_graph,
    non_probabilistic,
    prune_keysteps,
)
from stepgraph.decoders.path import best_keysteps
from stepgraph.errors import DataError
from stepgraph.experiments.paper import MODALITIES
from stepgraph.experiments.setting import NotAvailableError, Setting
from stepgraph.graph import TaskGraph, mine_graph
from stepgraph.scoring.fusion import fuse

TABLES = tomllib.loads(Path(__file__).with_name("tables.toml").read_text("utf-8"))
"""What each table is made of, as it is written."""

Labeller: TypeAlias = Callable[[Scores], Labels]
"""From the scores of one video to its labels."""

# Each is made for a setting and a modality.
_MakeLabeller: TypeAlias = Callable[[Setting, str], Labeller]
_MakeDecoder: TypeAlias = Callable[[Setting, str], Decoder]
_MakeGraph: TypeAlias = Callable[[Setting, str], TaskGraph]


@dataclass(frozen=True)
class Method:
    """A row of a table; ``tables.toml`` says what its fields are.

    ``identity`` tells it from another method of the same name and description.
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
            decoders=DECODERS,
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


def _linear(setting: Setting, _: str) -> TaskGraph:
    if not setting.vocabulary.tasks:
        raise NotAvailableError("no order of keysteps: the vocabulary has no tasks that list them")
    return linear_graph(setting.vocabulary)


def _equally_likely(setting: Setting, modality: str) -> TaskGraph:
    return non_probabilistic(setting.graphs[modality])


_GRAPHS = {"mined": _mined, "linear": _linear, "equally likely": _equally_likely}


def decoding(make: _MakeDecoder, graph: _MakeGraph = _mined) -> _MakeLabeller:
    """Label with a decoder on a graph of all tasks."""

    def prepare(setting: Setting, modality: str) -> Labeller:
        decoder, on = make(setting, modality), graph(setting, modality)
        return lambda scores: decoder.decode(scores, on)

    return prepare


def on_task(make: _MakeDecoder, *, in_order: bool = False) -> _MakeLabeller:
    """Label with a decoder that may choose only among the keysteps of the video's own task.

    ``in_order`` takes the order in which the data set lists them as the graph.
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


def _decoder(name: str, options: Mapping[str, Any], setting: Setting, modality: str) -> Decoder:
    if name == "auto-regressive":
        return _auto_regressive(setting, modality)
    asked: dict[str, dict[str, Any]] = {
        "path-search": {"threshold": setting.options.threshold_of(modality)},
        "random": {"seed": setting.options.seed},
    }
    return load_decoder(name, **{**asked.get(name, {}), **options})


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
        search = PathSearch(setting.options.threshold_of(modality))
        return lambda scores: search.decode(fused[scores.video], graph)

    return prepare


def _prepare(written: Mapping[str, Any]) -> _MakeLabeller:
    """How a method that stands in ``tables.toml`` labels."""
    make = partial(_decoder, written["decoder"], written.get("options", {}))
    graph = written.get("graph", "mined")
    if written.get("pruned"):
        return _pruning
    if "video_weight" in written:
        return _fusion(written["video_weight"])
    if written.get("task_level"):
        return on_task(make, in_order=graph == "in order")
    return decoding(make, _GRAPHS[graph])


def _read() -> Iterator[tuple[str, Method]]:
    ours = {one.name for one in fields(Method)} - {"prepare", "modalities"}
    for key, written in TABLES["methods"].items():
        given = {name: value for name, value in written.items() if name in ours}
        modalities = tuple(written.get("modalities", MODALITIES))
        yield key, Method(prepare=_prepare(written), modalities=modalities, **given)


METHODS = dict(_read())
"""Every method of the tables, by what ``tables.toml`` calls it."""
