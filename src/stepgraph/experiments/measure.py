"""From labels to the numbers of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from stepgraph.core import Labels
from stepgraph.evaluation.entropy import accuracy_by_entropy
from stepgraph.evaluation.metrics import split_standard_error
from stepgraph.evaluation.report import ALL_METRICS, Report, evaluate, split_videos
from stepgraph.experiments.methods import OURS, Method
from stepgraph.experiments.setting import Setting
from stepgraph.experiments.state import Numbers, State

ERROR = " ±"
"""What stands behind the name of a metric whose standard error it is."""


@dataclass(frozen=True, eq=False)
class Bench:
    """A setting and what was measured on it so far."""

    setting: Setting
    state: State

    def report(self, method: Method, modality: str) -> Numbers:
        """All metrics of :func:`~stepgraph.evaluate`, with standard errors if asked for."""
        return self._measured("report", method, modality)

    def entropy(self, method: Method, modality: str) -> Numbers:
        """Accuracy of the rows between the anchors of Ours, by how predictable they are."""
        return self._measured("entropy", method, modality)

    def _measured(self, what: str, method: Method, modality: str) -> Numbers:
        setting, options = self.setting, self.setting.options
        decided_by = {
            "what": what,
            "method": method.name,
            "identity": method.identity,
            "options": method.described(setting),
            "task level": method.task_level,
            "spread": method.spread,
            "modality": modality,
            "seed": options.seed,
            "threshold": options.threshold,
            "parts": options.parts,
            "vocabulary": setting.vocabulary.fingerprint,
            "input": setting.fingerprint,
        }
        measure = _report if what == "report" else _entropy
        return self.state.get(decided_by, lambda: measure(setting, method, modality))


def _report(setting: Setting, method: Method, modality: str) -> Numbers:
    labels = method.label(setting, modality)
    numbers = _numbers(evaluate(labels.values(), setting.truth))
    if method.spread:
        numbers |= _errors(labels, setting)
    return numbers


def _errors(labels: Mapping[str, Labels], setting: Setting) -> Numbers:
    """Standard error of each metric over random parts of the videos."""
    options = setting.options
    parts = min(options.parts, len(labels))
    reports = [
        evaluate((labels[video] for video in part), setting.truth)
        for part in split_videos(labels, parts, seed=options.seed)
    ]
    return {
        name + ERROR: _or_none(split_standard_error([getattr(one, name) for one in reports]))
        for name in ALL_METRICS
    }


def _entropy(setting: Setting, method: Method, modality: str) -> Numbers:
    labels = method.label(setting, modality)
    starts = labels if method is OURS else OURS.label(setting, modality)
    split = accuracy_by_entropy(
        labels.values(), setting.truth, setting.graphs[modality], starts=starts
    )
    return {name: _or_none(float(value)) for name, value in split._asdict().items()}


def _numbers(report: Report) -> Numbers:
    return {name: _or_none(getattr(report, name)) for name in ALL_METRICS}


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
