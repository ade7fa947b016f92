"""Long lists on the page: rows that are far away do not exist yet, but nothing is missing."""
# ruff: noqa: F811

import re
from pathlib import Path

import pytest

import stepgraph as sg
from seeing import flaws, tabbed
from stepgraph.core import Chapter, Result, Sentence, Video
from stepgraph.viewer.pages import write_site
from test_export_report import browser  # noqa: F401
from test_viewer_page import page, until  # noqa: F401
from test_viewer_server import serving

DAY = 24 * 3600.0
CHAPTERS = tuple(
    Chapter(20.0 * n, 20.0 * n + 18, f"step {n % 50}", 0.4, "anchor", 0.5) for n in range(4000)
)
SAID = tuple(Sentence(8.0 * n, 8.0 * n + 7, f"sentence {n}") for n in range(10_000))
SPOKEN = ".cues [aria-current] .text"
DONE = ".steps [aria-current] .name"
SEARCH = "[aria-label='Search the transcript']"

pytestmark = pytest.mark.browser


@pytest.fixture(params=["served", "from disk"])
def day(request, tmp_path):
    """Where a video of a day is shown at noon."""
    result = Result(Video("long", DAY, SAID), CHAPTERS, {"Make tea": 0.9})
    if request.param == "from disk":
        yield write_site([result], tmp_path / "site").absolute().as_uri() + "#video/long@43210"
        return
    sg.write_timeline(result, tmp_path / "out")
    with serving(tmp_path / "out") as server:
        yield f"{server.address}#video/long@43210"


def seen(one, text):
    """Whether something says so and stands where its list shows it."""
    return f"""(() => {{
        const one = document.querySelector("{one}");
        const box = one?.getBoundingClientRect();
        const list = one?.closest("ul, ol").getBoundingClientRect();
        return one?.innerText === "{text}" && box.top >= list.top && box.bottom <= list.bottom;
    }})()"""


def count(page, rows):
    return page.locator(rows).count()


def test_it_opens_where_it_was_asked_to_and_is_followed(day, page):
    page.goto(day)
    until(page, seen(DONE, "step 10"))
    until(page, seen(SPOKEN, "sentence 5401"))
    assert count(page, ".steps > li:not(.gap)") <= 200
    assert count(page, ".cues > li:not(.gap)") <= 200
    assert flaws(page) == []
    page.focus("[aria-label=timeline]")
    page.keyboard.press("ArrowRight")
    until(page, seen(SPOKEN, "sentence 5401"))
    page.keyboard.press("ArrowRight")
    until(page, seen(SPOKEN, "sentence 5402"))
    until(page, seen(DONE, "step 11"))
    page.keyboard.press("2")
    until(page, seen(DONE, "step 1"))
    until(page, seen(SPOKEN, "sentence 2"))
    page.click("[aria-label=timeline]", position={"x": 500, "y": 10})
    until(page, "document.querySelector('[aria-label=timeline]').ariaValueNow > 60000")
    spoken, done = page.inner_text(SPOKEN), page.inner_text(DONE)
    until(page, seen(SPOKEN, spoken))
    until(page, seen(DONE, done))
    assert count(page, "[aria-current=true]") == 2


def test_what_is_far_away_is_searched(day, page):
    page.goto(day)
    until(page, seen(SPOKEN, "sentence 5401"))
    page.fill(SEARCH, "Sentence 99")
    page.wait_for_selector(".cues li:has-text('sentence 99')")
    found = page.locator(".cues .text").all_inner_texts()
    assert found == [f"sentence {n}" for n in (99, *range(990, 1000), *range(9900, 10_000))]
    assert {*page.locator(".cues mark").all_inner_texts()} == {"sentence 99"}
    page.click(".cues .sentence >> nth=-1")
    until(page, "document.querySelector('[aria-label=timeline]').ariaValueNow == '79992'")
    page.fill(SEARCH, "")
    until(page, seen(SPOKEN, "sentence 9999"))
    page.fill(SEARCH, "e")
    page.wait_for_selector(".cues .gap", state="attached")
    assert count(page, ".cues mark") <= 200
    page.evaluate("document.querySelector('.cues').scrollTop = 1e9")
    until(page, "document.querySelector('.cues').lastChild.querySelectorAll('mark').length == 1")
    page.fill(SEARCH, "nowhere")
    until(page, "document.querySelector('.cues').childElementCount == 0")


def test_what_is_far_away_is_scrolled_to(day, page):
    page.goto(day)
    until(page, seen(SPOKEN, "sentence 5401"))
    page.focus("[aria-label=transcript]")
    page.keyboard.press("End")
    until(page, seen(".cues > :last-child .text", "sentence 9999"))
    page.keyboard.press("Home")
    until(page, seen(".cues > :first-child .text", "sentence 0"))
    page.evaluate("document.querySelector('.steps').scrollTop = 1e9")
    until(page, seen(".steps > :last-child .name", "step 49"))
    page.click(".steps > :last-child .why")
    page.wait_for_selector(".explanation >> text=sentence 9999")
    page.click(".steps > :last-child .step")
    until(page, "document.querySelector('[aria-label=timeline]').ariaValueNow == '79980'")


def test_it_is_gone_through_with_the_keyboard(day, page):
    page.goto(day)
    until(page, seen(SPOKEN, "sentence 5401"))
    page.focus(".cues [aria-current]")
    names = tabbed(page, 120)
    assert [name.partition("sentence ")[2] for name in names] == [*map(str, range(5402, 5522))]


def test_the_browser_finds_what_is_far_away(day, page):
    page.goto(day)
    until(page, seen(SPOKEN, "sentence 5401"))
    text = "[...document.querySelectorAll('.cues > *')].map((one) => one.textContent).join('\\n')"
    words = re.findall(r"sentence (\d+)", page.evaluate(text))
    assert words == [*map(str, range(10_000))]
    assert page.evaluate("find('sentence 9876')")
    # A browser brings what it found into sight; without a window it does not, so this does.
    page.evaluate(
        """() => {
            const list = document.querySelector(".cues");
            const box = getSelection().getRangeAt(0).getBoundingClientRect();
            list.scrollTop += box.top - list.getBoundingClientRect().top - 200;
        }"""
    )
    row = (
        "[...document.querySelectorAll('.cues .text')].find((e) => e.innerText.endsWith(' 9876'))"
    )
    until(page, row)
    top, bottom, middle = page.evaluate(
        f"""() => {{
            const [one, list] = [{row}, document.querySelector(".cues").getBoundingClientRect()];
            const box = one.getBoundingClientRect();
            return [list.top, list.bottom, (box.top + box.bottom) / 2];
        }}"""
    )
    assert top < middle < bottom


def test_a_step_far_away_is_corrected(tmp_path, page):
    sg.write_timeline(Result(Video("long", DAY, SAID), CHAPTERS), tmp_path / "out")
    with serving(tmp_path / "out") as server:
        page.goto(f"{server.address}#video/long@60")
        page.click("text=Correct")
        page.wait_for_selector("[aria-label='name of step 4']")
        page.evaluate("document.querySelector('.steps').scrollTop = 1e9")
        page.fill("[aria-label='name of step 4000']", "clean up")
        page.keyboard.press("Tab")
        page.wait_for_selector(".badge")
        until(page, seen(DONE, "step 3"))
        until(page, "document.activeElement.ariaLabel?.includes('step 4000')")

    [kept] = sg.load(Path(tmp_path, "out", "long.steps.json")).chapters[-1:]
    assert (kept.start, kept.keystep) == (79980.0, "clean up")


def test_a_day_is_drawn_and_can_be_spread_out(day, page):
    page.goto(day)
    until(page, seen(DONE, "step 10"))
    drawn = count(page, ".track i")
    assert 300 < drawn < 1000
    page.click("[aria-label='Zoom into the timeline']")
    wide = [page.locator(one).bounding_box()["width"] for one in (".scroll", ".track")]
    assert wide[1] / wide[0] == pytest.approx(2, abs=0.1)
    assert count(page, ".track i") > 1.5 * drawn
    for _ in range(3):
        page.click("[aria-label='Zoom into the timeline']")
    assert count(page, ".track i") == 4000
