"""Say which data sets lie in a folder, what they hold, and what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from stepgraph.datasets import REGISTRY, find_published
from stepgraph.datasets.published import Holdings, places_below
from stepgraph.errors import DataError, StepgraphError
from stepgraph.problems import Problems
from stepgraph.vocabulary import read_articles


@dataclass(frozen=True)
class Found:
    """A data set in a folder; other verbs take ``source``, the rest is as in ``Holdings``."""

    name: str
    source: str
    counts: Mapping[str, int]
    missing: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return asdict(self)


def survey(folder: Path) -> list[Found]:
    """Recognise the data sets in a folder and the folders below it."""
    if not folder.is_dir():
        raise DataError(f"{folder}: must be a folder, got none; check the path")
    found = [one for place in places_below(folder) for one in _found_in(place)]
    if not found:
        known = [find_published(prefix) for prefix in REGISTRY]
        names = ", ".join(f"{one.title} ({one.marks[0]})" for one in known)
        raise DataError(
            f"{folder}: must contain {names} or WikiHow articles (.jsonl, wikihowAll.csv), got "
            f"none of them"
        )
    return found


def _found_in(place: Path) -> Iterator[Found]:
    for prefix in REGISTRY:
        published = find_published(prefix)
        if published.lies_in(place):
            yield _surveyed(published.title, f"{prefix}:{place}", published.survey, place)
    names = ("wikihowAll.csv", "wikihowSep.csv")
    for path in (*sorted(place.glob("*.jsonl")), *(place / name for name in names)):
        found = _surveyed("WikiHow articles", f"articles:{path}", _count_articles, path)
        if found.counts:  # else some other JSON lines
            yield found


def _surveyed(title: str, source: str, count: Callable[[Path], Holdings], place: Path) -> Found:
    """What is found; a broken data set is named with its error, and hides no other."""
    try:
        held = count(place)
    except StepgraphError as error:
        return Found(f"{title} (broken)", source, {}, (str(error),))
    return Found(title, source, held.counts, held.missing)


def _count_articles(path: Path) -> Holdings:
    if not path.is_file():
        return Holdings({})
    steps = [len(article.steps) for article in read_articles(path, problems=Problems())]
    return Holdings({"articles": len(steps), "steps": sum(steps)})
