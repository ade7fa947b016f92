"""The supplement's experiment on noise: ever more keysteps that have nothing to do with it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from stepgraph.core import Vocabulary
from stepgraph.encoders import Encoder
from stepgraph.errors import ConfigError
from stepgraph.evaluation.report import evaluate
from stepgraph.experiments.measure import Bench, measured_cells
from stepgraph.experiments.methods import METHODS
from stepgraph.experiments.notes import paper_notes, protocol, written_notes
from stepgraph.experiments.plans import printed_datasets
from stepgraph.experiments.setting import NotAvailableError, Setting, enlarge
from stepgraph.experiments.state import Numbers
from stepgraph.experiments.table import Beside, Column, Row, Table
from stepgraph.progress import track
from stepgraph.vocabulary import add_noise

SIZES = (1.0, 1.5, 2.0, 4.0, 5.0, 10.0)
"""Sizes of the vocabulary, in times its clean size."""

_METHODS = (METHODS["distant"], METHODS["ours"])
_PRINTED = (
    Column("argmax", "DistantSup."),
    Column("ours", "Ours"),
    Column("gain", "gain", "relative"),
)
_COLUMNS = (
    *_PRINTED,
    Column("argmax_pooled", "DistantSup. pooled"),
    Column("ours_pooled", "Ours pooled"),
    Column("gain_pooled", "gain", "relative"),
)


def make_noise_table(bench: Bench, encoder: Encoder) -> Table:
    """Measure argmax and path search with every size of the vocabulary."""
    beside = Beside("noise", printed_datasets(bench.setting), _PRINTED)
    rows = []
    for size in track(SIZES, "noise"):
        name = f"{size:g} x N"
        cells = measured_cells(_COLUMNS, partial(_measure, bench, encoder, size))
        rows.append(Row("", name, (*cells, *beside.cells(name, "text"))))
    title = "Supplement: accuracy with irrelevant keysteps in the vocabulary, text only"
    notes = (*_notes(bench.setting), *paper_notes(beside.shown))
    return Table("noise", title, (*_COLUMNS, *beside.columns), tuple(rows), notes)


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


def _measure(bench: Bench, encoder: Encoder, size: float) -> Numbers:
    setting = bench.setting
    vocabulary = noisy_vocabulary(setting, size)

    def compute() -> Numbers:
        noisy = setting if size == 1 else enlarge(setting, vocabulary, encoder)
        labels = [method.label(noisy, "text").values() for method in _METHODS]
        argmax, ours = (evaluate(some, noisy.truth) for some in labels)
        numbers: Numbers = {}
        for metric, end in (("accuracy_per_keystep", ""), ("accuracy", "_pooled")):
            before, after = getattr(argmax, metric), getattr(ours, metric)
            gain = after / before - 1 if before > 0 else None
            numbers |= {f"argmax{end}": before, f"ours{end}": after, f"gain{end}": gain}
        return numbers

    decided_by = {"what": "noise", "vocabulary": vocabulary, "input": setting.fingerprint}
    return bench.state.get(decided_by, compute)


def _notes(setting: Setting) -> Iterator[str]:
    noise = setting.options.noise
    yield from protocol(setting, _METHODS)
    if noise is not None:
        yield (
            f"Irrelevant keysteps drawn from {len(noise):,}, seed {setting.options.seed}; the "
            f"graph is mined anew with each vocabulary."
        )
    yield from written_notes("noise")
