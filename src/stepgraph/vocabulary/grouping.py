"""Groups of videos that show the same task, found in the words of their narration alone.

The similarity of two videos is the cosine of their nouns and verbs, with rare ones weighted more.
It depends on the length of the narration, so only ranks count: the edge from a video to its
nearest has weight 1, to the next 1/2, and so on.  Spectral clustering of that graph (Ng, Jordan
and Weiss 2001) gives the groups, and has no scale to be chosen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

# Groups are one task from this ratio on: similarity between them over similarity within them.
# Chosen with truth in sight: two halves of one task of CrossTask or HowTo100M reach 0.76 or more,
# two different tasks 0.72 at most.
ALIKE = 0.75
# Minimum mean size of a group, if the number of groups is not given.
_FEWEST = 4


def group_videos(words: Sequence[Sequence[str]], groups: int | None = None) -> Integers:
    """Divide videos into groups by their words, the largest group first, shape (V,).

    Parameters
    ----------
    words
        The nouns and verbs of each video, with repetitions.
    groups
        Number of groups; if not given, the widest gap between eigenvalues determines it, and
        groups that are too similar are merged.

    Examples
    --------
    >>> tea, tyre = ["boil", "tea", "pour", "leaf"], ["tyre", "jack", "nut", "lift"]
    >>> group_videos([tea, tyre, tea[:3], tyre[1:], tea[1:]], groups=2).tolist()
    [0, 1, 0, 1, 0]
    """
    found = likeness(words)
    if (groups is None and len(words) < 2 * _FEWEST) or groups == 1 or len(words) < 2:
        return np.zeros(len(words), dtype=np.int64)
    values, vectors = _spectrum(found)
    if groups is not None:
        return _largest_first(_divide(vectors, min(groups, len(words))))
    gaps = -np.diff(values[: len(words) // _FEWEST + 1])
    parts = _divide(vectors, int(gaps[1:].argmax()) + 2)
    return _largest_first(_joined(parts, found))


def likeness(words: Sequence[Sequence[str]]) -> Floats:
    """Cosine similarity of the words of each two videos, rare ones weighted more, (V, V)."""
    counts = [Counter(one) for one in words]
    videos = Counter(word for one in counts for word in one)
    place = {word: at for at, word in enumerate(sorted(w for w, n in videos.items() if n > 1))}
    rows, columns, values = list[int](), list[int](), list[float]()
    for row, one in enumerate(counts):
        for word in one.keys() & place.keys():
            rows.append(row)
            columns.append(place[word])
            rarity = 1 + np.log((1 + len(words)) / (1 + videos[word]))
            values.append((1 + np.log(one[word])) * rarity)
    shape = (len(words), max(1, len(place)))
    table = csr_array((values, (rows, columns)), shape=shape)
    length = np.sqrt(np.maximum((table * table).sum(axis=1), 1e-12))
    return np.asarray((table @ table.T).toarray() / np.outer(length, length), dtype=np.float64)


def _spectrum(found: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues, the largest first, and eigenvectors of the rank-weighted similarity graph."""
    others = found.copy()
    np.fill_diagonal(others, -np.inf)
    rank = np.argsort(np.argsort(-others, axis=1, kind="stable"), axis=1) + 1
    near = 1.0 / rank
    np.fill_diagonal(near, 0.0)
    near += near.T
    degree = np.sqrt(near.sum(axis=1))
    values, vectors = np.linalg.eigh(near / np.outer(degree, degree))
    return values[::-1], vectors[:, ::-1]


def _divide(vectors: Floats, groups: int) -> Integers:
    from sklearn.cluster import KMeans

    rows = vectors[:, :groups]
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    model: Any = KMeans(groups, n_init=10, random_state=0)
    return np.asarray(model.fit_predict(rows), dtype=np.int64)


def _joined(parts: Integers, found: Floats) -> Integers:
    """Merge groups that are as similar as parts of one task, the most similar pair first."""
    parts = parts.copy()
    while True:
        names = np.unique(parts)
        member = (parts[:, None] == names).astype(np.float64)
        size = member.sum(axis=0)
        total = member.T @ (found - np.diag(np.diag(found))) @ member
        mean = total / np.maximum(np.outer(size, size) - np.diag(size), 1)
        own = np.where(size > 1, np.diag(mean), np.inf)
        # A group of one video has no similarity within it: that of the other group counts.
        ratio = mean / np.maximum(np.minimum.outer(own, own), 1e-12)
        ratio[size == 1] = np.where(mean[size == 1] > 0, ratio[size == 1], 0)
        np.fill_diagonal(ratio, -1)
        one, other = np.unravel_index(ratio.argmax(), ratio.shape)
        if ratio[one, other] < ALIKE:
            return parts
        parts[parts == names[other]] = names[one]


def _largest_first(parts: Integers) -> Integers:
    sizes = Counter(parts.tolist())
    first = {part: at for at, part in reversed(list(enumerate(parts.tolist())))}
    order = sorted(sizes, key=lambda part: (-sizes[part], first[part]))
    place = {part: at for at, part in enumerate(order)}
    return np.array([place[part] for part in parts.tolist()], dtype=np.int64)
