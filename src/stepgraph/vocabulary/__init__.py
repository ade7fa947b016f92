"""Vocabularies: from a list that a person wrote, from articles, or with noise mixed in."""

from __future__ import annotations

from stepgraph.vocabulary.articles import Article, read_articles
from stepgraph.vocabulary.lists import (
    add_noise,
    make_vocabulary,
    read_vocabulary,
    vocabulary_from_articles,
)

__all__ = [
    "Article",
    "add_noise",
    "make_vocabulary",
    "read_articles",
    "read_vocabulary",
    "vocabulary_from_articles",
]
