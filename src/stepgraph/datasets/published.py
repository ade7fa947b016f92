"""What a published data set brings to be opened, surveyed and asked for keysteps by its name.

``open_source``, the survey and the vocabularies know no more of a data set than its
:class:`Published` and its line in the registry.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from stepgraph.core import Dataset, Vocabulary
from stepgraph.errors import ConfigError, DataError, quoted
from stepgraph.problems import Problems

# How deep below a folder a data set is looked for.
_DEPTH = 2
_NUMBER = re.compile("[0-9]{1,9}")
_SHARD_RULE = "shard must be I/N with I from 1 to N, such as 2/8"


@dataclass(frozen=True)
class Shard:
    """One part of a corpus that several machines share: the ``part``-th of so many ``parts``.

    Which part a video belongs to depends on its id alone: not on the order of the others, nor on
    which of them have a narration or stored scores.

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
    """How a data set is to be opened; see :func:`~stepgraph.open_source`.

    ``narrated`` asks for narrated videos only; who looks takes the others, too.  ``films`` are
    the video files by id.
    """

    strict: bool
    split: str
    shard: Shard
    narrated: bool
    films: Mapping[str, Path]


@dataclass(frozen=True)
class Published:
    """A published data set; a folder in which one of the files ``marks`` lies is one of it.

    ``open`` opens the videos; one that streams them reads only those of the shard.  ``survey``
    counts what it holds, and says what it lacks.  Its keysteps are its own ``vocabulary``, or
    else those of articles about its ``tasks``: their names, with how many videos each has.
    """

    title: str
    marks: tuple[str, ...]
    open: Callable[[Path, Opening], Dataset]
    survey: Callable[[Path], tuple[Mapping[str, int], tuple[str, ...]]]
    vocabulary: Callable[[Path, Problems], Vocabulary] | None = None
    tasks: Callable[[Path, Problems], list[tuple[str, int]]] | None = None
    splits: tuple[str, ...] = ("all",)

    def lies_in(self, folder: Path) -> bool:
        """Tell whether a folder is one of this data set."""
        return any(os.path.isfile(folder / mark) for mark in self.marks)

    def require(self, path: Path, prefix: str) -> None:
        """Refuse a place where it is not, and say where it is if that is near."""
        is_folder = os.path.isdir(path)
        if os.path.isfile(path) or self.lies_in(path):
            return
        near = (*places_below(path), *path.absolute().parents[:1]) if is_folder else ()
        found = next((place for place in near if self.lies_in(place)), None)
        got = "no such file" if is_folder else "no such folder"
        hint = f"did you mean {prefix}:{found}?" if found else "check the path"
        raise DataError(
            f"{path}: must be the folder of {self.title}, which contains "
            f"{' or '.join(self.marks)}, got {got}; {hint}"
        )


def places_below(folder: Path, depth: int = _DEPTH) -> Iterator[Path]:
    """A folder and those below it, as far as data sets are looked for."""
    yield folder
    if depth:
        for below in sorted(folder.iterdir()):
            if below.is_dir() and not below.name.startswith("."):
                yield from places_below(below, depth - 1)
