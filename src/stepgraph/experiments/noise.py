"""The supplement's experiment on noise: ever more keysteps that have nothing to do with it."""

from __future__ import annotations

from collections.abc import Iterator

from stepgraph.core import Vocabulary
from stepgraph.encoders import Encoder
from stepgraph.errors import ConfigError
from stepgraph.evaluation.report import evaluate
from stepgraph.experiments import paper
from stepgraph.experiments.measure import Bench
from stepgraph.experiments.methods import DISTANT, OURS
from stepgraph.experiments.plans import (
    number_cell,
    paper_column,
    paper_notes,
    printed_cell,
    printed_datasets,
    protocol,
)
from stepgraph.experiments.setting import NotAvailableError, Setting, enlarge
from stepgraph.experiments.state import Numbers
from stepgraph.experiments.table import MEASURED, Cell, Column, Row, Table
from stepgraph.progress import track
from stepgraph.vocabulary import add_noise

SIZES = (1.0, 1.5, 2.0, 4.0, 5.0, 10.0)
"""Sizes of the vocabulary, in times its clean size."""

_COLUMNS = (
    Column("argmax", "DistantSup.", MEASURED),
    Column("ours", "Ours", MEASURED),
    Column("gain", "gain", MEASURED, "relative"),
    Column("argmax_pooled", "DistantSup. pooled", MEASURED),
    Column("ours_pooled", "Ours pooled", MEASURED),
    Column("gain_pooled", "gain", MEASURED, "relative"),
)


def make_noise_table(bench: Bench, encoder: Encoder) -> Table:
    """Measure argmax and path search with every size of the vocabulary."""
    datasets = printed_datasets(bench.setting)
    columns = [*_COLUMNS]
    for dataset in datasets:
        columns += [
            paper_column("argmax", "DistantSup.", dataset),
            paper_column("ours", "Ours", dataset),
            paper_column("gain", "gain", dataset, "relative"),
        ]
    rows = []
    for size in track(SIZES, "noise"):
        name = f"{size:g} x N"
        printed = (
            printed_cell(paper.Cell("noise", name, dataset, "text", metric))
            for dataset in datasets
            for metric in ("argmax", "ours", "gain")
        )
        rows.append(Row("", name, (*_cells(bench, encoder, size), *printed)))
    notes = (*_notes(bench.setting), *paper_notes(datasets))
    title = "Supplement: accuracy with irrelevant keysteps in the vocabulary, text only"
    return Table("noise", title, tuple(columns), tuple(rows), notes)


def _cells(bench: Bench, encoder: Encoder, size: float) -> tuple[Cell, ...]:
    try:
        vocabulary = noisy_vocabulary(bench.setting, size)
    except NotAvailableError as error:
        return tuple(Cell(None, reason=str(error)) for _ in _COLUMNS)
    decided_by = {
        "what": "noise",
        "threshold": bench.setting.options.threshold,
        "vocabulary": vocabulary.fingerprint,
        "input": bench.setting.fingerprint,
    }
    numbers = bench.state.get(decided_by, lambda: _measure(bench.setting, vocabulary, encoder))
    return tuple(number_cell(numbers, column) for column in _COLUMNS)


def noisy_vocabulary(setting: Setting, size: float) -> Vocabulary:
    """The vocabulary at ``size`` times its own size, or the reason why it cannot be had."""
    options = setting.options
    if size == 1:
        return setting.vocabulary
    if options.graph is not None:
        raise NotAvailableError("the graph that was given has no irrelevant keysteps")
    if options.noise is None:
        raise NotAvailableError(
            "no irrelevant keysteps: give articles or a vocabulary to draw them from"
        )
    try:
        return add_noise(setting.vocabulary, options.noise, factor=size - 1, seed=options.seed)
    except ConfigError as error:
        raise NotAvailableError(f"too few irrelevant keysteps: {error}") from error


def _measure(setting: Setting, vocabulary: Vocabulary, encoder: Encoder) -> Numbers:
    same = vocabulary == setting.vocabulary
    noisy = setting if same else enlarge(setting, vocabulary, encoder)
    argmax, ours = (
        evaluate(method.label(noisy, "text").values(), noisy.truth) for method in (DISTANT, OURS)
    )
    return {
        "argmax": argmax.accuracy_per_keystep,
        "ours": ours.accuracy_per_keystep,
        "gain": _gain(argmax.accuracy_per_keystep, ours.accuracy_per_keystep),
        "argmax_pooled": argmax.accuracy,
        "ours_pooled": ours.accuracy,
        "gain_pooled": _gain(argmax.accuracy, ours.accuracy),
    }


def _gain(before: float, after: float) -> float | None:
    return after / before - 1 if before > 0 else None


def _notes(setting: Setting) -> Iterator[str]:
    noise = setting.options.noise
    yield from protocol(setting, (DISTANT, OURS))
    if noise is not None:
        yield (
            f"Irrelevant keysteps drawn from {len(noise):,}, seed {setting.options.seed}; the "
            f"graph is mined anew with each vocabulary."
        )
    yield (
        "Accuracy is the mean over keysteps, as the paper's text defines it, or pooled over all "
        "rows; the gain is relative to DistantSup."
    )
