"""Maps of tasks made by hand, for tests of what is drawn and written from them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from reference import make_traces
from stepgraph.core import Labels, Vocabulary
from stepgraph.graph import TaskGraph
from stepgraph.graph.maps import END, START, Procedure, ProcedureStep, Succession

NAMES = ("boil water", "add leaves", "add milk", "stir", "pour")


def make_map(arrows, *, names=NAMES, videos=10, shown=None, task="Make tea"):
    """A map of all keysteps in their order; arrows are given as (first, second, count)."""
    totals = {}
    for first, _, count in arrows:
        totals[first] = totals.get(first, 0) + count
    shares = [(first, second, count, count / totals[first]) for first, second, count in arrows]
    shown = shown or {}
    steps = []
    for keystep in range(len(names)):
        share = shown.get(keystep, videos) / max(1, videos)
        steps.append(
            ProcedureStep(
                keystep,
                round(share * videos),
                share,
                max(0, share - 0.1),
                min(1, share + 0.1),
                keystep / len(names),
                20.0,
            )
        )
    return Procedure(
        task,
        videos,
        tuple(steps),
        tuple(
            sorted(
                (Succession(*one, max(0, one[3] - 0.1), min(1, one[3] + 0.1)) for one in shares),
                key=lambda arrow: -arrow.seen,
            )
        ),
        Vocabulary(tuple(names), {task: tuple(range(len(names)))}),
    )


def chain(size, count=10):
    """Arrows from START through all keysteps to END."""
    stops = [START, *range(size), END]
    return [(first, second, count) for first, second in pairwise(stops)]


def random_map(size, seed=0, videos=30, names=None):
    """Many videos that swap and leave out some of many keysteps."""
    rng = np.random.default_rng(seed)
    optional = rng.random(size) < 0.3
    counts, shown = {}, np.zeros(size, int)
    for _ in range(videos):
        moved = np.arange(size) + 3 * rng.normal(size=size) * (rng.random(size) < 0.15)
        done = [int(k) for k in np.argsort(moved) if rng.random() < (0.3 if optional[k] else 0.93)]
        shown[done] += 1
        for pair in zip([START, *done], [*done, END], strict=True):
            counts[pair] = counts.get(pair, 0) + 1
    names = names or tuple(f"{'whisk the eggs well ' * (k % 3)}keystep {k}" for k in range(size))
    arrows = [(*pair, count) for pair, count in counts.items()]
    return make_map(arrows, names=names, videos=videos, shown=dict(enumerate(shown.tolist())))


def tea_graph(names=NAMES, *, statistics=True, tasks=None):
    """A graph of three videos, which all show the keysteps in order; the third leaves out milk."""
    tasks = {"Make tea": tuple(range(len(names)))} if tasks is None else tasks
    vocabulary = Vocabulary(tuple(names), tasks)
    rows = np.repeat(np.arange(len(names)), 4)
    videos = [Labels(f"v{at}", rows, vocabulary) for at in range(2)]
    videos.append(Labels("v2", np.where(rows == 2, -1, rows), vocabulary))
    counts = np.eye(len(names), dtype=np.int64) * 9 + 3 * np.eye(len(names), k=1, dtype=np.int64)
    task = next(iter(tasks), "everything")
    found = make_traces({task: videos}, vocabulary) if statistics else None
    return TaskGraph(vocabulary, csr_array(counts), ("v0", "v1", "v2"), traces=found)
