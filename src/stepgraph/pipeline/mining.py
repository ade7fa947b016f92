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
from stepgraph.decoders.learning import Learner, SentenceSample, learn_words
from stepgraph.encoders import WORDED
from stepgraph.encoders.each import encode_each
from stepgraph.export.decisions import Decisions, decide
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
    known_to,
    opened,
    videos_of,
    work_through,
)
from stepgraph.problems import Problems
from stepgraph.progress import counting
from stepgraph.scoring import score_each, score_features
from stepgraph.scoring.fusion import Fused
from stepgraph.scoring.known import Known
from stepgraph.scoring.lazy import LazyScores

# Videos whose features all shards together store, for fitting sentence classifiers.  The final
# sample may contain other videos, which are encoded again.
_HEARD = 2000


class Mined(NamedTuple):
    """Graph and statistics mined from one shard, with the features of some of its videos."""

    graph: TaskGraph
    spoken: SentenceSample
    heard: list[Features]


@dataclass(frozen=True, eq=False, kw_only=True)
class MiningJob(Job):
    """Options that decide the graph mined from each shard of a source.

    Attributes
    ----------
    mining
        See :func:`~stepgraph.mine_graph`.
    known
        Embeddings of the keysteps, if an encoder gives any.
    heard
        Number of videos of each shard whose features are stored.
    """

    vocabulary: Vocabulary
    decoder: TaskMarkov = field(default_factory=TaskMarkov)
    mining: Mapping[str, float] = field(default_factory=dict)
    decisions: Decisions | None = None
    known: Known | None = None
    heard: int = _HEARD

    doing: ClassVar[str] = "mining"

    def decided_by(self) -> tuple[Any, ...]:
        """See :class:`~stepgraph.pipeline.shards.Job`."""
        decoder = asdict(self.decoder)
        return self.vocabulary.fingerprint, decoder, dict(self.mining), self.decisions

    @property
    def learns_words(self) -> bool:
        """Check whether sentence classifiers are fitted."""
        known = self.known
        return (
            known is not None
            and known.encoder.kind in WORDED
            and any(self.vocabulary.tasks.values())
        )

    def make(self, piece: Piece, without: frozenset[str]) -> ShardResult:
        """See :class:`~stepgraph.pipeline.shards.Job`."""
        problems = Problems(strict=self.strict)
        learner, heard = (
            Learner(self.vocabulary, self.decoder),
            Sample[Features](self.heard, self.heard),
        )
        videos = (one for one in videos_of(self, piece, problems) if one.id not in without)
        graph = mine_graph(
            learner.watch(self._scored(videos, problems, heard)),
            self.vocabulary,
            encoder=opened(self).encoder.options,
            **self.mining,
        )
        graph = replace(
            graph, parameters=learner.parameters(graph, words=False), traces=learner.traces()
        )
        spoken = learner.spoken()
        chosen = {video for videos in spoken.tasks.values() for video in videos}
        kept = heard.chosen().get("", {}).values()
        mined = Mined(graph, spoken, [one for one in kept if one.video in chosen])
        return ShardResult(piece, graph.mined_on, mined, problems)

    def _scored(
        self, videos: Iterable[Video], problems: Problems, heard: Sample[Features]
    ) -> Iterator[Scores]:
        encoder, keeps = opened(self).encoder, self.learns_words and self.heard > 0
        found = score_each(videos, self.vocabulary, encoder, problems=problems, known=self.known)
        for _, scores in found:
            if keeps and isinstance(scores, LazyScores):
                heard.add("", scores.video, scores.features)
            yield decide(scores, self.decisions)

    def keep(self, found: ShardResult, place: Path) -> None:
        """See :class:`~stepgraph.pipeline.shards.Job`."""
        made: Mined = found.made
        heard = [(one.video, one.duration, len(one.vectors)) for one in made.heard]
        write_text(place.with_suffix(".said"), json.dumps([made.spoken, heard]) + "\n")
        if heard:
            with replacing(place.with_suffix(".npz")) as partial, partial.open("wb") as file:
                vectors = np.concatenate([one.vectors for one in made.heard])
                intervals = np.concatenate([one.intervals for one in made.heard])
                np.savez(file, vectors=vectors, intervals=intervals)
        save_graph(made.graph, place.with_suffix(".graph"))

    def load(self, place: Path) -> tuple[TaskGraph, SentenceSample]:
        """See :class:`~stepgraph.pipeline.shards.Job`; stored features are not loaded."""
        spoken, _ = read_json(place.with_suffix(".said"))
        return load_graph(place.with_suffix(".graph")), SentenceSample(*spoken)

    def load_heard(self, place: Path) -> Iterator[Features]:
        """Load the stored features of videos of a shard."""
        _, heard = read_json(place.with_suffix(".said"))
        if not heard:
            return
        vectors, intervals = read_arrays(place.with_suffix(".npz"), ("vectors", "intervals"))
        begin = 0
        for video, duration, count in heard:
            its = slice(begin, begin + count)
            yield Features(video, duration, vectors[its], intervals[its])
            begin += count

    def score(self, features: Features) -> Scores:
        """Score a video from its features."""
        assert self.known is not None, "only one encoder has features"
        keysteps, tasks, encoder = self.known
        scores = score_features(features, keysteps, self.vocabulary, encoder, 1.0, tasks)
        return decide(scores, self.decisions)


def hear_piece(job: MiningJob, piece: Piece, wanted: frozenset[str]) -> list[Features]:
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
    each = _HEARD // max(1, len(cut(dataset, job.longest)))
    job = replace(job, known=known_to(job.open_encoder(), job.vocabulary), heard=each)
    folder = output.with_name(f"{output.name}.shards")
    shards = work_through(job, dataset, folder, engine)
    graph, spoken = _added_up(shards, job.vocabulary)
    if not graph.mined_on:
        raise nothing_left(dataset, "a video that can be mined")
    if job.learns_words:
        graph = _with_words(job, graph, spoken, shards, engine)
    shards.remove()
    return graph


def _added_up(shards: Shards, vocabulary: Vocabulary) -> tuple[TaskGraph, SentenceSample]:
    """Merge all shards in their order."""
    # Neighbours of about one size are merged, so that none is copied often.
    stack: list[tuple[int, TaskGraph, SentenceSample]] = []
    for found in shards.in_order():
        size, (graph, spoken) = 1, found.made
        while stack and (stack[-1][0] <= size or found.piece is shards.pieces[-1]):
            before, other, others = stack.pop()
            size, graph, spoken = size + before, other.merge(graph), others.merge(spoken)
        stack.append((size, graph, spoken))
    [(_, graph, spoken)] = stack or [(0, mine_graph([], vocabulary), SentenceSample({}, {}))]
    return graph, spoken


def _with_words(
    job: MiningJob, graph: TaskGraph, spoken: SentenceSample, shards: Shards, engine: Engine
) -> TaskGraph:
    """Fit the sentence classifiers on the same sample of videos as one process would."""
    tasks = {video: task for task, videos in spoken.tasks.items() for video in videos}
    heard: dict[str, dict[str, Scores]] = {task: {} for task in spoken.tasks}
    missing: dict[Piece, set[str]] = {}
    for video in tasks:
        missing.setdefault(shards.where[video], set()).add(video)
    with counting("learning words", len(tasks)) as done:

        def learn(some: Iterable[Features]) -> None:
            for features in some:
                heard[tasks[features.video]][features.video] = job.score(features)
                done(1)

        for piece, videos in missing.items():
            kept = [one for one in job.load_heard(shards.place(piece)) if one.video in videos]
            learn(kept)
            videos -= {one.video for one in kept}
        asked = [(piece, frozenset(videos)) for piece, videos in missing.items() if videos]
        for some in engine(job, hear_piece, asked):
            learn(some)
    ordered = {task: {one: heard[task][one] for one in spoken.tasks[task]} for task in heard}
    return learn_words(graph, ordered, job.decoder)
