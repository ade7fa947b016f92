"""Shards of a source, processed anywhere, in any order, and more than once.

Results of a shard are stored beside the output until all shards are finished.  The same command
after an interruption processes only the others.  Merged in their order, the shards give the same
result as one process.
"""

from __future__ import annotations

import json
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from hashlib import sha256
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

from stepgraph import __version__
from stepgraph.core import Dataset, Video, Vocabulary
from stepgraph.datasets import open_source
from stepgraph.decoders import DEFAULT_DECODER, encoder_for
from stepgraph.encoders import Encoder, EncoderOptions
from stepgraph.encoders.text import TextEncoder
from stepgraph.errors import DataError
from stepgraph.files.disk import read_json, read_text, write_text
from stepgraph.problems import Problem, Problems
from stepgraph.progress import counting
from stepgraph.scoring.embeddings import VocabularyEmbeddings, embed_vocabulary
from stepgraph.scoring.fusion import Fused, open_encoder

LARGE = 2**29
"""Bytes of captions from which on embeddings are cached only on request."""

# Bytes of a shard, or videos of one: enough that starting it costs nothing, few enough that little
# is lost if it fails.  A long file has longer ones, up to a limit.
_LEAST, _SHARDS = 2**20, 1000
_VIDEOS = 64
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Piece(NamedTuple):
    """One shard: its number, and the range of bytes or of videos that it covers."""

    number: int
    begin: int
    end: int


class ShardResult(NamedTuple):
    """Result of one shard, with its videos and their problems."""

    piece: Piece
    videos: tuple[str, ...]
    made: Any
    problems: Problems


@dataclass(frozen=True, eq=False, kw_only=True)
class Job(ABC):
    """Work to do on each shard of a source, with all options that decide its result.

    Attributes
    ----------
    source, opening
        Arguments of :func:`~stepgraph.open_source`.
    encoder
        Options of the encoder that scores or encodes the videos.
    remember
        Store embeddings in the cache.
    """

    source: str
    encoder: EncoderOptions = field(default_factory=lambda: encoder_for(DEFAULT_DECODER))
    opening: Mapping[str, Any] = field(default_factory=dict)
    strict: bool = False
    remember: bool = True

    doing: ClassVar[str] = "working"
    longest: ClassVar[int] = 2**24
    """Most bytes of a shard, since its result is held in memory."""

    @abstractmethod
    def settings(self) -> tuple[Any, ...]:
        """Return the further options that decide the result; their ``repr`` identifies them."""

    @abstractmethod
    def make(self, piece: Piece, without: frozenset[str]) -> ShardResult:
        """Process one shard, without videos that occur in an earlier one."""

    @abstractmethod
    def keep(self, found: ShardResult, path: Path) -> None:
        """Write the result of a shard to files whose names begin with a path."""

    @abstractmethod
    def load(self, path: Path) -> Any:
        """Read the result back."""

    @cached_property
    def identity(self) -> str:
        """Short hash of all that decides the result of a shard."""
        content = (
            *(__version__, type(self).__name__, self.source, self.encoder, dict(self.opening)),
            *(self.strict, self.settings()),
        )
        return sha256(repr(content).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def open_encoder(self) -> Encoder | Fused:
        """Open the encoder; only ``remember`` lets it fill the cache."""
        encoder = open_encoder(self.encoder)
        if isinstance(encoder, TextEncoder):
            encoder.remembers = self.remember
        return encoder


Work: TypeAlias = Callable[[Any, Piece, frozenset[str]], Any]
Engine: TypeAlias = Callable[[Job, Work, Sequence[tuple[Piece, frozenset[str]]]], Iterator[Any]]
"""Runs work on shards of a job, each with some video ids; yields results as they finish."""


class _Opened(NamedTuple):
    identity: str
    dataset: Dataset
    encoder: Encoder | Fused


_OPENED: list[_Opened] = []  # of this process, which works on one shard after the other


def opened(job: Job) -> _Opened:
    """Open the source and the encoder of a job, once in a process."""
    if not _OPENED or _OPENED[0].identity != job.identity:
        dataset = open_source(job.source, **job.opening)
        _OPENED[:] = [_Opened(job.identity, dataset, job.open_encoder())]
    return _OPENED[0]


def embeddings_of(encoder: Encoder | Fused, vocabulary: Vocabulary) -> VocabularyEmbeddings | None:
    """Embed a vocabulary once for all shards; None for two encoders, which run in each shard."""
    return None if isinstance(encoder, Fused) else embed_vocabulary(encoder, vocabulary)


def videos_of(job: Job, piece: Piece, problems: Problems) -> Iterable[Video]:
    """Return the videos of one shard."""
    videos = opened(job).dataset.videos
    if hasattr(videos, "between"):
        streamed: Iterable[Video] = videos.between(piece.begin, piece.end, problems)
        return streamed
    return islice(videos, piece.begin, piece.end)


def cut(dataset: Dataset, longest: int = Job.longest) -> list[Piece]:
    """Cut a source into shards, depending only on the source and the longest shard allowed."""
    size = getattr(dataset.videos, "size", None)
    if size is None:
        size, step = len([*dataset.videos]), _VIDEOS
    else:
        step = min(longest, max(_LEAST, -(-size // _SHARDS)))
    return [
        Piece(number, begin, min(size, begin + step))
        for number, begin in enumerate(range(0, size, step))
    ]


def make_piece(job: Job, piece: Piece, without: frozenset[str] = frozenset()) -> ShardResult:
    """Process one shard, in any process."""
    return job.make(piece, without)


def work_through(job: Job, dataset: Dataset, folder: Path, engine: Engine) -> Shards:
    """Process all unfinished shards."""
    shards = Shards(folder, job, dataset)
    left = [piece for piece in shards.pieces if not shards.has(piece)]
    with counting(job.doing, sum(piece.end - piece.begin for piece in shards.pieces)) as done:
        done(sum(piece.end - piece.begin for piece in shards.pieces if piece not in left))
        for found in engine(job, make_piece, [(piece, frozenset[str]()) for piece in left]):
            if shards.keep(found):
                done(found.piece.end - found.piece.begin)
    return shards


class Shards:
    """Folder of finished shards; shards of another source or other options are removed."""

    def __init__(self, folder: Path, job: Job, dataset: Dataset) -> None:
        self.folder, self.pieces = folder, cut(dataset, job.longest)
        self.where: dict[str, Piece] = {}
        self._job, self._dataset = job, dataset
        stamp = getattr(dataset.videos, "stamp", None) or [one.id for one in dataset.videos]
        source = repr((stamp, self.pieces)).encode("utf-8", "surrogatepass")
        made_from = [job.identity, sha256(source).hexdigest()[:16]]
        made = {"format": "stepgraph-shards", "version": 3, "made_from": made_from}
        path = folder / "made-from.json"
        with suppress(DataError):
            if read_json(path) == made:
                return
        self.remove()
        write_text(path, json.dumps(made) + "\n")

    def path(self, piece: Piece) -> Path:
        """Return the path of the files of a shard, without their suffixes."""
        return self.folder / f"{piece.number:05}"

    def _mark(self, piece: Piece) -> Path:
        return self.path(piece).with_suffix(".json")

    def has(self, piece: Piece) -> bool:
        """Check whether a shard is finished."""
        return self._mark(piece).exists()

    def keep(self, found: ShardResult) -> bool:
        """Store a shard unless it is stored already, so that each counts once."""
        if self.has(found.piece):
            return False
        self._write(found)
        return True

    def _write(self, found: ShardResult) -> None:
        self._job.keep(found, self.path(found.piece))
        problems = [asdict(problem) for problem in found.problems.found]
        content = {"videos": found.videos, "problems": problems, "seen": found.problems.seen}
        text = json.dumps(content)
        # This file marks the shard as complete.
        write_text(self._mark(found.piece), f"{self._check(found.piece, text)}\n{text}\n")

    def _check(self, piece: Piece, content: str) -> str:
        check, mark = sha256(content.encode()), self._mark(piece)
        for file in sorted(self.folder.glob(f"{piece.number:05}.*")):
            if file != mark:
                check.update(file.read_bytes())
        return check.hexdigest()

    def _read(self, piece: Piece) -> tuple[tuple[str, ...], Problems]:
        with suppress(DataError, OSError):
            check, _, text = read_text(self._mark(piece)).strip().partition("\n")
            if check == self._check(piece, text):
                content = json.loads(text)
                return tuple(content["videos"]), Problems.recall(
                    (Problem(**one) for one in content["problems"]), content["seen"]
                )
        return self._anew(piece)  # it was damaged

    def in_order(self) -> Iterator[ShardResult]:
        """Yield the result of each shard, every video once; fill ``where`` with the shard of each.

        Problems with videos are added to the problems of the data set.
        """
        self.where.clear()
        for piece in self.pieces:
            videos, problems = self._read(piece)
            if repeated := self.where.keys() & set(videos):
                videos, problems = self._anew(piece, frozenset(repeated))
            self.where |= dict.fromkeys(videos, piece)
            self._dataset.problems.take(problems)
            yield ShardResult(piece, videos, self._job.load(self.path(piece)), problems)

    def _anew(
        self, piece: Piece, repeated: frozenset[str] = frozenset()
    ) -> tuple[tuple[str, ...], Problems]:
        """Process a shard again without the videos that occur in an earlier one."""
        found = make_piece(self._job, piece, repeated)
        for video in sorted(repeated):
            what = "must occur once, got it again; skipped"
            found.problems.add(f"{self._job.source}: video {video!r}", "duplicate video", what)
        self._write(found)
        return found.videos, found.problems

    def remove(self) -> None:
        """Remove all shards, finished or not."""
        shutil.rmtree(self.folder, ignore_errors=True)


def in_processes(workers: int) -> Engine:
    """Make an engine of ``workers`` processes on this machine."""

    def run(job: Job, work: Work, tasks: Sequence[tuple[Piece, frozenset[str]]]) -> Iterator[Any]:
        if workers == 1 or len(tasks) < 2:
            yield from (work(job, *one) for one in tasks)
            return
        count = min(workers, len(tasks))
        with (
            _few_threads(count),
            ProcessPoolExecutor(count, get_context("spawn"), _begin, (job,)) as pool,
        ):
            try:
                remaining = iter(tasks)
                # Few results wait at a time, since each takes memory.
                futures = {pool.submit(_go_on, work, *one) for one in islice(remaining, 2 * count)}
                while futures:
                    done = next(as_completed(futures))
                    futures.remove(done)
                    yield done.result()
                    futures |= {pool.submit(_go_on, work, *one) for one in islice(remaining, 1)}
            except BrokenProcessPool as error:
                raise DataError(
                    f"{job.source}: processes must finish their shards, got one that was "
                    f"killed; is there enough memory? run it again, finished shards are kept"
                ) from error

    return run


_JOB: list[Job] = []  # of a process of the pool, which gets it once


def _begin(job: Job) -> None:
    _JOB[:] = [job]


def _go_on(work: Work, piece: Piece, ids: frozenset[str]) -> Any:
    return work(_JOB[0], piece, ids)


@contextmanager
def _few_threads(processes: int) -> Iterator[None]:
    """Limit the threads of new processes, so that they share the cores."""
    each = str(max(1, (os.cpu_count() or 1) // processes))
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, each))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
