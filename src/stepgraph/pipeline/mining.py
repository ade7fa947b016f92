"""Mine a corpus in shards.

Counts are whole numbers and the other statistics add up exactly, so the graph is bit for bit
that of one process.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from stepgraph.core import Dataset, Features, Scores, Video, Vocabulary
from stepgraph.decoders import TaskMarkov
from stepgraph.decoders.learning import ParameterFit, SentenceSample, fit_classifiers
from stepgraph.encoders import WORDED
from stepgraph.encoders.encoding import encode_each
from stepgraph.export.annotations import Annotations, annotate
from stepgraph.files.arrays import read_arrays
from stepgraph.files.disk import read_json, replacing, write_text
from stepgraph.graph import TaskGraph, mine_graph
from stepgraph.graph.saving import load_graph, save_graph
from stepgraph.graph.traces import Sample
from stepgraph.pipeline import nothing_left, require_narration
from stepgraph.pipeline.shards import (
    Engine,
    Job,
    Piece,
    ShardResult,
    Shards,
    cut,
    embeddings_of,
    opened,
    videos_of,
    work_through,
)
from stepgraph.problems import Problems
from stepgraph.progress import counting
from stepgraph.scoring import score_each, score_features
from stepgraph.scoring.embeddings import VocabularyEmbeddings
from stepgraph.scoring.fusion import Fused
from stepgraph.scoring.lazy import LazyScores

# Videos whose features all shards together store, for fitting sentence classifiers.  The final
# sample may contain other videos, which are encoded again.
_STORED = 2000


class Mined(NamedTuple):
    """Graph and statistics mined from one shard, with the features of some of its videos."""

    graph: TaskGraph
    sampled: SentenceSample
    features: list[Features]


@dataclass(frozen=True, eq=False, kw_only=True)
class MiningJob(Job):
    """Options that decide the graph mined from each shard of a source.

    Attributes
    ----------
    mining
        See :func:`~stepgraph.mine_graph`.
    embeddings
        Embeddings of the keysteps, if an encoder gives any.
    features
        Number of videos of each shard whose features are stored.
    """

    vocabulary: Vocabulary
    decoder: TaskMarkov = field(default_factory=TaskMarkov)
    mining: Mapping[str, float] = field(default_factory=dict)
    annotations: Annotations | None = None
    embeddings: VocabularyEmbeddings | None = None
    features: int = _STORED

    doing: ClassVar[str] = "mining"

    def settings(self) -> tuple[Any, ...]:
        """See :class:`~stepgraph.pipeline.shards.Job`."""
        decoder = asdict(self.decoder)
        return self.vocabulary.fingerprint, decoder, dict(self.mining), self.annotations

    @property
    def fits_classifiers(self) -> bool:
        """Check whether sentence classifiers are fitted."""
        embeddings = self.embeddings
        return (
            embeddings is not None
            and embeddings.encoder.kind in WORDED
            and any(self.vocabulary.tasks.values())
        )

    def make(self, piece: Piece, without: frozenset[str]) -> ShardResult:
        """See :class:`~stepgraph.pipeline.shards.Job`."""
        problems = Problems(strict=self.strict)
        learner, features = (
            ParameterFit(self.vocabulary, self.decoder),
            Sample[Features](self.features, self.features),
        )
        videos = (one for one in videos_of(self, piece, problems) if one.id not in without)
        graph = mine_graph(
            learner.watch(self._scored(videos, problems, features)),
            self.vocabulary,
            encoder=opened(self).encoder.options,
            **self.mining,
        )
        graph = replace(
            graph, parameters=learner.parameters(graph, classifiers=False), traces=learner.traces()
        )
        sampled = learner.sampled()
        chosen = {video for videos in sampled.tasks.values() for video in videos}
        stored = features.chosen().get("", {}).values()
        mined = Mined(graph, sampled, [one for one in stored if one.video in chosen])
        return ShardResult(piece, graph.mined_on, mined, problems)

    def _scored(
        self, videos: Iterable[Video], problems: Problems, features: Sample[Features]
    ) -> Iterator[Scores]:
        encoder, keeps = opened(self).encoder, self.fits_classifiers and self.features > 0
        found = score_each(
            videos, self.vocabulary, encoder, problems=problems, embeddings=self.embeddings
        )
        for _, scores in found:
            if keeps and isinstance(scores, LazyScores):
                features.add("", scores.video, scores.features)
            yield annotate(scores, self.annotations)

    def keep(self, found: ShardResult, path: Path) -> None:
        """See :class:`~stepgraph.pipeline.shards.Job`."""
        made: Mined = found.made
        features = [(one.video, one.duration, len(one.vectors)) for one in made.features]
        write_text(path.with_suffix(".sample"), json.dumps([made.sampled, features]) + "\n")
        if features:
            with replacing(path.with_suffix(".npz")) as partial, partial.open("wb") as file:
                vectors = np.concatenate([one.vectors for one in made.features])
                intervals = np.concatenate([one.intervals for one in made.features])
                np.savez(file, vectors=vectors, intervals=intervals)
        save_graph(made.graph, path.with_suffix(".graph"))

    def load(self, path: Path) -> tuple[TaskGraph, SentenceSample]:
        """See :class:`~stepgraph.pipeline.shards.Job`; stored features are not loaded."""
        sampled, _ = read_json(path.with_suffix(".sample"))
        return load_graph(path.with_suffix(".graph")), SentenceSample(*sampled)

    def load_features(self, path: Path) -> Iterator[Features]:
        """Load the stored features of videos of a shard."""
        _, features = read_json(path.with_suffix(".sample"))
        if not features:
            return
        vectors, intervals = read_arrays(path.with_suffix(".npz"), ("vectors", "intervals"))
        begin = 0
        for video, duration, count in features:
            its = slice(begin, begin + count)
            yield Features(video, duration, vectors[its], intervals[its])
            begin += count

    def score(self, features: Features) -> Scores:
        """Score a video from its features."""
        assert self.embeddings is not None, "only one encoder has features"
        keysteps, tasks, encoder = self.embeddings
        scores = score_features(features, keysteps, self.vocabulary, encoder, 1.0, tasks)
        return annotate(scores, self.annotations)


def encode_piece(job: MiningJob, piece: Piece, wanted: frozenset[str]) -> list[Features]:
    """Encode again those videos of a shard that sentence classifiers are fitted on."""
    problems = Problems()
    videos = (one for one in videos_of(job, piece, problems) if one.id in wanted)
    encoder = opened(job).encoder
    assert not isinstance(encoder, Fused), "two encoders have no vectors in common"
    return [features for _, features in encode_each(videos, encoder, problems)]


def mine_shards(job: MiningJob, dataset: Dataset, output: Path, engine: Engine) -> TaskGraph:
    """Mine all unfinished shards, and merge them.

    Problems with videos are added to those of the data set.
    """
    require_narration(dataset, job.open_encoder())
    each = _STORED // max(1, len(cut(dataset, job.longest)))
    job = replace(job, embeddings=embeddings_of(job.open_encoder(), job.vocabulary), features=each)
    folder = output.with_name(f"{output.name}.shards")
    shards = work_through(job, dataset, folder, engine)
    graph, sampled = _added_up(shards, job.vocabulary)
    if not graph.mined_on:
        raise nothing_left(dataset, "a video that can be mined")
    if job.fits_classifiers:
        graph = _with_classifiers(job, graph, sampled, shards, engine)
    shards.remove()
    return graph


def _added_up(shards: Shards, vocabulary: Vocabulary) -> tuple[TaskGraph, SentenceSample]:
    """Merge all shards in their order."""
    # Neighbours of about one size are merged, so that none is copied often.
    stack: list[tuple[int, TaskGraph, SentenceSample]] = []
    for found in shards.in_order():
        size, (graph, sampled) = 1, found.made
        while stack and (stack[-1][0] <= size or found.piece is shards.pieces[-1]):
            before, other, others = stack.pop()
            size, graph, sampled = size + before, other.merge(graph), others.merge(sampled)
        stack.append((size, graph, sampled))
    [(_, graph, sampled)] = stack or [(0, mine_graph([], vocabulary), SentenceSample({}, {}))]
    return graph, sampled


def _with_classifiers(
    job: MiningJob, graph: TaskGraph, sampled: SentenceSample, shards: Shards, engine: Engine
) -> TaskGraph:
    """Fit the sentence classifiers on the same sample of videos as one process would."""
    tasks = {video: task for task, videos in sampled.tasks.items() for video in videos}
    scores: dict[str, dict[str, Scores]] = {task: {} for task in sampled.tasks}
    missing: dict[Piece, set[str]] = {}
    for video in tasks:
        missing.setdefault(shards.where[video], set()).add(video)
    with counting("fitting sentence classifiers", len(tasks)) as done:

        def learn(some: Iterable[Features]) -> None:
            for features in some:
                scores[tasks[features.video]][features.video] = job.score(features)
                done(1)

        for piece, videos in missing.items():
            stored = [one for one in job.load_features(shards.path(piece)) if one.video in videos]
            learn(stored)
            videos -= {one.video for one in stored}
        wanted = [(piece, frozenset(videos)) for piece, videos in missing.items() if videos]
        for some in engine(job, encode_piece, wanted):
            learn(some)
    ordered = {task: {one: scores[task][one] for one in sampled.tasks[task]} for task in scores}
    return fit_classifiers(graph, ordered, job.decoder)
