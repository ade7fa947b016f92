"""Say which data sets lie in a folder, what they hold, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from stepgraph.datasets import REGISTRY, find_published
from stepgraph.datasets.published import places_below
from stepgraph.errors import DataError, StepgraphError
from stepgraph.problems import Problems
from stepgraph.vocabulary import read_articles


@dataclass(frozen=True)
class Found:
    """A data set in a folder, how much of what it holds, and what it lacks.

    Other verbs take ``source``.
    """

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
            # A broken data set is named with its error, and hides no other.
            try:
                yield Found(published.title, f"{prefix}:{place}", *published.survey(place))
            except StepgraphError as error:
                title = f"{published.title} (broken)"
                yield Found(title, f"{prefix}:{place}", {}, (str(error),))
    tables = (place / name for name in ("wikihowAll.csv", "wikihowSep.csv"))
    for path in (*sorted(place.glob("*.jsonl")), *tables):
        # What has no articles is some other file of lines, or not there.
        with suppress(StepgraphError):
            steps = [len(article.steps) for article in read_articles(path, problems=Problems())]
            counts = {"articles": len(steps), "steps": sum(steps)}
            yield Found("WikiHow articles", f"articles:{path}", counts, ())
