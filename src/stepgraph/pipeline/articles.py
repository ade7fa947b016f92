"""Articles of a file that match a task or question by their titles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stepgraph.errors import ConfigError, DataError, quoted
from stepgraph.pipeline import open_scorer
from stepgraph.pipeline.suggesting import encode_of
from stepgraph.problems import Problems
from stepgraph.progress import track
from stepgraph.scoring import Scorer
from stepgraph.vocabulary.articles import Article, join_methods, match_articles, read_articles

# Titles that are embedded at once, so that a bar moves and an interruption loses little.
_TITLES = 2000
# A title below this similarity is likely about something else; chosen by reading the
# answers to fifteen questions.
_FAR = 0.5


class ArticleMatch(NamedTuple):
    """Article, and the similarity of its title and the question: 1 for the same title."""

    article: Article
    score: float


def find_articles(
    question: str,
    articles: str | Path | Iterable[Article],
    *,
    top: int = 1,
    encoder: Scorer | None = None,
    problems: Problems | None = None,
) -> list[ArticleMatch]:
    """Find the articles whose titles are most similar to a task or a question, best first.

    An article of exactly that title, as matched for tasks of HowTo100M, comes before all others.

    Parameters
    ----------
    articles
        File or folder of articles, or articles that were read; methods of one article are joined.
    encoder
        Embeds the titles; the built-in one, which caches embeddings, if not given.
    problems
        Collects articles that cannot be used, and a question without a similar title.
    """
    if not question.strip():
        raise ConfigError("question must have words, got none; for example: change a tyre")
    if top < 1:
        raise ConfigError(f"top must be at least 1, got {top}")
    problems = problems if problems is not None else Problems()
    if isinstance(articles, str | Path):
        articles = track(read_articles(articles, problems=problems), "reading articles")
    methods = join_methods(articles, problems)
    if not methods:
        raise DataError("articles must be at least one, got none")
    same = {one.title for one in match_articles([question], methods).values()}
    if len(same) >= top:  # no more are needed, so no model is loaded
        return [ArticleMatch(one, 1.0) for one in methods if one.title in same][:top]
    scores = _nearness(question, [one.title for one in methods], encoder)
    scores = np.where([one.title in same for one in methods], 1.0, np.minimum(scores, 0.999))
    best = np.argsort(-scores, kind="stable")[:top]
    if scores[best[0]] < _FAR:
        nearest = f"{methods[best[0]].title!r} ({scores[best[0]]:.2f}), likely of something else"
        what = f"must be near the title of an article, got the nearest {nearest}"
        problems.add(f"question {quoted(question)}", "question without an article", what)
    return [ArticleMatch(methods[at], float(scores[at])) for at in best]


def _nearness(question: str, titles: Sequence[str], encoder: Scorer | None) -> np.ndarray:
    encode = encode_of(encoder or open_scorer())
    [wanted] = encode([question])
    starts = track(range(0, len(titles), _TITLES), "comparing titles")
    return np.concatenate([encode(titles[at : at + _TITLES]) @ wanted for at in starts])


def as_list(answers: Sequence[ArticleMatch], max_steps: int | None = None) -> str:
    """Format articles as a list of keysteps: each title a heading, each step a line.

    >>> tea = Article("Make Tea", ("Boil water", "Add leaves"))
    >>> print(as_list([ArticleMatch(tea, 1.0)]), end="")
    # Make Tea
    Boil water
    Add leaves
    """
    blocks = [
        "\n".join([f"# {article.title}", *article.steps[:max_steps]]) for article, _ in answers
    ]
    return "\n\n".join(blocks) + "\n"


def require_steps(text: str, question: str) -> str:
    """Refuse a list that is too short to mine with: fewer than two steps."""
    if sum(not line.startswith("#") and bool(line) for line in text.splitlines()) < 2:
        raise DataError(
            f"articles must have at least 2 steps of {quoted(question)}, got fewer; raise top "
            f"(--top) for more articles, or max_steps (--max-steps) for more of their steps"
        )
    return text
