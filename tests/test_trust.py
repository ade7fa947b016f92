"""Files from strangers: nothing leaves the folder, reaches the terminal raw, or stops the rest."""

import errno
import json
import os
from pathlib import Path

import pytest

from stepgraph.cli import main
from stepgraph.core import Vocabulary
from stepgraph.errors import one_line
from stepgraph.files.arrays import SUFFIXES
from stepgraph.vocabulary.lists import save_vocabulary

CUE = "1\n00:00:01,000 --> 00:00:04,000\nboil the water\n"
STEPS = "boil the water\nadd the tea leaves\n"
RECORD = {"start": [0.0, 4.0], "end": [3.0, 9.0], "text": ["boil the water", "add the leaves"]}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Work two folders down, with one good transcript, a vocabulary and a graph."""
    deep = tmp_path / "deep" / "here"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    Path("videos").mkdir()
    Path("videos/good.srt").write_text(CUE)
    Path("steps.txt").write_text(STEPS)
    assert main(["mine", "videos", "--vocabulary", "steps.txt", "-o", "graph.json"]) == 0
    return tmp_path


def recognize(capsys, source, *more):
    """Run it; its exit code, what it answered and what it complained about."""
    capsys.readouterr()
    code = main(["recognize", source, "--graph", "graph.json", "-o", "out", *more])
    said = capsys.readouterr()
    return code, said.out, said.err


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("id", ["../../x", "{here}/x", "a/../../x", "a\x1bb", "y" * 300])
def test_a_key_of_captions_cannot_name_a_file_elsewhere(here, capsys, id):
    id = id.format(here=here)
    Path("how").mkdir()
    Path("how/raw_caption.json").write_text(json.dumps({id: RECORD, "good": RECORD}))
    before = files(here)

    code, _, err = recognize(capsys, "howto100m:how")

    written = {path.relative_to(here) for path in {*files(here)} - {*before}}
    assert all(path.is_relative_to("deep/here/out") for path in written)
    assert Path("out/good.steps.json").exists()
    assert code == 1
    assert "must be usable as a file name" in err
    assert err.count("\n") == 1
    assert "\x1b" not in err
    assert recognize(capsys, "howto100m:how", "--skip-bad")[0] == 0


def test_a_folder_where_a_file_should_be_is_a_problem_of_that_video(capsys):
    Path("videos/other.srt").write_text(CUE)
    Path("out/good.steps.csv").mkdir(parents=True)

    code, out, err = recognize(capsys, "videos")

    assert code == 1
    assert "1 video: chapters written to out" in out
    assert "good.steps.csv: cannot be written: Is a directory" in err
    assert err.count("\n") == 1
    assert Path("out/other.chapters.txt").exists()
    assert not list(Path("out").rglob(".*"))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])
def test_a_disk_that_takes_no_more_ends_the_run_in_one_line(capsys, monkeypatch, number):
    Path("videos/other.srt").write_text(CUE)
    written = []

    def write_bytes(path, data):
        written.append(path)
        with path.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "write_bytes", write_bytes)
    code, out, err = recognize(capsys, "videos")

    assert (code, out, err.count("\n"), len(written)) == (1, "", 1, 1)
    assert f"cannot be written: {os.strerror(number)}; choose another output path" in err
    assert not files(Path("out"))


@pytest.mark.parametrize("verb", ["mine", "recognize", "label"])
def test_results_in_a_place_that_is_no_folder_end_in_one_line(capsys, verb):
    Path("taken").write_text("mine")
    graph = ["--vocabulary", "steps.txt"] if verb == "mine" else ["--graph", "graph.json"]

    code = main([verb, "videos", *graph, "-o", "taken/here"])

    err = capsys.readouterr().err
    assert (code, err.count("\n")) == (1, 1)
    assert "must be a folder that can be" in err
    assert Path("taken").read_text() == "mine"


TERMINAL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.\u2066\r\x7f"


def assert_harmless(text):
    assert not set(text) & set("\x1b\x07\x7f\r\x9b\u202e\u2066")


@pytest.fixture
def hostile():
    """A graph, captions and a vocabulary whose names would move the cursor and turn text."""
    names = (f"boil {TERMINAL}", "add\nstepgraph: error: no")
    save_vocabulary(Vocabulary(names, {f"tea {TERMINAL}": (0, 1)}), "steps.json")
    Path("how").mkdir()
    said = RECORD | {"text": ["boil the water", "stepgraph: error: no"]}
    Path("how/raw_caption.json").write_text(json.dumps({f"v{TERMINAL}": RECORD, "ok": said}))
    mine = ["mine", "howto100m:how", "--vocabulary", "steps.json", "-o", "hostile.json"]
    assert main([*mine, "--skip-bad"]) == 0


@pytest.mark.parametrize("json_too", [(), ("--json",)])
@pytest.mark.parametrize(
    "command",
    [
        ("graph", "show", "hostile.json"),
        ("graph", "next", "hostile.json", f"boil {TERMINAL}"),
        ("graph", "relation", "hostile.json", f"boil {TERMINAL}", f"boil {TERMINAL}"),
        ("graph", "path", "hostile.json", f"boil {TERMINAL}", "add\nstepgraph: error: no"),
        ("graph", "next", "hostile.json", f"unknown {TERMINAL}"),
        ("vocabulary", "steps.json"),
        ("mine", "howto100m:how", "--vocabulary", "steps.json", "-o", f"{TERMINAL}.json"),
        ("recognize", "howto100m:how", "--graph", "hostile.json", "-o", "out"),
        ("evaluate", f"gone{TERMINAL}"),
    ],
    ids=lambda words: " ".join(words[:2]) if words else "",
)
def test_nothing_that_a_file_says_reaches_the_terminal_raw(hostile, capsys, command, json_too):
    capsys.readouterr()

    code = main([*command, *json_too])

    said = capsys.readouterr()
    assert_harmless(said.out + said.err)
    assert "\nstepgraph: error: no" not in said.out
    assert said.err.count("\n") <= 1
    if json_too and code == 0:
        json.loads(said.out)


def test_a_name_of_two_lines_stays_on_the_line_of_its_path(hostile, capsys):
    capsys.readouterr()
    main(["graph", "path", "hostile.json", f"boil {TERMINAL}", "add\nstepgraph: error: no"])

    out = capsys.readouterr().out
    assert out.startswith("boil ")
    assert out.endswith(" → add\\u000astepgraph: error: no\n")
    assert out.count("\n") == 1


def test_names_come_back_from_json_as_they_are(hostile, capsys):
    capsys.readouterr()
    main(["graph", "path", "hostile.json", f"boil {TERMINAL}", f"boil {TERMINAL}", "--json"])

    assert json.loads(capsys.readouterr().out)["path"] == [f"boil {TERMINAL}"]


def test_wrong_usage_is_said_without_control_characters(capsys):
    with pytest.raises(SystemExit):
        main(["mine", "videos", f"--no{TERMINAL}"])

    assert_harmless(capsys.readouterr().err)


@pytest.mark.parametrize("letter", ["x", "\n", "\x1b", "é"])
def test_an_error_is_one_line_of_a_thousand_characters(capsys, letter):
    Path("graph.json").write_text(json.dumps({"format": letter * 3_000_000}))

    code, out, err = recognize(capsys, "videos")

    assert (code, out) == (1, "")
    assert len(err) <= 1100
    assert err.count("\n") == 1
    assert err.startswith("stepgraph: error: graph.json: must be a task graph")
    assert_harmless(err)


def test_a_long_error_keeps_its_beginning_and_what_to_do():
    line = one_line(f"subject must rule, got {'x' * 5000}; what to do")

    assert line.startswith("subject must rule, got xxx")
    assert line.endswith("xxx; what to do")
    assert len(line) <= 1000


def test_every_kind_of_array_is_in_the_table_of_inputs():
    page = (Path(__file__).parent.parent / "SECURITY.md").read_text()

    assert [suffix for suffix in SUFFIXES if f"`{suffix}`" not in page] == []
