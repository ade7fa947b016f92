"""Mine a corpus in shards: pieces that may be mined anywhere, in any order, and more than once.

Counts are whole numbers, and what is learned besides adds up exactly, so that the graph is bit by
bit that of one process, whoever mined the shards.  Each that is finished lies beside the output
until all are: who runs the same command again after an interruption mines only the others.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from hashlib import sha256
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stepgraph import __version__
from stepgraph.core import Dataset, Features, Scores, Video, Vocabulary
from stepgraph.datasets import open_source
from stepgraph.decoders import TaskMarkov
from stepgraph.decoders.learning import Learner, Spoken, learn_words
from stepgraph.encoders import WORDED
from stepgraph.encoders.each import encode_each
from stepgraph.encoders.stored_features import StoredEncoder
from stepgraph.encoders.text import TextEncoder
from stepgraph.encoders.vectors import TaskVectors
from stepgraph.errors import DataError
from stepgraph.export.decisions import Decisions
from stepgraph.files.disk import read_json, read_text, write_text
from stepgraph.graph import TaskGraph, mine_graph
from stepgraph.graph.saving import load_graph, save_graph
from stepgraph.pipeline import Asked, decide, nothing_left, open_scorer, options_of
from stepgraph.problems import Problem, Problems
from stepgraph.progress import counting
from stepgraph.scoring import Scorer, StoredScores, score_each, score_features
from stepgraph.scoring.fusion import Fused

LARGE = 2**29
"""Bytes of captions from which on embeddings are not cached unless that is asked for."""

# Bytes of a shard, or videos of one: enough that starting it costs nothing, few enough that little
# is lost with it.  A long file has longer ones, up to a limit of what they need in memory.
_LEAST, _MOST, _SHARDS = 2**20, 2**24, 1000
_VIDEOS = 64
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Known(NamedTuple):
    """Vectors of the keysteps, which are made once for all shards."""

    keysteps: NDArray[np.float32]
    tasks: TaskVectors | None


@dataclass(frozen=True, eq=False)
class Job:
    """All that decides what is mined from the shards of a source.

    Attributes
    ----------
    source, opening
        What :func:`~stepgraph.open_source` is called with.
    asked
        What scores the videos.
    mining
        See :func:`~stepgraph.mine_graph`.
    remember
        Keep embeddings in the cache.
    known
        Vectors of the keysteps, where an encoder has them.
    """

    source: str
    vocabulary: Vocabulary
    asked: Asked = field(default_factory=Asked)
    opening: Mapping[str, Any] = field(default_factory=dict)
    decoder: TaskMarkov = field(default_factory=TaskMarkov)
    mining: Mapping[str, float] = field(default_factory=dict)
    decisions: Decisions | None = None
    strict: bool = False
    remember: bool = True
    known: Known | None = None

    @cached_property
    def identity(self) -> str:
        """What a shard was made from, as a short hash."""
        asked = {one.name: getattr(self.asked, one.name) for one in fields(Asked)}
        asked.pop("problems")
        said = (
            *(__version__, self.source, self.vocabulary.fingerprint, asked, dict(self.opening)),
            *(asdict(self.decoder), dict(self.mining), self.decisions, self.strict),
        )
        return sha256(repr(said).encode("utf-8", "surrogatepass")).hexdigest()[:16]


class Piece(NamedTuple):
    """One shard: its number, and the bytes or the videos from which to which it goes."""

    number: int
    begin: int
    end: int


class Found(NamedTuple):
    """What was mined from one shard."""

    piece: Piece
    graph: TaskGraph
    spoken: Spoken
    problems: Problems


Work: TypeAlias = Callable[[Job, Piece, frozenset[str]], Any]
Engine: TypeAlias = Callable[[Job, Work, Sequence[tuple[Piece, frozenset[str]]]], Iterator[Any]]
"""Does some work on pieces of a job, with some video ids each; gives results as they come."""


class _Opened(NamedTuple):
    identity: str
    dataset: Dataset
    scorer: Scorer


_OPENED: list[_Opened] = []  # of this process, which mines one shard after the other


def _open(job: Job) -> _Opened:
    identity = job.identity
    if not _OPENED or _OPENED[0].identity != identity:
        scorer = open_scorer(job.asked)
        if isinstance(scorer, TextEncoder):
            scorer.remembers = job.remember
        _OPENED[:] = [_Opened(identity, open_source(job.source, **job.opening), scorer)]
    return _OPENED[0]


def cut(dataset: Dataset) -> list[Piece]:
    """Cut a source into pieces; how, depends on the source alone."""
    size = getattr(dataset.videos, "size", None)
    if size is None:
        size, step = len([*dataset.videos]), _VIDEOS
    else:
        step = min(_MOST, max(_LEAST, -(-size // _SHARDS)))
    return [
        Piece(number, begin, min(size, begin + step))
        for number, begin in enumerate(range(0, size, step))
    ]


def _videos(job: Job, piece: Piece, problems: Problems) -> Iterable[Video]:
    videos = _open(job).dataset.videos
    if hasattr(videos, "between"):
        streamed: Iterable[Video] = videos.between(piece.begin, piece.end, problems)
        return streamed
    return islice(videos, piece.begin, piece.end)


def _scored(job: Job, videos: Iterable[Video], problems: Problems) -> Iterator[Scores]:
    scorer = _open(job).scorer
    if job.known is None or isinstance(scorer, StoredScores | Fused | StoredEncoder):
        found = (one for _, one in score_each(videos, job.vocabulary, scorer, problems=problems))
    else:
        found = (_of_features(job, one) for _, one in encode_each(videos, scorer, problems))
    return (decide(one, job.decisions) for one in found)


def _of_features(job: Job, features: Features) -> Scores:
    options, known = options_of(_open(job).scorer), job.known
    assert known is not None, "only encoders have features"
    assert options is not None, "likewise"
    return score_features(features, known.keysteps, job.vocabulary, options, 1.0, known.tasks)


def mine_piece(job: Job, piece: Piece, without: frozenset[str] = frozenset()) -> Found:
    """Mine one shard, without some videos that stand in an earlier one."""
    problems = Problems(strict=job.strict)
    learner = Learner(job.vocabulary, job.decoder)
    videos = (one for one in _videos(job, piece, problems) if one.id not in without)
    graph = mine_graph(
        learner.watch(_scored(job, videos, problems)),
        job.vocabulary,
        encoder=options_of(_open(job).scorer),
        **job.mining,
    )
    graph = replace(graph, habits=learner.habits(graph, words=False), courses=learner.courses())
    return Found(piece, graph, learner.spoken(), problems)


def hear_piece(job: Job, piece: Piece, wanted: frozenset[str]) -> list[Features]:
    """Encode some videos of a shard once more: those whose words are learned from."""
    problems = Problems()
    videos = (one for one in _videos(job, piece, problems) if one.id in wanted)
    scorer = _open(job).scorer
    assert not isinstance(scorer, StoredScores | Fused), "these have no vectors"
    return [features for _, features in encode_each(videos, scorer, problems)]


def mine_shards(job: Job, dataset: Dataset, output: Path, engine: Engine) -> TaskGraph:
    """Mine all shards that are not there yet, and add them up.

    Problems with videos are added to those of the data set.
    """
    scorer = open_scorer(job.asked)
    job = replace(job, known=_known(scorer, job.vocabulary))
    pieces = cut(dataset)
    shards = Shards(output, job, dataset, pieces)
    left = [piece for piece in pieces if not shards.has(piece)]
    with counting("mining", sum(piece.end - piece.begin for piece in pieces)) as done:
        done(sum(piece.end - piece.begin for piece in pieces if piece not in left))
        for found in engine(job, mine_piece, [(piece, frozenset[str]()) for piece in left]):
            if shards.keep(found):
                done(found.piece.end - found.piece.begin)
    graph, spoken, where = shards.added_up()
    if not graph.mined_on:
        raise nothing_left(dataset, "a video that can be mined")
    if any(job.vocabulary.tasks.values()) and _has_vectors(scorer):
        graph = _with_words(job, graph, spoken, where, engine)
    shards.remove()
    return graph


def _known(scorer: Scorer, vocabulary: Vocabulary) -> Known | None:
    if isinstance(scorer, StoredScores | Fused | StoredEncoder):
        return None
    tasks = scorer.encode_tasks(vocabulary) if isinstance(scorer, TextEncoder) else None
    return Known(scorer.encode_keysteps(vocabulary), tasks)


def _has_vectors(scorer: Scorer) -> bool:
    options = options_of(scorer)
    return not isinstance(scorer, Fused) and options is not None and options.kind in WORDED


def _with_words(
    job: Job, graph: TaskGraph, spoken: Spoken, where: Mapping[str, Piece], engine: Engine
) -> TaskGraph:
    """Learn how keysteps are spoken of, from the same videos as one process would choose."""
    tasks = {video: task for task, videos in spoken.tasks.items() for video in videos}
    wanted: dict[Piece, set[str]] = {}
    for video in tasks:
        wanted.setdefault(where[video], set()).add(video)
    heard: dict[str, dict[str, Scores]] = {task: {} for task in spoken.tasks}
    asked = [(piece, frozenset(videos)) for piece, videos in wanted.items()]
    with counting("learning words", len(tasks)) as done:
        for some in engine(job, hear_piece, asked):
            for features in some:
                scores = decide(_of_features(job, features), job.decisions)
                heard[tasks[features.video]][features.video] = scores
            done(len(some))
    ordered = {task: {one: heard[task][one] for one in spoken.tasks[task]} for task in heard}
    return learn_words(graph, ordered, job.decoder)


class Shards:
    """A folder of finished shards beside the output; those made from anything else are dropped."""

    def __init__(self, output: Path, job: Job, dataset: Dataset, pieces: Sequence[Piece]) -> None:
        self.folder = output.with_name(f"{output.name}.shards")
        self._job, self._dataset, self._pieces = job, dataset, pieces
        stamp = getattr(dataset.videos, "stamp", None) or [one.id for one in dataset.videos]
        source = sha256(repr((stamp, [*pieces])).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        made = {"format": "stepgraph-shards", "version": 1, "made_from": [job.identity, source]}
        path = self.folder / "made-from.json"
        with suppress(DataError):
            if read_json(path) == made:
                return
        self.remove()
        write_text(path, json.dumps(made) + "\n")

    def _place(self, piece: Piece) -> Path:
        return self.folder / f"{piece.number:05}.json"

    def has(self, piece: Piece) -> bool:
        """Whether a shard is finished."""
        return self._place(piece).with_suffix(".said").exists()

    def keep(self, found: Found) -> bool:
        """Keep a shard, unless it is there already: however often it comes, it counts once."""
        if self.has(found.piece):
            return False
        place = self._place(found.piece)
        problems = [asdict(problem) for problem in found.problems.found]
        said = {"spoken": found.spoken, "problems": problems, "seen": found.problems.seen}
        save_graph(found.graph, place)
        text = json.dumps(said)
        # With it the shard is complete.
        write_text(place.with_suffix(".said"), f"{_check(place, text)}\n{text}\n")
        return True

    def _said(self, piece: Piece) -> Any:
        """What is said of a finished shard; None where one of its files is damaged."""
        place = self._place(piece)
        with suppress(DataError, OSError):
            check, _, text = read_text(place.with_suffix(".said")).strip().partition("\n")
            if check == _check(place, text):
                return json.loads(text)
        return None

    def _load(self, piece: Piece) -> Found:
        place, said = self._place(piece), self._said(piece)
        if said is None:
            return mine_piece(self._job, piece)
        problems = Problems.recall((Problem(**one) for one in said["problems"]), said["seen"])
        return Found(piece, load_graph(place), Spoken(*said["spoken"]), problems)

    def added_up(self) -> tuple[TaskGraph, Spoken, dict[str, Piece]]:
        """Add all shards up in their order; and say in which each video is."""
        where: dict[str, Piece] = {}
        # Neighbours of about one size are added up, so that none is copied often.
        stack: list[tuple[int, TaskGraph, Spoken]] = []
        for piece in self._pieces:
            found = self._load(piece)
            if twice := where.keys() & set(found.graph.mined_on):
                found = self._anew(piece, frozenset(twice))
            where |= dict.fromkeys(found.graph.mined_on, piece)
            self._dataset.problems.take(found.problems)
            size, graph, spoken = 1, found.graph, found.spoken
            while stack and (stack[-1][0] <= size or piece is self._pieces[-1]):
                before, other, others = stack.pop()
                size, graph, spoken = size + before, other.merge(graph), others.merge(spoken)
            stack.append((size, graph, spoken))
        [(_, graph, spoken)] = stack or [(0, *self._nothing())]
        return graph, spoken, where

    def _anew(self, piece: Piece, twice: frozenset[str]) -> Found:
        """Mine a shard without videos that stand in an earlier one, too."""
        found = mine_piece(self._job, piece, twice)
        for video in sorted(twice):
            what = "must stand once, got it again; skipped"
            found.problems.add(f"{self._job.source}: video {video!r}", "duplicate video", what)
        return found

    def _nothing(self) -> tuple[TaskGraph, Spoken]:
        return mine_graph([], self._job.vocabulary), Spoken({}, {})

    def remove(self) -> None:
        """Remove all shards, finished or not."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _check(place: Path, said: str) -> str:
    return sha256(place.read_bytes() + said.encode()).hexdigest()


def in_processes(workers: int) -> Engine:
    """Work in so many processes of this machine."""

    def run(job: Job, work: Work, asked: Sequence[tuple[Piece, frozenset[str]]]) -> Iterator[Any]:
        if workers == 1 or len(asked) < 2:
            yield from (work(job, *one) for one in asked)
            return
        count = min(workers, len(asked))
        with (
            _few_threads(count),
            ProcessPoolExecutor(count, get_context("spawn"), _begin, (job,)) as pool,
        ):
            try:
                remaining = iter(asked)
                # Few results wait at a time, since each takes memory.
                futures = {pool.submit(_go_on, work, *one) for one in islice(remaining, 2 * count)}
                while futures:
                    done = next(as_completed(futures))
                    futures.remove(done)
                    yield done.result()
                    futures |= {pool.submit(_go_on, work, *one) for one in islice(remaining, 1)}
            except BrokenProcessPool as error:
                raise DataError(
                    f"{job.source}: processes that mine must live, got one that was killed; is "
                    f"there enough memory? run it again, what is done is kept"
                ) from error

    return run


_JOB: list[Job] = []  # of a process of the pool, which gets it once


def _begin(job: Job) -> None:
    _JOB[:] = [job]


def _go_on(work: Work, piece: Piece, ids: frozenset[str]) -> Any:
    return work(_JOB[0], piece, ids)


@contextmanager
def _few_threads(processes: int) -> Iterator[None]:
    """Let processes that are started now share the cores."""
    each = str(max(1, (os.cpu_count() or 1) // processes))
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, each))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
