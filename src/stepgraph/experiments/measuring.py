"""Numbers of a table's row from the labels of its method: metrics, errors, differences.

A deterministic method labels once, and its standard errors are over random parts of the videos.
A random method labels once for each of several seeds: its numbers are means over the seeds, and
its standard errors are over the seeds.  A difference is the reference method minus the row's
method, with the interval of a paired bootstrap over videos.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add

from stepgraph.core import Labels
from stepgraph.evaluation.comparison import compare_counts, compare_ratios, count_videos
from stepgraph.evaluation.counts import Counts
from stepgraph.evaluation.entropy import count_by_entropy
from stepgraph.evaluation.metrics import split_standard_error
from stepgraph.evaluation.report import split_videos
from stepgraph.experiments.methods import Method
from stepgraph.experiments.setting import Numbers, Setting

ERROR = " ±"
"""Suffix of a metric's name for its standard error."""

LOW, HIGH = " low", " high"
"""Suffixes of a difference's name for the ends of its interval."""

DIFFERENCE = "difference/"
"""Prefix for a metric of the reference method minus the same metric of the row."""

KEYSTEP_ROWS = "keystep_rows/"
"""Prefix for a metric that leaves out the rows whose truth is background."""

CHOSEN = "chosen/"
"""Prefix for a task for whose videos an option was chosen on those of the other tasks."""

_ENTROPY = {
    f"{rows}{loop}": {"anchors_too": rows == "all", "self_loop": loop == "_loop"}
    for rows in ("all", "gaps")
    for loop in ("_loop", "")
}


class Measurer:
    """Measure methods in a setting, with one of them as the reference of differences."""

    def __init__(self, setting: Setting, reference: Method) -> None:
        self.setting = setting
        self.reference = reference
        self._chosen: dict[str, float] = {}
        self._labels: dict[str, list[dict[str, Labels]]] = {}
        self._counts: dict[tuple[str, bool], list[dict[str, Counts]]] = {}

    def report(self, method: Method, modality: str, keys: Sequence[str]) -> Numbers:
        """Measure the metrics of some columns, with their errors and differences."""
        runs = self._runs(method, modality)
        numbers: Numbers = {f"{CHOSEN}{task}": value for task, value in self._chosen.items()}
        for prefix in ("", KEYSTEP_ROWS):
            plain = [key.removeprefix(DIFFERENCE) for key in keys]
            names = [
                key.removeprefix(prefix)
                for key in dict.fromkeys(plain)
                if key.startswith(KEYSTEP_ROWS) == bool(prefix)
            ]
            if not names:
                continue
            counts = self._counted(runs, background_rows=not prefix)
            found = self._metrics(counts, names) | self._errors(counts, names)
            compared = [one for one in names if f"{DIFFERENCE}{prefix}{one}" in keys]
            if compared and method is not self.reference:
                found |= self._differences(counts, modality, compared, background_rows=not prefix)
            for name, value in found.items():
                inside = name.removeprefix(DIFFERENCE)
                before = DIFFERENCE if inside != name else ""
                numbers[f"{before}{prefix}{inside}"] = value
        return numbers

    def _runs(self, method: Method, modality: str) -> list[dict[str, Labels]]:
        """Label with each seed of a random method, or once; cache the reference's labels."""
        if method is self.reference and modality in self._labels:
            return self._labels[modality]
        options = self.setting.options
        seeds = range(options.seed, options.seed + (options.seeds if method.chance else 1))
        runs = []
        for seed in seeds:
            setting = replace(self.setting, options=replace(options, seed=seed))
            labels, self._chosen = method.label_and_choose(setting, modality)
            runs.append(labels)
        if method is self.reference:
            self._labels[modality] = runs
        return runs

    def _counted(
        self, runs: Iterable[Mapping[str, Labels]], *, background_rows: bool
    ) -> list[dict[str, Counts]]:
        truth = self.setting.truth
        return [count_videos(run.values(), truth, background_rows=background_rows) for run in runs]

    def _metrics(self, runs: Sequence[Mapping[str, Counts]], names: Sequence[str]) -> Numbers:
        values = [_total(run.values()).metrics() for run in runs]
        return {name: _or_none(sum(one[name] for one in values) / len(values)) for name in names}

    def _errors(self, runs: Sequence[Mapping[str, Counts]], names: Sequence[str]) -> Numbers:
        """Compute standard errors over the runs, or over parts of the videos for a single run."""
        options, totals = self.setting.options, [_total(run.values()) for run in runs]
        if len(runs) == 1:
            parts = split_videos(runs[0], min(options.parts, len(runs[0])), seed=options.seed)
            totals = [_total(runs[0][video] for video in part) for part in parts]
        values = [one.metrics() for one in totals]
        return {
            name + ERROR: _or_none(split_standard_error([one[name] for one in values]))
            for name in names
        }

    def _differences(
        self,
        runs: Sequence[Mapping[str, Counts]],
        modality: str,
        names: Sequence[str],
        *,
        background_rows: bool,
    ) -> Numbers:
        key = (modality, background_rows)
        if key not in self._counts:
            labels = self._runs(self.reference, modality)
            self._counts[key] = self._counted(labels, background_rows=background_rows)
        found = compare_counts(self._counts[key], runs, names, seed=self.setting.options.seed)
        return _interval_numbers(found)

    def entropy(self, method: Method, modality: str, keys: Sequence[str]) -> Numbers:
        """Measure accuracy by entropy, on the rows after the anchors of the reference."""
        [starts] = self._runs(self.reference, modality)
        graph, numbers = self.setting.graphs[modality], Numbers()
        labels = [self._runs(one, modality) for one in (self.reference, method)]
        for kind, how in _ENTROPY.items():
            both = [
                [
                    count_by_entropy(
                        (run[video] for video in sorted(run)),
                        self.setting.truth,
                        graph,
                        starts=starts,
                        **how,
                    )[0]
                    for run in runs
                ]
                for runs in labels
            ]
            for at, side in enumerate(("low", "high")):
                mine = [run[:, at] for run in both[1]]
                shares = [float(run[:, 0].sum() / max(1, run[:, 1].sum())) for run in mine]
                name = f"{side}_{kind}"
                numbers[name] = _or_none(sum(shares) / len(shares))
                if len(shares) > 1:
                    numbers[name + ERROR] = _or_none(split_standard_error(shares))
                if method is not self.reference and DIFFERENCE + name in keys:
                    theirs = [run[:, at] for run in both[0]]
                    numbers |= _interval_numbers({name: compare_ratios(theirs, mine)})
        return numbers


def _interval_numbers(found: Mapping[str, tuple[float, float, float]]) -> Numbers:
    return {
        f"{DIFFERENCE}{name}{end}": _or_none(value)
        for name, one in found.items()
        for end, value in zip(("", LOW, HIGH), one, strict=True)
    }


def _total(counts: Iterable[Counts]) -> Counts:
    return reduce(add, counts)


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
