"""Sources to be mined in shards, and an encoder that processes elsewhere can make, too."""

import json
import os
import time
import zlib
from pathlib import Path

import numpy as np

from stepgraph.core import Features
from stepgraph.encoders import EncoderOptions
from stepgraph.encoders.vectors import unit

STEPS = "# Tea\nboil the water\npour it\nstir\n# Eggs\ncrack the eggs\nwhisk them\nfry them\n"
WORDS = ("boil the water", "pour it", "stir well", "crack the eggs", "whisk", "fry them", "hello")


class Words:
    """Bags of words; says in a file which videos it encoded, and takes its time if asked."""

    def __init__(self, options):
        self.options = options

    def encode_keysteps(self, vocabulary):
        return unit(np.stack([_bag(name) for name in vocabulary.keysteps]))

    def encode_videos(self, videos):
        block = list(videos)
        if log := os.environ.get("SHARDING_LOG"):
            with Path(log).open("a") as file:
                file.write("".join(f"{video.id}\n" for video in block))
            time.sleep(float(os.environ.get("SHARDING_SECONDS", "0")))
        for video in block:
            bags = [_bag(sentence.text) for sentence in video.transcript]
            times = np.array([[one.start, one.end] for one in video.transcript])
            vectors = unit(np.reshape(bags, (-1, 64)).astype(np.float32))
            yield Features(video.id, video.duration, vectors, times.reshape(-1, 2))


def make_words(options):
    return Words(options)


def make_sentences(options):
    """The same as sentences of the built-in kind, of which words are learned."""
    return Words(EncoderOptions())


def _bag(text):
    found = np.full(64, 1e-3, np.float32)
    for word in text.split():
        found[zlib.crc32(word.encode()) % 64] += 1
    return found


def write_captions(folder, videos=40, *, twice=()):
    """Captions of HowTo100M's kind; videos ``twice`` stand once more, at the end."""
    chance, records = np.random.default_rng(0), []
    for video in (*range(videos), *twice):
        said = [WORDS[place] for place in chance.integers(len(WORDS), size=12)]
        start = [float(3 * row) for row in range(len(said))]
        record = {"start": start, "end": [one + 3 for one in start], "text": said}
        records.append(f'"video-{video:03}": {json.dumps(record)}')
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "raw_caption.json").write_text("{" + ",\n".join(records) + "}")
    (folder / "steps.txt").write_text(STEPS)
    return f"howto100m:{folder}"
