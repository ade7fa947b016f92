"""The numbers that the paper prints, as data.

Each block is a table of *Video-Mined Task Graphs for Keystep Recognition in Instructional
Videos* or of its supplement, line by line, in the paper's own order of columns.  Numbers are kept
as they are printed, in percent unless said otherwise; ``-`` is the paper's mark for n/a.
Nothing here was measured by this project.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

DATASETS = {"coin": "COIN", "crosstask": "CrossTask"}
"""Data sets of the paper, by the names of the readers here."""

MODALITIES = {"text": "Text-only", "video": "Video-only", "video-text": "Video-Text"}
"""What keysteps are compared with, and how the paper calls it."""

HOWTO100M = "howto100m"
"""The data set of the paper's task classification."""

NAMES = DATASETS | {HOWTO100M: "HowTo100M"}
"""How the paper calls its data sets."""

HEADS = {"mlp": "MLP", "transformer": "Transformer"}
"""What is trained on frozen features; stands in the place of the modality."""

PROBES = {"keystep": "SR", "task": "TR", "forecast": "SF"}
"""What is told from frozen features, and how the paper calls it."""

ANY = ""
"""Modality of the tables that do not say which they used."""


class Printed(NamedTuple):
    """A number as it is printed, with its standard error where one is printed."""

    value: float
    error: float | None
    text: str


class Place(NamedTuple):
    """Where in the paper a number stands."""

    table: str
    method: str
    dataset: str
    modality: str
    metric: str


# Columns of the wide tables: modality, then data set, then two metrics.
_WIDE = tuple(product(MODALITIES, DATASETS))

_TABLE_1 = """
Random           |  0.0 0.0  0.01 0.01  0.0 0.0  0.01 0.01  0.0 0.0  0.01 0.01
VideoCLIP        |  - -  - -  13.2 4.0  28.5 6.5  13.3 4.0  28.5 6.5
DistantSup.      |  9.8 3.0  16.1 3.7  - -  - -  - -  - -
Linear Steps     |  10.4 3.1  16.3 3.8  13.4 4.3  28.5 6.5  13.4 4.0  28.5 6.5
Auto-Reg         |  10.2 3.1  16.4 3.7  13.6 4.3  28.5 6.5  13.7 4.2  28.5 6.5
Pruning Keysteps |  11.3 3.4  16.4 3.8  13.4 4.2  28.5 6.5  13.5 4.1  28.5 6.5
Ours | 16.3±0.3 5.4±0.1 20.0±0.2 4.9±0.1 15.4±0.1 4.7±0.1 28.6±0.0 6.6±0.0 \
16.9±0.1 5.4±0.1 28.9±0.1 6.7±0.0
"""

_TABLE_1_EXPANDED = (
    _TABLE_1
    + """
Ours w/ γ=0.3     |  15.9 5.1  19.1 4.4  15.4 4.7  28.6 6.6  - -  - -
Ours w/ γ=0.4     |  16.1 5.2  19.4 4.7  15.1 4.6  28.6 6.6  - -  - -
Ours w/ γ=0.5     |  16.3 5.4  20.0 4.9  14.9 4.5  28.6 6.6  - -  - -
Video-Text Fusion |  - -  - -  - -  - -  14.0 4.3  28.6 6.6
BRF               |  13.5 4.1  17.1 4.3  14.0 4.4  28.6 6.6  14.9 4.6  28.6 6.5
"""
)

# On CrossTask alone; the paper does not say from which modality.
_TABLE_2 = """
Random       |  11.0 4.7
Bag of Steps |  20.5 13.7
Drop-DTW     |  22.3 15.1
Graph2Vid    |  24.8 16.8
Ours         |  30.5±0.2 16.0±0.3
"""

_ABLATIONS = """
Non-probabilistic  |  10.5 3.2  16.4 3.8  13.6 4.2  28.5 6.5  13.7 4.1  28.5 6.5
Adaptive Threshold |  12.5 3.8  17.1 4.0  14.1 4.3  28.5 6.5  14.0 4.4  28.6 6.5
Ours               |  16.3 5.4  20.0 4.9  15.4 4.7  28.6 6.6  16.9 5.4  28.9 6.7
"""

# Normalised edit distance (0 is best, a fraction) and F1.
_METRICS = """
VideoCLIP          |  - -  - -  0.90 9.9  0.76 12.9  0.87 10.7  0.75 13.2
DistantSup.        |  0.88 7.5  0.82 7.6  - -  - -  - -  - -
Pruning Keysteps   |  0.86 9.7  0.82 8.9  0.88 11.4  0.76 12.5  0.86 11.3  0.75 12.8
Adaptive Threshold |  0.85 10.9  0.81 9.1  0.88 12.8  0.74 13.0  0.85 13.6  0.74 13.0
Ours               |  0.82 17.1  0.78 12.8  0.84 17.4  0.74 13.8  0.81 18.8  0.74 14.0
"""

# Accuracy where the entropy of the starting keystep is low, and where it is high.
_ENTROPY = """
VideoCLIP          |  - -  - -  17.7 11.5  30.1 22.1  18.0 12.4  30.2 22.2
DistantSup.        |  14.0 8.3  17.1 11.1  - -  - -  - -  - -
Pruning Keysteps   |  16.1 10.6  20.0 12.5  18.1 11.8  31.0 22.2  18.8 13.0  30.9 22.5
Adaptive Threshold |  18.5 11.2  20.9 13.8  18.8 12.1  31.3 22.4  19.7 13.6  31.1 22.6
Ours               |  23.5 14.1  25.1 16.3  22.7 13.7  33.5 22.9  24.0 14.7  33.7 23.1
"""

# Per data set: accuracy of DistantSup., accuracy of Ours, relative gain.  The supplement prints
# 20.1 for CrossTask at 1 x N, where table 1 prints 20.0.
_NOISE = """
1 x N   |  9.8 16.3 66%  16.1 20.1 25%
1.5 x N |  8.4 14.1 68%  13.3 16.8 26%
2 x N   |  7.7 13.3 73%  12.6 15.7 25%
4 x N   |  6.2 10.9 76%  10.1 12.9 27%
5 x N   |  5.6 10.6 89%  8.9 11.7 31%
10 x N  |  4.3 8.4 95%  7.5 10.1 35%
"""

# Task classification on HowTo100M: top-1 and top-5 without a modality, from video, from text.
_TASKS = """
MIL-NCE     |  6.2 19.7  - -  - -
VideoCLIP   |  7.9 25.5  - -  - -
DistantSup. |  - -  9.5 30.1  12.3 28.5
Ours        |  - -  14.0±0.3 33.5±0.2  15.5±0.2 35.0±0.2
"""

# Downstream: MLP, then transformer; CrossTask, then COIN; keystep recognition, task recognition
# and keystep forecasting.
_DOWNSTREAM = """
TSN         |  - - -  36.5 - -  - - -  - 73.4 -
ClipBERT    |  - - -  30.8 - -  - - -  - 65.4 -
S3D         |  39.9 87.4 20.1  37.5 68.5 19.9  45.3 87.8 21.7  37.3 70.2 28.1
SlowFast    |  44.9 89.7 23.4  32.9 72.4 23.0  48.5 89.8 24.0  39.6 71.6 25.6
VideoCLIP   |  51.3 94.7 24.2  39.4 82.9 30.0  60.1 92.3 26.0  51.2 72.5 34.6
TimeSformer |  55.5 95.0 25.9  48.3 87.0 32.7  60.9 93.8 27.1  54.6 88.9 38.2
DistantSup. |  58.4 96.1 28.3  54.1 88.2 35.5  64.2 95.2 29.7  57.0 90.0 39.4
Ours        |  59.5±0.1 97.1±0.1 29.5±0.1  55.2±0.1 89.4±0.0 36.3±0.1  \
64.5±0.0 96.0±0.1 30.2±0.1  57.2±0.0 90.5±0.0 40.2±0.1
"""


def _wide(*metrics: str) -> list[tuple[str, str, str]]:
    return [(dataset, modality, metric) for modality, dataset in _WIDE for metric in metrics]


_BLOCKS = {
    "table1": (_TABLE_1, _wide("acc", "iou")),
    "table1-expanded": (_TABLE_1_EXPANDED, _wide("acc", "iou")),
    "table2": (_TABLE_2, [("crosstask", ANY, "acc"), ("crosstask", ANY, "iou")]),
    "ablations": (_ABLATIONS, _wide("acc", "iou")),
    "metrics": (_METRICS, _wide("ed", "f1")),
    "entropy": (_ENTROPY, _wide("low", "high")),
    "tasks": (
        _TASKS,
        [(HOWTO100M, m, a) for m in (ANY, "video", "text") for a in ("acc1", "acc5")],
    ),
    "downstream": (
        _DOWNSTREAM,
        [(d, h, p) for h in HEADS for d in ("crosstask", "coin") for p in PROBES],
    ),
    "noise": (_NOISE, [(d, "text", m) for d in DATASETS for m in ("argmax", "ours", "gain")]),
}


def _number(text: str) -> Printed:
    value, _, error = text.rstrip("%").partition("±")
    shown = text.replace("±", " ± ").replace("%", " %")
    return Printed(float(value), float(error) if error else None, shown)


def _parse(table: str, block: str, columns: list[tuple[str, str, str]]) -> dict[Place, Printed]:
    found = {}
    for line in block.strip().splitlines():
        method, _, numbers = line.partition("|")
        for place, text in zip(columns, numbers.split(), strict=True) if method.strip() else ():
            if text != "-":
                found[Place(table, method.strip(), *place)] = _number(text)
    return found


PRINTED: dict[Place, Printed] = {
    place: number
    for table, (block, columns) in _BLOCKS.items()
    for place, number in _parse(table, block, columns).items()
}
"""Every number of these tables by its place; a place that is n/a in the paper is not in it."""
