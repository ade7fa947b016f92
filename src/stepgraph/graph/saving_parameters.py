"""Recogniser parameters and emission traces as fields of a saved graph: arrays in base 64."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import Vocabulary
from stepgraph.errors import DataError
from stepgraph.files.headers import as_list, as_text, as_whole
from stepgraph.graph.parameters import RecognizerParameters, SentenceClassifier, listed_tasks
from stepgraph.graph.traces import (
    TIMING_BINS,
    EmissionTrace,
    EmissionTraces,
    is_traceable,
    videos_each,
)

# More videos than anybody has; their sums stay exact.
_MOST = 1e12


def parameters_fields(parameters: RecognizerParameters | None) -> dict[str, Any] | None:
    """Return the recogniser parameters as fields of a saved graph."""
    if parameters is None:
        return None
    return {
        "tasks": list(parameters.tasks),
        "log_evidence": {video: _packed(one) for video, one in parameters.log_evidence.items()},
        "videos": dict(parameters.videos),
        "timing": {task: _packed(one) for task, one in parameters.timing.items()},
        "classifiers": {
            task: {"vectors": _packed(classifiers.vectors), "bias": _packed(classifiers.bias)}
            for task, classifiers in parameters.classifiers.items()
        },
    }


def parameters_of(fields: Any, vocabulary: Vocabulary) -> RecognizerParameters | None:
    """Check the fields, and build the recogniser parameters; older graphs have none."""
    if fields is None:
        return None
    tasks = listed_tasks(vocabulary)
    if as_list(fields["tasks"]) != [*tasks]:
        raise DataError("parameters must be of the tasks of the vocabulary")
    videos = {as_text(task): _amount(number) for task, number in fields["videos"].items()}
    timing = {task: _times(fields["timing"][task], len(tasks[task])) for task in videos}
    log_evidence = {
        as_text(video): _log_evidence(text, len(tasks))
        for video, text in fields["log_evidence"].items()
    }
    classifiers = {
        task: _classifier(one, len(timing[task])) for task, one in fields["classifiers"].items()
    }
    return RecognizerParameters(tuple(tasks), log_evidence, videos, timing, classifiers)


def _times(text: Any, size: int) -> NDArray[np.float64]:
    times = _array(text, np.float64)
    if len(times) != size * TIMING_BINS or not ((times >= 0) & (times <= _MOST)).all():
        raise DataError(f"timing must have {size} x {TIMING_BINS} numbers >= 0, got {len(times)}")
    return times.reshape(size, TIMING_BINS)


def _log_evidence(text: Any, size: int) -> NDArray[np.float32]:
    found = _array(text, np.float32, finite=False)
    if len(found) != size or not np.isfinite(found.max(initial=-np.inf)):
        raise DataError(f"log-evidence must have {size} numbers, one finite, got {len(found)}")
    return found


def _classifier(fields: Any, size: int) -> SentenceClassifier:
    bias = _array(fields["bias"], np.float64)
    vectors = _array(fields["vectors"], np.float32)
    if len(bias) != size or not size or len(vectors) % size:
        raise DataError(f"a sentence classifier must have {size} keysteps, got {len(bias)}")
    return SentenceClassifier(vectors.reshape(size, len(vectors) // size), bias)


def traces_fields(traces: EmissionTraces | None) -> dict[str, Any] | None:
    """Return the emission traces as fields of a saved graph."""
    if traces is None:
        return None
    tasks = {
        task: {
            video: {
                "hop": one.hop,
                "rows": _packed(one.rows.astype(np.uint32)),
                "emissions": _packed(one.emissions),
                "salient": _packed(one.salient),
            }
            for video, one in videos.items()
        }
        for task, videos in traces.tasks.items()
    }
    return {"order_weight": traces.order, "videos": dict(traces.population), "tasks": tasks}


def traces_of(fields: Any, vocabulary: Vocabulary) -> EmissionTraces | None:
    """Check the fields, and build the emission traces; older graphs have none."""
    if fields is None:
        return None
    listed, order = listed_tasks(vocabulary), _amount(fields["order_weight"])
    tasks = {
        as_text(task): {
            as_text(video): _trace(one, len(listed[task])) for video, one in of.items()
        }
        for task, of in fields["tasks"].items()
    }
    population = {as_text(task): as_whole(number) for task, number in fields["videos"].items()}
    sampled, most = {task: len(of) for task, of in tasks.items()}, videos_each(population.values())
    if (
        order > 1
        or population.keys() != sampled.keys()
        or any(sampled[k] > min(population[k], most) for k in population)
    ):
        raise DataError("traces must be of no more videos than were counted and can be kept")
    return EmissionTraces(tasks, population, order)


def _trace(fields: Any, size: int) -> EmissionTrace:
    rows, emissions = _array(fields["rows"], np.uint32), _array(fields["emissions"], np.int8)
    salient, hop = _array(fields["salient"], np.uint8), _amount(fields["hop"])
    many = rows.astype(np.int64)
    if len(emissions) != len(rows) * size or len(salient) != size or (many < 1).any() or not hop:
        raise DataError(f"an emission trace must have rows x {size} numbers, got {len(emissions)}")
    if not is_traceable(int(many.sum()), size):
        raise DataError(f"an emission trace must have rows that can be kept, got {many.sum()}")
    return EmissionTrace(many, emissions.reshape(len(many), size), salient > 0, hop)


def _amount(value: Any) -> float:
    """Check a number that is at least 0, such as an expected number of videos."""
    if type(value) not in (int, float) or not 0 <= value <= _MOST:
        raise TypeError(f"numbers of videos were expected, got {value!r}"[:200])
    return float(value)


def _packed(array: NDArray[Any]) -> str:
    return b64encode(np.ascontiguousarray(array).tobytes()).decode()


def _array(text: Any, kind: type[Any], *, finite: bool = True) -> NDArray[Any]:
    found = np.frombuffer(b64decode(as_text(text), validate=True), dtype=kind)
    if finite and not np.isfinite(found).all():
        raise DataError("numbers that are not finite")
    return found
