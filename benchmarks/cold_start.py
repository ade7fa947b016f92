"""The built-in model beside the library that has it: ``python -m benchmarks.cold_start SOURCE...``

For each source, how often the best keystep of a sentence is the same and the cosine of a sentence
with itself.  For the first one also, in turns within this one run, sentences encoded a second by
the clock and a second of processor time; and the processor time that ``recognize`` takes for one
new transcript of five minutes with an empty cache, as it is and with the library.
"""

from __future__ import annotations

import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from stepgraph.core import Dataset
from stepgraph.datasets import open_source
from stepgraph.encoders import text
from stepgraph.encoders.sentence_models import SentenceModel
from stepgraph.encoders.vectors import unit
from stepgraph.ingest.speech import to_srt

SENTENCES, ROUNDS, STARTS = 4096, 5, 3
PARTS = {"stepgraph": text._SENTENCES, "library": 1024}  # encoded at once, now and in 0.1.0
LIBRARY = """
import sys
from stepgraph.cli import run
from stepgraph.encoders import text
from stepgraph.encoders.sentence_models import SentenceModel
from stepgraph.graph import compiling
compiling.FEW_STEPS = 0  # the compiler was always waited for
text._load_minilm = lambda folder, precision: SentenceModel("minilm", folder, precision)
run()
"""
STARTED = {"stepgraph": ["-m", "stepgraph"], "library": ["-c", LIBRARY]}


def models() -> dict[str, Any]:
    folder = text._find_folder(text.MINILM)
    assert folder is not None
    return {
        "stepgraph": text._load_minilm(folder),
        "library": SentenceModel("minilm", folder),
    }


def said_in(dataset: Dataset) -> list[str]:
    return sorted({s.text for video in dataset.videos for s in video.transcript})


def agreement(
    dataset: Dataset, keysteps: Sequence[str], encoders: dict[str, Any]
) -> dict[str, object]:
    sentences = said_in(dataset)
    ours, theirs = (
        (unit(model.encode(sentences)), unit(model.encode(keysteps)))
        for model in encoders.values()
    )
    same = (ours[0] @ ours[1].T).argmax(axis=1) == (theirs[0] @ theirs[1].T).argmax(axis=1)
    cosines = (ours[0] * theirs[0]).sum(axis=1)
    return {
        "bench": "agreement",
        "sentences": len(sentences),
        "keysteps": len(keysteps),
        "same_best_keystep": round(float(same.mean()), 4),
        "mean_cosine": round(float(cosines.mean()), 5),
        "least_cosine": round(float(cosines.min()), 5),
    }


def rates(sentences: list[str], encoders: dict[str, Any]) -> dict[str, object]:
    """Medians of rounds in which both take turns, so that both meet the same machine."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in encoders}
    sentences = sorted(sentences, key=len)
    for model in encoders.values():
        model.encode(sentences[::16])
    for _ in range(ROUNDS):
        for name, model in encoders.items():

            def work(model: Any = model, part: int = PARTS[name]) -> None:
                for start in range(0, len(sentences), part):
                    model.encode(sentences[start : start + part])

            found[name].append(seconds_of(work))
    result: dict[str, object] = {"bench": "sentences encoded", "sentences": len(sentences)}
    for part, unit_name in enumerate(("per_second", "per_core_second")):
        rate = {
            name: len(sentences) / statistics.median(one[part] for one in rounds)
            for name, rounds in found.items()
        }
        result[unit_name] = {name: round(value) for name, value in rate.items()}
        result[f"{unit_name}_ratio"] = round(rate["stepgraph"] / rate["library"], 2)
    return result


def seconds_of(work: Callable[[], object]) -> tuple[float, float]:
    clock_start, core_start = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock_start, time.process_time() - core_start


def first_start(source: str, dataset: Dataset) -> dict[str, object]:
    """Seconds of processor time, user and system, of a process that recognises one video."""
    video = min(dataset.videos, key=lambda one: (not one.transcript, abs(one.duration - 300)))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "talk.srt").write_text(to_srt(video.transcript), "utf-8")
        graph = f"{folder}/graph.json"
        subprocess.run(
            [sys.executable, "-m", "stepgraph", "mine", source, "-o", graph],
            check=True,
            capture_output=True,
        )
        used: dict[str, list[float]] = {name: [] for name in STARTED}
        for start in range(STARTS):
            for name, how in STARTED.items():
                fresh = f"{folder}/{name}-{start}"
                environment = os.environ | {"STEPGRAPH_CACHE": fresh, "NUMBA_CACHE_DIR": fresh}
                command = ["recognize", f"{folder}/talk.srt", "--graph", graph, "-o", fresh]
                before = core_seconds()
                subprocess.run(
                    [sys.executable, *how, *command],
                    env=environment,
                    check=True,
                    capture_output=True,
                )
                used[name].append(core_seconds() - before)
    medians = {name: round(statistics.median(all_of), 2) for name, all_of in used.items()}
    about = {"video_seconds": video.duration, "sentences": len(video.transcript)}
    return {"bench": "first recognize", **about, "core_seconds": medians}


def core_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(sources: list[str]) -> None:
    encoders = models()
    dataset = open_source(sources[0])
    for source in sources:
        # One without keysteps of its own is compared over those of the first.
        other = open_source(source)
        keysteps = (other.vocabulary or dataset.vocabulary).keysteps
        found = agreement(other, keysteps, encoders)
        print(json.dumps({"source": source.partition(":")[0]} | found), flush=True)
    sentences = said_in(dataset)
    chosen = random.Random(0).sample(sentences, min(SENTENCES, len(sentences)))
    print(json.dumps(rates(chosen, encoders)), flush=True)
    print(json.dumps(first_start(sources[0], dataset)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or ["demo"])
