"""Source a vocabulary by name: from a data set, from articles, or from a list.

The paper takes the keysteps of CrossTask and COIN as they are, and for HowTo100M the step
headlines of the WikiHow articles of its frequent tasks.
"""

from __future__ import annotations

import os
from pathlib import Path

from stepgraph.core import Vocabulary
from stepgraph.datasets.coin import open_coin
from stepgraph.datasets.crosstask import read_crosstask_vocabulary
from stepgraph.datasets.howto100m import read_tasks
from stepgraph.errors import ConfigError
from stepgraph.problems import Problems
from stepgraph.vocabulary import (
    add_noise,
    read_articles,
    read_vocabulary,
    vocabulary_from_articles,
)


def source_vocabulary(
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
    if colon and kind == "crosstask":
        return read_crosstask_vocabulary(path, problems)
    if colon and kind == "coin":
        dataset = open_coin(path, strict=False)
        # Narration is not asked for here.
        for problem in dataset.problems.found:
            if problem.kind != "incomplete narration":
                problems.add(problem.where, problem.kind, problem.what)
        vocabulary = dataset.vocabulary
        assert vocabulary is not None, "COIN brings its vocabulary"
        return vocabulary
    if colon and kind == "articles":
        every = read_articles(path, problems=problems)
        return vocabulary_from_articles(None, every, max_steps=max_steps, problems=problems)
    if colon and kind == "howto100m":
        if articles is None:
            raise ConfigError(
                "a vocabulary of HowTo100M must be built from articles, got none; "
                "pass WikiHow articles with --articles PATH"
            )
        return vocabulary_from_articles(
            [(task.name, task.videos) for task in read_tasks(path, problems)],
            read_articles(articles, problems=problems),
            min_videos=min_videos,
            max_steps=max_steps,
            problems=problems,
        )
    return read_vocabulary(Path(source))


def add_noise_from(
    vocabulary: Vocabulary, source: str | None, *, factor: float, seed: int
) -> Vocabulary:
    """Mix in irrelevant keysteps of another source: the supplement's noise experiment."""
    if source is None:
        raise ConfigError(
            "noise must come from somewhere, got nothing; pass a source with --noise-from, for "
            "example --noise-from articles:PATH"
        )
    return add_noise(vocabulary, source_vocabulary(source), factor=factor, seed=seed)
