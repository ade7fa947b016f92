"""Mix irrelevant keysteps into a vocabulary: the supplement's experiment on noisy labels."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

from stepgraph.core import Vocabulary
from stepgraph.errors import ConfigError


def add_noise(
    vocabulary: Vocabulary,
    others: Vocabulary | Sequence[str],
    *,
    factor: float,
    seed: int = 0,
) -> Vocabulary:
    """Mix in keysteps that have nothing to do with the tasks, ``factor`` times as many.

    The supplement's experiment on noisy labels: a vocabulary of ``1.5 x N`` has a factor of 0.5.
    The keysteps keep their positions and tasks; the noise follows them and belongs to no task.
    A smaller factor of the same seed adds the first of those that a larger one adds.

    >>> from stepgraph import make_vocabulary
    >>> tea = make_vocabulary(["# Make tea", "boil water", "add leaves"])
    >>> add_noise(tea, ["mow the lawn", "Boil water", "saw the board"], factor=0.5).keysteps
    ('boil water', 'add leaves', 'mow the lawn')
    """
    if not (math.isfinite(factor) and factor >= 0):
        raise ConfigError(f"factor of the noise must be at least 0, got {factor!r}")
    names = others.keysteps if isinstance(others, Vocabulary) else others
    present = set(map(compared, vocabulary.keysteps))
    candidates = {compared(name): " ".join(name.split()) for name in reversed(names)}
    drawn = sorted(candidates.keys() - present - {""}, key=lambda key: _lot(seed, key))
    wanted = round(factor * len(vocabulary))
    if wanted > len(drawn):
        raise ConfigError(
            f"factor of the noise must be at most {len(drawn) / len(vocabulary):.2f} with "
            f"{len(drawn)} other keysteps for {len(vocabulary)}, got {factor}; lower it, or draw "
            f"from a larger vocabulary"
        )
    noise = tuple(candidates[key] for key in drawn[:wanted])
    return Vocabulary((*vocabulary.keysteps, *noise), vocabulary.tasks)


def _lot(seed: int, key: str) -> bytes:
    """What a keystep draws: chance by hash is the same on every machine and in every order."""
    return hashlib.sha256(f"{seed}:{key}".encode("utf-8", "surrogatepass")).digest()


def compared(name: str) -> str:
    """A name as it is compared with others: case and spaces do not count."""
    return " ".join(name.split()).casefold()
