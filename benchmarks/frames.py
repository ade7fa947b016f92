"""Reading clips against decoding alone: ``python -m benchmarks.frames [--seconds 150]``.

Renders H.264 clips, then reads each by turns with a bare PyAV loop, which decodes every picture
and does nothing else, and with ``read_clips`` at one row a second: one, and eight pictures of
224 x 224 a row.  Prints one JSON object for each: pictures decoded a second (medians of all
turns), and the second as a share of the first, by the clock and by processor time, which a busy
machine does not change.  The last object is about an hour of video read in a fresh process: its
memory after five minutes and the most it ever had.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stepgraph.ingest.frames import ClipOptions, read_clips

RATE = 25
SIZES = ((640, 360), (1280, 720))
HOUR = 3600


def render(path: Path, width: int, height: int, seconds: int) -> None:
    """Write a texture that moves on and off: new pictures, but such as compress."""
    import av

    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (height // 8 + 64, width // 8 + 64, 3), np.uint8)
    texture = coarse.repeat(8, axis=0).repeat(8, axis=1)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=RATE, options={"preset": "veryfast"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for number in range(seconds * RATE):
            shift = number * 3 % 480
            part = np.ascontiguousarray(texture[shift : shift + height, shift : shift + width])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(part, "rgb24")))
        container.mux(stream.encode())


def render_hour(path: Path) -> None:
    """Write an hour in which the picture changes every ten seconds."""
    import av

    options = {"preset": "ultrafast", "tune": "fastdecode"}
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=RATE, options=options)
        stream.width, stream.height, stream.pix_fmt = 320, 180, "yuv420p"
        for number in range(HOUR * RATE):
            if number % (10 * RATE) == 0:
                color = np.random.default_rng(number).integers(0, 256, 3, np.uint8)
                picture = np.broadcast_to(color, (180, 320, 3)).copy()
                frame = av.VideoFrame.from_ndarray(picture, "rgb24").reformat(format="yuv420p")
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def decode_alone(path: Path) -> int:
    """Decode everything; return how many pictures there were."""
    import av

    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        return sum(1 for _ in container.decode(stream))


def decode_clips(path: Path, options: ClipOptions, seconds: int) -> int:
    """Read all clips; return how many pictures had to be decoded for them."""
    rows = sum(1 for _ in read_clips(path, options))
    assert rows == seconds
    last = (rows - 1) * options.stride + options.window * (1 - 0.5 / options.frames)
    return min(seconds * RATE, int(last * RATE) + 2)


class Speed(NamedTuple):
    """Pictures a second of wall time and of processor time."""

    wall: float
    processor: float


def measure(work: Callable[[], int]) -> Speed:
    begin, used = time.perf_counter(), time.process_time()
    pictures = work()
    return Speed(pictures / (time.perf_counter() - begin), pictures / (time.process_time() - used))


def medians(speeds: list[Speed]) -> Speed:
    return Speed(*map(statistics.median, zip(*speeds, strict=True)))


def compare(path: Path, frames: int, seconds: int, turns: int) -> dict[str, object]:
    options = ClipOptions(frames=frames)
    bare, clips = [], []
    for _ in range(turns + 1):
        bare.append(measure(lambda: decode_alone(path)))
        clips.append(measure(lambda: decode_clips(path, options, seconds)))
    # The first turn of each warms the caches.
    alone, with_clips = medians(bare[1:]), medians(clips[1:])
    return {
        "bench": "frames",
        "pictures_a_row": frames,
        "bare_per_second": round(alone.wall),
        "clips_per_second": round(with_clips.wall),
        "share": round(with_clips.wall / alone.wall, 3),
        "share_of_processor_time": round(with_clips.processor / alone.processor, 3),
        "turns": turns,
        "video_seconds": seconds,
    }


def measure_hour(path: Path) -> dict[str, object]:
    """Read an hour of clips that overlap, in this process."""
    options = ClipOptions(frames=8, window=4.0)
    begin = time.perf_counter()
    early, rows = 0.0, 0
    for clip in read_clips(path, options):
        rows += 1
        if clip.start == 300:
            early = memory()
    return {
        "rows": rows,
        "mb_after_5_minutes": round(early, 1),
        "peak_mb": round(memory("VmHWM"), 1),
        "seconds": round(time.perf_counter() - begin, 1),
    }


def memory(what: str = "VmRSS") -> float:
    """Megabytes this process has now, or had at most; Linux says so.

    What ``resource`` tells is no use here: it begins with the peak of the parent.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return int(fields[what].split()[0]) * 1024 / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed and memory of reading clips.")
    parser.add_argument("--seconds", type=int, default=150, help="length of the clips")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--hour", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.hour:
        print(json.dumps(measure_hour(options.hour)))
        return
    machine = {
        "cpu": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }
    with tempfile.TemporaryDirectory() as folder:
        for width, height in SIZES:
            path = Path(folder) / f"{width}.mp4"
            render(path, width, height, options.seconds)
            for frames in (1, 8):
                found = compare(path, frames, options.seconds, options.turns)
                print(json.dumps(found | {"video": f"{width}x{height}"} | machine), flush=True)
        path = Path(folder) / "hour.mp4"
        render_hour(path)
        command = [sys.executable, "-m", "benchmarks.frames", "--hour", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    about = {"bench": "frames-hour", "video": "320x180", "pictures_a_row": 8, "window": 4.0}
    print(json.dumps(about | json.loads(done.stdout) | machine))


if __name__ == "__main__":
    main()
