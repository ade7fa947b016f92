"""Time training of TimeSformer beside the transformers library: one run, equal batches.

    python -m benchmarks.gpu.timesformer --batch 32 -o benchmarks/results/timesformer-h200.jsonl

A step is forward, backward and AdamW, in bfloat16 by autocast with float32 weights, on clips of
8 frames of 224 x 224 pixels and 10,588 classes.  All models begin with the same weights and see
the same clips; logits and gradients of the first step are compared with the library's in
float32.  Needs torch with CUDA, and transformers; of this package only the network.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
import traceback
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import TimesformerConfig, TimesformerForVideoClassification

from stepgraph.networks.timesformer import TimeSformer, TimeSformerOptions, from_hf, load_hf

CLASSES = 10_588
CEILING = 790.0  # TFLOP/s in bfloat16: a product of 8,192 x 8,192 matrices on an H200
PART = 8  # clips at once in float32
WARM_UP, STEPS = 10, 30

Grads = dict[str, Tensor]
Model = Callable[[Tensor], Tensor]


def flops_of_a_clip(options: TimeSformerOptions) -> float:
    """Operations of training on one clip, every layer as published: forward, and twice back."""
    o, square = options, 2 * options.width**2
    patches = o.places * o.frames
    in_time = 5 * patches * square + 4 * patches * o.frames * o.width
    in_space = 4 * (patches + o.frames) * square
    in_space += 4 * (o.places + 1) ** 2 * o.frames * o.width
    blocks = o.depth * (in_time + in_space + 8 * (patches + 1) * square)
    ends = 2 * patches * 3 * o.patch**2 * o.width + 2 * o.width * o.classes
    return 3.0 * (blocks + ends)


def seconds_of(work: Callable[[], object], repeats: int) -> float:
    """Median by the clock of the GPU."""
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
    marks[0].record()
    for mark in marks[1:]:
        work()
        mark.record()
    torch.cuda.synchronize()

    return statistics.median(a.elapsed_time(b) for a, b in pairwise(marks)) / 1e3


def measured_ceiling() -> float:
    """TFLOP/s of one large product of random matrices."""
    a, b = torch.randn(2, 8192, 8192, device="cuda", dtype=torch.bfloat16)
    seconds_of(lambda: a @ b, 10)
    return float(2 * 8192**3 / seconds_of(lambda: a @ b, 30) / 1e12)


def reference(library: nn.Module, clips: Tensor, labels: Tensor) -> tuple[Tensor, Grads]:
    """Logits and gradients of the library in float32, a few clips at a time."""
    logits = []
    for some, theirs in zip(clips.split(PART), labels.split(PART), strict=True):
        out = library(pixel_values=some).logits
        (F.cross_entropy(out, theirs, reduction="sum") / len(clips)).backward()
        logits.append(out.detach())
    return torch.cat(logits), grads_of(library)


def grads_of(model: nn.Module) -> Grads:
    return {n: p.grad.detach().clone() for n, p in model.named_parameters() if p.grad is not None}


def relative(found: Tensor, true: Tensor) -> float:
    return float((found.float() - true).norm() / true.norm())


def compared(logits: Tensor, grads: Grads, true: tuple[Tensor, Grads]) -> dict[str, float]:
    """Relative errors of the logits, and of all gradients together and where they are worst."""
    names = sorted(true[1])
    together = relative(
        torch.cat([grads[name].flatten() for name in names]),
        torch.cat([true[1][name].flatten() for name in names]),
    )
    return {
        "error_logits": relative(logits, true[0]),
        "error_gradients": together,
        "error_worst_gradient": max(relative(grads[name], true[1][name]) for name in names),
    }


def measure(
    model: nn.Module, *, compiled: bool, clips: Tensor, labels: Tensor, true: tuple[Tensor, Grads]
) -> dict[str, Any]:
    """Compare the first step with the reference, then time many."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, fused=True)

    def loss_of(clips: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast("cuda", torch.bfloat16):
            ours = isinstance(model, TimeSformer)
            logits = model(clips) if ours else model(pixel_values=clips).logits
            return F.cross_entropy(logits, labels), logits

    run = torch.compile(loss_of, dynamic=False) if compiled else loss_of

    def step() -> None:
        loss, _ = run(clips, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    begin = time.perf_counter()
    loss, logits = run(clips, labels)
    loss.backward()
    torch.cuda.synchronize()
    first = time.perf_counter() - begin
    if isinstance(model, TimeSformer):
        true = true[0], from_hf(true[1], model.options)
    errors = compared(logits.detach(), grads_of(model), true)
    model.zero_grad(set_to_none=True)
    torch.cuda.reset_peak_memory_stats()
    seconds_of(step, WARM_UP)
    seconds = seconds_of(step, STEPS)
    memory = torch.cuda.max_memory_allocated() / 2**30
    return {"seconds": seconds, "memory_gib": memory, "first_step_s": first, **errors}


def measured_rows(batch: int, give_up: float) -> Iterator[dict[str, Any]]:
    """One row for each way to train, all on the same clips."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    library = TimesformerForVideoClassification(TimesformerConfig(num_labels=CLASSES)).cuda()
    for name, weight in library.named_parameters():
        if "temporal_dense.weight" in name:  # a trained model's are not zero
            nn.init.normal_(weight, std=0.02)
    state = {name: weight.clone() for name, weight in library.state_dict().items()}
    clips = torch.randn(batch, 8, 3, 224, 224, device="cuda")
    labels = torch.randint(CLASSES, (batch,), device="cuda")
    true = reference(library, clips, labels)
    for name, compiled in (("library", False), ("stepgraph", True), ("library", True)):
        if time.perf_counter() > give_up:
            continue
        model: nn.Module = library
        if name == "stepgraph":
            model = TimeSformer(TimeSformerOptions(CLASSES)).cuda()
            load_hf(model, state)
        else:
            library.load_state_dict(state)
            library.zero_grad(set_to_none=True)
        try:
            row = measure(model, compiled=compiled, clips=clips, labels=labels, true=true)
            yield {"model": name, "compiled": compiled, "batch": batch} | row
        except Exception:
            traceback.print_exc(limit=-6)
        torch.cuda.empty_cache()


def machine() -> dict[str, str]:
    import transformers

    return {
        "gpu": torch.cuda.get_device_name(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--batch", type=int, nargs="+", default=[32])
    parser.add_argument("--seconds", type=float, default=3600, help="begin nothing after these")
    parser.add_argument("-o", "--output", type=Path, help="JSON lines")
    chosen = parser.parse_args()
    give_up = time.perf_counter() + chosen.seconds
    work = flops_of_a_clip(TimeSformerOptions(CLASSES)) / 1e12
    ceiling = measured_ceiling()
    print(f"{work:.3f} TFLOP a clip; a product of 8,192 x 8,192 runs at {ceiling:.0f} TFLOP/s")
    lines = []
    for batch in chosen.batch:
        for row in measured_rows(batch, give_up):
            rate = batch / row["seconds"]
            row |= {"clips_per_second": rate, "tflops": rate * work, "tflop_a_clip": work}
            row |= {"of_ceiling": rate * work / CEILING}
            row |= {"of_measured_ceiling": rate * work / ceiling}
            row = {k: round(v, 5) if isinstance(v, float) else v for k, v in row.items()}
            lines.append(row | {"measured_ceiling_tflops": round(ceiling)} | machine())
            print(json.dumps(lines[-1]), flush=True)
            if chosen.output:
                chosen.output.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for line in lines:
        how = "compiled" if line["compiled"] else "eager"
        print(
            f"{line['model']:10} {how:9} batch {line['batch']:4}: "
            f"{line['clips_per_second']:6.1f} clips/s, {line['of_ceiling']:.0%} of the ceiling, "
            f"errors {line['error_logits']:.1e} {line['error_gradients']:.1e}"
        )


if __name__ == "__main__":
    main()
