"""Batches of clips with their targets, from stored clips or straight from the videos.

Order and augmentation of stored clips depend on the seed, the epoch and the clip alone, so that
any number of workers and processes get the same batches.  A streamed clip comes when its video is
decoded: its order depends on the number of workers as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from stepgraph.errors import DataError
from stepgraph.ingest.frames import ClipOptions, read_clips
from stepgraph.networks.timesformer import DEVIATION, MEAN
from stepgraph.problems import Problem
from stepgraph.training.clip_store import UNDECODABLE, ClipStore
from stepgraph.training.schedule import ALONE, Team, TrainingOptions
from stepgraph.training.targets import Examples

# Batches that each worker prepares ahead.
_AHEAD = 4


class Batch(NamedTuple):
    """Share of one process in a step; only its first ``real`` clips count.

    Clips have shape (B, F, H, W, 3), soft keysteps and weights (B, 3) each.  ``total`` is the
    number of clips that count in all processes together, if it is known beforehand.
    """

    clips: Tensor
    keysteps: Tensor
    soft: tuple[Tensor, ...]
    real: int
    total: int | None = None
    failed: tuple[Problem, ...] = ()


class Source(IterableDataset[Batch]):
    """Data set of batches; each of its workers makes a share of them, and reads ahead."""

    def __init__(
        self,
        examples: Examples,
        clips: ClipOptions,
        options: TrainingOptions,
        *,
        team: Team = ALONE,
        workers: int = 0,
    ) -> None:
        self.examples, self.clips, self.options = examples, clips, options
        self.team, self.workers = team, workers
        self.epoch = self.first = 0

    @property
    def blank(self) -> Batch:
        """Batch of one black clip, for a process that has no clip left while others have."""
        shape = (self.clips.frames, self.clips.height, self.clips.width, 3)
        return self._batch([0], [np.zeros(shape, dtype=np.uint8)], real=0)

    def batches(self, epoch: int, first: int) -> Iterator[Batch]:
        """Iterate over the batches of an epoch, both counted from 0, from the ``first`` on."""
        # Workers have copies of this source, and are started anew for each epoch.
        self.epoch, self.first = epoch, first
        loader = DataLoader(
            self,
            batch_size=None,
            collate_fn=_as_it_is,
            num_workers=self.workers,
            # Where a GPU fetches batches without waiting.
            pin_memory=self.team.device.type == "cuda",
            prefetch_factor=_AHEAD if self.workers else None,
            # Its own, so that reading draws nothing from what the network draws from.
            generator=torch.Generator(),
        )
        return iter(loader)

    def _batch(
        self,
        rows: Sequence[int],
        clips: Sequence[NDArray[np.uint8]],
        *,
        real: int,
        total: int | None = None,
    ) -> Batch:
        some = np.asarray(rows)
        keysteps = torch.from_numpy(self.examples.keystep[some]).to(torch.int64)
        soft = tuple(torch.from_numpy(values[some]) for values in self.examples.soft)
        return Batch(torch.from_numpy(np.stack(clips)), keysteps, soft, real, total)


class StoredSource(Source):
    """Source of stored clips, read in random order."""

    def __init__(
        self, examples: Examples, store: ClipStore, options: TrainingOptions, **more: Any
    ) -> None:
        super().__init__(examples, store.options, options, **more)
        self._store, self._ids = store, tuple(examples.videos)

    def __iter__(self) -> Iterator[Batch]:
        worker, workers = _which_worker()
        for step in islice(self._steps(), worker, None, workers):
            own = np.array_split(step, self.team.world)[self.team.rank]
            rows = (own if len(own) else step[:1]).tolist()
            clips = [augment(self._read(row), (self.epoch, row), self.options) for row in rows]
            yield self._batch(rows, clips, real=len(own), total=len(step))

    def _steps(self) -> Iterator[NDArray[np.int64]]:
        """Yield the examples of an epoch in random order, in steps that the processes share."""
        count, size = len(self.examples), self.options.batch
        rows = np.random.default_rng([self.options.seed, self.epoch]).permutation(count)
        return (rows[start : start + size] for start in range(self.first * size, count, size))

    def _read(self, row: int) -> NDArray[np.uint8]:
        video = self._ids[self.examples.video[row]]
        return self._store.read(video, int(self.examples.clip[row]))


class StreamedSource(Source):
    """Source of clips decoded anew in every epoch; each worker decodes videos and shuffles."""

    def batches(self, epoch: int, first: int) -> Iterator[Batch]:
        """See :class:`Source`; batches before ``first`` are decoded and dropped."""
        return islice(super().batches(epoch, first), first, None)

    def __iter__(self) -> Iterator[Batch]:
        worker, workers = _which_worker()
        own = self.team.rank * workers + worker
        chance = np.random.default_rng([self.options.seed, self.epoch])
        videos = chance.permutation(len(self.examples.videos))[own :: self.team.world * workers]
        chance = np.random.default_rng([self.options.seed, self.epoch, own])
        failed: list[Problem] = []
        size = max(1, self.options.batch // self.team.world)
        shuffled = _shuffled(self._decoded(videos, failed), self.options.buffer, chance)
        while (block := list(islice(shuffled, size))) or failed:
            clips = [augment(clip, (self.epoch, row), self.options) for row, clip in block]
            rows = [row for row, _ in block]
            batch = self._batch(rows, clips, real=len(rows)) if rows else self.blank
            yield batch._replace(failed=tuple(failed))
            failed.clear()

    def _decoded(
        self, videos: NDArray[np.int64], failed: list[Problem]
    ) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield the labelled clips of whole videos, with their positions among the examples."""
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
                failed.append(Problem(f"video {name!r}", UNDECODABLE, str(error), fatal=True))


def _which_worker() -> tuple[int, int]:
    """Index of this worker, and the number of workers."""
    info = get_worker_info()
    return (info.id, info.num_workers) if info else (0, 1)


def _as_it_is(batch: Any) -> Any:
    return batch  # torch would make lists of its tuples


def too_short(video: str, path: Path, wanted: int, got: int) -> Problem:
    """Make the problem of a video that has fewer clips than were labelled."""
    what = f"{path}: must have the {wanted} clips that were labelled, got {got}; label it again"
    return Problem(f"video {video!r}", "video shorter than its labels", what)


def _shuffled(
    items: Iterable[tuple[int, NDArray[np.uint8]]], size: int, chance: np.random.Generator
) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Shuffle items in a buffer of ``size``, from which each new one releases a random one."""
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
    """Mirror, crop and relight a clip at random as the options require, all its pictures alike.

    The random numbers depend on the seed, the epoch and the example (``which``).
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
    """Change the contrast around the mean colour, the brightness and the colour cast at random."""
    gain = np.exp(chance.uniform(-light, light))
    shift = chance.uniform(-light, light) + chance.normal(0, light / 2, 3)
    middle, spread = 255 * MEAN, 255 * DEVIATION
    table = (np.arange(256)[:, None] - middle) * gain + middle + spread * shift
    values = np.clip(np.rint(table), 0, 255).astype(np.uint8)
    return np.asarray(values[clip, np.arange(3)])


def _cropped(
    clip: NDArray[np.uint8], share: float, chance: np.random.Generator
) -> NDArray[np.uint8]:
    """Crop a random part of the pictures, a ``share`` of their area, and resize it to them."""
    height, width = clip.shape[1:3]
    high, wide = (max(1, round(side * share**0.5)) for side in (height, width))
    top = int(chance.integers(height - high + 1))
    left = int(chance.integers(width - wide + 1))
    part = np.ascontiguousarray(clip[:, top : top + high, left : left + wide])
    pictures = torch.from_numpy(part).permute(0, 3, 1, 2)
    grown = functional.interpolate(pictures, (height, width), mode="bilinear")
    return grown.permute(0, 2, 3, 1).numpy()
