"""Our rules beside a tagger: ``python -m benchmarks.tagger DATA``, with textblob 0.20.1 installed.

Both read the same captions of HowTo100M; TextBlob's PatternTagger says which words are verbs where
our rules do, and all else (objects, verbs of talk, negations) stays the same.  Prints how often
the two agree, how fast each is, and what a list proposed from either is worth against the articles
of HowTo100M's tasks, by meaning as in :mod:`benchmarks.suggest`.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest.mock import patch

import numpy as np

from benchmarks.suggest import by_meaning, narrated, percent, say
from benchmarks.suites import lists_of_articles
from stepgraph.core import Dataset, Sentence
from stepgraph.errors import DataError
from stepgraph.pipeline.suggesting import suggest_steps
from stepgraph.vocabulary import phrases
from stepgraph.vocabulary.phrases import Phrase, Usage

Find = Callable[[Sequence[Sentence], Usage], list[Phrase]]


def tagged_phrases(transcript: Sequence[Sentence], usage: Usage) -> list[Phrase]:
    """As ``find_phrases`` does, where the tagger says that a word is a verb."""
    from textblob.en import tag

    found: list[Phrase] = []
    for words in phrases._sentences(transcript):
        tags = [kind for _, kind in tag(" ".join(w.text for w in words), tokenize=False)]
        reader = phrases._Reader(words, usage)
        for at, (word, kind) in enumerate(zip(words, tags, strict=True)):
            verb = phrases._verb(word.text)
            negated = any(one.text in phrases._NOT for one in words[max(0, at - 3) : at])
            if kind.startswith("VB") and verb not in phrases._TALK and not negated:
                phrase = reader.read(at, found[-1] if found else None)
                found += [phrase] if phrase else []
    return found


def main(arguments: Sequence[str]) -> None:
    if len(arguments) != 1:
        sys.exit(__doc__)
    data = Path(arguments[0])
    videos = narrated(f"howto100m:{data}/howto100m").videos
    usage = Usage(video.transcript for video in videos)
    ways: dict[str, Find] = {"rules": phrases.find_phrases, "PatternTagger": tagged_phrases}
    places: dict[str, set[tuple[str, float]]] = {}
    for way, find in ways.items():
        find(videos[0].transcript, usage)  # loads what it needs
        begin = time.process_time()
        said = {video.id: find(video.transcript, usage) for video in videos}
        seconds = time.process_time() - begin
        places[way] = {(video, one.time) for video, found in said.items() for one in found}
        captions = sum(len(video.transcript) for video in videos)
        say(
            tagger=way,
            phrases=len(places[way]),
            captions=captions,
            captions_a_second=round(captions / seconds),
        )
    ours, theirs = places.values()
    both = len(ours & theirs)
    say(
        of_rules_in_tagger=round(both / len(ours), 3),
        of_tagger_in_rules=round(both / len(theirs), 3),
    )
    lists, shown = lists_of_articles(data)
    groups = defaultdict(list)
    for video in videos:
        if video.id in shown:
            groups[shown[video.id]].append(video)
    for way, find in ways.items():
        numbers = []
        with patch.object(phrases, "find_phrases", find):
            for title, own in groups.items():
                try:
                    proposed = suggest_steps(Dataset(title, tuple(own)), tasks=1)
                    names = proposed.vocabulary.keysteps
                except DataError:
                    names = ()
                numbers.append(by_meaning(lists[title], names))
        means = {key: float(np.mean([one[key] for one in numbers])) for key in numbers[0]}
        say(articles="HowTo100M", phrases_by=way, groups=len(groups), **percent(means))


if __name__ == "__main__":
    main(sys.argv[1:])
