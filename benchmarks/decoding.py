"""Time Viterbi and shortest paths beside other libraries: ``python -m benchmarks.decoding``.

Prints one JSON object a line; ``times_ours`` is how many times longer than ours a library took on
the same problems in the same run.  All must agree on the answer.  Libraries that are not installed
(hmmlearn, igraph, rustworkx) are left out.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.speed import best_of, machine, random_graphs
from stepgraph.core import Scores
from stepgraph.decoders.markov import BayesFilter, Viterbi, make_chain
from stepgraph.graph import TaskGraph
from stepgraph.graph import shortest_paths as paths

ROWS = 600
# hmmlearn needs minutes for all rows at the largest size; these are compared row for row.
FEW_ROWS = 60
PAIRS = 200
REPEATS = 15
Path = list[int]
Find = Callable[[int, int], Path]


def say(bench: str, who: str, seconds: float, **details: object) -> None:
    line = {"bench": bench, "library": who, "ms": float(f"{1e3 * seconds:.4g}")}
    print(json.dumps(line | details | machine()), flush=True)


def version(library: str) -> str | None:
    """The version of a library, or None where it is not installed."""
    try:
        return str(importlib.import_module(library).__version__)
    except ImportError:
        return None


def random_video(graph: TaskGraph, *, sentence: int = 4) -> Scores:
    """Scores spread like cosines of narration, each sentence lasting so many rows."""
    rng = np.random.default_rng(2)
    values = rng.normal(0.15, 0.1, (ROWS // sentence, len(graph.vocabulary))).astype("f4")
    observed = np.ones(ROWS, dtype=bool)
    return Scores("v", np.repeat(values, sentence, axis=0), observed, graph.vocabulary)


def hmmlearn_model(graph: TaskGraph, decoder: Viterbi) -> Any:
    """The same chain as a dense matrix, with given log-likelihoods instead of an emission."""
    from hmmlearn.base import BaseHMM

    class Given(BaseHMM):
        def _compute_log_likelihood(self, X: np.ndarray) -> np.ndarray:
            return X

        def _check(self) -> None:
            pass

    chain = make_chain(graph, decoder.self_transition, decoder.floor)
    size = len(graph.vocabulary)
    source = np.repeat(np.arange(size), np.diff(chain.out.first))
    dense = np.full((size, size), np.exp(chain.floor))
    dense[source, chain.out.state] = np.exp(chain.out.log_p)
    np.fill_diagonal(dense, np.exp(chain.stay))
    model = Given(size)
    model.startprob_, model.transmat_ = np.full(size, 1 / size), dense
    return model


def bench_viterbi() -> None:
    decoder = Viterbi()
    for name, size, graph in random_graphs():
        details = {"keysteps": size, "size": name, "rows": ROWS, "edges": graph.counts.nnz}
        scores = random_video(graph)
        decoder.decode(scores, graph)  # compiles
        ours = best_of(lambda s=scores, g=graph: decoder.decode(s, g), REPEATS)
        say("viterbi", "stepgraph", ours, **details)
        noise = random_video(graph, sentence=1)
        worst = best_of(lambda s=noise, g=graph: decoder.decode(s, g), REPEATS)
        say("viterbi, each row its own sentence", "stepgraph", worst, **details)
        filtered = best_of(lambda s=scores, g=graph: BayesFilter().decode(s, g))
        say("bayes filter", "stepgraph", filtered, **details)
        if version("hmmlearn"):
            bench_hmmlearn(graph, scores, decoder, details)


def bench_hmmlearn(
    graph: TaskGraph, scores: Scores, decoder: Viterbi, details: dict[str, object]
) -> None:
    rows, repeats = (ROWS, REPEATS) if len(graph.vocabulary) < 1000 else (FEW_ROWS, 1)
    begun = replace(scores, values=scores.values[:rows], observed=scores.observed[:rows])
    model = hmmlearn_model(graph, decoder)
    values = begun.values.astype(np.float64) / decoder.temperature
    found: list[np.ndarray] = []
    theirs = best_of(lambda: found.append(model.decode(values)[1]), repeats)
    assert found[-1].tolist() == decoder.decode(begun, graph).keysteps.tolist()
    ours = best_of(lambda: decoder.decode(begun, graph), REPEATS)
    ratio = {"rows": rows, "ours_ms": round(1e3 * ours, 2), "times_ours": round(theirs / ours, 2)}
    say("viterbi", f"hmmlearn {version('hmmlearn')}", theirs, **details | ratio)


def ours_in_python(graph: TaskGraph) -> Find:
    """The same search without the compiler, to see what the compiler is worth."""
    network = paths.make_network(graph.costs)
    if network.compiled:
        network = paths.Network(*((a.tolist(), b.tolist()) for a, b in network))
    return lambda start, end: paths.cheapest_path(network, start, end)


def with_scipy(graph: TaskGraph) -> Find:
    from scipy.sparse.csgraph import dijkstra

    costs = graph.costs

    def find(start: int, end: int) -> Path:
        _, parents = dijkstra(costs, indices=start, return_predecessors=True)
        found = [end]
        while found[-1] != start:
            found.append(int(parents[found[-1]]))
        return found[::-1]

    return find


def with_networkx(graph: TaskGraph) -> Find:
    import networkx as nx

    theirs = nx.from_scipy_sparse_array(graph.costs, create_using=nx.DiGraph)
    return lambda start, end: nx.bidirectional_dijkstra(theirs, start, end)[1]


def with_igraph(graph: TaskGraph) -> Find:
    import igraph

    edges = graph.costs.tocoo()
    pairs = list(zip(*(one.tolist() for one in edges.coords), strict=True))
    theirs = igraph.Graph(len(graph.vocabulary), pairs, directed=True)
    weights = edges.data.tolist()
    theirs.es["cost"] = weights
    return lambda start, end: theirs.get_shortest_paths(start, end, weights="cost")[0]


def with_rustworkx(graph: TaskGraph) -> Find:
    import rustworkx as rx

    edges = graph.costs.tocoo()
    theirs = rx.PyDiGraph()
    theirs.add_nodes_from(range(len(graph.vocabulary)))
    source, target = (one.tolist() for one in edges.coords)
    theirs.add_edges_from(list(zip(source, target, edges.data.tolist(), strict=True)))

    def find(start: int, end: int) -> Path:
        return list(rx.dijkstra_shortest_paths(theirs, start, end, weight_fn=float)[end])

    return find


def finders() -> Iterator[tuple[str, Callable[[TaskGraph], Find], int]]:
    """Every way to find a path that is installed, and how many queries are enough."""
    yield "stepgraph", lambda graph: graph.path, PAIRS
    yield "stepgraph without the compiler", ours_in_python, PAIRS
    yield f"scipy {version('scipy')}", with_scipy, 40
    yield f"networkx {version('networkx')}, two-sided", with_networkx, 40
    for library, make in {"igraph": with_igraph, "rustworkx": with_rustworkx}.items():
        if version(library):
            yield f"{library} {version(library)}", make, 40


def bench_paths() -> None:
    for name, size, graph in random_graphs():
        rng = np.random.default_rng(1)
        pairs = [(s, e) for s, e in rng.integers(0, size, (PAIRS, 2)).tolist() if s != e]
        least = [path_cost(graph, graph.path(*pair)) for pair in pairs]
        ours = None
        for who, make, enough in finders():
            find = make(graph)
            chosen = pairs[:enough]
            costs = [path_cost(graph, find(*pair)) for pair in chosen]
            assert np.allclose(costs, least[:enough]), who
            seconds = best_of(lambda f=find, c=chosen: [f(*pair) for pair in c]) / len(chosen)
            ours = ours or seconds
            details = {"keysteps": size, "size": name, "edges": graph.counts.nnz}
            ratio = round(seconds / ours, 2)
            say("shortest path, one query", who, seconds, **details, times_ours=ratio)


def path_cost(graph: TaskGraph, path: Path) -> float:
    return float(sum(graph.costs[edge] for edge in pairwise(path)))


FIRST = """
import time
from benchmarks.speed import random_graphs
from benchmarks.decoding import random_video
from stepgraph.decoders import TaskMarkov, Viterbi
small, _, large = (graph for _, _, graph in random_graphs())
video = random_video(small)
small.costs, large.costs
start = time.perf_counter()
{work}
print(time.perf_counter() - start)
"""
FIRST_WORK = {
    "shortest path, first query": "large.path(0, 1)",
    "viterbi, first video": "Viterbi().decode(video, small)",
    "task-markov, first video": "TaskMarkov().decode(video, small)",
}


def bench_first() -> None:
    """The first use in a process, compiler included: of the largest graph, or of a video."""
    for bench, work in FIRST_WORK.items():
        runs = [first_uses(FIRST.format(work=work)) for _ in range(3)]
        never, before = (min(seconds) for seconds in zip(*runs, strict=True))
        say(bench, "stepgraph", never, state="never compiled")
        say(bench, "stepgraph", before, state="compiled before")


def first_uses(code: str) -> list[float]:
    """Seconds of two processes that share what the compiler keeps."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        command = [sys.executable, "-c", code]
        outputs = (
            subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            for _ in range(2)
        )
        return [float(one.stdout) for one in outputs]


if __name__ == "__main__":
    for bench in (bench_viterbi, bench_paths, bench_first):
        bench()
