"""Results that a person corrects in a browser."""
# ruff: noqa: F811

import pytest

import stepgraph as sg
from test_export_report import browser  # noqa: F401
from test_viewer_page import BOTH_ENDS, page, until  # noqa: F401
from test_viewer_server import HOSTILE, folder, serving  # noqa: F401
from test_viewer_thumbnails import filmed


@pytest.mark.browser
@BOTH_ENDS
def test_a_person_corrects_undoes_and_finds_it_kept(folder, page):
    filmed()
    names = "[aria-label^='name of step']"
    with serving(folder) as server:
        page.goto(f"{server.address}#video/monday%2Ftea@10.0")
        page.click("text=Correct")
        page.fill(f"{names} >> nth=0", "heat some milk")
        page.keyboard.press("Tab")
        page.wait_for_selector("text=corrected")
        page.click("text=End here >> nth=0")
        page.wait_for_selector(".steps > li:first-child[data-end='10']")
        page.click("text=Delete >> nth=1")
        until(page, f"""document.querySelectorAll("{names}").length == 1""")
        page.click("text=Undo")
        until(page, f"""document.querySelectorAll("{names}").length == 2""")
        page.reload()
        page.wait_for_selector(".steps > li:first-child[data-end='10']")
        assert "heat some milk" in page.inner_text(".steps > li:first-child")

    kept = sg.load("out/monday/tea.steps.json")
    assert [(one.start, one.end, one.keystep) for one in kept] == [
        (4.0, 10.0, "heat some milk"),
        (38.0, 50.0, HOSTILE),
    ]


@pytest.mark.browser
def test_a_name_is_kept_whatever_the_field_is_left_for(folder, page):
    filmed()
    names = "[aria-label^='name of step']"
    shown = "document.querySelector('h1')?.textContent"
    with serving(folder) as server:
        page.route("**/correct*", lambda route: (page.wait_for_timeout(300), route.continue_()))
        page.goto(f"{server.address}#video/monday%2Ftea@10.0")
        page.click("text=Correct")
        page.fill(f"{names} >> nth=0", "heat some milk")
        page.click("text=End here >> nth=0")  # of the same step, before the name is kept
        page.wait_for_selector(".steps > li:first-child[data-end='10']")
        page.fill(f"{names} >> nth=0", "steam it")
        page.click("[aria-label='step 2: Delete']")  # of another
        until(page, f"""document.querySelectorAll("{names}").length == 1""")
        page.fill(f"{names} >> nth=0", "never mind")
        page.press(f"{names} >> nth=0", "Escape")
        page.fill(f"{names} >> nth=0", "froth")
        page.click("text=Videos")  # another page
        page.wait_for_selector(".list .row")
        page.wait_for_timeout(1000)
        assert page.query_selector(".list .row")
        assert page.evaluate(shown) != "monday/tea"

    [kept] = sg.load("out/monday/tea.steps.json")
    assert (kept.start, kept.end, kept.keystep) == (4.0, 10.0, "froth")


@pytest.mark.browser
def test_others_make_way_for_a_step_that_is_moved_or_added(folder, page):
    filmed()
    ends = "[...document.querySelectorAll('.steps > li')].map((one) => one.dataset.end).join()"
    with serving(folder) as server:
        page.goto(f"{server.address}#video/monday%2Ftea@45.0")
        page.click("text=Correct")
        assert page.is_disabled("text=Undo")
        page.click("text=End here >> nth=0")
        until(page, f"{ends} == '45,50'")
        page.keyboard.press("1")
        page.keyboard.press("ArrowRight")
        page.click("text=Add a step here")
        until(page, f"{ends} == '9,19,45,50'")
        page.click("text=Join with next >> nth=2")
        until(page, f"{ends} == '9,19,50'")
        page.click("text=Undo")
        until(page, f"{ends} == '9,19,45,50'")

    kept = sg.load("out/monday/tea.steps.json")
    spans = [(one.start, one.end) for one in kept]
    assert spans == [(4.0, 9.0), (9.0, 19.0), (19.0, 45.0), (45.0, 50.0)]
