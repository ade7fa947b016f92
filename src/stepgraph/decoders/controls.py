"""Controls without a graph, to measure the part of path search's gain that the graph adds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stepgraph.core import BACKGROUND, Labels, Scores
from stepgraph.decoders.path import PathSearch, best_keysteps
from stepgraph.graph import TaskGraph


@dataclass(frozen=True)
class HalvedGaps(PathSearch):
    """Keep the anchors of path search, and give each half of a gap to the anchor next to it."""

    def find_path(self, graph: TaskGraph, start: int, end: int) -> None:
        """Find no path: the graph is not consulted."""


@dataclass(frozen=True)
class AnchorsOnly(PathSearch):
    """Keep the anchors of path search; all other rows are background."""

    def decode(self, scores: Scores, graph: TaskGraph) -> Labels:
        """See :class:`~stepgraph.decoders.Decoder`; the graph is not consulted."""
        graph.require_vocabulary_of(scores)
        keysteps, anchors = self.find_anchors(scores)
        return Labels(
            scores.video,
            np.where(anchors, keysteps, BACKGROUND),
            scores.vocabulary,
            scores.hop,
            anchors,
        )


@dataclass(frozen=True)
class ArgmaxHold:
    """Label each observed row with its best keystep, held over the unobserved rows after it."""

    def decode(self, scores: Scores, graph: TaskGraph) -> Labels:
        """See :class:`~stepgraph.decoders.Decoder`; the graph is not consulted."""
        keysteps = best_keysteps(scores)
        labeled = keysteps != BACKGROUND
        last = np.maximum.accumulate(np.where(labeled, np.arange(len(keysteps)), 0))
        # A row on which every keystep is excluded stays background, as with argmax.
        keysteps = np.where(scores.observed, keysteps, keysteps[last])
        return Labels(scores.video, keysteps, scores.vocabulary, scores.hop)
