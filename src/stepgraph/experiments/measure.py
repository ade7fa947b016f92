"""From labels to the numbers of a table, and from these to its cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from stepgraph.core import Labels
from stepgraph.evaluation.entropy import accuracy_by_entropy
from stepgraph.evaluation.metrics import split_standard_error
from stepgraph.evaluation.report import ALL_METRICS, evaluate, split_videos
from stepgraph.experiments.methods import METHODS, Method
from stepgraph.experiments.setting import NotAvailableError, Setting
from stepgraph.experiments.state import Numbers, State
from stepgraph.experiments.table import Cell, Column, measured_cell

ERROR = " ±"
"""What stands behind the name of a metric whose standard error it is."""


@dataclass(frozen=True, eq=False)
class Bench:
    """A setting and what was measured on it so far."""

    setting: Setting
    state: State

    def measure(self, what: str, method: Method, modality: str) -> Numbers:
        """All metrics of a ``report``, or the accuracies by ``entropy``, of one method."""
        decided_by = {
            "what": what,
            "method": (method.name, method.about, method.identity),
            "how": (method.task_level, method.spread),
            "modality": modality,
            "input": self.setting.fingerprint,
        }
        measure = {"report": _report, "entropy": _entropy}[what]
        return self.state.get(decided_by, lambda: measure(self.setting, method, modality))


def measured_cells(columns: Sequence[Column], measure: Callable[[], Numbers]) -> tuple[Cell, ...]:
    """Cells of one row, or the reason why it has none."""
    try:
        numbers = measure()
    except NotAvailableError as error:
        return tuple(Cell(None, reason=str(error)) for _ in columns)
    return tuple(
        measured_cell(numbers[one.key], one.unit, numbers.get(one.key + ERROR)) for one in columns
    )


def _report(setting: Setting, method: Method, modality: str) -> Numbers:
    labels = method.label(setting, modality)
    report = evaluate(labels.values(), setting.truth)
    numbers = {name: _or_none(getattr(report, name)) for name in ALL_METRICS}
    return numbers | (_errors(labels, setting) if method.spread else {})


def _errors(labels: Mapping[str, Labels], setting: Setting) -> Numbers:
    """Standard error of each metric over random parts of the videos."""
    options = setting.options
    reports = [
        evaluate((labels[video] for video in part), setting.truth)
        for part in split_videos(labels, min(options.parts, len(labels)), seed=options.seed)
    ]
    return {
        name + ERROR: _or_none(split_standard_error([getattr(one, name) for one in reports]))
        for name in ALL_METRICS
    }


def _entropy(setting: Setting, method: Method, modality: str) -> Numbers:
    labels = method.label(setting, modality)
    ours = METHODS["ours"]
    starts = labels if method is ours else ours.label(setting, modality)
    split = accuracy_by_entropy(
        labels.values(), setting.truth, setting.graphs[modality], starts=starts
    )
    return {name: _or_none(float(value)) for name, value in split._asdict().items()}


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
