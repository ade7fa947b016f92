"""Ask data sets what they hold without opening them: which lie in a folder, and their keysteps."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from stepgraph.core import Vocabulary
from stepgraph.datasets import REGISTRY, find_published
from stepgraph.datasets.published import places_below
from stepgraph.errors import ConfigError, DataError, StepgraphError
from stepgraph.problems import Problems
from stepgraph.vocabulary import read_articles, read_vocabulary, vocabulary_from_articles


class Found(NamedTuple):
    """A data set in a folder, the source to open it by, how much it holds and what it lacks."""

    name: str
    source: str
    counts: Mapping[str, int]
    missing: tuple[str, ...]


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


def build_vocabulary(
    source: str,
    *,
    articles: Path | None = None,
    min_videos: int = 100,
    max_steps: int | None = None,
    problems: Problems | None = None,
) -> Vocabulary:
    """Build the vocabulary that a name stands for.

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
    path = Path(os.path.expanduser(rest))
    tasks = None
    if colon and kind in REGISTRY:
        published = find_published(kind)
        published.require(path, kind)
        if published.vocabulary:
            return published.vocabulary(path, problems)
        if articles is None or published.tasks is None:
            raise ConfigError(
                f"a vocabulary of {published.title} must be built from articles, got none; "
                "pass WikiHow articles with --articles PATH"
            )
        tasks, path = published.tasks(path, problems), articles
    elif not (colon and kind == "articles"):
        return read_vocabulary(Path(source))
    return vocabulary_from_articles(
        tasks,
        read_articles(path, problems=problems),
        min_videos=min_videos,
        max_steps=max_steps,
        problems=problems,
    )
