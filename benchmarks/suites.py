"""What the recogniser is tried on: suites that differ in size, order, headings and domain."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from stepgraph.core import BACKGROUND, Dataset, Labels, Scores, Video, Vocabulary
from stepgraph.datasets import open_source
from stepgraph.decoders import TaskMarkov
from stepgraph.encoders import load_encoder
from stepgraph.scoring import score

DRAWS = 10


@dataclass(frozen=True, eq=False)
class Suite:
    """Scored videos with their vocabulary, and their truth where there is one.

    Attributes
    ----------
    decoder
        The recogniser as a user would call it there.
    """

    name: str
    videos: tuple[Video, ...]
    vocabulary: Vocabulary
    truth: dict[str, Labels]
    scores: tuple[Scores, ...]
    decoder: TaskMarkov


def suite(
    name: str,
    dataset: Dataset,
    vocabulary: Vocabulary | None = None,
    decoder: TaskMarkov | None = None,
) -> Suite:
    """Score the videos of a data set, with another vocabulary where one is given."""
    words = vocabulary or dataset.vocabulary
    assert words is not None, "every suite has a vocabulary"
    videos = tuple(dataset.videos)
    scores = tuple(score(videos, words, load_encoder(TaskMarkov.encoder)))
    truth = {video: replace(one, vocabulary=words) for video, one in dataset.truth.items()}
    return Suite(name, videos, words, truth, scores, decoder or TaskMarkov())


def cut(dataset: Dataset, size: int, seed: int) -> Dataset:
    """Keep so many random keysteps of each task; what is left out is background in the truth."""
    words = dataset.vocabulary
    assert words is not None, "only lists can be cut"
    rng = np.random.default_rng(seed)
    kept = {
        task: np.sort(rng.choice(members, min(size, len(members)), replace=False))
        for task, members in words.tasks.items()
    }
    used = np.unique(np.concatenate([*kept.values()]))
    place = np.full(len(words) + 1, BACKGROUND)  # background is the last one, -1
    place[used] = np.arange(len(used))
    few = Vocabulary(
        tuple(words.keysteps[keystep] for keystep in used),
        {task: tuple(place[members].tolist()) for task, members in kept.items()},
    )
    truth = {
        video: replace(one, vocabulary=few, keysteps=place[one.keysteps])
        for video, one in dataset.truth.items()
    }
    return replace(dataset, vocabulary=few, truth=truth)


def shuffled(vocabulary: Vocabulary, seed: int) -> Vocabulary:
    """List the keysteps of each task in an order that means nothing."""
    rng = np.random.default_rng(seed)
    mixed = {
        task: tuple(rng.permutation(members).tolist())
        for task, members in vocabulary.tasks.items()
    }
    return Vocabulary(vocabulary.keysteps, mixed)


def lists_of_articles(data: Path) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Steps of each wikiHow article, and the article that each HowTo100M video is about."""
    lines = (data / "wikihow_articles.jsonl").read_text(encoding="utf-8").splitlines()
    articles = {one["title"]: one["steps"] for one in map(json.loads, lines)}
    with (data / "howto100m" / "task_ids.csv").open(encoding="utf-8") as file:
        titles = {row[0]: row[1].removeprefix("How to ") for row in csv.reader(file, "excel-tab")}
    with (data / "howto100m" / "HowTo100M_v1.csv").open(encoding="utf-8") as file:
        shown = {row["video_id"]: titles[row["task_id"]] for row in csv.DictReader(file)}
    return articles, {video: title for video, title in shown.items() if title in articles}


def vocabulary_of(lists: dict[str, list[str]]) -> Vocabulary:
    """One vocabulary of many lists; a step that several of them have is one keystep."""
    names = list(dict.fromkeys(step for steps in lists.values() for step in steps))
    place = {name: number for number, name in enumerate(names)}
    tasks = {
        task: tuple(dict.fromkeys(place[step] for step in steps)) for task, steps in lists.items()
    }
    return Vocabulary(tuple(names), tasks)


def recipe(task: str) -> str:
    """A YouCook2 heading without its number: lists of one recipe are alike."""
    return re.sub(r" \d+$", "", task)


def every_suite(data: Path) -> Iterator[Suite]:
    """All suites, one after the other, so that their scores need not be held together."""
    crosstask = open_source(f"crosstask:{data}/crosstask")
    words = crosstask.vocabulary
    assert words is not None, "CrossTask has a vocabulary"
    yield suite("CrossTask", crosstask)
    for size in (5, 3):
        for draw in range(DRAWS):
            yield suite(f"CrossTask, lists cut to {size}", cut(crosstask, size, seed=draw))
    yield suite("CrossTask, no headings", crosstask, Vocabulary(words.keysteps))
    yield suite(
        "CrossTask, listed order not used", crosstask, decoder=TaskMarkov(order_weight=0.0)
    )
    yield suite("CrossTask, order shuffled", crosstask, shuffled(words, seed=0))
    youcook = open_source(f"{data}/youcook2/videos.jsonl")
    yield suite("YouCook2", youcook)
    yield suite("YouCook2, listed order not used", youcook, decoder=TaskMarkov(order_weight=0.0))
    articles, shown = lists_of_articles(data)
    howto = open_source(f"howto100m:{data}/howto100m")
    videos = tuple(
        replace(video, task=shown[video.id]) for video in howto.videos if video.id in shown
    )
    about = replace(howto, videos=videos)
    few = {title: articles[title] for title in dict.fromkeys(shown.values())}
    yield suite("HowTo100M", about, vocabulary_of(few))
    yield suite("HowTo100M, 2,110 articles", about, vocabulary_of(articles))
    demo = open_source("demo")
    yield suite("demo", demo)
    assert demo.vocabulary is not None, "the demo has a vocabulary"
    yield suite("demo, no headings", demo, Vocabulary(demo.vocabulary.keysteps))
