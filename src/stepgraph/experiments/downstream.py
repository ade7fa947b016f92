"""The paper's downstream table: what frozen features of each backbone are worth.

Any backbone whose features are stored is a row that can be filled; the paper's rows stand
beside, filled or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from stepgraph.core import Dataset
from stepgraph.encoders import Encoder
from stepgraph.encoders.each import encode_each
from stepgraph.errors import DataError
from stepgraph.experiments import paper
from stepgraph.experiments.notes import written_notes
from stepgraph.experiments.probing import Probed, ProbeOptions, probe
from stepgraph.experiments.table import (
    NOTHING,
    PAPER,
    Cell,
    Column,
    Row,
    Table,
    measured_cell,
    printed_cell,
)
from stepgraph.problems import Problems
from stepgraph.progress import track

_PUBLISHED = tuple(
    dict.fromkeys(place.method for place in paper.PRINTED if place.table == "downstream")
)


@dataclass(frozen=True, eq=False)
class Divided:
    """A data set in two parts: to train heads on, and to measure them on."""

    name: str
    train: Dataset
    test: Dataset


def make_downstream_table(
    datasets: Iterable[Divided],
    backbones: Mapping[str, Encoder],
    options: ProbeOptions,
    problems: Problems | None = None,
) -> Table:
    """Probe the features of each backbone on each data set.

    Parameters
    ----------
    problems
        Where to note a video that cannot be encoded; if not given, the first is an error.
    """
    rows: list[Row] = []
    notes: list[str] = []
    for divided in datasets:
        found = {
            name: _probed(divided, name, one, options, problems) for name, one in backbones.items()
        }
        for head in options.heads:
            rows += _rows(divided.name, head, found, options)
        notes += _notes(divided, found, options)
    measured = [Column(one, paper.PROBES[one]) for one in options.probes]
    printed = [replace(one, group=f"{PAPER}, same data set and head") for one in measured]
    columns = (*measured, *printed)
    general = written_notes("downstream", **vars(options))
    title = "Table 4: keystep recognition (SR), task recognition (TR), keystep forecasting (SF)"
    return Table("downstream", title, columns, tuple(rows), (*notes, *general))


def _probed(
    divided: Divided,
    name: str,
    backbone: Encoder,
    options: ProbeOptions,
    problems: Problems | None,
) -> dict[tuple[str, str], Probed]:
    videos = (*divided.train.videos, *divided.test.videos)
    encoded = encode_each(track(videos, f"features: {name}"), backbone, problems)
    features = {video.id: found for video, found in encoded}
    if not features:
        raise DataError(f"{name}: must have features of videos of {divided.name}, got none")
    jobs = probe(divided.train, divided.test, features, options)
    total = len(options.heads) * len(options.probes)
    return {(one.head, one.probe): one for one in track(jobs, f"probing: {name}", total)}


def _rows(
    dataset: str,
    head: str,
    found: Mapping[str, Mapping[tuple[str, str], Probed]],
    options: ProbeOptions,
) -> Iterator[Row]:
    section = f"{paper.DATASETS.get(dataset, dataset)}, {paper.HEADS[head]}"
    published = _PUBLISHED if dataset in paper.DATASETS else ()
    for name in dict.fromkeys((*published, *found)):
        measured = (_cell(found.get(name, {}).get((head, one))) for one in options.probes)
        printed = (printed_cell("downstream", name, dataset, head, one) for one in options.probes)
        yield Row(section, name, (*measured, *printed))


def _cell(probed: Probed | None) -> Cell:
    return NOTHING if probed is None else measured_cell(probed.accuracy, "percent", probed.error)


def _notes(
    divided: Divided,
    found: Mapping[str, Mapping[tuple[str, str], Probed]],
    options: ProbeOptions,
) -> Iterator[str]:
    for name, probed in found.items():
        for one in options.probes:
            first = probed[options.heads[0], one]
            yield (
                f"{divided.name}, {name}, {paper.PROBES[one]}: trained on {first.trained_on:,} "
                f"examples, measured on {first.tested_on:,}, {first.classes} classes; always "
                f"saying the most frequent one gives {100 * first.chance:.1f}."
            )


def divide(name: str, train: Dataset, test: Dataset) -> Divided:
    """Name two parts of one data set after it; a video in both would be a leak."""
    both = {video.id for video in train.videos} & {video.id for video in test.videos}
    if both:
        raise DataError(
            f"{name}: parts to train and to measure on must have no video in common, got "
            f"{len(both)}, such as {sorted(both)[0]!r}"
        )
    return Divided(
        name, replace(train, name=f"{name} (train)"), replace(test, name=f"{name} (test)")
    )
