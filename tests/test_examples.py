"""The examples run, and show what they say."""

import json
import runpy
from pathlib import Path

import pytest

from stepgraph.cli import main

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run an example in a temporary folder and return what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.syspath_prepend(EXAMPLES)

    def run_one(name, *arguments):
        monkeypatch.setattr("sys.argv", [name, *map(str, arguments)])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    return run_one


def test_there_are_no_examples_without_a_test():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {
        "own_folder.py",
        "own_parts.py",
        "paper_table.py",
    }


def test_ones_own_folder_becomes_chapters(run, tmp_path):
    printed = run("own_folder.py")

    assert "monday: Make tea" in printed
    assert "sunday: Make an omelette" in printed
    assert "after 'let it steep': pour into the cup (2)" in printed
    [folder] = tmp_path.glob("stepgraph-*")
    assert len(list((folder / "chapters").glob("*.chapters.vtt"))) == 3

    again = run("own_folder.py", folder / "videos", folder / "steps.txt")
    assert "friday: Make tea" in again


def test_ones_own_decoder_and_encoder_serve_python_and_the_command_line_alike(run):
    printed = run("own_parts.py")

    python, _, report = printed.partition("{")
    answer = json.loads("{" + report)
    assert answer["decoder"] == "own_parts:Hold"
    assert answer["encoder"]["name"] == "own_parts:make_words"
    assert answer["options"] == {"threshold": 0.45}
    assert f"Hold(threshold=0.45): {answer['accuracy']:.1%}" in python


def test_ones_own_decoder_writes_chapters(run, omelette_folder, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(EXAMPLES)
    encoder = ["--encoder", "own_parts:make_words"]
    assert main(["mine", str(omelette_folder), *encoder, "-o", "graph.json"]) == 0

    asked = ["recognize", str(omelette_folder), "--graph", "graph.json", "-o", "chapters"]
    code = main([*asked, *encoder, "--decoder", "own_parts:Hold"])

    assert code == 0
    assert "whisk them" in Path("chapters", "plain.chapters.vtt").read_text()


def test_a_table_of_the_paper_is_measured_on_the_embedded_corpus(run):
    printed = run("paper_table.py")

    assert "Table 2: task-level keystep recognition" in printed
    assert "The graph is worth +" in printed
