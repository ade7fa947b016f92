"""Input of every method of a table: one data set, scored once, with its mined graph.

Finished results of a long run are stored in a file, so that an interrupted run continues.  The key
of each result covers all that determines it: the program, the videos and their truth, the
vocabulary, the encoder, the method and all options.  Any change gives another key, so a result is
never used for another.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stepgraph import __version__
from stepgraph.core import (
    Dataset,
    Features,
    Labels,
    Scores,
    Video,
    Vocabulary,
    require_same_vocabulary,
)
from stepgraph.encoders import Encoder, EncoderOptions
from stepgraph.encoders.encoding import encode_each
from stepgraph.errors import ConfigError, StepgraphError
from stepgraph.experiments.pretraining import Model, Pretraining
from stepgraph.experiments.table import MODALITIES
from stepgraph.files.disk import read_json, write_text
from stepgraph.files.headers import FileKind, check_header, reading_fields
from stepgraph.graph import TaskGraph, mine_graph
from stepgraph.labelling.folders import graph_fingerprint
from stepgraph.pipeline import choose_vocabulary
from stepgraph.progress import track
from stepgraph.scoring import score_features
from stepgraph.scoring.fusion import prioritize

_KIND = FileKind(
    "stepgraph-reproduce", 1, "file of finished results", "name another file, or delete this one"
)

_KEPT = 2**27
"""Limit on the scores in memory: half a gigabyte."""

Numbers: TypeAlias = dict[str, float | None]
"""Metrics by name; an undefined one is None.  Standard errors end in ``±``."""


class ResultStore:
    """Finished results by key, in a JSON file or only in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._done: dict[str, Numbers] = {}
        if path and path.exists():
            content = read_json(path)
            check_header(content, path, _KIND)
            with reading_fields(path, _KIND):
                for key, one in content["done"].items():
                    self._done[key] = {n: v if v is None else float(v) for n, v in one.items()}

    def get(self, settings: Mapping[str, Any], compute: Callable[[], Numbers]) -> Numbers:
        """Return a finished result, or compute it and store it under all that determines it."""
        key = digest({"stepgraph": __version__, "code": _code(), **settings})
        if key not in self._done:
            self._done[key] = compute()
            if self.path:
                content = {"format": _KIND.format, "version": _KIND.version, "done": self._done}
                write_text(self.path, json.dumps(content, indent=1) + "\n")
        return self._done[key]


def digest(content: Any) -> str:
    """Short hash of plain values, arrays, graphs, and dataclasses and collections of these.

    All fields of a dataclass count, so that none can be forgotten; a value of any other type is
    an error, not left out.

    >>> digest({"a": 1, "b": (2,)}) == digest({"b": [2], "a": 1})
    True
    """
    text = json.dumps(content, sort_keys=True, default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _plain(value: Any) -> Any:
    """Convert a value that JSON cannot represent."""
    if isinstance(value, Vocabulary):
        return value.fingerprint
    if isinstance(value, TaskGraph):
        return graph_fingerprint(value)
    if isinstance(value, np.ndarray):
        hashed = hashlib.sha256(np.ascontiguousarray(value).tobytes())
        return [value.dtype.str, value.shape, hashed.hexdigest()]
    if is_dataclass(value):
        return {one.name: getattr(value, one.name) for one in fields(value)}
    if isinstance(value, Mapping | Sequence):
        return dict(value) if isinstance(value, Mapping) else list(value)
    raise TypeError(f"a hash must be of plain values, arrays and dataclasses, got {value!r}")


@cache
def _code() -> str:
    """Hash of this package's source, which may change between releases."""
    folder = Path(__file__).parents[1]
    hashed = hashlib.sha256()
    for path in sorted((*folder.rglob("*.py"), *folder.rglob("*.toml"))):
        hashed.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return hashed.hexdigest()[:32]


class NotAvailableError(StepgraphError):
    """Error of a method that cannot be measured on these data; the message is the reason."""


@dataclass(frozen=True, eq=False)
class Options:
    """Options of a table.

    Attributes
    ----------
    seed
        Seed of all random draws: the first, where there are several.
    seeds
        Number of seeds for a random method.
    threshold
        Least score of an anchor; the paper's 0.5 (text) belongs to another encoder.
    parts
        Number of random parts of the videos, for standard errors.
    split
        Name of the part of the data set, for the notes.
    graph
        Graph mined on other videos; if not given, it is mined on the evaluated ones.
    noise
        Irrelevant keysteps for the table ``noise``.
    scores
        Scores of all videos by modality (``video``), beside those of text.  The ``video-text``
        scores are then the paper's: anchors of both, and those of video where they disagree.
    video_threshold
        Least score of an anchor in video scores (the paper: 0.3).
    video_scores
        Description of the source of these scores, for the notes.
    models
        Models by name for the table ``tasks``: ``DistantSup.`` and ``Ours`` as in the paper, and
        any others.
    pretraining
        Videos that the models were trained on.
    """

    seed: int = 0
    seeds: int = 5
    threshold: float = 0.4
    parts: int = 5
    split: str = "all"
    graph: TaskGraph | None = None
    noise: Vocabulary | Sequence[str] | None = None
    scores: Mapping[str, Sequence[Scores]] = field(default_factory=dict)
    video_threshold: float = 0.3
    video_scores: str = "given"
    models: Mapping[str, Model] = field(default_factory=dict)
    pretraining: Pretraining = field(default_factory=Pretraining)

    def threshold_of(self, modality: str) -> float:
        """Return the least score of an anchor in the scores of a modality."""
        return self.video_threshold if modality == "video" else self.threshold

    def __post_init__(self) -> None:
        if math.isnan(self.threshold):
            raise ConfigError("threshold must be a number, got nan")
        for name, least in (("parts", 2), ("seeds", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} must be at least {least}, got {getattr(self, name)}")
        for modality in self.scores:
            if modality not in MODALITIES:
                modalities = ", ".join(MODALITIES)
                raise ConfigError(
                    f"modality of scores must be one of {modalities}, got {modality!r}"
                )


@dataclass(frozen=True, eq=False)
class Setting:
    """Data set with the scores of all its videos, and the graphs mined from them.

    Scores and graphs are by modality; scores may be iterated again and again.  ``tasks`` has the
    videos whose task is known and in the vocabulary.  ``fingerprint`` is a hash of all input:
    videos, truth, vocabulary, encoder, options.  ``state`` has the numbers measured so far.
    Each modality has the videos that it can score: text those with narration, video-text those
    with both text and video scores.
    """

    dataset: Dataset
    vocabulary: Vocabulary
    features: tuple[Features, ...]
    scores: Mapping[str, Iterable[Scores]]
    graphs: Mapping[str, TaskGraph]
    tasks: Mapping[str, str]
    keystep_vectors: NDArray[np.float32]
    encoder: EncoderOptions
    options: Options
    fingerprint: str
    state: ResultStore

    @property
    def truth(self) -> Mapping[str, Labels]:
        """Truth by video."""
        return self.dataset.truth

    def scored(self, modality: str) -> Iterable[Scores]:
        """Return the scores of all videos, with truth or without."""
        if modality not in self.scores:
            why = f"the source has narration only; give scores of a {modality} model"
            why = "no video has narration" if modality == "text" else why
            raise NotAvailableError(f"no {modality} scores: {why}")
        return self.scores[modality]

    def evaluated(self, modality: str) -> Iterator[Scores]:
        """Yield the scores of the videos that have a truth."""
        return (one for one in self.scored(modality) if one.video in self.truth)


@dataclass(frozen=True, eq=False)
class _Scored:
    """Scores computed from features: on each iteration, or once where all fit into memory."""

    features: tuple[Features, ...]
    keysteps: NDArray[np.float32]
    vocabulary: Vocabulary
    encoder: EncoderOptions

    def __iter__(self) -> Iterator[Scores]:
        return (
            iter(self._cached) if self._rows * len(self.vocabulary) <= _KEPT else self._computed()
        )

    @cached_property
    def _cached(self) -> list[Scores]:
        return [one.with_values(one.values) for one in self._computed()]

    @property
    def _rows(self) -> float:
        return sum(one.duration for one in self.features)

    def _computed(self) -> Iterator[Scores]:
        for one in self.features:
            yield score_features(one, self.keysteps, self.vocabulary, self.encoder)


def prepare(
    dataset: Dataset, encoder: Encoder, options: Options, state: ResultStore | None = None
) -> Setting:
    """Encode a data set once, and mine its graph without its truth."""
    vocabulary = choose_vocabulary(dataset, None)
    videos = tuple(track(dataset.videos, "reading"))
    dataset = replace(dataset, videos=videos)
    keysteps = encoder.encode_keysteps(vocabulary)
    encoded = track(encode_each(videos, encoder), "encoding", len(videos))
    features = tuple(found for _, found in encoded if len(found.vectors))
    scores: dict[str, Iterable[Scores]] = dict(options.scores)
    if features:
        scores = {"text": _Scored(features, keysteps, vocabulary, encoder.options)} | scores
    if {"text", "video"} <= scores.keys() and "video-text" not in scores:
        scores["video-text"] = _by_priority(scores["video"], scores["text"], options)
    if options.graph is not None:
        require_same_vocabulary(options.graph.vocabulary, vocabulary, "the graph and the data set")
    graphs = {
        modality: options.graph or mine_graph(some, vocabulary, encoder=encoder.options)
        for modality, some in scores.items()
    }
    # The vectors of the keysteps distinguish encoders of one name.
    given = {
        "encoder": encoder.options,
        "keysteps": keysteps,
        "vocabulary": vocabulary,
        "options": options,
        "data": content_of(videos, dataset.truth),
    }
    return Setting(
        dataset=dataset,
        vocabulary=vocabulary,
        features=features,
        scores=scores,
        graphs=graphs,
        tasks={v.id: v.task for v in videos if v.task and v.task in vocabulary.tasks},
        keystep_vectors=keysteps,
        encoder=encoder.options,
        options=options,
        fingerprint=digest(given),
        state=state or ResultStore(),
    )


def content_of(videos: Iterable[Video], truth: Mapping[str, Labels]) -> list[Any]:
    """Return the data of videos that is hashed: all but the paths of their files."""
    return [(replace(video, path=None), truth.get(video.id)) for video in videos]


def _by_priority(
    video: Iterable[Scores], text: Iterable[Scores], options: Options
) -> tuple[Scores, ...]:
    """Combine scores of video and text, on the scale of the text's threshold."""
    by_text = {one.video: one for one in text}
    least = {"first_threshold": options.video_threshold, "second_threshold": options.threshold}
    return tuple(
        prioritize(seen, by_text[seen.video], **least) for seen in video if seen.video in by_text
    )


def enlarge(setting: Setting, vocabulary: Vocabulary, encoder: Encoder) -> Setting:
    """Enlarge the vocabulary of a setting; the old keysteps keep their positions.

    Only text is scored again.
    """
    keysteps = encoder.encode_keysteps(vocabulary)
    scores = _Scored(setting.features, keysteps, vocabulary, encoder.options)
    truth = {
        video: replace(labels, vocabulary=vocabulary) for video, labels in setting.truth.items()
    }
    return replace(
        setting,
        dataset=replace(setting.dataset, vocabulary=vocabulary, truth=truth),
        vocabulary=vocabulary,
        scores={"text": scores},
        graphs={"text": mine_graph(scores, vocabulary, encoder=encoder.options)},
        keystep_vectors=keysteps,
    )
