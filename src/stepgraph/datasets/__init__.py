"""Sources of videos by name: a folder, a file, a manifest, the demo, or a published data set."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from stepgraph.core import Dataset, Vocabulary
from stepgraph.errors import ConfigError

__all__ = ["open_source"]

_MANIFEST_SUFFIXES = (".jsonl", ".csv")
_PREFIXES = ("crosstask", "coin", "howto100m", "manifest")
_KNOWN = (
    "a folder, a video or transcript file, a manifest (.jsonl, .csv), 'demo', 'crosstask:PATH', "
    "'coin:PATH', 'howto100m:PATH' or 'manifest:PATH'"
)


def open_source(
    source: str | Path,
    *,
    strict: bool | None = None,
    split: str = "all",
    vocabulary: Vocabulary | None = None,
    shard: tuple[int, int] = (0, 1),
) -> Dataset:
    """Open videos, and their vocabulary and truth where the source has them.

    Parameters
    ----------
    source
        A folder of videos and transcripts, one such file, a manifest, ``demo``, or a published
        data set: ``crosstask:PATH``, ``coin:PATH``, ``howto100m:PATH``.
    strict
        Stop at the first mistake in the files; otherwise what cannot be read is left out and
        kept in the ``problems`` of the data set.  If not given, one's own files are read
        strictly and published data sets are not.
    split
        ``train`` or ``val`` of CrossTask, ``training`` or ``testing`` of COIN.
    vocabulary
        What the truth of a folder or manifest without ``steps.txt`` refers to.
    shard
        ``(i, n)``: only every n-th video, from the i-th on.

    Examples
    --------
    >>> dataset = open_source("demo")
    >>> len(list(dataset.videos)), len(dataset.truth), len(dataset.vocabulary)
    (36, 36, 49)
    """
    _check_shard(shard)
    text = str(source)
    kind, colon, rest = text.partition(":")
    if colon and kind in _PREFIXES:
        return _open_prefixed(
            kind, rest, strict=strict, split=split, vocabulary=vocabulary, shard=shard
        )
    _only_whole(split, text)
    strict = True if strict is None else strict
    return _part(_open_own(text, strict, vocabulary), shard)


def _open_prefixed(
    kind: str,
    rest: str,
    *,
    strict: bool | None,
    split: str,
    vocabulary: Vocabulary | None,
    shard: tuple[int, int],
) -> Dataset:
    from stepgraph.datasets import coin, crosstask, manifest

    if not rest.strip():
        raise ConfigError(f"source '{kind}:' must name a path after the colon, got none")
    path = Path(os.path.expanduser(rest))
    if kind == "crosstask":
        return _part(crosstask.open_crosstask(path, strict=bool(strict), split=split), shard)
    if kind == "coin":
        return _part(coin.open_coin(path, strict=bool(strict), split=split), shard)
    _only_whole(split, kind)
    if kind == "howto100m":
        from stepgraph.datasets import howto100m

        return howto100m.open_howto100m(path, strict=bool(strict), shard=shard)
    strict = True if strict is None else strict
    return _part(manifest.open_manifest(path, strict=strict, vocabulary=vocabulary), shard)


def _open_own(text: str, strict: bool, vocabulary: Vocabulary | None) -> Dataset:
    from stepgraph.datasets import folder, manifest

    if text == "demo":
        return folder.open_folder(Path(__file__).parent / "demo", name="demo")
    # os.path answers False for a name that is too long, Path would raise.
    path = Path(text if os.path.exists(text) else os.path.expanduser(text))
    if text.strip() and os.path.isdir(path):
        return folder.open_folder(path, strict=strict, vocabulary=vocabulary)
    if os.path.isfile(path) and path.suffix.lower() in _MANIFEST_SUFFIXES:
        return manifest.open_manifest(path, strict=strict, vocabulary=vocabulary)
    if os.path.isfile(path):
        return folder.open_file(path, vocabulary=vocabulary)
    raise ConfigError(f"source must be {_KNOWN}, got {text!r}, where nothing is")


def _only_whole(split: str, source: str) -> None:
    from stepgraph.datasets.truth import require_split

    require_split(split, ("all",), repr(source))


def _check_shard(shard: tuple[int, int]) -> None:
    first, count = shard
    if not 0 <= first < count:
        raise ConfigError(
            f"shard must be (i, n) with i between 0 and n - 1, got ({first}, {count})"
        )


def _part(dataset: Dataset, shard: tuple[int, int]) -> Dataset:
    """Every n-th video with its truth."""
    first, count = shard
    if count == 1:
        return dataset
    videos = tuple(dataset.videos)[first::count]
    kept = {video.id for video in videos}
    truth = {video: labels for video, labels in dataset.truth.items() if video in kept}
    return replace(dataset, videos=videos, truth=truth)
