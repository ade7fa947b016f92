"""Summary statistics of pseudo-labels."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import BACKGROUND, Vocabulary
from stepgraph.labelling.clips import ORIGINS, ClipLabels
from stepgraph.labelling.folders import LabelFolder, open_labels, read_labels

_SHOWN = 5


@dataclass(frozen=True)
class Change:
    """A clip whose label the graph changed: its start in seconds, its words, and both labels."""

    video: str
    start: float
    words: str | None
    argmax: str
    graph: str


@dataclass(frozen=True)
class LabelStatistics:
    """Counts of the labels of the graph and of plain argmax.

    ``rows`` counts all clips, ``changed`` those with two labels that differ, ``added`` those with
    a label of the graph only, ``removed`` those with one of argmax only.  ``origins`` and
    ``confidence`` (a mean, or nan) are of the labelled clips; ``covered`` counts the keysteps
    that occur.
    """

    videos: int
    failed: int
    rows: int
    labelled: int
    argmax_labelled: int
    changed: int
    added: int
    removed: int
    origins: dict[str, int]
    confidence: float
    keysteps: int
    covered: int
    argmax_covered: int
    most: tuple[tuple[str, int], ...]
    least: tuple[tuple[str, int], ...]
    examples: tuple[Change, ...]

    def __str__(self) -> str:
        origins = ", ".join(
            f"{_share(count, self.labelled)} {name}"
            for name, count in self.origins.items()
            if count
        )
        sure = "unknown" if math.isnan(self.confidence) else f"{self.confidence:.3f}"
        lines = [
            f"{self.rows:,} clips of {self.videos:,} videos"
            + (f" ({self.failed:,} videos could not be labelled)" if self.failed else ""),
            f"labelled          {self.labelled:,} ({_share(self.labelled, self.rows)}); "
            f"by argmax {self.argmax_labelled:,} ({_share(self.argmax_labelled, self.rows)})",
            f"against argmax    {self.changed:,} changed "
            f"({_share(self.changed, self.argmax_labelled)}), {self.added:,} added, "
            f"{self.removed:,} removed",
            f"origin            {origins or 'none'}",
            f"mean confidence   {sure}",
            f"vocabulary        {self.covered:,} of {self.keysteps:,} keysteps occur "
            f"({_share(self.covered, self.keysteps)}); by argmax {self.argmax_covered:,}",
            f"most frequent     {_listed(self.most)}",
            f"least frequent    {_listed(self.least)}",
        ]
        if self.examples:
            lines.append("changed, for example:")
        for change in self.examples:
            words = f" “{change.words}”" if change.words else ""
            lines.append(
                f"  {change.video} at {change.start:g} s{words}: {change.argmax} → {change.graph}"
            )
        return "\n".join(lines)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _listed(counts: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{name} ({count:,})" for name, count in counts) or "none"


def label_statistics(folder: Path | LabelFolder) -> LabelStatistics:
    """Compute the statistics of a folder of labels; one part at a time is in memory."""
    labels = folder if isinstance(folder, LabelFolder) else open_labels(folder)
    vocabulary = labels.provenance.vocabulary
    graph, argmax = (np.zeros(len(vocabulary), dtype=np.int64) for _ in range(2))
    origins = np.zeros(len(ORIGINS), dtype=np.int64)
    tally = dict.fromkeys(("rows", "changed", "added", "removed"), 0)
    sure, judged = 0.0, 0
    examples: list[tuple[bytes, Change]] = []
    for one in read_labels(labels):
        _count(graph, one.keystep)
        _count(argmax, one.argmax)
        _count(origins, one.origin)
        by_graph, by_argmax = one.keystep != BACKGROUND, one.argmax != BACKGROUND
        tally["rows"] += len(one)
        tally["changed"] += int((by_graph & by_argmax & (one.keystep != one.argmax)).sum())
        tally["added"] += int((by_graph & ~by_argmax).sum())
        tally["removed"] += int((~by_graph & by_argmax).sum())
        given = one.confidence[~np.isnan(one.confidence)]
        sure, judged = sure + float(given.sum(dtype=np.float64)), judged + len(given)
        examples = _keep(examples, one, vocabulary)
    occurring = [(vocabulary.keysteps[k], int(graph[k])) for k in np.flatnonzero(graph)]
    return LabelStatistics(
        videos=labels.videos,
        failed=len(labels.failed),
        labelled=int(graph.sum()),
        argmax_labelled=int(argmax.sum()),
        origins=dict(zip(ORIGINS, origins.tolist(), strict=True)),
        confidence=sure / judged if judged else math.nan,
        keysteps=len(vocabulary),
        covered=int((graph > 0).sum()),
        argmax_covered=int((argmax > 0).sum()),
        most=tuple(sorted(occurring, key=lambda one: -one[1])[:_SHOWN]),
        least=tuple(sorted(occurring, key=lambda one: one[1])[:_SHOWN]),
        examples=tuple(change for _, change in examples),
        **tally,
    )


def _count(counts: NDArray[np.int64], codes: NDArray[np.int32] | NDArray[np.int8]) -> None:
    counts += np.bincount(codes[codes >= 0], minlength=len(counts))


def _keep(
    examples: list[tuple[bytes, Change]], one: ClipLabels, vocabulary: Vocabulary
) -> list[tuple[bytes, Change]]:
    """Keep one change each of a few videos; a hash of the id samples both video and clip."""
    lot = hashlib.sha256(one.video.encode("utf-8", "surrogatepass")).digest()
    if len(examples) == _SHOWN and lot >= examples[-1][0]:
        return examples
    both = (one.keystep != BACKGROUND) & (one.argmax != BACKGROUND)
    changed = np.flatnonzero(both & (one.keystep != one.argmax)).tolist()
    if not changed:
        return examples
    changed = [row for row in changed if one.words[row]] or changed
    row = changed[int.from_bytes(lot[:8], "big") % len(changed)]
    change = Change(
        one.video,
        float(one.start[row]),
        one.words[row],
        vocabulary.keysteps[one.argmax[row]],
        vocabulary.keysteps[one.keystep[row]],
    )
    return sorted([*examples, (lot, change)], key=lambda pair: pair[0])[:_SHOWN]
