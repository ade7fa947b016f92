"""Time the stages: ``python -m benchmarks.speed``.

Prints one JSON object a line: what, how many a second, and on what machine.  Best of several
repeats; every encoding is done with an empty cache of its own.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

import numpy as np
from scipy.sparse import csr_array

SIZES = {"crosstask": 105, "coin": 749, "howto100m": 10_588}
EDGES_PER_KEYSTEP = 20
REPEATS = 5


def best_of(work: Callable[[], object], repeats: int = REPEATS) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def machine() -> dict[str, object]:
    return {
        "cpu": platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def say(what: str, amount: float, seconds: float, **details: object) -> None:
    rate = {"bench": what, "per_second": round(amount / seconds, 1), "ms": round(1e3 * seconds, 2)}
    print(json.dumps(rate | details | machine()), flush=True)


def bench_help() -> None:
    command = [sys.executable, "-m", "stepgraph", "--help"]
    seconds = best_of(lambda: subprocess.run(command, capture_output=True, check=True))
    say("stepgraph --help", 1, seconds)


def bench_sentences() -> None:
    from stepgraph.datasets import open_source
    from stepgraph.encoders import EncoderOptions
    from stepgraph.encoders.text import TextEncoder

    encoder = TextEncoder(EncoderOptions())
    texts = [s.text for video in open_source("demo").videos for s in video.transcript]
    encoder._embed(texts[:64])
    say("sentences encoded", len(texts), best_of(lambda: encoder._embed(texts), 3), model="minilm")


def bench_scores() -> None:
    from stepgraph.core import Features, Vocabulary
    from stepgraph.scoring.lazy import LazyScores

    rng = np.random.default_rng(0)
    for name, size in SIZES.items():
        vocabulary = Vocabulary(tuple(f"keystep {k}" for k in range(size)))
        keysteps = rng.standard_normal((size, 384), dtype=np.float32)
        starts = np.arange(0, 600, 4.0)
        features = Features(
            "video",
            600.0,
            rng.standard_normal((len(starts), 384), dtype=np.float32),
            np.stack([starts, starts + 4], axis=1),
        )
        seconds = best_of(lambda f=features, k=keysteps, v=vocabulary: LazyScores(f, k, v).values)
        say("rows scored", 600, seconds, keysteps=size, size=name)


def random_graphs() -> Iterator[tuple[str, int, object]]:
    from stepgraph.core import Vocabulary
    from stepgraph.graph import TaskGraph

    rng = np.random.default_rng(0)
    for name, size in SIZES.items():
        source = np.repeat(np.arange(size), EDGES_PER_KEYSTEP)
        target = rng.integers(0, size, len(source))
        counts = rng.integers(1, 50, len(source))
        matrix = csr_array((counts, (source, target)), shape=(size, size))
        yield name, size, TaskGraph(Vocabulary(tuple(map(str, range(size)))), matrix)


def bench_paths() -> None:
    for name, size, graph in random_graphs():
        pairs = np.random.default_rng(1).integers(0, size, (100, 2)).tolist()

        def find(graph=graph, pairs=pairs) -> None:
            for start, end in pairs:
                graph.path(start, end)

        say("paths found", len(pairs), best_of(find, 3), keysteps=size, size=name)


def bench_videos() -> None:
    """The whole job on the embedded corpus, in processes of their own, cold and warm."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"STEPGRAPH_CACHE": folder}
        command = [sys.executable, "-m", "stepgraph", "demo", "-o", f"{folder}/demo"]
        for state in ("empty cache", "filled cache"):
            start = time.perf_counter()
            subprocess.run(command, env=environment, capture_output=True, check=True)
            say("videos end to end", 36, time.perf_counter() - start, state=state)


if __name__ == "__main__":
    for bench in (bench_help, bench_sentences, bench_scores, bench_paths, bench_videos):
        bench()
