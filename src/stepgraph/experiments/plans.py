"""The tables by name: which methods, which columns, what the paper prints, what to note."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from stepgraph.experiments import methods, paper
from stepgraph.experiments.measure import Bench, measured_cells
from stepgraph.experiments.methods import Method
from stepgraph.experiments.notes import MEANS, errors_note, paper_notes, protocol
from stepgraph.experiments.setting import Setting
from stepgraph.experiments.state import Numbers
from stepgraph.experiments.table import Beside, Column, Row, Table
from stepgraph.progress import track

GAMMAS = (0.3, 0.35, 0.4, 0.45, 0.5)
"""Thresholds of the supplement's sweep."""

PRINTED = (Column("acc", "Acc"), Column("iou", "IoU"))
"""What most tables of the paper print."""

ACCURACY = (
    Column("accuracy_per_keystep", "Acc"),
    Column("iou_per_keystep", "IoU"),
    Column("accuracy", "Acc pooled"),
    Column("iou", "IoU pooled"),
)
_ORDER = (
    Column("edit_distance", "ED ↓", "fraction"),
    Column("f1_per_keystep", "F1"),
    Column("f1", "F1 pooled"),
    Column("segment_f1_10", "F1@10"),
    Column("segment_f1_25", "F1@25"),
    Column("segment_f1_50", "F1@50"),
)
_ENTROPY = (Column("low", "Low"), Column("high", "High"))


@dataclass(frozen=True)
class Plan:
    """A table of methods by metrics.

    Attributes
    ----------
    printed
        Metrics of the paper's table and their names; ``source`` is which table that is.
    everywhere
        Whether each modality of the paper has its section, n/a or not; otherwise only those
        of which there are scores.
    """

    name: str
    title: str
    methods: tuple[Method, ...]
    columns: tuple[Column, ...] = ACCURACY
    printed: tuple[Column, ...] = PRINTED
    source: str = ""
    measure: Callable[[Bench, Method, str], Numbers] = Bench.report
    everywhere: bool = True
    notes: tuple[str, ...] = (MEANS,)


_TABLE_1 = (
    methods.RANDOM,
    methods.VIDEOCLIP,
    methods.DISTANT,
    methods.LINEAR,
    methods.AUTO_REGRESSIVE,
    methods.PRUNING,
    methods.OURS,
)
_SUPPLEMENT = (
    methods.VIDEOCLIP,
    methods.DISTANT,
    methods.PRUNING,
    methods.ADAPTIVE,
    methods.OURS,
)


def _sweep(gammas: Sequence[float]) -> tuple[Method, ...]:
    return tuple(methods.path_search(f"Ours w/ γ={gamma:g}", gamma) for gamma in gammas)


PLANS = {
    plan.name: plan
    for plan in (
        Plan("table1", "Table 1: zero-shot keystep recognition", _TABLE_1),
        Plan(
            "table2",
            "Table 2: task-level keystep recognition",
            methods.TASK_LEVEL,
            everywhere=False,
            notes=(
                MEANS,
                "Each video's task is told, and only the task's own keysteps are candidates.",
                "The paper does not say from which modality its table 2 is.",
            ),
        ),
        Plan(
            "table1-expanded",
            "Table 1, expanded (supplement): zero-shot keystep recognition with ablations",
            (
                *_TABLE_1,
                *_sweep((0.3, 0.4, 0.5)),
                methods.FUSION,
                methods.WEIGHTED_FUSION,
                methods.BRF,
                methods.VITERBI,
            ),
        ),
        Plan(
            "ablations",
            "Supplement, (a) additional ablations",
            (methods.NON_PROBABILISTIC, methods.ADAPTIVE, methods.OURS),
        ),
        Plan(
            "metrics",
            "Supplement, (b) normalised edit distance (less is better) and F1",
            _SUPPLEMENT,
            _ORDER,
            (Column("ed", "ED ↓", "fraction"), Column("f1", "F1")),
            notes=(
                "ED is a mean over videos; F1 is a mean over keysteps, or pooled over rows; "
                "F1@k counts segments that overlap a true one by k percent.",
                "The paper does not say how its F1 is averaged.",
            ),
        ),
        Plan(
            "entropy",
            "Supplement, (c) accuracy for low and high Shannon entropy",
            _SUPPLEMENT,
            _ENTROPY,
            _ENTROPY,
            measure=Bench.entropy,
            notes=(
                "Accuracy of the rows between the anchors of Ours, pooled, in two halves by the "
                "entropy of what follows the anchor before; all methods on the same rows.",
            ),
        ),
        Plan(
            "thresholds",
            "Supplement: sensitivity to the confidence threshold γ",
            (methods.DISTANT, *_sweep(GAMMAS)),
            source="table1-expanded",
            everywhere=False,
            notes=(
                MEANS,
                "A threshold belongs to its encoder; the paper's are for another one.",
            ),
        ),
    )
}
"""Tables of one shape; ``noise`` and ``compat`` have shapes of their own."""


def make_table(plan: Plan, bench: Bench) -> Table:
    """Measure all cells of a plan and put the paper's beside them."""
    setting, rows = bench.setting, []
    beside = Beside(plan.source or plan.name, printed_datasets(setting), plan.printed)
    jobs = [(modality, method) for modality in _sections(plan, setting) for method in plan.methods]
    for modality, method in track(jobs, plan.name):
        cells = measured_cells(plan.columns, partial(plan.measure, bench, method, modality))
        # Of table 2 the paper does not say from which modality it is.
        printed = beside.cells(method.name, paper.ANY if plan.name == "table2" else modality)
        rows.append(Row(paper.MODALITIES[modality], method.name, (*cells, *printed)))
    notes = [*protocol(setting, plan.methods), *plan.notes, *paper_notes(beside.shown)]
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
