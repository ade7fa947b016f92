"""The paper's task classification, and its downstream table.

A video's task is predicted from its labelled keysteps.  The truth is the task of each video, not
its keysteps, so this can be measured where the other tables cannot.  Probes measure the frozen
features of any backbone whose features are stored, one row each; the paper's rows stand beside,
filled or not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from stepgraph.core import Dataset, Labels, Scores, Video, Vocabulary
from stepgraph.datasets import REGISTRY, find_published, open_source
from stepgraph.decoders import Argmax, Decoder, PathSearch, TaskMarkov
from stepgraph.decoders.controls import AnchorsOnly, ArgmaxHold, HalvedGaps
from stepgraph.decoders.learning import learn_graph
from stepgraph.decoders.path import best_keysteps
from stepgraph.decoders.tasks import rank_tasks
from stepgraph.encoders import Encoder, load_encoder
from stepgraph.encoders.encoding import encode_each
from stepgraph.errors import DataError
from stepgraph.evaluation.comparison import bootstrap_mean
from stepgraph.evaluation.report import over_splits
from stepgraph.experiments.measuring import DIFFERENCE
from stepgraph.experiments.methods import METHODS, written_notes
from stepgraph.experiments.pretraining import Pretraining
from stepgraph.experiments.probing import Probed, ProbeOptions, halves, probe
from stepgraph.experiments.setting import Options
from stepgraph.experiments.table import (
    ANY,
    DATASETS,
    HEADS,
    HOWTO100M,
    MODALITIES,
    NOTHING,
    PAPER,
    PRINTED,
    PROBES,
    Beside,
    Cell,
    Column,
    PaperPlace,
    Row,
    Table,
    measured_cell,
)
from stepgraph.graph import TaskGraph, mine_graph
from stepgraph.ingest import Listening
from stepgraph.pipeline import choose_vocabulary, is_silent, mined_where, uses_vision
from stepgraph.problems import Problems
from stepgraph.progress import track
from stepgraph.scoring import score

_COLUMNS = (Column("acc1", "Acc@1"), Column("acc5", "Acc@5"))
_DIFFERENCE = Column(f"{DIFFERENCE}acc1", "Ours − this: Acc@1", "points")
_BESIDE = Beside("tasks", [HOWTO100M], _COLUMNS)
_OWN = "stepgraph's own"
_ONE_MODEL = "Video-only, one model decoded"
_PUBLISHED_MODEL = (
    "needs the published weights, or features or scores that they gave: --model NAME=ENCODER or "
    "NAME=FOLDER"
)
_TRAINED_MODEL = (
    "needs a video model that was trained on the labels of argmax (DistantSup.) or of the graph "
    "(Ours), see docs/training.md: --model NAME=own:CHECKPOINT"
)
_MODELS = {
    **dict.fromkeys(("MIL-NCE", "VideoCLIP"), (ANY, _PUBLISHED_MODEL)),
    **dict.fromkeys(("DistantSup.", "Ours"), ("video", _TRAINED_MODEL)),
}
"""Models of the paper's rows: their modality, and the reason where one is missing."""

Ranked: TypeAlias = Mapping[str, tuple[str, ...]]
"""Tasks of each video, the most probable first."""


def make_tasks_table(dataset: Dataset, encoder: Encoder, options: Options) -> Table:
    """Measure how often the true task of a video ranks first, or among the first five.

    As in the paper, a model of video labels each second with its best keystep, and narration is
    labelled by argmax and by path search; the latter is compared with controls without a graph.
    """
    vocabulary = choose_vocabulary(dataset, None)
    videos = tuple(track(dataset.videos, "reading"))
    task_of = {v.id: v.task for v in videos if v.task and v.task in vocabulary.tasks}
    if not task_of:
        raise DataError(
            f"{dataset.name}: must hold videos whose task is known and in the vocabulary, got "
            f"none of {len(videos)}; does the vocabulary come with tasks?"
        )
    shared = options.pretraining.check(options.models, {dataset.name: task_of})
    sections = _sections(replace(dataset, videos=videos), encoder, task_of, options)
    rows = [
        row
        for section, found in sections.items()
        for row in _section(section, found, task_of, options)
    ]
    notes = written_notes(
        "tasks",
        dataset=dataset.name,
        known=len(task_of),
        videos=len(videos),
        shown=len(set(task_of.values())),
        tasks=len(vocabulary.tasks),
        keysteps=len(vocabulary),
        fingerprint=vocabulary.fingerprint,
        encoder=encoder.options.name,
        graphs=_mined(options.graph, task_of),
        own=_OWN,
    )
    for section, found in sections.items():
        if 0 < (measured_on := len(next(iter(found.values()), ()))) < len(task_of):
            notes.append(f"{section}: measured on {measured_on} videos.")
    if _ONE_MODEL in sections:
        notes.append(
            f"{_ONE_MODEL}: scores {options.video_scores}; Ours is its path search there."
        )
    notes += written_notes("differences")
    title = "Table 3: task classification by mapping keysteps back to tasks"
    columns = (*_COLUMNS, _DIFFERENCE, *_BESIDE.columns)
    return Table("table3", title, columns, tuple(rows), (*notes, *shared))


def _sections(
    dataset: Dataset, encoder: Encoder, task_of: Mapping[str, str], options: Options
) -> dict[str, dict[str, Ranked]]:
    """Rank the tasks of each video by each method, by sections of the table."""
    vocabulary, videos = choose_vocabulary(dataset, None), tuple(dataset.videos)
    text, video = MODALITIES["text"], MODALITIES["video"]
    found: dict[str, dict[str, Ranked]] = {text: {}}
    if not is_silent(dataset, encoder):
        # Without narration, text has nothing to rank tasks by.
        narrated = tuple(one for one in videos if uses_vision(encoder) or one.transcript)
        scores = tuple(score(narrated, vocabulary, encoder))
        found[text] = _decoded(scores, vocabulary, task_of, options, "text")
        found[text] |= _own(narrated, vocabulary, task_of)
    wanted = tuple(one for one in videos if one.id in task_of)
    found[video] = _predicted(wanted, vocabulary, options, dataset.problems)
    if seen := options.scores.get("video"):
        found[_ONE_MODEL] = _decoded(seen, vocabulary, task_of, options, "video")
    return found


def _mined(graph: TaskGraph | None, task_of: Collection[str]) -> str:
    if graph is None:
        return "Graphs are mined on the same videos."
    where = mined_where(graph, set(task_of))
    return f"The graph was given, mined on {where}; that of {_OWN} is mined on the same videos."


def _decoded(
    scores: Sequence[Scores],
    vocabulary: Vocabulary,
    task_of: Mapping[str, str],
    options: Options,
    modality: str,
) -> dict[str, Ranked]:
    """Rank tasks by the labels of the paper's baseline, its method, and controls."""
    graph, least = options.graph or mine_graph(scores, vocabulary), options.threshold_of(modality)
    # Two decodings of one video model are not the two models that the paper compares.
    names = ("DistantSup.", "Ours") if modality == "text" else ("Argmax", "Path search")
    decoders: dict[str, Decoder] = {
        names[0]: Argmax(),
        names[1]: PathSearch(least),
        METHODS["no-graph"].name: HalvedGaps(least),
        METHODS["anchors"].name: AnchorsOnly(least),
        METHODS["hold"].name: ArgmaxHold(),
    }
    wanted = [one for one in scores if one.video in task_of]
    return {
        name: {one.video: rank_tasks(decoder.decode(one, graph)) for one in wanted}
        for name, decoder in decoders.items()
    }


def _own(
    videos: Sequence[Video], vocabulary: Vocabulary, task_of: Mapping[str, str]
) -> dict[str, Ranked]:
    """Rank tasks by our recogniser: by its labels, and by its task posterior."""
    scores = tuple(score(videos, vocabulary, load_encoder(TaskMarkov.encoder)))
    graph = learn_graph(scores, vocabulary)
    labels = [TaskMarkov().decode(one, graph) for one in scores if one.video in task_of]
    return {
        f"{_OWN}, by keysteps": {one.video: rank_tasks(one) for one in labels},
        f"{_OWN}, as it says": {one.video: tuple(one.tasks or ()) for one in labels},
    }


def _predicted(
    videos: Sequence[Video], vocabulary: Vocabulary, options: Options, problems: Problems
) -> dict[str, Ranked]:
    """Rank tasks by the best keystep that each model gives each second.

    Only videos that all models could encode count, so that their rows are comparable.
    """
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for name, model in options.models.items():
        scores = score(track(videos, f"scoring: {name}"), vocabulary, model, problems=problems)
        found[name] = {
            one.video: rank_tasks(Labels(one.video, best_keysteps(one), vocabulary, one.hop))
            for one in scores
        }
    common = set.intersection(*map(set, found.values())) if found else set()
    if found and not common:
        raise DataError(
            f"models must have scores of the same videos, got none in common to {', '.join(found)}"
        )
    return {name: {v: r for v, r in one.items() if v in common} for name, one in found.items()}


def _section(
    section: str, found: Mapping[str, Ranked], task_of: Mapping[str, str], options: Options
) -> Iterator[Row]:
    """Make the rows of a modality: those of the paper, filled or with a reason, and others."""
    of_video, of_text = section == MODALITIES["video"], section == MODALITIES["text"]
    ours = found.get("Ours", found.get("Path search"))
    for name in dict.fromkeys((*(_MODELS if of_video else ()), *found)):
        modality, reason = _MODELS.get(name, (ANY, "")) if of_video else ("text", "")
        cells: list[Cell] = [Cell(None, reason=reason) for _ in range(2)] + [NOTHING]
        if ranked := found.get(name):
            cells = [
                *_shares(ranked, task_of, options),
                _difference(ranked, ours, task_of, options),
            ]
        printed = _BESIDE.cells(name, modality) if of_video or of_text else (NOTHING, NOTHING)
        yield Row(section, name, (*cells, *printed))


def _difference(
    ranked: Ranked, ours: Ranked | None, task_of: Mapping[str, str], options: Options
) -> Cell:
    """Compute the difference to our accuracy over videos, with its bootstrap interval."""
    if ours is None or ranked is ours:
        return NOTHING
    right = [[one[video][:1] == (task_of[video],) for video in ours] for one in (ranked, ours)]
    first, second = np.asarray(right, np.float64)
    found = bootstrap_mean(second - first, seed=options.seed)
    return measured_cell(found.difference, "points", interval=(found.low, found.high))


def _shares(ranked: Ranked, task_of: Mapping[str, str], options: Options) -> Iterator[Cell]:
    """Measure the share of videos whose true task ranks first, and among the first five."""
    parts = min(options.parts, len(ranked))
    for first in (1, 5):

        def share(videos: Iterable[str], first: int = first) -> float:
            return float(np.mean([task_of[video] in ranked[video][:first] for video in videos]))

        error = over_splits(share, ranked, parts=parts, seed=options.seed).standard_error
        yield measured_cell(share(ranked), "percent", error)


# --- downstream ----------------------------------------------------------------------------

_PUBLISHED = tuple(dict.fromkeys(place.method for place in PRINTED if place.table == "downstream"))


@dataclass(frozen=True, eq=False)
class Divided:
    """Data set in two parts: to train heads on, and to measure them on."""

    name: str
    train: Dataset
    test: Dataset


def make_downstream_table(
    datasets: Iterable[Divided],
    backbones: Mapping[str, Encoder],
    options: ProbeOptions,
    problems: Problems | None = None,
    pretraining: Pretraining | None = None,
) -> Table:
    """Probe the features of each backbone on each data set.

    Parameters
    ----------
    problems
        Collects videos that cannot be encoded; if not given, the first is an error.
    pretraining
        Videos that the backbones were trained on, beside those listed in their checkpoints.
    """
    datasets = tuple(datasets)
    tests = {
        one.name: [v.id for v in one.test.videos if v.id in one.test.truth] for one in datasets
    }
    shared = (pretraining or Pretraining()).check(backbones, tests)
    rows: list[Row] = []
    notes: list[str] = []
    for divided in datasets:
        found = {
            name: _probed(divided, name, one, options, problems) for name, one in backbones.items()
        }
        for head in options.heads:
            rows += _rows(divided.name, head, found, options)
        notes += _notes(divided, found, options)
    measured = [Column(one, PROBES[one]) for one in options.probes]
    printed = [replace(one, group=f"{PAPER}, same data set and head") for one in measured]
    columns = (*measured, *printed)
    general = written_notes("downstream", **vars(options))
    title = "Table 4: keystep recognition (SR), task recognition (TR), keystep forecasting (SF)"
    return Table("table4", title, columns, tuple(rows), (*notes, *general, *shared))


def _probed(
    divided: Divided,
    name: str,
    backbone: Encoder,
    options: ProbeOptions,
    problems: Problems | None,
) -> dict[tuple[str, str], Probed]:
    videos = (*divided.train.videos, *divided.test.videos)
    encoded = encode_each(track(videos, f"features: {name}"), backbone, problems)
    features = {video.id: found for video, found in encoded}
    if not features:
        raise DataError(f"{name}: must have features of videos of {divided.name}, got none")
    jobs = probe(divided.train, divided.test, features, options)
    total = len(options.heads) * len(options.probes)
    return {(one.head, one.probe): one for one in track(jobs, f"probing: {name}", total)}


def _rows(
    dataset: str,
    head: str,
    found: Mapping[str, Mapping[tuple[str, str], Probed]],
    options: ProbeOptions,
) -> Iterator[Row]:
    section = f"{DATASETS.get(dataset, dataset)}, {HEADS[head]}"
    published = _PUBLISHED if dataset in DATASETS else ()
    for name in dict.fromkeys((*published, *found)):
        cells = [NOTHING for _ in options.probes]
        if name in found:
            probed = [found[name][head, one] for one in options.probes]
            cells = [measured_cell(one.accuracy, "percent", one.error) for one in probed]
        places = (PaperPlace("downstream", name, dataset, head, one) for one in options.probes)
        cells += [PRINTED.get(place, NOTHING) for place in places]
        yield Row(section, name, tuple(cells))


def _notes(
    divided: Divided,
    found: Mapping[str, Mapping[tuple[str, str], Probed]],
    options: ProbeOptions,
) -> Iterator[str]:
    for name, probed in found.items():
        for one in options.probes:
            first = probed[options.heads[0], one]
            yield (
                f"{divided.name}, {name}, {PROBES[one]}: trained on {first.trained_on:,} "
                f"examples, measured on {first.tested_on:,}, {first.classes} classes; always "
                f"saying the most frequent one gives {100 * first.chance:.1f}."
            )


def open_divided(source: str, options: ProbeOptions, problems: Problems) -> Divided:
    """Open a data set in two parts: by its own split, or at random where it has none."""
    kind = source.partition(":")[0]
    how: dict[str, Any] = {
        "listening": Listening(needed=False, uses_speech=False),
        "strict": False,
    }
    splits = find_published(kind).splits[1:] if kind in REGISTRY else ()
    parts = [open_source(source, split=part, **how) for part in splits or ("all",)]
    for part in parts:
        problems.take(part.problems)
    if len(parts) == 2:
        return divide(kind, *parts)
    [dataset] = parts
    return divide(dataset.name, *halves(dataset, share=options.share, seed=options.seed))


def divide(name: str, train: Dataset, test: Dataset) -> Divided:
    """Pair two parts of one data set under its name; a video in both would be a leak."""
    both = {video.id for video in train.videos} & {video.id for video in test.videos}
    if both:
        raise DataError(
            f"{name}: parts to train and to measure on must have no video in common, got "
            f"{len(both)}, such as {sorted(both)[0]!r}"
        )
    return Divided(
        name, replace(train, name=f"{name} (train)"), replace(test, name=f"{name} (test)")
    )
