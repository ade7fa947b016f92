"""Build a vocabulary of the step headlines of articles: the paper's way for HowTo100M."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from stepgraph.core import Vocabulary
from stepgraph.errors import ConfigError, DataError
from stepgraph.problems import Problems
from stepgraph.vocabulary.articles import Article, join_methods, match_articles
from stepgraph.vocabulary.lists import vocabulary_of_tasks
from stepgraph.vocabulary.noise import compared


def vocabulary_from_articles(
    tasks: Iterable[tuple[str, int]] | None,
    articles: Iterable[Article],
    *,
    min_videos: int = 100,
    max_steps: int | None = None,
    problems: Problems | None = None,
) -> Vocabulary:
    """Make a vocabulary of the step headlines of the articles that teach the tasks.

    The paper's rule for HowTo100M: of the tasks with at least 100 videos, all step headlines of
    the article with the task's title.  A headline that several tasks share is one keystep of
    each of them.

    Parameters
    ----------
    tasks
        Name and number of videos of each task; None takes every article as a task.
    articles
        Taken one at a time; only those of the tasks are kept.
    min_videos
        Tasks with fewer videos are left out.  Without tasks it has no meaning.
    max_steps
        So many steps of each article, from its first, are taken; None takes all.
    problems
        Receives the tasks that have no article.
    """
    if max_steps is not None and max_steps < 1:
        raise ConfigError(f"max_steps must be at least 1, or None for all, got {max_steps}")
    problems = problems if problems is not None else Problems()
    if tasks is None:
        found = {article.title: article for article in join_methods(articles, problems)}
    else:
        found = _articles_of(_frequent(tasks, min_videos), articles, min_videos, problems)
    steps = {task: article.steps[:max_steps] for task, article in found.items()}
    keysteps: dict[str, str] = {}  # as compared: as first written
    for step in chain.from_iterable(steps.values()):
        keysteps.setdefault(compared(step), step)
    if len(keysteps) < 2:
        raise DataError(
            f"articles must have at least 2 different steps in all, got {len(keysteps)}; give "
            f"more articles, lower min_videos ({min_videos}) or raise max_steps ({max_steps})"
        )
    members = {task: [keysteps[compared(step)] for step in own] for task, own in steps.items()}
    return vocabulary_of_tasks(keysteps.values(), members, "articles")


def _frequent(tasks: Iterable[tuple[str, int]], min_videos: int) -> list[str]:
    videos: Counter[str] = Counter()
    for name, count in tasks:
        videos[name] += count
    kept = [name for name, count in videos.items() if count >= min_videos]
    if not kept:
        most = max(videos.values(), default=0)
        raise DataError(
            f"min_videos must leave some of the {len(videos)} tasks, got {min_videos}, and the "
            f"task with most videos has {most}; lower it"
        )
    return kept


def _articles_of(
    names: Sequence[str], articles: Iterable[Article], min_videos: int, problems: Problems
) -> dict[str, Article]:
    read = 0

    def counted() -> Iterator[Article]:
        nonlocal read
        for article in articles:
            read += 1
            yield article

    found = match_articles(names, counted())
    if not found:
        raise DataError(
            f"tasks must have articles of the same title, got none for the {len(names)} with at "
            f"least {min_videos} videos, such as {names[0]!r}, among {read} articles; give other "
            f"articles, or lower min_videos"
        )
    for name in names:
        if name not in found:
            what = f"a task must have an article of the same title, got none among {read}"
            problems.add(f"task {name!r}", "task without article", what)
    return found
