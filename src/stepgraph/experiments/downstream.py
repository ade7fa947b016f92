"""The paper's task classification, and its downstream table.

Which task a video shows is told from its labelled keysteps.  Only the task of each video must be
known, not its keysteps; so this can be measured where the other tables cannot.  What frozen
features are worth is told from any backbone whose features are stored, each a row that can be
filled; the paper's rows stand beside, filled or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stepgraph.core import Dataset, Scores, Video, Vocabulary
from stepgraph.decoders import Argmax, Decoder, PathSearch, TaskMarkov
from stepgraph.decoders.learning import learn_graph
from stepgraph.decoders.tasks import rank_tasks
from stepgraph.encoders import Encoder, load_encoder
from stepgraph.encoders.each import encode_each
from stepgraph.errors import DataError
from stepgraph.evaluation.report import over_splits
from stepgraph.experiments.methods import written_notes
from stepgraph.experiments.probing import Probed, ProbeOptions, probe
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
    Place,
    Row,
    Table,
    measured_cell,
)
from stepgraph.graph import TaskGraph, mine_graph
from stepgraph.pipeline import choose_vocabulary, is_silent
from stepgraph.problems import Problems
from stepgraph.progress import track
from stepgraph.scoring import score

_COLUMNS = (Column("acc1", "Acc@1"), Column("acc5", "Acc@5"))
_BESIDE = Beside("tasks", [HOWTO100M], _COLUMNS)
_OWN = "stepgraph's own"


def make_tasks_table(dataset: Dataset, encoder: Encoder, options: Options) -> Table:
    """Measure how often the task of a video is the first, or among the first five."""
    vocabulary = choose_vocabulary(dataset, None)
    videos = tuple(track(dataset.videos, "reading"))
    known = {v.id: v.task for v in videos if v.task and v.task in vocabulary.tasks}
    if not known:
        raise DataError(
            f"{dataset.name}: must hold videos whose task is known and in the vocabulary, got "
            f"none of {len(videos)}; does the vocabulary come with tasks?"
        )
    rows = [
        Row("", name, (NOTHING, NOTHING, *_BESIDE.cells(name, ANY)))
        for name in ("MIL-NCE", "VideoCLIP")
    ]
    silent = is_silent(dataset, encoder)
    text = None if silent else tuple(score(videos, vocabulary, encoder))
    for modality, scores in (("video", options.scores.get("video")), ("text", text)):
        if scores is not None:
            graph = options.graph or mine_graph(scores, vocabulary)
            rows += _task_rows(scores, graph, known, modality, options)
    if not silent:
        rows += _own_rows(videos, vocabulary, known, options)
    given = f"The graph was given; that of {_OWN} is mined on the same videos."
    notes = written_notes(
        "tasks",
        dataset=dataset.name,
        known=len(known),
        videos=len(videos),
        shown=len(set(known.values())),
        tasks=len(vocabulary.tasks),
        keysteps=len(vocabulary),
        fingerprint=vocabulary.fingerprint,
        encoder=encoder.options.name,
        graphs=given if options.graph is not None else "Graphs are mined on the same videos.",
        own=_OWN,
    )
    title = "Table 3: task classification by mapping keysteps back to tasks"
    return Table("tasks", title, (*_COLUMNS, *_BESIDE.columns), tuple(rows), tuple(notes))


def _task_rows(
    scores: Iterable[Scores],
    graph: TaskGraph,
    known: Mapping[str, str],
    modality: str,
    options: Options,
) -> Iterator[Row]:
    search = PathSearch(options.threshold_of(modality))
    decoders: dict[str, Decoder] = {"DistantSup.": Argmax(), "Ours": search}
    for name, decoder in decoders.items():
        labels = [decoder.decode(one, graph) for one in scores if one.video in known]
        ranked = {one.video: rank_tasks(one) for one in labels}
        cells = (*_shares(ranked, known, options), *_BESIDE.cells(name, modality))
        yield Row(MODALITIES[modality], name, cells)


def _own_rows(
    videos: Sequence[Video], vocabulary: Vocabulary, known: Mapping[str, str], options: Options
) -> Iterator[Row]:
    """Our recogniser, by the keysteps it finds and by the task it says."""
    scores = tuple(score(videos, vocabulary, load_encoder(TaskMarkov.encoder)))
    graph = learn_graph(scores, vocabulary)
    labels = [TaskMarkov().decode(one, graph) for one in scores if one.video in known]
    found = {one.video: rank_tasks(one) for one in labels}
    said = {one.video: tuple(one.tasks or ()) for one in labels}
    for how, ranked in (("by keysteps", found), ("as it says", said)):
        cells = (*_shares(ranked, known, options), NOTHING, NOTHING)
        yield Row(MODALITIES["text"], f"{_OWN}, {how}", cells)


def _shares(
    ranked: Mapping[str, tuple[str, ...]], known: Mapping[str, str], options: Options
) -> Iterator[Cell]:
    """How often the task is the first, and among the first five."""
    parts = min(options.parts, len(ranked))
    for first in (1, 5):

        def share(videos: Iterable[str], first: int = first) -> float:
            return float(np.mean([known[video] in ranked[video][:first] for video in videos]))

        error = over_splits(share, ranked, parts=parts, seed=options.seed).standard_error
        yield measured_cell(share(ranked), "percent", error)


# --- downstream ----------------------------------------------------------------------------

_PUBLISHED = tuple(dict.fromkeys(place.method for place in PRINTED if place.table == "downstream"))


@dataclass(frozen=True, eq=False)
class Divided:
    """A data set in two parts: to train heads on, and to measure them on."""

    name: str
    train: Dataset
    test: Dataset


def make_downstream_table(
    datasets: Iterable[Divided],
    backbones: Mapping[str, Encoder],
    options: ProbeOptions,
    problems: Problems | None = None,
) -> Table:
    """Probe the features of each backbone on each data set.

    Parameters
    ----------
    problems
        Where to note a video that cannot be encoded; if not given, the first is an error.
    """
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
    return Table("downstream", title, columns, tuple(rows), (*notes, *general))


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
        places = (Place("downstream", name, dataset, head, one) for one in options.probes)
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


def divide(name: str, train: Dataset, test: Dataset) -> Divided:
    """Name two parts of one data set after it; a video in both would be a leak."""
    both = {video.id for video in train.videos} & {video.id for video in test.videos}
    if both:
        raise DataError(
            f"{name}: parts to train and to measure on must have no video in common, got "
            f"{len(both)}, such as {sorted(both)[0]!r}"
        )
    return Divided(
        name, replace(train, name=f"{name} (train)"), replace(test, name=f"{name} (test)")
    )
