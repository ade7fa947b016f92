"""The built-in speech model: what it hears, when, once, and what it makes of bad files."""

import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import tracemalloc
from collections import deque
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from stepgraph.datasets import open_source
from stepgraph.errors import DataError, MissingExtraError
from stepgraph.files.disk import cache_folder
from stepgraph.ingest import Listening, open_video, read_transcript, speech
from stepgraph.problems import Problems
from videos import plain, recording, write_speech, write_video

pytest.importorskip("av")
moonshine = pytest.importorskip("moonshine_voice")
ASSETS = Path(moonshine.get_assets_path())
BECKETT = ["ever", "tried", "ever", "failed", "no", "matter", "try", "again"]
RATE = speech.RATE


@pytest.fixture(scope="session")
def beckett():
    """Ten seconds: "Ever tried. Ever failed. No matter. Try again. ..."."""
    return recording("beckett.wav")


@pytest.fixture(scope="session")
def tried(beckett):
    """The first three seconds of it."""
    return beckett[: int(3.2 * RATE)]


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("STEPGRAPH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def deaf(monkeypatch):
    """Let nothing be listened to any more."""

    monkeypatch.setattr(speech, "_load_moonshine", lambda: pytest.fail("listened"))


def words_in(sentences):
    return re.findall(r"[a-z']+", " ".join(one.text for one in sentences).lower())


def open_quietly(path, **how):
    problems = Problems()
    return open_video(path, problems=problems, **how), problems


def test_known_words_are_heard_in_order_of_time():
    heard = speech.hear(ASSETS / "two_cities.wav")

    said = " ".join(words_in(heard.sentences))
    for known in ("the best of times it was the worst of times", "age of foolishness", "in short"):
        assert said.count(known) == 1
    assert said.endswith("in the superlative degree of comparison only")
    assert all(a.start < a.end <= b.start < b.end for a, b in pairwise(heard.sentences))
    assert heard.end == pytest.approx(44.37, abs=0.1)
    assert heard.damaged == 0


def test_a_step_is_timed_to_the_second_wherever_it_is_said(tmp_path, beckett):
    times, sound = (7.0, 31.5), np.zeros(42 * RATE, np.float32)
    for at in times:
        sound[int(at * RATE) :][: len(beckett)] = beckett

    video, _ = open_quietly(write_speech(tmp_path / "talk.mp4", sound, picture=True))

    found = [one.start for one in video.transcript if one.text.startswith("No matter")]
    assert found == pytest.approx([at + 3.3 for at in times], abs=1.0)
    assert video.duration == pytest.approx(42, abs=0.3)


@pytest.mark.parametrize(
    ("name", "codec", "rate", "layout"),
    [
        ("talk.mp3", "libmp3lame", 44100, "stereo"),
        ("talk.m4a", "aac", 48000, "5.1"),
        ("talk.wav", "pcm_s16le", 8000, "mono"),
        ("talk.flac", "flac", 96000, "stereo"),
        ("talk.ogg", "libopus", 48000, "mono"),
    ],
)
def test_sound_of_any_kind_is_a_source(tmp_path, tried, name, codec, rate, layout):
    write_speech(tmp_path / name, tried, codec=codec, rate=rate, layout=layout)

    [video] = open_source(tmp_path).videos

    assert video.id == "talk"
    assert words_in(video.transcript)[:4] == BECKETT[:4]
    assert video.duration == pytest.approx(3.2, abs=0.2)


def test_of_a_video_and_its_sound_the_video_is_taken(tmp_path, tried):
    write_speech(tmp_path / "talk.wav", tried, codec="pcm_s16le")
    write_speech(tmp_path / "talk.mp4", tried, picture=True)

    [video] = open_source(tmp_path).videos

    assert video.path == tmp_path / "talk.mp4"


def test_what_was_heard_is_not_listened_to_again(tmp_path, tried, monkeypatch):
    path = write_speech(tmp_path / "talk.wav", tried, codec="pcm_s16le")
    first = speech.hear(path)
    monkeypatch.setattr(speech, "_load_moonshine", lambda: pytest.fail("listened again"))

    assert speech.hear(path) == first
    assert speech.hear(shutil.copy(path, tmp_path / "copy.wav")) == first
    assert words_in(first.sentences)[:2] == BECKETT[:2]


@pytest.mark.parametrize("damage", ["", "{", "[]"])
def test_what_is_kept_but_damaged_is_heard_anew(tmp_path, tried, damage):
    path = write_speech(tmp_path / "talk.wav", tried, codec="pcm_s16le")
    first = speech.hear(path)
    [kept] = cache_folder().rglob("*.json")
    kept.write_text(damage)

    again = speech.hear(path)

    # On a busy machine its times may differ by a hundredth of a second or a few.
    assert [one.text for one in again.sentences] == [one.text for one in first.sentences]
    assert speech.recall(path) == again


def test_a_file_with_another_sound_is_heard_anew(tmp_path, tried, monkeypatch):
    path = write_speech(tmp_path / "talk.wav", tried, codec="pcm_s16le")
    speech.hear(path)
    write_speech(path, tried[: 2 * RATE], codec="pcm_s16le")
    os.utime(path, ns=(1, 1))

    assert speech.recall(path) is None


def test_a_cache_that_cannot_be_written_is_only_said(tmp_path, tried, monkeypatch):
    path = write_speech(tmp_path / "talk.wav", tried, codec="pcm_s16le")
    (tmp_path / "cache").write_text("no folder")

    with pytest.warns(UserWarning, match="the transcript cannot be cached"):
        heard = speech.hear(path)

    assert words_in(heard.sentences)[:2] == BECKETT[:2]


def test_no_connection_is_opened(tmp_path, tried, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("touched the network")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    speech._load_moonshine.cache_clear()

    video, problems = open_quietly(write_speech(tmp_path / "talk.mp4", tried, picture=True))

    assert words_in(video.transcript)[:4] == BECKETT[:4]
    assert not problems


def test_a_killed_run_keeps_what_it_has_heard(tmp_path, tried):
    folder = tmp_path / "videos"
    folder.mkdir()
    for number in range(3):
        write_speech(folder / f"{number}.wav", tried[number:], codec="pcm_s16le")
    code = f"import stepgraph as sg; sg.open_source({str(folder)!r})"
    kept = tmp_path / "cache" / "speech"
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as run:
        until = time.monotonic() + 300
        while not list(kept.rglob("*.json")) and run.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        run.send_signal(signal.SIGKILL)
    before = {path: path.stat().st_mtime_ns for path in kept.rglob("*.json")}
    assert before

    videos = open_source(folder).videos

    assert [words_in(video.transcript)[:4] for video in videos] == [BECKETT[:4]] * 3
    after = {path: path.stat().st_mtime_ns for path in kept.rglob("*") if path.is_file()}
    assert len(after) == 3
    assert before.items() <= after.items()


def test_what_was_heard_is_saved_as_a_transcript(tmp_path, tried, monkeypatch):
    path = write_speech(tmp_path / "talk.mp4", tried, picture=True)

    video, _ = open_quietly(path, listening=Listening(save=True))

    assert read_transcript(tmp_path / "talk.srt") == video.transcript
    shutil.rmtree(tmp_path / "cache")
    monkeypatch.setattr(speech, "_load_moonshine", lambda: pytest.fail("listened again"))
    assert open_video(path) == video


def test_who_does_not_listen_refuses_a_file_without_a_transcript(tmp_path, tried, deaf):
    path = write_speech(tmp_path / "talk.mp4", tried, picture=True)

    with pytest.raises(
        DataError, match=r"must contain a text track, got none; .* speech recognition"
    ):
        open_video(path, listening=Listening(uses_speech=False))
    video = open_video(path, listening=Listening(needed=False, uses_speech=False))
    assert video.transcript == ()


def test_a_video_without_sound_stops_no_other(tmp_path, tried):
    write_video(tmp_path / "mute.mp4", plain(0, 5))
    write_speech(tmp_path / "talk.mp4", tried, picture=True)

    dataset = open_source(tmp_path)

    assert [video.id for video in dataset.videos] == ["talk"]
    [problem] = dataset.problems.failed.found
    assert str(problem).startswith(f"{tmp_path}/mute.mp4: must have sound to be transcribed, got")
    with pytest.raises(DataError, match="must have sound to be transcribed"):
        open_source(tmp_path / "mute.mp4")
    with pytest.raises(DataError, match="must have sound to be transcribed"):
        open_source(tmp_path, strict=True)


def test_who_also_looks_needs_no_sound(tmp_path):
    path = write_video(tmp_path / "mute.mp4", plain(0, 25))

    video, problems = open_quietly(path, listening=Listening(needed=False))

    assert video.transcript == ()
    assert "video without sound" in problems.counts


def music(seconds):
    """A tune of plucked strings, and a drum."""
    rng, at = np.random.default_rng(0), np.arange(RATE) / RATE
    sound = np.zeros(int((seconds + 1) * RATE))
    for beat in range(int(4 * seconds)):
        tone = 220 * 2 ** (rng.integers(24) / 12)
        string = sum(np.sin(2 * np.pi * tone * high * at) / high for high in (1, 2, 3, 4))
        drum = np.exp(-30 * at) * rng.standard_normal(RATE) * (beat % 2)
        sound[beat * RATE // 4 :][:RATE] += 0.15 * string * np.exp(-4 * at) + 0.2 * drum
    return sound[: int(seconds * RATE)]


@pytest.mark.parametrize("sound", [np.zeros(12 * RATE), music(12)], ids=["silence", "music"])
def test_where_nothing_is_said_nothing_is_heard(tmp_path, sound):
    path = write_speech(tmp_path / "tune.m4a", sound)

    video, problems = open_quietly(path)

    assert video.transcript == ()
    assert "tune.m4a: must contain speech, got silence or music" in str(problems.found[0])


def test_a_file_is_heard_the_same_whatever_was_heard_before(tmp_path, beckett):
    path = write_speech(tmp_path / "talk.flac", beckett, codec="flac")
    noise = np.random.default_rng(0).normal(0, 0.1, 5 * RATE).astype(np.float32)
    others = write_speech(tmp_path / "noise.flac", noise, codec="flac")

    heard = []
    for _ in range(2):
        heard.append(speech._listen(path))
        speech._listen(others)

    first, again = ([one.text for one in each.sentences] for each in heard)
    starts = [[one.start for one in each.sentences] for each in heard]
    assert first[0] == "Ever tried."
    assert again == first
    # Where a voice begins still depends a little on what was heard before.
    assert starts[1] == pytest.approx(starts[0], abs=0.3)


def test_a_damaged_stretch_costs_only_itself(tmp_path, beckett):
    sound = np.concatenate([beckett, np.zeros(5 * RATE, np.float32), beckett])
    path = write_speech(tmp_path / "talk.flac", sound, codec="flac")
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle - 3000 : middle + 3000] = np.random.default_rng(0).bytes(6000)
    path.write_bytes(data)

    video, _ = open_quietly(path)

    begins = [one.start for one in video.transcript if one.text.startswith("Ever tried")]
    assert begins == pytest.approx([0.1, 15.1], abs=2.0)


def test_packets_that_cannot_be_decoded_are_counted(tmp_path, tried, monkeypatch):
    import av

    path = write_speech(tmp_path / "talk.mp4", tried, picture=True)
    packets_of = speech.packets_of

    class Broken:
        def __init__(self, track):
            self.track, self.metadata, self.seen = track, track.metadata, 0

        def decode(self, packet):
            self.seen += 1
            if self.seen in (20, 21):
                raise av.error.InvalidDataError(1, "broken")
            return self.track.decode(packet)

    track_of = speech.track_of_sound
    monkeypatch.setattr(speech, "track_of_sound", lambda *args: Broken(track_of(*args)))
    monkeypatch.setattr(
        speech, "packets_of", lambda container, broken: packets_of(container, broken.track)
    )

    video, problems = open_quietly(path)

    assert "sound must be whole, got 2 packets that cannot be decoded" in problems.summary()
    assert video.transcript[-1].end == pytest.approx(3.1, abs=0.3)  # times are the file's own


@pytest.mark.parametrize("stated", [1.0, 36_000_000.0], ids=["too short", "too long"])
def test_a_wrong_duration_in_the_header_is_not_believed(tmp_path, tried, stated):
    path = write_speech(tmp_path / "talk.mkv", tried, picture=True)
    data = bytearray(path.read_bytes())
    place = data.index(b"\x44\x89\x88") + 3
    data[place : place + 8] = struct.pack(">d", stated)  # milliseconds
    path.write_bytes(data)

    video, _ = open_quietly(path)

    assert video.duration == pytest.approx(3.2, abs=0.3)


def test_sound_that_cannot_be_decoded_at_all_is_refused(tmp_path, tried):
    path = write_speech(tmp_path / "talk.wav", tried, codec="pcm_s16le")
    path.write_bytes(path.read_bytes()[:78])

    with pytest.raises(DataError, match=r"talk.wav: (sound must be decodable|must be a readable)"):
        open_quietly(path)


def test_without_the_extra_the_error_names_the_install_command(tmp_path, tried, monkeypatch):
    path = write_speech(tmp_path / "talk.mp4", tried, picture=True)
    monkeypatch.setitem(sys.modules, "moonshine_voice", None)
    speech._load_moonshine.cache_clear()

    with pytest.raises(MissingExtraError, match=r"run: pip install 'stepgraph\[video\]', or put"):
        open_video(path)


@pytest.mark.parametrize("content", [b"altered", None], ids=["altered", "missing"])
def test_an_altered_or_missing_model_is_refused(tmp_path, monkeypatch, content):
    folder = tmp_path / "assets" / "tiny-en"
    folder.mkdir(parents=True)
    for name in speech.MOONSHINE_SHA256:
        (folder / name).symlink_to(ASSETS / "tiny-en" / name)
    (folder / "tokenizer.bin").unlink()
    if content is not None:
        (folder / "tokenizer.bin").write_bytes(content)
    monkeypatch.setattr(moonshine, "get_assets_path", lambda: folder.parent)
    speech._load_moonshine.cache_clear()

    got = "got no such file" if content is None else "got [0-9a-f]{64}"
    with pytest.raises(
        DataError, match=rf"tokenizer.bin: the speech model must have sha256 6884.*{got}; reinstal"
    ):
        speech._load_moonshine()


def test_two_hours_are_held_for_seconds_only():
    minute = np.zeros(60 * RATE, np.float32)
    tracemalloc.start()

    last = deque(speech.cut((None if at else 0.0, minute) for at in range(120)), maxlen=1)

    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert last[0][0] + len(last[0][1]) / RATE == pytest.approx(7200)
    assert most < 30e6


def test_without_a_list_of_problems_a_warning_says_them(tmp_path):
    path = write_speech(tmp_path / "hush.wav", np.zeros(RATE), codec="pcm_s16le")

    with pytest.warns(UserWarning, match="1 video without speech .*hush.wav"):
        open_video(path)
