"""stepgraph live and demo --live as a person uses them, and what a browser is shown."""

import http.client
import io
import json
import threading
from pathlib import Path

import pytest

from stepgraph.assistant.live import OnlineState
from stepgraph.assistant.live_model import Likely
from stepgraph.cli import main
from stepgraph.cli.live import _watching
from stepgraph.viewer.live import LiveServer, Stage
from test_cli import SAID, VOCABULARY, failed, srt

SPOKEN = (
    "0.5 now I boil the water\n8.0 and I add the tea leaves\n16.0 then pour in some milk\n22.0 bye"
)


@pytest.fixture
def graph(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("videos").mkdir()
    for name, sentences in SAID.items():
        Path(f"videos/{name}.srt").write_text(srt(sentences))
    Path("steps.txt").write_text(VOCABULARY)
    assert main(["mine", "videos", "--vocabulary", "steps.txt", "-o", "graph.json"]) == 0
    Path("said.txt").write_text(SPOKEN)
    return "graph.json"


def live(*arguments):
    return ["live", "--graph", "graph.json", *arguments]


def test_changes_are_printed_one_a_line(graph, capsys):
    capsys.readouterr()
    assert main(live("--transcript", "said.txt", "--delay", "2", "--length", "24")) == 0

    *lines, last = capsys.readouterr().out.splitlines()
    assert "boil the water" in lines[0] or "boil the water" in lines[1]
    assert "next: " in lines[-1]
    assert last == f"{len(lines)} changes shown"


def test_states_are_json_lines(graph, capsys, monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(SPOKEN.encode()))
    monkeypatch.setattr("sys.stdin", stdin)
    capsys.readouterr()
    assert main(live("--transcript", "-", "--delay", "2", "--json")) == 0

    *states, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert {"Make tea", None} >= {state["task"] for state in states}
    assert last == {"changes": len(states), "problems": 0}


def test_what_was_left_out_is_said(graph, capsys):
    Path("said.txt").write_bytes(SPOKEN.encode() + b"\n1.0 back\n\xff\x00\n")
    assert main(live("--transcript", "said.txt")) == 0

    said = capsys.readouterr().err
    assert "1 jump in time (said.txt:5: " in said
    assert "1 line that is not text (said.txt:6: " in said


def test_a_stream_may_end_within_a_line_and_jump_back(graph, capsys, monkeypatch):
    said = "8.0 boil the water\n1.0 boil it\n2.0 add the leaves\n9.0 pour in some milk"
    told = []
    for text in (said, said + "\n"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        capsys.readouterr()
        assert main(live("--transcript", "-", "--json")) == 0
        told.append(capsys.readouterr().out)

    assert told[0] == told[1]
    times = [json.loads(line)["at"] for line in told[0].splitlines()[:-1]]
    assert times == sorted(times)


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\x00\xff\n", b"WEBVTT\n"])
def test_a_transcript_without_a_sentence_is_an_error(graph, capsys, data):
    Path("said.txt").write_bytes(data)
    capsys.readouterr()

    assert "must hold at least a second" in failed(capsys, *live("--transcript", "said.txt"))


def test_what_cannot_be_used_is_refused(graph, capsys):
    Path("plain.txt").write_text("boil the water\n")
    capsys.readouterr()

    assert "must begin with their times" in failed(capsys, *live("--transcript", "plain.txt"))
    assert "no such file" in failed(capsys, *live("--transcript", "none.txt"))
    assert "delay must be" in failed(capsys, *live("--transcript", "said.txt", "--delay", "99"))
    Path("graph.json").unlink()
    assert "graph.json" in failed(capsys, *live("--transcript", "said.txt"))


def test_the_demo_plays_a_narration(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--live"]) == 0

    said = capsys.readouterr().out
    for shown in ("One line for each change", "Make pancakes", "next: ", "missing: "):
        assert shown in said
    # What was told as missing is so in the truth.
    assert "lacks: sift the flour, melt the butter, rest the batter.\n" in said
    assert "missing: sift the flour" in said
    assert "missing: melt the butter" in said
    assert not list(tmp_path.iterdir())


def test_on_a_terminal_the_state_is_drawn_with_what_was_heard(capsys):
    likely = (Likely("add the \x1b[31mleaves", 0.7), Likely("pour", 0.2))
    state = OnlineState(65.0, 75.0, {"Make tea": 0.9}, "boil", 0.8, (), 0.5, likely, ())
    with _watching() as draw:
        draw(OnlineState(0.0, 10.0, {}, None, 0.0, (), 0.0, (), ()), "hello")
        draw(state, "now it boils")

    shown = capsys.readouterr().out
    for line in ("1:15", "now it boils", "Make tea (90.0 %)", "1:05", "boil", "50.0 %"):
        assert line in shown
    assert "\x1b[31m" not in shown


# --- In a browser


@pytest.fixture
def server():
    with LiveServer(Stage()) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.stage.finish()
        server.shutdown()
        thread.join()


def get(server, name, secret=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=120)
    connection.request("GET", f"/{secret or server.secret}/{name}", headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_a_browser_is_told_of_the_newest_state_and_of_the_end(server):
    server.stage.show({"keystep": "old"})
    server.stage.show({"keystep": "boil\nthe water"})
    server.stage.finish()

    answer, body = get(server, "events")

    assert answer.headers["Content-Type"].startswith("text/event-stream")
    assert body.decode() == ('data: {"keystep": "boil\\nthe water"}\n\nevent: end\ndata: {}\n\n')


def test_who_watches_is_told_of_each_change(server):
    threading.Timer(0.2, lambda: server.stage.show({"at": 1})).start()
    threading.Timer(0.6, server.stage.finish).start()

    assert b'data: {"at": 1}' in get(server, "events")[1]


def test_the_page_comes_and_nobody_else_is_answered(server):
    for name in ("", "live.js", "view.css"):
        assert get(server, name)[0].status == 200
    assert get(server, "other")[0].status == 404
    assert get(server, "events", secret="guessed")[0].status == 404
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        assert get(server, "events", **headers)[0].status == 403
