"""Stream a caption file of HowTo100M's shape: ``python -m benchmarks.streaming [--gigabytes 3]``.

Writes ``raw_caption.json`` of that size and its list of tasks into a temporary folder, reads and
cleans all of it in a fresh process, and prints one JSON object: megabytes, videos and sentences a
second of wall time, and the most memory that process ever held.  The records are those of the
real sample where it is (``STEPGRAPH_DATA`` or ``../shared/data``), else of the embedded corpus,
over and over under ids of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import count, cycle
from pathlib import Path

GB = 10**9
TASKS = 1000
ROOT = Path(__file__).resolve().parents[1]


def sample() -> tuple[str, list[bytes]]:
    """The records to repeat, as JSON, and where they come from."""
    folder = Path(os.environ.get("STEPGRAPH_DATA", ROOT.parent / "shared" / "data"))
    real = folder / "howto100m" / "raw_caption.json"
    if real.is_file():
        return "HowTo100M sample", [*map(as_json, json.loads(real.read_bytes()).values())]
    from stepgraph.datasets import open_source

    transcripts = [video.transcript for video in open_source("demo").videos]
    columns = (zip(*said, strict=True) for said in transcripts)
    fields = [dict(zip(("start", "end", "text"), lists, strict=True)) for lists in columns]
    return "embedded corpus", [*map(as_json, fields)]


def as_json(record: object) -> bytes:
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()


def generate(folder: Path, size: int) -> str:
    """Write the files; return what the records are."""
    source, records = sample()
    written = 0
    with (
        (folder / "raw_caption.json").open("wb") as captions,
        (folder / "HowTo100M_v1.csv").open("w") as listing,
    ):
        listing.write("video_id,category_1,category_2,rank,task_id\n")
        for number, record in zip(count(), cycle(records)):
            video = f"{number * 2654435761 % 2**44:011x}"
            written += captions.write(
                b'%b"%b":%b' % (b"," if number else b"{", video.encode(), record)
            )
            listing.write(
                f"{video},Food and Entertaining,Recipes,{number % 200},{number % TASKS}\n"
            )
            if written >= size:
                break
        captions.write(b"}")
    names = (f"{task}\tHow to Do Thing {task}\n" for task in range(TASKS))
    (folder / "task_ids.csv").write_text("".join(names), "utf-8")
    return source


def measure(folder: Path) -> dict[str, object]:
    """Read and clean all of it in this process."""
    from stepgraph.datasets import open_source

    begin = time.perf_counter()
    dataset = open_source(f"howto100m:{folder}")
    opened = time.perf_counter()
    videos = sentences = 0
    for video in dataset.videos:
        videos += 1
        sentences += len(video.transcript)
    seconds = time.perf_counter() - opened
    size = (folder / "raw_caption.json").stat().st_size
    # Kilobytes, but bytes on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "gigabytes": round(size / GB, 2),
        "mb_per_second": round(size / seconds / 1e6, 1),
        "videos_per_second": round(videos / seconds),
        "sentences_per_second": round(sentences / seconds),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6),
        "videos": videos,
        "sentences": sentences,
        "problems": len(dataset.problems),
        "seconds": round(seconds, 1),
        "seconds_for_task_lists": round(opened - begin, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Stream a generated raw_caption.json.")
    parser.add_argument("--gigabytes", type=float, default=3.0)
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        print(json.dumps(measure(options.read)))
        return
    size = int(options.gigabytes * GB)
    with tempfile.TemporaryDirectory() as folder:
        free = shutil.disk_usage(folder).free
        if free < 1.2 * size:
            parser.error(f"{folder} must have {1.2 * size / GB:.1f} GB free, got {free / GB:.1f}")
        source = generate(Path(folder), size)
        command = [sys.executable, "-m", "benchmarks.streaming", "--read", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    machine = {"cpu": platform.machine(), "python": platform.python_version()}
    print(
        json.dumps({"bench": "streaming", "records": source} | json.loads(done.stdout) | machine)
    )


if __name__ == "__main__":
    main()
