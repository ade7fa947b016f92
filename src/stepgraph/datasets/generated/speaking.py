"""Give clips a voice: espeak-ng speaks their narration, in place of the text track."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import Sentence
from stepgraph.datasets.generated.scripts import Script

PROGRAM = "espeak-ng"
VOICE, SPEED = "en-us", 150
"""The voice, and its words a minute; of 24 tried, none was understood clearly better."""

RATE = 22_050  # samples a second, as espeak-ng makes them
_HEADER = 44  # bytes of a WAV file before its samples
_BREATH = 0.15  # seconds between sentences
_HUSHED = 0.003  # what is quieter before and after a sentence is no part of it


def speaker() -> str | None:
    """Program, version and voice of the speech; None if the program is not installed."""
    try:
        printed = subprocess.run([PROGRAM, "--version"], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    version = re.search(rb"\d[\w.]*", printed)
    return f"{PROGRAM}-{version[0].decode() if version else 0}-{VOICE}-{SPEED}"


def speak(narration: Sequence[Sentence], seconds: float) -> NDArray[np.float32]:
    """Speak every sentence at its time: faster if there is no room for it, at worst a bit late."""
    sound = np.zeros(round(seconds * RATE), np.float32)
    free = 0.0
    for sentence, until in zip(
        narration, [*(one.start for one in narration[1:]), seconds], strict=True
    ):
        start = max(sentence.start, free)
        room = max(0.5, until - start - _BREATH)
        speech = _synthesize(sentence.text, SPEED)
        if len(speech) > room * RATE:  # pauses do not become shorter, so words must
            speech = _synthesize(sentence.text, round(1.1 * SPEED * len(speech) / (room * RATE)))
        place = sound[round(start * RATE) :][: len(speech)]
        place[:] = speech[: len(place)]
        free = start + len(speech) / RATE + _BREATH
    return sound


def _synthesize(text: str, speed: int) -> NDArray[np.float32]:
    command = [PROGRAM, "-v", VOICE, "-s", str(speed), "-z", "--stdout", text]
    wave = subprocess.run(command, capture_output=True, check=True).stdout
    sound = np.frombuffer(wave[_HEADER:], "<i2").astype(np.float32) / np.float32(1 << 15)
    loud = np.flatnonzero(np.abs(sound) > _HUSHED)
    return sound[loud[0] : loud[-1] + 1] if len(loud) else sound


def give_voice(script: Script, written: Path, path: Path) -> None:
    """Write a rendered clip again: the same pictures, and its narration as sound."""
    import av

    sound = speak(script.narration, script.shots[-1].end)
    with av.open(str(written)) as source, av.open(str(path), "w") as container:
        pictures = source.streams.video[0]
        shown = container.add_stream_from_template(pictures)
        stream = container.add_stream("aac", rate=RATE, layout="mono")
        for packet in source.demux(pictures):
            if packet.dts is not None:
                packet.stream = shown
                container.mux(packet)
        size = stream.codec_context.frame_size
        for first in range(0, len(sound), size):
            block = np.ascontiguousarray(sound[None, first : first + size])
            frame = av.AudioFrame.from_ndarray(block, "fltp", "mono")
            frame.sample_rate, frame.pts = RATE, first
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
