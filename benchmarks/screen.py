"""How well and how fast the screen is read: ``python -m benchmarks.screen [--per-task 4]``.

Reads generated clips that have captions in their pictures and no sound, and prints one JSON object
for each of: the words, how long it takes, and the keysteps that each decoder finds in what is read
and in the text track of the same clips (graph mined on the same clips without their truth, encoder
as the decoder wants it).  The last object is about the words of upright clips of 204 × 360.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.hearing import words_in, wrong_words

DECODERS = ("argmax", "path-search", "task-markov")
UPRIGHT, SCALE = 68, 3  # columns of the pictures that are left, and by how much they are enlarged


def reading(scripts: Sequence[Any], folder: Path) -> Iterator[dict[str, Any]]:
    """The words that are read in the clips of a folder, and what that takes."""
    from stepgraph.ingest import screen

    screen._load_reader()
    lines_in, read = screen._lines_in, []
    screen._lines_in = lambda picture: read.append(1) or lines_in(picture)  # type: ignore
    words = wrong = 0
    length, begun, busy = 0.0, time.perf_counter(), time.process_time()
    for script in scripts:
        found = screen.read_screen(folder / f"{script.video}.mp4")
        said = words_in(" ".join(one.text for one in script.narration))
        wrong += wrong_words(said, words_in(" ".join(one.text for one in found)))
        words, length = words + len(said), length + script.shots[-1].end
    took, busy = time.perf_counter() - begun, time.process_time() - busy
    screen._lines_in = lines_in
    rate = round(100 * wrong / words, 1)
    yield {"words": words, "wrong": wrong, "error_rate": rate, "clips": len(scripts)}
    yield {
        "seconds_of_video": round(length),
        "pictures_read": len(read),
        "core_seconds_a_second": round(busy / length, 3),
        "seconds_a_second": round(took / length, 3),
    }


def keysteps(seed: int, per_task: int) -> Iterator[dict[str, Any]]:
    """Accuracy and IoU (pooled, percent) by the text track and by what is read."""
    from dataclasses import replace

    from stepgraph.datasets.generated import open_generated
    from stepgraph.decoders import encoder_for, load_decoder
    from stepgraph.pipeline import run_evaluation
    from stepgraph.scoring.fusion import open_encoder

    datasets = {name: open_generated(seed, per_task, captions=name == "ocr") for name in WAYS}
    for decoder in DECODERS:
        row: dict[str, Any] = {"decoder": decoder}
        for name, way in WAYS.items():
            encoder = open_encoder(replace(encoder_for(decoder), name=name))
            chosen = {decoder: load_decoder(decoder)}
            [measured] = run_evaluation(datasets[name], chosen, encoder=encoder).measured
            row[f"{way}_accuracy"] = round(100 * measured.report.accuracy, 1)
            row[f"{way}_iou"] = round(100 * measured.report.iou, 1)
        yield row


WAYS = {"text:minilm": "said", "ocr": "read"}


def render_upright(script: Any, path: Path) -> None:
    """Render a clip with captions of which only the middle is filmed."""
    import av

    from stepgraph.datasets.generated.captions import Captions
    from stepgraph.datasets.generated.render import HEIGHT, RATE, WIDTH, film, make_scene

    written = Captions(script, UPRIGHT, HEIGHT, SCALE)
    scene, left = make_scene(script.seed), (WIDTH - UPRIGHT) // 2
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=RATE)
        stream.width, stream.height, stream.pix_fmt = written.width, written.height, "yuv420p"
        for shot in script.shots:
            for number, picture in enumerate(film(scene, shot)):
                part = picture[:, left : left + UPRIGHT]
                drawn = written.write(part, shot.start + number / RATE)
                container.mux(stream.encode(av.VideoFrame.from_ndarray(drawn, "rgb24")))
        container.mux(stream.encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--per-task", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    machine = {"machine": platform.machine(), "cores": os.cpu_count()}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["STEPGRAPH_CACHE"] = f"{folder}/cache"  # nothing is known beforehand
        from stepgraph.datasets.generated import generated_folder, write_scripts

        scripts = write_scripts(args.seed, args.per_task)
        clips = generated_folder(args.seed, per_task=args.per_task, captions=True)
        for one in (*reading(scripts, clips), *keysteps(args.seed, args.per_task)):
            print(json.dumps({"corpus": "captions"} | one | machine), flush=True)
        upright = scripts[:: args.per_task]
        for script in upright:
            render_upright(script, Path(folder) / f"{script.video}.mp4")
        for one in reading(upright, Path(folder)):
            print(json.dumps({"corpus": "upright"} | one | machine), flush=True)


if __name__ == "__main__":
    main()
