"""Results in a browser as a person sees them: watched, searched and corrected."""

from dataclasses import replace
from pathlib import Path

import pytest

import stepgraph as sg
from stepgraph.core import Result, Video
from stepgraph.viewer.pages import write_site
from test_export_report import browser  # noqa: F401
from test_viewer_server import HOSTILE, TEA, folder, serving  # noqa: F401
from videos import numbered, write_video


@pytest.fixture
def page(browser):  # noqa: F811
    """A page; what it complains about or asks the network for fails the test at the end."""
    complaints, asked = [], []
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    yield page
    context.close()
    assert complaints == []
    assert all(one.startswith(("file:", "data:", "http://127.0.0.1:")) for one in asked)


def filmed():
    """Put a film that can be played in the place of the video."""
    pictures = (numbered(number) for number in range(100))
    write_video(Path("t.mp4"), pictures, rate=2, codec="libx264", options={"g": "2"})


def until(page, condition):
    """Wait for something; the page's policy lets nobody else evaluate anything in it."""
    for _ in range(200):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"never: {condition}")


def watch_and_search(page):
    page.click("text=monday/tea")
    page.wait_for_selector(".steps button")
    until(page, "document.querySelector('video').readyState >= 1")
    page.keyboard.press("2")
    until(page, "document.querySelector('video').currentTime >= 38")
    jumped = page.inner_text(".steps [aria-current=true]")
    page.fill("#question", "water")
    page.keyboard.press("Enter")
    page.wait_for_selector(".moments a", timeout=120_000)
    page.click(".moments a")
    until(page, "document.querySelector('video')?.currentTime >= 5")
    found = page.inner_text(".steps [aria-current=true]")
    assert HOSTILE in jumped
    assert "boil the water" in found
    assert page.evaluate("document.images.length") == 0


@pytest.mark.browser
def test_a_person_watches_and_searches(folder, page):  # noqa: F811
    filmed()
    with serving(folder) as server:
        page.goto(server.address)
        watch_and_search(page)


@pytest.mark.browser
def test_a_person_watches_and_searches_from_disk(folder, page):  # noqa: F811
    filmed()
    page.goto(write_site([sg.load("out/monday/tea.steps.json")], Path("site")).absolute().as_uri())

    watch_and_search(page)


@pytest.mark.browser
def test_a_person_corrects_undoes_and_finds_it_kept(folder, page):  # noqa: F811
    filmed()
    names = "[aria-label^='name of step']"
    with serving(folder) as server:
        page.goto(f"{server.address}#video/monday%2Ftea@10.0")
        page.click("text=Correct")
        page.fill(f"{names} >> nth=0", "heat some milk")
        page.keyboard.press("Tab")
        page.wait_for_selector("text=corrected")
        page.click("text=ends here >> nth=0")
        page.wait_for_selector("[aria-label='1: heat some milk, 0:04 to 0:10']")
        page.click("text=delete >> nth=1")
        until(page, f"""document.querySelectorAll("{names}").length == 1""")
        page.click("text=Undo")
        until(page, f"""document.querySelectorAll("{names}").length == 2""")
        page.reload()
        page.wait_for_selector("[aria-label='1: heat some milk, 0:04 to 0:10']")

    kept = sg.load("out/monday/tea.steps.json")
    assert [(one.start, one.end, one.keystep) for one in kept] == [
        (4.0, 10.0, "heat some milk"),
        (38.0, 50.0, HOSTILE),
    ]


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

    assert page.locator(".list .row .cut:first-child").all_inner_texts() == ["b", "a"]


@pytest.mark.browser
def test_a_phone_needs_no_scrolling_sideways(folder, page):  # noqa: F811
    page.set_viewport_size({"width": 390, "height": 780})
    page.goto(write_site([sg.load("out/monday/tea.steps.json")], Path("site")).absolute().as_uri())
    page.wait_for_selector(".list .row")
    widths = [page.evaluate("document.documentElement.scrollWidth")]
    page.click(".list .row")
    page.wait_for_selector(".steps button")
    widths.append(page.evaluate("document.documentElement.scrollWidth"))

    assert max(widths) <= 390
