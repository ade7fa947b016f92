"""The score stage: how well each keystep explains each row of each video."""

from __future__ import annotations

from stepgraph.scoring.rows import score, score_features

__all__ = ["score", "score_features"]
