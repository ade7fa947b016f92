"""What corrected videos are worth to the others: ``python -m benchmarks.corrections DATA``.

As a user would: some videos are corrected (they get their truth), the graph is mined again from
all videos, and the others are recognised again.  What is told is measured on the others alone,
beside the same videos without any correction, so that a difference is one of the corrections.
Which videos are corrected is drawn anew in each of several draws.  Prints one JSON object a line,
also into ``benchmarks/results/corrections.jsonl``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from benchmarks.suites import Suite, suite
from stepgraph.core import Labels, Segment
from stepgraph.datasets import open_source
from stepgraph.decoders import Decoder, PathSearch, checked_decode
from stepgraph.decoders.learning import learn_graph
from stepgraph.evaluation.report import evaluate
from stepgraph.graph import TaskGraph

RESULTS = Path(__file__).parent / "results" / "corrections.jsonl"
DRAWS = 5
CORRECTED = {"CrossTask": (5, 20, 80), "demo": (3, 6, 18)}


def watched(truth: Labels) -> list[Segment]:
    """All of a video, as somebody who corrected all of it decided."""
    rows = truth.keysteps.tolist()
    return [Segment(at * truth.hop, (at + 1) * truth.hop, one) for at, one in enumerate(rows)]


def measured(one: Suite, decoder: Decoder, graph: TaskGraph, videos: set[str]) -> dict[str, float]:
    labels = [checked_decode(decoder, each, graph) for each in one.scores if each.video in videos]
    report = evaluate(labels, one.truth)
    return {"accuracy": 100 * report.accuracy, "iou": 100 * report.iou}


def main() -> None:
    data = Path(sys.argv[1])
    lines = []
    for name, source in (("demo", "demo"), ("CrossTask", f"crosstask:{data / 'crosstask'}")):
        one = suite(name, open_source(source))
        plain = learn_graph(one.scores, one.vocabulary)
        for count in CORRECTED[name]:
            found = [draw(one, plain, count, seed) for seed in range(DRAWS)]
            line: dict[str, object] = {
                "suite": name,
                "videos": len(one.scores),
                "corrected": count,
            }
            for key in found[0]:
                values = [each[key] for each in found]
                line[key] = round(float(np.mean(values)), 1)
                if key.endswith("gain"):
                    line[f"worst_{key}"] = round(min(values), 1)
            print(json.dumps(line), flush=True)
            lines.append(json.dumps(line) + "\n")
    RESULTS.write_text("".join(lines))


def draw(one: Suite, plain: TaskGraph, count: int, seed: int) -> dict[str, float]:
    """Correct so many random videos, and measure the others without and with that."""
    ids = [each.video for each in one.scores if each.video in one.truth]
    corrected = {*np.random.default_rng(seed).choice(ids, count, replace=False).tolist()}
    others = {*ids} - corrected
    fixed = [
        each.annotate(watched(one.truth[each.video])) if each.video in corrected else each
        for each in one.scores
    ]
    graph = learn_graph(fixed, one.vocabulary)
    numbers = {}
    for name, decoder in (("", one.decoder), ("path_search_", PathSearch())):
        before = measured(one, decoder, plain, others)
        after = measured(one, decoder, graph, others)
        for key in before:
            numbers[f"{name}{key}_before"], numbers[f"{name}{key}"] = before[key], after[key]
            numbers[f"{name}{key}_gain"] = after[key] - before[key]
    return numbers


if __name__ == "__main__":
    main()
