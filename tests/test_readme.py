"""What the README shows works: its commands and its Python, as written; and its map is whole."""

import os
import re
import shlex
from pathlib import Path

import pytest

from stepgraph.cli import main
from test_architecture import ORDER
from test_cli import SAID, VOCABULARY, srt

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
GUIDE = (ROOT / "docs" / "your-videos.md").read_text("utf-8")


def blocks(language, page=README):
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def commands(page):
    """Every command of a page that needs no data set, without what stands before ``stepgraph``."""
    for block in blocks("bash", page):
        for line in block.splitlines():
            command = re.match(r"(?:PYTHONPATH=\. )?stepgraph (.*)", line)
            if command and "PATH_TO" not in line:
                yield shlex.split(command[1], comments=True)


@pytest.fixture
def own_videos(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("videos").mkdir()
    for name, sentences in SAID.items():
        Path("videos", f"{name}.srt").write_text(srt([*sentences, "pour it into the cup"]))
    Path("steps.txt").write_text(VOCABULARY + "pour into the cup\n")
    Path("videos", "truth.csv").write_text("video,start,end,keystep\nmonday,0,6,boil the water\n")


def save_files(page):
    """Write the files that a page tells its reader to save."""
    for name, text in re.findall(
        r"[Ss]ave this as `([\w.]+)`:\n\n```python\n(.*?)```", page, re.S
    ):
        Path(name).write_text(text)


@pytest.mark.parametrize(("page", "count"), [(README, 6), (GUIDE, 10)], ids=["README", "guide"])
def test_the_commands_for_ones_own_videos_run(own_videos, page, count, monkeypatch):
    monkeypatch.setattr("webbrowser.open", lambda address: address.startswith("http://127.0.0.1:"))
    monkeypatch.setattr("stepgraph.viewer.server.Server.serve_forever", lambda self: None)
    save_files(page)
    asked = list(commands(page))

    for command in asked:
        assert main(command) == 0, command

    assert len(asked) == count
    for video in SAID:
        assert (
            Path("chapters", f"{video}.chapters.vtt").read_text().startswith("WEBVTT\n\n00:00:0")
        )


@pytest.mark.parametrize("block", blocks("python")[:2], ids=["two verbs", "stages"])
def test_the_python_runs(own_videos, block, capsys):
    exec(compile(block, "README.md", "exec"), {})

    assert re.search(r"boil the water|accuracy=0\.\d+", capsys.readouterr().out)


def test_the_two_commands_exist():
    makefile = (ROOT / "Makefile").read_text()

    for target in re.findall(r"make (\w+)", README):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_map_names_every_room_in_the_order_of_the_pipeline():
    rooms = {path.stem for path in (ROOT / "src" / "stepgraph").iterdir() if path.stem[0] != "_"}
    table = README.partition("| subpackage |")[2].partition("\n\n")[0]
    named = re.findall(r"^\| `(\w+)` \| \S.*\|$", table, re.MULTILINE)

    assert named == ORDER
    assert set(named) == rooms - {"py"}  # py.typed


def test_the_map_names_every_folder_of_the_repository():
    table = README.partition("| elsewhere |")[2]
    named = set(re.findall(r"^\| `(\w+)/` \|", table, re.MULTILINE))
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "."}

    assert named == folders - {"src", "site", "build", "dist", "demo-report"}


def test_the_gate_runs_the_command_of_the_readme():
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert "make test" in lines
    # A dependence on the processor cannot land: published numbers are made twice.
    assert lines[-1].endswith(".venv/bin/pytest tests/test_published.py")
    assert "ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2" in lines[-2]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
