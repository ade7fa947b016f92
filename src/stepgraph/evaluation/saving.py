"""Save a report, and load it again, or the one that ``stepgraph evaluate --json`` printed."""

from __future__ import annotations

import math
from dataclasses import fields
from pathlib import Path

from stepgraph import __version__
from stepgraph.errors import quoted
from stepgraph.evaluation.report import Report
from stepgraph.files.disk import read_json
from stepgraph.files.headers import FileKind, check_header, reading_fields, write_fields

REPORT_KIND = FileKind(
    "stepgraph-evaluation", 1, "report", "make one with: stepgraph evaluate --json"
)


def save_report(report: Report, path: str | Path) -> None:
    """Save a report as JSON, whole or not at all."""
    first = {"format": REPORT_KIND.format, "version": REPORT_KIND.version}
    write_fields(first | {"stepgraph": __version__} | report.to_json(), path)


def load_report(path: str | Path) -> Report:
    """Load a report; what else stands beside it in the file is left out."""
    path = Path(path)
    content = read_json(path)
    check_header(content, path, REPORT_KIND)
    with reading_fields(path, REPORT_KIND):
        found = {one.name: content[one.name] for one in fields(Report)}
        for one in fields(Report):
            value = found[one.name]
            if one.type == "float" and value is None:
                found[one.name] = math.nan  # JSON has none
            elif not isinstance(value, _TYPES[str(one.type)]) or isinstance(value, bool):
                raise TypeError(f"{one.name} must be a {one.type}, got {quoted(value)}")
        return Report(**found)


_TYPES: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float)}
