"""Tables of measured numbers beside those that the paper prints, as text, Markdown and JSON.

The two never mix: the group of each column names its source.  The numbers that the paper prints
stand in ``paper.toml``; none was measured here.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby, product
from pathlib import Path
from typing import Any, Literal, NamedTuple

DATASETS = {"coin": "COIN", "crosstask": "CrossTask"}
"""Data sets of the paper, by the names of the readers here."""

MODALITIES = {"text": "Text-only", "video": "Video-only", "video-text": "Video-Text"}
"""Modalities of the scores, with the paper's names."""

HOWTO100M = "howto100m"
"""The data set of the paper's task classification."""

NAMES = DATASETS | {HOWTO100M: "HowTo100M"}
"""The paper's names of its data sets."""

HEADS = {"mlp": "MLP", "transformer": "Transformer"}
"""Heads trained on frozen features, in the place of the modality, with the paper's names."""

PROBES = {"keystep": "SR", "task": "TR", "forecast": "SF"}
"""Probes of frozen features, with the paper's names."""

ANY = ""
"""Modality of tables that do not name one."""


MEASURED = "measured here"
PAPER = "paper"

Unit = Literal["percent", "fraction", "relative", "points"]


@dataclass(frozen=True)
class Column:
    """A column: the metric's name for programs and for people, and its unit.

    ``fraction`` is from 0 to 1, ``relative`` a gain in percent of a baseline, ``points`` a
    difference of percents.  The group is ``measured here``, or ``paper`` and its data set.
    """

    key: str
    name: str
    unit: Unit = "percent"
    group: str = MEASURED

    @property
    def is_measured(self) -> bool:
        """Check whether the column was measured here."""
        return self.group == MEASURED


@dataclass(frozen=True)
class Cell:
    """One number in the unit of the column, not rounded, or the reason why there is none.

    The reason is empty where the paper has none; ``text`` is the number as displayed.  A
    difference has a 95 % interval.
    """

    value: float | None
    error: float | None = None
    interval: tuple[float, float] | None = None
    reason: str = ""
    text: str = "–"


NOTHING = Cell(None)
"""A cell where the paper prints nothing."""


class PaperPlace(NamedTuple):
    """Position of a number in the paper."""

    table: str
    method: str
    dataset: str
    modality: str
    metric: str


def _read() -> dict[PaperPlace, Cell]:
    found = {}
    tables = tomllib.loads(Path(__file__).with_name("paper.toml").read_text("utf-8"))
    for table, block in tables.items():
        columns = list(product(block["modalities"], block["datasets"], block["metrics"]))
        for line in block["printed"].splitlines():
            method, _, numbers = line.partition("|")
            for (modality, dataset, metric), text in zip(columns, numbers.split(), strict=True):
                if text != "-":
                    place = PaperPlace(table, method.strip(), dataset, modality, metric)
                    found[place] = _printed(text)
    return found


def _printed(text: str) -> Cell:
    value, _, error = text.rstrip("%").partition("±")
    shown = text.replace("±", " ± ").replace("%", " %")
    return Cell(float(value), float(error) if error else None, text=shown)


PRINTED = _read()
"""All numbers of these tables by their place; a place that is n/a in the paper is missing."""


@dataclass(frozen=True)
class Row:
    """A method, under the heading of a section."""

    section: str
    name: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """Rows of methods by columns of metrics, with notes on the protocol.

    Attributes
    ----------
    name
        Name for ``stepgraph reproduce``.
    notes
        Sentences on the protocol; the reasons for n/a are in the cells.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def cell(self, row: str, column: str, *, section: str | None = None) -> Cell:
        """Find the measured cell of a method and a metric's key; by default the first such."""
        at = [c.is_measured and c.key == column for c in self.columns].index(True)
        return next(
            one.cells[at]
            for one in self.rows
            if one.name == row and section in (None, one.section)
        )

    @property
    def reasons(self) -> tuple[str, ...]:
        """Reasons of missing numbers, each once, in the order of the rows."""
        found = (cell.reason for row in self.rows for cell in row.cells if cell.reason)
        return tuple(dict.fromkeys(found))

    def to_text(self) -> str:
        """Render text for a terminal."""
        groups = ["", *(column.group for column in self.columns)]
        names = ["", *(column.name for column in self.columns)]
        body = [[row.name, *self.shown(row)] for row in self.rows]
        widths = [max(map(len, column)) for column in zip(names, *body, strict=True)]
        lines = [self.title, "", _spanned(groups, widths), _aligned(names, widths)]
        for section, rows in groupby(zip(self.rows, body, strict=True), lambda x: x[0].section):
            lines += [section] if section else []
            lines += [_aligned(cells, widths) for _, cells in rows]
        notes = [*(f"- {note}" for note in self.notes), *self.footnotes]
        return "\n".join(line.rstrip() for line in [*lines, "", *notes]).rstrip() + "\n"

    def to_markdown(self) -> str:
        """Render Markdown, with the paper's numbers in italics."""
        heads = [f"{c.name}<br>{c.group}" for c in self.columns]
        lines = [f"## {self.title}", ""]
        for section, rows in groupby(self.rows, lambda row: row.section):
            lines += [f"**{section}**", ""] if section else []
            lines += [_piped(["", *map(_italic, heads, self.columns)])]
            lines += [_piped(["---", *("---:" for _ in heads)])]
            for row in rows:
                shown = map(_italic, self.shown(row), self.columns)
                lines.append(_piped([row.name, *shown]))
            lines.append("")
        lines += [f"- {note}" for note in self.notes]
        lines += [f"- {note}" for note in self.footnotes]
        return "\n".join(lines).rstrip() + "\n"

    def to_json(self) -> str:
        """Render one JSON object, with numbers not rounded."""
        content = {
            "format": "stepgraph-table",
            "version": 1,
            "name": self.name,
            "title": self.title,
            "notes": list(self.notes),
            "columns": [asdict(column) for column in self.columns],
            "rows": [self._row_json(row) for row in self.rows],
        }
        return json.dumps(content, ensure_ascii=False, indent=1) + "\n"

    def _row_json(self, row: Row) -> dict[str, Any]:
        groups: dict[str, dict[str, Any]] = {}
        for column, cell in zip(self.columns, row.cells, strict=True):
            low, high = cell.interval or (None, None)
            more: dict[str, Any] = {"standard_error": cell.error, "low": low, "high": high}
            more["reason"] = cell.reason or None
            content = {name: given for name, given in more.items() if given is not None}
            groups.setdefault(column.group, {})[column.key] = {"value": cell.value, **content}
        return {"section": row.section, "name": row.name} | groups

    def shown(self, row: Row) -> list[str]:
        """Format the cells of a row, with the number of a reason where there is no number."""
        numbers = {reason: number for number, reason in enumerate(self.reasons, start=1)}
        return [f"n/a [{numbers[c.reason]}]" if c.reason else c.text for c in row.cells]

    @property
    def footnotes(self) -> list[str]:
        """Reasons of missing numbers, numbered as :meth:`shown` does."""
        return [f"n/a [{n}]: {reason}" for n, reason in enumerate(self.reasons, start=1)]


@dataclass(frozen=True)
class Beside:
    """Columns of a table of the paper, to stand beside measured ones.

    Data sets without a number in the table are left out.
    """

    table: str
    datasets: Sequence[str]
    metrics: Sequence[Column]

    @property
    def shown(self) -> list[str]:
        """Data sets with a number in the table."""
        found = {place.dataset for place in PRINTED if place.table == self.table}
        return [dataset for dataset in self.datasets if dataset in found]

    @property
    def columns(self) -> tuple[Column, ...]:
        """All metrics of one data set after the other."""
        groups = [f"{PAPER}, {NAMES[dataset]}" for dataset in self.shown]
        return tuple(replace(one, group=group) for group in groups for one in self.metrics)

    def cells(self, method: str, modality: str) -> tuple[Cell, ...]:
        """Return the numbers that the paper prints for a method."""
        return tuple(
            PRINTED.get(PaperPlace(self.table, method, dataset, modality, one.key), NOTHING)
            for dataset in self.shown
            for one in self.metrics
        )


def measured_cell(
    value: float | None,
    unit: Unit,
    error: float | None = None,
    interval: tuple[float | None, float | None] | None = None,
) -> Cell:
    """Make a cell of a measured number, given as a fraction; an undefined one is n/a.

    >>> measured_cell(0.2179, "percent", 0.0049).text
    '21.8 ± 0.5'
    """
    if value is None or math.isnan(value):
        return Cell(None, reason="undefined on these videos: nothing to be right or wrong about")
    factor = 1 if unit == "fraction" else 100
    error = None if error is None or math.isnan(error) else factor * error
    digits = {"percent": ".1f", "fraction": ".2f", "relative": "+.0f", "points": "+.1f"}[unit]
    text = f"{factor * value:{digits}}{' %' if unit == 'relative' else ''}"
    if error is not None:
        text += f" ± {error:{digits}}"
    if interval is None:
        return Cell(factor * value, error, text=text)
    low, high = (math.nan if end is None else factor * end for end in interval)
    return Cell(factor * value, interval=(low, high), text=f"{text} [{low:.1f}, {high:.1f}]")


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    first = cells[0].ljust(widths[0])
    return "  ".join([first, *(c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True))])


def _spanned(groups: Sequence[str], widths: list[int]) -> str:
    """Write each group once over its columns; widen the last of them where it is too long."""
    parts = []
    for group, columns in groupby(range(len(groups)), lambda at: groups[at]):
        span = list(columns)
        title = f" {group} " if group else ""
        room = sum(widths[at] for at in span) + 2 * (len(span) - 1)
        widths[span[-1]] += max(0, len(title) - room)
        parts.append(title.center(max(room, len(title)), "─" if group else " "))
    return "  ".join(parts)


def _italic(text: str, column: Column) -> str:
    return text if column.is_measured else f"*{text}*"


def _piped(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
