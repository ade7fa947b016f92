"""Batches of clips with their targets, from decoded clips or straight from the videos.

The order of stored clips and how each is cut depend on the seed, the epoch and the clip alone, so
that any number of workers and processes see the same batches.  A streamed clip comes when its
video is decoded: its order depends on the number of workers, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler, get_worker_info

from stepgraph.errors import DataError
from stepgraph.ingest.frames import ClipOptions, read_clips
from stepgraph.networks.timesformer import DEVIATION, MEAN
from stepgraph.problems import Problem
from stepgraph.training.clip_store import UNDECODABLE, ClipStore
from stepgraph.training.schedule import TrainingOptions
from stepgraph.training.targets import Examples
from stepgraph.training.team import ALONE, Team

# Batches that each worker prepares ahead.
_AHEAD = 4


class Batch(NamedTuple):
    """One process's part of a step.

    Attributes
    ----------
    clips : uint8, shape (B, F, H, W, 3)
    keysteps : int64, shape (B,)
    soft : keysteps and weights, shape (B, 3) each, or None
    real
        How many of the clips count; where a process has none left, one stands in for nothing.
    total
        How many count in all processes together, where that is known beforehand.
    failed
        What went wrong while these clips were read.
    """

    clips: Tensor
    keysteps: Tensor
    soft: tuple[Tensor, Tensor] | None
    real: int
    total: int | None = None
    failed: tuple[Problem, ...] = ()


class Source(Protocol):
    """Where batches come from."""

    examples: Examples
    blank: Batch

    def batches(self, epoch: int, first: int) -> Iterator[Batch]:
        """The batches of an epoch, counted from 0, from the ``first`` on."""
        ...


class _Pick(NamedTuple):
    """Which examples make a batch."""

    epoch: int
    rows: NDArray[np.int64]
    real: int
    total: int


class Order(Sampler[_Pick]):
    """The examples of an epoch in random order, cut into steps, each shared by the processes.

    A step is the same whatever the number of processes: they take consecutive parts of it.
    """

    def __init__(self, count: int, options: TrainingOptions, team: Team) -> None:
        self.count, self.batch, self.seed = count, options.batch, options.seed
        self.team = team
        self.epoch = self.first = 0

    def __len__(self) -> int:
        return -(-self.count // self.batch)

    def __iter__(self) -> Iterator[_Pick]:
        rows = np.random.default_rng([self.seed, self.epoch]).permutation(self.count)
        for start in range(self.first * self.batch, self.count, self.batch):
            step = rows[start : start + self.batch]
            own = np.array_split(step, self.team.world)[self.team.rank]
            yield _Pick(self.epoch, own if len(own) else step[:1], len(own), len(step))


class _StoredClips(Dataset[Batch]):
    """Batches from decoded clips, each by its examples."""

    def __init__(self, examples: Examples, store: ClipStore, options: TrainingOptions) -> None:
        self.examples, self.store, self.options = examples, store, options
        self.ids = tuple(examples.videos)

    def __getitem__(self, pick: _Pick) -> Batch:
        clips = [
            augment(self._clip(row), (pick.epoch, row), self.options) for row in pick.rows.tolist()
        ]
        return _batch(self.examples, clips, pick.rows, pick.real, pick.total)

    def _clip(self, row: int) -> NDArray[np.uint8]:
        video = self.ids[self.examples.video[row]]
        return self.store.read(video, int(self.examples.clip[row]))


class StoredSource:
    """Decoded clips, read at random.

    Parameters
    ----------
    workers
        Processes that read ahead; 0 reads in this one.
    """

    def __init__(
        self,
        examples: Examples,
        store: ClipStore,
        options: TrainingOptions,
        *,
        team: Team = ALONE,
        workers: int = 0,
    ) -> None:
        self.examples = examples
        self.blank = _blank(examples, store.options)
        self._order = Order(len(examples), options, team)
        self._loader = _loader(
            _StoredClips(examples, store, options),
            team,
            workers,
            sampler=self._order,
            # Workers live on from epoch to epoch; the order is drawn in this process.
            persistent_workers=workers > 0,
        )

    def batches(self, epoch: int, first: int) -> Iterator[Batch]:
        """See :class:`Source`."""
        self._order.epoch, self._order.first = epoch, first
        return iter(self._loader)


class _StreamedClips(IterableDataset[Batch]):
    """Batches straight from the videos: each worker decodes whole videos, and shuffles a few."""

    def __init__(
        self, examples: Examples, clips: ClipOptions, options: TrainingOptions, team: Team
    ) -> None:
        self.examples, self.clips, self.options, self.team = examples, clips, options, team
        self.epoch = 0

    def __iter__(self) -> Iterator[Batch]:
        info = get_worker_info()
        workers, worker = (info.num_workers, info.id) if info else (1, 0)
        own = self.team.rank * workers + worker
        chance = np.random.default_rng([self.options.seed, self.epoch])
        videos = chance.permutation(len(self.examples.videos))[own :: self.team.world * workers]
        chance = np.random.default_rng([self.options.seed, self.epoch, own])
        failed: list[Problem] = []
        size = max(1, self.options.batch // self.team.world)
        rows: list[int] = []
        clips: list[NDArray[np.uint8]] = []
        decoded = self._decoded(videos, failed)
        for row, clip in _shuffled(decoded, self.options.buffer, chance):
            rows.append(row)
            clips.append(augment(clip, (self.epoch, row), self.options))
            if len(rows) == size:
                yield self._batch(rows, clips, failed)
                rows, clips = [], []
        if rows or failed:
            yield self._batch(rows, clips, failed)

    def _batch(
        self, rows: list[int], clips: list[NDArray[np.uint8]], failed: list[Problem]
    ) -> Batch:
        batch = _blank(self.examples, self.clips)
        if rows:
            batch = _batch(self.examples, clips, np.array(rows), len(rows), None)
        batch = batch._replace(failed=tuple(failed))
        failed.clear()
        return batch

    def _decoded(
        self, videos: NDArray[np.int64], failed: list[Problem]
    ) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """The labelled clips of whole videos, one video after the other."""
        borders = np.searchsorted(
            self.examples.video, np.arange(len(self.examples.videos) + 1)
        ).tolist()
        names = tuple(self.examples.videos.items())
        for video in videos.tolist():
            first, last = borders[video], borders[video + 1]
            numbers = self.examples.clip[first:last].tolist()
            wanted = {number: first + place for place, number in enumerate(numbers)}
            name, path = names[video]
            try:
                number = -1
                for number, clip in enumerate(read_clips(path, self.clips)):
                    if number in wanted:
                        yield wanted.pop(number), clip.frames
                if wanted:
                    failed.append(too_short(name, path, max(wanted) + 1, number + 1))
            except DataError as error:
                failed.append(Problem(f"video {name!r}", UNDECODABLE, str(error), lost=True))


class StreamedSource:
    """Clips decoded anew in every epoch."""

    def __init__(
        self,
        examples: Examples,
        clips: ClipOptions,
        options: TrainingOptions,
        *,
        team: Team = ALONE,
        workers: int = 0,
    ) -> None:
        self.examples = examples
        self.blank = _blank(examples, clips)
        self._clips = _StreamedClips(examples, clips, options, team)
        # Made anew for each epoch, since workers have copies of the clips.
        self._load = partial(_loader, self._clips, team, workers)

    def batches(self, epoch: int, first: int) -> Iterator[Batch]:
        """See :class:`Source`; what comes before ``first`` is decoded and thrown away."""
        self._clips.epoch = epoch
        for number, batch in enumerate(self._load()):
            if number >= first:
                yield batch


def _loader(dataset: Any, team: Team, workers: int, **more: Any) -> DataLoader[Batch]:
    return DataLoader(
        dataset,
        batch_size=None,
        collate_fn=_as_it_is,
        num_workers=workers,
        # Where a GPU fetches batches without waiting.
        pin_memory=team.device.type == "cuda",
        prefetch_factor=_AHEAD if workers else None,
        # Its own, so that reading draws nothing from what the network draws from.
        generator=torch.Generator(),
        **more,
    )


def _as_it_is(batch: Any) -> Any:
    return batch


def _batch(
    examples: Examples,
    clips: list[NDArray[np.uint8]],
    rows: NDArray[np.int64],
    real: int,
    total: int | None,
) -> Batch:
    keysteps = torch.from_numpy(examples.keystep[rows]).to(torch.int64)
    soft = None
    if examples.soft is not None:
        some, weights = (torch.from_numpy(values[rows]) for values in examples.soft)
        soft = some.to(torch.int64), weights.to(torch.float32)
    return Batch(torch.from_numpy(np.stack(clips)), keysteps, soft, real, total)


def _blank(examples: Examples, clips: ClipOptions) -> Batch:
    """What stands in where a process has no clip left while others have: it counts for nothing."""
    black = np.zeros((clips.frames, clips.height, clips.width, 3), dtype=np.uint8)
    return _batch(examples, [black], np.zeros(1, dtype=np.int64), 0, None)


def too_short(video: str, path: Path, wanted: int, got: int) -> Problem:
    """A video that has fewer clips than were labelled."""
    what = f"{path}: must have the {wanted} clips that were labelled, got {got}; label it again"
    return Problem(f"video {video!r}", "video shorter than its labels", what)


def _shuffled(
    items: Iterable[tuple[int, NDArray[np.uint8]]], size: int, chance: np.random.Generator
) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Hold back so many items, and let a random one of them go for each that comes."""
    held: list[tuple[int, NDArray[np.uint8]]] = []

    def drawn() -> tuple[int, NDArray[np.uint8]]:
        place = int(chance.integers(len(held)))
        held[place], held[-1] = held[-1], held[place]
        return held.pop()

    for item in items:
        held.append(item)
        if len(held) > size:
            yield drawn()
    while held:
        yield drawn()


def augment(
    clip: NDArray[np.uint8], which: tuple[int, int], options: TrainingOptions
) -> NDArray[np.uint8]:
    """Mirror, crop and light a clip by chance where asked for; all its pictures alike.

    Parameters
    ----------
    which
        Epoch and example: with the seed they decide what chance does.
    """
    if not options.flip and options.crop == 1 and options.light == 0:
        return clip
    chance = np.random.default_rng([options.seed, *which])
    if options.flip and chance.random() < 0.5:
        clip = clip[:, :, ::-1]
    if options.crop < 1:
        clip = _cropped(clip, chance.uniform(options.crop, 1), chance)
    if options.light > 0:
        clip = _lit(clip, options.light, chance)
    return np.ascontiguousarray(clip)


def _lit(clip: NDArray[np.uint8], light: float, chance: np.random.Generator) -> NDArray[np.uint8]:
    """Another contrast, brightness and colour cast; the middle of the scale stays."""
    gain = np.exp(chance.uniform(-light, light))
    shift = chance.uniform(-light, light) + chance.normal(0, light / 2, 3)
    middle, spread = 255 * MEAN, 255 * DEVIATION
    table = (np.arange(256)[:, None] - middle) * gain + middle + spread * shift
    values = np.clip(np.rint(table), 0, 255).astype(np.uint8)
    return np.asarray(values[clip, np.arange(3)])


def _cropped(
    clip: NDArray[np.uint8], share: float, chance: np.random.Generator
) -> NDArray[np.uint8]:
    """A random part of the pictures, of so large a share of their area, at their old size."""
    height, width = clip.shape[1:3]
    high, wide = (max(1, round(side * share**0.5)) for side in (height, width))
    top = int(chance.integers(height - high + 1))
    left = int(chance.integers(width - wide + 1))
    part = np.ascontiguousarray(clip[:, top : top + high, left : left + wide])
    pictures = torch.from_numpy(part).permute(0, 3, 1, 2)
    grown = functional.interpolate(pictures, (height, width), mode="bilinear")
    return grown.permute(0, 2, 3, 1).numpy()
