"""Mining, recognition and evaluation in one call each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set, Sized
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from stepgraph.core import Dataset, Timeline, Video, Vocabulary
from stepgraph.datasets import open_source
from stepgraph.decoders import (
    DEFAULT_DECODER,
    Decoder,
    TaskMarkov,
    checked_decode,
    encoder_for,
    load_decoder,
)
from stepgraph.decoders.learning import learn_graph
from stepgraph.encoders import EncoderOptions, full_name
from stepgraph.encoders.model_folders import require_named
from stepgraph.encoders.stored_features import StoredEncoder
from stepgraph.errors import ConfigError, DataError
from stepgraph.evaluation.report import calibration_error, evaluate, task_accuracy
from stepgraph.export.annotations import Annotations, annotate
from stepgraph.export.report import MeasuredMethod
from stepgraph.graph import TaskGraph
from stepgraph.ingest import Listening, open_video
from stepgraph.problems import Problems
from stepgraph.progress import track
from stepgraph.scoring import Scorer, StoredScores, score, score_each
from stepgraph.scoring.fusion import Fused, open_encoder
from stepgraph.vocabulary import make_vocabulary, read_vocabulary

_Item = TypeVar("_Item")
TRUTH = "a truth (truth.csv with video, start, end, keystep, beside transcripts and steps.txt)"
"""Description of the truth that a data set must hold to be measured."""


def mine(
    source: str | Path | Dataset,
    vocabulary: Vocabulary | Sequence[str] | str | Path | None = None,
    *,
    encoder: Scorer | None = None,
    decoder: TaskMarkov | None = None,
    problems: Problems | None = None,
    annotations: Annotations | None = None,
    **mining: float,
) -> TaskGraph:
    """Mine a task graph from narrated videos.

    Parameters
    ----------
    source
        Anything that :func:`~stepgraph.open_source` opens, or an open data set.
    vocabulary
        The keysteps that may occur: a vocabulary, names, or a file of names.  If not given,
        the source must bring its own.
    encoder
        Scorer of the videos; built-in MiniLM with the recogniser's options, if not given.
    decoder
        Options of the recogniser whose parameters are fitted; the defaults if not given.
        ``TaskMarkov(order_weight=0)`` ignores the listed order.
    problems
        Collects videos that cannot be encoded; if not given, the first is an error.
    annotations
        Annotation by people (:func:`read_annotations`), which clamps the rows that it covers.
    mining
        ``min_score`` and ``max_gap``: see :func:`~stepgraph.mine_graph`.

    Examples
    --------
    >>> graph = mine("demo")
    >>> len(graph.vocabulary), len(graph.mined_on)
    (49, 36)
    """
    dataset = source if isinstance(source, Dataset) else open_source(source)
    keysteps = choose_vocabulary(dataset, vocabulary)
    scorer = encoder or open_scorer()
    require_narration(dataset, scorer)
    scores = (
        annotate(one, annotations)
        for one in score(dataset.videos, keysteps, scorer, problems=problems)
    )
    graph = learn_graph(
        counted(scores, dataset.videos, "mining"),
        keysteps,
        decoder=decoder,
        encoder=options_of(scorer),
        **mining,
    )
    if not graph.mined_on:
        raise nothing_left(dataset, "a video that can be mined", problems)
    return graph


def nothing_left(dataset: Dataset, what: str, problems: Problems | None = None) -> DataError:
    """Make the error of a data set without any usable video, with the reasons."""
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
        Scorer of the video; the encoder that the graph was mined with, if not given.

    Examples
    --------
    >>> videos = {video.id: video for video in open_source("demo").videos}
    >>> timeline = recognize(videos["chair-1"], mine("demo"))
    >>> next(iter(timeline.labels.tasks))
    'Repair a wobbly chair'
    """
    scorer = encoder or open_scorer(graph=graph)
    listening = Listening(needed=not uses_vision(scorer), uses_speech=uses_speech(scorer))
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
    annotations: Annotations | None = None,
) -> Iterator[Timeline]:
    """Recognise the keysteps of many videos, one after the other.

    Parameters
    ----------
    problems
        Collects videos that cannot be encoded, so that the others go on; if not given, the
        first such video is an error.
    annotations
        Annotation by people: it clamps the rows that it covers; the others are recognised.
    """
    decoder = decoder or load_decoder()
    scorer = encoder or open_scorer(graph=graph)
    for video, scores in score_each(videos, graph.vocabulary, scorer, problems=problems):
        annotated = annotate(scores, annotations)
        yield Timeline(video, checked_decode(decoder, annotated, graph), annotated)


def counted(items: Iterable[_Item], videos: Iterable[Video], label: str) -> Iterator[_Item]:
    """Show progress in videos, with their number unless they are streamed."""
    return track(items, label, len(videos) if isinstance(videos, Sized) else None)


def choose_vocabulary(
    dataset: Dataset, vocabulary: Vocabulary | Sequence[str] | str | Path | None
) -> Vocabulary:
    """Return the given vocabulary, or that of the data set."""
    if isinstance(vocabulary, Vocabulary):
        return vocabulary
    if isinstance(vocabulary, str | Path):
        return read_vocabulary(vocabulary)
    if vocabulary is not None:
        return make_vocabulary(vocabulary)
    if dataset.vocabulary is None:
        raise DataError(
            f"{dataset.name}: must come with a vocabulary, got none; write the keysteps one a "
            f"line into a file, and give it as vocabulary (--vocabulary)"
        )
    return dataset.vocabulary


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Measurements of several decoders on the same videos with the same graph.

    Attributes
    ----------
    dataset
        Data set of the videos that were measured.
    with_truth
        Number of videos with a truth; those without usable scores were not measured.
    """

    dataset: Dataset
    graph: TaskGraph
    measured: tuple[MeasuredMethod, ...]
    with_truth: int


def run_evaluation(
    dataset: Dataset,
    decoders: dict[str, Decoder],
    *,
    encoder: Scorer | None = None,
    graph: TaskGraph | None = None,
    mining: Callable[..., TaskGraph] = learn_graph,
    background_rows: bool = True,
) -> Evaluation:
    """Measure decoders on the videos of a data set that have a truth.

    Parameters
    ----------
    encoder
        Scorer of the videos; the graph's encoder, or the paper's, if not given.
    graph
        Graph mined elsewhere; if not given, it is mined from all videos of the data set,
        without their truth.
    mining
        Function that mines a missing graph, called like :func:`~stepgraph.mine_graph`.
    background_rows
        See :func:`~stepgraph.evaluate`.
    """
    if not dataset.truth:
        raise nothing_left(dataset, TRUTH)
    vocabulary = choose_vocabulary(dataset, None)
    scorer = encoder or open_scorer(graph=graph, decoder="path-search")
    require_narration(dataset, scorer)
    stream = score(dataset.videos, vocabulary, scorer, problems=dataset.problems)
    scored = list(counted(stream, dataset.videos, "scoring"))
    with_scores = [one for one in scored if one.video in dataset.truth]
    if not any(one.observed.any() for one in with_scores):
        raise nothing_left(dataset, "videos with a truth that can be scored")
    mined = graph or mining(scored, vocabulary, encoder=options_of(scorer))
    where = mined_where(mined, {one.video for one in with_scores})
    measured = []
    for name, decoder in decoders.items():
        labels = [
            checked_decode(decoder, one, mined) for one in track(with_scores, f"decoding: {name}")
        ]
        how: dict[str, Any] = {"graph_mined_on": where, "background_rows": background_rows}
        report = replace(
            evaluate(labels, dataset.truth, decoder=name, **how),
            task_accuracy=task_accuracy(labels, dataset.videos),
            calibration_error=calibration_error(labels, dataset.truth),
        )
        measured.append(MeasuredMethod(name, report, {one.video: one for one in labels}))
    shown = {one.video for one in with_scores}
    with_truth = [video for video in dataset.videos if video.id in dataset.truth]
    evaluated = replace(dataset, videos=[video for video in with_truth if video.id in shown])
    return Evaluation(evaluated, mined, tuple(measured), len(with_truth))


def is_silent(dataset: Dataset, scorer: Scorer) -> bool:
    """Check that scoring needs narration and no video has any; streamed videos pass."""
    streamed = isinstance(dataset.videos, Iterator)
    return not (
        uses_vision(scorer) or streamed or any(video.transcript for video in dataset.videos)
    )


def require_narration(dataset: Dataset, scorer: Scorer) -> None:
    """Refuse videos without any narration early, before a long run of scoring."""
    if is_silent(dataset, scorer):
        ways = "put transcripts beside the videos, or give a visual --encoder, or --scores"
        raise nothing_left(dataset, f"narration ({ways})")


def mined_where(graph: TaskGraph, shown: Set[str]) -> str:
    """Describe the overlap of the mined and the evaluated videos."""
    mined = set(graph.mined_on)
    both = len(mined & shown)
    if mined == shown:
        return f"the {len(shown)} evaluated videos, without their truth"
    if not both:
        return f"{len(mined)} other videos"
    return f"{len(mined)} videos, {both} of them among the {len(shown)} evaluated"


@dataclass(frozen=True)
class ScorerChoice:
    """Scoring options that a user gave; the rest follows from the graph and the decoder.

    Attributes
    ----------
    encoder
        Given options of :class:`~stepgraph.encoders.EncoderOptions`.
    features
        Stored features to use instead of encoding the videos with the first encoder.
    scores
        Stored scores to use instead of any encoder.
    scale, seconds_per_row, all_videos
        See :class:`~stepgraph.scoring.StoredScores`.
    problems
        Collects problems of stored features.
    """

    encoder: Mapping[str, Any] = field(default_factory=dict)
    features: Path | None = None
    scores: Path | None = None
    scale: str = "raw"
    seconds_per_row: float = 1.0
    all_videos: bool = False
    problems: Problems | None = None

    def __post_init__(self) -> None:
        if self.scores is not None and (self.encoder or self.features is not None):
            raise ConfigError(
                "scores must come from one source, got stored scores and an encoder; "
                "remove the scores (--scores), or the options of the encoder"
            )
        if self.scores is None and self.scale != "raw":
            raise ConfigError("scale requires scores (--scores)")
        stored = self.scores is not None or self.features is not None
        if (self.all_videos or self.seconds_per_row != 1.0) and not stored:
            what = "all_videos (--all-videos)" if self.all_videos else "seconds_per_row (--every)"
            raise ConfigError(f"{what} requires scores (--scores) or features (--features)")


def open_scorer(
    choice: ScorerChoice | None = None,
    *,
    graph: TaskGraph | None = None,
    decoder: str = DEFAULT_DECODER,
) -> Scorer:
    """Open the scorer that the options, the graph or the decoder determine.

    Given options come first, then those that the graph was mined with, then those that suit the
    decoder.  Without a graph, any option of the encoder other than its precision starts from a
    plain encoder.
    """
    choice = choice or ScorerChoice()
    if choice.scores is not None:
        return StoredScores(choice.scores, choice.scale, choice.seconds_per_row, choice.all_videos)
    if choice.features is None:
        return open_encoder(encoder_options(choice.encoder, graph, decoder))
    encoder = None  # the folder names its encoder, or has the keysteps
    if choice.encoder.keys() & {"name", "also"}:
        encoder = open_encoder(encoder_options(choice.encoder, graph, decoder))
    stored = StoredEncoder(
        choice.features,
        encoder.first if isinstance(encoder, Fused) else encoder,
        seconds_per_row=choice.seconds_per_row,
        problems=choice.problems,
        all_videos=choice.all_videos,
    )
    return replace(encoder, first=stored) if isinstance(encoder, Fused) else stored


def encoder_options(
    given: Mapping[str, Any], graph: TaskGraph | None = None, decoder: str = DEFAULT_DECODER
) -> EncoderOptions:
    """Return the options of the encoder to open; see :func:`open_scorer`."""
    mined = graph.encoder if graph is not None else None
    given = dict(given) | {one: full_name(given[one]) for one in ("name", "also") if one in given}
    named = (given.get("name"), given.get("also"))
    # Naming the same encoder again allows it, and does not choose another one.
    if mined is not None and (named[0] is None or named == (mined.name, mined.also)):
        meant = replace(mined, **given)
        require_named(meant, "encoder of the graph", typed=named)
        return meant
    own = encoder_for(decoder)
    if not given.keys() - {"precision"}:
        return replace(own, **given)
    of_text = {"context", "task_names", "blend"}
    reads = str(named[0]).startswith("ocr:")
    if ("also" in given or reads) and not of_text & given.keys():
        # Encoders of sentences, alone or beside another one, take the decoder's options.
        given = {name: getattr(own, name) for name in of_text} | given
    return EncoderOptions(**given)


def options_of(scorer: Scorer) -> EncoderOptions | None:
    """Return the options of the encoder behind scores, or None for stored scores."""
    return None if isinstance(scorer, StoredScores) else scorer.options


def uses_speech(scorer: Scorer) -> bool:
    """Check whether scores need narration, so that speech recognition is worth its time."""
    options = options_of(scorer)
    return options is not None and options.uses_speech and not options.is_function


def uses_vision(scorer: Scorer) -> bool:
    """Check whether videos are scored without their narration."""
    options = options_of(scorer)
    return options is None or options.uses_vision
