"""Measures of the assistant on executions: orders, mistakes, next steps, plans.

Orders: precision, recall and F1 of the direct pairs of each task with a true order, START and END
included, then the plain means.  Mistakes: fitted on correct executions of ``train``; an execution
of ``test`` ends with its first mistake, and all steps are pooled.  Next steps and plans: fitted on
``train``, predicted on ``test`` from the true past, repetitions collapsed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stepgraph.assistant.answers import Assistant
from stepgraph.assistant.executions import END, START, Edge, Execution, Executions
from stepgraph.assistant.orders import Order, learn_order
from stepgraph.assistant.planning import make_plans
from stepgraph.core import without_repetitions
from stepgraph.errors import DataError


@dataclass(frozen=True)
class MeasuredExecutions:
    """Rows of named measures, and those of all executions together."""

    name: str
    rows: Mapping[str, Mapping[str, float]]
    overall: Mapping[str, float]
    note: str

    def to_json(self) -> str:
        """Render one JSON object; undefined measures are null."""
        rows = {name: _defined(row) for name, row in self.rows.items()}
        content = {"name": self.name, **_defined(self.overall), "tasks": rows, "note": self.note}
        return json.dumps(content, ensure_ascii=False, indent=1) + "\n"

    def to_markdown(self) -> str:
        """Render a table in Markdown."""
        rows = {**self.rows, "all": self.overall}
        heads = list(dict.fromkeys(key for row in rows.values() for key in row))
        lines = [f"| | {' | '.join(heads)} |", f"| --- |{' ---: |' * len(heads)}"]
        for name, row in rows.items():
            cells = (_shown(row[head]) if head in row else "" for head in heads)
            lines.append(f"| {name} | {' | '.join(cells)} |")
        return "\n".join([*lines, "", self.note]) + "\n"

    def to_text(self) -> str:
        """Render text for a terminal."""
        lines = [self.note, ""]
        for name, row in {**self.rows, "all": self.overall}.items():
            shown = ", ".join(f"{key} {_shown(value)}" for key, value in row.items())
            lines.append(f"{name or 'no task'}: {shown}")
        return "\n".join(lines)


def _defined(row: Mapping[str, float]) -> dict[str, float | None]:
    return {key: None if math.isnan(value) else value for key, value in row.items()}


def _shown(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.1f}"


def measure(name: str, executions: Executions) -> MeasuredExecutions:
    """Measure one of :data:`ASSISTED`; shares are in percent."""
    return _MEASURES[name](executions)


def edges_of(order: Order) -> frozenset[Edge]:
    """List the direct pairs of an order; START and END join steps without another neighbour."""
    pairs = [(str(first), str(second)) for first, second in order.edges]
    steps = {str(step) for step in order.steps}
    ends_only = steps - {second for _, second in pairs}, steps - {first for first, _ in pairs}
    ends = [(START, one) for one in ends_only[0]] + [(one, END) for one in ends_only[1]]
    return frozenset([*pairs, *ends])


def agreement(predicted: frozenset[Edge], truth: frozenset[Edge]) -> dict[str, float]:
    """Compute precision, recall and F1 of pairs, in percent."""
    right = len(predicted & truth)
    return {
        "precision": 100 * right / len(predicted) if predicted else math.nan,
        "recall": 100 * right / len(truth) if truth else math.nan,
        "f1": 200 * right / (len(predicted) + len(truth)) if predicted or truth else math.nan,
    }


def _measure_order(executions: Executions) -> MeasuredExecutions:
    if not executions.graphs:
        raise DataError(
            f"{executions.name}: must have true orders in graphs/<task>.json, got none"
        )
    rows = {}
    for task, done in executions.by_task().items():
        if task in executions.graphs:
            correct = [one.steps for one in done if one.is_correct and one.steps]
            found = agreement(edges_of(learn_order(correct)), executions.graphs[task])
            rows[task] = {**found, "executions": len(correct)}
    means = {
        key: _mean([row[key] for row in rows.values()]) for key in ("precision", "recall", "f1")
    }
    note = "Orders from executions without mistakes, beside the true ones; START and END count."
    return MeasuredExecutions("order", rows, means, note)


def _measure_mistakes(executions: Executions) -> MeasuredExecutions:
    train, test = _parts(executions)
    assistant = Assistant(tuple(one for one in train if one.is_correct))
    scores, wrong = list[float](), list[bool]()
    for one in test:
        marks = one.mistakes or (False,) * len(one.steps)
        length = marks.index(True) + 1 if any(marks) else len(marks)
        scores += [score for _, score, _ in assistant.judge(one.steps[:length], one.task)]
        wrong += marks[:length]
    predicted = [score >= assistant.threshold for score in scores]
    mistake = _f1(wrong, predicted)
    correct = _f1([not one for one in wrong], [not one for one in predicted])
    overall = {
        "macro_f1": (mistake + correct) / 2,
        "mistake_f1": mistake,
        "correct_f1": correct,
        "average_precision": 100 * average_precision(wrong, scores),
        "segments": len(wrong),
        "mistakes": sum(wrong),
    }
    note = (
        f"Each step of the test, up to the first mistake; a mistake scores at least "
        f"{assistant.threshold:.2f}, set by the correct executions alone."
    )
    return MeasuredExecutions("mistakes", {}, overall, note)


def _f1(truth: Sequence[bool], predicted: Sequence[bool]) -> float:
    right = sum(one and other for one, other in zip(truth, predicted, strict=True))
    return 200 * right / (sum(truth) + sum(predicted)) if sum(truth) + sum(predicted) else math.nan


def average_precision(truth: Sequence[bool], scores: Sequence[float]) -> float:
    """Compute the mean precision at each true item, with items of equal score taken together.

    >>> average_precision([True, False, True], [0.9, 0.8, 0.1])
    0.8333333333333333
    """
    total, found, taken, area = sum(truth), 0, 0, 0.0
    for score in sorted({*scores}, reverse=True):
        here = [one for one, each in zip(truth, scores, strict=True) if each == score]
        found, taken = found + sum(here), taken + len(here)
        area += sum(here) * found / taken
    return area / total if total else math.nan


def _measure_next(executions: Executions) -> MeasuredExecutions:
    train, test = _parts(executions)
    assistant = Assistant(tuple(train))
    ranks: dict[str, list[int]] = {}
    for one in test:
        steps = numbers(assistant, one)
        for at in range(1, len(steps)):
            shares = assistant.experience.next(steps[:at])
            ranks.setdefault(one.task, []).append(int((shares > shares[steps[at]]).sum()))
    rows = {task: _at(found) for task, found in ranks.items()}
    note = "The next step after the true past, the task unknown; @1 and @5 in percent."
    return MeasuredExecutions(
        "next", rows, _at([one for found in ranks.values() for one in found]), note
    )


def _at(ranks: Sequence[int]) -> dict[str, float]:
    hits = {f"@{top}": 100 * _mean([rank < top for rank in ranks]) for top in (1, 5)}
    return {**hits, "steps": len(ranks)}


def numbers(assistant: Assistant, one: Execution) -> list[int]:
    """Return the steps of an execution that the assistant contains, repetitions collapsed."""
    steps = np.array(assistant.listed(one.steps), dtype=np.int64)
    return [int(each) for each in without_repetitions(steps)]


def _measure_planning(executions: Executions) -> MeasuredExecutions:
    train, test = _parts(executions)
    assistant = Assistant(tuple(train))
    sequences = [numbers(assistant, one) for one in test]
    rows = {}
    for length in (3, 4, 5, 6):
        windows = [
            tuple(steps[at : at + length])
            for steps in sequences
            for at in range(len(steps) - length + 1)
        ]
        rows[f"T{length}"] = _planned(assistant, windows, length)
    note = "Real windows, both ends given, the task unknown; repetitions collapsed."
    return MeasuredExecutions("planning", rows, {}, note)


def _planned(
    assistant: Assistant, windows: Sequence[tuple[int, ...]], length: int
) -> dict[str, float]:
    plans = {}
    for first, *_, last in {*windows}:
        found = make_plans(assistant.experience, first, last, steps=length, top=1)
        plans[first, last] = found[0].keysteps if found else ()
    predicted = [(one, plans[one[0], one[-1]]) for one in windows]
    right = [
        sum(a == b for a, b in zip(one, plan, strict=False)) / length for one, plan in predicted
    ]
    either = [len({*one} & {*plan}) / len({*one} | {*plan}) for one, plan in predicted]
    exact = [one == plan for one, plan in predicted]
    return {
        "success": 100 * _mean(exact),
        "accuracy": 100 * _mean(right),
        "iou": 100 * _mean(either),
        "windows": len(windows),
    }


def _parts(executions: Executions) -> tuple[list[Execution], list[Execution]]:
    train, test = executions.of_split("train"), executions.of_split("test")
    if not train or not test:
        got = f"{len(train)} and {len(test)}"
        raise DataError(f"{executions.name}: splits must be train and test, got {got} executions")
    return train, test


def _mean(values: Sequence[float]) -> float:
    defined = [value for value in values if not math.isnan(value)]
    return float(sum(defined) / len(defined)) if defined else math.nan


_MEASURES: dict[str, Callable[[Executions], MeasuredExecutions]] = {
    "order": _measure_order,
    "mistakes": _measure_mistakes,
    "next": _measure_next,
    "planning": _measure_planning,
}
ASSISTED = tuple(_MEASURES)
"""Names of the measures."""
