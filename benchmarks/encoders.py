"""How many rows a second does each encoder see?  ``python -m benchmarks.encoders [KIND ...]``.

Random weights in the published sizes, random pictures, each model's own clip; the model alone,
colours brought to its range included, video not decoded.  Runs on the GPU where there is one.
Prints one JSON object a line and keeps them in benchmarks/results/encoders.jsonl, the lines of
another device or kind left alone.  On a CPU that others use, too, look at rows a second and core:
it counts only the time that cores worked.  Needs torch and transformers, no library of video.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
RESULTS = Path(__file__).parent / "results" / "encoders.jsonl"
REPEATS = 5
SECONDS = {"cpu": 5.0, "cuda": 1.5}
FRAMES = {"cpu": 8, "cuda": 256}  # encoded together; on a CPU more only take longer


class Case(NamedTuple):
    """A model with random weights, and the shape of what it is given for one row."""

    encode: Callable[[np.ndarray], np.ndarray]
    shape: tuple[int, ...]
    parameters: int
    precision: str

    @property
    def frames(self) -> int:
        return self.shape[0] if len(self.shape) == 4 else 1


def device() -> str:
    from stepgraph.encoders.visual import pick_device

    return pick_device()


def half() -> str:
    """What most networks that look compute in."""
    return "bf16" if device() == "cuda" else "fp32"


def minilm() -> Case:
    """Sentences of 18 tokens rather than rows, as the text encoder embeds them."""
    import torch
    from transformers import BertConfig, BertModel

    small = {"hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 6}
    with torch.device(device()):
        network = BertModel(BertConfig(**small), add_pooling_layer=False).eval()

    def encode(tokens: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            found = network(torch.tensor(tokens, dtype=torch.int64, device=device()))
            return found.last_hidden_state.mean(dim=1).float().cpu().numpy()

    return Case(encode, (18,), count(network), "fp32")


def pretrained(kind: str, **config: dict[str, Any]) -> Case:
    import torch
    import transformers

    from stepgraph.encoders.pretrained import FAMILIES, PretrainedModel, make_pixels

    name = FAMILIES[kind]["model"]
    with torch.device(device()):
        network = getattr(transformers, name)(
            getattr(transformers, name.replace("Model", "Config"))(**config)
        )
    size = network.config.vision_config.image_size
    model = PretrainedModel(kind, network, None, make_pixels(kind, (size, size), {}))
    return Case(model.encode_clips, shape(model.clips), count(network), half())


def clip_b32() -> Case:
    return pretrained("clip")


def clip_l14() -> Case:
    large = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24}
    sight = large | {"num_attention_heads": 16, "patch_size": 14}
    words = {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12}
    return pretrained("clip", vision_config=sight, text_config=words, projection_dim=768)


def siglip_b16() -> Case:
    words = {"bos_token_id": None, "eos_token_id": None}  # outside of its vocabulary
    return pretrained("siglip", text_config=words)


def xclip_b32() -> Case:
    return pretrained("xclip")


def s3d() -> Case:
    import torch

    from stepgraph.encoders import milnce
    from stepgraph.networks.s3d import S3D

    with torch.device(device()):
        network = S3D().eval()
    encode = lambda frames: milnce._look(network, frames, device())  # noqa: E731
    return Case(encode, shape(milnce._S3D_CLIPS), count(network), "fp32")


def videoclip() -> Case:
    import torch

    from stepgraph.encoders import milnce
    from stepgraph.networks.s3d import S3D
    from stepgraph.networks.videoclip import VideoCLIP

    with torch.device(device()):
        eye, network = S3D(words=None).eval(), VideoCLIP().eval()
    model = milnce._VideoClip(network, eye, None, device())

    def encode(frames: np.ndarray) -> np.ndarray:
        return model.embed_rows(model.encode_clips(frames), 32)

    return Case(encode, shape(model.clips), count(eye) + count(network), "fp32")


def timesformer_b() -> Case:
    import torch

    from stepgraph.networks.timesformer import TimeSformer, TimeSformerOptions, normalize

    options = TimeSformerOptions(classes=400)
    with torch.device(device()):
        model = TimeSformer(options).eval()

    def encode(frames: np.ndarray) -> np.ndarray:
        clips = normalize(torch.from_numpy(frames).to(device()))
        return running(lambda: model.features(clips))

    return Case(encode, (options.frames, options.size, options.size, 3), count(model), half())


def running(work: Callable[[], Any]) -> np.ndarray:
    """Compute in float32 on a CPU, on a GPU as with ``--precision bfloat16``."""
    import torch

    on_gpu = device() == "cuda"
    with torch.inference_mode(), torch.autocast(device(), torch.bfloat16, enabled=on_gpu):
        return work().float().cpu().numpy()


def shape(clips: Any) -> tuple[int, ...]:
    return clips.frames, clips.height, clips.width, 3


def count(network: Any) -> int:
    return sum(weight.numel() for weight in network.parameters())


CASES: dict[str, tuple[str, Callable[[], Case]]] = {
    "text": ("MiniLM-L6, 18 tokens", minilm),
    "clip": ("ViT-B/32", clip_b32),
    "clip-large": ("ViT-L/14", clip_l14),
    "siglip": ("base-patch16-224", siglip_b16),
    "xclip": ("base-patch32", xclip_b32),
    "s3d": ("MIL-NCE", s3d),
    "videoclip": ("S3D and both towers", videoclip),
    "timesformer": ("base", timesformer_b),
}


class Measured(NamedTuple):
    """Best seconds of a batch by the clock, and by the cores that worked on it."""

    seconds: float
    cpu_seconds: float
    rows: int


def measure(case: Case) -> Measured:
    rows = max(1, FRAMES[device()] // case.frames)
    given = np.random.default_rng(0).integers(0, 256, (rows, *case.shape), dtype=np.uint8)
    # The first call chooses kernels; a GPU does so for every size of a batch.
    case.encode(given if device() == "cuda" else given[:1])
    clock: list[float] = []
    work: list[float] = []
    while len(clock) < REPEATS and sum(clock) < SECONDS[device()]:
        start, worked = time.perf_counter(), time.process_time()
        case.encode(given)
        clock.append(time.perf_counter() - start)
        work.append(time.process_time() - worked)
    return Measured(min(clock), min(work), rows)


def machine() -> dict[str, object]:
    import torch
    import transformers

    gpu = torch.cuda.get_device_name() if device() == "cuda" else None
    return {
        "device": gpu or f"{platform.machine()} CPU, {torch.get_num_threads()} threads",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


def keep(results: list[dict[str, object]]) -> None:
    """Put lines into the file of results in place of older ones of the same kind and device."""

    def key(line: dict[str, object]) -> tuple[object, object]:
        return line["kind"], line["device"]

    new = {key(line) for line in results}
    there = RESULTS.read_text("utf-8").splitlines() if RESULTS.is_file() else []
    old = [line for line in map(json.loads, there) if key(line) not in new]
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text("".join(json.dumps(line) + "\n" for line in [*old, *results]), "utf-8")


def main(kinds: list[str]) -> None:
    results = []
    for kind in kinds or CASES:
        size, make = CASES[kind]
        try:
            case = make()
        except ImportError as error:
            print(f"{kind}: skipped, {error}", file=sys.stderr, flush=True)
            continue
        seconds, worked, rows = measure(case)
        line = {
            "kind": kind,
            "model": size,
            "rows_per_second": round(rows / seconds, 2),
            "frames_per_second": round(rows * case.frames / seconds, 1),
            "cpu_seconds_per_row": round(worked / rows, 4),
            "rows_per_second_and_core": round(rows / worked, 2),
            "frames": case.frames,
            "shape": case.shape,
            "batch": rows,
            "parameters": case.parameters,
            "precision": case.precision,
        }
        results.append(line | machine())
        print(json.dumps(results[-1]), flush=True)
    if results:
        keep(results)


if __name__ == "__main__":
    main(sys.argv[1:])
