"""Results in a browser: what is served to whom, and that nothing else ever is."""

import http.client
import json
import re
import socket
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import stepgraph as sg
from stepgraph.cli import main
from stepgraph.core import Chapter, Result, Sentence, Video
from stepgraph.viewer import index, pages
from stepgraph.viewer.pages import STATIC
from stepgraph.viewer.server import Server, Shown

CONTENT = bytes(range(256)) * 40
HOSTILE = "</script><img src=x onerror=alert(1)>"
TEA = Result(
    Video("monday/tea", 60.0, (Sentence(5.0, 9.0, f"Boil the water {HOSTILE}."),), Path("t.mp4")),
    (
        Chapter(4.0, 20.0, "boil the water", 0.4, "anchor", 0.5, "Boil the water."),
        Chapter(38.0, 50.0, HOSTILE, None, "label"),
    ),
    {"Make tea": 0.9},
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(index, "cache_folder", lambda: tmp_path / "cache")
    Path("t.mp4").write_bytes(CONTENT)
    Path("secret.mp4").write_bytes(b"secret")
    sg.write_timeline(TEA, "out")
    return Path("out")


@contextmanager
def serving(folder, **options):
    with Server(Shown(folder, **options)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def server(folder):
    with serving(folder) as server:
        yield server


def get(server, name="", *, secret=None, method="GET", **headers):
    """Ask for an address; headers are named with underscores."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=120)
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    connection.request(method, f"/{secret or server.secret}/{name}", headers=named)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


# --- What is served


def test_the_page_comes_with_its_style_and_script(server):
    kinds = {"": "html", ".css": "css", ".js": "javascript"}
    for name in STATIC:
        answer, body = get(server, name)

        assert answer.status == 200
        assert kinds[Path(name).suffix] in answer.headers["Content-Type"]
        assert body
    named = re.findall(r'(?:src|href)="([\w.]+)"', get(server)[1].decode())
    assert {*named} == {*STATIC} - {""}


def test_the_overview_has_a_line_for_each_video(server):
    content = json.loads(get(server, "overview")[1])

    [line] = content["videos"]
    assert content["tasks"] == ["Make tea"]
    assert (line["id"], line["task"], line["share"]) == ("monday/tea", "Make tea", 0.9)
    assert (line["sure"], line["plays"]) == (0.5, True)
    assert line["covered"] == pytest.approx(28 / 60)
    assert line["steps"][0] == [4.0, 20.0, "boil the water", 0.5]


def test_a_result_has_its_transcript_and_words(server):
    found = json.loads(get(server, "result?of=monday%2Ftea")[1])

    assert found["transcript"] == [[5.0, 9.0, f"Boil the water {HOSTILE}."]]
    assert found["chapters"][0]["words"] == "Boil the water."


def test_a_search_finds_moments(server):
    [moment] = json.loads(get(server, "search?of=boiling")[1])

    assert (moment["video"], moment["keystep"]) == ("monday/tea", "boil the water")


@pytest.mark.parametrize("name", ["result?of=other", "result?of=..%2Fsecret", "other", "x/y"])
def test_what_is_not_there_is_not_found(server, name):
    assert get(server, name)[0].status == 404


def test_an_empty_question_is_an_error_in_words(server):
    answer, body = get(server, "search?of=")

    assert answer.status == 400
    assert "question must have words" in json.loads(body)["error"]


def test_a_result_that_is_damaged_meanwhile_is_an_error_in_words(server, folder):
    (folder / "monday/tea.steps.json").write_text("{")

    answer, body = get(server, "result?of=monday%2Ftea")

    assert answer.status == 400
    assert "tea.steps.json" in json.loads(body)["error"]


# --- Video files


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("bytes=0-9", CONTENT[:10]),
        ("bytes=100-", CONTENT[100:]),
        ("bytes=-7", CONTENT[-7:]),
        ("bytes=5-999999", CONTENT[5:]),
    ],
)
def test_a_player_gets_the_part_it_asks_for(server, asked, expected):
    answer, body = get(server, "media/monday%2Ftea", Range=asked)

    first = CONTENT.index(expected) if len(expected) > 10 else None
    assert (answer.status, body) == (206, expected)
    assert answer.headers["Content-Range"].endswith(f"/{len(CONTENT)}")
    if first:
        assert answer.headers["Content-Range"].startswith(f"bytes {first}-")


def test_without_a_part_the_whole_file_comes(server):
    answer, body = get(server, "media/monday%2Ftea")

    assert (answer.status, body) == (200, CONTENT)
    assert answer.headers["Accept-Ranges"] == "bytes"


def test_a_part_behind_the_end_is_refused(server):
    assert get(server, "media/monday%2Ftea", Range="bytes=99999-")[0].status == 416


@pytest.mark.parametrize("name", ["secret", "..%2Fsecret.mp4", "%2Fetc%2Fpasswd", "..%2F..%2Fx"])
def test_no_other_file_is_ever_sent(server, name):
    assert get(server, f"media/{name}")[0].status == 404


def test_a_result_that_names_no_video_file_sends_nothing(folder):
    Path("secret.txt").write_text("secret")
    path = folder / "monday/tea.steps.json"
    path.write_text(path.read_text().replace("../../t.mp4", "../../secret.txt"))

    with serving(folder) as server:
        assert get(server, "media/monday%2Ftea")[0].status == 404


# --- To whom


ASKED = (
    *("overview", "result?of=monday%2Ftea", "search?of=tea", "map?of=Make%20tea"),
    *("media/monday%2Ftea", "picture/monday%2Ftea?of=1"),
)
"""All that can be asked for."""


@pytest.mark.parametrize("allowed", [True, False])
def test_only_who_allows_it_gets_the_player_of_youtube(folder, allowed):
    sg.write_timeline(replace(TEA, video=Video("tasks/dQw4w9WgXcQ", 60.0)), "out")
    sg.write_timeline(replace(TEA, video=Video("no-such-id-of-theirs", 60.0)), "out")

    with serving(folder, youtube=allowed) as server:
        answer, body = get(server, "overview")

    lines = {line["id"]: line.get("youtube") for line in json.loads(body)["videos"]}
    embedded = "https://www.youtube-nocookie.com/embed/dQw4w9WgXcQ"
    assert lines["tasks/dQw4w9WgXcQ"] == (embedded if allowed else None)
    assert lines["monday/tea"] is None  # it has a file
    assert lines["no-such-id-of-theirs"] is None
    frames = "frame-src https://www.youtube-nocookie.com"
    assert (frames in answer.headers["Content-Security-Policy"]) is allowed


def test_without_the_secret_there_is_nothing(server):
    for name in ("", "view.js", *ASKED):
        answer, body = get(server, name, secret="x" * 32)

        assert answer.status == 404
        assert b"tea" not in body


def test_another_name_of_this_computer_is_refused(server):
    for name in ASKED:
        answer, _ = get(server, name, Host=f"evil.example:{server.server_port}")

        assert answer.status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_another_page_is_refused(server, headers):
    for name in ASKED:
        assert get(server, name, **headers)[0].status == 403


def test_only_this_computer_is_listened_to(server):
    assert server.server_address[0] == "127.0.0.1"


def test_every_answer_forbids_what_the_page_does_not_need(server):
    for name in ("", "missing", *ASKED):
        headers = get(server, name)[0].headers

        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert "http" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_nothing_but_corrections_can_be_changed(server):
    for method in ("PUT", "DELETE", "PATCH"):
        assert get(server, "overview", method=method)[0].status == 501
    assert post(server, [], "overview?of=monday%2Ftea").status == 404


# --- Corrections


def post(server, steps, name="correct?of=monday%2Ftea", *, secret=None, **headers):
    own = f"http://127.0.0.1:{server.server_port}"
    headers = {"Origin": own, "Content_Type": "application/json"} | headers
    named = {key.replace("_", "-"): value for key, value in headers.items() if value}
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=120)
    connection.request("POST", f"/{secret or server.secret}/{name}", json.dumps(steps), named)
    answer = connection.getresponse()
    answer.body = answer.read()
    connection.close()
    return answer


LAYER = Path("out/monday/tea.corrected.json")


def test_a_correction_lies_beside_the_result_and_wins(server, folder):
    before = (folder / "monday/tea.steps.json").read_bytes()

    answer = post(server, [[38.0, 50.0, HOSTILE], [4.0, 21.5, "boil milk"]])

    found = sg.load(folder / "monday/tea.steps.json")
    assert answer.status == 200
    assert json.loads(answer.body)["corrected"] is True
    assert (folder / "monday/tea.steps.json").read_bytes() == before
    assert found.corrected
    assert [(one.start, one.end, one.keystep) for one in found] == [
        (4.0, 21.5, "boil milk"),
        (38.0, 50.0, HOSTILE),
    ]
    assert [one.origin for one in found] == ["corrected", "label"]
    assert json.loads(get(server, "overview")[1])["videos"][0]["steps"][0][2] == "boil milk"


def test_a_correction_is_taken_back(server, folder):
    post(server, [])
    assert sg.load(folder / "monday/tea.steps.json").chapters == ()

    assert post(server, None).status == 200

    assert not LAYER.exists()
    assert not sg.load(folder / "monday/tea.steps.json").corrected


def test_what_was_corrected_is_found(server):
    post(server, [[4.0, 20.0, "heat some milk"]])

    [moment] = json.loads(get(server, "search?of=boil%20water")[1])

    assert moment["keystep"] == "heat some milk"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": None},
        {"Origin": "http://evil.example"},
        {"Host": "evil.example"},
        {"Sec_Fetch_Site": "cross-site"},
    ],
)
def test_another_page_can_correct_nothing(server, headers):
    assert post(server, [], **headers).status == 403
    assert not LAYER.exists()


def test_without_the_secret_nothing_is_corrected(server):
    for secret in ("x" * 32, f"{server.secret}x", f"x/{server.secret}"):
        assert post(server, [], secret=secret).status == 404
    assert not LAYER.exists()


def test_a_form_of_another_page_is_no_correction(server):
    assert post(server, [], Content_Type="text/plain").status == 400
    assert not LAYER.exists()


@pytest.mark.parametrize(
    "steps",
    [
        *(7, {}, [[1, 2]], [[2, 1, "a"]], [[1, 1, "a"]], [[1, 2, " "]], [[1, 2, 3]]),
        *([[-1, 2, "a"]], [[1, 2, "a" * 2000]], [[1, 1e99, "a"]], [["x", 2, "a"]]),
        [[1, 2, "a\ud800"]],
    ],
)
def test_what_is_no_correction_is_an_error_in_words(server, steps):
    answer = post(server, steps)

    assert answer.status == 400
    assert json.loads(answer.body)["error"]
    assert not LAYER.exists()


@pytest.mark.parametrize(
    "asked",
    [
        "POST /{secret}/correct?of=monday%2Ftea HTTP/1.0\r\nHost: {own}\r\n"
        "Origin: http://{own}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {'9' * 5000}\r\n\r\n",
        "POST /{secret}/correct?of=monday%2Ftea HTTP/1.0\r\nHost: {own}\r\n"
        "Origin: http://{own}\r\nContent-Type: application/json\r\n"
        f"Content-Length: 100000\r\n\r\n{'[' * 100_000}",
    ],
)
def test_what_nobody_can_mean_is_refused_and_not_raised(server, asked):
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as connection:
        own = f"127.0.0.1:{server.server_port}"
        connection.sendall(asked.format(secret=server.secret, own=own).encode())
        answer = connection.recv(100)

    assert answer.startswith(b"HTTP/1.1 400 ")


def test_a_range_of_thousands_of_digits_is_the_whole_file(server):
    answer, _ = get(server, "media/monday%2Ftea", Range=f"bytes={'9' * 5000}-")

    assert answer.status in (200, 206, 404)


def test_a_video_that_is_not_there_is_not_corrected(server):
    assert post(server, [], "correct?of=..%2F..%2Fx").status == 404


def test_corrections_become_a_truth(server, capsys):
    post(server, [[4.0, 20.0, "heat some milk"]])

    assert main(["truth", "out"]) == 0

    assert capsys.readouterr().out == "truth.csv: 1 step of 1 video\n"
    assert Path("truth.csv").read_text().splitlines()[1] == "monday/tea,4.0,20.0,heat some milk"


def test_a_truth_that_is_there_or_would_be_empty_is_not_written(server, capsys):
    Path("truth.csv").write_text("by hand")

    assert main(["truth", "out"]) == 1
    assert "truth.csv: must not exist yet, got a file" in capsys.readouterr().err
    assert main(["truth", "out", "--overwrite"]) == 1
    assert "must hold steps that a person corrected or annotated, got" in capsys.readouterr().err
    assert Path("truth.csv").read_text() == "by hand"

    post(server, [[4.0, 20.0, "heat some milk"]])
    assert main(["truth", "out", "--overwrite"]) == 0
    assert "heat some milk" in Path("truth.csv").read_text()


def test_what_cannot_be_read_is_said_at_once_and_on_the_page(folder, capsys, monkeypatch):
    (folder / "bad.steps.json").write_text("{")
    overviews = []

    def stopped(server):
        overviews.append(json.loads(server.shown.overview))
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "serve_forever", stopped)
    assert main(["view", "out", "--no-open"]) == 1

    first = capsys.readouterr().err.splitlines()[0]
    assert first.startswith("stepgraph: warning: 1 unreadable result (out/bad.steps.json: must be")
    assert overviews[0]["problems"] in first


def test_a_damaged_correction_is_one_line(folder, capsys):
    LAYER.write_text('{"format": "stepgraph-corrections", "version": 1, "steps": [7]}')

    assert main(["export", "out", "--format", "csv"]) == 1

    assert "tea.corrected.json: must be a file of corrections" in capsys.readouterr().err


def test_a_port_that_cannot_be_had_is_one_line(server, folder, capsys):
    for port in (server.server_port, 99_999):
        assert main(["view", "out", "--no-open", "--port", str(port)]) == 1

        assert f"port must be free and at most 65535, got {port} (" in capsys.readouterr().err


def test_two_servers_have_two_secrets(folder):
    with serving(folder) as one, serving(folder) as other:
        assert one.secret != other.secret
        assert len(one.secret) >= 32


# --- On disk


def test_the_page_on_disk_has_everything(folder, capsys):
    assert main(["view", "out", "--export", "site"]) == 0

    assert capsys.readouterr().out == "Open site/index.html in a browser.\n"
    written = {path.relative_to("site").as_posix() for path in Path("site").rglob("*.*")}
    assert written == {*STATIC, "index.html", "data.js", "data/0.js"} - {""}
    data = Path("site/data.js").read_text().removeprefix("window.STEPGRAPH = ").rstrip(";\n")
    content = json.loads(data)
    assert content["videos"][0]["src"] == "../t.mp4"
    assert content["maps"]["Make tea"]["nodes"][0]["name"] == "START"
    more = Path("site/data/0.js").read_text().removeprefix("window.STEPGRAPH.results(")
    found = json.loads(more.rstrip(");\n"))
    assert found["monday/tea"]["transcript"][0][2].endswith(f"{HOSTILE}.")


def test_a_large_page_on_disk_lies_in_parts(folder, monkeypatch):
    monkeypatch.setattr(pages, "_TOGETHER", 300)
    sg.write_timeline(replace(TEA, video=replace(TEA.video, id="other")), "out")

    main(["view", "out", "--export", "site"])

    assert sorted(path.name for path in Path("site/data").iterdir()) == ["0.js", "1.js"]
    assert Path("site/data/1.js").read_text().count('"other"') == 1


@pytest.mark.parametrize("allowed", [[], ["--youtube"]])
def test_the_page_on_disk_asks_nobody_unless_allowed_to(folder, allowed):
    main(["view", "out", "--export", "site", *allowed])

    policy = re.search(r'Policy" content="([^"]+)"', Path("site/index.html").read_text())[1]
    assert ("youtube" in policy) is bool(allowed)
    assert "default-src 'none'" in policy


def test_a_folder_without_results_is_one_line(folder, capsys):
    Path("empty").mkdir()

    assert main(["view", "empty"]) == 1

    assert "must hold results (.steps.json), got none" in capsys.readouterr().err
