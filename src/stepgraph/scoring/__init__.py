"""The score stage: how well each keystep explains each row of each video."""

from __future__ import annotations

from stepgraph.scoring.stage import Scored, Scorer, score, score_each, score_features

__all__ = ["Scored", "Scorer", "score", "score_each", "score_features"]
