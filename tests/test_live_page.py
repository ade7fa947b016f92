"""What a browser shows while somebody speaks."""
# ruff: noqa: F811

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from seeing import flaws
from stepgraph.assistant.live import OnlineState
from stepgraph.assistant.live_model import Likely
from test_cli_live import graph, live, server  # noqa: F401
from test_export_report import browser  # noqa: F401
from test_viewer_page import page, until  # noqa: F401

HOSTILE = "<img src=x onerror=alert(1)>"


def state(at, keystep, **others):
    told = {
        "tasks": {"Make tea": 0.876, "Fry eggs": 0.124},
        "confidence": 0.5,
        "keysteps": (),
        "progress": at / 100,
        "next": (Likely(HOSTILE, 0.25),),
        "missing": (),
    }
    return OnlineState(at=at, now=at + 10, keystep=keystep, **(told | others)).to_json()


@pytest.mark.browser
def test_the_page_follows_what_is_told(server, page):
    page.goto(server.address)
    assert page.inner_text("#task") == "Waiting for the task …"
    assert flaws(page) == []

    server.stage.show(state(5.0, "boil the water"))
    until(page, "document.querySelector('#keystep').textContent == 'boil the water'")
    assert page.inner_text("#task") == "Make tea (88 %)"
    assert page.inner_text("#next") == f"{HOSTILE} (25 %)"
    assert page.inner_text("#missing") == "none"
    assert page.inner_text("#when") == "at 0:05, transcript until 0:15"
    assert flaws(page) == []

    server.stage.show(state(65.0, None, missing=(Likely("warm the pot", 0.6),)))
    until(page, "document.querySelector('#keystep').textContent == '–'")
    assert page.inner_text("#missing") == "warm the pot (60 %)"
    assert page.evaluate("document.querySelector('progress').value") == 0.65

    server.stage.show(state(70.0, None, tasks={}, next=()))
    until(page, "document.querySelector('#task').textContent == 'Waiting for the task …'")
    server.stage.finish()
    until(page, "document.querySelector('#when').textContent.endsWith(', finished')")


@pytest.mark.browser
def test_a_person_watches_what_is_piped_in(graph, page):
    command = [sys.executable, "-m", "stepgraph", *live("--transcript", "-", "--delay", "2")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [*command, "--serve", "--no-open"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    ) as running:
        try:
            [address] = re.findall(r"http://\S+", running.stdout.readline())
            page.goto(address)
            for said, shown in (
                ("0.5 now I boil the water\n8.0 and I add the tea leaves\n", "boil the water"),
                # Line by line, since a page shows the newest state alone.
                ("16.0 then pour in some milk\n", "add the tea leaves"),
                ("24.0 bye\n", "pour in the milk"),
            ):
                running.stdin.write(said)
                running.stdin.flush()
                until(page, f"document.querySelector('#keystep').textContent == {shown!r}")
            running.stdin.close()  # the last line has its newline, and nothing more comes
            until(page, "document.querySelector('#when').textContent.endsWith(', finished')")
        finally:
            running.kill()
    assert Path("said.txt").exists()  # nothing else was written
    assert len(list(Path().iterdir())) == 4
