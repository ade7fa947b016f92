"""Tables that are measured on one setting: their methods, columns and notes.

Most have one shape and stand in ``tables.toml``.  Two have their own: the supplement's experiment
on noise, with increasing numbers of irrelevant keysteps, and the effect of each behaviour of the
authors' scripts, alone and all together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from stepgraph.core import Vocabulary
from stepgraph.encoders import Encoder
from stepgraph.errors import ConfigError
from stepgraph.evaluation.metrics import split_standard_error
from stepgraph.evaluation.report import evaluate
from stepgraph.experiments.authors import (
    AuthorsBayesFilter,
    AuthorsPathSearch,
    Behaviors,
    agglomerate,
    mine_as_authors,
)
from stepgraph.experiments.measuring import (
    CHOSEN,
    DIFFERENCE,
    ERROR,
    HIGH,
    LOW,
    VIDEOS,
    Measurer,
)
from stepgraph.experiments.methods import (
    METHODS,
    TABLES,
    Labeler,
    Method,
    paper_notes,
    protocol,
    written_notes,
)
from stepgraph.experiments.setting import NotAvailableError, Numbers, Setting, enlarge
from stepgraph.experiments.table import (
    ANY,
    DATASETS,
    MODALITIES,
    NOTHING,
    Beside,
    Cell,
    Column,
    Row,
    Table,
    measured_cell,
)
from stepgraph.progress import track
from stepgraph.vocabulary import add_noise

COLUMNS = {
    name: tuple(Column(*one) for one in written) for name, written in TABLES["columns"].items()
}
"""Columns that several tables have, or a table that has a shape of its own."""

ACCURACY, PRINTED = COLUMNS["accuracy"], COLUMNS["printed"]


@dataclass(frozen=True)
class TablePlan:
    """A table of methods by metrics; ``tables.toml`` describes its fields."""

    name: str
    title: str
    methods: tuple[Method, ...]
    columns: tuple[Column, ...] = ACCURACY
    printed: tuple[Column, ...] = PRINTED
    source: str = ""
    measure: str = "report"
    everywhere: bool = True
    reference: str = "ours"
    notes: tuple[str, ...] = ()


def _read(name: str, written: Mapping[str, Any]) -> TablePlan:
    used = tuple(METHODS[method] for method in written["methods"])
    columns = {
        key: tuple(Column(*one) for one in written[key])
        for key in ("columns", "printed")
        if key in written
    }
    return TablePlan(**{**written, "name": name, "methods": used, **columns})


PLANS = {name: _read(name, written) for name, written in TABLES["tables"].items()}
"""Tables of one shape; ``noise`` and ``compat`` have shapes of their own."""


def make_table(plan: TablePlan, setting: Setting) -> Table:
    """Measure all cells of a plan and put the paper's beside them."""
    beside = Beside(plan.source or plan.name, _printed_datasets(setting), plan.printed)
    sections = [one for one in MODALITIES if plan.everywhere or one in setting.scores]
    jobs = [(modality, method) for modality in sections for method in plan.methods]
    measurer = Measurer(setting, METHODS[plan.reference])
    rows, chosen = [], dict[str, None]()
    for modality, method in track(jobs, plan.name):
        measure = partial(_numbers, plan, measurer, method, modality)
        cells = _cells(plan.columns, measure)
        # The paper does not name the modality of table 2.
        printed = beside.cells(method.name, ANY if plan.name == "table2" else modality)
        rows.append(Row(MODALITIES[modality], method.name, (*cells, *printed)))
        if cells[0].value is not None:
            chosen |= _remarks(method, modality, measure(), setting)
    means = written_notes("means") if plan.columns == ACCURACY else []
    notes = [*protocol(setting, plan.methods), *means, *plan.notes]
    notes += chosen
    notes += [*written_notes("differences"), *paper_notes(beside.shown)]
    options, parts = setting.options, min(setting.options.parts, len(setting.truth))
    notes += written_notes("errors", parts=parts, seed=options.seed)
    if any(method.chance for method in plan.methods):
        names = ", ".join(method.name for method in plan.methods if method.chance)
        notes += written_notes("seeds", names=names, seeds=options.seeds, seed=options.seed)
    columns = (*plan.columns, *beside.columns)
    return Table(plan.name, plan.title, columns, tuple(rows), tuple(notes))


def _remarks(
    method: Method, modality: str, numbers: Numbers, setting: Setting
) -> Iterator[tuple[str, None]]:
    """Note what was chosen for each task, by seed, and how many videos were left out."""
    name = f"{method.name}, {MODALITIES[modality]}"
    by_task: dict[str, list[str]] = {}
    for key, value in numbers.items():
        if key.startswith(CHOSEN):
            task = key.removeprefix(CHOSEN).partition("/")[2]
            by_task.setdefault(task, []).append(f"{value:g}")
    if by_task:
        found = "; ".join(f"{task}: {', '.join(values)}" for task, values in by_task.items())
        yield f"{name}: chosen with each seed: {found}.", None
    labelled, evaluated = numbers[VIDEOS], sum(1 for _ in setting.evaluated(modality))
    if method.choices and labelled != evaluated:
        yield f"{name}: on the {labelled:g} of {evaluated} videos whose task is known.", None


def _printed_datasets(setting: Setting) -> tuple[str, ...]:
    """Return the paper's data sets to show beside: the same one, or all."""
    same = setting.dataset.name in DATASETS
    return (setting.dataset.name,) if same else tuple(DATASETS)


# --- from labels to numbers, and from these to cells ---------------------------------------


def _numbers(plan: TablePlan, measurer: Measurer, method: Method, modality: str) -> Numbers:
    """Return the stored numbers of a row, or measure them."""
    setting, keys = measurer.setting, [one.key for one in plan.columns]
    settings = {
        "what": plan.measure,
        "keys": keys,
        "method": (method.name, method.about, method.identity),
        "how": (method.task_level, method.chance, list(map(str, method.choices))),
        "reference": measurer.reference.name,
        "modality": modality,
        "input": setting.fingerprint,
    }
    measure = measurer.entropy if plan.measure == "entropy" else measurer.report
    return setting.state.get(settings, lambda: measure(method, modality, keys))


def _cells(columns: Sequence[Column], measure: Callable[[], Numbers]) -> tuple[Cell, ...]:
    """Make the cells of one row, or cells with the reason why they are missing."""
    try:
        numbers = measure()
    except NotAvailableError as error:
        return tuple(Cell(None, reason=str(error)) for _ in columns)
    return tuple(_cell(one, numbers) for one in columns)


def _cell(column: Column, numbers: Numbers) -> Cell:
    if column.key.startswith(DIFFERENCE):
        if column.key not in numbers:
            return NOTHING  # the reference itself
        low, high = (numbers[column.key + end] for end in (LOW, HIGH))
        return measured_cell(numbers[column.key], column.unit, interval=(low, high))
    return measured_cell(numbers[column.key], column.unit, numbers.get(column.key + ERROR))


# --- noise ---------------------------------------------------------------------------------

SIZES = (1.0, 1.5, 2.0, 4.0, 5.0, 10.0)
"""Sizes of the vocabulary, relative to its clean size."""

_COMPARED = {
    "argmax": "distant",
    "ours": "ours",
    "halved": "no-graph",
    "anchors": "anchors",
    "hold": "hold",
}
"""Methods that every size is measured with, by the beginning of their columns' keys."""


def make_noise_table(setting: Setting, encoder: Encoder) -> Table:
    """Measure argmax, path search and the controls with every size of the vocabulary."""
    gains = COLUMNS["gains"]
    beside = Beside("noise", _printed_datasets(setting), gains[:3])
    rows = []
    for size in track(SIZES, "noise"):
        name = f"{size:g} x N"
        cells = _cells(gains, partial(_with_noise, setting, encoder, size))
        rows.append(Row("", name, (*cells, *beside.cells(name, "text"))))
    options = setting.options
    notes = list(protocol(setting, [METHODS[one] for one in _COMPARED.values()]))
    if (noise := options.noise) is not None:
        how = {"others": len(noise), "seeds": options.seeds, "seed": options.seed}
        notes += written_notes("drawn", **how)
    notes += [*written_notes("noise"), *paper_notes(beside.shown)]
    title = "Supplement: accuracy with irrelevant keysteps in the vocabulary, text only"
    return Table("noise", title, (*gains, *beside.columns), tuple(rows), tuple(notes))


def _noisy_vocabulary(setting: Setting, size: float, seed: int) -> Vocabulary:
    """Enlarge the vocabulary to ``size`` times its own size, or raise the reason against it."""
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
        return add_noise(setting.vocabulary, options.noise, factor=size - 1, seed=seed)
    except ConfigError as error:
        raise NotAvailableError(f"too few irrelevant keysteps: {error}") from error


def _with_noise(setting: Setting, encoder: Encoder, size: float) -> Numbers:
    """Average over several draws of the irrelevant keysteps."""
    options = setting.options
    seeds = range(options.seed, options.seed + (1 if size == 1 else options.seeds))
    vocabularies = [_noisy_vocabulary(setting, size, seed) for seed in seeds]
    runs = [_one_noise(setting, encoder, vocabulary) for vocabulary in vocabularies]
    numbers: Numbers = {}
    for key in runs[0]:
        values = [value for run in runs if (value := run[key]) is not None]
        numbers[key] = sum(values) / len(values) if values else None
        if len(values) > 1:
            numbers[key + ERROR] = split_standard_error(values)
    return numbers


def _one_noise(setting: Setting, encoder: Encoder, vocabulary: Vocabulary) -> Numbers:
    def compute() -> Numbers:
        clean = len(vocabulary) == len(setting.vocabulary)
        noisy = setting if clean else enlarge(setting, vocabulary, encoder)
        reports = {
            name: evaluate(METHODS[method].label(noisy, "text").values(), noisy.truth)
            for name, method in _COMPARED.items()
        }
        numbers: Numbers = {}
        for metric, end in (("accuracy_per_keystep", ""), ("accuracy", "_pooled")):
            found = {name: float(getattr(one, metric)) for name, one in reports.items()}
            numbers |= {f"{name}{end}": value for name, value in found.items()}
            before = found["argmax"]
            numbers[f"gain{end}"] = found["ours"] / before - 1 if before > 0 else None
        return numbers

    settings = {"what": "noise", "vocabulary": vocabulary, "input": setting.fingerprint}
    return setting.state.get(settings, compute)


# --- behaviours of the authors' scripts ----------------------------------------------------

PAPERS = "as in the paper"
TOGETHER = "all together"

_MPNET = "text:all-mpnet-base-v2"
# The filter has neither anchors nor paths.
_OF_FILTER = ("first_counted_twice", "extrema", "added_belief")


def make_behaviors_table(setting: Setting) -> Table:
    """Measure path search and the Bayes filter with each behaviour."""
    numbers_of = setting.dataset.name if setting.dataset.name in DATASETS else "crosstask"
    beside = Beside("table1-expanded", [numbers_of], PRINTED)
    jobs = [job for modality in ("text", "video") for job in _jobs(setting, numbers_of, modality)]
    plan = TablePlan("compat", "", (), columns=ACCURACY[:4])
    measurer = Measurer(setting, METHODS["ours"])
    base: dict[str, tuple[Cell, ...]] = {}
    rows = []
    for section, method, modality in track(jobs, "compat"):
        cells = _cells(plan.columns, partial(_numbers, plan, measurer, method, modality))
        change = _change(cells, base.setdefault(section, cells))
        # The published numbers came from all behaviours together.
        name = ("BRF" if section.endswith("filter") else "Ours") if method.name == TOGETHER else ""
        rows.append(Row(section, method.name, (*cells, *change, *beside.cells(name, modality))))
    used = tuple({method.name: method for _, method, _ in jobs}.values())
    notes = [*protocol(setting, used), *written_notes("means")]
    notes += written_notes("compat", dataset=DATASETS[numbers_of])
    notes += paper_notes([numbers_of])
    title = "Effect of each behaviour of the authors' released scripts"
    columns = (*plan.columns, *COLUMNS["prices"], *beside.columns)
    return Table("compat", title, columns, tuple(rows), tuple(notes))


def _jobs(setting: Setting, numbers_of: str, modality: str) -> Iterator[tuple[str, Method, str]]:
    if modality not in setting.scores:
        return
    alone = Behaviors.alone(numbers_of, modality)
    together = Behaviors.authors(numbers_of, modality)
    for decoder, names in (
        ("path search", [name for name in alone if name != "added_belief"]),
        ("Bayes filter", [name for name in alone if name in _OF_FILTER]),
    ):
        section = f"{MODALITIES[modality]}, {decoder}"
        some = {name: alone[name] for name in names}
        for row, chosen in {PAPERS: Behaviors(), **some, TOGETHER: together}.items():
            yield section, _method(row, chosen, decoder), modality
        if modality == "text":
            yield section, Method(_MPNET, _other_encoder), modality
        if decoder == "path search":
            for control in ("no-graph", "anchors", "hold"):
                yield section, METHODS[control], modality


def _method(name: str, chosen: Behaviors, decoder: str) -> Method:
    words = {PAPERS: "none of the behaviours", TOGETHER: "all behaviours"}
    value = getattr(chosen, name, True)
    about = words.get(name) or TABLES["behaviours"][name] + ("" if value is True else f": {value}")
    labeler = partial(_behaving, chosen, decoder)
    return Method(name, labeler, about, identity=f"{decoder} {chosen!r}")


def _behaving(chosen: Behaviors, decoder: str, setting: Setting, modality: str) -> Labeler:
    graph, limit = setting.graphs[modality], chosen.limit
    if chosen.first_counted_twice:
        if setting.options.graph is not None:
            raise NotAvailableError("the graph was given: its first transition is unknown")
        graph = mine_as_authors(setting.scored(modality), setting.vocabulary, chosen)
    if decoder == "Bayes filter":
        return partial(AuthorsBayesFilter(behaviors=chosen).decode, graph=graph)
    clusters: tuple[int, ...] = ()
    if limit is not None and limit.kind == "cluster":
        clusters = agglomerate(setting.keystep_vectors, limit.distance)
    search = AuthorsPathSearch(setting.options.threshold, chosen, clusters)
    return partial(search.decode, graph=graph)


def _other_encoder(setting: Setting, _: str) -> Labeler:
    raise NotAvailableError(
        f"another encoder: the scripts embed with {_MPNET}; measure the table with it, too"
    )


def _change(cells: tuple[Cell, ...], base: tuple[Cell, ...]) -> Iterator[Cell]:
    """Yield the changes of both accuracies, in points."""
    for cell, before in ((cells[0], base[0]), (cells[2], base[2])):
        if cell.value is None or before.value is None:
            yield Cell(None, reason=cell.reason or before.reason)
        else:
            yield measured_cell((cell.value - before.value) / 100, "points")
