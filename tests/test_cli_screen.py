"""The command line on silent videos: nothing is said, so what is written is read."""

import json
import sys
from itertools import count
from pathlib import Path

import pytest

import stepgraph as sg
from stepgraph.cli import main, verbs
from stepgraph.datasets import generated
from stepgraph.ingest import screen
from videos import write_captions, write_sound

pytest.importorskip("rapidocr", reason="reading needs the 'ocr' extra")

STEPS = ("crack the eggs", "whisk the milk", "fry the toast")
SHOWN = ("crack two eggs now", "whisk all of the milk", "fry the toast slowly")
READ = ("--encoder", "ocr")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("STEPGRAPH_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("steps.txt").write_text("# Make toast\n" + "\n".join(STEPS) + "\n")
    Path("videos").mkdir()
    write_captions(Path("videos/a.mp4"), SHOWN, seconds=4)
    write_captions(Path("videos/b.mp4"), SHOWN[1:], seconds=4, width=180, height=320, size=12)
    return Path("videos")


def chapters(name):
    found = json.loads(Path("chapters", f"{name}.steps.json").read_text("utf-8"))["chapters"]
    return [(one["keystep"], one["start"]) for one in found]


def test_chapters_of_a_silent_video(folder, capsys, monkeypatch):
    mine = ["mine", "videos", "--vocabulary", "steps.txt", "-o", "graph.json"]
    assert main([*mine, *READ]) == 0
    out, err = capsys.readouterr()
    assert "mined from 2 videos" in out
    assert err == "stepgraph: reading text in the picture: 2 of 2 videos are new\n"

    # A graph says that it was read, and nothing is read twice.
    monkeypatch.setattr(screen, "_load_reader", lambda: pytest.fail("read again"))
    assert main(["recognize", "videos", "--graph", "graph.json", "-o", "chapters"]) == 0
    assert capsys.readouterr().err == ""
    assert chapters("a") == [(STEPS[0], 0.0), (STEPS[1], 4.0), (STEPS[2], 8.0)]

    rows = [f"a,{4 * at},{4 * at + 4},{step}" for at, step in enumerate(STEPS)]
    Path("videos/truth.csv").write_text("\n".join(["video,start,end,keystep", *rows]) + "\n")
    evaluate = ["evaluate", "videos", "--vocabulary", "steps.txt", "--decoder", "argmax", "--json"]
    assert main([*evaluate, *READ]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == 1.0


def test_what_is_written_joins_what_is_said(folder, capsys):
    Path("videos/b.mp4").unlink()
    Path("videos/a.srt").write_text("1\n00:00:00,000 --> 00:00:03,900\ncrack the eggs\n")
    mine = ["mine", "videos", "--vocabulary", "steps.txt", "-o", "graph.json", "--also", "ocr"]
    assert main(mine) == 0
    assert capsys.readouterr().err == "stepgraph: reading text in the picture: videos/a.mp4\n"

    recognise = ["recognize", "videos", "--graph", "graph.json", "-o", "chapters"]
    assert main([*recognise, "--decoder", "argmax"]) == 0

    assert [keystep for keystep, _ in chapters("a")] == list(STEPS)


def test_each_bad_file_gets_one_line_and_the_rest_goes_on(folder, capsys):
    write_sound(folder / "sound.m4a")
    write_captions(folder / "tiny.mp4", SHOWN[:1], size=2)
    (folder / "broken.mp4").write_bytes((folder / "a.mp4").read_bytes()[:3000])

    mine = ["mine", "videos", "--vocabulary", "steps.txt", "-o", "graph.json"]
    assert main([*mine, *READ, "--skip-bad"]) == 0

    out, err = capsys.readouterr()
    assert "mined from 3 videos" in out
    said = err.splitlines()[-1]
    assert "broken.mp4: must be a readable video file" in said
    assert "sound.m4a: must contain a picture track, got only sound" in said
    assert "tiny.mp4: must show text that can be read, got none" in said


def test_without_the_extra_one_line_says_what_to_install(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    screen._load_reader.cache_clear()

    assert main(["mine", "videos", "--vocabulary", "steps.txt", *READ]) == 1

    last = capsys.readouterr().err.splitlines()[-1]
    assert last == (
        "stepgraph: error: reading text in the picture needs the 'ocr' extra; run: "
        "pip install 'stepgraph[ocr]'"
    )


def test_the_demo_reads_some_of_its_clips(folder, capsys, monkeypatch):
    render, pictures = generated.open_generated, count()
    lines = [[screen.ScreenLine("spin the green wheel", 1.0, (0, 0, 99, 9))], []]

    def few(seed=0, per_task=1, *, with_speech=False, **how):  # none speaks: another test listens
        return render(seed, 1, tasks=["Build a toy cart"], **how)

    monkeypatch.setattr(generated, "open_generated", few)
    monkeypatch.setattr(verbs, "open_source", lambda _: few())
    monkeypatch.setattr(screen, "_lines_in", lambda _: lines[next(pictures) // 5 % 3 > 0])

    assert main(["demo", "--video", "-o", "report"]) == 0

    out, err = capsys.readouterr()
    assert "text, 1 silent clips: task-markov" in out
    assert "reading text in the picture: " in err
    assert Path("report/report.html").is_file()
    [result] = map(sg.load, Path("report/keysteps").glob("*.steps.json"))
    assert result.video.path.resolve().parent == Path("report/clips").resolve()
