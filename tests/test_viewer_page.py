"""Results in a browser as a person sees them: watched, searched and corrected."""
# ruff: noqa: F811

import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import combinations
from pathlib import Path

import pytest

import stepgraph as sg
from seeing import flaws, tabbed
from stepgraph.core import Chapter, Result, Sentence, Video
from stepgraph.viewer import pages
from stepgraph.viewer.pages import write_site
from test_export_report import browser  # noqa: F401
from test_viewer_server import HOSTILE, TEA, folder, serving  # noqa: F401
from test_viewer_thumbnails import filmed
from videos import write_sound

LOOKS = {
    "light": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 780}, "color_scheme": "light"},
    "phone, dark": {"viewport": {"width": 390, "height": 780}, "color_scheme": "dark"},
}
PATIENCE = 120_000  # milliseconds, on a machine that is busy with other tests
BOTH_ENDS = pytest.mark.parametrize("page", ["light", "phone, dark"], indirect=True)


@pytest.fixture
def page(browser, request):
    """A page; what it complains about or asks the network for fails the test at the end."""
    complaints, asked = [], []
    context = browser.new_context(**LOOKS[getattr(request, "param", "light")])
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    yield page
    context.close()
    assert complaints == []
    assert all(one.startswith(("file:", "data:", "http://127.0.0.1:")) for one in asked)


def until(page, condition):
    """Wait for something; the page's policy lets nobody else evaluate anything in it."""
    for _ in range(PATIENCE // 50):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"never: {condition}")


def watch_and_search(page):
    page.click("text=monday/tea")
    page.wait_for_selector(".steps button")
    until(page, "document.querySelector('video').readyState >= 1")
    page.keyboard.press("Space")
    until(page, "document.querySelector('video').currentTime > 0.2")
    page.keyboard.press("Space")
    until(page, "document.querySelector('video').paused")
    page.keyboard.press("2")
    until(page, "document.querySelector('video').currentTime >= 38")
    jumped = page.inner_text(".steps [aria-current=true]")
    page.fill("#question", "water")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hits a")
    page.click(".hits a")
    until(page, "document.querySelector('video')?.currentTime >= 5")
    found = page.inner_text(".steps [aria-current=true]")
    assert HOSTILE in jumped
    assert "boil the water" in found
    assert page.evaluate("[...document.images].every((one) => one.className == 'thumb')")


@pytest.mark.browser
@BOTH_ENDS
def test_a_person_watches_and_searches(folder, page):
    filmed()
    with serving(folder) as server:
        page.goto(server.address)
        watch_and_search(page)


@pytest.mark.browser
def test_a_person_watches_and_searches_from_disk(folder, page):
    filmed()
    page.goto(write_site([sg.load("out/monday/tea.steps.json")], Path("site")).absolute().as_uri())

    watch_and_search(page)


@pytest.mark.browser
def test_from_disk_the_best_moment_of_each_step_is_found(tmp_path, page):
    said = ((5.0, "now the kettle"), (9.0, "boil water"), (30.0, "more water"), (40.0, "bye"))
    sentences = tuple(Sentence(start, start + 2, text) for start, text in said)
    result = replace(TEA, video=Video("tea", 60.0, sentences))
    page.goto(write_site([result], tmp_path / "site").absolute().as_uri() + "#search/boil%20water")
    page.wait_for_selector(".hits a")

    found = page.locator(".hits a").all_inner_texts()
    assert [one.split() for one in found] == [
        ["0:09", "tea", "“boil", "water”", "1.00"],
        ["0:30", "tea", "“more", "water”", "0.25"],
    ]


@pytest.mark.browser
@pytest.mark.parametrize("page", ["phone"], indirect=True)
def test_what_is_looked_for_stays_in_sight_on_a_phone(both, page):
    inside = "{{ const box = document.querySelector('{}')?.getBoundingClientRect(); "
    inside += "box && box.top >= 0 && box.bottom <= innerHeight + 1 }}"
    with serving(both) as server:
        page.goto(f"{server.address}#video/later")
        page.click("text=Correct")
        for why in page.locator(".why").all():
            why.click()
        page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
        until(page, inside.format("video"))
        page.goto(f"{server.address}#graph/Make%20tea")
        page.click(".node[data-name='boil the water']")
        until(page, inside.format(".side h2"))


@pytest.mark.browser
def test_a_list_is_gone_through_and_found_again_where_it_was(tmp_path, page):
    many = (replace(TEA, video=Video(f"video {n:03}", 60.0)) for n in range(200))
    page.goto(write_site(many, tmp_path / "site").absolute().as_uri())
    page.wait_for_selector(".list .row")
    page.evaluate("window.scrollTo(0, 4000)")
    page.click("text=video 095")
    page.wait_for_selector(".steps")
    page.click("text=Next")
    until(page, "document.querySelector('h1').textContent == 'video 096'")
    assert page.evaluate("window.scrollY") == 0
    page.go_back()
    page.go_back()
    page.wait_for_selector("text=video 095")

    assert page.evaluate("window.scrollY") == 4000


@pytest.mark.browser
def test_sound_alone_is_played_and_what_cannot_be_is_said(folder, page):
    sound = write_sound(Path("talk.m4a"), 4.0)
    sg.write_timeline(replace(TEA, video=Video("talk", 4.0, path=sound)), folder)
    with serving(folder) as server:
        page.goto(f"{server.address}#video/talk")
        until(page, "document.querySelector('audio')?.readyState >= 1")
        assert page.locator("video").count() == 0
        page.keyboard.press("Space")
        until(page, "document.querySelector('audio').currentTime > 0.2")
        page.goto(f"{server.address}#video/monday%2Ftea")
        page.wait_for_selector("text=cannot play the file")
        page.click(".steps .step >> nth=1")
        until(page, "document.querySelector('[aria-label=timeline]').ariaValueNow == '38'")


@pytest.mark.browser
def test_that_nobody_answers_any_more_is_said_in_words(folder, browser):
    page = browser.new_page()
    with serving(folder) as server:
        page.goto(server.address)
        page.wait_for_selector(".list .row")
        page.route("**/result*", lambda route: route.abort())
        page.click(".list .row")
        said = page.inner_text("[role=alert]")
    page.close()

    assert said.startswith("No response: stepgraph view was stopped.")


@pytest.mark.browser
def test_thousands_of_videos_are_a_few_lines_at_a_time(tmp_path, page):
    many = (replace(TEA, video=Video(f"video {n:04}", 60.0)) for n in range(5000))
    page.goto(write_site(many, tmp_path / "site").absolute().as_uri())
    page.wait_for_selector(".list .row")

    assert page.inner_text(".tools .quiet") == "5000 of 5000 videos"
    assert page.locator(".list .row").count() < 80
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    page.wait_for_selector("text=video 4999")
    page.fill("[aria-label=Filter]", "video 0777")
    page.wait_for_selector("text=1 of 5000 videos")


@pytest.mark.browser
def test_the_least_certain_come_first_when_asked_for(tmp_path, page):
    sure = {name: replace(TEA.chapters[0], confidence=c) for name, c in (("a", 0.9), ("b", 0.1))}
    results = [Result(Video(name, 60.0), (one,)) for name, one in sure.items()]
    page.goto(write_site(results, tmp_path / "site").absolute().as_uri())
    page.wait_for_selector(".list .row")

    page.click("text=What to check first")

    assert page.locator(".list .row .named").all_inner_texts() == ["b", "a"]


LATER = replace(
    TEA,
    video=replace(TEA.video, id="later"),
    chapters=(
        Chapter(30.0, 32.0, HOSTILE, 0.2, "path", 0.2, None, None, (("boil the water", 0.6),)),
        Chapter(41.0, 43.0, "boil the water", 0.3, "anchor", 0.7, "Boil the water."),
    ),
)


@pytest.fixture
def both(folder):
    filmed()
    sg.write_timeline(LATER, folder)
    return folder


@pytest.mark.browser
def test_a_step_is_played_everywhere_it_is_done(both, page):
    sg.write_timeline(replace(TEA, chapters=(replace(TEA.chapters[0], end=5.0),)), both)
    with serving(both) as server:
        page.goto(f"{server.address}#graph/Make%20tea")
        page.click(".node[data-name='boil the water']")
        assert page.locator(".places .place").count() == 2
        page.click("text=Play all")
        until(page, "document.querySelector('video')?.currentTime >= 41")
        assert page.inner_text(".place[aria-current]").startswith("later")
        until(page, "document.querySelector('.side .tools').textContent == 'Stop'")
        until(page, "document.querySelector('.side .tools').textContent == 'Play all'")
        assert page.evaluate("document.querySelector('video').paused")
        page.keyboard.press("Tab")
        page.click(".place >> nth=1")
        until(page, "document.querySelector('.screen video')?.currentTime >= 4")


@pytest.mark.browser
def test_a_file_that_cannot_be_played_stops_no_other(both, page):
    Path("bad.mp4").write_bytes(b"no video")
    for name in ("a", "b"):
        chapters = (replace(TEA.chapters[0], start=4.0 * n, end=4.0 * n + 3) for n in (0, 1))
        bad = Video(name, 60.0, path=Path("bad.mp4"))
        sg.write_timeline(replace(TEA, video=bad, chapters=(*chapters,)), both)
    with serving(both) as server:
        page.goto(f"{server.address}#graph/Make%20tea/boil%20the%20water")
        page.click("text=Play all")
        until(page, "document.querySelector('video')?.currentTime > 41")
        assert page.inner_text(".place[aria-current]").startswith("later")


@pytest.mark.browser
def test_no_two_steps_of_a_task_look_alike(tmp_path, page):
    results = []
    for number in range(40):  # a step of each of two tasks, again and again, and one of both
        task = "tea" if number % 2 else "coffee"
        names = (f"{task} {number // 2}", "boil the water")
        steps = (Chapter(n, n + 1.0, name, 0.5, "anchor") for n, name in enumerate(names))
        results.append(Result(Video(f"v{number:02}", 60.0), (*steps,), {task: 0.9}))
    page.goto(write_site(results, tmp_path / "site").absolute().as_uri())
    page.wait_for_selector(".list .row")

    found = page.evaluate(
        """() => ["tea", "coffee"].map((task) => {
          const names = Array.from({ length: 20 }, (_, number) => `${task} ${number}`);
          const value = (name, kind) => Number(dot(name).style.getPropertyValue(kind));
          const both = (one) => [value(one, "--hue"), value(one, "--light")];
          return ["boil the water", ...names].map(both);
        })"""
    )

    for own in found:
        for (hue, light), (other, its) in combinations(own, 2):
            apart = min((hue - other) % 360, (other - hue) % 360)
            assert apart >= (20 if light == its else 5)


@pytest.mark.browser
def test_two_videos_stand_side_by_side_by_step(both, page):
    with serving(both) as server:
        page.goto(f"{server.address}#video/later")
        page.select_option("[aria-label='Compare with']", "monday/tea")
        page.wait_for_selector(".pairs")
        rows = page.locator(".pair").all_inner_texts()
        page.click(".pair.both")
        until(page, "[...document.querySelectorAll('video')].every((one) => one.currentTime > 3)")
        times = page.evaluate(
            "[...document.querySelectorAll('video')].map((one) => one.currentTime)"
        )

    assert [HOSTILE in row for row in rows].count(True) == 2
    assert ["elsewhere" in row for row in rows].count(True) == 2
    assert times == pytest.approx([41.0, 4.0], abs=0.6)


@pytest.mark.browser
def test_what_speaks_for_a_step_is_told_when_asked_for(both, page):
    with serving(both) as server:
        page.goto(f"{server.address}#video/later")
        page.wait_for_selector(".steps .why")
        assert page.locator(".explanation").count() == 0
        page.click(".why >> nth=0")
        told = page.inner_text(".explanation")
        page.click(".why >> nth=0")

        assert page.locator(".explanation").count() == 0
    assert "boil the water" in told
    assert "60 %" in told
    assert "confidence 20 %" in told


@pytest.mark.browser
def test_small_pictures_come_with_chapters(both, page):
    with serving(both) as server:
        page.goto(f"{server.address}#video/later")
        until(page, "document.querySelector('.steps .thumb')?.naturalWidth == 240")
    page.goto(write_site(sg_results(both), Path("site")).absolute().as_uri() + "#video/later")
    until(page, "document.querySelector('.steps .thumb')?.naturalWidth == 240")


def sg_results(folder):
    return [sg.load(path) for path in sorted(folder.rglob("*.steps.json"))]


class Elsewhere(BaseHTTPRequestHandler):
    """Stands for the player of YouTube: another place, which answers what it is told."""

    def do_GET(self):
        page = b"""<script>addEventListener("message", (event) => {
            const told = JSON.parse(event.data);
            document.title += `${told.event} ${told.func ?? ""} ${told.args?.[0] ?? ""};`;
            parent.postMessage(JSON.stringify({info: {currentTime: told.args?.[0] ?? 39}}), "*");
        })</script>"""
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_):
        pass


@pytest.mark.browser
@pytest.mark.parametrize("allowed", [True, False])
def test_youtube_plays_only_where_it_is_allowed(folder, page, monkeypatch, allowed):
    sg.write_timeline(replace(TEA, video=Video("dQw4w9WgXcQ", 60.0)), folder)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    with HTTPServer(("127.0.0.1", 0), Elsewhere) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{other.server_port}"
        monkeypatch.setattr(pages, "YOUTUBE", address)
        with serving(folder, youtube=allowed) as server:
            page.goto(f"{server.address}#video/dQw4w9WgXcQ")
            page.wait_for_selector(".steps .step")
            if allowed:
                until(page, "document.querySelectorAll('.steps [aria-current]').length == 1")
                assert HOSTILE in page.inner_text(".steps [aria-current]")
                page.click(".step >> nth=0")
                until(page.frames[1], "document.title.includes('command seekTo 4;')")
        other.shutdown()
    outside = [one for one in asked if one.startswith(address)]
    assert [one.partition("?")[0] for one in outside] == [f"{address}/embed/dQw4w9WgXcQ"] * allowed


PLACES = ("", "#video/monday%2Ftea@5", "#graph/Make%20tea", "#compare/later/monday%2Ftea", "#none")


@pytest.mark.browser
@pytest.mark.parametrize("look", LOOKS)
def test_everybody_can_use_every_page(both, browser, look):
    context = browser.new_context(**LOOKS[look])
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    with serving(both) as server:
        for place in PLACES:
            page.goto("about:blank")
            page.goto(server.address + place)
            page.wait_for_selector("main h1, main .row, main [role=alert]")
            if "video" in place:
                page.click("text=Correct")
                page.wait_for_selector("[aria-label^='name of step']")
                page.click(".why >> nth=0")
                page.wait_for_selector(".explanation")
            if place == "#graph/Make%20tea":
                page.click(".node[role=button] >> nth=0")
                page.wait_for_selector(".places")

            assert flaws(page) == [], place
    context.close()
    assert complaints == []


def test_flaws_are_found(browser, tmp_path):
    """The checks themselves can fail."""
    (tmp_path / "bad.html").write_text(
        "<h1>a</h1><h3>b</h3><p style='color:#999'>pale</p><button></button><img src='data:,'>"
    )
    page = browser.new_page()
    page.goto((tmp_path / "bad.html").as_uri())

    found = " ".join(flaws(page))

    assert all(one in found for one in ("contrast 2.85: pale", "no name", "no alt", "headings"))
    page.close()


@pytest.mark.browser
def test_the_keyboard_alone_is_enough(both, page):
    with serving(both) as server:
        page.goto(server.address)
        page.wait_for_selector(".list .row")
        first = tabbed(page, 30)
        assert first[:4] == ["Skip to the content", "stepgraph", "Videos", "Tasks"]
        assert [one for one in first if one.startswith(("later", "monday"))]
        page.focus(".list .row")
        page.keyboard.press("Enter")
        page.wait_for_selector(".steps .step")
        until(page, "document.querySelector('video').readyState >= 1")
        inside = tabbed(page, 40)
        assert {"timeline", "transcript"} <= {*inside}
        page.focus("[aria-label=timeline]")
        page.keyboard.press("ArrowRight")
        until(page, "document.querySelector('[aria-label=timeline]').ariaValueNow == '5'")
        page.focus(".why")
        page.keyboard.press("Enter")
        page.wait_for_selector(".explanation")
        page.goto(f"{server.address}#graph/Make%20tea")
        page.focus(".node[role=button]")
        page.keyboard.press("Enter")
        page.wait_for_selector(".places")
        page.focus("#main")
        tabbed(page, 12)
