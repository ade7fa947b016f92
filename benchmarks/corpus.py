"""What a video costs when there are many: ``python -m benchmarks.corpus --videos 1000 10000``.

    python -m benchmarks.corpus --videos 1000 10000 100000 -o build/corpus.jsonl
    python -m benchmarks.corpus --videos 100 300 1000 --encoder text:minilm

Draws captions of HowTo100M's shape from the real sample (times, lengths and repeats of its
sentences, see ``benchmarks.scale``) and mines them in shards in one process, each size in a
process of its own: CPU seconds of a video (reading, cleaning, encoding, matching, counting, and
keeping and adding up the shards), what is done once (the words of at most 1,000 videos), the peak
of memory, the bytes on disk; and, up to 10,000 videos, whether the graph is the plain one bit by
bit.  The encoder is made of hashes of two words unless another is named: a real one takes 0.2 s of
CPU a video, so that 100,000 would take half a day.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.datasets import build_vocabulary, open_source
from stepgraph.decoders import encoder_for
from stepgraph.encoders import EncoderOptions
from stepgraph.encoders.text import TextEncoder
from stepgraph.encoders.vectors import unit
from stepgraph.graph.saving import save_graph
from stepgraph.pipeline import ScorerChoice, encoder_options, mine, mining, open_scorer, shards

HASHES = "benchmarks.corpus:hashing"
COMPARED = 10_000  # videos up to which the plain path is run, too
_TABLE = np.random.default_rng(0).standard_normal((4096, 384)).astype(np.float32)


class Hashed(TextEncoder):
    """Sums of two random vectors, of the first and the last word: MiniLM's width at no cost."""

    _model = None  # none is loaded, whose wishes could be asked

    def __init__(self) -> None:
        self.options, self.remembers = encoder_for("task-markov"), False

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        ends = [(text.partition(" ")[0], text.rpartition(" ")[2]) for text in texts]
        places = np.array([[zlib.crc32(word.encode()) % 4096 for word in two] for two in ends])
        return unit(_TABLE[places[:, 0]] + _TABLE[places[:, 1]])


def hashing(_: EncoderOptions) -> Hashed:
    return Hashed()


def write_source(folder: Path, data: Path, videos: int) -> str:
    """A caption file of so many drawn videos."""
    from benchmarks.scale import draw, read_sample

    sample = read_sample(data / "howto100m")
    with (folder / "raw_caption.json").open("wb") as file:
        for seed in range(videos):
            record, _ = draw((sample, seed, 1))
            file.write(record if seed else b"{" + record[1:])
        file.write(b"}")
    return f"howto100m:{folder}"


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(source: str, articles: Path, encoder: str, keysteps: int) -> dict[str, Any]:
    """Mine one source, after a little one to warm up."""
    vocabulary = build_vocabulary(f"articles:{articles}")
    asked = ScorerChoice() if encoder == EncoderOptions.name else ScorerChoice({"name": encoder})
    # A small graph first: kernels are compiled, and the model is loaded.
    mine("demo", encoder=open_scorer(asked))
    meant = encoder_options(asked.encoder)
    job = mining.MiningJob(source=source, vocabulary=vocabulary, encoder=meant, remember=False)
    spent: dict[str, float] = {"words": 0.0}
    learn = mining._with_classifiers

    def timed(*args: Any) -> Any:
        begun = cpu()
        graph = learn(*args)
        spent["words"] = cpu() - begun
        return graph

    mining._with_classifiers = timed
    output = Path(source.partition(":")[2]) / "graph.json"
    kept = {"bytes": 0}
    begun, wall = cpu(), time.perf_counter()

    def watched(*args: Any) -> Iterator[Any]:
        for found in shards.in_processes(1)(*args):
            yield found
            places = output.with_name(f"{output.name}.shards").iterdir()
            kept["bytes"] = sum(path.stat().st_size for path in places)

    graph = mining.mine_shards(job, open_source(source), output, watched)
    spent["all"], wall = cpu() - begun, time.perf_counter() - wall
    videos, peak = len(graph.mined_on), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    save_graph(graph, output)
    said = {
        "videos": videos,
        "encoder": encoder,
        "keysteps": len(vocabulary),
        "cpu_ms_a_video": round(1000 * (spent["all"] - spent["words"]) / videos, 2),
        "words_once_cpu_s": round(spent["words"], 1),
        "wall_s": round(wall, 1),
        "peak_mb": round(peak / 1024),
        "captions_mb": round(output.with_name("raw_caption.json").stat().st_size / 1e6, 1),
        "shards_mb": round(kept["bytes"] / 1e6, 1),
        "graph_mb": round(output.stat().st_size / 1e6, 1),
        "transitions": int(graph.counts.sum()),
    }
    if videos <= COMPARED:
        plain = output.with_name("plain.json")
        save_graph(mine(source, vocabulary, encoder=open_scorer(asked)), plain)
        said["as_the_plain_path"] = plain.read_bytes() == output.read_bytes()
    return said


def some_articles(data: Path, folder: Path, keysteps: int) -> Path:
    """The first articles of wikiHow with about so many steps together."""
    path, count = folder / "articles.jsonl", 0
    with path.open("w") as file, (data / "wikihow_articles.jsonl").open() as lines:
        for line in lines:
            count += len(json.loads(line)["steps"])
            if count > keysteps:
                break
            file.write(line)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description="What a video costs when there are many.")
    parser.add_argument("--videos", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--keysteps", type=int, default=1000)
    parser.add_argument("--encoder", default=HASHES)
    parser.add_argument("--source", help="mine this one, and print what it costs")
    parser.add_argument("-o", "--output", type=Path, help="JSON lines")
    given = parser.parse_args()
    root = Path(__file__).resolve().parents[2]
    data = Path(os.environ.get("STEPGRAPH_DATA", root / "shared" / "data"))
    if given.source:
        with tempfile.TemporaryDirectory() as folder:
            articles = some_articles(data, Path(folder), given.keysteps)
            said = measure(given.source, articles, given.encoder, given.keysteps)
        print(json.dumps(said | {"python": platform.python_version()}))
        return
    lines = []
    for videos in given.videos:
        with tempfile.TemporaryDirectory() as folder:
            source = write_source(Path(folder), data, videos)
            again = [sys.executable, "-m", "benchmarks.corpus", "--source", source]
            again += ["--keysteps", str(given.keysteps), "--encoder", given.encoder]
            # Threads that wait for one another would be counted as work.
            one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            done = subprocess.run(
                again, env=os.environ | one_thread, stdout=subprocess.PIPE, text=True, check=True
            )
            lines.append(done.stdout)
        print(lines[-1], end="", flush=True)
        if given.output:
            given.output.parent.mkdir(parents=True, exist_ok=True)
            given.output.write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    main()
