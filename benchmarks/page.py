"""The page of results: how soon it opens, and how smoothly it scrolls.

``python -m benchmarks.page``: 5,000 results made from those of the embedded corpus, and one of 24
hours with thousands of chapters, in Chromium.  One JSON object a line, also in
``benchmarks/results/page.jsonl``.  A busy machine makes it wait; so of what was opened the CPU
time is told, too, of the server and of the page, and how many others wanted a core (``load``).
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from playwright.sync_api import CDPSession, Page, sync_playwright

import stepgraph as sg
from stepgraph.core import Chapter, Result, Sentence, Video
from stepgraph.export.timeline import to_json
from stepgraph.viewer.server import Server, Shown

RESULTS = Path(__file__).parent / "results" / "page.jsonl"
VIDEOS, DAY, CHAPTERS = 5000, 24 * 3600.0, 4000

# Scrolls a screen at a time through all, and notes how long each picture took.
SCROLL = """async () => {
  const times = [];
  let last = performance.now();
  for (let at = 0; at < 240; at += 1) {
    window.scrollBy(0, window.innerHeight / 2);
    await new Promise(requestAnimationFrame);
    times.push(performance.now() - last);
    last = performance.now();
  }
  return times.sort((one, other) => one - other);
}"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        many, day = Path(folder, "many"), Path(folder, "day")
        write_many(many)
        write_day(day)
        found = [
            measure("5,000 results", many, "", ".list .row"),
            measure("24 hours, 4,000 chapters", day, "#video/long@43210", ".steps .step"),
        ]
    lines = [{"command": "python -m benchmarks.page", **one} for one in found]
    RESULTS.write_text("".join(json.dumps(one) + "\n" for one in lines))


def write_many(folder: Path) -> None:
    corpus = sg.open_source("demo")
    graph = sg.mine(corpus)
    made = [sg.recognize(video, graph) for video in corpus.videos]
    folder.mkdir()
    for number in range(VIDEOS):
        one = made[number % len(made)]
        video = replace(one.video, id=f"video-{number:05}")
        text = to_json(Result(video, one.chapters, one.tasks, one.fingerprint))
        (folder / f"{video.id}.steps.json").write_text(text)


def write_day(folder: Path) -> None:
    chapters = tuple(
        Chapter(20.0 * n, 20.0 * n + 18, f"step {n % 50}", 0.4, "anchor", 0.5)
        for n in range(CHAPTERS)
    )
    said = tuple(Sentence(4.0 * n, 4.0 * n + 3, f"sentence {n}") for n in range(20_000))
    folder.mkdir()
    text = to_json(Result(Video("long", DAY, said), chapters, {"a task": 0.9}))
    (folder / "long.steps.json").write_text(text)


@contextmanager
def browser() -> Iterator[Page]:
    with sync_playwright() as driver:
        path, quiet = shutil.which("chromium"), ["--no-sandbox", "--disable-gpu"]
        chromium = driver.chromium.launch(executable_path=path, args=quiet)
        yield chromium.new_page(viewport={"width": 1280, "height": 900})
        chromium.close()


def process_time(inside: CDPSession) -> float:
    """CPU time that the process of a page has used."""
    told = inside.send("Performance.getMetrics")["metrics"]
    return float({one["name"]: one["value"] for one in told}["ProcessTime"])


def measure(what: str, folder: Path, place: str, shown: str) -> dict[str, Any]:
    with browser() as page:
        page.goto("about:blank")  # the browser itself is open
        inside = page.context.new_cdp_session(page)
        inside.send("Performance.enable")
        before = process_time(inside)
        begun, used = time.perf_counter(), time.process_time()
        results = Shown(folder)
        read, read_cpu = time.perf_counter() - begun, time.process_time() - used
        with Server(results) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            page.goto(server.address + place)
            page.wait_for_selector(shown)
            opened, opened_cpu = time.perf_counter() - begun, time.process_time() - used
            page_cpu = process_time(inside) - before
            times = page.evaluate(SCROLL)
            server.shutdown()
    result = {
        "what": what,
        "read_s": round(read, 2),
        "read_cpu_s": round(read_cpu, 2),
        "opened_s": round(opened, 2),
        "opened_cpu_s": round(opened_cpu, 2),
        "page_cpu_s": round(page_cpu, 2),
        "load": round(os.getloadavg()[0], 1),
        "frame_ms": {
            name: round(times[round(share * (len(times) - 1))], 1)
            for name, share in (("median", 0.5), ("95 %", 0.95), ("longest", 1.0))
        },
    }
    print(json.dumps(result))
    return result


if __name__ == "__main__":
    main()
