"""Operations on vectors that all encoders share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import Vocabulary


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale each row to length 1; zeros stay zeros."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(length, 1e-12), dtype=np.float32)


def keystep_vectors(
    vocabulary: Vocabulary,
    encode: Callable[[Sequence[str]], NDArray[np.float32]],
    *,
    task_names: bool,
) -> NDArray[np.float32]:
    """Unit vectors of all keysteps by their plain names, shape (K, D).

    With ``task_names``, each is averaged with its embeddings after the names of its tasks.
    """
    alone = encode(vocabulary.keysteps)
    if not task_names or not vocabulary.tasks:
        return alone
    pairs = [(keystep, task) for task, ks in vocabulary.tasks.items() for keystep in ks]
    texts = [f"{task}: {vocabulary.keysteps[keystep]}" for keystep, task in pairs]
    within = np.zeros_like(alone)
    np.add.at(within, [keystep for keystep, _ in pairs], encode(texts))
    return unit(alone + unit(within))


@dataclass(frozen=True, eq=False)
class TaskVectors:
    """Task-specific vectors of keysteps, followed for each task by the vector of its title.

    A keystep of several tasks has a vector in each: to whip the cream of a cake is not to whip
    that of a coffee.

    Attributes
    ----------
    blocks
        Positions of the vectors of each task; the last of a block is the title.
    vectors : shape (S, D)
    keysteps : shape (S,), -1 for a title
    """

    blocks: dict[str, slice]
    vectors: NDArray[np.float32]
    keysteps: NDArray[np.int64]


def task_vectors(
    vocabulary: Vocabulary, encode: Callable[[Sequence[str]], NDArray[np.float32]]
) -> TaskVectors:
    """Embed each keystep of a task, averaged with and without the title, and each title."""
    titles = _titles(tuple(vocabulary.tasks))
    alone = encode(vocabulary.keysteps)
    blocks: dict[str, slice] = {}
    texts: list[str] = []
    keysteps: list[int] = []
    for task, members in vocabulary.tasks.items():
        title = titles[task]
        blocks[task] = slice(len(texts), len(texts) + len(members) + 1)
        texts += [f"{title}: {vocabulary.keysteps[keystep]}" for keystep in members] + [title]
        keysteps += [*members, -1]
    where = np.array(keysteps, dtype=np.int64)
    vectors = encode(texts).copy()
    vectors[where >= 0] = unit(vectors[where >= 0] + alone[where[where >= 0]])
    return TaskVectors(blocks, vectors, where)


def _titles(tasks: Sequence[str]) -> dict[str, str]:
    """Remove the numbers of titles that differ in nothing else (Pizza 1, Pizza 2).

    >>> list(_titles(["Pizza 1", "Pizza 2", "Windows 11"]).values())
    ['Pizza', 'Pizza', 'Windows 11']
    """
    plain = {task: re.sub(r"[\s#]*\d+$", "", task) for task in tasks}
    times = Counter(plain.values())
    return {task: name if name and times[name] > 1 else task for task, name in plain.items()}
