"""Build the vocabulary that a name stands for: of a data set, of articles, or of a list.

The paper takes the keysteps of CrossTask and COIN as they are, and for HowTo100M the step
headlines of the WikiHow articles of its frequent tasks.
"""

from __future__ import annotations

import os
from pathlib import Path

from stepgraph.core import Vocabulary
from stepgraph.datasets import REGISTRY, find_published
from stepgraph.errors import ConfigError
from stepgraph.problems import Problems
from stepgraph.vocabulary import read_articles, read_vocabulary, vocabulary_from_articles


def build_vocabulary(
    source: str,
    *,
    articles: Path | None = None,
    min_videos: int = 100,
    max_steps: int | None = None,
    problems: Problems | None = None,
) -> Vocabulary:
    """Build a vocabulary.

    Parameters
    ----------
    source
        ``crosstask:PATH``, ``coin:PATH``, ``howto100m:PATH`` (needs ``articles``),
        ``articles:PATH`` (every article is a task), or a file: a list or a saved vocabulary.
    articles
        WikiHow articles; see :func:`~stepgraph.vocabulary.read_articles` for the formats.
    min_videos
        HowTo100M: keep tasks with at least so many videos (the paper: 100).
    max_steps
        Take at most so many steps of an article.
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
