"""What is read on the screen: lines as sentences with their times, and never downloaded."""

import json
import shutil
import socket
import sys
from pathlib import Path

import numpy as np
import pytest

from stepgraph.core import Sentence
from stepgraph.errors import DataError, MissingExtraError
from stepgraph.ingest import screen
from stepgraph.ingest.frames import read_pictures
from stepgraph.ingest.screen import Line, alike, is_text, read_screen, to_sentences
from test_ingest_picture_track import spoil
from videos import captioned, plain, write_captions, write_sound, write_video

WHISK, FOLD = "whisk the eggs and milk", "fold until combined"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("STEPGRAPH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def reader():
    return pytest.importorskip("rapidocr", reason="reading needs the 'ocr' extra")


@pytest.fixture
def read_pictures_of(monkeypatch):
    """Read the same line in every picture; return the pictures that were read."""
    seen = []

    def lines_in(picture):
        seen.append(picture.shape)
        return [line(WHISK)]

    monkeypatch.setattr(screen, "_lines_in", lines_in)
    return seen


def line(text, confidence=0.95, top=100.0, left=10.0):
    return Line(text, confidence, (left, top, left + 10 * len(text), top + 20))


def sentences(*rows):
    """Sentences of pictures, each given by its lines or texts."""
    lines = [[one if isinstance(one, Line) else line(one) for one in row] for row in rows]
    return [tuple(one) for one in to_sentences(lines, float(len(rows)))]


# --- From lines to sentences


def test_a_line_that_stays_is_one_sentence():
    assert sentences([], [WHISK], [WHISK], [], [], [], [FOLD], [FOLD]) == [
        (0.5, 3.5, WHISK),
        (5.5, 8.0, FOLD),
    ]


def test_the_time_between_two_sentences_is_shared():
    assert sentences([WHISK], [], [], [], [FOLD], [], [WHISK]) == [
        (0.0, 1.5, WHISK),
        (3.5, 5.5, FOLD),
        (5.5, 7.0, WHISK),
    ]
    assert [one[:2] for one in sentences([WHISK], [FOLD])] == [(0.0, 1.0), (1.0, 2.0)]


def test_a_line_that_is_not_read_once_goes_on():
    assert sentences([WHISK], [], [WHISK]) == [(0.0, 3.0, WHISK)]


def test_the_last_sentence_ends_with_the_video():
    assert to_sentences([[line(WHISK)], [line(WHISK)]], 1.3) == (Sentence(0.0, 1.3, WHISK),)


def test_of_half_faded_readings_the_best_is_taken():
    faded = line("sk the eggs and", 0.8, left=40.0)
    misread = line("whisk the egqs and milk", 0.85)

    assert sentences([faded], [WHISK], [misread], [faded]) == [(0.0, 4.0, WHISK)]


def test_a_caption_that_is_typed_letter_by_letter_is_one_sentence():
    assert sentences(["whisk"], ["whisk the eggs"], [WHISK], [WHISK]) == [(0.0, 4.0, WHISK)]


def test_captions_that_differ_by_a_word_stay_two():
    flour, sugar = "add two cups of flour", "add two cups of sugar"

    assert [text for *_, text in sentences([flour], [flour], [sugar], [sugar])] == [flour, sugar]


def test_a_word_elsewhere_is_not_part_of_a_caption():
    label = line("milk", top=10.0)

    assert len(sentences([label], [label], [WHISK], [WHISK])) == 2


def test_lines_that_come_and_go_together_are_one_sentence():
    caption = [line("and the milk", top=122.0), line("whisk the eggs", top=100.0)]

    assert sentences(caption, caption) == [(0.0, 2.0, "whisk the eggs and the milk")]


def test_captions_after_each_other_are_not_joined():
    assert [text for *_, text in sentences([WHISK], [FOLD])] == [WHISK, FOLD]


def test_of_a_list_that_grows_the_newest_line_is_said():
    eggs, milk = line("two eggs", top=10.0), line("a pint of milk", top=40.0)

    assert sentences([eggs], [eggs], [eggs, milk], [eggs, milk], [eggs]) == [
        (0.0, 2.0, "two eggs"),
        (2.0, 4.0, "a pint of milk"),
        (4.0, 5.0, "two eggs"),
    ]


def test_a_line_that_is_seen_once_must_be_certain():
    assert sentences([line(WHISK, 0.85)]) == []
    assert len(sentences([line(WHISK, 0.95)])) == 1
    assert len(sentences([line(WHISK, 0.85)], [line(WHISK, 0.85)])) == 1


def test_what_is_there_throughout_is_left_out_and_subtitles_that_change_are_not():
    names = [line("Workshop Weekly", top=5.0), line("Workshop Weekiy", 0.8, top=5.0)]
    rows = [[names[number % 5 == 0], f"{word} the thing"] for number, word in enumerate(WORDS)]

    texts = [text for *_, text in sentences(*rows)]

    assert len(rows) == 40
    assert texts == [f"{word} the thing" for word in WORDS[::2]]


VERBS = ("lift", "turn", "glue", "sand", "drill", "paint", "press", "hold", "wipe", "bend")
WORDS = [verb + tail for verb in VERBS for tail in (" down", " up") for _ in range(2)]


def test_one_caption_of_a_short_clip_is_no_watermark():
    assert sentences(*[[WHISK]] * 8) == [(0.0, 8.0, WHISK)]


@pytest.mark.parametrize(
    "text",
    ["000", "88", "1717", "m", "口", "00:12", "xkrtz", "|||", "A", "3/4", "l1l1 ao 0o0", ""],
)
def test_rubbish_is_no_text(text):
    assert not is_text(text)


@pytest.mark.parametrize(
    "text",
    ["REFRIGERATE 1 HOUR MINIMUM", "fill about 3/4 full", "Mix", "crème brûlée", "加入两个鸡蛋"],
)
def test_captions_are_text(text):
    assert is_text(text)


def test_texts_without_letters_are_alike_only_if_they_are_the_same():
    assert alike("", "")
    assert not alike("", WHISK)
    assert not alike("ab", "abc")


# --- Which pictures are read


def test_pictures_that_have_not_changed_are_not_read_again(tmp_path, read_pictures_of):
    write_captions(tmp_path / "still.mp4", [WHISK, FOLD], seconds=4)

    assert [tuple(one) for one in read_screen(tmp_path / "still.mp4")] == [(0.0, 8.0, WHISK)]
    assert len(read_pictures_of) == 2


def test_a_caption_in_any_colour_is_a_change(tmp_path, read_pictures_of):
    dark, red = np.zeros((240, 320, 3), np.uint8), np.zeros((240, 320, 3), np.uint8)
    red[160:170, 100:200, 0] = 200
    write_video(tmp_path / "red.mp4", [dark] * 10 + [red] * 10, rate=5)

    read_screen(tmp_path / "red.mp4")

    assert len(read_pictures_of) == 2


@pytest.mark.parametrize(
    ("width", "height", "shape"), [(202, 360, (855, 480)), (64, 64, (480, 480))]
)
def test_pictures_keep_their_shape(tmp_path, width, height, shape):
    path = write_video(tmp_path / "one.mp4", plain(90, 10, width, height), rate=5)

    assert [clip.frames.shape[1:3] for clip in read_pictures(path, 480)] == [shape, shape]


def test_a_phone_video_is_read_upright(tmp_path):
    path = write_video(tmp_path / "phone.mp4", plain(90, 5, 128, 64), rate=5, rotation=(90, False))

    (clip,) = read_pictures(path, 64)

    assert clip.frames.shape[1:3] == (128, 64)


def test_the_size_of_the_picture_may_change(tmp_path, read_pictures_of):
    path = tmp_path / "both.ts"
    parts = []
    for first, size in ((0, (64, 128)), (10, (128, 64))):
        times = [200 * number for number in range(first, first + 10)]
        part = write_video(tmp_path / "part.ts", plain(90, 10, *size), times=times)
        parts.append(part.read_bytes())
    path.write_bytes(b"".join(parts))

    assert len(read_screen(path)) == 1
    assert read_pictures_of == [(960, 480, 3), (480, 960, 3)]


def test_a_very_long_strip_does_not_fill_the_memory(tmp_path):
    path = write_video(tmp_path / "strip.mp4", plain(90, 5, 2000, 16), rate=5)

    (clip,) = read_pictures(path, 480)

    assert clip.frames.shape[1:3] == (480, 1920)


# --- From files


def test_captions_are_read_from_a_file_without_any_connection(
    tmp_path, reader, monkeypatch, capfd
):
    def refuse(*_, **__):
        raise AssertionError("touched the network")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    screen._load_reader.cache_clear()
    path = write_captions(tmp_path / "silent.mp4", ["", WHISK.upper(), "", "fold until\ncombined"])

    assert [tuple(one) for one in read_screen(path)] == [
        (1.5, 4.5, WHISK.upper()),
        (5.5, 8.0, FOLD),
    ]
    assert capfd.readouterr() == ("", "")


def test_a_small_upright_clip_is_read(tmp_path, reader):
    path = write_captions(tmp_path / "up.mp4", [FOLD], width=202, height=360, size=14)

    assert [one.text for one in read_screen(path)] == [FOLD]


def test_text_of_two_pixels_is_not_read(tmp_path, reader):
    path = write_captions(tmp_path / "tiny.mp4", [WHISK], size=2, width=640, height=480)

    assert read_screen(path) == ()


def test_a_broken_packet_does_not_stop_the_reading(tmp_path, read_pictures_of):
    whole = write_captions(tmp_path / "whole.mp4", [WHISK, FOLD], seconds=9)
    path = spoil(whole, tmp_path / "broken.mp4", every=60)

    assert read_screen(path)[-1].end == 18.0


def test_a_file_without_pictures_is_refused(tmp_path):
    path = write_sound(tmp_path / "sound.m4a")

    with pytest.raises(DataError, match=r"sound.m4a: must contain a picture track, got only sou"):
        read_screen(path)


# --- What is kept


def test_what_was_read_is_known_under_any_name(tmp_path, read_pictures_of):
    path = write_captions(tmp_path / "one.mp4", [WHISK])
    read = read_screen(path)
    path = Path(shutil.move(path, tmp_path / "other.mp4"))
    read_pictures_of.clear()

    assert read_screen(path) == read == (Sentence(0.0, 2.0, WHISK),)
    assert not read_pictures_of


@pytest.mark.parametrize(
    "damaged", ["", "{}", '{"sentences": [[2, 1, "x"]]}', '{"sentences": [["a"]]}']
)
def test_what_is_kept_and_damaged_is_read_again(tmp_path, read_pictures_of, damaged):
    path = write_captions(tmp_path / "one.mp4", [WHISK])
    read = read_screen(path)
    (kept,) = (tmp_path / "cache" / "screen").rglob("*.json")
    assert json.loads(kept.read_bytes())["format"] == "stepgraph-screen"
    kept.write_text(damaged)

    assert read_screen(path) == read
    assert len(read_pictures_of) == 2


def test_a_cache_that_cannot_be_written_is_only_said(tmp_path, read_pictures_of):
    path = write_captions(tmp_path / "one.mp4", [WHISK])
    (tmp_path / "cache").write_text("no folder")

    with pytest.warns(UserWarning, match="what was read cannot be kept .* reads again"):
        assert len(read_screen(path)) == 1


def test_an_altered_model_is_refused(tmp_path, reader, monkeypatch):
    models = Path(reader.__file__).parent / "models"
    (tmp_path / "models").mkdir()
    for name in screen.READER_SHA256:
        (tmp_path / "models" / name).symlink_to(models / name)
    (tmp_path / "models" / "PP-OCRv6_rec_small.onnx").unlink()
    (tmp_path / "models" / "PP-OCRv6_rec_small.onnx").write_bytes(b"altered")
    monkeypatch.setattr(reader, "__file__", str(tmp_path / "__init__.py"))
    screen._load_reader.cache_clear()

    with pytest.raises(
        DataError, match=r"rec_small.onnx: the reading model must have sha256 6f32"
    ):
        screen._load_reader()


def test_without_the_extra_the_error_names_the_install_command(tmp_path, monkeypatch):
    path = write_captions(tmp_path / "one.mp4", [WHISK])
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    screen._load_reader.cache_clear()

    with pytest.raises(MissingExtraError, match=r"run: pip install 'stepgraph\[ocr\]'"):
        read_screen(path)


def test_a_text_is_read_where_it_is(reader):
    picture = np.ascontiguousarray(captioned(WHISK, 640, 480, 24, place=(320, 60)))

    (found,) = screen._lines_in(picture)

    left, top, right, bottom = found.box
    assert (found.text, found.confidence > 0.9) == (WHISK, True)
    assert left < 320 < right
    assert top < 60 < bottom
