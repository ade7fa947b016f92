"""The stages in a straight line, for people who do not want to think in stages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence, Sized
from pathlib import Path
from typing import TypeVar

from stepgraph.core import Dataset, Timeline, Video, Vocabulary
from stepgraph.datasets import open_source
from stepgraph.decoders import Decoder, checked_decode, load_decoder
from stepgraph.decoders.learning import learn_graph
from stepgraph.errors import DataError
from stepgraph.graph import TaskGraph
from stepgraph.ingest import Listening, open_video
from stepgraph.pipeline.scorers import looks, open_scorer, options_of
from stepgraph.problems import Problems
from stepgraph.progress import track
from stepgraph.scoring import Scorer, score, score_each
from stepgraph.vocabulary import make_vocabulary, read_vocabulary

_Item = TypeVar("_Item")


def mine(
    source: str | Path | Dataset,
    vocabulary: Vocabulary | Sequence[str] | str | Path | None = None,
    *,
    encoder: Scorer | None = None,
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
        What scores the videos; built-in MiniLM as stepgraph's own recogniser wants it, if not
        given.
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
    scorer = encoder or open_scorer()
    scores = score(dataset.videos, keysteps, scorer, problems=problems)
    graph = learn_graph(
        counted(scores, dataset.videos, "mining"),
        keysteps,
        min_score=min_score,
        max_gap=max_gap,
        encoder=options_of(scorer),
    )
    if not graph.mined_on:
        raise nothing_left(dataset, "a video that can be mined", problems)
    return graph


def nothing_left(dataset: Dataset, what: str, problems: Problems | None = None) -> DataError:
    """The error of a data set of which nothing can be used, with the reasons."""
    found = [some.summary() for some in (dataset.problems, problems) if some]
    why = f": {'; '.join(found)}" if found else ""
    return DataError(f"{dataset.name}: must hold {what}, got none{why}")


def recognize(
    video: Video | str | Path,
    graph: TaskGraph,
    *,
    decoder: Decoder | None = None,
    encoder: Scorer | None = None,
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
    scorer = encoder or open_scorer(graph=graph)
    listening = Listening(needed=not looks(scorer))
    opened = video if isinstance(video, Video) else open_video(video, listening=listening)
    [timeline] = recognize_all([opened], graph, decoder=decoder, encoder=scorer)
    return timeline


def recognize_all(
    videos: Iterable[Video],
    graph: TaskGraph,
    *,
    decoder: Decoder | None = None,
    encoder: Scorer | None = None,
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
    scorer = encoder or open_scorer(graph=graph)
    for video, scores in score_each(videos, graph.vocabulary, scorer, problems=problems):
        yield Timeline(video, checked_decode(decoder, scores, graph), scores)


def counted(items: Iterable[_Item], videos: Iterable[Video], label: str) -> Iterator[_Item]:
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
