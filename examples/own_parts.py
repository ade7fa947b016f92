"""A decoder and an encoder of one's own: ``python examples/own_parts.py``.

Neither needs a change of the package.  On the command line they are named by module, which must
lie on the path:

    PYTHONPATH=examples stepgraph evaluate demo --decoder own_parts:Hold --option threshold=0.45
    PYTHONPATH=examples stepgraph evaluate demo --encoder own_parts:make_words --decoder viterbi
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import stepgraph as sg
from stepgraph.cli import main as stepgraph
from stepgraph.encoders import EncoderOptions


@dataclass(frozen=True)
class Hold:
    """Hold the last confident keystep until another one is confident."""

    threshold: float = 0.4

    def decode(self, scores: sg.Scores, graph: sg.TaskGraph) -> sg.Labels:
        """Label every row; those before the first confident one are background."""
        confident = scores.observed & (scores.values.max(axis=1) >= self.threshold)
        last = np.maximum.accumulate(np.where(confident, np.arange(len(confident)), -1))
        best = scores.values.argmax(axis=1)
        labels = np.where(last >= 0, best[last], sg.BACKGROUND)
        return sg.Labels(scores.video, labels, scores.vocabulary, scores.hop)


class Words:
    """Bags of words: a text is the sum of its words, each one of many directions."""

    size = 4096

    def __init__(self, options: EncoderOptions) -> None:
        self.options = options

    def encode_keysteps(self, vocabulary: sg.Vocabulary) -> NDArray[np.float32]:
        """One unit vector for each keystep."""
        return self.encode_texts(vocabulary.keysteps)

    def encode_videos(self, videos: Iterable[sg.Video]) -> Iterator[sg.Features]:
        """One unit vector for each sentence, with the seconds in which it is said."""
        for video in videos:
            texts = [sentence.text for sentence in video.transcript]
            intervals = np.array([(one.start, one.end) for one in video.transcript])
            yield sg.Features(
                video.id, video.duration, self.encode_texts(texts), intervals.reshape(-1, 2)
            )

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors; a text without words is zeros."""
        vectors = np.zeros((len(texts), self.size), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                vectors[row, zlib.crc32(word.encode()) % self.size] += 1
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.maximum(length, 1e-12)


def make_words(options: EncoderOptions) -> Words:
    """What ``--encoder own_parts:make_words`` calls."""
    return Words(options)


def main() -> None:
    """Use both from Python, then from the command line."""
    dataset = sg.open_source("demo")
    encoder = sg.load_encoder("own_parts:make_words")
    scores = list(sg.score(dataset.videos, dataset.vocabulary, encoder))
    graph = sg.mine_graph(scores, dataset.vocabulary)
    for decoder in (sg.Argmax(), sg.load_decoder("own_parts:Hold", threshold=0.45)):
        labels = [decoder.decode(one, graph) for one in scores]
        print(f"{decoder}: {sg.evaluate(labels, dataset.truth).accuracy:.1%} of the rows right")

    asked = "evaluate demo --encoder own_parts:make_words --decoder own_parts:Hold"
    stepgraph([*asked.split(), "--option", "threshold=0.45", "--json"])


if __name__ == "__main__":
    main()
