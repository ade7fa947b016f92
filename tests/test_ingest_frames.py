"""Clips of a video file: exactly which pictures they hold, and which files are refused."""

import math
import tracemalloc
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import videos
from stepgraph.core import rows_in
from stepgraph.errors import ConfigError
from stepgraph.ingest import frames
from stepgraph.ingest.frames import ClipOptions, _upright, read_clips
from stepgraph.ingest.media import media_duration
from videos import number_in, numbered, numbers_in, plain, write_video

NUMBER = 170
SMALL = {"height": 32, "width": 32}
UNEVEN = np.cumsum(np.random.default_rng(3).integers(5, 90, NUMBER))

# Name of the file, how it is written, and when (seconds) each of its pictures appears.
FILES = {
    "steady.mp4": ({}, [Fraction(k, 25) for k in range(NUMBER)]),
    "ntsc.mp4": (
        {"rate": Fraction(30000, 1001)},
        [Fraction(k * 1001, 30000) for k in range(NUMBER)],
    ),
    "twenty.mp4": ({"rate": 20}, [Fraction(k, 20) for k in range(NUMBER)]),
    "uneven.mp4": ({"times": UNEVEN - UNEVEN[0]}, None),
    "late.mp4": ({"times": UNEVEN + 1700}, None),
    "late.mkv": ({"times": UNEVEN + 1700}, None),
    "late.ts": ({"times": UNEVEN + 1700}, None),
    "swapped.avi": ({}, [Fraction(k, 25) for k in range(NUMBER)]),
    "old.avi": ({"codec": "mpeg4"}, [Fraction(k, 25) for k in range(NUMBER)]),
    "flash.flv": ({}, [Fraction(k, 25) for k in range(NUMBER)]),
    "woven.mp4": (
        {"options": {"preset": "veryfast", "x264-params": "interlaced=1"}},
        [Fraction(k, 25) for k in range(NUMBER)],
    ),
}
KINDS = [
    ClipOptions(**SMALL),
    ClipOptions(frames=8, **SMALL),
    ClipOptions(frames=32, window=3.2, **SMALL),
    ClipOptions(frames=3, window=0.5, stride=2.0, **SMALL),
    ClipOptions(frames=5, window=2.0, stride=0.3, crop=False, **SMALL),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All of FILES, written once; each picture shows its number."""
    folder = tmp_path_factory.mktemp("videos")
    for name, (how, _) in FILES.items():
        write_video(folder / name, map(numbered, range(NUMBER)), **how)
    return folder


def choose_slowly(begins, duration, options):
    """Which pictures each clip must hold: for every time the last that has begun."""
    clips = []
    for row in range(rows_in(duration, options.stride)):
        clip = []
        for part in range(options.frames):
            time = row * Fraction(str(options.stride))
            time += (part + Fraction(1, 2)) * Fraction(str(options.window)) / options.frames
            begun = [number for number, begin in enumerate(begins) if begin <= time]
            clip.append(begun[-1] if begun else 0)
        clips.append(clip)
    return clips


@pytest.mark.parametrize("options", KINDS, ids=str)
@pytest.mark.parametrize("name", FILES)
def test_a_clip_holds_what_is_on_screen_at_its_times(folder, name, options):
    begins = FILES[name][1] or [Fraction(int(t - UNEVEN[0]), 1000) for t in UNEVEN]

    clips = list(read_clips(folder / name, options))

    expected = choose_slowly(begins, media_duration(folder / name), options)
    assert [numbers_in(clip) for clip in clips] == expected
    assert clips[0].frames.shape == (options.frames, 32, 32, 3)
    assert clips[0].frames.dtype == np.uint8


def test_clips_end_with_the_video(folder):
    clips = list(read_clips(folder / "steady.mp4", ClipOptions(window=3.0, **SMALL)))

    assert [clip.start for clip in clips] == [0, 1, 2, 3, 4, 5, 6]
    assert [clip.end for clip in clips] == pytest.approx([3, 4, 5, 6, 6.8, 6.8, 6.8])


@pytest.mark.parametrize(("duration", "rows"), [(0.0, 0), (2.0, 2), (6.81, 7), (60.5, 61)])
def test_there_are_as_many_rows_as_the_given_duration_has(folder, duration, rows):
    clips = list(read_clips(folder / "steady.mp4", ClipOptions(**SMALL), duration=duration))

    numbers = [number_in(clip.frames[0]) for clip in clips]
    assert numbers == [min(12 + 25 * row, NUMBER - 1) for row in range(rows)]


def test_one_picture_is_one_row(tmp_path):
    path = write_video(tmp_path / "one.mp4", [numbered(7)])

    (clip,) = read_clips(path, ClipOptions(frames=2, **SMALL))

    assert numbers_in(clip) == [7, 7]
    assert (clip.start, clip.end) == (0.0, pytest.approx(0.04))


def test_a_file_without_any_times_is_shown_at_its_rate(tmp_path):
    path = write_video(tmp_path / "raw.h264", map(numbered, range(100)))

    clips = read_clips(path, ClipOptions(**SMALL), duration=4.0)

    assert [number_in(clip.frames[0]) for clip in clips] == [12, 37, 62, 87]


def test_a_recording_that_does_not_state_its_length_is_read_to_its_end(tmp_path):
    path = write_video(tmp_path / "live.mkv", map(numbered, range(80)), form={"live": "1"})

    clips = read_clips(path, ClipOptions(**SMALL))

    assert [number_in(clip.frames[0]) for clip in clips] == [12, 37, 62, 79]


@pytest.mark.parametrize(
    ("codec", "pixels"),
    [
        ("libx264", "yuv444p"),
        ("libx264", "gray"),
        ("libx264", "yuv420p10le"),
        ("libx264", "nv12"),
        ("libx264rgb", "rgb24"),
        ("ffv1", "gbrp10le"),
        ("ffv1", "yuva420p"),
        ("ffv1", "gray16le"),
        ("mjpeg", "yuvj422p"),
        ("rawvideo", "uyvy422"),
    ],
)
def test_any_layout_of_pixels_is_read(tmp_path, codec, pixels):
    orange = np.array([230, 120, 20])
    pictures = [*map(numbered, range(30)), *plain(orange, 30)]
    path = write_video(tmp_path / "clip.mkv", pictures, codec=codec, pixels=pixels)

    first, *_, last = read_clips(path, ClipOptions(**SMALL))

    expected = orange if "gray" not in pixels else orange @ [0.299, 0.587, 0.114]
    assert numbers_in(first) == [12]
    assert np.abs(last.frames[0] - expected).max() <= 5


@pytest.mark.parametrize(("width", "height"), [(97, 64), (64, 97), (101, 33), (35, 35)])
def test_odd_sizes_are_scaled_and_cut(tmp_path, width, height):
    pictures = (numbered(number, width, height) for number in range(50))
    path = write_video(tmp_path / "odd.mkv", pictures, pixels="yuv444p")

    clips = list(read_clips(path, ClipOptions(height=40, width=40)))

    assert [number_in(clip.frames[0]) for clip in clips] == [12, 37]


def quarters(height, width):
    """Draw four different colours into the four corners."""
    picture = np.zeros((height, width, 3), np.uint8)
    picture[: height // 2, : width // 2] = (220, 20, 20)
    picture[: height // 2, width // 2 :] = (20, 220, 20)
    picture[height // 2 :, : width // 2] = (20, 20, 220)
    picture[height // 2 :, width // 2 :] = (220, 220, 220)
    return picture


@pytest.mark.parametrize("name", ["turned.mp4", "turned.mov", "turned.mkv"])
@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
def test_a_turned_picture_is_put_upright(tmp_path, name, degrees, mirrored):
    stored = quarters(64, 96)
    path = write_video(tmp_path / name, [stored] * 5, rotation=(degrees, mirrored))
    shown = np.rot90(stored, degrees // 90)
    shown = shown[:, ::-1] if mirrored else shown

    options = ClipOptions(height=shown.shape[0], width=shown.shape[1], crop=False)
    (clip,) = read_clips(path, options)
    (cut,) = read_clips(path, ClipOptions(height=48, width=48))

    ends = np.ix_([0, -1], [0, -1])
    assert np.abs(clip.frames[0].astype(int) - shown).mean() < 8
    assert np.abs(cut.frames[0][ends].astype(int) - shown[ends]).max() < 20


@pytest.mark.parametrize(
    ("a", "b", "c", "d", "upright"),
    [
        (1, 0, 0, 1, (False, False, False)),
        (-1, 0, 0, 1, (False, False, True)),
        (1, 0, 0, -1, (False, True, False)),
        (-1, 0, 0, -1, (False, True, True)),
        (0, 1, 1, 0, (True, False, False)),
        (0, -1, 1, 0, (True, True, False)),
        (0, 1, -1, 0, (True, False, True)),
        (0, -1, -1, 0, (True, True, True)),
        (1, 0, 0, 0, (False, False, False)),
        (0, 0, 0, 1, (False, False, False)),
        (0, 1, 0, 0, (True, False, False)),
        (0, 0, 1, 0, (True, False, False)),
        (1, 1, 1, 1, (False, False, False)),
        (1, 1, 1, 2, (False, False, False)),
    ],
)
def test_a_matrix_tells_what_is_swapped_and_reversed(a, b, c, d, upright):
    matrix = np.array([a, b, 0, c, d, 0, 0, 0, 1 << 30], np.int32).tobytes()

    assert _upright(SimpleNamespace(side_data={"DISPLAYMATRIX": matrix})) == upright


@pytest.mark.parametrize(
    ("degrees", "upright"),
    [
        *((degrees, (False, False, False)) for degrees in (0, 44, -44)),
        *((degrees, (True, True, False)) for degrees in (90, 46, 134, -270)),
        *((degrees, (False, True, True)) for degrees in (180, 136, -180)),
        *((degrees, (True, False, True)) for degrees in (270, -90, 226)),
    ],
)
def test_without_a_matrix_the_turn_is_taken_to_quarters(degrees, upright):
    class Turned:
        rotation = degrees

        @property
        def side_data(self):
            raise ValueError("99 is not a valid Type")

    assert _upright(Turned()) == upright


def test_rows_begin_every_stride(tmp_path):
    path = write_video(tmp_path / "talk.mp4", plain(0, 50))

    clips = read_clips(path, ClipOptions(stride=0.25, height=8, width=8), duration=1.0)

    assert [clip.start for clip in clips] == [0, 0.25, 0.5, 0.75]


@pytest.mark.parametrize("name", ["frames", "height", "width"])
def test_pictures_have_up_to_8192_pixels_a_side(name):
    assert getattr(ClipOptions(**{name: 8192}), name) == 8192
    with pytest.raises(
        ConfigError, match=f"{name} of a clip must be between 1 and 8192, got 8193"
    ):
        ClipOptions(**{name: 8193})


@pytest.mark.parametrize("name", ["window", "stride"])
def test_no_clip_lasts_forever(name):
    with pytest.raises(
        ConfigError, match=f"{name} of a clip must be more than 0 seconds, got inf"
    ):
        ClipOptions(**{name: math.inf})


def test_side_data_that_the_library_does_not_know_leave_the_turn():
    class Frame:
        rotation = -90

        @property
        def side_data(self):
            raise ValueError("32 is not a valid Type")

    assert frames._upright(Frame()) == (True, False, True)  # as np.rot90(picture, -1)


def write_stills(path, picture, **about):
    """Write one picture with something noted about it by the encoder."""
    av = pytest.importorskip("av")
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25, options=videos.QUICK["libx264"])
        stream.height, stream.width, stream.pix_fmt = *picture.shape[:2], "yuv420p"
        for name, value in about.items():
            setattr(stream.codec_context, name, value)
        frame = av.VideoFrame.from_ndarray(picture, "rgb24")
        space = "ITU709" if about.get("colorspace") == 1 else "ITU601"
        frame = frame.reformat(format="yuv420p", dst_colorspace=space)
        container.mux([*stream.encode(frame), *stream.encode()])
    return path


def test_pixels_that_are_no_squares_are_shown_as_wide_as_they_are_meant(tmp_path):
    path = write_stills(
        tmp_path / "wide.mp4", quarters(64, 64), sample_aspect_ratio=Fraction(2, 1)
    )

    (clip,) = read_clips(path, ClipOptions(height=32, width=64))
    (cut,) = read_clips(path, ClipOptions(height=32, width=32))

    assert np.abs(clip.frames[0].astype(int) - quarters(32, 64)).mean() < 8
    assert np.abs(cut.frames[0] - clip.frames[0][:, 16:48].astype(int)).mean() < 3


@pytest.mark.parametrize("standard", [1, 5], ids=["BT.709", "BT.601"])
def test_colours_are_read_by_the_standard_that_the_file_names(tmp_path, standard):
    green = plain((20, 200, 60), 1)[0]
    path = write_stills(tmp_path / "green.mp4", green, colorspace=standard)

    (clip,) = read_clips(path, ClipOptions(**SMALL))

    assert np.abs(clip.frames[0].astype(int) - green[0, 0]).max() <= 4


def cubic(size, target):
    """Weights of every old line in every new one: bicubic, as wide as the scale."""
    scale = size / target
    middles = (np.arange(target)[:, None] + 0.5) * scale - 0.5
    x = np.abs((np.arange(size)[None] - middles) / scale)
    near = 1.5 * x**3 - 2.5 * x**2 + 1
    far = -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2
    weights = np.where(x < 1, near, np.where(x < 2, far, 0))
    return weights / weights.sum(axis=1, keepdims=True)


def test_scaling_is_that_of_the_published_models(tmp_path):
    noise = np.random.default_rng(0).normal(128, 40, (90, 160, 3)).clip(0, 255)
    picture = np.kron(noise, np.ones((4, 4, 1))).astype(np.uint8)
    lossless = {"codec": "libx264rgb", "pixels": "rgb24", "options": {"qp": "0"}}
    path = write_video(tmp_path / "noise.mkv", [picture], **lossless)

    (clip,) = read_clips(path, ClipOptions())

    scaled = np.einsum("yi,xj,ijc->yxc", cubic(360, 224), cubic(640, 398), picture, optimize=True)
    expected = scaled[:, 87:311].clip(0, 255)
    assert np.abs(clip.frames[0] - expected).mean() < 1


@pytest.mark.parametrize(("width", "height"), [(1024, 4), (4, 512)])
def test_the_middle_of_a_mere_line_is_scaled_without_the_rest(tmp_path, width, height):
    picture = plain((20, 20, 20), 1, width, height)[0]
    picture[height // 2 - 2 : height // 2 + 2, width // 2 - 2 : width // 2 + 2] = 240
    path = write_video(tmp_path / "line.mkv", [picture], pixels="yuv444p")

    (clip,) = read_clips(path, ClipOptions())

    assert clip.frames.min() > 150


def test_the_size_of_the_picture_may_change(tmp_path):
    parts = [
        write_video(
            tmp_path / f"{width}.ts",
            [numbered(number, width, 64) for number in range(first, first + 50)],
            times=[40 * number for number in range(first, first + 50)],
            options=videos.IN_ORDER,
        )
        for width, first in ((64, 0), (128, 50))
    ]
    path = tmp_path / "both.ts"
    path.write_bytes(b"".join(part.read_bytes() for part in parts))

    clips = list(read_clips(path, ClipOptions(**SMALL)))

    assert [number_in(clip.frames[0]) for clip in clips] == [12, 37, 62, 87]


def test_memory_does_not_grow_with_the_length_of_the_video(tmp_path):
    path = write_video(tmp_path / "long.mp4", map(numbered, range(1500)), rate=5)
    options = ClipOptions(frames=8, window=8.0, height=96, width=96)

    peaks = []
    for duration in (30.0, 300.0):
        tracemalloc.start()
        for _clip in read_clips(path, options, duration=duration):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()

    # A window of 8 s shows at most 40 pictures, and a clip is made of 8 more.
    assert peaks[1] < 60 * 96 * 96 * 3
    assert peaks[1] < 1.1 * peaks[0]


def test_a_real_mp4_by_another_name_is_read(folder, tmp_path):
    path = tmp_path / "steady.avi"
    path.write_bytes((folder / "steady.mp4").read_bytes())

    assert len(list(read_clips(path, ClipOptions(**SMALL)))) == 7


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"frames": 0}, "frames of a clip must be between 1 and 8192, got 0"),
        ({"height": 2.5}, "height of a clip must be between 1 and 8192, got 2.5"),
        ({"window": 0.0}, "window of a clip must be more than 0 seconds, got 0.0"),
        ({"stride": float("nan")}, "stride of a clip must be more than 0 seconds, got nan"),
    ],
)
def test_impossible_clips_are_refused(wrong, message):
    with pytest.raises(ConfigError, match=message):
        ClipOptions(**wrong)
