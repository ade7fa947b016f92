"""Time and memory of very long videos: ``python -m benchmarks.long_videos [KEYSTEPS]``.

Narrations of 6, 12 and 24 hours, made of the demo's sentences, are mined and recognised with ten
thousand keysteps (or as many as asked for) by the command line in a process of its own.  Prints
one JSON object a line.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from itertools import cycle, islice, product
from pathlib import Path

from stepgraph.datasets import open_source

VERBS = (
    "cut",
    "mix",
    "pour",
    "fold",
    "press",
    "dry",
    "wash",
    "paint",
    "glue",
    "sand",
    "lift",
    "turn",
)
THINGS = (
    "bread",
    "dough",
    "wheel",
    "board",
    "paper",
    "glass",
    "leaf",
    "stone",
    "cloth",
    "wire",
    "pipe",
)
PLACES = ("in the pan", "on the table", "with a brush", "by hand", "under water", "in the garden")
HOURS = (6, 12, 24)


def write_keysteps(path: Path, size: int) -> None:
    """Lists of ten keysteps each, no two keysteps alike."""
    words = product(range(1, 99), VERBS, THINGS, PLACES)
    names = [f"{verb} the {thing} {place} {number}" for number, verb, thing, place in words]
    lines = []
    for number, name in enumerate(names[:size]):
        lines += [f"# Task {number // 10}"] * (number % 10 == 0) + [name]
    path.write_text("\n".join(lines) + "\n")


def write_narration(path: Path, hours: int) -> None:
    """A sentence every three seconds."""
    said = [one.text for video in open_source("demo").videos for one in video.transcript]
    cues = []
    for number, text in enumerate(islice(cycle(said), hours * 1200)):
        start, end = (
            f"{s // 3600:02}:{s // 60 % 60:02}:{s % 60:02},000"
            for s in (3 * number, 3 * number + 3)
        )
        cues.append(f"{number + 1}\n{start} --> {end}\n{text}\n")
    path.write_text("\n".join(cues))


def run(*command: str) -> dict[str, float]:
    """Seconds of CPU and gigabytes at most, of the command line."""
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.execv(sys.executable, [sys.executable, "-m", "stepgraph", *command])
    _, status, used = os.wait4(child, 0)
    assert not status, f"stepgraph {' '.join(command)} failed"
    return {
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "gigabytes": round(used.ru_maxrss / 1e6, 2),
    }


def main(keysteps: int = 10_000) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        steps = folder / "steps.txt"
        write_keysteps(steps, keysteps)
        for hours in HOURS:
            write_narration(folder / f"{hours}.srt", hours)
        # Embeddings are put into the cache first, so that all runs find them there.
        run("mine", f"{folder}/6.srt", "--vocabulary", str(steps), "-o", f"{folder}/g.json")
        for hours in HOURS:
            video, graph = f"{folder}/{hours}.srt", f"{folder}/{hours}.json"
            mined = run("mine", video, "--vocabulary", str(steps), "-o", graph)
            found = run("recognize", video, "--graph", graph, "-o", f"{folder}/out")
            for verb, numbers in (("mine", mined), ("recognize", found)):
                result = {"verb": verb, "hours": hours, "keysteps": keysteps, **numbers}
                print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
