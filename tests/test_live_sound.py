"""Sound as it is recorded: where it is cut, when it is told, and what becomes of rubbish."""

import io
import shutil
import struct
import subprocess
import threading
import time
import wave
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from stepgraph.assistant import live_sound
from stepgraph.assistant.live_reading import ArrivedSentence
from stepgraph.assistant.live_sound import listen_live
from stepgraph.cli import main
from stepgraph.core import Sentence
from stepgraph.errors import DataError
from test_cli import failed
from test_cli_live import graph  # noqa: F401

RATE = 16_000


def samples(*loudness):
    """Half a second of noise for each loudness."""
    rng = np.random.default_rng(0)
    sound = [one * rng.uniform(-1, 1, RATE // 2) for one in loudness]
    return (np.concatenate(sound) * 32767).astype("<i2").tobytes()


def wav(data, rate=RATE, channels=1):
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(channels)
        written.setsampwidth(2)
        written.setframerate(rate)
        written.writeframes(data)
    return file.getvalue()


@pytest.fixture
def pieces(monkeypatch):
    """The pieces that were heard, in place of the model: where each begins, and its seconds."""
    heard = []

    def hear(at, piece):
        heard.append((round(at, 3), round(len(piece) / RATE, 3)))
        return (Sentence(at, at + len(piece) / RATE, f"piece {len(heard)}"),)

    monkeypatch.setattr(live_sound, "hear_piece", hear)
    return heard


def test_sound_is_cut_at_pauses_and_time_goes_on(pieces):
    talk = samples(*[1] * 5, 0, 0, *[1] * 4, 0)

    found = list(listen_live(io.BytesIO(talk), "-"))

    assert pieces == [(0, 3.0), (3.0, 3.0)]
    spoken = [(one.now, one.sentence.text) for one in found if isinstance(one, ArrivedSentence)]
    assert spoken == [(3.0, "piece 1"), (6.0, "piece 2")]
    assert [one for one in found if isinstance(one, float)] == [1, 2, 3, 4, 5, 6]


def test_who_never_pauses_is_cut_where_it_is_quietest(pieces):
    list(listen_live(io.BytesIO(samples(*[1] * 11, 0.5, *[1] * 18)), "-"))

    assert 5.5 <= pieces[0][1] <= 6
    assert max(length for _, length in pieces) <= 9.5
    assert sum(length for _, length in pieces) == pytest.approx(15)


def test_a_wave_file_is_its_samples(pieces):
    data = samples(1, 1, 1, 1, 0)
    plain, sounds = wav(data), [data, wav(data)]
    for listed in (b"some", b"odd\0", bytes(200_000)):  # what has an odd length is filled up
        size = struct.pack("<I", len(listed.rstrip(b"\0")) or len(listed))
        sounds.append(plain[:12] + b"LIST" + size + listed + plain[12:])
    for sound in sounds:
        list(listen_live(io.BytesIO(sound), "-"))

    assert pieces == [(0, 2.5)] * 5


def test_a_length_that_is_not_true_takes_no_memory(pieces):
    class Stream(io.BytesIO):
        asked = 0

        def read(self, size):
            self.asked = max(self.asked, size)
            return super().read(size)

    stream = Stream(b"RIFF\xff\xff\xff\xffWAVELIST\xff\xff\xff\xffsome")

    assert list(listen_live(stream, "-")) == pieces == []
    assert stream.asked < 100_000


@pytest.mark.parametrize("data", [b"", b"x", b"RIFF", wav(b"")[:20], wav(b"")])
def test_nothing_and_half_a_sample_give_nothing(pieces, data):
    assert list(listen_live(io.BytesIO(data), "-")) == pieces == []


def test_sound_that_ends_within_a_sample_is_heard_up_to_it(pieces):
    list(listen_live(io.BytesIO(samples(1, 1)[:-1]), "-"))

    assert pieces == [(0, pytest.approx(1, abs=1e-3))]


def test_sound_of_another_kind_is_refused():
    with pytest.raises(DataError, match=r"a\.wav: sound must have 16000 .* got 48000, 2 and 16"):
        list(listen_live(io.BytesIO(wav(bytes(400), 48_000, 2)), "a.wav"))


def test_a_file_that_grows_is_waited_for(pieces, tmp_path):
    whole, file = wav(samples(1, 1, 1, 1, 0, 1, 1, 1, 1, 0)), tmp_path / "a.wav"
    file.write_bytes(whole[:50_001])

    def grow():
        time.sleep(0.3)
        with file.open("ab") as more:
            more.write(whole[50_001:])

    threading.Thread(target=grow, daemon=True).start()
    with file.open("rb") as stream:
        found = list(islice(listen_live(stream, "a.wav", follow=True), 7))

    assert pieces == [(0, 2.5), (2.5, 2.5)]
    assert [one for one in found if isinstance(one, float)] == [1, 2, 3, 4, 5]


def test_one_of_both_must_be_given(graph, capsys):  # noqa: F811
    for given in ([], ["--listen", "a.wav", "--transcript", "said.txt"]):
        with pytest.raises(SystemExit) as left:
            main(["live", "--graph", "graph.json", *given])
        assert left.value.code == 2
    Path("music.wav").write_bytes(wav(bytes(400), 44_100))
    capsys.readouterr()
    listen = ["live", "--graph", "graph.json", "--listen"]
    assert "sound must have 16000 samples" in failed(capsys, *listen, "music.wav")
    assert "no such file" in failed(capsys, *listen, "none.wav")


@pytest.mark.skipif(not shutil.which("espeak-ng"), reason="nobody speaks")
def test_what_is_spoken_is_told(graph, capsys):  # noqa: F811
    pytest.importorskip("moonshine_voice")
    text = "Now I boil the water in a pot. <break time='2s'/> Then I add the tea leaves to it."
    spoken = subprocess.run(
        ["espeak-ng", "-m", "--stdout", text], capture_output=True, check=True
    ).stdout
    sound = np.frombuffer(spoken[44 : len(spoken) // 2 * 2], "<i2")
    at = np.arange(0, len(sound), 22_050 / RATE)
    Path("said.wav").write_bytes(wav(np.interp(at, np.arange(len(sound)), sound).astype("<i2")))
    capsys.readouterr()

    assert main(["live", "--graph", "graph.json", "--listen", "said.wav", "--delay", "2"]) == 0

    said = capsys.readouterr().out
    assert "Make tea" in said
    assert "boil the water" in said
