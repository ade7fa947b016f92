"""What all encoders do with vectors, whatever they encode."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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

    With ``task_names``, each is encoded also behind the name of each of its tasks, and averaged.
    """
    alone = encode(vocabulary.keysteps)
    if not task_names or not vocabulary.tasks:
        return alone
    pairs = [(keystep, task) for task, ks in vocabulary.tasks.items() for keystep in ks]
    texts = [f"{task}: {vocabulary.keysteps[keystep]}" for keystep, task in pairs]
    within = np.zeros_like(alone)
    np.add.at(within, [keystep for keystep, _ in pairs], encode(texts))
    return unit(alone + unit(within))
