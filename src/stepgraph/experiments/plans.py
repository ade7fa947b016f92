"""The tables by name: which methods, which columns, what the paper prints, what to note."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from stepgraph.experiments import methods, paper
from stepgraph.experiments.measure import ERROR, Bench
from stepgraph.experiments.methods import Method
from stepgraph.experiments.setting import NotAvailableError, Setting
from stepgraph.experiments.state import Numbers
from stepgraph.experiments.table import (
    MEASURED,
    NOTHING,
    PAPER,
    Cell,
    Column,
    Row,
    Table,
    Unit,
    measured_cell,
)
from stepgraph.progress import track

GAMMAS = (0.3, 0.35, 0.4, 0.45, 0.5)
"""Thresholds of the supplement's sweep."""

ACCURACY = (
    Column("accuracy_per_keystep", "Acc", MEASURED),
    Column("iou_per_keystep", "IoU", MEASURED),
    Column("accuracy", "Acc pooled", MEASURED),
    Column("iou", "IoU pooled", MEASURED),
)
_ORDER = (
    Column("edit_distance", "ED ↓", MEASURED, "fraction"),
    Column("f1_per_keystep", "F1", MEASURED),
    Column("f1", "F1 pooled", MEASURED),
    Column("segment_f1_10", "F1@10", MEASURED),
    Column("segment_f1_25", "F1@25", MEASURED),
    Column("segment_f1_50", "F1@50", MEASURED),
)
_ENTROPY = (Column("low", "Low", MEASURED), Column("high", "High", MEASURED))

MEANS = (
    "Acc and IoU are means over keysteps, as the paper's text defines them; pooled ones are over "
    "all rows, as its released scripts count them."
)


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
    printed: tuple[tuple[str, str, Unit], ...] = (
        ("acc", "Acc", "percent"),
        ("iou", "IoU", "percent"),
    )
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
            (("ed", "ED ↓", "fraction"), ("f1", "F1", "percent")),
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
            (("low", "Low", "percent"), ("high", "High", "percent")),
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
    datasets = _with_numbers(plan, printed_datasets(bench.setting))
    columns = (*plan.columns, *_printed_columns(plan, datasets))
    sections = _sections(plan, bench.setting)
    jobs = [(modality, method) for modality in sections for method in plan.methods]
    rows = tuple(
        Row(
            paper.MODALITIES[modality],
            method.name,
            (
                *measured_cells(plan.columns, bench, (plan.measure, method, modality)),
                *_printed_cells(plan, method.name, modality, datasets),
            ),
        )
        for modality, method in track(jobs, plan.name)
    )
    with_errors = any(cell.error for row in rows for cell in row.cells[: len(plan.columns)])
    notes = [*protocol(bench.setting, plan.methods), *plan.notes, *paper_notes(datasets)]
    if with_errors:
        notes.append(errors_note(bench.setting))
    return Table(plan.name, plan.title, columns, rows, tuple(notes))


def measured_cells(
    columns: Sequence[Column],
    bench: Bench,
    job: tuple[Callable[[Bench, Method, str], Numbers], Method, str],
) -> tuple[Cell, ...]:
    """Cells of one method, or the reason why it has none."""
    measure, method, modality = job
    try:
        numbers = measure(bench, method, modality)
    except NotAvailableError as error:
        return tuple(Cell(None, reason=str(error)) for _ in columns)
    return tuple(number_cell(numbers, column) for column in columns)


def number_cell(numbers: Numbers, column: Column) -> Cell:
    """The cell of one metric."""
    value = numbers[column.key]
    return measured_cell(
        float("nan") if value is None else value, column.unit, numbers.get(column.key + ERROR)
    )


def printed_datasets(setting: Setting) -> tuple[str, ...]:
    """Which of the paper's data sets stand beside: the same one, or all."""
    same = setting.dataset.name in paper.DATASETS
    return (setting.dataset.name,) if same else tuple(paper.DATASETS)


def printed_cell(place: paper.Cell) -> Cell:
    """What the paper prints at a place."""
    number = paper.PRINTED.get(place)
    return NOTHING if number is None else Cell(number.value, number.error, text=number.text)


def paper_column(key: str, name: str, dataset: str, unit: Unit = "percent") -> Column:
    """A column of the paper's table."""
    return Column(key, name, f"{PAPER}, {paper.DATASETS[dataset]}", unit)


def _printed_columns(plan: Plan, datasets: Sequence[str]) -> Iterator[Column]:
    for dataset in datasets:
        yield from (paper_column(key, name, dataset, unit) for key, name, unit in plan.printed)


def _printed_cells(
    plan: Plan, method: str, modality: str, datasets: Sequence[str]
) -> Iterator[Cell]:
    table = plan.source or plan.name
    modality = paper.ANY if table == "table2" else modality
    for dataset in datasets:
        for metric, _, _ in plan.printed:
            yield printed_cell(paper.Cell(table, method, dataset, modality, metric))


def _with_numbers(plan: Plan, datasets: Sequence[str]) -> list[str]:
    table = plan.source or plan.name
    found = {place.dataset for place in paper.PRINTED if place.table == table}
    return [dataset for dataset in datasets if dataset in found]


def _sections(plan: Plan, setting: Setting) -> tuple[str, ...]:
    if plan.everywhere:
        return tuple(paper.MODALITIES)
    return tuple(modality for modality in paper.MODALITIES if modality in setting.scores)


def protocol(setting: Setting, used: Sequence[Method]) -> Iterator[str]:
    """How the table was measured, sentence by sentence."""
    options, truth = setting.options, setting.truth
    videos = [one for one in setting.scored("text") if one.video in truth]
    rows = sum(map(len, videos))
    labelled = sum(int((truth[one.video].keysteps >= 0).sum()) for one in videos)
    tasks = {setting.tasks[one.video] for one in videos if one.video in setting.tasks}
    yield (
        f"Measured here: {setting.dataset.name} (split: {options.split}), {len(videos)} videos of "
        f"{_tasks_in_words(tasks, setting)}, {rows:,} rows of a second, {labelled:,} of them with "
        f"a true keystep."
    )
    unknown = sum(one.video not in setting.tasks for one in videos)
    if unknown and any(method.task_level for method in used):
        yield f"The task of {unknown} videos is unknown; they are left out."
    yield (
        f"Vocabulary: {len(setting.vocabulary)} keysteps of {len(setting.vocabulary.tasks)} tasks "
        f"(fingerprint {setting.vocabulary.fingerprint}). Encoder: {setting.encoder.name}, "
        f"{setting.encoder.context} sentences of context"
        f"{', with task names' if setting.encoder.task_names else ''}. Seed {options.seed}."
    )
    if "video" in options.scores:
        yield f"Video scores: {options.video_scores}; threshold {options.video_threshold:g}."
    for modality in setting.scores:
        yield f"Graph ({modality}) mined {setting.mined_where(modality)}."
    for method in used:
        if method.about:
            yield f"{method.name}: {method.described(setting)}."


def errors_note(setting: Setting) -> str:
    """How standard errors came about."""
    options = setting.options
    videos = sum(1 for _ in setting.evaluated("text"))
    return (
        f"± measured here: standard error of the mean over {min(options.parts, videos)} random "
        f"parts of the videos (seed {options.seed}), with the graph of all of them."
    )


def _tasks_in_words(tasks: set[str], setting: Setting) -> str:
    if not tasks:
        return "unknown tasks"
    named = f" ({', '.join(sorted(tasks))})" if len(tasks) <= 3 else ""
    return f"{len(tasks)} of {len(setting.vocabulary.tasks)} tasks{named}"


def paper_notes(datasets: Sequence[str]) -> Iterator[str]:
    """What to bear in mind about the paper's columns."""
    if not datasets:
        return
    named = " and ".join(paper.DATASETS[dataset] for dataset in datasets)
    yield (
        f"Paper: as printed there, on all its videos of {named} and with its own encoders; for "
        f"orientation, not for comparison."
    )
