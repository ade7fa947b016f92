"""One part of a data set, for those who share the work among several processes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from stepgraph.errors import ConfigError

_RULE = "shard must be I/N with I from 1 to N, such as 2/8"


@dataclass(frozen=True)
class Shard:
    """The ``part``-th of so many ``parts``, counted from 1.

    Which part a video belongs to depends on its id alone: not on the order of the others, nor on
    which of them have a narration or stored scores.

    >>> shard = Shard.parse("2/8")
    >>> str(shard), shard.part, "0Zz4" in shard
    ('2/8', 2, False)
    >>> sum("0Zz4" in Shard(part, 8) for part in range(1, 9))
    1
    """

    part: int = 1
    parts: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.part <= self.parts:
            raise ConfigError(f"{_RULE}, got '{self}'")

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read ``I/N``."""
        part, _, parts = text.partition("/")
        if not (part.strip().isdecimal() and parts.strip().isdecimal()):
            raise ConfigError(f"{_RULE}, got {text!r}")
        return cls(int(part), int(parts))

    def __str__(self) -> str:
        return f"{self.part}/{self.parts}"

    def __contains__(self, video: str) -> bool:
        if self.parts == 1:
            return True
        # A hash that is the same on every machine and in every run.
        digest = hashlib.blake2b(video.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.parts == self.part - 1
