"""How well and how fast the built-in model hears: ``python -m benchmarks.hearing [--minutes 60]``.

Listens to the two recordings in the package ``moonshine-voice`` of which the text is known, as
they are and as files of other kinds, and prints one JSON object for each: words that are wrong,
missing or too many as a share of those that are said, and seconds of sound a second, decoding
included.  So it does with the clips of the demo that speak, where espeak-ng is installed, and
prints one object for all of them.  The last object is about a long file, one recording over and
over, that is listened to in a fresh process: its memory after five minutes of sound and the most
it ever had.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SAID = {
    # Dickens, A Tale of Two Cities, 1859.
    "two_cities.wav": """
        It was the best of times, it was the worst of times, it was the age of wisdom, it was the
        age of foolishness, it was the epoch of belief, it was the epoch of incredulity, it was
        the season of Light, it was the season of Darkness, it was the spring of hope, it was the
        winter of despair, we had everything before us, we had nothing before us, we were all
        going direct to Heaven, we were all going direct the other way, in short, the period was
        so far like the present period, that some of its noisiest authorities insisted on its
        being received, for good or for evil, in the superlative degree of comparison only.""",
    "beckett.wav": "Ever tried. Ever failed. No matter. Try again. Fail again. Fail better.",
}
KINDS = {  # how the sound is stored: suffix, codec, rate, channels
    "as it is": None,
    "telephone": (".wav", "pcm_s16le", 8000, "mono"),
    "mp3": (".mp3", "libmp3lame", 44100, "stereo"),
}


def words_in(text: str) -> list[str]:
    return re.findall(r"[a-z']+", text.lower())


def wrong_words(said: list[str], heard: list[str]) -> int:
    """The fewest words to change, add or leave out so that one becomes the other."""
    row = list(range(len(heard) + 1))
    for number, word in enumerate(said, 1):
        before, row = row, [number]
        for place, other in enumerate(heard, 1):
            row.append(min(before[place] + 1, row[-1] + 1, before[place - 1] + (word != other)))
    return row[-1]


def sound_of(path: Path) -> NDArray[np.float32]:
    import av

    with av.open(str(path)) as container:
        resampler = av.AudioResampler("flt", "mono", 16000)
        frames = [one for frame in container.decode(audio=0) for one in resampler.resample(frame)]
    return np.concatenate([one.to_ndarray()[0] for one in frames])


def write(path: Path, sound: NDArray[np.float32], kind: tuple[str, int, str], times: int) -> None:
    """Store sound so many times, one after the other."""
    import av

    codec, rate, layout = kind
    with av.open(str(path), "w") as container:
        track = container.add_stream(codec, rate=rate, layout=layout)
        size = track.codec_context.frame_size or 1024
        resampler = av.AudioResampler(track.codec_context.format.name, layout, rate, size)
        for number in range(times):
            frame = av.AudioFrame.from_ndarray(sound[None], "flt", "mono")
            frame.sample_rate, frame.time_base = 16000, Fraction(1, 16000)
            frame.pts = number * len(sound)
            for one in resampler.resample(frame):
                container.mux(track.encode(one))
        for one in resampler.resample(None):
            container.mux(track.encode(one))
        container.mux(track.encode())


def hearing(folder: Path) -> Iterator[dict[str, object]]:
    from moonshine_voice import get_assets_path

    from stepgraph.ingest import speech

    assets = Path(get_assets_path())
    speech.hear(assets / "success.wav", problems=_problems())  # loads the model
    for name, text in SAID.items():
        for how, kind in KINDS.items():
            path = assets / name
            if kind is not None:
                path = folder / f"{Path(name).stem}{kind[0]}"
                write(path, sound_of(assets / name), kind[1:], 1)
            begun = time.perf_counter()
            heard = speech.hear(path, problems=_problems())
            took = time.perf_counter() - begun
            said = words_in(text)
            wrong = wrong_words(said, words_in(" ".join(one.text for one in heard.sentences)))
            yield {
                "recording": name,
                "stored": how,
                "words": len(said),
                "wrong": wrong,
                "error_rate": round(100 * wrong / len(said), 1),
                "times_real_time": round(heard.end / took, 1),
            }


def spoken() -> Iterator[dict[str, object]]:
    """What is heard in the clips of the demo that speak."""
    from stepgraph.datasets.generated import open_generated, speaking, write_scripts

    if (speaker := speaking.speaker()) is None:
        return
    said = wrong = 0
    scripts = {script.video: script for script in write_scripts(per_task=1)}
    for video in open_generated(per_task=1, with_speech=True).videos:
        words = words_in(" ".join(one.text for one in scripts[video.id].narration))
        heard = words_in(" ".join(one.text for one in video.transcript))
        said, wrong = said + len(words), wrong + wrong_words(words, heard)
    told = {"recording": "the demo's clips", "stored": speaker, "words": said, "wrong": wrong}
    yield told | {"error_rate": round(100 * wrong / said, 1)}


def _problems() -> object:
    from stepgraph.problems import Problems

    return Problems()


def listen_long(path: Path) -> dict[str, object]:
    """Listen to a file; meant for a process of its own, of which it measures the memory."""
    from stepgraph.ingest import speech

    held: list[float] = []
    cut = speech.cut

    def watched(runs: object) -> Iterator[object]:
        for at, piece in cut(runs):  # type: ignore[arg-type]
            if at >= 300 and not held:
                held.append(_most_memory())
            yield at, piece

    speech.cut = watched  # type: ignore[assignment]
    begun = time.perf_counter()
    heard = speech.hear(path)
    took = time.perf_counter() - begun
    return {
        "recording": "long",
        "minutes": round(heard.end / 60, 1),
        "times_real_time": round(heard.end / took, 1),
        "sentences": len(heard.sentences),
        "mb_after_5_minutes": round(held[0]) if held else None,
        "mb_at_most": round(_most_memory()),
    }


def _most_memory() -> float:
    # Linux's own count; that of the standard library begins with the memory of the parent.
    found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) / 1000 if found else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--listen", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.listen:
        print(json.dumps(listen_long(args.listen)))
        return
    machine = {"machine": platform.machine(), "cores": os.cpu_count()}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["STEPGRAPH_CACHE"] = f"{folder}/cache"  # nothing is known beforehand
        for one in (*hearing(Path(folder)), *spoken()):
            print(json.dumps(one | machine), flush=True)
        from moonshine_voice import get_assets_path

        sound = sound_of(Path(get_assets_path()) / "two_cities.wav")
        long = Path(folder) / "long.m4a"
        times = round(60 * args.minutes * 16000 / len(sound))
        write(long, sound, ("aac", 44100, "stereo"), max(1, times))
        command = [sys.executable, "-m", "benchmarks.hearing", "--listen", str(long)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        print(json.dumps(json.loads(done.stdout) | machine), flush=True)


if __name__ == "__main__":
    main()
