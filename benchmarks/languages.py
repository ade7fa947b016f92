"""Whether another language is noticed: ``python -m benchmarks.languages [FILE ...]``.

Says texts of many languages with espeak-ng, listens to them, to the recordings of the package
``moonshine-voice``, worsened too, and to files of your own, and prints one JSON object for each:
how many of the words that were heard changed when they were heard again, and whether that is too
much.  The rule was chosen on what is not marked as unseen.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.hearing import sound_of, write

TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
VOICES = {  # of English; a lady speaks the foreign texts marked so
    "seen": ("en-us", "en-gb", "en-us+f3", "en-gb-scotland", "en-us+Annie", "en-gb-x-rp"),
    "unseen": ("en-029", "en-gb-x-gbclan", "en-gb-x-gbcwmd", "en-us-nyc", "en-us+Andy"),
}
LADY = ("de", "fr", "es", "ru", "ro", "da")
SPEED = "150"


def voiced(folder: Path, voice: str, text: str) -> Path:
    path = folder / f"{voice}.wav"
    subprocess.run(["espeak-ng", "-v", voice, "-s", SPEED, "-w", str(path), text], check=True)
    return path


def worsened(folder: Path, path: Path) -> Iterator[tuple[str, Path]]:
    rng, sound = np.random.default_rng(0), sound_of(path)
    power = float(np.sqrt(np.mean(sound**2)))
    made: dict[str, tuple[NDArray[np.float32], int]] = {"telephone": (sound, 8000)}
    made["very quiet"] = 0.03 * sound, 16000
    for decibels in (10, 5):
        noise = power * 10 ** (-decibels / 20) * rng.standard_normal(len(sound))
        made[f"noise at {decibels} dB"] = np.float32(sound + noise), 16000
    for how, (one, rate) in made.items():
        place = folder / f"{path.stem}-{how}.wav"
        write(place, one, ("pcm_s16le", rate, "mono"), 1)
        yield how, place


def sounds(folder: Path) -> Iterator[tuple[dict[str, object], Path]]:
    """What is known of each file, and the file."""
    from moonshine_voice import get_assets_path

    for name in sys.argv[1:]:
        yield {"said by": "a file of yours", "what": Path(name).name}, Path(name)
    for name in ("two_cities", "beckett", "endgame_nagg_nell", "clone-test"):
        path = Path(get_assets_path()) / f"{name}.wav"
        known: dict[str, object] = {"language": "en", "said by": "a person", "what": name}
        yield known, path
        if name in ("two_cities", "endgame_nagg_nell"):
            for how, worse in worsened(folder, path):
                yield known | {"worsened": how}, worse
    for part, voices in VOICES.items():
        for what, text in TEXTS["english"].items():
            for voice in voices:
                known = {"language": "en", "said by": voice, "what": what}
                yield known | {"unseen": part == "unseen"}, voiced(folder, voice, text)
        for language, text in TEXTS[part].items():
            for voice in (language, f"{language}+f3")[: 1 + (language in LADY)]:
                known = {"language": language, "said by": voice, "unseen": part == "unseen"}
                yield known, voiced(folder, voice, text)


def main() -> None:
    from stepgraph.ingest import language_check, speech
    from stepgraph.problems import Problems

    with tempfile.TemporaryDirectory() as folder:
        os.environ["STEPGRAPH_CACHE"] = f"{folder}/cache"
        for known, path in sounds(Path(folder)):
            begun = time.process_time()
            heard = speech.hear(path, problems=Problems())
            took = {"seconds": heard.end, "cpu_s": round(time.process_time() - begun, 2)}
            told = {"changed": heard.unsure, "warned": heard.unsure > language_check.TOO_MUCH}
            print(json.dumps(known | told | took, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
