"""What is read on the screen: lines as sentences with their times, and never downloaded."""

import hashlib
import json
import shutil
import socket
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from stepgraph.core import Sentence, Video
from stepgraph.errors import DataError, MissingExtraError
from stepgraph.ingest import screen
from stepgraph.ingest.frames import read_pictures
from stepgraph.ingest.screen import ScreenLine, read_screen
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
    return ScreenLine(text, confidence, (left, top, left + 10 * len(text), top + 20))


# --- Which pictures are read


def test_a_picture_is_compared_by_the_mean_colours_of_blocks_of_eight_pixels():
    picture = np.zeros((17, 31, 3), np.uint8)
    picture[8:16, 16:24, 1] = 64
    picture[8, 16, 1] = 0
    picture[16, :] = picture[:, 24:] = 200  # less than a block

    blocks = screen._blocks(picture)

    assert blocks.shape == (2, 3, 3)
    assert blocks[1, 2].tolist() == [0, 63, 0]
    assert blocks.sum() == 63


def test_a_picture_is_read_again_where_a_block_changed_by_more_than_eight(monkeypatch):
    counted = []
    pictures = [np.full((8, 8, 3), level, np.uint8) for level in (100, 108, 117, 108, 100)]
    clips = [SimpleNamespace(frames=[one], end=at + 1.0) for at, one in enumerate(pictures)]
    monkeypatch.setattr(screen, "read_pictures", lambda path, side: clips[:: side // 480])
    monkeypatch.setattr(screen, "media_duration", lambda path: 4.5)
    monkeypatch.setattr(screen, "_lines_in", lambda picture: [int(picture[0, 0, 0])])

    @contextmanager
    def counting(label, total):
        counted.extend([label, total])
        yield counted.append

    monkeypatch.setattr(screen.progress, "counting", counting)

    rows, end = screen._read(Path("talk.mp4"))

    assert rows == [[100], [100], [117], [108], [108]]
    assert end == 5.0
    assert counted == ["reading text in talk.mp4", 5, 1, 1, 1, 1, 1]


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


def test_a_turned_picture_of_any_width_is_read(tmp_path):
    pictures = plain(90, 5, 100, 128)
    path = write_video(tmp_path / "phone.mp4", pictures, rate=5, rotation=(90, False))

    (clip,) = read_pictures(path, 50)

    assert clip.frames.shape[1:3] == (50, 64)


def test_the_ends_of_a_very_long_picture_are_seen(tmp_path):
    picture = np.zeros((64, 640, 3), np.uint8)
    picture[:, :100] = picture[:, -100:] = 200
    path = write_video(tmp_path / "long.mp4", [picture] * 5, rate=5)

    (clip,) = read_pictures(path, 64)

    assert clip.frames.shape[1:3] == (64, 256)
    assert [int(clip.frames[0, 32, x, 0]) > 100 for x in (4, 128, 251)] == [True, False, True]


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


def test_a_recording_that_does_not_state_how_long_it_is_is_read_to_its_end(tmp_path):
    av = pytest.importorskip("av")
    path, live = write_video(tmp_path / "one.mkv", plain(90, 15), rate=5), tmp_path / "live.mkv"
    with av.open(str(path)) as source, av.open(str(live), "w", options={"live": "1"}) as target:
        track = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.pts is not None:
                packet.stream = track
                target.mux(packet)

    assert [(clip.start, clip.end) for clip in read_pictures(live, 64)] == [
        *((0.0, 1.0), (1.0, 2.0), (2.0, 3.0))
    ]


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

    with pytest.warns(
        UserWarning, match="the text in the picture cannot be cached .* reads it again"
    ):
        assert len(read_screen(path)) == 1


def test_it_is_said_how_many_videos_are_read(tmp_path, read_pictures_of, monkeypatch):
    said = []
    monkeypatch.setattr(screen.progress, "note", said.append)
    first, second = (write_captions(tmp_path / f"{name}.mp4", [name]) for name in ("one", "two"))
    videos = [Video(name, 2.0, path=path) for name, path in (("a", first), ("b", second))]
    others = [Video("c", 2.0), Video("d", 2.0, path=tmp_path / "gone.mp4")]

    screen.note_screen_reading(videos[:1])
    screen.note_screen_reading([*videos, *others])
    read_screen(first)
    screen.note_screen_reading([*videos, *others])
    screen.note_screen_reading([*videos[:1], *others])
    screen.note_screen_reading(others)

    assert said == [
        f"reading text in the picture: {first}",
        "reading text in the picture: 2 of 4 videos are new",
        "reading text in the picture: 1 of 4 videos are new",
    ]


def test_what_was_read_lies_where_the_next_release_looks_for_it(tmp_path, read_pictures_of):
    path = write_captions(tmp_path / "one.mp4", [WHISK])
    read_screen(path)

    name = hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
    place = tmp_path / "cache" / "screen" / "ppocr-6f327246-1" / f"{name}.json"
    assert json.loads(place.read_text()) == {
        "format": "stepgraph-screen",
        "version": 1,
        "sentences": [[0.0, 2.0, WHISK]],
    }


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


def test_the_two_models_that_are_carried_are_all_that_reads(tmp_path, monkeypatch):
    given = []
    fake = SimpleNamespace(__file__=str(tmp_path / "__init__.py"))
    fake.RapidOCR = lambda params: given.append(params)
    monkeypatch.setitem(sys.modules, "rapidocr", fake)
    monkeypatch.setattr(screen.media_cache, "require_hashes", lambda *_: None)
    screen._load_reader.cache_clear()

    screen._load_reader()
    screen._load_reader.cache_clear()

    find, read = (str(tmp_path / "models" / name) for name in screen.READER_SHA256)
    assert given == [
        {
            **{"Det.model_path": find, "Rec.model_path": read, "Det.limit_side_len": 480},
            "Global.use_cls": False,  # a third one, which turns lines, might be fetched
            "Global.log_level": "critical",
        }
    ]


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
