"""Which task a video shows, told from its labelled keysteps: the paper's task classification.

Only the task of each video must be known, not its keysteps; so this can be measured where the
other tables cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from stepgraph.core import Dataset, Labels, Scores, Video, Vocabulary
from stepgraph.decoders import Argmax, Decoder, PathSearch, TaskMarkov
from stepgraph.decoders.learning import learn_graph
from stepgraph.decoders.tasks import rank_tasks
from stepgraph.encoders import Encoder, load_encoder
from stepgraph.errors import DataError
from stepgraph.evaluation.report import over_splits
from stepgraph.experiments import paper
from stepgraph.experiments.notes import written_notes
from stepgraph.experiments.setting import Options
from stepgraph.experiments.table import NOTHING, Beside, Cell, Column, Row, Table, measured_cell
from stepgraph.graph import TaskGraph, mine_graph
from stepgraph.pipeline import choose_vocabulary
from stepgraph.progress import track
from stepgraph.scoring import score

_COLUMNS = (Column("acc1", "Acc@1"), Column("acc5", "Acc@5"))
_BESIDE = Beside("tasks", [paper.HOWTO100M], _COLUMNS)
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
        Row("", name, (NOTHING, NOTHING, *_BESIDE.cells(name, paper.ANY)))
        for name in ("MIL-NCE", "VideoCLIP")
    ]
    text = tuple(score(videos, vocabulary, encoder))
    for modality, scores in (("video", options.scores.get("video")), ("text", text)):
        if scores is not None:
            graph = options.graph or mine_graph(scores, vocabulary)
            rows += _rows(scores, graph, known, modality, options)
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


def _rows(
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
        cells = (*_cells(labels, known, options), *_BESIDE.cells(name, modality))
        yield Row(paper.MODALITIES[modality], name, cells)


def _own_rows(
    videos: Sequence[Video], vocabulary: Vocabulary, known: Mapping[str, str], options: Options
) -> Iterator[Row]:
    """Our recogniser, by the keysteps it finds and by the task it says."""
    scores = tuple(score(videos, vocabulary, load_encoder(TaskMarkov.encoder)))
    graph = learn_graph(scores, vocabulary)
    labels = [TaskMarkov().decode(one, graph) for one in scores if one.video in known]
    for how, ranking in (("by keysteps", rank_tasks), ("as it says", _said)):
        cells = (*_cells(labels, known, options, ranking), NOTHING, NOTHING)
        yield Row(paper.MODALITIES["text"], f"{_OWN}, {how}", cells)


def _said(labels: Labels) -> tuple[str, ...]:
    return tuple(labels.tasks or ())


def _cells(
    labels: Iterable[Labels],
    known: Mapping[str, str],
    options: Options,
    ranking: Callable[[Labels], tuple[str, ...]] = rank_tasks,
) -> Iterator[Cell]:
    ranked = {one.video: ranking(one) for one in labels}
    for first in (1, 5):
        yield _share({v: known[v] in tasks[:first] for v, tasks in ranked.items()}, options)


def _share(right: Mapping[str, bool], options: Options) -> Cell:
    def share(videos: Sequence[str]) -> float:
        return float(np.mean([right[video] for video in videos]))

    parts = min(options.parts, len(right))
    error = over_splits(share, right, parts=parts, seed=options.seed).standard_error
    return measured_cell(share(tuple(right)), "percent", error)
