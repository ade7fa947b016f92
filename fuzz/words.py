"""An encoder of words without a model: each word is one of a few directions."""

import zlib

import numpy as np

from stepgraph.core import Features

SIZE = 64


class Words:
    def __init__(self, options):
        self.options = options

    def encode_keysteps(self, vocabulary):
        return encode(vocabulary.keysteps)

    def encode_texts(self, texts):
        return encode(texts)

    def encode_question(self, text):
        return encode([text])[0]

    def encode_videos(self, videos):
        for video in videos:
            intervals = np.array([[said.start, said.end] for said in video.transcript], float)
            vectors = encode([said.text for said in video.transcript])
            yield Features(video.id, video.duration, vectors, intervals.reshape(-1, 2))


def make(options):
    return Words(options)


def encode(texts):
    vectors = np.zeros((len(texts), SIZE), np.float32)
    for row, text in enumerate(texts):
        for word in text.lower().split():
            vectors[row, zlib.crc32(word.encode()) % SIZE] += 1
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(length, 1e-12)
