"""Probe frozen features with small heads that are trained on truth.

The paper's three downstream tasks, on any data set with truth and from the features of any
backbone: the keystep of a given region, the task of a video, and the next keystep given the video
so far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import Dataset, Features, Vocabulary, rows_in
from stepgraph.errors import ConfigError, DataError
from stepgraph.evaluation.metrics import split_standard_error
from stepgraph.experiments.table import HEADS, PROBES
from stepgraph.scoring.lazy import part_of_row


@dataclass(frozen=True)
class Classes:
    """Classes of a probe.

    Each task has its own classes for its keysteps, as in the data sets' own lists: CrossTask has
    133 of them under 105 names, COIN 778.

    >>> both = Vocabulary(("boil", "pour"), {"tea": (0, 1), "coffee": (0,)})
    >>> len(Classes(both).keysteps), Classes(both).keystep_of("coffee", 0)
    (3, 2)
    """

    vocabulary: Vocabulary

    @cached_property
    def keysteps(self) -> dict[tuple[str | None, int], int]:
        """Class number of each keystep of each task; without tasks, of each keystep."""
        pairs: list[tuple[str | None, int]] = [
            (task, keystep)
            for task, members in self.vocabulary.tasks.items()
            for keystep in dict.fromkeys(members)
        ]
        listed = {keystep for _, keystep in pairs}
        pairs += [(None, k) for k in range(len(self.vocabulary)) if k not in listed]
        return {pair: number for number, pair in enumerate(pairs)}

    def keystep_of(self, task: str | None, keystep: int) -> int:
        """Return the class of a keystep of a video whose task may be unknown."""
        if (task, keystep) in self.keysteps:
            return self.keysteps[task, keystep]
        return self.keysteps[next(iter(self.vocabulary.tasks_of(keystep)), None), keystep]

    @cached_property
    def tasks(self) -> dict[str, int]:
        """Class number of each task."""
        return {task: number for number, task in enumerate(self.vocabulary.tasks)}

    def count(self, probe: str) -> int:
        """Count the classes of a probe."""
        return len(self.tasks) if probe == "task" else len(self.keysteps)


class ProbeExample(NamedTuple):
    """Rows of one video and their class."""

    rows: NDArray[np.float32]
    label: int


@dataclass(frozen=True)
class ProbeOptions:
    """Options of probing.

    Attributes
    ----------
    length
        Maximum number of rows of an example; longer ones are thinned out evenly.
    seeds
        Number of trainings of each head, with different seeds, for standard errors.
    heads
        Heads to train on the features: mlp, transformer, or both.
    probes
        Classes to predict: keystep, task, forecast (the next keystep), or several.
    epochs
        Number of passes of a head over its examples.
    share
        Share of the videos to train on, where a source has no split of its own.
    seed
        Seed of the division into training and test videos.
    """

    length: int = 32
    seeds: int = 3
    heads: tuple[str, ...] = tuple(HEADS)
    probes: tuple[str, ...] = tuple(PROBES)
    epochs: int = 40
    share: float = 0.7
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("length", "seeds", "epochs"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name, choices in (("heads", HEADS), ("probes", PROBES)):
            some = getattr(self, name)
            if not some or not set(some) <= set(choices):
                raise ConfigError(f"{name} must be some of {', '.join(choices)}, got {some}")


@dataclass(frozen=True)
class Probed:
    """Accuracy of one head at one probe, for each seed.

    Attributes
    ----------
    chance
        Accuracy of always predicting the most frequent class of the training examples.
    """

    head: str
    probe: str
    accuracies: tuple[float, ...]
    chance: float
    trained_on: int
    tested_on: int
    classes: int

    @property
    def accuracy(self) -> float:
        """Mean over the seeds."""
        return float(np.mean(self.accuracies))

    @property
    def error(self) -> float:
        """Standard error of that mean; not a number for a single seed."""
        return split_standard_error(self.accuracies)


def probe(
    train: Dataset,
    test: Dataset,
    features: Mapping[str, Features],
    options: ProbeOptions = ProbeOptions(),  # noqa: B008 - frozen
) -> Iterator[Probed]:
    """Train heads on one part of a data set and measure them on the other.

    Parameters
    ----------
    train, test
        Videos with truth, of one vocabulary.
    features
        Features of the videos of both, by id; videos without are left out.
    """
    if train.vocabulary is None or train.vocabulary != test.vocabulary:
        raise DataError(
            f"{train.name} and {test.name}: must share one vocabulary to be probed, got "
            f"{'none' if train.vocabulary is None else 'two'}"
        )
    classes = Classes(train.vocabulary)
    for name in options.probes:
        parts = []
        for part in (train, test):
            parts.append(list(examples(name, part, features, classes, length=options.length)))
            if not parts[-1]:
                raise DataError(
                    f"{part.name}: must hold examples to probe {name!r}, got none; are there "
                    f"features and truth of its videos?"
                )
        for head in options.heads:
            yield _probed(head, name, parts, classes.count(name), options)


def _probed(
    head: str,
    name: str,
    parts: Sequence[Sequence[ProbeExample]],
    classes: int,
    options: ProbeOptions,
) -> Probed:
    from stepgraph.networks.heads import fit, predict

    rows, unseen = ([one.rows for one in part] for part in parts)
    labels, truth = (np.array([one.label for one in part], np.int64) for part in parts)
    right = []
    for seed in range(options.seeds):
        trained = fit(head, rows, labels, classes, epochs=options.epochs, seed=seed)
        logits = predict(trained, unseen)
        right.append(float((logits.argmax(axis=1) == truth).mean()))
    most = np.bincount(labels, minlength=classes).argmax()
    chance = float((truth == most).mean())
    return Probed(head, name, tuple(right), chance, len(rows), len(unseen), classes)


def examples(
    name: str,
    dataset: Dataset,
    features: Mapping[str, Features],
    classes: Classes,
    *,
    length: int = 32,
) -> Iterator[ProbeExample]:
    """Make the examples of one probe.

    ``keystep``: each true region and its keystep.  ``forecast``: the rows before each region, if
    any, and its keystep.  ``task``: the whole video and its task, where it is known.
    """
    for video in dataset.videos:
        truth = dataset.truth.get(video.id)
        if truth is None or video.id not in features:
            continue
        rows, seen = rows_of(features[video.id], truth.hop)
        if name == "task":
            if video.task in classes.tasks and seen.any():
                yield ProbeExample(thin(rows[seen], length), classes.tasks[video.task])
            continue
        for segment in truth.segments():
            first, last = round(segment.start / truth.hop), round(segment.end / truth.hop)
            region = slice(first, last) if name == "keystep" else slice(0, first)
            shown = rows[region][seen[region]]
            if first < len(rows) and len(shown):
                keystep = classes.keystep_of(video.task, segment.keystep)
                yield ProbeExample(thin(shown, length), keystep)


def rows_of(features: Features, hop: float) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return one vector a row, and a mask of the rows that have one."""
    count = rows_in(features.duration, hop)
    part = part_of_row(features.intervals, count, hop)
    rows = np.zeros((count, features.vectors.shape[1]), np.float32)
    rows[part >= 0] = features.vectors[part[part >= 0]]
    return rows, part >= 0


def thin(rows: NDArray[np.float32], length: int) -> NDArray[np.float32]:
    """Select at most ``length`` rows, the middles of equal parts.

    >>> thin(np.arange(10, dtype=np.float32)[:, None], 5).ravel().tolist()
    [1.0, 3.0, 5.0, 7.0, 9.0]
    """
    if len(rows) <= length:
        return rows
    return rows[((np.arange(length) + 0.5) * len(rows) / length).astype(np.int64)]


def halves(dataset: Dataset, *, share: float = 0.7, seed: int = 0) -> tuple[Dataset, Dataset]:
    """Divide a data set without splits of its own at random: ``share`` to train on.

    The videos of each task are divided by themselves, so that every task of two videos or more
    is on both sides; tasks of a single video are divided together.
    """
    if not 0 < share < 1:
        raise ConfigError(f"share must be between 0 and 1, got {share}")
    videos = tuple(dataset.videos)
    if len(videos) < 2:
        raise DataError(
            f"{dataset.name}: must hold at least 2 videos to be divided, got {len(videos)}"
        )
    order, sizes = np.random.default_rng(seed), Counter(video.task for video in videos)
    by_task: dict[str | None, list[str]] = {}
    for video in videos:
        by_task.setdefault(video.task if sizes[video.task] > 1 else None, []).append(video.id)
    chosen: set[str] = set()
    owed = 0.0  # by rounding, so that the share holds over all tasks
    for ids in by_task.values():
        owed += share * len(ids)
        count = min(max(1, round(owed)), max(1, len(ids) - 1))
        owed -= count
        chosen |= {ids[at] for at in order.permutation(len(ids))[:count]}
    return (
        replace(dataset, videos=tuple(v for v in videos if v.id in chosen)),
        replace(dataset, videos=tuple(v for v in videos if v.id not in chosen)),
    )
