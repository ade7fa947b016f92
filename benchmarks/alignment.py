"""Time the alignments: ``python -m benchmarks.alignment > benchmarks/results/alignment.jsonl``.

One JSON object a line: Drop-DTW of 600 rows with 10, 30 and 100 keysteps, Graph2Vid with graphs of
10 keysteps, and beside them plain DTW of tslearn and dtaidistance on matrices of the same size,
where these are installed.  Theirs is not the same job: plain DTW drops nothing and may give a row
to several keysteps; and both run compiled.
Best of several repeats, after one that is not counted.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version

import numpy as np
from scipy.sparse import csr_array

from stepgraph.core import Scores, Vocabulary
from stepgraph.decoders.dtw import DropDTW, Graph2Vid, topological_states
from stepgraph.graph import TaskGraph
from stepgraph.graph.order import partial_order

ROWS = 600
KEYSTEPS = (10, 30, 100)
REPEATS = 7
NOT_THE_SAME = "plain DTW: drops nothing, a row may match several keysteps"


def milliseconds(work: Callable[[], object]) -> float:
    work()
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return round(1e3 * min(seconds), 2)


def say(**measured: object) -> None:
    machine = {
        "cpu": platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    print(json.dumps(measured | machine), flush=True)


def random_scores(size: int) -> Scores:
    """Cosines as narration gives them: every row is observed, one keystep stands out."""
    rng = np.random.default_rng(size)
    values = rng.normal(0.2, 0.1, (ROWS, size)).astype(np.float32)
    values[np.arange(ROWS), np.arange(ROWS) * size // ROWS] += 0.2
    vocabulary = Vocabulary(tuple(f"keystep {keystep}" for keystep in range(size)))
    return Scores("video", values, np.ones(ROWS, bool), vocabulary)


def bench_drop_dtw() -> None:
    for size in KEYSTEPS:
        scores = random_scores(size)
        chain = TaskGraph.from_order(scores.vocabulary, [range(size)])
        for drop_keysteps in (False, True):
            decoder = DropDTW(drop_keysteps=drop_keysteps)
            ms = milliseconds(lambda d=decoder, s=scores, c=chain: d.decode(s, c))
            say(bench="drop-dtw", rows=ROWS, keysteps=size, drop_keysteps=drop_keysteps, ms=ms)


def bench_graph2vid() -> None:
    """Two threads of five keysteps, a random graph, and no order at all: the worst case."""
    size = 10
    scores = random_scores(size)
    threads = np.eye(size, k=1, dtype=np.int64)
    threads[4, 5] = 0
    some = np.triu(np.random.default_rng(0).random((size, size)) < 0.2, k=1).astype(np.int64)
    shapes = {"two threads": threads, "random": some, "no order": np.zeros_like(some)}
    for shape, counts in shapes.items():
        graph = TaskGraph(scores.vocabulary, csr_array(counts))
        states = topological_states(partial_order(counts), 10_000).number
        for drop_keysteps in (False, True):
            decoder = Graph2Vid(drop_keysteps=drop_keysteps)
            ms = milliseconds(lambda d=decoder, g=graph: d.decode(scores, g))
            details = {"graph": shape, "states": states, "drop_keysteps": drop_keysteps}
            say(bench="graph2vid", rows=ROWS, keysteps=size, **details, ms=ms)
        afresh = topological_states.__wrapped__
        ms = milliseconds(lambda c=counts, f=afresh: f(partial_order(c), 10_000))
        say(bench="states of a graph", keysteps=size, graph=shape, states=states, ms=ms)


def bench_tslearn() -> None:
    metrics = import_module("tslearn.metrics")
    for size in KEYSTEPS:
        costs = random_scores(size).values.astype(np.float64)
        ms = milliseconds(lambda c=costs: metrics.dtw_path_from_metric(c, metric="precomputed"))
        compared("tslearn", size, ms)


def bench_dtaidistance() -> None:
    dtw = import_module("dtaidistance.dtw")
    rng = np.random.default_rng(0)
    for size in KEYSTEPS:
        rows, keysteps = rng.random(ROWS), rng.random(size)
        ms = milliseconds(lambda r=rows, k=keysteps: dtw.warping_path_fast(r, k))
        compared("dtaidistance", size, ms)


def compared(library: str, size: int, ms: float) -> None:
    job = {"job": NOT_THE_SAME, "version": version(library)}
    say(bench=f"dtw of {library}", rows=ROWS, keysteps=size, ms=ms, **job)


def main() -> None:
    bench_drop_dtw()
    bench_graph2vid()
    for library, bench in (("tslearn", bench_tslearn), ("dtaidistance", bench_dtaidistance)):
        try:
            import_module(library)
        except ImportError:
            say(bench=f"dtw of {library}", skipped=f"not installed; run: pip install {library}")
        else:
            bench()


if __name__ == "__main__":
    main()
