"""What the README shows works: its commands and its Python, as written."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from test_cli import SAID, VOCABULARY, srt

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
STEPS = VOCABULARY + "pour into the cup\n"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture
def own_videos(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("videos").mkdir()
    for name, sentences in SAID.items():
        Path("videos", f"{name}.srt").write_text(srt([*sentences, "pour it into the cup"]))
    Path("steps.txt").write_text(STEPS)


def test_the_commands_for_ones_own_videos_run(own_videos):
    commands = [
        shlex.split(line)
        for block in blocks("bash")
        for line in block.splitlines()
        if line.startswith("stepgraph") and "PATH_TO" not in line
    ]

    for command in commands:
        subprocess.run([sys.executable, "-m", *command], check=True, capture_output=True)

    assert len(commands) == 6
    for video in SAID:
        assert (
            Path("chapters", f"{video}.chapters.vtt").read_text().startswith("WEBVTT\n\n00:00:0")
        )


@pytest.mark.parametrize("block", blocks("python"), ids=["two verbs", "stages"])
def test_the_python_runs(own_videos, block, capsys):
    exec(compile(block, "README.md", "exec"), {})

    assert re.search(r"boil the water|accuracy=0\.\d+", capsys.readouterr().out)


def test_the_two_commands_exist():
    makefile = (ROOT / "Makefile").read_text()

    for target in re.findall(r"^make (\w+)", blocks("bash")[0], re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_linked_file_exists_and_nothing_is_left_to_fill_in(page):
    text = page.read_text()

    for link in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert (page.parent / link).exists(), link
    assert not re.search(r"@[A-Z]+@|TODO|TBD", text)


def test_the_gate_runs_the_command_of_the_readme():
    assert (ROOT / ".ci" / "run").read_text().rstrip().endswith("\nmake test")
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
