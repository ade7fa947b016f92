"""What each behaviour of the authors' scripts is worth, alone and all together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from stepgraph.decoders import Decoder
from stepgraph.experiments import paper
from stepgraph.experiments.authors import (
    AuthorsBayesFilter,
    AuthorsPathSearch,
    Behaviours,
    agglomerate,
    mine_as_authors,
)
from stepgraph.experiments.measure import Bench, measured_cells
from stepgraph.experiments.methods import TABLES, Labeller, Method, decoding
from stepgraph.experiments.notes import paper_notes, protocol, written_notes
from stepgraph.experiments.plans import ACCURACY, PRINTED
from stepgraph.experiments.setting import NotAvailableError, Setting
from stepgraph.experiments.table import Beside, Cell, Column, Row, Table, measured_cell
from stepgraph.graph import TaskGraph
from stepgraph.progress import track

PAPERS = "as in the paper"
TOGETHER = "all together"

_MPNET = "text:all-mpnet-base-v2"
_PRICES = (
    Column("accuracy_per_keystep_change", "Δ Acc", "points"),
    Column("accuracy_change", "Δ Acc pooled", "points"),
)
# The filter has neither anchors nor paths.
_OF_FILTER = ("first_counted_twice", "extrema", "added_belief")


def make_behaviours_table(bench: Bench) -> Table:
    """Measure path search and the Bayes filter with each behaviour."""
    setting = bench.setting
    numbers_of = setting.dataset.name if setting.dataset.name in paper.DATASETS else "crosstask"
    beside = Beside("table1-expanded", [numbers_of], PRINTED)
    jobs = [job for modality in ("text", "video") for job in _jobs(setting, numbers_of, modality)]
    base: dict[str, tuple[Cell, ...]] = {}
    rows = []
    for section, method, modality in track(jobs, "compat"):
        cells = measured_cells(ACCURACY, partial(bench.measure, "report", method, modality))
        change = _change(cells, base.setdefault(section, cells))
        # The published numbers came from all behaviours together.
        name = ("BRF" if section.endswith("filter") else "Ours") if method.name == TOGETHER else ""
        rows.append(Row(section, method.name, (*cells, *change, *beside.cells(name, modality))))
    used = tuple({method.name: method for _, method, _ in jobs}.values())
    notes = [*protocol(setting, used), *written_notes("means")]
    notes += written_notes("compat", dataset=paper.DATASETS[numbers_of])
    notes += paper_notes([numbers_of])
    title = "What each behaviour of the authors' released scripts is worth"
    columns = (*ACCURACY, *_PRICES, *beside.columns)
    return Table("compat", title, columns, tuple(rows), tuple(notes))


def _jobs(setting: Setting, numbers_of: str, modality: str) -> Iterator[tuple[str, Method, str]]:
    if modality not in setting.scores:
        return
    alone = Behaviours.alone(numbers_of, modality)
    searching = {name: one for name, one in alone.items() if name != "added_belief"}
    filtering = {name: one for name, one in alone.items() if name in _OF_FILTER}
    together = Behaviours.authors(numbers_of, modality)
    for name, some, make in (
        ("path search", searching, _path_search),
        ("Bayes filter", filtering, _bayes_filter),
    ):
        section = f"{paper.MODALITIES[modality]}, {name}"
        for row, chosen in {PAPERS: Behaviours(), **some, TOGETHER: together}.items():
            yield section, _method(row, chosen, make), modality
        if modality == "text":
            yield section, Method(_MPNET, _other_encoder), modality


def _method(
    name: str, chosen: Behaviours, make: Callable[[Setting, Behaviours], Decoder]
) -> Method:
    words = {PAPERS: "none of the behaviours", TOGETHER: "all behaviours"}
    value = getattr(chosen, name, True)
    about = words.get(name) or TABLES["behaviours"][name] + ("" if value is True else f": {value}")

    def decoder(setting: Setting, _: str) -> Decoder:
        return make(setting, chosen)

    def graph(setting: Setting, modality: str) -> TaskGraph:
        if not chosen.first_counted_twice:
            return setting.graphs[modality]
        if setting.options.graph is not None:
            raise NotAvailableError("the graph was given: which transition was first is not known")
        return mine_as_authors(setting.scored(modality), setting.vocabulary, chosen)

    return Method(name, decoding(decoder, graph), about, identity=f"{make.__name__} {chosen!r}")


def _path_search(setting: Setting, chosen: Behaviours) -> Decoder:
    clusters: tuple[int, ...] = ()
    if chosen.limit is not None and chosen.limit.kind == "cluster":
        clusters = agglomerate(setting.keystep_vectors, chosen.limit.distance)
    return AuthorsPathSearch(setting.options.threshold, chosen, clusters)


def _bayes_filter(_: Setting, chosen: Behaviours) -> Decoder:
    return AuthorsBayesFilter(behaviours=chosen)


def _other_encoder(setting: Setting, _: str) -> Labeller:
    raise NotAvailableError(
        f"another encoder: the scripts embed with {_MPNET}; measure the table with it, too"
    )


def _change(cells: tuple[Cell, ...], base: tuple[Cell, ...]) -> Iterator[Cell]:
    """Change of both accuracies, in points."""
    for cell, before in ((cells[0], base[0]), (cells[2], base[2])):
        if cell.value is None or before.value is None:
            yield Cell(None, reason=cell.reason or before.reason)
        else:
            yield measured_cell((cell.value - before.value) / 100, "points")
