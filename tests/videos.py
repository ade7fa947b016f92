"""Small video files for tests, written with PyAV; every picture can carry its own number.

A test file says ``import videos``, draws with :func:`numbered`, writes with :func:`write_video`
and reads the numbers back with :func:`numbers_in`, whatever the pictures were scaled to.  Tests
that write a file are skipped where PyAV is not installed.
"""

from fractions import Fraction
from itertools import chain

import numpy as np
import pytest

SIDE = 4
"""Blocks along each side of a drawn number: 16 of them hold the numbers below 65,536."""

QUICK = {
    "libx264": {"preset": "veryfast", "crf": "12"},  # quick, but with B-frames
    "mpeg4": {"qscale": "2"},
    "mjpeg": {"qscale": "2"},
}
"""Options of the encoders that keep pictures legible."""

IN_ORDER = {"preset": "ultrafast", "crf": "12"}
"""Options of libx264 for a file without B-frames, whose first picture has the time 0."""


def numbered(number, width=64, height=64):
    """Draw a number as black and white blocks that fill the middle square of a grey picture."""
    block = min(width, height) // SIDE
    bits = ((number >> np.arange(SIDE * SIDE)) & 1).astype(np.uint8)
    square = np.kron(bits.reshape(SIDE, SIDE), np.ones((block, block), np.uint8))
    picture = np.full((height, width, 3), 128, np.uint8)
    top, left = (height - block * SIDE) // 2, (width - block * SIDE) // 2
    picture[top : top + block * SIDE, left : left + block * SIDE] = 10 + 235 * square[..., None]
    return picture


def number_in(picture):
    """Read the number of a picture of which the middle square is left, at any size."""
    height, width = picture.shape[:2]
    middles = (2 * np.arange(SIDE) + 1) / (2 * SIDE)
    rows, columns = (middles * height).astype(int), (middles * width).astype(int)
    bits = picture[np.ix_(rows, columns)].mean(axis=2).ravel() > 128
    return int(bits @ (1 << np.arange(SIDE * SIDE)))


def numbers_in(clip):
    """Read the numbers of all pictures of a clip."""
    return [number_in(picture) for picture in clip.frames]


def plain(color, number, width=64, height=64):
    """Draw so many pictures of one colour."""
    return [np.full((height, width, 3), color, np.uint8)] * number


def write_video(
    path,
    pictures,
    *,
    rate=25,
    times=None,
    codec="libx264",
    pixels="yuv420p",
    rotation=None,
    sound=0.0,
    options=None,
    form=None,
):
    """Write pictures of shape (height, width, 3) to a video file and return its path.

    Parameters
    ----------
    rate
        Pictures a second; a Fraction where it must be exact.
    times
        Milliseconds at which the pictures appear, instead of a steady rate.
    rotation
        Degrees by which a player turns the picture to the left, and whether it mirrors it.
    sound
        Seconds of silence in a second track.
    options, form
        Of the encoder, and of the container.
    """
    av = pytest.importorskip("av")
    pictures = iter(pictures)
    first = next(pictures)
    with av.open(str(path), "w", options=form or {}) as container:
        stream = container.add_stream(codec, rate=rate, options=options or QUICK.get(codec, {}))
        stream.height, stream.width, stream.pix_fmt = *first.shape[:2], pixels
        if rotation is not None:
            stream.set_display_rotation(*rotation)
        if times is not None:
            stream.codec_context.time_base = Fraction(1, 1000)
        track = add_sound(container) if sound else None
        for number, picture in enumerate(chain([first], pictures)):
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), "rgb24")
            if times is not None:
                frame.pts, frame.time_base = int(times[number]), Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
        if track is not None:
            write_silence(container, track, sound)
    return path


def write_sound(path, seconds=2.0):
    """Write a file of silence without a picture and return its path."""
    av = pytest.importorskip("av")
    with av.open(str(path), "w") as container:
        write_silence(container, add_sound(container), seconds)
    return path


def add_sound(container):
    """Add a track of sound to a file that is being written."""
    return container.add_stream("aac", rate=16000, layout="mono")


def write_silence(container, track, seconds, start=0.0):
    """Fill a track of sound with silence."""
    import av

    first = int(start * 16000)
    for position in range(first, first + int(seconds * 16000), 1024):
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
        frame.sample_rate, frame.pts, frame.time_base = 16000, position, Fraction(1, 16000)
        container.mux(track.encode(frame))
    container.mux(track.encode())


def recording(name):
    """Samples, 16,000 a second, of a recording of somebody who speaks."""
    av, moonshine = pytest.importorskip("av"), pytest.importorskip("moonshine_voice")
    with av.open(f"{moonshine.get_assets_path()}/{name}") as container:
        resampler = av.AudioResampler("flt", "mono", 16000)
        frames = [one for frame in container.decode(audio=0) for one in resampler.resample(frame)]
    return np.concatenate([one.to_ndarray()[0] for one in frames])


def write_speech(
    path, sound, *, codec="aac", rate=16000, layout="mono", picture=False, language=None
):
    """Write samples (16,000 a second, from -1 to 1) to a file of sound and return its path.

    They are stored at a ``rate`` and in a ``layout``; with a ``picture``, the file is a video.
    """
    av = pytest.importorskip("av")
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=5) if picture else None
        track = container.add_stream(codec, rate=rate, layout=layout)
        if language:
            track.metadata["language"] = language
        if stream is not None:
            stream.height, stream.width, stream.pix_fmt = 64, 64, "yuv420p"
            for drawn in plain(90, int(5 * len(sound) / 16000)):
                container.mux(stream.encode(av.VideoFrame.from_ndarray(drawn, "rgb24")))
            container.mux(stream.encode())
        frame = av.AudioFrame.from_ndarray(np.float32(sound)[None], "flt", "mono")
        frame.sample_rate, frame.pts, frame.time_base = 16000, 0, Fraction(1, 16000)
        size = track.codec_context.frame_size or 1024
        resampler = av.AudioResampler(track.codec_context.format.name, layout, rate, size)
        for one in (*resampler.resample(frame), *resampler.resample(None)):
            container.mux(track.encode(one))
        container.mux(track.encode())
    return path


def captioned(text, width=320, height=240, size=18, place=None):
    """Draw a picture that bears a text, white on dull blue, at a place or in the lower third."""
    image, draw = pytest.importorskip("PIL.Image"), pytest.importorskip("PIL.ImageDraw")
    fonts = pytest.importorskip("PIL.ImageFont")
    drawn = image.new("RGB", (width, height), (60, 70, 110))
    where = place or (width // 2, height * 3 // 4)
    pen = draw.Draw(drawn)
    pen.multiline_text(where, text, "white", fonts.load_default(size), "mm", align="center")
    return np.asarray(drawn)


def write_captions(path, texts, *, seconds=2, **how):
    """Write a silent video that shows one text after the other and return its path."""
    look = {name: how.pop(name) for name in ("width", "height", "size") if name in how}
    pictures = (captioned(text, **look) for text in texts for _ in range(5 * seconds))
    return write_video(path, pictures, rate=5, **how)
