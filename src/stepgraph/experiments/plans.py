"""The tables by name: which methods, which columns, what the paper prints, what to note."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from stepgraph.experiments import paper
from stepgraph.experiments.measure import Bench, measured_cells
from stepgraph.experiments.methods import METHODS, TABLES, Method
from stepgraph.experiments.notes import errors_note, paper_notes, protocol, written_notes
from stepgraph.experiments.setting import Setting
from stepgraph.experiments.table import Beside, Column, Row, Table
from stepgraph.progress import track

PRINTED = (Column("acc", "Acc"), Column("iou", "IoU"))
"""What most tables of the paper print."""

ACCURACY = (
    Column("accuracy_per_keystep", "Acc"),
    Column("iou_per_keystep", "IoU"),
    Column("accuracy", "Acc pooled"),
    Column("iou", "IoU pooled"),
)


@dataclass(frozen=True)
class Plan:
    """A table of methods by metrics; ``tables.toml`` says what its fields are."""

    name: str
    title: str
    methods: tuple[Method, ...]
    columns: tuple[Column, ...] = ACCURACY
    printed: tuple[Column, ...] = PRINTED
    source: str = ""
    measure: str = "report"
    everywhere: bool = True
    notes: tuple[str, ...] = ()


def _read(name: str, written: Mapping[str, Any]) -> Plan:
    used = tuple(METHODS[method] for method in written["methods"])
    columns = {
        key: tuple(Column(*one) for one in written[key])
        for key in ("columns", "printed")
        if key in written
    }
    return Plan(**{**written, "name": name, "methods": used, **columns})


PLANS = {name: _read(name, written) for name, written in TABLES["tables"].items()}
"""Tables of one shape; ``noise`` and ``compat`` have shapes of their own."""


def make_table(plan: Plan, bench: Bench) -> Table:
    """Measure all cells of a plan and put the paper's beside them."""
    setting, rows = bench.setting, []
    beside = Beside(plan.source or plan.name, printed_datasets(setting), plan.printed)
    jobs = [(modality, method) for modality in _sections(plan, setting) for method in plan.methods]
    for modality, method in track(jobs, plan.name):
        cells = measured_cells(
            plan.columns, partial(bench.measure, plan.measure, method, modality)
        )
        # Of table 2 the paper does not say from which modality it is.
        printed = beside.cells(method.name, paper.ANY if plan.name == "table2" else modality)
        rows.append(Row(paper.MODALITIES[modality], method.name, (*cells, *printed)))
    means = written_notes("means") if plan.columns == ACCURACY else []
    notes = [*protocol(setting, plan.methods), *means, *plan.notes, *paper_notes(beside.shown)]
    if any(cell.error for row in rows for cell in row.cells[: len(plan.columns)]):
        notes.append(errors_note(setting))
    columns = (*plan.columns, *beside.columns)
    return Table(plan.name, plan.title, columns, tuple(rows), tuple(notes))


def printed_datasets(setting: Setting) -> tuple[str, ...]:
    """Which of the paper's data sets stand beside: the same one, or all."""
    same = setting.dataset.name in paper.DATASETS
    return (setting.dataset.name,) if same else tuple(paper.DATASETS)


def _sections(plan: Plan, setting: Setting) -> tuple[str, ...]:
    if plan.everywhere:
        return tuple(paper.MODALITIES)
    return tuple(modality for modality in paper.MODALITIES if modality in setting.scores)
