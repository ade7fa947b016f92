"""Encode a corpus in shards; the folder of features equals that of one process."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from stepgraph.core import Dataset, Features, Video
from stepgraph.encoders import Encoder
from stepgraph.encoders.encoding import Encoded, encode_each, frames_of, write_each
from stepgraph.encoders.stored_features import FeatureStore
from stepgraph.files.disk import read_json, write_text
from stepgraph.files.ids import file_in
from stepgraph.pipeline.shards import (
    Engine,
    Job,
    Piece,
    ShardResult,
    opened,
    videos_of,
    work_through,
)
from stepgraph.problems import Problems
from stepgraph.scoring.fusion import Fused


class _Made(NamedTuple):
    """Encoded videos of a shard, and the number of videos that were stored already."""

    features: list[tuple[Video, Features]]
    skipped: int


@dataclass(frozen=True, eq=False, kw_only=True)
class EncodingJob(Job):
    """Options that decide the features of each shard; features in ``folder`` are skipped."""

    folder: Path

    doing: ClassVar[str] = "encoding"
    longest: ClassVar[int] = 2**20

    def settings(self) -> tuple[Any, ...]:
        """See :class:`~stepgraph.pipeline.shards.Job`."""
        return ()

    def make(self, piece: Piece, without: frozenset[str]) -> ShardResult:
        """See :class:`~stepgraph.pipeline.shards.Job`."""
        problems, ids, skipped = Problems(strict=self.strict), list[str](), list[str]()
        encoder, store = opened(self).encoder, FeatureStore(self.folder)
        assert not isinstance(encoder, Fused), "one encoder was asked for"

        def missing() -> Iterator[Video]:
            for video in videos_of(self, piece, problems):
                if video.id not in without:
                    ids.append(video.id)
                    if store.has(video.id):
                        skipped.append(video.id)
                    else:
                        yield video

        found = list(encode_each(missing(), encoder, problems))
        return ShardResult(piece, tuple(ids), _Made(found, len(skipped)), problems)

    def keep(self, found: ShardResult, path: Path) -> None:
        """See :class:`~stepgraph.pipeline.shards.Job`."""
        features, skipped = found.made
        written = list(write_each(FeatureStore(path), features, found.problems))
        write_text(path.with_suffix(".written"), json.dumps([written, skipped]) + "\n")

    def load(self, path: Path) -> tuple[list[tuple[str, int]], int]:
        """See :class:`~stepgraph.pipeline.shards.Job`: videos and rows; number of skipped."""
        written, skipped = read_json(path.with_suffix(".written"))
        return written, skipped


def encode_shards(job: EncodingJob, dataset: Dataset, encoder: Encoder, engine: Engine) -> Encoded:
    """Encode all unfinished shards, and move their files into the folder.

    Problems with videos are added to those of the data set.
    """
    FeatureStore(job.folder).prepare(encoder.options)
    done, started = Encoded(), time.perf_counter()
    shards = work_through(job, dataset, job.folder / ".shards", engine)
    for found in shards.in_order():
        written, skipped = found.made
        for video, rows in written:
            made = file_in(shards.path(found.piece), video, ".npz")
            if made.is_file():  # else a run that was killed has moved it
                path = file_in(job.folder, video, ".npz")
                path.parent.mkdir(parents=True, exist_ok=True)
                made.replace(path)
            done.written += 1
            done.rows += rows
            done.frames += rows * frames_of(encoder)
        done.skipped += skipped
    shards.remove()
    done.seconds = time.perf_counter() - started
    return done
