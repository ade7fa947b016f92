"""One page of all tables and figures that a source allows, and of the missing ones."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from stepgraph.experiments.figures import Figure
from stepgraph.experiments.table import NAMES, PRINTED, Row, Table

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 90rem }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }
th, td { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #ddd }
td { white-space: nowrap }
th:first-child { text-align: left }
tr.section th { text-align: left; background: #f3f3f3 }
.paper { color: #555; font-style: italic; background: #fafafa }
.scroll { overflow-x: auto }
figure { margin: 1.5rem 0 }
figure img { max-width: 100%; border: 1px solid #ddd }
ul { color: #444; font-size: .9em }
"""


def write_page(
    title: str,
    dataset: str,
    tables: Mapping[str, Table],
    figures: Sequence[Figure],
    missing: Mapping[str, str],
) -> str:
    """Write HTML that refers to no other files than those of the figures beside it.

    Parameters
    ----------
    dataset
        Name of the data set that was measured.
    missing
        Reasons by the name of a table that the source does not allow.
    """
    reasons = [
        *(f"<li>{html.escape(name)}: {html.escape(why)}</li>" for name, why in missing.items()),
        *(
            f"<li>figure {html.escape(one.number)}: {html.escape(one.caption)}</li>"
            for one in figures
            if one.file is None
        ),
    ]
    there = f"<h2>What cannot be had</h2><ul>{''.join(reasons)}</ul>" if reasons else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{html.escape(title)}</h1><p>Of the {len(PRINTED)} numbers that the paper's tables "
        f"print, {count_beside(tables.values(), dataset)} were measured here on the same data "
        f"set, or a part of it. Columns in italics are the paper's.</p>"
        f"{''.join(map(_table, tables.values()))}{''.join(map(_figure, figures))}{there}"
        "</body></html>\n"
    )


def count_beside(tables: Iterable[Table], dataset: str) -> int:
    """Count the numbers that the paper prints on a data set and that a table has measured on it.

    A number counts where its row has a measured number of the same metric.
    """
    found = set()
    for table in tables:
        if table.name == "compat":  # its numbers of the paper stand in table 1 already
            continue
        source = "table1-expanded" if table.name == "thresholds" else table.name
        for row in table.rows:
            cells = list(zip(table.columns, row.cells, strict=True))
            measured = {
                column.name.partition(",")[0]
                for column, cell in cells
                if column.is_measured and cell.value is not None
            }
            found |= {
                (source, row.section, row.name, column.name)
                for column, cell in cells
                if not column.is_measured
                and column.group.endswith(NAMES.get(dataset, "?"))
                and column.name in measured
                and cell.value is not None
            }
    return len(found)


def _table(table: Table) -> str:
    heads = "".join(
        f"<th{_kind(column.is_measured)}>{html.escape(column.name)}<br>"
        f"<small>{html.escape(column.group)}</small></th>"
        for column in table.columns
    )
    body = []
    for section, rows in groupby(table.rows, lambda row: row.section):
        if section:
            span = len(table.columns) + 1
            body.append(f"<tr class=section><th colspan={span}>{html.escape(section)}</th></tr>")
        body += [_row(table, row) for row in rows]
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in (*table.notes, *table.footnotes))
    return (
        f"<h2>{html.escape(table.title)}</h2><div class=scroll><table><thead><tr><th></th>{heads}"
        f"</tr></thead><tbody>{''.join(body)}</tbody></table></div><ul>{notes}</ul>"
    )


def _row(table: Table, row: Row) -> str:
    cells = "".join(
        f"<td{_kind(column.is_measured)}>{html.escape(text)}</td>"
        for column, text in zip(table.columns, table.shown(row), strict=True)
    )
    return f"<tr><th>{html.escape(row.name)}</th>{cells}</tr>"


def _kind(is_measured: bool) -> str:
    return "" if is_measured else " class=paper"


def _figure(one: Figure) -> str:
    if one.file is None:
        return ""
    caption = html.escape(f"Figure {one.number}: {one.caption}")
    name = html.escape(one.file.name, quote=True)
    return f'<figure><img src="{name}" alt="{caption}"><figcaption>{caption}</figcaption></figure>'
