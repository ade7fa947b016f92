"""What the built-in model costs beside its bare products: ``python -m benchmarks.products``.

    python -m benchmarks.products howto100m:PATH ARTICLES -o benchmarks/results/products.jsonl

For sentences of a source, alone and with their neighbours, on one thread: seconds of processor
time of ``MiniLM.encode``, and of nothing but the products of its layers in the same chunks, which
no other way of writing the rest can go below.  Then how often the best keystep of a sentence is
that of float32, for bfloat16 and for products in 8 bits (a scale for each row and each output,
computed exactly here, so that this is the loss and not the speed).
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stepgraph.datasets import build_vocabulary, open_source
from stepgraph.encoders import Precision, text
from stepgraph.encoders.vectors import unit
from stepgraph.networks import minilm

ROUNDS = 3
PARTS = ("asked", "joined", "widened", "narrowed")


def model(precision: Precision = "bfloat16") -> Any:
    folder = text._find_folder(text.MINILM)
    assert folder is not None
    return text._load_minilm(folder, precision)


def cost(texts: list[str]) -> dict[str, Any]:
    """Seconds of processor time of all, and of the products, in turns."""
    built_in = model()
    lengths = [len(ids) for ids in built_in._pieces.of(texts)]
    chunks = len([*minilm._chunks(lengths)])
    rows, wide = (torch.randn(minilm._TOGETHER, size).bfloat16() for size in (384, 1536))

    def products() -> None:
        for _ in range(chunks):
            for layer in built_in._layers:
                for part in PARTS:
                    getattr(layer, part)(wide if part == "narrowed" else rows)

    built_in.encode(texts[::16])
    spent: dict[str, list[float]] = {"all": [], "products": []}
    for _ in range(ROUNDS):
        spent["all"].append(seconds_of(lambda: built_in.encode(texts)))
        with torch.inference_mode():
            spent["products"].append(seconds_of(products))
    whole, bare = (min(spent[name]) for name in spent)
    return {
        "bench": "encoding",
        "texts": len(texts),
        "pieces_a_text": round(statistics.mean(lengths), 1),
        "cpu_s": round(whole, 2),
        "cpu_s_of_10000_texts": round(whole * 10_000 / len(texts), 2),
        "products_cpu_s": round(bare, 2),
        "products_gflops": round(chunks * minilm._TOGETHER * 6 * 24e-9 * 384**2 / bare),
        "share_of_products": round(bare / whole, 3),
    }


def seconds_of(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def in_8_bits(product: Any, width: int) -> Callable[[Tensor], Tensor]:
    """The same product of rows and weights that were rounded to 8 bits, found by asking it."""
    bias = product(torch.zeros(1, width)).float()
    weight = to_8_bits((product(torch.eye(width)).float() - bias).T)
    return lambda rows: (to_8_bits(rows.float()) @ weight.T + bias).bfloat16()


def to_8_bits(rows: Tensor) -> Tensor:
    scale = rows.abs().amax(dim=1, keepdim=True).clamp_min(1e-9) / 127
    return (rows / scale).round() * scale


def agreement(texts: list[str], keysteps: list[str]) -> Iterator[dict[str, Any]]:
    exact = model("float32")
    theirs = [unit(exact.encode(some)) for some in (texts, keysteps)]
    best = (theirs[0] @ theirs[1].T).argmax(axis=1)
    for ways in ((), *((part,) for part in PARTS), PARTS):
        rounded = model()
        rounded._layers = [
            ours._replace(
                **{
                    part: in_8_bits(getattr(layer, part), 1536 if part == "narrowed" else 384)
                    for part in ways
                }
            )
            for ours, layer in zip(rounded._layers, exact._layers, strict=True)
        ]
        found = [unit(rounded.encode(some)) for some in (texts, keysteps)]
        yield {
            "bench": "agreement with float32",
            "in_8_bits": "+".join(ways) or "none",
            "sentences": len(texts),
            "keysteps": len(keysteps),
            "same_best_keystep": round(
                float(np.mean((found[0] @ found[1].T).argmax(axis=1) == best)), 4
            ),
            "mean_cosine": round(float((found[0] * theirs[0]).sum(axis=1).mean()), 5),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description="The built-in model beside its bare products.")
    parser.add_argument("source")
    parser.add_argument("articles", type=Path, help="keysteps: articles of wikiHow")
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--compared", type=int, default=1000, help="sentences, and keysteps")
    parser.add_argument("-o", "--output", type=Path, help="JSON lines")
    given = parser.parse_args()
    torch.set_num_threads(1)
    videos = [*open_source(given.source).videos]
    said = [one for wide in (0, 1) for video in videos for one in text._texts(video, wide)]
    chosen = random.Random(0).sample([*dict.fromkeys(said)], given.texts)
    steps = build_vocabulary(f"articles:{given.articles}").keysteps
    keysteps = random.Random(0).sample(steps, given.compared)
    lines: list[str] = []
    for found in (
        cost(sorted(chosen, key=len)),
        *agreement(chosen[: given.compared], keysteps),
    ):
        lines.append(json.dumps(found))
        print(lines[-1], flush=True)
    if given.output:
        given.output.write_text("\n".join([*lines, ""]), "utf-8")


if __name__ == "__main__":
    main()
