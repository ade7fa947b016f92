"""The HTML report with video files: it plays them beside their timelines, and nothing else."""

from __future__ import annotations

import functools
import http.server
import os
import re
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import test_export_report
from stepgraph.core import Dataset, Video
from stepgraph.export.report import media_address
from test_export_report import HOSTILE, embedded, kitchen, omelette, write

browser = test_export_report.browser

NAMES = (
    'a"><script>window.broken=1;<script>.mp4',
    "' onerror='window.broken=2.mp4",
    "50% #1 ?&+.mp4",
    "%41.mp4",
    "javascript:window.broken=3.mp4",
    "back\\slash.mp4",
    "naïve 日本 🍳.mp4",
    "two\nlines.MP4",
    "{{script}} .m4v",
)


def with_files(*paths):
    """The kitchen, its videos in the files given; None leaves one without."""
    dataset, methods = kitchen(omelette())
    videos = [replace(one, path=path) for one, path in zip(dataset.videos, paths, strict=False)]
    videos += dataset.videos[len(paths) :]
    return {"dataset": replace(dataset, videos=videos), "methods": methods}


def policy(page):
    return re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]


def seen_from(page, file):
    return media_address(Video("v", 1.0, path=Path(file)), Path(page))


@pytest.mark.parametrize(
    ("page", "file", "address"),
    [
        ("/films/report.html", "/films/clips/a.mp4", "clips/a.mp4"),
        ("/films/report.html", "/films/a b#1.mp4", "a%20b%231.mp4"),
        ("/films/reports/new/r.html", "/films/clips/a.MKV", "../../clips/a.MKV"),
        ("/films/report.html", "/films/clips/../b.webm", "b.webm"),
        ("out/report.html", "videos/a.mp4", "../videos/a.mp4"),
        ("/films/report.html", "/films/http://example.org/a.mp4", "http%3A/example.org/a.mp4"),
        ("/films/report.html", "/mnt/clips 1/a.mp4", "file:///mnt/clips%201/a.mp4"),
        ("/report.html", "/a.mp4", "file:///a.mp4"),
    ],
)
def test_a_file_is_addressed_from_the_page_where_a_folder_holds_both(page, file, address):
    assert seen_from(page, file) == address


def test_a_file_on_another_drive_has_an_address_of_its_own(monkeypatch):
    def fail(_):
        raise ValueError("Paths don't have the same drive")

    monkeypatch.setattr("os.path.commonpath", fail)

    assert seen_from("/films/report.html", "/films/a.mp4") == "file:///films/a.mp4"


def test_a_name_in_another_encoding_keeps_its_bytes(tmp_path):
    file = tmp_path / os.fsdecode(b"caf\xe9.mp4")

    page = write(tmp_path / "report.html", **with_files(file))

    assert embedded(page)["videos"][0]["src"] == "caf%E9.mp4"


def test_a_page_without_video_files_plays_nothing(tmp_path):
    bare = write(tmp_path / "bare.html")
    spoken = write(tmp_path / "spoken.html", **with_files(tmp_path / "v1.vtt", tmp_path / "v2"))

    assert spoken == bare
    assert re.fullmatch(
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        "script-src 'sha256-[^']{44}'; base-uri 'none'; form-action 'none'",
        policy(bare),
    )


def test_a_page_with_a_video_file_may_load_media_and_no_more(tmp_path):
    bare = policy(write(tmp_path / "bare.html"))

    page = write(tmp_path / "report.html", **with_files(None, tmp_path / "clips" / "quiet.mp4"))

    assert policy(page).count("media-src 'self' file:; ") == 1
    assert policy(page).replace("media-src 'self' file:; ", "") == bare
    first, second = embedded(page)["videos"]
    assert "src" not in first
    assert second["src"] == "clips/quiet.mp4"


def test_hostile_names_of_files_stay_addresses(tmp_path):
    for name in NAMES:
        page = write(tmp_path / "report.html", **with_files(tmp_path / name))

        assert page.count("<script") == 2
        assert re.fullmatch(r"[\w.%~/-]+", embedded(page)["videos"][0]["src"])


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    """Twenty seconds of a colour that changes."""
    av = pytest.importorskip("av")
    path = tmp_path_factory.mktemp("clip") / "clip.mp4"
    with av.open(str(path), "w") as container:
        picture = container.add_stream("libx264", rate=5, options={"g": "5"})
        picture.width, picture.height, picture.pix_fmt = 64, 48, "yuv420p"
        for number in range(100):
            pixels = np.full((48, 64, 3), (2 * number, 80, 200), dtype=np.uint8)
            container.mux(picture.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(picture.encode())
    return path


@pytest.fixture
def visit(browser):
    """Open a page; what it complains about fails the test, save what is expected."""
    complaints, contexts, excuses = [], [], []

    def visit(address, *expected, width=1280, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        excuses.extend(expected)
        context.set_default_timeout(120_000)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address.as_uri() if isinstance(address, Path) else address)
        h264 = """document.createElement("video").canPlayType('video/mp4; codecs="avc1.42E01E"')"""
        if not page.evaluate(h264):
            pytest.skip("this Chromium was built without H.264")
        page.locator(".card").first.scroll_into_view_if_needed()
        page.locator(".card .readout").first.wait_for()
        return page

    yield visit
    for context in contexts:
        context.close()
    assert [one for one in complaints if not any(excuse in one for excuse in excuses)] == []


def shown(tmp_path, visit, clip, **options):
    """A page whose video v1 plays, its card, and how many pixels a second has."""
    shutil.copy(clip, tmp_path / "v1.mp4")
    write(tmp_path / "report.html", **with_files(tmp_path / "v1.mp4"))
    page = visit(tmp_path / "report.html", **options)
    card = page.locator(".card", has_text="v1")
    wait(card, "film.readyState >= 2 && !film.seeking")
    return page, card, card.locator(".probe").bounding_box()["width"] / 20


def wait(card, condition):
    film = card.locator("video").element_handle()
    card.page.wait_for_function(f"(film) => {condition}", arg=film, timeout=120_000)


def place(card, mark="i:first-child"):
    """Where a line stands, in seconds."""
    left = card.locator(f".probe {mark}").evaluate("(line) => line.style.left")
    return float(left.removesuffix("%")) / 5


def readout(card):
    return " ".join(card.locator(".readout").inner_text().split())


@pytest.mark.browser
def test_a_video_file_plays_beside_its_timeline(tmp_path, visit, clip):
    page, card, _ = shown(tmp_path, visit, clip)

    film, tracks = (card.locator(one).bounding_box() for one in ("video", ".tracks"))
    assert film["x"] + film["width"] < tracks["x"]
    assert card.locator("video").evaluate("(film) => [film.duration, film.videoWidth]") == [20, 64]
    assert card.locator("video").get_attribute("controls") == ""
    assert page.locator("video").count() == 1
    page.locator(".key summary").click()
    assert "Click a timeline" in page.locator("#key").inner_text()


@pytest.mark.browser
def test_a_film_begins_at_the_moment_that_the_card_shows(tmp_path, visit, clip):
    _, card, _ = shown(tmp_path, visit, clip)

    assert card.locator("video").evaluate("(film) => film.currentTime") == pytest.approx(6)
    assert place(card) == pytest.approx(6)
    assert card.locator("video").evaluate("(film) => film.paused")


@pytest.mark.browser
def test_a_click_on_a_segment_goes_there(tmp_path, visit, clip):
    _, card, second = shown(tmp_path, visit, clip)

    card.locator(".probe").click(position={"x": 5.5 * second, "y": 20})

    wait(card, "Math.abs(film.currentTime - 5.5) < 0.1 && !film.seeking")
    assert place(card) == pytest.approx(5.5, abs=0.1)
    assert readout(card) == (
        "0:05 truth whisk eggs argmax whisk eggs path-search whisk eggs now whisk the eggs"
    )


@pytest.mark.browser
def test_dragging_moves_the_film_along(tmp_path, visit, clip):
    page, card, second = shown(tmp_path, visit, clip)
    box = card.locator(".probe").bounding_box()

    page.mouse.move(box["x"] + 2 * second, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 17 * second, box["y"] + 300, steps=4)

    wait(card, "Math.abs(film.currentTime - 17) < 0.1")


@pytest.mark.browser
def test_a_finger_that_scrolls_leaves_the_film_alone_and_one_that_taps_moves_it(
    tmp_path, visit, clip
):
    page, card, second = shown(tmp_path, visit, clip, width=400, has_touch=True)
    box = card.locator(".probe").bounding_box()
    touch = page.context.new_cdp_session(page)

    def finger(kind, *points):
        places = [{"x": x, "y": y} for x, y in points]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})

    x, y = box["x"] + 15 * second, box["y"] + 30
    finger("touchStart", (x, y))
    for up in range(20, 200, 20):
        finger("touchMove", (x + up / 10, y - up))
    finger("touchEnd")
    assert place(card) == pytest.approx(6)
    page.locator(".card").first.scroll_into_view_if_needed()
    box = card.locator(".probe").bounding_box()
    page.touchscreen.tap(box["x"] + 15 * second, box["y"] + 30)
    wait(card, "Math.abs(film.currentTime - 15) < 0.1")
    assert place(card) == pytest.approx(15, abs=0.1)


@pytest.mark.browser
def test_hovering_looks_ahead_and_leaves_the_film_alone(tmp_path, visit, clip):
    page, card, second = shown(tmp_path, visit, clip)

    card.locator(".probe").hover(position={"x": 5.5 * second, "y": 20})

    assert readout(card).startswith("0:05 truth whisk eggs")
    assert place(card, ".ghost") == pytest.approx(5.5, abs=0.1)
    assert place(card) == pytest.approx(6)
    page.mouse.move(0, 0)
    assert readout(card).startswith("0:06 truth whisk eggs argmax – path-search whisk eggs")
    assert card.locator(".ghost").is_hidden()
    assert card.locator("video").evaluate("(film) => film.currentTime") == pytest.approx(6)


@pytest.mark.browser
def test_the_cursor_and_the_names_follow_a_film_that_runs(tmp_path, visit, clip):
    _, card, second = shown(tmp_path, visit, clip)
    card.locator(".probe").click(position={"x": 3.2 * second, "y": 20})
    assert readout(card).startswith("0:03 truth – argmax – path-search – no sentence")

    # The pointer rests on the timeline, as it does after a click.
    card.locator("video").evaluate("(film) => film.play()")
    card.locator(".readout", has_text="whisk eggs").wait_for()
    assert "truth: whisk eggs" in card.locator(".probe").get_attribute("aria-valuetext")
    card.locator(".probe").hover(position={"x": 18.5 * second, "y": 20})
    assert not readout(card).startswith("0:18")
    card.locator("video").evaluate("(film) => film.pause()")
    wait(card, "film.paused")

    time = card.locator("video").evaluate("(film) => film.currentTime")
    assert place(card) == pytest.approx(time, abs=0.05)
    assert readout(card).startswith(f"0:{int(time):02d} ")


@pytest.mark.browser
def test_a_film_obeys_the_keyboard(tmp_path, visit, clip):
    page, card, _ = shown(tmp_path, visit, clip)
    probe = page.get_by_role("slider", name="time in video v1")

    probe.focus()
    for key in ("Home", "Shift+ArrowRight", "ArrowRight"):
        probe.press(key)
    wait(card, "film.currentTime === 11")
    assert probe.get_attribute("aria-valuetext").startswith("0:11; truth: heat pan")
    probe.press("Space")
    wait(card, "!film.paused && film.currentTime > 11")
    probe.press("Space")
    wait(card, "film.paused")
    card.locator("video").focus()
    page.keyboard.press("Space")
    wait(card, "!film.paused")
    page.keyboard.press("Space")
    wait(card, "film.paused")
    before = card.locator("video").evaluate("(film) => film.currentTime")
    page.keyboard.press("ArrowLeft")
    wait(card, f"film.currentTime < {before}")


@pytest.mark.browser
def test_one_film_runs_at_a_time_and_none_in_a_closed_group(tmp_path, visit, clip):
    write(tmp_path / "report.html", **with_files(clip, clip))
    page = visit(tmp_path / "report.html")
    first, second = (page.locator(".card", has_text=name) for name in ("v1", "quiet"))
    second.scroll_into_view_if_needed()
    for card in (first, second):
        card.locator("video").wait_for()
        wait(card, "film.readyState >= 2")
        card.locator("video").evaluate("(film) => film.play()")

    wait(first, "film.paused")
    wait(second, "!film.paused")
    page.locator(".group > summary").click()
    wait(second, "film.paused")


@pytest.mark.browser
def test_files_with_hostile_names_play_and_do_nothing_else(tmp_path, visit, clip):
    dataset, _ = kitchen(omelette())
    videos = []
    for number, name in enumerate(NAMES):
        shutil.copy(clip, tmp_path / name)
        videos.append(Video(f"v{number}", 20.0, path=tmp_path / name))
    folder = tmp_path / '#1 "%2e%2e"' / "<b>"
    folder.mkdir(parents=True)
    hostile = Dataset("hostile", videos, dataset.vocabulary)
    write(folder / "report.html", dataset=hostile, methods=[])
    page = visit(folder / "report.html")
    page.locator("button.more").click()
    for film in page.locator("article").all():
        film.scroll_into_view_if_needed()
        film.locator("video").wait_for()

    page.wait_for_function(
        """(count) => {
            const films = [...document.querySelectorAll("video")];
            return films.length === count && films.every((film) => film.readyState >= 2);
        }""",
        arg=len(NAMES),
        timeout=120_000,
    )
    assert page.evaluate("typeof window.broken") == "undefined"


@pytest.mark.browser
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("gone & <b>%.mp4", None),
        ("empty.mp4", b""),
        ("cut.mp4", b"\0\0\0\x20ftypisom"),
        ("a.avi", b"RIFF"),
    ],
)
def test_a_file_that_cannot_be_played_is_named_and_the_rest_works(tmp_path, visit, name, content):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    write(tmp_path / "report.html", **with_files(tmp_path / name))
    page = visit(tmp_path / "report.html", "ERR_FILE_NOT_FOUND", "ERR_REQUEST_RANGE")
    card = page.locator(".card", has_text="v1")

    card.get_by_text(f"This video cannot be played: {name} is missing").wait_for()

    assert card.locator("video").count() == 0
    second = card.locator(".probe").bounding_box()["width"] / 20
    card.locator(".probe").hover(position={"x": 5.5 * second, "y": 20})
    assert readout(card).startswith("0:05 truth whisk eggs argmax whisk eggs")
    assert place(card) == pytest.approx(5.5, abs=0.1)
    card.locator(".probe").focus()
    for key in ("Space", "Home", "ArrowRight"):
        page.keyboard.press(key)
    assert place(card) == 1


class Whole(http.server.SimpleHTTPRequestHandler):
    """Sends files from their beginning only, as Python's own server does."""

    def log_message(self, *_):
        pass


class Ranges(Whole):
    """Sends parts of files, as most web servers do."""

    def do_GET(self):
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if not asked:
            super().do_GET()
            return
        data = Path(self.translate_path(self.path)).read_bytes()
        first, last = int(asked[1]), int(asked[2] or len(data) - 1)
        self.send_response(206)
        self.send_header("Content-Type", self.guess_type(self.path))
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        self.send_header("Content-Length", str(last + 1 - first))
        self.end_headers()
        self.wfile.write(data[first : last + 1])


@pytest.fixture
def serve(tmp_path, clip):
    """Serve a folder with a report and its clip; return the address of the report."""
    (tmp_path / "clips").mkdir()
    shutil.copy(clip, tmp_path / "clips" / "v 1.mp4")
    write(tmp_path / "report.html", **with_files(tmp_path / "clips" / "v 1.mp4"))
    servers = []

    def serve(handler):
        with_folder = functools.partial(handler, directory=str(tmp_path))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), with_folder)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/report.html"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.browser
def test_a_page_that_is_served_plays_its_files(visit, serve):
    page = visit(serve(Ranges))
    card = page.locator(".card", has_text="v1")
    second = card.locator(".probe").bounding_box()["width"] / 20
    wait(card, "film.readyState >= 2 && film.currentTime === 6")

    card.locator(".probe").click(position={"x": 5.5 * second, "y": 20})

    wait(card, "Math.abs(film.currentTime - 5.5) < 0.1 && !film.seeking")
    assert "web server" not in card.inner_text()


@pytest.mark.browser
def test_a_server_that_cannot_jump_is_named_and_the_film_plays_from_its_start(visit, serve):
    page = visit(serve(Whole))
    card = page.locator(".card", has_text="v1")
    second = card.locator(".probe").bounding_box()["width"] / 20

    card.get_by_text("This web server does not support jumps within a video.").wait_for()
    card.locator(".probe").click(position={"x": 5.5 * second, "y": 20})
    page.mouse.move(0, 0)

    assert readout(card).startswith("0:05 truth whisk eggs")
    card.locator("video").evaluate("(film) => film.play()")
    wait(card, "film.currentTime > 0.3")
    card.locator("video").evaluate("(film) => film.pause()")
    assert place(card) < 5


@pytest.mark.browser
def test_a_phone_shows_the_film_above_its_timeline(tmp_path, visit, clip):
    long = tmp_path / (HOSTILE.replace("/", "") + "x" * 90 + ".mp4")
    shutil.copy(clip, tmp_path / "v1.mp4")
    write(tmp_path / "report.html", **with_files(tmp_path / "v1.mp4", long))
    page = visit(tmp_path / "report.html", "ERR_FILE_NOT_FOUND", width=380)
    page.get_by_text("cannot be played").wait_for()

    card = page.locator(".card", has_text="v1")
    film, tracks = (card.locator(one).bounding_box() for one in ("video", ".tracks"))
    assert film["y"] + film["height"] <= tracks["y"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
