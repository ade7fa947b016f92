"""Video files: their duration and the text track inside them."""

import sys
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest

from stepgraph.core import Sentence
from stepgraph.errors import DataError, MissingExtraError
from stepgraph.ingest import media, open_video
from stepgraph.ingest.cleaning import Cue
from stepgraph.ingest.media import end_of, media_duration, read_embedded_transcript

CUES = [(0.5, 2.0, "crack the eggs"), (2.0, 4.0, "whisk them\nwell, really"), (6.0, 8.0, "pour")]
SENTENCES = (
    Sentence(0.5, 2.0, "crack the eggs"),
    Sentence(2.0, 4.0, "whisk them well, really"),
    Sentence(6.0, 8.0, "pour"),
)


def as_mov_text(text):
    data = text.encode()
    return len(data).to_bytes(2, "big") + data


def as_ass(text):
    return ("0,0,Default,,0,0,0,," + r"{\an8}" + text.replace("\n", r"\N")).encode()


def write_video(path, codec=None, payload=str.encode, cues=CUES, begin=0):
    """Write ten seconds of black, and the cues as a text track if a codec is given.

    All times of the file are later by ``begin`` seconds, as in a piece of a recording.
    """
    av = pytest.importorskip("av")
    with av.open(str(path), "w") as container:
        picture = container.add_stream("mpeg4", rate=10)
        picture.width, picture.height, picture.pix_fmt = 64, 48, "yuv420p"
        track = container.add_stream(codec) if codec else None
        if codec:
            track.codec_context.subtitle_header = b"[Script Info]\n"
        for number in range(100):
            frame = av.VideoFrame(64, 48, "yuv420p")
            frame.pts, frame.time_base = 10 * begin + number, Fraction(1, 10)
            for plane in frame.planes:
                plane.update(bytes(plane.buffer_size))
            container.mux(picture.encode(frame))
        container.mux(picture.encode())
        for start, end, text in cues if codec else ():
            packet = av.Packet(payload(text))
            packet.stream, packet.time_base = track, Fraction(1, 1000)
            packet.pts = packet.dts = round(1000 * (begin + start))
            if end is not None:
                packet.duration = round(1000 * (end - start))
            container.mux(packet)
    return path


@pytest.mark.parametrize(
    ("name", "codec", "payload"),
    [
        ("talk.mp4", "mov_text", as_mov_text),
        ("talk.mkv", "subrip", str.encode),
        ("talk.mkv", "ass", as_ass),
        ("talk.mkv", "webvtt", str.encode),
    ],
)
def test_the_text_track_of_a_video_is_its_transcript(tmp_path, name, codec, payload):
    path = write_video(tmp_path / name, codec, payload)

    assert read_embedded_transcript(path) == SENTENCES


def test_times_of_a_text_track_count_from_where_players_show_0(tmp_path):
    path = write_video(tmp_path / "talk.mkv", "subrip", begin=100)

    assert read_embedded_transcript(path) == SENTENCES


def test_markup_of_a_text_track_is_not_speech(tmp_path):
    path = write_video(tmp_path / "talk.mkv", "subrip", cues=[(1.0, 2.0, "add <i>the</i> egg")])

    assert read_embedded_transcript(path) == (Sentence(1.0, 2.0, "add the egg"),)


def test_a_cue_of_a_text_track_that_does_not_say_how_long_it_is_shown_lasts_a_second(tmp_path):
    path = write_video(tmp_path / "talk.mkv", "subrip", cues=[(1.5, None, "add the egg")])

    assert read_embedded_transcript(path) == (Sentence(1.5, 2.5, "add the egg"),)


@pytest.mark.parametrize("name", ["talk.mp4", "talk.mkv", "talk.avi"])
def test_duration_is_that_of_the_file(tmp_path, name):
    assert media_duration(write_video(tmp_path / name)) == pytest.approx(10.0, abs=0.11)


def test_duration_that_is_not_stated_is_found_by_reading(tmp_path):
    av = pytest.importorskip("av")
    path = write_video(tmp_path / "talk.mkv")
    live = tmp_path / "live.mkv"
    with av.open(str(path)) as source, av.open(str(live), "w", options={"live": "1"}) as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.pts is not None:
                packet.stream = stream
                target.mux(packet)
    with av.open(str(live)) as container:
        assert container.duration is None

    assert media_duration(live) == pytest.approx(10.0, abs=0.11)


def stating(monkeypatch, microseconds):
    """Make every file one that states a duration."""
    container = SimpleNamespace(duration=microseconds)
    monkeypatch.setattr("stepgraph.ingest.media.opened", lambda path: nullcontext(container))


def test_a_duration_is_stated_in_microseconds(monkeypatch):
    stating(monkeypatch, 90_500_000)

    assert media_duration("talk.mp4") == 90.5
    stating(monkeypatch, 500_000)
    assert media_duration("talk.mp4") == 0.5


def test_a_file_that_lasts_no_time_is_refused(monkeypatch):
    stating(monkeypatch, 0)

    with pytest.raises(DataError, match=r"talk.mp4: must last longer than 0 s, got 0.0; is it"):
        media_duration("talk.mp4")


def test_a_video_without_a_text_track_says_what_to_do(tmp_path):
    path = write_video(tmp_path / "talk.mp4")

    with pytest.raises(
        DataError, match=r"talk.mp4: must contain a text track, got none; .*talk.srt"
    ):
        read_embedded_transcript(path)


def test_a_file_that_is_no_video_is_refused(tmp_path):
    pytest.importorskip("av")
    path = tmp_path / "talk.mp4"
    path.write_bytes(b"no video at all" * 100)

    with pytest.raises(
        DataError, match=r"talk.mp4: must be a readable video file, got Invalid data"
    ):
        media_duration(path)


def test_a_cut_off_video_is_refused(tmp_path):
    path = write_video(tmp_path / "talk.mp4")
    path.write_bytes(path.read_bytes()[:300])

    with pytest.raises(DataError, match=r"talk.mp4: must be a readable video file"):
        media_duration(path)


@pytest.mark.parametrize(("name", "got"), [("none.mp4", "no such file"), ("", "a folder")])
def test_a_missing_video_is_refused(tmp_path, name, got):
    pytest.importorskip("av")
    with pytest.raises(DataError, match=f": must be a video file, got {got}; check the path"):
        media_duration(tmp_path / name)


def test_without_the_extra_the_error_names_the_install_command(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    path = tmp_path / "talk.mp4"
    path.touch()

    with pytest.raises(MissingExtraError, match="needs the 'video' extra; run: pip install av"):
        open_video(path)


def test_a_video_is_opened_with_its_text_track(tmp_path):
    path = write_video(tmp_path / "talk.mp4", "mov_text", as_mov_text)

    video = open_video(path)

    assert (video.id, video.path, video.transcript) == ("talk", path, SENTENCES)
    assert video.duration == pytest.approx(10.0, abs=0.11)


def test_a_transcript_beside_a_video_goes_before_its_text_track(tmp_path):
    path = write_video(tmp_path / "talk.mp4", "mov_text", as_mov_text)
    (tmp_path / "talk.en.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nhello\n", "utf-8")

    video = open_video(path)

    assert video.transcript == (Sentence(1.0, 2.0, "hello"),)
    assert video.duration == pytest.approx(10.0, abs=0.11)


def test_metadata_in_another_encoding_are_no_obstacle(tmp_path):
    path = write_video(tmp_path / "talk.mp4", "mov_text", as_mov_text)
    data = path.read_bytes()
    assert b"Lavf" in data
    path.write_bytes(data.replace(b"Lavf", b"La\xffv", 1))

    assert read_embedded_transcript(path)


@pytest.mark.parametrize(("pts", "duration", "end"), [(6, 2, 4.0), (6, None, 3.0), (None, 2, 0.0)])
def test_a_packet_ends_when_what_it_shows_does(pts, duration, end):
    packet = SimpleNamespace(pts=pts, duration=duration, time_base=Fraction(1, 2))

    assert end_of(packet) == end


@pytest.mark.parametrize(
    ("stated", "sound", "expected"),
    [
        *[(9.0, 10.0, 9.0), (8.9, 10.0, 33.0), (80.0, 10.0, 80.0), (80.1, 10.0, 33.0)],
        *[(500.0, 0.0, 500.0), (None, 0.0, 33.0), (None, 10.0, 33.0)],
    ],
)
def test_what_does_not_go_with_the_sound_is_read_to_its_end(monkeypatch, stated, sound, expected):
    packets = [SimpleNamespace(pts=pts, duration=300, time_base=0.01) for pts in (3000, None, 9)]
    container = SimpleNamespace(
        duration=stated and 1_000_000 * stated, demux=lambda *_: iter(packets)
    )
    monkeypatch.setattr(media, "opened", lambda path: nullcontext(container))

    assert media_duration(Path("v.mp4"), sound) == pytest.approx(expected)


def test_a_track_ends_with_what_has_neither_a_time_nor_a_size():
    given = [(1, 5), (None, 5), (3, 0), (None, 0), (9, 9)]
    packets = [SimpleNamespace(dts=dts, size=size) for dts, size in given]

    found = [*media.packets_of(SimpleNamespace(demux=lambda _: iter(packets)), None)]

    assert found == [*packets[:3], None]


def test_cues_of_a_track_may_come_in_any_order(monkeypatch):
    starts = [50.0, 3.0, 20.0, 90.0]
    packets = [SimpleNamespace(pts=at) for at in (*starts, None)]
    container = SimpleNamespace(start_time=None, demux=lambda *_: packets)
    monkeypatch.setattr(media, "opened", lambda path: nullcontext(container))
    monkeypatch.setattr(media, "_text_track", lambda *_: None)
    monkeypatch.setattr(
        media, "_cues_of", lambda packet, *_: [Cue(packet.pts, packet.pts + 1, "stir", "here")]
    )

    found = media.read_embedded_transcript(Path("v.mp4"))

    assert [one.start for one in found] == sorted(starts)
