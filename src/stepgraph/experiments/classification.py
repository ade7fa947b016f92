"""Which task a video shows, told from its labelled keysteps: the paper's task classification.

Only the task of each video must be known, not its keysteps; so this can be measured where the
other tables cannot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from stepgraph.core import Dataset, Labels, Scores, Video, Vocabulary
from stepgraph.decoders import Argmax, Decoder, PathSearch, TaskMarkov
from stepgraph.decoders.tasks import rank_tasks
from stepgraph.encoders import Encoder, load_encoder
from stepgraph.errors import DataError
from stepgraph.evaluation.metrics import split_standard_error
from stepgraph.evaluation.report import split_videos
from stepgraph.experiments import paper
from stepgraph.experiments.setting import Options
from stepgraph.experiments.table import (
    MEASURED,
    NOTHING,
    PAPER,
    Cell,
    Column,
    Row,
    Table,
    measured_cell,
)
from stepgraph.graph import TaskGraph, mine_graph
from stepgraph.pipeline import choose_vocabulary
from stepgraph.progress import track
from stepgraph.scoring import score

_COLUMNS = (
    Column("acc1", "Acc@1", MEASURED),
    Column("acc5", "Acc@5", MEASURED),
    Column("acc1", "Acc@1", f"{PAPER}, HowTo100M"),
    Column("acc5", "Acc@5", f"{PAPER}, HowTo100M"),
)
_OWN = "stepgraph's own"

Ranking = Callable[[Labels], tuple[str, ...]]


def make_tasks_table(dataset: Dataset, encoder: Encoder, options: Options) -> Table:
    """Measure how often the task of a video is the first, or among the first five."""
    vocabulary = choose_vocabulary(dataset, None)
    videos = tuple(track(dataset.videos, "reading"))
    known = {video.id: video.task for video in videos if video.task in vocabulary.tasks}
    if not known:
        raise DataError(
            f"{dataset.name}: must hold videos whose task is known and in the vocabulary, got "
            f"none of {len(videos)}; does the vocabulary come with tasks?"
        )
    rows = [
        Row("", name, (NOTHING, NOTHING, *_printed(name, paper.ANY)))
        for name in ("MIL-NCE", "VideoCLIP")
    ]
    text = tuple(score(videos, vocabulary, encoder))
    for modality, scores in (("video", options.scores.get("video")), ("text", text)):
        if scores is not None:
            threshold = options.threshold_of(modality)
            rows += _measured(scores, known, modality, (vocabulary, threshold, options))
    rows += _own(videos, known, vocabulary, options)
    notes = _notes(dataset, videos, known, vocabulary, encoder)
    title = "Table 3: task classification by mapping keysteps back to tasks"
    return Table("tasks", title, _COLUMNS, tuple(rows), tuple(notes))


def _measured(
    scores: Sequence[Scores],
    known: Mapping[str, str | None],
    modality: str,
    how: tuple[Vocabulary, float, Options],
) -> Iterator[Row]:
    vocabulary, threshold, options = how
    graph = options.graph or mine_graph(scores, vocabulary)
    section = paper.MODALITIES[modality]
    decoders: dict[str, Decoder] = {"DistantSup.": Argmax(), "Ours": PathSearch(threshold)}
    for name, decoder in decoders.items():
        cells = _cells(scores, known, (decoder, graph, rank_tasks), options)
        yield Row(section, name, (*cells, *_printed(name, modality)))


def _own(
    videos: Sequence[Video],
    known: Mapping[str, str | None],
    vocabulary: Vocabulary,
    options: Options,
) -> Iterator[Row]:
    """Our recogniser, by the keysteps it finds and by the task it says."""
    encoder = load_encoder(TaskMarkov.encoder)
    scores = tuple(score(videos, vocabulary, encoder))
    graph = mine_graph(scores, vocabulary)
    said: Ranking = lambda labels: tuple(labels.tasks or ())  # noqa: E731 - one line says it
    for name, ranking in ((f"{_OWN}, by keysteps", rank_tasks), (f"{_OWN}, as it says", said)):
        cells = _cells(scores, known, (TaskMarkov(), graph, ranking), options)
        yield Row(paper.MODALITIES["text"], name, (*cells, NOTHING, NOTHING))


def _cells(
    scores: Iterable[Scores],
    known: Mapping[str, str | None],
    how: tuple[Decoder, TaskGraph, Ranking],
    options: Options,
) -> tuple[Cell, Cell]:
    decoder, graph, ranking = how
    place = {
        one.video: _place(ranking(decoder.decode(one, graph)), known[one.video])
        for one in scores
        if one.video in known
    }
    parts = min(options.parts, len(place))
    groups = split_videos(place, parts, seed=options.seed) if parts > 1 else []

    def cell(first: int) -> Cell:
        right = {video: rank < first for video, rank in place.items()}
        shares = [float(np.mean([right[video] for video in group])) for group in groups]
        error = split_standard_error(shares) if groups else math.nan
        value = float(np.mean(list(right.values())))
        return measured_cell(value, "percent", None if math.isnan(error) else error)

    return cell(1), cell(5)


def _place(ranking: Sequence[str], task: str | None) -> int:
    return ranking.index(task) if task in ranking else len(ranking) + 5


def _printed(method: str, modality: str) -> tuple[Cell, Cell]:
    def cell(metric: str) -> Cell:
        place = paper.Cell("tasks", method, paper.HOWTO100M, modality, metric)
        number = paper.PRINTED.get(place)
        return NOTHING if number is None else Cell(number.value, number.error, text=number.text)

    return cell("acc1"), cell("acc5")


def _notes(
    dataset: Dataset,
    videos: Sequence[Video],
    known: Mapping[str, str | None],
    vocabulary: Vocabulary,
    encoder: Encoder,
) -> Iterator[str]:
    shown = len(set(known.values()))
    yield (
        f"Measured here: {dataset.name}, {len(known)} of {len(videos)} videos, those whose task "
        f"is in the vocabulary: {shown} of its {len(vocabulary.tasks)} tasks, "
        f"{len(vocabulary)} keysteps (fingerprint {vocabulary.fingerprint}). "
        f"Encoder: {encoder.options.name}."
    )
    yield (
        "Each labelled row votes for the tasks that list its keystep; no label of a task or a "
        "keystep was used. Graphs are mined on the same videos."
    )
    yield f"± is the standard error over random parts of the videos. {_OWN}: docs/recognizer.md."
    yield (
        "Paper: on the validation split of HowTo100M, 1,059 tasks and 10,588 keysteps, with its "
        "own encoders; for orientation, not for comparison."
    )
