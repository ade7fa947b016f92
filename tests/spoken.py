"""Videos as vectors of sentences, for what works on these without any encoder."""

import numpy as np

from stepgraph.core import Features
from stepgraph.encoders.vectors import TaskVectors, unit
from stepgraph.scoring.lazy import LazyScores


def random_unit(rng, rows, width=8):
    return unit(rng.normal(size=(rows, width)).astype(np.float32))


def sentences(vectors, *, video="video", rows=3, pause=1):
    """Features of sentences that last for some rows, with pauses between them."""
    starts = np.arange(len(vectors)) * float(rows + pause)
    intervals = np.stack([starts, starts + rows], axis=1)
    duration = float(len(vectors) * (rows + pause))
    return Features(video, duration, np.asarray(vectors, np.float32), intervals)


def random_sentences(rng, parts, *, width=8, video="video"):
    """Features of sentences of all lengths, some after a pause, some within others."""
    starts = np.cumsum(rng.uniform(0, 4, parts))
    ends = starts + rng.uniform(0.1, 5, parts)
    duration = float(ends.max(initial=0) + rng.uniform(0, 3))
    return Features(
        video, duration, random_unit(rng, parts, width), np.stack([starts, ends], axis=1)
    )


def random_task_vectors(rng, vocabulary, width=8):
    """Vectors of every keystep within each task, and of the titles."""
    blocks, keysteps = {}, []
    for task, members in vocabulary.tasks.items():
        blocks[task] = slice(len(keysteps), len(keysteps) + len(members) + 1)
        keysteps += [*members, -1]
    return TaskVectors(
        blocks, random_unit(rng, len(keysteps), width), np.array(keysteps, dtype=np.int64)
    )


def random_lazy(rng, vocabulary, *, parts, titles, video="video"):
    """Scores of one video as products, with vectors of tasks or without."""
    features = random_sentences(rng, parts, video=video)
    tasks = random_task_vectors(rng, vocabulary) if titles else None
    return LazyScores(features, random_unit(rng, len(vocabulary)), vocabulary, tasks=tasks)
