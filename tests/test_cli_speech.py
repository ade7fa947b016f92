"""The command line on bare files: nothing is written, so they are listened to."""

import csv
import socket

import numpy as np
import pytest

from stepgraph.cli import main
from stepgraph.core import Sentence
from stepgraph.datasets.generated import speaking
from stepgraph.datasets.generated.render import render
from stepgraph.datasets.generated.scripts import Script, Shot
from stepgraph.ingest import speech
from videos import plain, recording, write_speech, write_video

STEPS = """# Tell of two cities
the best of times and the worst of times
the age of wisdom
the epoch of belief
the season of light
the spring of hope and the winter of despair
everything before us
going direct to heaven
the noisiest authorities
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("STEPGRAPH_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "steps.txt").write_text(STEPS, "utf-8")
    (tmp_path / "videos").mkdir()
    return tmp_path / "videos"


@pytest.fixture(autouse=True)
def _offline(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("touched the network")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)


def begins_in(path):
    with open(path, newline="", encoding="utf-8") as file:
        return {row["keystep"]: float(row["start"]) for row in csv.DictReader(file)}


def test_chapters_of_a_bare_video(folder, capsys, monkeypatch):
    write_speech(folder / "talk.mp4", recording("two_cities.wav"), picture=True)
    write_speech(folder / "hush.m4a", np.zeros(speech.RATE))
    write_video(folder / "mute.mp4", plain(0, 5))

    mine = ["mine", "videos", "--vocabulary", "steps.txt", "-o", "graph.json"]
    assert main([*mine, "--skip-bad", "--save-transcripts"]) == 0

    said = capsys.readouterr().err.splitlines()
    assert said[0] == "stepgraph: transcribing: 3 of 3 videos have no transcript"
    assert len(said) == 2
    assert "mute.mp4: must have sound to be transcribed, got none" in said[1]
    assert "hush.m4a: must contain speech" in said[1]
    assert (folder / "talk.srt").is_file()
    (folder / "talk.srt").unlink()

    # What was heard is known, under any name.
    (folder / "talk.mp4").rename("other.mp4")
    monkeypatch.setattr(speech, "_load_moonshine", lambda: pytest.fail("listened again"))
    assert main(["recognize", "other.mp4", "--graph", "graph.json", "-o", "chapters"]) == 0
    assert capsys.readouterr().err == ""
    begins = begins_in("chapters/other.steps.csv")
    assert begins["the season of light"] == pytest.approx(13.2, abs=2)
    assert begins["going direct to heaven"] == pytest.approx(24.4, abs=2)


def test_chapters_of_a_video_with_a_made_up_voice(folder):
    if speaking.speaker() is None:
        pytest.skip("needs espeak-ng")
    steps = ("boil the water", "add the tea leaves", "pour the tea into the cup")
    (folder.parent / "steps.txt").write_text("\n".join(["# Make tea", *steps]), "utf-8")
    said = [f"Now we {one}." for one in steps]
    narration = tuple(Sentence(1 + 7.0 * at, 5 + 7.0 * at, one) for at, one in enumerate(said))
    script = Script("talk", "Make tea", (Shot(0.0, 21.0, "talk"),), narration)
    render(script, folder.parent / "written.mp4")
    speaking.give_voice(script, folder.parent / "written.mp4", folder / "talk.mp4")

    assert main(["mine", "videos", "--vocabulary", "steps.txt", "-o", "graph.json"]) == 0
    assert main(["recognize", "videos/talk.mp4", "--graph", "graph.json", "-o", "chapters"]) == 0

    begins = begins_in("chapters/talk.steps.csv")
    assert begins["add the tea leaves"] == pytest.approx(8, abs=2)
    assert begins["pour the tea into the cup"] == pytest.approx(15, abs=2)


def test_one_file_is_named(folder, capsys):
    write_speech(folder / "talk.wav", np.zeros(speech.RATE), codec="pcm_s16le")

    main(["mine", "videos/talk.wav", "--vocabulary", "steps.txt", "-o", "graph.json"])

    first, *_ = capsys.readouterr().err.splitlines()
    assert first == "stepgraph: transcribing: videos/talk.wav has no transcript"


def test_listening_can_be_turned_off(folder, capsys):
    write_speech(folder / "talk.mp4", np.zeros(speech.RATE), picture=True)
    mine = ["mine", "videos", "--vocabulary", "steps.txt", "-o", "graph.json"]

    assert main([*mine, "--no-speech"]) == 1

    [line] = capsys.readouterr().err.splitlines()
    assert "talk.mp4: must contain a text track, got none" in line


def test_two_ways_of_listening_exclude_each_other(folder, capsys):
    with pytest.raises(SystemExit):
        main(["mine", "videos", "--no-speech", "--speech", "model"])

    assert "not allowed with" in capsys.readouterr().err
