"""The stages in a straight line, for people who do not want to think in stages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from stepgraph.core import Dataset, Labels, Scores, Timeline, Video, Vocabulary
from stepgraph.datasets import open_source
from stepgraph.decoders import DEFAULT_DECODER, Decoder, encoder_for, load_decoder
from stepgraph.encoders import KINDS, Encoder, EncoderOptions
from stepgraph.errors import ConfigError, DataError
from stepgraph.evaluation.report import Report, calibration_error, evaluate, task_accuracy
from stepgraph.graph import TaskGraph, mine_graph
from stepgraph.ingest import Listening, open_video
from stepgraph.problems import Problems
from stepgraph.progress import track
from stepgraph.scoring.fusion import Fused, open_encoder, score_with
from stepgraph.scoring.scales import to_scale
from stepgraph.scoring.stored_scores import read_scores
from stepgraph.vocabulary import make_vocabulary, read_vocabulary

_Item = TypeVar("_Item")


def mine(
    source: str | Path | Dataset,
    vocabulary: Vocabulary | Sequence[str] | str | Path | None = None,
    *,
    encoder: Encoder | Fused | None = None,
    min_score: float = -math.inf,
    max_gap: float = math.inf,
    problems: Problems | None = None,
) -> TaskGraph:
    """Mine a task graph from narrated videos.

    Parameters
    ----------
    source
        Whatever :func:`~stepgraph.open_source` opens, or an open data set.
    vocabulary
        The keysteps that may occur: a vocabulary, names, or a file of names.  If not given,
        the source must bring its own.
    encoder
        Built-in MiniLM as stepgraph's own recogniser wants it, if not given.
    min_score, max_gap
        See :func:`~stepgraph.mine_graph`.
    problems
        Where to note videos that cannot be encoded; if not given, the first is an error.

    Examples
    --------
    >>> graph = mine("demo")
    >>> len(graph.vocabulary), len(graph.mined_on)
    (49, 36)
    """
    dataset = source if isinstance(source, Dataset) else open_source(source)
    keysteps = choose_vocabulary(dataset, vocabulary)
    encoder = encoder or open_encoder(encoder_for(DEFAULT_DECODER))
    scores = score_with(dataset.videos, keysteps, encoder, problems=problems)
    return mine_graph(
        _counted(scores, dataset.videos, "mining"),
        keysteps,
        min_score=min_score,
        max_gap=max_gap,
        encoder=encoder.options,
    )


def recognize(
    video: Video | str | Path,
    graph: TaskGraph,
    *,
    decoder: Decoder | None = None,
    encoder: Encoder | Fused | None = None,
) -> Timeline:
    """Recognise the keysteps of one video.

    Parameters
    ----------
    video
        A video or transcript file, or an open video.
    decoder
        :class:`~stepgraph.TaskMarkov` if not given.
    encoder
        The one that the graph was mined with if not given.

    Examples
    --------
    >>> videos = {video.id: video for video in open_source("demo").videos}
    >>> timeline = recognize(videos["chair-1"], mine("demo"))
    >>> next(iter(timeline.labels.tasks))
    'Repair a wobbly chair'
    """
    encoder = encoder or encoder_of(graph)
    listening = Listening(needed=not encoder.options.looks)
    opened = video if isinstance(video, Video) else open_video(video, listening=listening)
    [timeline] = recognize_all([opened], graph, decoder=decoder, encoder=encoder)
    return timeline


def recognize_all(
    videos: Iterable[Video],
    graph: TaskGraph,
    *,
    decoder: Decoder | None = None,
    encoder: Encoder | Fused | None = None,
    problems: Problems | None = None,
) -> Iterator[Timeline]:
    """Recognise the keysteps of many videos, one after the other.

    Parameters
    ----------
    problems
        Where to note a video that cannot be encoded, so that the others go on; if not given,
        the first such video is an error.
    """
    decoder = decoder or load_decoder()
    encoder = encoder or encoder_of(graph)
    queue: list[Video] = []

    def remembered() -> Iterator[Video]:
        for video in videos:
            queue.append(video)
            yield video

    for scores in score_with(remembered(), graph.vocabulary, encoder, problems=problems):
        while queue[0].id != scores.video:
            queue.pop(0)  # it could not be encoded
        yield Timeline(queue.pop(0), decoder.decode(scores, graph), scores)


def encoder_of(graph: TaskGraph) -> Encoder | Fused:
    """Make the encoder that a graph was mined with; a file must not choose code to run."""
    options = graph.encoder or EncoderOptions()
    if options.is_function:
        names = [name for name in (options.name, options.also) if name and ":" in name]
        function = next(name for name in names if name.partition(":")[0] not in KINDS)
        raise ConfigError(
            f"the graph must be used with the function it was mined with, {function!r}; "
            f"name it with --encoder to have it run"
        )
    return open_encoder(options)


def _counted(items: Iterable[_Item], videos: Iterable[Video], label: str) -> Iterator[_Item]:
    """Show progress in videos; how many there are is known unless they are streamed."""
    return track(items, label, len(videos) if isinstance(videos, Sized) else None)


def choose_vocabulary(
    dataset: Dataset, vocabulary: Vocabulary | Sequence[str] | str | Path | None
) -> Vocabulary:
    """The vocabulary asked for, or the one that the data set brings."""
    if isinstance(vocabulary, Vocabulary):
        return vocabulary
    if isinstance(vocabulary, str | Path):
        return read_vocabulary(vocabulary)
    if vocabulary is not None:
        return make_vocabulary(vocabulary)
    if dataset.vocabulary is None:
        raise DataError(
            f"{dataset.name}: must come with a vocabulary, got none; write the keysteps one a "
            f"line into a file and pass it with --vocabulary steps.txt"
        )
    return dataset.vocabulary


@dataclass(frozen=True)
class StoredScores:
    """Scores on disk, and which of :data:`~stepgraph.scoring.scales.SCALES` to bring them to."""

    path: Path
    scale: str = "raw"
    seconds_per_row: float = 1.0

    def read(self, dataset: Dataset, vocabulary: Vocabulary) -> Iterator[Scores]:
        """Scores of the videos of a data set; what is wrong with them is among its problems."""
        stored = read_scores(
            dataset.videos,
            vocabulary,
            self.path,
            seconds_per_row=self.seconds_per_row,
            problems=dataset.problems,
        )
        return (to_scale(one, self.scale) for one in stored)


@dataclass(frozen=True, eq=False)
class Measured:
    """One decoder's labels by video, and what they are worth."""

    name: str
    labels: dict[str, Labels]
    report: Report


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Several decoders measured on the same videos with the same graph."""

    dataset: Dataset
    graph: TaskGraph
    measured: tuple[Measured, ...]


def run_evaluation(
    dataset: Dataset,
    decoders: dict[str, Decoder],
    *,
    encoder: Encoder | Fused | None = None,
    graph: TaskGraph | None = None,
    scores: StoredScores | None = None,
    mining: Callable[..., TaskGraph] = mine_graph,
) -> Evaluation:
    """Measure decoders on the videos of a data set that have a truth.

    Parameters
    ----------
    graph
        One mined elsewhere; if not given, it is mined from all videos of the data set,
        without their truth.
    scores
        Stored scores to take instead of encoding.
    mining
        What mines the graph where none is given: called like :func:`~stepgraph.mine_graph`.
    """
    if not dataset.truth:
        raise DataError(
            f"{dataset.name}: must have a truth to be evaluated, got none; put a truth.csv "
            f"(video, start, end, keystep) and a steps.txt beside the transcripts"
        )
    vocabulary = choose_vocabulary(dataset, None)
    if scores is not None:
        options = None
        stream = scores.read(dataset, vocabulary)
    else:
        encoder = encoder or (encoder_of(graph) if graph else open_encoder(EncoderOptions()))
        options = encoder.options
        stream = score_with(dataset.videos, vocabulary, encoder, problems=dataset.problems)
    scored = list(_counted(stream, dataset.videos, "scoring"))
    mined = graph or mining(scored, vocabulary, encoder=options)
    known = [one for one in scored if one.video in dataset.truth]
    if not known:
        why = f": {dataset.problems.summary()}" if dataset.problems else ""
        raise DataError(
            f"{dataset.name}: must hold videos with a truth that can be used, got none{why}"
        )
    where = _mined_where(mined, known)
    measured = []
    for name, decoder in decoders.items():
        labels = [decoder.decode(one, mined) for one in track(known, f"decoding: {name}")]
        report = evaluate(labels, dataset.truth, decoder=name, graph_mined_on=where)
        report = replace(
            report,
            task_accuracy=task_accuracy(labels, dataset.videos),
            calibration_error=calibration_error(labels, dataset.truth),
        )
        measured.append(Measured(name, {one.video: one for one in labels}, report))
    evaluated = replace(dataset, videos=[v for v in dataset.videos if v.id in dataset.truth])
    return Evaluation(evaluated, mined, tuple(measured))


def _mined_where(graph: TaskGraph, evaluated: Sequence[Scores]) -> str:
    """Say in words how the mined and the evaluated videos overlap."""
    mined, shown = set(graph.mined_on), {scores.video for scores in evaluated}
    both = len(mined & shown)
    if mined == shown:
        return f"the {len(shown)} evaluated videos, without their truth"
    if not both:
        return f"{len(mined)} other videos"
    return f"{len(mined)} videos, {both} of them among the {len(shown)} evaluated"
