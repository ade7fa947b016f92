"""Sources of videos by name: a folder, a file, a manifest, the demo, or a published data set."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

from stepgraph.core import Dataset, Vocabulary
from stepgraph.datasets.published import REGISTRY, Opening, Shard, find_published
from stepgraph.datasets.reading import Truth
from stepgraph.errors import ConfigError, DataError, quoted
from stepgraph.files.disk import listed
from stepgraph.ingest import Listening
from stepgraph.ingest.naming import MEDIA_SUFFIXES

__all__ = ["REGISTRY", "Shard", "open_source"]


def open_source(
    source: str | Path,
    *,
    strict: bool | None = None,
    split: str = "all",
    vocabulary: Vocabulary | None = None,
    shard: Shard = Shard(),
    listening: Listening = Listening(),
) -> Dataset:
    """Open videos, and their vocabulary and truth where the source has them.

    >>> dataset = open_source("demo")
    >>> len(list(dataset.videos)), len(dataset.truth), len(dataset.vocabulary)
    (36, 36, 49)

    Parameters
    ----------
    source
        A folder of videos and transcripts, one such file, a manifest, ``demo``, ``generated``
        (rendered video files), or a published data set: ``crosstask:PATH``, ``coin:PATH``,
        ``howto100m:PATH``; video files in its folder ``videos`` are found by their ids.
    strict
        Stop at the first mistake in the files; otherwise what cannot be read is left out and
        kept in the ``problems`` of the data set.  If not given, one's own files are read
        strictly except for single cues of transcripts, and published data sets are not.
    split
        ``train`` or ``val`` of CrossTask, ``training`` or ``testing`` of COIN.
    vocabulary
        What the truth of a folder or manifest without ``steps.txt`` refers to.
    shard, listening
        Only one of several parts; how to hear video files (:func:`~stepgraph.open_video`).
    """
    text = str(source)
    kind, colon, rest = text.partition(":")
    if colon and kind in (*REGISTRY, "manifest") and not rest.strip():
        raise ConfigError(f"source '{kind}:' must name a path after the colon, got none")
    published = find_published(kind) if colon and kind in REGISTRY else None
    splits = published.splits if published else ("all",)
    if split not in splits:
        subject, known = kind if published else quoted(text), ", ".join(map(repr, splits))
        raise ConfigError(f"split of {subject} must be one of {known}, got {quoted(split)}")
    if published:
        path = Path(os.path.expanduser(rest))
        published.require(path, kind)
        films = _films(path / "videos")
        how = Opening(bool(strict), split, shard, listening.needed, films)
        return _part(published.open(path, how), shard)
    if kind == "generated" and (not colon or re.fullmatch("[0-9]{1,18}", rest)):
        from stepgraph.datasets.generated import open_generated

        return _part(open_generated(int(rest or 0)), shard)
    return _part(_open_own(text, strict, vocabulary, listening), shard)


def _films(folder: Path) -> dict[str, Path]:
    """Video files of a published data set, which lie in a folder under their ids."""
    files = listed(folder) if folder.is_dir() else ()
    return {path.stem: path for path in files if path.suffix in MEDIA_SUFFIXES}


def _open_own(
    text: str, strict: bool | None, vocabulary: Vocabulary | None, listening: Listening
) -> Dataset:
    from stepgraph.datasets import folder, manifest

    if text == "demo":
        return folder.open_folder(Path(__file__).parent / "demo", name="demo")
    # os.path answers False for a name that is too long, Path would raise.
    named = text.startswith("manifest:") and not os.path.exists(text)
    text = text.removeprefix("manifest:") if named else text
    path = Path(text if os.path.exists(text) else os.path.expanduser(text))
    if named or (os.path.isfile(path) and path.suffix.lower() in (".jsonl", ".csv")):
        opener = manifest.open_manifest
    elif text.strip() and os.path.isdir(path):
        opener = folder.open_folder
    elif os.path.isfile(path):
        opener = folder.open_file
    else:
        published = "".join(f"'{prefix}:PATH', " for prefix in REGISTRY)
        raise ConfigError(
            f"source must be a folder, a video or transcript file, a manifest (.jsonl, .csv), "
            f"'demo', 'generated', {published}or 'manifest:PATH', got {quoted(text)}, where "
            f"nothing is"
        )
    return opener(path, strict=strict, vocabulary=vocabulary, listening=listening)


def _part(dataset: Dataset, shard: Shard) -> Dataset:
    """The videos of a shard with their truth; who streams them has left out the others."""
    if shard.parts == 1 or not isinstance(dataset.videos, tuple):
        return dataset
    videos = tuple(video for video in dataset.videos if video.id in shard)
    if not videos:
        raise DataError(
            f"shard {shard} of {dataset.name} must hold videos, got none; take fewer parts"
        )
    truth = dataset.truth
    if isinstance(truth, Truth):
        truth = Truth(truth.vocabulary, {one: truth.done[one] for one in truth if one in shard})
    return replace(dataset, videos=videos, truth=truth)
