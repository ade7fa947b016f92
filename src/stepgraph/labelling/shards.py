"""Labelling of a corpus in shards, with the same folder of labels as one process writes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from stepgraph.core import Dataset, Labels, Scores, Timeline, Video
from stepgraph.decoders import Decoder, checked_decode, load_decoder
from stepgraph.files.disk import read_json, write_text
from stepgraph.graph import TaskGraph
from stepgraph.graph.saving import graph_fields
from stepgraph.labelling.clips import ClipLabels, label_clips, read_table, write_table
from stepgraph.labelling.folders import (
    LabelFolder,
    describe,
    finished,
    is_writable,
    provenance_of,
    write_labels,
)
from stepgraph.pipeline.shards import (
    Engine,
    Job,
    Piece,
    ShardResult,
    embeddings_of,
    opened,
    videos_of,
    work_through,
)
from stepgraph.problems import Problems
from stepgraph.scoring import score_each
from stepgraph.scoring.embeddings import VocabularyEmbeddings


class _Labeled(NamedTuple):
    """Videos of a shard without transcripts, and the labels of those that could be labelled."""

    videos: list[Video]
    labels: list[ClipLabels]


@dataclass(frozen=True)
class _LabeledVideo(Video):
    """A video with its labels, if it could be labelled."""

    labels: ClipLabels | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelingJob(Job):
    """Job that labels the shards of a source, with everything that decides the labels.

    Attributes
    ----------
    embeddings
        Vectors of the keysteps, if an encoder has them.
    """

    graph: TaskGraph
    decoder: Decoder = field(default_factory=load_decoder)
    embeddings: VocabularyEmbeddings | None = None

    doing: ClassVar[str] = "labelling"
    longest: ClassVar[int] = 2**20

    def settings(self) -> tuple[Any, ...]:
        """See :class:`~stepgraph.pipeline.shards.Job`."""
        graph = json.dumps(graph_fields(self.graph)).encode()
        return describe(self.decoder), sha256(graph).hexdigest()

    def make(self, piece: Piece, without: frozenset[str]) -> ShardResult:
        """See :class:`~stepgraph.pipeline.shards.Job`."""
        problems, videos = Problems(strict=self.strict), list[Video]()

        def met() -> Iterator[Video]:
            for video in videos_of(self, piece, problems):
                if video.id not in without:
                    videos.append(Video(video.id, video.duration, (), video.path))
                    if is_writable(video):
                        yield video

        labels = [label_clips(one) for one in self._recognised(met(), problems)]
        ids = tuple(video.id for video in videos)
        return ShardResult(piece, ids, _Labeled(videos, labels), problems)

    def _recognised(self, videos: Iterable[Video], problems: Problems) -> Iterator[Timeline]:
        encoder, vocabulary = opened(self).encoder, self.graph.vocabulary
        found = score_each(
            videos, vocabulary, encoder, problems=problems, embeddings=self.embeddings
        )
        for video, scores in found:
            yield Timeline(video, checked_decode(self.decoder, scores, self.graph), scores)

    def keep(self, found: ShardResult, path: Path) -> None:
        """See :class:`~stepgraph.pipeline.shards.Job`."""
        made: _Labeled = found.made
        done = {one.video for one in made.labels}
        videos = [
            (one.id, one.duration, None if one.path is None else str(one.path), one.id in done)
            for one in made.videos
        ]
        write_text(path.with_suffix(".videos"), json.dumps(videos) + "\n")
        write_table(path.with_suffix(".parquet"), made.labels, self.graph.vocabulary, {})

    def load(self, path: Path) -> Iterator[_LabeledVideo]:
        """See :class:`~stepgraph.pipeline.shards.Job`."""
        table = read_table(path.with_suffix(".parquet"), len(self.graph.vocabulary))
        labels = {one.video: one for one in table}
        for video, duration, media, done in read_json(path.with_suffix(".videos")):
            # A table has no entry for a video without rows.
            found = (labels.get(video) or self._no_clips(video)) if done else None
            where = None if media is None else Path(media)
            yield _LabeledVideo(video, duration, (), where, labels=found)

    def _no_clips(self, video: str) -> ClipLabels:
        vocabulary, rows = self.graph.vocabulary, np.zeros(0, dtype=np.int64)
        values = np.zeros((0, len(vocabulary)), dtype=np.float32)
        scores = Scores(video, values, np.zeros(0, dtype=bool), vocabulary)
        return label_clips(Timeline(Video(video, 0.0), Labels(video, rows, vocabulary), scores))


def label_shards(
    job: LabelingJob,
    dataset: Dataset,
    folder: Path,
    engine: Engine,
    *,
    part_size: int = 50_000,
    problems: Problems,
) -> LabelFolder:
    """Label all shards that are not stored yet, and write their labels as one process does.

    Parameters
    ----------
    problems
        Receives videos that cannot be written; others are added to those of the data set.
    """
    encoder = job.open_encoder()
    provenance = provenance_of(job.graph, job.decoder, asdict(encoder.options))
    for path in sorted(folder.glob("labels-*.parquet"))[:1]:
        finished(path, provenance)  # what is there is of the same, or refused before the work
    job = replace(job, embeddings=embeddings_of(encoder, job.graph.vocabulary))
    shards = work_through(job, dataset, folder / ".shards", engine)

    def labels_of(group: Iterable[Video]) -> Iterator[ClipLabels]:
        for video in group:
            assert isinstance(video, _LabeledVideo), "they come from shards"
            if video.labels is not None:
                yield video.labels

    videos = (video for found in shards.in_order() for video in found.made)
    how: dict[str, Any] = {"part_size": part_size, "problems": problems}
    labels = write_labels(videos, labels_of, folder, provenance, **how)
    shards.remove()
    return labels
