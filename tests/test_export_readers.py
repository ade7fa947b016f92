"""Exports read by libraries that have an environment of their own: ``make readers``."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from stepgraph.export.formats import write_results
from test_export_formats import TEA
from videos import numbered, write_video

READERS = os.environ.get("STEPGRAPH_READERS")
"""Python of that environment; tests/readers.py says why it is another one."""


@pytest.mark.skipif(not READERS, reason="the libraries are installed by: make readers")
def test_libraries_of_others_read_the_same_steps(tmp_path):
    path = write_video(tmp_path / "tea.mp4", map(numbered, range(120)), rate=2, codec="libx264")
    odd = "b; #c \\ <d> & \"e\" 'f' crème | -->"
    last = replace(TEA.chapters[1], start=45.5, end=58.0, keystep="drink")
    tea = replace(
        TEA,
        video=replace(TEA.video, path=path),
        chapters=(TEA.chapters[0], replace(TEA.chapters[1], keystep=odd), last),
    )
    formats = ["label-studio", "activitynet", "xes", "youtube", "cvat", "csv"]
    write_results([tea], tmp_path / "out", formats)

    script = Path(__file__).with_name("readers.py")
    done = subprocess.run(
        [READERS, script, tmp_path / "out"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    for name in ("label_studio", "activitynet", "xes", "youtube", "cvat"):
        assert f"{name}: 3 steps" in done.stdout
