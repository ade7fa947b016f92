"""Bad input is a user too: one clear line, exit code 1, and nothing half-written."""

import json
import os
from pathlib import Path

import pytest

from stepgraph.cli import main

CUE = "1\n00:00:01,000 --> 00:00:04,000\nboil the water\n"
STEPS = "boil the water\nadd the tea leaves\n"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Work in a folder with one good transcript and a vocabulary."""
    monkeypatch.chdir(tmp_path)
    Path("videos").mkdir()
    Path("videos/good.srt").write_text(CUE)
    Path("steps.txt").write_text(STEPS)
    return tmp_path


def files():
    return sorted(str(path) for path in Path().rglob("*") if path.is_file())


def refusal(capsys, *arguments):
    """Run a command that must fail; check what every failure owes, and give its line."""
    before = files()
    code = main(list(arguments))
    said = capsys.readouterr()
    assert code == 1
    assert said.out == ""
    assert said.err.startswith("stepgraph: error: ")
    assert said.err.count("\n") == 1
    assert files() == before
    return said.err


def mine(capsys):
    return refusal(capsys, "mine", "videos", "--vocabulary", "steps.txt", "-o", "graph.json")


def test_a_folder_without_transcripts(capsys):
    Path("videos/good.srt").rename("videos/good.doc")

    assert "videos: must contain videos (.mp4, .mkv," in mine(capsys)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.srt", b"", r"empty.srt: must hold a transcript, got an empty file"),
        ("nothing.json", b'{"segments": []}', "nothing.json: must hold cues with times, got none"),
        ("foreign.vtt", b"dear diary", "foreign.vtt: must hold cues with times, got none"),
        ("cut.json", b'{"start": [0.0, 2.5], "end": [2', "cut.json: must be complete JSON, got"),
        ("binary.srt", PNG, "binary.srt: must be UTF-8 text, got a zero byte at position 8"),
        (
            "latin.srt",
            CUE.encode() + "crème".encode("latin-1"),
            "latin.srt: must be UTF-8 text, got byte 0xe8 at position 49; convert it",
        ),
        (
            "joined.srt",
            2 * "\n".join(f"0:{at} --> 0:{at + 1}\n{at}\n" for at in range(10, 40)).encode(),
            "of 60 cues are out of place, two transcripts may have been joined: split them",
        ),
        (
            "reversed.srt",
            b"1\n00:00:09,000 --> 00:00:04,000\nboil\n",
            "reversed.srt:2: end must not be before start, got start 9.0 and end 4.0",
        ),
        (
            "negative.json",
            b'{"start": [-3.0], "end": [2.0], "text": ["boil"]}',
            "negative.json: cue 1: start must be at least 0, got -3.0",
        ),
        (
            "nan.json",
            b'{"start": [NaN], "end": [2.0], "text": ["boil"]}',
            "nan.json: cue 1: start must be a finite number of seconds, got nan",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value[-4:-3] == "." else "",
)
def test_a_transcript_that_cannot_be_read(capsys, name, content, message):
    Path("videos", name).write_bytes(content)

    said = mine(capsys)

    assert message in said
    assert "--skip-bad leaves them out" in said


def test_a_transcript_of_one_huge_line(capsys):
    with Path("videos/huge.json").open("wb") as file:
        file.write(b'{"text": ["')
        file.truncate(300 << 20)

    assert "huge.json: must be at most 64 MiB, got 300 MiB" in mine(capsys)


def test_several_bad_transcripts_are_counted(capsys):
    Path("videos/a.srt").write_text("")
    Path("videos/b.srt").write_text("")

    said = mine(capsys)

    assert "2 of 3 videos cannot be read: (1) videos/a.srt, videos/b.srt: must hold" in said


@pytest.mark.parametrize("option", [[], ["--skip-bad"]])
def test_one_bad_cue_costs_neither_the_file_nor_the_run(capsys, option):
    Path("videos/a.srt").write_text(f"{CUE}\n2\n00:00:09,0")

    assert main(["mine", "videos", "--vocabulary", "steps.txt", *option]) == 0

    assert json.loads(Path("graph.json").read_text())["mined_on"] == ["a", "good"]
    said = (
        "1 unreadable cue (videos/a.srt:6: must be a whole transcript, got a cue that is cut off"
    )
    assert said in capsys.readouterr().err


def test_one_bad_cue_is_an_error_where_every_problem_is(capsys):
    Path("videos/a.srt").write_text(f"{CUE}\n2\n00:00:09,0")

    said = refusal(capsys, "mine", "videos", "--vocabulary", "steps.txt", "--strict")

    assert "videos/a.srt:6: must be a whole transcript" in said


def test_bad_transcripts_can_be_left_out():
    Path("videos/a.srt").write_text("")

    code = main(["mine", "videos", "--vocabulary", "steps.txt", "--skip-bad"])

    assert code == 0
    assert json.loads(Path("graph.json").read_text())["mined_on"] == ["good"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "steps.txt: must list at least 2 keysteps, one a line, got none"),
        ("boil the water\n", "steps.txt: must list at least 2 keysteps, one a line, got only"),
        ("boil\nstir\n#\nmix\n", "steps.txt:3: a heading must name a task, got '#'"),
        (
            "# Tea\nboil\nstir\n# Coffee\n",
            "steps.txt:4: task 'Coffee' must have at least one keystep",
        ),
    ],
    ids=["empty", "one", "no name", "empty task"],
)
def test_a_vocabulary_that_cannot_be_used(capsys, content, message):
    Path("steps.txt").write_text(content)

    assert message in mine(capsys)


def test_a_missing_vocabulary(capsys):
    Path("steps.txt").unlink()

    assert "steps.txt: must be a file, got no such file; check the path" in mine(capsys)


@pytest.fixture
def graph():
    assert main(["mine", "videos", "--vocabulary", "steps.txt", "-o", "graph.json"]) == 0
    return Path("graph.json")


def recognize(capsys):
    capsys.readouterr()
    return refusal(capsys, "recognize", "videos", "--graph", "graph.json", "-o", "out")


def test_a_graph_cut_in_half(capsys, graph):
    graph.write_text(graph.read_text()[: graph.stat().st_size // 2])

    assert "graph.json: must be complete JSON" in recognize(capsys)


def test_a_graph_of_a_newer_version(capsys, graph):
    graph.write_text(graph.read_text().replace('"version": 2', '"version": 3'))

    said = recognize(capsys)

    assert "graph.json: format version must be at most 2, got 3; it was saved by a newer" in said


def test_a_graph_whose_vocabulary_was_changed(capsys, graph):
    graph.write_text(graph.read_text().replace("boil the water", "boil the milk"))

    assert "graph.json: must be a graph of the vocabulary it was saved with" in recognize(capsys)


def test_a_graph_of_another_vocabulary(capsys, graph):
    capsys.readouterr()

    said = refusal(capsys, "evaluate", "demo", "--graph", "graph.json", "--json")

    assert "graph.json: must be a graph of the vocabulary in use (49 keysteps" in said
    assert "got one of 2 keysteps" in said


def test_a_file_that_is_no_graph(capsys, graph):
    graph.write_text('{"format": "something else"}')

    assert "graph.json: must be a task graph (format 'stepgraph-graph')" in recognize(capsys)


def test_an_output_folder_that_cannot_be_made(capsys, graph):
    capsys.readouterr()

    said = refusal(capsys, "recognize", "videos", "--graph", "graph.json", "-o", "steps.txt/out")

    assert "steps.txt/out: must be a folder that can be made" in said
    assert "steps.txt, which is not a folder" in said


def test_an_output_folder_that_cannot_be_written(capsys, graph, monkeypatch):
    capsys.readouterr()
    Path("locked").mkdir()
    # For root every folder is writable, so the system's answer is given here.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "locked")

    said = refusal(capsys, "recognize", "videos", "--graph", "graph.json", "-o", "locked")

    assert "locked: must be a folder that can be written, got one that is not writable" in said


def test_a_disk_that_fills_up_leaves_the_old_graph(capsys, graph, monkeypatch):
    before = graph.read_text()
    capsys.readouterr()

    def full(self, *_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    said = refusal(capsys, "mine", "videos", "--vocabulary", "steps.txt", "-o", "graph.json")

    assert "graph.json: cannot be written: No space left on device" in said
    assert graph.read_text() == before


def test_an_output_file_that_is_a_folder(capsys):
    said = refusal(capsys, "mine", "videos", "--vocabulary", "steps.txt", "-o", "videos")

    assert "videos: must be a file to write, got a folder; name a file in it" in said


def test_encoder_options_beside_a_graph_are_used_and_said(capsys):
    Path("videos/steps.txt").write_text(Path("steps.txt").read_text())
    first = Path("steps.txt").read_text().splitlines()[-1]
    Path("videos/truth.csv").write_text(f"video,start,end,keystep\ngood,0,2,{first}\n")
    main(["mine", "videos", "-o", "small.json"])
    capsys.readouterr()

    assert main(["evaluate", "videos", "--graph", "small.json", "--context", "2", "--json"]) == 0

    assert json.loads(capsys.readouterr().out)["encoder"]["context"] == 2


def test_what_was_left_out_is_said(capsys):
    Path("videos/a.srt").write_text("")

    main(["mine", "videos", "--vocabulary", "steps.txt", "--skip-bad"])

    said = capsys.readouterr().err
    assert "stepgraph: warning: videos: problems, the rest was used: 1 unreadable video" in said
    assert "videos/a.srt: must hold a transcript, got an empty file" in said
