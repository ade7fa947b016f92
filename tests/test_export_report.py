"""The HTML report: what it says, that it is safe, and that it works in a browser."""

from __future__ import annotations

import json
import math
import re
import shutil
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array

from stepgraph.core import Dataset, Labels, Segment, Sentence, Video, Vocabulary
from stepgraph.errors import DataError
from stepgraph.evaluation.report import evaluate
from stepgraph.export.report import MeasuredMethod, keystep_colors, write_report
from stepgraph.graph import TaskGraph

HOSTILE = "</script><script>window.broken = 1</script><img src=x onerror='window.broken=2'>\"&"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def omelette(names=("crack eggs", "whisk eggs", "heat pan", "pour eggs"), task="Omelette"):
    return Vocabulary(tuple(names), {task: (0, 1, 2, 3)})


def chain_graph(vocabulary, order):
    counts = np.eye(len(vocabulary), dtype=np.int64)
    for start, end in pairwise(order):
        counts[start, end] = 5
    return TaskGraph(vocabulary, csr_array(counts))


def kitchen(vocabulary, spoken="now whisk the eggs", video="v1", task="Omelette"):
    """Two videos of 20 rows: the first method has 2 of 8 true rows right, the second 6."""
    transcript = (Sentence(4.0, 9.0, spoken), Sentence(12.0, 15.0, "heat the pan"))
    videos = [
        Video(video, 20.0, transcript, task=task),
        Video("quiet", 20.0, (), task=task),
    ]
    segments = [Segment(4, 8, 1), Segment(10, 14, 2)]
    truth = {video: Labels.from_segments(video, segments, vocabulary, duration=20)}
    dataset = Dataset("kitchen", videos, vocabulary, truth)
    return dataset, [
        method("argmax", [Segment(4, 6, 1), Segment(10, 14, 0)], dataset),
        method("path-search", [Segment(4, 8, 1), Segment(10, 12, 2)], dataset, anchored=True),
    ]


def method(name, segments, dataset, anchored=False):
    labels = {}
    for video in dataset.videos:
        plain = Labels.from_segments(video.id, segments, dataset.vocabulary, duration=20)
        anchors = np.arange(20) % 4 == 0 if anchored else None
        labels[video.id] = Labels(video.id, plain.keysteps, dataset.vocabulary, plain.hop, anchors)
    judged = [one for one in labels.values() if one.video in dataset.truth]
    report = evaluate(judged, dataset.truth, graph_mined_on="the same videos")
    return MeasuredMethod(name, report, labels)


def write(path, *, title="Omelettes", **changes):
    vocabulary = changes.pop("vocabulary", omelette())
    dataset, methods = kitchen(vocabulary)
    content = {"dataset": dataset, "methods": methods}
    content |= {"graph": chain_graph(vocabulary, (0, 1, 2, 3))} | changes
    write_report(path, title=title, **content)
    return path.read_text(encoding="utf-8")


def embedded(page):
    return json.loads(re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page)[1])


def test_report_is_one_file_that_names_no_other_place(tmp_path):
    page = write(tmp_path / "report.html", command="stepgraph demo")

    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert page.startswith("<!doctype html>")
    addresses = set(re.findall(r"https?://[^\s\"')]*", page))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert "{{" not in page
    assert "<code>stepgraph demo</code>" in page


def test_a_report_that_fails_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", fail)
    with pytest.raises(DataError, match="No space left on device"):
        write(path)

    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]


def test_the_same_input_gives_the_same_file(tmp_path):
    assert write(tmp_path / "a.html") == write(tmp_path / "b.html")


def test_metrics_are_in_percent_with_the_best_in_bold(tmp_path):
    _, (first, second) = kitchen(omelette())
    poor = replace(
        first.report, accuracy=0.1634, accuracy_per_keystep=0.2, iou=0.0696, iou_per_keystep=0.5
    )
    good = replace(
        second.report, accuracy=0.28, accuracy_per_keystep=0.306, iou=1.0, iou_per_keystep=0.2
    )
    methods = [
        MeasuredMethod("argmax", poor, first.labels),
        MeasuredMethod("path-search", good, second.labels),
    ]

    page = write(tmp_path / "report.html", methods=methods)

    table = re.search(r"<table class=metrics>.*?</table>", page, re.DOTALL)[0]
    groups = re.findall(r"<th scope=colgroup colspan=(\d)>(.*?)</th>", table)
    assert groups == [("2", "Acc"), ("2", "IoU")]
    argmax, path_search = re.findall(r"<tr><th scope=row>.*?</tr>", table)
    assert re.findall(r">(\d+\.\d)<", argmax) == ["16.3", "20.0", "7.0", "50.0"]
    assert re.findall(r"<strong>(\d+\.\d)<", argmax) == ["50.0"]
    assert re.findall(r"<strong>(\d+\.\d)<", path_search) == ["28.0", "30.6", "100.0"]


def test_an_undefined_metric_is_a_dash(tmp_path):
    vocabulary = omelette()
    dataset, _ = kitchen(vocabulary)
    empty = Labels("v1", np.full(20, -1), vocabulary)
    without = Dataset("kitchen", dataset.videos, vocabulary, {"v1": empty})

    page = write(
        tmp_path / "report.html", dataset=without, methods=[method("argmax", [], without)]
    )

    assert page.count("<td>–</td>") == 8  # by either protocol


def test_the_header_says_what_was_measured(tmp_path):
    page = write(tmp_path / "report.html")

    for fact in ("2 videos", "40 rows, 8 of them with a true keystep", "4 keysteps", "1 task"):
        assert f"<bdi>{fact}</bdi>" in page
    assert "graph mined on the same videos" in page


def test_segments_and_hits_are_embedded_not_rows(tmp_path):
    data = embedded(write(tmp_path / "report.html"))

    video = data["videos"][0]
    assert video["tracks"][0] == [4, 8, 1, 1, 10, 14, 2, 1]
    assert video["tracks"][2] == [4, 5, 1, 1, 5, 8, 1, 0, 10, 12, 2, 0]
    assert (video["rows"], video["hits"]) == (8, [2, 6])
    other = data["videos"][1]
    assert (other["rows"], other["hits"], other["tracks"][0]) == (0, [None, None], None)
    assert video["cues"] == [[4, 9, "now whisk the eggs"], [12, 15, "heat the pan"]]
    assert (video["task"], video["duration"], other["cues"]) == ("Omelette", 20, [])


def test_only_keysteps_that_occur_are_embedded(tmp_path):
    vocabulary = Vocabulary(tuple(f"keystep {number}" for number in range(3000)))
    counts = csr_array(([1], ([2998], [2999])), shape=(3000, 3000))
    labels = {"v": Labels("v", np.array([5, 5, 2999]), vocabulary)}
    dataset = Dataset("large", [Video("v", 3.0)], vocabulary)

    page = write(
        tmp_path / "report.html",
        dataset=dataset,
        methods=[MeasuredMethod("argmax", evaluate([], {}), labels)],
        graph=TaskGraph(vocabulary, counts),
    )

    data = embedded(page)
    assert data["keysteps"] == ["keystep 5", "keystep 2999"]
    assert data["videos"][0]["tracks"][1] == [0, 2, 0, 1, 2, 3, 1, 1]
    assert "keystep 2998" in page  # drawn
    assert "keystep 17" not in page


def test_hostile_text_stays_text(tmp_path):
    names = (HOSTILE, "{{script}}", "شغّل الفرن \u202e", "🍳 " * 30)
    vocabulary = omelette(names, task=HOSTILE)
    dataset, methods = kitchen(vocabulary, spoken=HOSTILE + "\ud800", video=HOSTILE, task=HOSTILE)
    page = write(
        tmp_path / "report.html",
        title=HOSTILE,
        vocabulary=vocabulary,
        dataset=dataset,
        methods=methods,
        command=HOSTILE,
    )

    assert page.count("<script") == 2
    assert "<img" not in page
    assert embedded(page)["keysteps"][0] == HOSTILE
    assert embedded(page)["videos"][0]["cues"][0][2] == HOSTILE + "?"


@pytest.mark.parametrize("number", [1, 6])
def test_any_number_of_methods_is_shown(tmp_path, number):
    _, methods = kitchen(omelette())

    page = write(tmp_path / "report.html", methods=(methods * 3)[:number])

    assert len(re.findall(r"<tr><th scope=row>.*?--share", page)) == 2 * number


def test_the_most_probable_next_are_listed_in_their_order(tmp_path):
    page = write(tmp_path / "report.html")

    [line] = re.findall(r"<tr data-k=0>.*?</tr>", page)
    assert re.findall(r"<bdi>(.*?)</bdi>", line) == ["crack eggs", "whisk eggs"]
    assert "<li class=quiet>none observed</li>" in page


def test_no_truth_means_no_metrics(tmp_path):
    dataset, methods = kitchen(omelette())
    unknown = Dataset("kitchen", dataset.videos, dataset.vocabulary)

    page = write(tmp_path / "report.html", dataset=unknown, methods=methods)

    assert "Metrics need a truth" in page
    assert "<table class=metrics>" not in page


def test_a_sentence_without_an_end_is_not_shown(tmp_path):
    dataset, methods = kitchen(omelette())
    first, second = dataset.videos
    said = (
        *first.transcript,
        Sentence(16.0, math.inf, "for ever"),
        Sentence(math.nan, 18.0, "no"),
    )
    dataset = replace(dataset, videos=[replace(first, transcript=said), second])

    page = write(tmp_path / "report.html", dataset=dataset, methods=methods)

    assert [one[2] for one in embedded(page)["videos"][0]["cues"]] == [
        *("now whisk the eggs", "heat the pan")
    ]


def test_keysteps_of_a_task_have_distinct_colours():
    groups = [tuple(range(11)), (3, 5, *range(11, 17))]

    colors = keystep_colors(17, groups)

    assert all(re.fullmatch("#[0-9a-f]{6}", color) for color in colors)
    assert all(len({colors[one] for one in group}) == len(group) for group in groups)


@pytest.fixture(scope="module")
def browser():
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"no Chromium found: none of {', '.join(BROWSERS)} is on PATH")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    quiet = ["background-networking", "component-update", "sync", "gpu"]
    # With this limit no process is made in advance for a page that never comes.
    few = ["--no-sandbox", "--renderer-process-limit=1"]
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=path, args=[*few, *(f"--disable-{one}" for one in quiet)]
        )
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser):
    """Open a page; what it complained about or asked for fails the test at the end."""
    complaints, requests, contexts = [], [], []

    def visit(path, width=1280, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        context.set_default_timeout(120_000)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        if page.locator(".card").count():
            page.locator(".card").first.scroll_into_view_if_needed()
            page.locator(".card .readout").first.wait_for()
        return page

    yield visit
    for context in contexts:
        context.close()
    assert complaints == []
    assert {url.split(":")[0] for url in requests} <= {"file", "data"}
    assert len([url for url in requests if url.startswith("file")]) == len(contexts)


@pytest.mark.browser
def test_hovering_shows_the_narration_and_the_keysteps_of_that_second(tmp_path, visit):
    write(tmp_path / "report.html")
    page = visit(tmp_path / "report.html")
    card = page.locator(".card", has_text="v1")
    second = card.locator(".probe").bounding_box()["width"] / 20

    card.locator(".probe").hover(position={"x": 5.5 * second, "y": 20})

    heard = card.locator(".readout").inner_text().split()
    assert " ".join(heard) == (
        "0:05 truth whisk eggs argmax whisk eggs path-search whisk eggs now whisk the eggs"
    )
    card.locator(".probe").hover(position={"x": 18.5 * second, "y": 20})
    assert "no sentence" in card.locator(".readout").inner_text()


@pytest.mark.browser
def test_the_crosshair_moves_by_keyboard(tmp_path, visit):
    write(tmp_path / "report.html")
    page = visit(tmp_path / "report.html")
    probe = page.get_by_role("slider", name="time in video v1")

    probe.focus()
    for key in ("Home", "Shift+ArrowRight", "ArrowRight"):
        probe.press(key)

    spoken = "0:11; truth: heat pan; argmax: crack eggs; path-search: heat pan"
    assert probe.get_attribute("aria-valuetext") == spoken


@pytest.mark.browser
def test_the_video_with_most_gain_comes_first_and_the_page_says_so(tmp_path, visit):
    dataset, methods = kitchen(omelette())
    turned = Dataset("kitchen", dataset.videos[::-1], dataset.vocabulary, dataset.truth)
    write(tmp_path / "report.html", dataset=turned, methods=methods)
    page = visit(tmp_path / "report.html")
    page.locator(".card .readout").nth(1).wait_for()

    assert page.locator(".card h4").all_inner_texts() == ["v1", "quiet"]
    assert "largest gain of path-search over argmax" in page.locator("#found").inner_text()
    assert "path-search +50.0 points over argmax" in page.locator(".card").first.inner_text()
    assert "no truth" in page.locator(".card").last.inner_text()


@pytest.mark.browser
@pytest.mark.parametrize(("words", "found"), [("whisk THE", 1), ("omelette", 2), ("zebra", 0)])
def test_videos_are_filtered_by_what_is_typed(tmp_path, visit, words, found):
    write(tmp_path / "report.html")
    page = visit(tmp_path / "report.html")

    page.fill("#search", words)
    page.get_by_text(f"{found} of 2 videos match").wait_for()

    assert page.locator(".card").count() == found


@pytest.mark.browser
def test_focus_on_a_keystep_of_the_graph_shows_its_transitions(tmp_path, visit):
    write(tmp_path / "report.html")
    page = visit(tmp_path / "report.html")

    page.locator('.node[data-k="1"]').focus()

    assert page.locator(".edge.on:has(path)").count() == 2
    assert page.locator(".node.near").count() == 3
    note = page.locator(".panel-note").inner_text()
    assert note.startswith("whisk eggs")
    assert re.search(r"most probably next:\nheat pan \d+\u00a0% \(\d+ to \d+\u00a0%\), 5×", note)


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_does_not_scroll_sideways(tmp_path, visit, scheme):
    long = ("an exceptionally long keystep " * 4).strip()
    vocabulary = omelette((long, "x" * 200, "heat pan", HOSTILE), task="y" * 120)
    dataset, methods = kitchen(vocabulary, spoken="z" * 300, video="w" * 90, task="y" * 120)
    named = [MeasuredMethod("m" * 40, one.report, one.labels) for one in methods]
    write(tmp_path / "r.html", vocabulary=vocabulary, dataset=dataset, methods=named)
    page = visit(tmp_path / "r.html", width=380, color_scheme=scheme)
    page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")

    assert page.evaluate("document.documentElement.scrollWidth") <= 380


@pytest.mark.browser
def test_hostile_text_does_nothing_in_a_browser(tmp_path, visit):
    vocabulary = omelette((HOSTILE, "b", "c", "d"), task=HOSTILE)
    dataset, methods = kitchen(vocabulary, spoken=HOSTILE, video=HOSTILE, task=HOSTILE)
    named = [MeasuredMethod(HOSTILE, one.report, one.labels) for one in methods]
    content = {"dataset": dataset, "methods": named, "command": HOSTILE}
    write(tmp_path / "r.html", title=HOSTILE, vocabulary=vocabulary, **content)
    page = visit(tmp_path / "r.html")
    page.locator(".node").first.hover()

    assert page.evaluate("typeof window.broken") == "undefined"
    assert page.locator("h1").inner_text() == HOSTILE
    assert page.locator(".card h4").first.inner_text() == HOSTILE


@pytest.mark.browser
def test_the_theme_can_be_switched(tmp_path, visit):
    write(tmp_path / "report.html")
    page = visit(tmp_path / "report.html", color_scheme="dark")
    color = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(color)

    page.click("#theme")

    assert page.evaluate(color) != dark


@pytest.mark.browser
def test_nothing_to_show_is_said(tmp_path, visit):
    vocabulary = Vocabulary(("boil", "pour"))
    graph = TaskGraph(vocabulary, csr_array((2, 2), dtype=np.int64))
    nothing = Dataset("nothing", [], vocabulary)
    write(tmp_path / "report.html", dataset=nothing, methods=[], graph=graph)
    page = visit(tmp_path / "report.html")

    text = page.locator("main").inner_text()
    assert "There are no videos to show." in text
    assert "Metrics need a truth" in text
    assert "The graph has no transitions yet." in text


@pytest.mark.browser
def test_a_video_without_rows_truth_or_transcript_is_shown(tmp_path, visit):
    vocabulary = omelette()
    empty = {"v": Labels("v", np.zeros(0, np.int64), vocabulary)}
    dataset = Dataset("empty", [Video("v", 0.0)], vocabulary)
    methods = [
        MeasuredMethod("argmax", evaluate([], {}), empty),
        MeasuredMethod("other", evaluate([], {}), {}),
    ]
    write(tmp_path / "report.html", dataset=dataset, methods=methods)
    page = visit(tmp_path / "report.html")

    text = page.locator(".card").inner_text()
    assert "no truth" in text
    assert "no transcript" in text
    assert "no labels" in text
    assert "null" not in text
