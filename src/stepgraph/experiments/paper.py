"""The numbers that the paper prints, which stand in ``paper.toml``; none was measured here."""

from __future__ import annotations

import tomllib
from itertools import product
from pathlib import Path
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


def _read() -> dict[Place, Printed]:
    found = {}
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    for table, block in tables.items():
        columns = list(product(block["modalities"], block["datasets"], block["metrics"]))
        for line in block["printed"].splitlines():
            method, _, numbers = line.partition("|")
            for (modality, dataset, metric), text in zip(columns, numbers.split(), strict=True):
                if text != "-":
                    place = Place(table, method.strip(), dataset, modality, metric)
                    found[place] = _number(text)
    return found


def _number(text: str) -> Printed:
    value, _, error = text.rstrip("%").partition("±")
    shown = text.replace("±", " ± ").replace("%", " %")
    return Printed(float(value), float(error) if error else None, shown)


PRINTED = _read()
"""Every number of these tables by its place; a place that is n/a in the paper is not in it."""
