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

import numpy as np
from numpy.typing import NDArray

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
"""Precedes a seed and a task for whose videos an option was chosen on those of the other tasks."""

VIDEOS = "videos"
"""How many videos a method labelled: fewer than others, where it must know their tasks."""

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
        self._labels: dict[str, list[dict[str, Labels]]] = {}
        self._counts: dict[tuple[str, bool], list[dict[str, Counts]]] = {}

    def report(self, method: Method, modality: str, keys: Sequence[str]) -> Numbers:
        """Measure the metrics of some columns, with their errors and differences."""
        runs, numbers = self._runs(method, modality)
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

    def _runs(self, method: Method, modality: str) -> tuple[list[dict[str, Labels]], Numbers]:
        """Label with each seed of a method with chance, or once.

        Also gives how many videos were labelled and what was chosen with each seed.
        """
        if method is self.reference and modality in self._labels:
            runs = self._labels[modality]
            return runs, {VIDEOS: float(len(runs[0]))}
        options = self.setting.options
        seeds = range(options.seed, options.seed + (options.seeds if method.chance else 1))
        runs, numbers = [], Numbers()
        for seed in seeds:
            setting = replace(self.setting, options=replace(options, seed=seed))
            labels, chosen = method.label_and_choose(setting, modality)
            runs.append(labels)
            numbers |= {f"{CHOSEN}{seed}/{task}": value for task, value in chosen.items()}
        if method is self.reference:  # every row is compared with it
            self._labels[modality] = runs
        return runs, numbers | {VIDEOS: float(len(runs[0]))}

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
            labels, _ = self._runs(self.reference, modality)
            self._counts[key] = self._counted(labels, background_rows=background_rows)
        references = [
            {video: one[video] for video in runs[0] if video in one} for one in self._counts[key]
        ]
        found = compare_counts(references, runs, names, seed=self.setting.options.seed)
        return _interval_numbers(found)

    def entropy(self, method: Method, modality: str, keys: Sequence[str]) -> Numbers:
        """Measure accuracy by entropy, on the rows after the anchors of the reference."""
        [starts] = self._runs(self.reference, modality)[0]
        runs, numbers = self._runs(method, modality)
        videos = sorted(runs[0])
        graph, seed = self.setting.graphs[modality], self.setting.options.seed
        for kind, how in _ENTROPY.items():
            reference, *mine = (
                count_by_entropy(
                    (run[video] for video in videos),
                    self.setting.truth,
                    graph,
                    starts=starts,
                    **how,
                )[0]
                for run in (starts, *runs)
            )
            for at, side in enumerate(("low", "high")):
                name, counts = f"{side}_{kind}", [run[:, at] for run in mine]
                values = [_share(run) for run in counts]
                numbers[name] = _or_none(sum(values) / len(values))
                if len(values) == 1:
                    values = [_share(counts[0][part]) for part in self._parts(len(videos))]
                numbers[name + ERROR] = _or_none(split_standard_error(values))
                if method is not self.reference and DIFFERENCE + name in keys:
                    found = compare_ratios([reference[:, at]], counts, seed=seed)
                    numbers |= _interval_numbers({name: found})
        return numbers

    def _parts(self, videos: int) -> list[list[int]]:
        """Divide the positions of videos at random."""
        options = self.setting.options
        names = {f"{at:09}": at for at in range(videos)}
        parts = split_videos(names, min(options.parts, videos), seed=options.seed)
        return [[names[name] for name in part] for part in parts]


def _share(counts: NDArray[np.int64]) -> float:
    """Share of rows that are right, from right rows and all rows of each video."""
    right, rows = counts.sum(axis=0)
    return float(right / rows) if rows else math.nan


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
