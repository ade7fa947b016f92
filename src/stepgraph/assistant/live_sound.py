"""Speech recognition of sound as it is recorded: 16 kHz mono PCM, from a pipe or a growing file.

The built-in speech model transcribes it piece by piece, each cut where somebody pauses.  The clock
is that of the sound: where it stalls, time stalls.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from typing import BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stepgraph.assistant.live_reading import ArrivedSentence
from stepgraph.errors import DataError
from stepgraph.ingest.speech import LONGEST_PIECE, RATE, cut, hear_piece

Sound: TypeAlias = NDArray[np.float32]

# Samples to read at once, and seconds between two reads of a growing file.
_STEP, _LOOK = RATE // 10, 0.2
# Bytes that are skipped at once: the length in a header may be wrong.
_SKIPPED = 1 << 16
# A pause is half a second with less than a hundredth of the power of the loudest tenth; a piece
# has at least the last number of seconds before it.
_PAUSE, _QUIET, _SHORTEST = 5, 0.01, 2.0


def listen_live(
    stream: BinaryIO, origin: str, *, follow: bool = False
) -> Iterator[ArrivedSentence | float]:
    """Yield sentences as they are recognised; a number is the time up to which there is sound.

    Parameters
    ----------
    stream
        Samples of 16 bits, or a WAVE file.
    origin
        Name of the stream in errors.
    follow
        Wait for more at the end of the stream: it is a file that grows.
    """
    held, at, emitted, last = np.zeros(0, np.float32), 0.0, 0, 0.0
    for samples in _samples(stream, origin, follow):
        held = np.concatenate([held, samples])
        now = at + len(held) / RATE
        if end := _end_of_piece(held):
            for one in hear_piece(at, held[:end]):
                yield ArrivedSentence(now, one._replace(start=max(one.start, last)))
                last = one.end
            held, at = held[end:], at + end / RATE
        if now >= emitted + 1:
            emitted = int(now)
            yield float(emitted)
    for one in hear_piece(at, held) if len(held) else ():
        yield ArrivedSentence(at + len(held) / RATE, one)


def _end_of_piece(sound: Sound) -> int:
    """Number of samples to transcribe now, up to a pause or the longest piece; 0 for none.

    >>> speech, silence = np.ones(3 * RATE, np.float32), np.zeros(RATE // 2, np.float32)
    >>> _end_of_piece(speech), _end_of_piece(np.concatenate([speech, silence])) / RATE
    (0, 3.5)
    """
    if len(sound) > LONGEST_PIECE * RATE:
        return len(next(cut([(None, sound)]))[1])
    if len(sound) < _SHORTEST * RATE:
        return 0
    tenths = sound[len(sound) % _STEP :].reshape(-1, _STEP)
    power = np.square(tenths).mean(axis=1)
    return len(sound) if power[-_PAUSE:].max() < _QUIET * power.max() else 0


def _samples(stream: BinaryIO, origin: str, follow: bool) -> Iterator[Sound]:
    """Yield samples from -1 to 1 as they arrive; a last one that is cut off is dropped."""
    begun = _after_header(stream, origin, follow)
    while data := _read(stream, 2 * _STEP - len(begun), follow):
        begun += data
        whole = len(begun) // 2 * 2
        numbers = np.frombuffer(begun[:whole], "<i2").astype(np.float32)
        yield numbers / np.float32(32768)
        begun = b""


def _after_header(stream: BinaryIO, origin: str, follow: bool) -> bytes:
    """Skip the header of a WAVE file; return the bytes read if they are samples already."""
    head = _read(stream, 12, follow)
    if not head.startswith(b"RIFF"):
        return head
    while len(chunk := _read(stream, 8, follow)) == 8:
        name, size = struct.unpack("<4sI", chunk)
        if name == b"data":  # while it grows, its size is unknown
            return b""
        body = _read(stream, min(size, 16), follow)
        left = size + size % 2 - len(body)  # chunks begin at even places
        while skipped := _read(stream, min(left, _SKIPPED), follow):
            left -= len(skipped)
        if name == b"fmt " and len(body) == 16:
            kind, channels, rate, _, _, bits = struct.unpack("<HHIIHH", body)
            if (kind, channels, rate, bits) != (1, 1, RATE, 16):
                raise DataError(
                    f"{origin}: sound must have {RATE} samples a second, 1 channel and 16 bits, "
                    f"got {rate}, {channels} and {bits}; record it so, or convert it: ffmpeg -i "
                    f"FILE -ar {RATE} -ac 1 -f s16le - | stepgraph live --listen - ..."
                )
    return b""


def _read(stream: BinaryIO, size: int, follow: bool) -> bytes:
    """Read ``size`` bytes; fewer only at the end."""
    data = stream.read(size)
    while follow and len(data) < size:
        time.sleep(_LOOK)
        data += stream.read(size - len(data))
    return data
