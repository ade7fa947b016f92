"""Methods of the paper's rows behind one interface, and the notes under its tables.

A method is prepared for a setting once, and then labels one video after the other.  A method that
cannot be measured on the data raises ``NotAvailableError`` with the reason.  Methods and notes
stand in ``tables.toml``.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, partial, reduce
from operator import add
from pathlib import Path
from typing import Any, TypeAlias

from stepgraph.core import Labels, Scores
from stepgraph.decoders import DECODERS, Decoder, PathSearch, load_decoder
from stepgraph.decoders.auto_regressive import train_auto_regressive
from stepgraph.decoders.baselines import (
    cluster_keysteps,
    linear_graph,
    non_probabilistic,
    prune_keysteps,
)
from stepgraph.decoders.path import best_keysteps
from stepgraph.errors import DataError
from stepgraph.evaluation.comparison import count_videos
from stepgraph.evaluation.counts import Counts
from stepgraph.experiments.setting import NotAvailableError, Setting
from stepgraph.experiments.table import DATASETS, MODALITIES
from stepgraph.graph import TaskGraph, mine_graph
from stepgraph.pipeline import mined_where
from stepgraph.scoring.fusion import fuse

TABLES = tomllib.loads(Path(__file__).with_name("tables.toml").read_text("utf-8"))
"""Definitions of the tables, as written."""

Labeler: TypeAlias = Callable[[Scores], Labels]
"""Function from the scores of one video to its labels."""

Prepare: TypeAlias = Callable[["Setting", str], Labeler]
"""Prepares a method for a setting and a modality."""


@dataclass(frozen=True)
class Method:
    """A row of a table; ``tables.toml`` describes its fields.

    ``prepare`` prepares it for a setting and a modality, or one of its ``choices`` does, by the
    value of the chosen option.  ``identity`` distinguishes it from another method of the same name
    and description.
    """

    name: str
    prepare: Prepare
    about: str = ""
    modalities: tuple[str, ...] = tuple(MODALITIES)
    task_level: bool = False
    chance: bool = False
    choices: Mapping[float, Prepare] = field(default_factory=dict)
    identity: str = ""

    def described(self, setting: Setting) -> str:
        """Describe the method, with the options of the setting filled in."""
        return self.about.format(
            threshold=f"{setting.options.threshold:g}",
            seed=setting.options.seed,
            decoders=DECODERS,
        )

    def label(self, setting: Setting, modality: str) -> dict[str, Labels]:
        """Label all videos with a truth, and with a known task if that is needed."""
        return self.label_and_choose(setting, modality)[0]

    def label_and_choose(
        self, setting: Setting, modality: str
    ) -> tuple[dict[str, Labels], dict[str, float]]:
        """Label as :meth:`label` does, and return the value chosen for the videos of each task.

        The chosen value has the highest accuracy on the videos of the other tasks.
        """
        if modality not in self.modalities:
            readable = " and ".join(self.modalities)
            raise NotAvailableError(f"{self.name} reads {readable} scores only")
        if not self.choices:
            return self._label_all(setting, modality, self.prepare), {}
        found = {
            value: self._label_all(setting, modality, prepare)
            for value, prepare in self.choices.items()
        }
        counts = {value: count_videos(one.values(), setting.truth) for value, one in found.items()}
        chosen = choose(counts, setting.tasks)
        labels = {
            video: found[chosen[task]][video]
            for video, task in setting.tasks.items()
            if task in chosen and video in next(iter(found.values()))
        }
        return labels, chosen

    def _label_all(self, setting: Setting, modality: str, prepare: Prepare) -> dict[str, Labels]:
        videos: Iterable[Scores] = setting.evaluated(modality)
        if self.task_level:
            _require_tasks(setting)
            videos = (one for one in videos if one.video in setting.tasks)
        labeler = prepare(setting, modality)
        return {one.video: labeler(one) for one in videos}


def choose(
    found: Mapping[float, Mapping[str, Counts]], tasks: Mapping[str, str]
) -> dict[str, float]:
    """Choose for each task the value of highest accuracy, pooled over videos of other tasks."""
    shown = sorted({tasks[video] for video in next(iter(found.values())) if video in tasks})
    if len(shown) < 2:
        raise NotAvailableError(
            f"videos of {len(shown)} task: an option cannot be chosen on one task and measured on "
            f"another"
        )
    best = {}
    for task in shown:
        right = {
            value: reduce(
                add, (one for video, one in counts.items() if tasks.get(video, task) != task)
            ).metrics()["accuracy"]
            for value, counts in found.items()
        }
        best[task] = max(right, key=right.__getitem__)
    return best


def _require_tasks(setting: Setting) -> None:
    if not setting.vocabulary.tasks:
        raise NotAvailableError("no tasks: the vocabulary assigns no keysteps to tasks")
    if not any(video in setting.truth for video in setting.tasks):
        raise NotAvailableError("task unknown: the source does not have the tasks of its videos")


def _prepare(written: Mapping[str, Any], setting: Setting, modality: str) -> Labeler:
    """Prepare a method that stands in ``tables.toml``."""
    if "video_weight" in written:
        return _fusing(written["video_weight"], setting, modality)
    decoder = _decoder(written["decoder"], written.get("options", {}), setting, modality)
    if written.get("task_level"):
        in_order = written.get("graph") == "in order"
        return on_task(decoder, setting, modality, in_order=in_order)
    graph = _graph(written.get("graph"), setting, modality)
    if count := written.get("clusters"):
        vectors = setting.keystep_vectors
        clusters = cluster_keysteps(vectors, min(count, len(vectors)), setting.options.seed)
        return lambda scores: decoder.decode(prune_keysteps(scores, clusters), graph)
    return lambda scores: decoder.decode(scores, graph)


def _graph(kind: str | None, setting: Setting, modality: str) -> TaskGraph:
    if kind != "linear":
        mined = setting.graphs[modality]
        return non_probabilistic(mined) if kind == "equally likely" else mined
    if not setting.vocabulary.tasks:
        raise NotAvailableError("no order of keysteps: the vocabulary has no tasks that list them")
    return linear_graph(setting.vocabulary)


def on_task(
    decoder: Decoder, setting: Setting, modality: str, *, in_order: bool = False
) -> Labeler:
    """Restrict a decoder to the keysteps of the video's own task.

    ``in_order`` takes the listed order of the keysteps as the graph.
    """

    @cache
    def graph_of(members: tuple[int, ...]) -> TaskGraph:
        if in_order:
            return TaskGraph.from_order(setting.vocabulary, [members])
        return setting.graphs[modality].restrict(members)

    def label(scores: Scores) -> Labels:
        task = setting.tasks[scores.video]
        members = tuple(dict.fromkeys(setting.vocabulary.tasks[task]))
        try:
            return decoder.decode(scores.restrict(members), graph_of(members))
        except DataError as error:  # a task of too many keysteps without order
            raise NotAvailableError(f"task {task!r} cannot be aligned: {error}") from error

    return label


def _decoder(name: str, options: Mapping[str, Any], setting: Setting, modality: str) -> Decoder:
    if name == "auto-regressive":
        return _auto_regressive(setting, modality)
    wanted: dict[str, dict[str, Any]] = {
        "random": {"seed": setting.options.seed},
    }
    for anchored in ("path-search", "halved-gaps", "anchors-only"):
        wanted[anchored] = {"threshold": setting.options.threshold_of(modality)}
    return load_decoder(name, **{**wanted.get(name, {}), **options})


def _auto_regressive(setting: Setting, modality: str) -> Decoder:
    preliminary = (best_keysteps(one) for one in setting.scored(modality))
    try:
        return train_auto_regressive(
            preliminary, len(setting.vocabulary), seed=setting.options.seed
        )
    except DataError as error:
        raise NotAvailableError(f"the transformer cannot be trained: {error}") from error


def _fusing(weight: float, setting: Setting, modality: str) -> Labeler:
    """Decode fused scores by path search: the given weight for video, the rest for text."""
    text = {one.video: one for one in setting.scored("text")}
    fused = {
        one.video: fuse(one, text[one.video], weight=weight)
        for one in setting.scored("video")
        if one.video in text
    }
    graph = mine_graph(fused.values(), setting.vocabulary)
    search = PathSearch(setting.options.threshold_of(modality))
    return lambda scores: search.decode(fused[scores.video], graph)


def _read() -> Iterator[tuple[str, Method]]:
    ours = {one.name for one in fields(Method)} - {"prepare", "modalities", "choices"}
    for key, written in TABLES["methods"].items():
        given = {name: value for name, value in written.items() if name in ours}
        modalities = tuple(written.get("modalities", MODALITIES))
        prepare, choices = partial(_prepare, written), {}
        if option := written.get("choose"):
            choices = {
                value: partial(_prepare, _with_option(written, option["option"], value))
                for value in option["among"]
            }
        yield key, Method(prepare=prepare, modalities=modalities, choices=choices, **given)


def _with_option(written: Mapping[str, Any], name: str, value: float) -> dict[str, Any]:
    if name == "clusters":
        return {**written, name: value}
    return {**written, "options": {**written.get("options", {}), name: value}}


METHODS = dict(_read())
"""All methods of the tables, by their keys in ``tables.toml``."""


def written_notes(table: str, **values: object) -> list[str]:
    """Return the notes of ``tables.toml`` on a table, with the values filled in."""
    return [note.format(**values) for note in TABLES["notes"][table]]


def protocol(setting: Setting, used: Sequence[Method]) -> Iterator[str]:
    """Yield the protocol of the table, sentence by sentence."""
    options, vocabulary = setting.options, setting.vocabulary
    yield from _measured_on(setting)
    videos = {one.video for modality in setting.scores for one in setting.evaluated(modality)}
    unknown = len(videos - setting.tasks.keys())
    if unknown and any(method.task_level for method in used):
        yield f"The task of {unknown} videos is unknown; they are left out."
    yield from written_notes(
        "setting",
        keysteps=len(vocabulary),
        tasks=len(vocabulary.tasks),
        fingerprint=vocabulary.fingerprint,
        encoder=setting.encoder,
        names=", with task names" if setting.encoder.task_names else "",
        seed=options.seed,
    )
    if "video" in options.scores:
        yield f"Video scores: {options.video_scores}; threshold {options.video_threshold:g}."
    for modality, graph in setting.graphs.items():
        shown = {one.video for one in setting.evaluated(modality)}
        kind = "inductive" if shown.isdisjoint(graph.mined_on) else "transductive"
        yield f"Graph ({modality}) mined on {mined_where(graph, shown)} ({kind})."
    for method in used:
        if method.about:
            yield f"{method.name}: {method.described(setting)}."


def _measured_on(setting: Setting) -> Iterator[str]:
    """Count the videos, by modality where modalities differ."""
    counted = {}
    for modality in setting.scores:
        videos = list(setting.evaluated(modality))
        tasks = {setting.tasks[one.video] for one in videos if one.video in setting.tasks}
        named = f" ({', '.join(sorted(tasks))})" if len(tasks) <= 3 else ""
        among = f"{len(tasks)} of {len(setting.vocabulary.tasks)} tasks{named}"
        labelled = (setting.truth[one.video].keysteps >= 0 for one in videos)
        counted[modality] = {
            "videos": len(videos),
            "tasks": among if tasks else "unknown tasks",
            "rows": sum(map(len, videos)),
            "labelled": sum(int(one.sum()) for one in labelled),
        }
    alike = len({json.dumps(one) for one in counted.values()}) == 1
    for modality, found in counted.items():
        part = setting.options.split if alike else f"{setting.options.split}, {modality}"
        yield from written_notes("measured", dataset=setting.dataset.name, split=part, **found)
        if alike:
            return


def paper_notes(datasets: Sequence[str]) -> list[str]:
    """Return the notes on the paper's columns."""
    named = " and ".join(DATASETS[dataset] for dataset in datasets)
    return written_notes("paper", datasets=named) if datasets else []
