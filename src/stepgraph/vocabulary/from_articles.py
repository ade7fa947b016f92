"""Build a vocabulary of the step headlines of articles: the paper's way for HowTo100M."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, count

from stepgraph.core import Vocabulary
from stepgraph.errors import ConfigError, DataError
from stepgraph.problems import Problems
from stepgraph.vocabulary.articles import Article, join_methods, match_articles
from stepgraph.vocabulary.lists import compared, vocabulary_of_tasks


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
    min_videos
        Tasks with fewer videos are left out.
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
    for name, found in tasks:
        videos[name] += found
    kept = [name for name, found in videos.items() if found >= min_videos]
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
    counter = count()
    found = match_articles(names, (article for article, _ in zip(articles, counter, strict=False)))
    read = next(counter)  # as many as were taken
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
