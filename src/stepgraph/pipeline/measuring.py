"""Measure decoders on videos whose truth is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from stepgraph.core import Dataset, Scores
from stepgraph.decoders import Decoder, checked_decode
from stepgraph.decoders.learning import learn_graph
from stepgraph.errors import DataError
from stepgraph.evaluation.report import calibration_error, evaluate, task_accuracy
from stepgraph.export.report import Measured
from stepgraph.graph import TaskGraph
from stepgraph.pipeline import choose_vocabulary, counted, nothing_left
from stepgraph.pipeline.scorers import looks, open_scorer, options_of
from stepgraph.progress import track
from stepgraph.scoring import Scorer, score


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Several decoders measured on the same videos with the same graph.

    Attributes
    ----------
    dataset
        The videos that were measured.
    with_truth
        How many videos have a truth; those without usable scores were not measured.
    """

    dataset: Dataset
    graph: TaskGraph
    measured: tuple[Measured, ...]
    with_truth: int


def run_evaluation(
    dataset: Dataset,
    decoders: dict[str, Decoder],
    *,
    encoder: Scorer | None = None,
    graph: TaskGraph | None = None,
    mining: Callable[..., TaskGraph] = learn_graph,
) -> Evaluation:
    """Measure decoders on the videos of a data set that have a truth.

    Parameters
    ----------
    encoder
        What scores the videos; the graph's, or the paper's, if not given.
    graph
        One mined elsewhere; if not given, it is mined from all videos of the data set,
        without their truth.
    mining
        What mines the graph where none is given: called like :func:`~stepgraph.mine_graph`.
    """
    if not dataset.truth:
        raise DataError(
            f"{dataset.name}: must have a truth to be evaluated, got none; put a truth.csv "
            f"(video, start, end, keystep) and a steps.txt beside the transcripts"
        )
    vocabulary = choose_vocabulary(dataset, None)
    scorer = encoder or open_scorer(graph=graph, decoder="path-search")
    require_narration(dataset, scorer)
    stream = score(dataset.videos, vocabulary, scorer, problems=dataset.problems)
    scored = list(counted(stream, dataset.videos, "scoring"))
    known = [one for one in scored if one.video in dataset.truth]
    if not any(one.observed.any() for one in known):
        raise nothing_left(dataset, "videos with a truth that can be scored")
    mined = graph or mining(scored, vocabulary, encoder=options_of(scorer))
    where = _mined_where(mined, known)
    measured = tuple(
        _measure(name, decoder, known, dataset, mined, where) for name, decoder in decoders.items()
    )
    shown = {one.video for one in known}
    with_truth = [video for video in dataset.videos if video.id in dataset.truth]
    evaluated = replace(dataset, videos=[video for video in with_truth if video.id in shown])
    return Evaluation(evaluated, mined, measured, len(with_truth))


def require_narration(dataset: Dataset, scorer: Scorer) -> None:
    """Refuse to listen where nobody speaks; to find that out by scoring may take long."""
    if looks(scorer) or any(video.transcript for video in dataset.videos):
        return
    raise nothing_left(
        dataset,
        "narration to be heard (put transcripts beside the videos, look at them with --encoder, "
        "or bring --scores)",
    )


def _measure(
    name: str,
    decoder: Decoder,
    known: Sequence[Scores],
    dataset: Dataset,
    graph: TaskGraph,
    where: str,
) -> Measured:
    labels = [checked_decode(decoder, one, graph) for one in track(known, f"decoding: {name}")]
    report = replace(
        evaluate(labels, dataset.truth, decoder=name, graph_mined_on=where),
        task_accuracy=task_accuracy(labels, dataset.videos),
        calibration_error=calibration_error(labels, dataset.truth),
    )
    return Measured(name, report, {one.video: one for one in labels})


def _mined_where(graph: TaskGraph, evaluated: Sequence[Scores]) -> str:
    """Say in words how the mined and the evaluated videos overlap."""
    mined, shown = set(graph.mined_on), {scores.video for scores in evaluated}
    both = len(mined & shown)
    if mined == shown:
        return f"the {len(shown)} evaluated videos, without their truth"
    if not both:
        return f"{len(mined)} other videos"
    return f"{len(mined)} videos, {both} of them among the {len(shown)} evaluated"
