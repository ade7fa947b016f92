"""Sources of videos by name: a folder, a file, a manifest, the demo, or a published data set.

A published one consists of its :class:`Published` and its line in the registry, and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from stepgraph.core import Dataset, Vocabulary
from stepgraph.datasets.own import Own, open_file, open_folder, open_manifest
from stepgraph.datasets.reading import Truth
from stepgraph.errors import ConfigError, DataError, StepgraphError, quoted
from stepgraph.files.addresses import Address, Location, location_of, on_disk
from stepgraph.files.disk import listed
from stepgraph.ingest import Listening
from stepgraph.ingest.formats import MEDIA_SUFFIXES
from stepgraph.problems import Problems
from stepgraph.vocabulary import read_articles, read_vocabulary, vocabulary_from_articles

REGISTRY = {
    "crosstask": "stepgraph.datasets.crosstask",
    "coin": "stepgraph.datasets.coin",
    "howto100m": "stepgraph.datasets.howto100m",
}
"""Published data sets by prefix: modules with a ``PUBLISHED``."""

_NUMBER = re.compile("[0-9]{1,9}")
_SHARD_RULE = "shard must be I/N with I from 1 to N, such as 2/8"


@dataclass(frozen=True)
class Shard:
    """One shard of a corpus that several machines process: number ``part`` of ``parts``.

    The shard of a video depends on its id alone: not on the order of the others, nor on which of
    them have a narration or stored scores.

    >>> shard = Shard.parse("2/8")
    >>> str(shard), shard.part, "0Zz4" in shard
    ('2/8', 2, False)
    """

    part: int = 1
    parts: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.part <= self.parts:
            raise ConfigError(f"{_SHARD_RULE}, got '{self}'")

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read ``I/N``."""
        part, _, parts = text.partition("/")
        if not (_NUMBER.fullmatch(part.strip()) and _NUMBER.fullmatch(parts.strip())):
            raise ConfigError(f"{_SHARD_RULE}, got {quoted(text)}")
        return cls(int(part), int(parts))

    def __str__(self) -> str:
        return f"{self.part}/{self.parts}"

    def __contains__(self, video: str) -> bool:
        if self.parts == 1:
            return True
        # A hash that is the same on every machine and in every run.
        digest = hashlib.blake2b(video.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.parts == self.part - 1


@dataclass(frozen=True)
class Opening:
    """Options for opening a data set; see :func:`~stepgraph.open_source`.

    ``narrated`` leaves out videos without narration, which only visual encoders can use.
    ``films`` are the video files by id.
    """

    strict: bool
    split: str
    shard: Shard
    narrated: bool
    films: Mapping[str, Path]


@dataclass(frozen=True)
class Published:
    """A published data set; one of the files ``marks`` identifies its folder.

    ``open`` opens the videos; one that streams them reads only those of the shard.  ``survey``
    counts the contents, and lists the missing parts.  The keysteps are the ``vocabulary`` of the
    data set, or those of articles about its ``tasks``, given by name and number of videos.
    """

    title: str
    marks: tuple[str, ...]
    open: Callable[[Any, Opening], Dataset]
    survey: Callable[[Path], tuple[Mapping[str, int], tuple[str, ...]]]
    vocabulary: Callable[[Any, Problems], Vocabulary] | None = None
    tasks: Callable[[Any, Problems], list[tuple[str, int]]] | None = None
    splits: tuple[str, ...] = ("all",)
    streamed: bool = False

    def lies_in(self, folder: Path) -> bool:
        """Check that a folder holds this data set."""
        return any(os.path.isfile(folder / mark) for mark in self.marks)

    def find(self, text: str, prefix: str) -> Location:
        """Locate the data set at a path; the error for another path suggests one nearby."""
        path = location_of(text)
        if isinstance(path, Address):
            return path if self.streamed else Path(on_disk(f"{prefix}:{text}"))
        is_folder = os.path.isdir(path)
        if os.path.isfile(path) or self.lies_in(path):
            return path
        near = (*places_below(path), *path.absolute().parents[:1]) if is_folder else ()
        found = next((place for place in near if self.lies_in(place)), None)
        got = "no such file" if is_folder else "no such folder"
        hint = f"did you mean {prefix}:{found}?" if found else "check the path"
        raise DataError(
            f"{path}: must be the folder of {self.title}, which contains "
            f"{' or '.join(self.marks)}, got {got}; {hint}"
        )


def find_published(prefix: str) -> Published:
    """Import the module of a prefix, and return its published data set."""
    found: Published = import_module(REGISTRY[prefix]).PUBLISHED
    return found


def places_below(folder: Path, depth: int = 2) -> Iterator[Path]:
    """Yield a folder and those below it, down to the depth of a search for data sets."""
    yield folder
    with suppress(DataError):
        for below in listed(folder) if depth else ():
            if below.is_dir() and not below.name.startswith("."):
                yield from places_below(below, depth - 1)


def open_source(
    source: str | Path,
    *,
    strict: bool | None = None,
    split: str = "all",
    vocabulary: Vocabulary | None = None,
    shard: Shard = Shard(),  # noqa: B008 - frozen
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
        (rendered video files; ``generated:captions`` has text in the pictures), or a published
        data set: ``crosstask:PATH``, ``coin:PATH``, ``howto100m:PATH`` (or an address of fsspec,
        as ``howto100m:s3://BUCKET/FOLDER``); video files in its folder ``videos`` are found by
        their ids.
    strict
        Stop at the first mistake in the files; otherwise unreadable parts are left out and
        added to the ``problems`` of the data set.  If not given, a user's own files are read
        strictly except for single cues of transcripts, and published data sets are not.
    split
        ``train`` or ``val`` of CrossTask, ``training`` or ``testing`` of COIN.
    vocabulary
        Vocabulary of the truth of a folder or manifest without ``steps.txt``.
    shard, listening
        One of several shards; options for transcription (:func:`~stepgraph.open_video`).
    """
    text = str(source)
    kind, colon, rest = text.partition(":")
    if colon and kind in (*REGISTRY, "manifest") and not rest.strip():
        raise ConfigError(f"source '{kind}:' must name a path after the colon, got none")
    published = find_published(kind) if colon and kind in REGISTRY else None
    splits = published.splits if published else ("all",)
    if split not in splits:
        subject, choices = kind if published else quoted(text), ", ".join(map(repr, splits))
        raise ConfigError(f"split of {subject} must be one of {choices}, got {quoted(split)}")
    if published:
        path = published.find(rest, kind)
        folder = path / "videos"
        # Video files are looked for on a disk alone.
        files = listed(folder) if isinstance(folder, Path) and folder.is_dir() else ()
        films = {file.stem: file for file in files if file.suffix in MEDIA_SUFFIXES}
        how = Opening(bool(strict), split, shard, listening.needed, films)
        return _part(published.open(path, how), shard)
    if generated := re.fullmatch("generated(:captions)?(?::([0-9]{1,18}))?", text):
        from stepgraph.datasets.generated import open_generated

        captions, seed = generated.groups()
        return _part(open_generated(int(seed or 0), captions=bool(captions)), shard)
    return _part(_open_own(text, Own(strict, vocabulary, listening)), shard)


def _open_own(text: str, how: Own) -> Dataset:
    if text == "demo":
        return open_folder(Path(__file__).parent / "demo", how, name="demo")
    # os.path answers False for a name that is too long, Path would raise.
    named = text.startswith("manifest:") and not os.path.exists(text)
    text = on_disk(text).removeprefix("manifest:") if named else on_disk(text)
    path = Path(text if os.path.exists(text) else os.path.expanduser(text))
    if named or (os.path.isfile(path) and path.suffix.lower() in (".jsonl", ".csv")):
        opener = open_manifest
    elif text.strip() and os.path.isdir(path):
        opener = open_folder
    elif os.path.isfile(path):
        opener = open_file
    else:
        published = "".join(f"'{prefix}:PATH', " for prefix in REGISTRY)
        raise ConfigError(
            f"source must be a folder, a video or transcript file, a manifest (.jsonl, .csv), "
            f"'demo', 'generated', {published}or 'manifest:PATH', got {quoted(text)}, which "
            f"does not exist"
        )
    return opener(path, how)


def _part(dataset: Dataset, shard: Shard) -> Dataset:
    """Restrict a data set to the videos of a shard; one that streams is already restricted."""
    if shard.parts == 1 or not isinstance(dataset.videos, tuple):
        return dataset
    videos = tuple(video for video in dataset.videos if video.id in shard)
    if not videos:
        raise DataError(
            f"shard {shard} of {dataset.name} must hold videos, got none; use fewer shards"
        )
    truth = dataset.truth
    if isinstance(truth, Truth):
        truth = Truth(truth.vocabulary, {one: truth.done[one] for one in truth if one in shard})
    return replace(dataset, videos=videos, truth=truth)


class FoundDataset(NamedTuple):
    """A data set in a folder: its name, the source to open, its counts and its missing parts."""

    name: str
    source: str
    counts: Mapping[str, int]
    missing: tuple[str, ...]


def survey(folder: Path) -> list[FoundDataset]:
    """Recognise the data sets in a folder and the folders below it."""
    if not folder.is_dir():
        raise DataError(f"{folder}: must be a folder, got none; check the path")
    found = [one for place in places_below(folder) for one in _found_in(place)]
    if not found:
        choices = [find_published(prefix) for prefix in REGISTRY]
        names = ", ".join(f"{one.title} ({one.marks[0]})" for one in choices)
        raise DataError(
            f"{folder}: must contain {names} or WikiHow articles (.jsonl, wikihowAll.csv), got "
            f"none of them"
        )
    return found


def _found_in(place: Path) -> Iterator[FoundDataset]:
    for prefix in REGISTRY:
        published = find_published(prefix)
        if published.lies_in(place):
            # A broken data set is named with its error, and hides no other.
            try:
                yield FoundDataset(published.title, f"{prefix}:{place}", *published.survey(place))
            except StepgraphError as error:
                title = f"{published.title} (broken)"
                yield FoundDataset(title, f"{prefix}:{place}", {}, (str(error),))
    tables = (place / name for name in ("wikihowAll.csv", "wikihowSep.csv"))
    for path in (*sorted(place.glob("*.jsonl")), *tables):
        # What has no articles is some other file of lines, or not there.
        with suppress(StepgraphError):
            steps = [len(article.steps) for article in read_articles(path, problems=Problems())]
            counts = {"articles": len(steps), "steps": sum(steps)}
            yield FoundDataset("WikiHow articles", f"articles:{path}", counts, ())


def build_vocabulary(
    source: str,
    *,
    articles: Path | None = None,
    min_videos: int = 100,
    max_steps: int | None = None,
    problems: Problems | None = None,
) -> Vocabulary:
    """Build the vocabulary of a source.

    The paper takes the keysteps of CrossTask and COIN as they are, and for HowTo100M the step
    headlines of the WikiHow articles of its frequent tasks.

    Parameters
    ----------
    source
        ``crosstask:PATH``, ``coin:PATH``, ``howto100m:PATH`` (needs ``articles``),
        ``articles:PATH`` (every article is a task), or a file: a list or a saved vocabulary.
    articles, min_videos, max_steps
        See :func:`~stepgraph.vocabulary.vocabulary_from_articles`.
    """
    problems = problems if problems is not None else Problems()
    kind, colon, rest = source.partition(":")
    path, tasks = Path(os.path.expanduser(rest)), None
    if colon and kind in REGISTRY:
        published = find_published(kind)
        place = published.find(rest, kind)
        if published.vocabulary:
            return published.vocabulary(place, problems)
        if articles is None or published.tasks is None:
            raise ConfigError(
                f"a vocabulary of {published.title} must be built from articles, got none; "
                f"give WikiHow articles"
            )
        tasks, path = published.tasks(place, problems), articles
    elif not (colon and kind == "articles"):
        return read_vocabulary(Path(source))
    return vocabulary_from_articles(
        tasks,
        read_articles(path, problems=problems),
        min_videos=min_videos,
        max_steps=max_steps,
        problems=problems,
    )
