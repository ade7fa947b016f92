"""What a published data set brings to be opened, surveyed and asked for keysteps by its name.

The module of a data set describes it in a :class:`Published`; ``open_source``, the survey and the
vocabularies know no more of it than this and its line in the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from stepgraph.core import Dataset, Vocabulary
from stepgraph.datasets.shard import Shard
from stepgraph.errors import ConfigError, DataError
from stepgraph.problems import Problems

# How deep below a folder a data set is looked for.
_DEPTH = 2


@dataclass(frozen=True)
class Opening:
    """How a data set is to be opened; see :func:`~stepgraph.open_source`.

    ``narrated`` asks for narrated videos only; who looks takes the others, too.
    """

    strict: bool = False
    split: str = "all"
    shard: Shard = Shard()
    narrated: bool = True


@dataclass(frozen=True)
class Headlines:
    """Articles whose step headlines may become keysteps, and how many of them."""

    articles: Path | None = None
    min_videos: int = 100
    max_steps: int | None = None


@dataclass(frozen=True)
class Holdings:
    """What a data set holds, by name, and what it lacks, with where its authors publish it."""

    counts: Mapping[str, int]
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Published:
    """A published data set.

    Attributes
    ----------
    marks
        Names of files; a folder in which one of them lies is a folder of this data set.
    open
        Opens the videos.  One that streams them reads only those of the shard.
    """

    title: str
    marks: tuple[str, ...]
    open: Callable[[Path, Opening], Dataset]
    vocabulary: Callable[[Path, Headlines, Problems], Vocabulary]
    survey: Callable[[Path], Holdings]
    splits: tuple[str, ...] = ("all",)

    def lies_in(self, folder: Path) -> bool:
        """Tell whether a folder is one of this data set."""
        return any((folder / mark).is_file() for mark in self.marks)

    def require(self, path: Path, prefix: str) -> None:
        """Refuse a place where it is not, and say where it is if that is near."""
        if path.is_file() or self.lies_in(path):
            return
        near = (*places_below(path), *path.absolute().parents[:1]) if path.is_dir() else ()
        found = next((place for place in near if self.lies_in(place)), None)
        got = "no such file" if path.is_dir() else "no such folder"
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


def require_split(split: str, known: tuple[str, ...], source: str) -> None:
    """Refuse a split that a source does not have; the known ones are listed."""
    if split not in known:
        names = ", ".join(map(repr, known))
        raise ConfigError(f"split of {source} must be one of {names}, got {split!r}")
