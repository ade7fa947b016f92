"""Colour and motion: hand-drawn clips and names meet on the same axes."""

import numpy as np
import pytest

import videos
from stepgraph.core import Video, Vocabulary
from stepgraph.encoders import EncoderOptions, load_encoder
from stepgraph.encoders.color import AXES, MOTIONS, ColorModel
from stepgraph.errors import ConfigError, DataError

RGB = {
    "red": (220, 20, 20),
    "orange": (230, 120, 20),
    "yellow": (230, 220, 30),
    "green": (30, 200, 30),
    "turquoise": (30, 200, 190),
    "blue": (30, 70, 220),
    "purple": (140, 40, 220),
    "pink": (230, 40, 160),
}
GREY = 120


def paint(x, y, half=(7, 7), color="red", shape=(48, 64)):
    """A box on grey; its middle and half its sides are in pixels."""
    picture = np.full((*shape, 3), GREY, np.uint8)
    top, bottom = max(0, round(y - half[1])), max(0, round(y + half[1]))
    left, right = max(0, round(x - half[0])), max(0, round(x + half[0]))
    picture[top:bottom, left:right] = RGB[color]
    return picture


def clip(*pictures):
    return np.stack(pictures)[None]


def times(count=8):
    return np.arange(count) / count


def slide(start, end, color="red"):
    return clip(
        *(
            paint(*(np.array(start) + share * (np.array(end) - start)), color=color)
            for share in times()
        )
    )


def encode(frames):
    return ColorModel().encode_clips(frames)[0]


def best(vector, names):
    return max(names, key=lambda name: float(vector @ ColorModel().encode_texts([name])[0]))


def motion_in(vector):
    return max(MOTIONS, key=lambda motion: vector[AXES.index(motion)])


def turned(share):
    """A grey room with a red bar that turns around its middle."""
    rows, columns = np.mgrid[:48, :64]
    angle = np.pi * share
    along = (columns - 32) * np.cos(angle) + (rows - 24) * np.sin(angle)
    across = (rows - 24) * np.cos(angle) - (columns - 32) * np.sin(angle)
    picture = np.full((48, 64, 3), GREY, np.uint8)
    picture[(np.abs(along) < 16) & (np.abs(across) < 4)] = RGB["red"]
    return picture


MOVING = {
    "slide the red block in from the left": slide((10, 24), (45, 24)),
    "slide the red block in from the right": slide((50, 24), (15, 24)),
    "drop the red ball": slide((32, 8), (32, 38)),
    "lift the red rod": slide((32, 40), (32, 10)),
    "spin the red wheel": clip(*(turned(share) for share in times())),
    "shake the red box": clip(*(paint(32 + 8 * np.sin(2 * np.pi * 1.4 * t), 24) for t in times())),
    "tap the red wedge": clip(*(paint(32, 24 - 8 * abs(np.sin(5 * t))) for t in times())),
    "squeeze the red block": clip(
        *(paint(32, 24, half=(8 + 4 * np.sin(6 * t),) * 2) for t in times())
    ),
    "flash the red lamp": clip(
        *(paint(32, 24, half=(7, 7) if t % 0.5 < 0.25 else (0, 0)) for t in times())
    ),
}


@pytest.mark.parametrize("name", MOVING)
def test_a_motion_is_told_from_all_others(name):
    assert best(encode(MOVING[name]), MOVING) == name


@pytest.mark.parametrize("color", RGB)
def test_a_colour_is_told_from_all_others(color):
    vector = encode(slide((10, 24), (45, 24), color))

    assert best(vector, [f"push the {name} thing" for name in RGB]) == f"push the {color} thing"


def test_vectors_of_clips_and_names_have_unit_length():
    clips = np.concatenate(list(MOVING.values()))
    model = ColorModel()

    for vectors in (model.encode_clips(clips), model.encode_texts(list(MOVING))):
        assert vectors.shape == (len(MOVING), len(AXES))
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)


def test_a_vector_does_not_depend_on_what_is_encoded_with_it():
    clips = np.concatenate(list(MOVING.values()))

    together = ColorModel().encode_clips(clips)

    for position in range(len(clips)):
        np.testing.assert_allclose(together[position], encode(clips[position : position + 1]))


def test_a_name_without_a_known_word_is_zero():
    assert not ColorModel().encode_texts(["be patient"]).any()


def test_who_puffs_something_up_lifts_nothing():
    [vector] = ColorModel().encode_texts(["Puff up the teal ball"])

    assert {AXES[axis] for axis in np.flatnonzero(vector)} == {"pump", "turquoise"}


def test_a_grey_clip_shows_nothing():
    vector = encode(np.full((1, 8, 48, 64, 3), GREY, np.uint8))

    assert [AXES[axis] for axis in np.flatnonzero(vector)] == ["nothing"]


def test_what_is_hardly_seen_counts_for_little():
    [red] = ColorModel().encode_texts(["a red thing"])
    large, small = (
        float(encode(clip(*(paint(32, 24, half=half) for _ in range(8)))) @ red)
        for half in ((9, 9), (3, 3))
    )

    assert small < large / 2


def test_what_moves_outweighs_what_lies_about():
    frames = slide((10, 12), (45, 12), "red")
    frames[:, :, 34:46, 50:62] = RGB["blue"]

    assert best(encode(frames), ["a red thing", "a blue thing"]) == "a red thing"


def test_a_thing_at_rest_has_a_colour_and_stands_still():
    vector = encode(clip(*(paint(32, 24) for _ in range(8))))

    assert motion_in(vector) == "still"
    assert best(vector, ["a red thing", "a blue thing"]) == "a red thing"


def test_a_cut_is_no_motion():
    bright = [paint(20, 24) for _ in range(4)]
    dark = [paint(44, 24) // 2 for _ in range(4)]

    vector = encode(clip(*bright, *dark))

    assert motion_in(vector) == "still"


def test_rows_of_a_file_are_encoded_one_by_one(tmp_path):
    pytest.importorskip("av")
    half = [paint(10 + 35 * t, 24, color="red") for t in np.arange(10) / 10]
    other = [paint(32, 8 + 30 * t, color="blue") for t in np.arange(10) / 10]
    path = videos.write_video(tmp_path / "talk.mp4", [*half, *other], rate=10)
    names = ("slide the red block in from the left", "drop the blue ball")
    encoder = load_encoder("colour:motion")

    [features] = encoder.encode_videos([Video("talk", 2.0, path=path)])

    scores = features.vectors @ encoder.encode_keysteps(Vocabulary(names)).T
    assert scores.argmax(axis=1).tolist() == [0, 1]
    assert features.intervals.tolist() == [[0.0, 1.0], [1.0, 2.0]]


def test_a_longer_window_sees_more_of_a_motion():
    assert load_encoder(EncoderOptions("colour:motion", window=2.0)).clips.window == 2.0


def test_another_model_of_this_kind_is_refused():
    with pytest.raises(ConfigError, match=r"must be 'colour:motion', got 'colour:shape'"):
        load_encoder("colour:shape")


def test_a_video_without_a_file_is_refused():
    with pytest.raises(DataError, match=r"'talk' must have a video file"):
        list(load_encoder("colour:motion").encode_videos([Video("talk", 2.0)]))
