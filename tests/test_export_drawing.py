"""Pictures of tasks: what they say, that they are sound SVG, and that nothing is cut off."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlparse
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.sparse import csr_array

from stepgraph.core import Vocabulary
from stepgraph.errors import ConfigError, DataError
from stepgraph.export import svg
from stepgraph.export.drawing import draw_heat, draw_next, draw_task, legend, most_used, task_maps
from stepgraph.export.svg import write_picture
from stepgraph.export.transitions import draw_circle, draw_transitions
from stepgraph.graph import TaskGraph
from stepgraph.graph.maps import END, START, Succession
from task_maps import NAMES, chain, make_map, random_map, tea_graph
from test_export_report import HOSTILE, browser  # noqa: F401

SVG = "{http://www.w3.org/2000/svg}"
ODD = (
    *("Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen polieren", "x" * 120, HOSTILE),
    *("שפכו את החלב לקערה ובחשו היטב עד שאין גושים", "WHISK THE EGGS WITH MILK AND MORE MILK"),
    *("牛乳をボウルに注いでダマがなくなるまでよくかき混ぜる", "\x00\x08 & \ufffe nothing of XML"),
    "an exceptionally long keystep that goes on and on about what has to be done with the bowl, "
    "the milk and the flour before anything else can happen at all, and then on",
)


def parsed(picture):
    return ElementTree.fromstring(picture)


def words(picture, kind="text"):
    return [node.text or "" for node in parsed(picture).iter(f"{SVG}{kind}")]


def squeezed(text):
    return "".join(text.split())


def classes(picture, first):
    found = [node.get("class", "").split() for node in parsed(picture).iter(f"{SVG}g")]
    return [one[1:] for one in found if one[:1] == [first]]


def test_a_task_is_drawn_with_its_names_its_ends_and_how_many_videos_show_what():
    picture = draw_task(make_map(chain(5), shown={2: 2}))

    text = words(picture)
    assert text[:2] == ["Make tea", "Estimated from 10 recognised videos."]
    assert {"START", "END", *NAMES} <= set(text)
    assert text.count("10 of 10 videos") == 4
    assert text.count("2 of 10 videos") == 1
    assert classes(picture, "node").count(["optional"]) == 2  # the keystep, and in the legend
    assert "pale: few confident matches, perhaps optional" in " ".join(text)


def test_a_keystep_is_optional_where_fewer_than_half_of_the_videos_are_expected_to_show_it():
    nearly = make_map(chain(5), shown={2: 5.0})
    clearly = make_map(chain(5), shown={2: 4.9})

    assert ["optional"] not in classes(draw_task(nearly), "node")
    assert ["optional"] in classes(draw_task(clearly), "node")


@pytest.mark.parametrize(
    ("low", "kind"), [(0.2, "sure"), (0.19, "likely"), (0.05, "likely"), (0.04, "rare")]
)
def test_arrows_are_coloured_by_the_share_that_they_surely_have(low, kind):
    found = make_map(chain(2), names=("boil", "pour"))
    arrows = tuple(Succession(*one[:4], low, 0.99) for one in found.successions)

    drawn = classes(draw_task(replace(found, successions=arrows)), "edge")

    assert [kind] in drawn
    assert not {"sure", "likely", "rare"} - {kind} & {one[0] for one in drawn if one}


def test_arrows_are_as_wide_as_they_were_seen_often():
    picture = draw_task(make_map([(START, 0, 100), (0, 1, 50), (1, END, 100)], names=("a", "b")))

    assert sorted(set(re.findall(r'stroke-width="([\d.]+)"', picture))) == ["3", "3.7", "6.2"]


def test_shares_and_intervals_are_told():
    arrows = [(START, 0, 4), (0, 1, 3), (0, 2, 1), (1, 2, 3), (2, END, 4)]
    picture = draw_task(make_map(arrows, names=("boil", "pour", "stir")))

    assert "75\u00a0%" in words(picture)
    titles = words(picture, "title")
    assert "boil → pour: 75\u00a0% (65 to 85\u00a0%), 3×" in titles
    assert any(
        one.startswith("boil: confident match in 10 of 10 videos, done in 90 to 100\u00a0%")
        for one in titles
    )


def test_what_was_never_seen_and_what_leads_back_are_explained():
    picture = draw_task(make_map([(0, 1, 5), (1, 0, 5)], names=("a", "b", "c")))

    assert ["unseen"] in classes(picture, "edge")
    assert ["sure", "back"] in classes(picture, "edge")
    meanings = [sign.meaning.split(":")[0] for sign in legend([make_map(chain(5))])]
    assert "dotted" not in meanings
    assert {"dotted", "dashed"} <= {text.split(":")[0] for text in words(picture)}


def test_a_map_of_neighbouring_rows_says_so_and_counts_no_videos():
    picture = draw_task(task_maps(tea_graph(statistics=False))[0])

    assert "no video of this task was recognised" in " ".join(words(picture))
    assert not [text for text in words(picture) if "of 0 videos" in text]
    assert {"START", "END", *NAMES} <= set(words(picture))


def test_a_task_of_hundreds_says_what_is_left_out():
    assert "Left out: the 40 keysteps of the fewest videos." in words(draw_task(random_map(100)))


def test_the_task_of_most_videos_comes_first():
    tasks = {"seldom": (0, 1), "Make tea": (0, 1, 2, 3, 4)}
    graph = tea_graph(tasks=tasks)  # its videos are of the first
    maps = task_maps(graph)

    assert [(found.task, found.videos) for found in maps] == [("seldom", 3), ("Make tea", 0)]


def test_keysteps_without_tasks_or_videos_are_the_communities_of_the_most_used():
    many = 10_588
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, many, (2, 60_000)) // rng.integers(1, 200, 60_000)
    counts = csr_array((np.ones(60_000, np.int64), tuple(pairs)), shape=(many, many))
    vocabulary = Vocabulary(tuple(f"keystep {number}" for number in range(many)))

    maps = task_maps(TaskGraph(vocabulary, counts))

    assert len(maps) > 1
    assert 200 < sum(len(found.steps) for found in maps) <= 300


def test_the_four_most_probable_next_keysteps_are_drawn_for_each_task():
    many = [(0, 1, 40), (0, 2, 30), (0, 3, 20), (0, 4, 6), (0, END, 4)]
    picture = draw_next([make_map(many), make_map(many, task="Make iced tea")], 0)

    text = words(picture)
    assert text[0] == "What comes next after “boil water”"
    assert [one for one in text if "%" in one] == [
        "40\u00a0%",
        "30\u00a0%",
        "20\u00a0%",
        "6\u00a0%",
    ] * 2
    assert "END" not in text
    assert "in “Make iced tea”, estimated from 10 recognised" in " ".join(text)


def test_nothing_follows_what_nothing_was_seen_to_follow():
    assert "no next keystep was seen" in words(draw_next([make_map([(1, 2, 3)])], 0))


def test_the_most_used_keysteps_are_those_that_others_lead_to_or_follow(monkeypatch):
    monkeypatch.setattr("stepgraph.export.drawing.MOST_DRAWN", 4)
    monkeypatch.setattr("stepgraph.decoders.tasks._ONE_TASK", 1)
    counts = np.zeros((7, 7), np.int64)
    counts[0, 1], counts[2, 3], counts[5, 6], counts[4, 4] = 5, 4, 3, 100
    counts[0, 0] = counts[3, 3] = 50
    vocabulary = Vocabulary(tuple("abcdefg"))

    maps = task_maps(TaskGraph(vocabulary, csr_array(counts)))

    assert {step.keystep for found in maps for step in found.steps} == {0, 1, 2, 3}


def test_of_tasks_without_videos_the_one_whose_changes_were_seen_most_comes_first():
    counts = np.zeros((4, 4), np.int64)
    counts[0, 1], counts[2, 3] = 3, 5
    vocabulary = Vocabulary(tuple("abcd"), {"less": (0, 1), "more": (2, 3)})

    assert [one.task for one in task_maps(TaskGraph(vocabulary, csr_array(counts)))] == [
        *("more", "less")
    ]


def test_a_page_shows_three_hundred_keysteps(monkeypatch):
    monkeypatch.setattr("stepgraph.export.drawing.MOST_DRAWN", 10)

    assert len(most_used([make_map(chain(5))] * 3)) == 2


def test_next_in_nine_tasks_is_drawn_for_eight_and_says_so():
    maps = [make_map(chain(5), task=f"task {n}") for n in range(9)]

    assert "Shown for 8 of the 9 tasks that use it." in words(draw_next(maps, 0))
    assert not [text for text in words(draw_next(maps[:8], 0)) if "that use it" in text]


def test_next_in_many_tasks_is_drawn_for_eight():
    picture = draw_next([make_map(chain(5), task=f"task {n}") for n in range(20)], 0)

    assert "Shown for 8 of the 20 tasks that use it." in words(picture)
    assert sum(text.startswith("in “task") for text in words(picture)) == 8


def test_the_heat_map_has_a_cell_for_each_keystep_of_a_task():
    tea, iced = make_map(chain(5), shown={2: 3}), make_map(chain(5), task="Make iced tea")
    picture = draw_heat([tea, replace(iced, steps=iced.steps[1:3])])

    cells = [node for node in parsed(picture).iter(f"{SVG}g") if node.get("class") == "cell"]
    told = {node[0].text: node[-1].text for node in cells}
    assert len(cells) == 7
    assert sorted(told.values()) == ["100"] * 6 + ["30"]
    [words_of] = [name for name, number in told.items() if number == "30"]
    assert words_of.startswith(
        "add milk, Make tea: confident match in 3 of 10 videos, done in 20 to 40\u00a0%, on"
    )
    assert {"Make tea", "Make iced tea", *NAMES} <= set(words(picture))


def test_a_task_too_large_for_a_heat_map_is_shown_alone():
    maps = [make_map(chain(301), names=[f"{n}" for n in range(301)], task=one) for one in "ab"]

    text = words(draw_heat(maps))

    assert "Shown: the 1 of 2 tasks with the most" in " ".join(text)
    assert [one for one in text if one in "ab"] == ["a"]


def test_names_of_the_heat_map_are_wrapped():
    text = words(draw_heat([make_map(chain(2), names=("a" * 33, "b"), task="c" * 27)]))

    assert {"a" * 32, "a", "c" * 26, "c"} <= set(text)


def test_tasks_that_share_keysteps_stand_side_by_side():
    whole = make_map(chain(5))
    maps = [
        replace(whole, task=task, steps=tuple(whole.steps[at] for at in members))
        for task, members in (("a", (0, 1)), ("b", (3, 4)), ("c", (1, 2)))
    ]

    heads = [text for text in words(draw_heat(maps)) if text in ("a", "b", "c")]

    assert heads == ["a", "c", "b"]


def test_a_heat_map_of_very_many_tasks_shows_those_of_most_videos():
    maps = [make_map(chain(5), task=f"task {n}") for n in range(100)]

    text = words(draw_heat(maps))

    assert "Shown: the 60 of 100 tasks with the most" in " ".join(text)
    assert sum(one.startswith("task ") for one in text) == 60


def of_rows(draw, found):
    """A picture of a graph in which each keystep follows the one before it."""
    counts = 5 * np.eye(len(found.vocabulary), k=1, dtype=np.int64)
    return draw(TaskGraph(found.vocabulary, csr_array(counts)))


@pytest.mark.parametrize(
    "draw",
    [
        *(draw_task, lambda one: draw_next([one], 0), lambda one: draw_heat([one])),
        *(partial(of_rows, draw_transitions), partial(of_rows, draw_circle)),
    ],
)
def test_odd_names_stay_text(draw):
    picture = draw(make_map(chain(len(ODD)), names=ODD, task=HOSTILE))

    assert {node.tag.removeprefix(SVG) for node in parsed(picture).iter()} <= {
        *("svg", "g", "path", "rect", "text", "title", "style", "circle")
    }
    assert squeezed(HOSTILE) in squeezed("".join(words(picture)))


def test_every_colour_of_the_style_is_known_in_light_and_dark():
    picture = draw_task(make_map(chain(5)))

    assert "var(" not in picture
    light, dark = picture.split("@media (prefers-color-scheme:dark)")
    assert "#1c1d21" in light
    assert "#e9e9ec" in dark
    assert "var(--sure)" in svg.picture_style()


def test_a_page_is_light_unless_its_reader_chose_dark():
    light, by_system, by_choice = svg.page_colors().split("@media screen")

    assert "--page:#f7f6f3;" in light
    assert "--page:#121316;" in by_system
    assert "--page:#121316;" in by_choice


def test_a_picture_is_written_whole(tmp_path):
    write_picture("<svg/>", tmp_path / "new" / "tea.SVG")

    assert (tmp_path / "new" / "tea.SVG").read_text() == "<svg/>"


def test_pixels_need_a_browser_and_a_known_ending(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(
        ConfigError, match=r"tea.png: must end in .svg where no Chromium is ins.*write tea.svg"
    ):
        write_picture("<svg/>", tmp_path / "tea.png")
    with pytest.raises(ConfigError, match=r"tea.jpg: must end in .svg or .png, got .jpg"):
        write_picture("<svg/>", tmp_path / "tea.jpg")
    assert not list(tmp_path.iterdir())


def test_a_browser_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    (tmp_path / "tea.png").write_text("old")
    monkeypatch.setattr("shutil.which", lambda name: "/bin/false")

    with pytest.raises(DataError, match=r"tea.png: cannot be made by /bin/false.*write .svg"):
        write_picture(draw_task(make_map(chain(5))), tmp_path / "tea.png")

    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("tea.png", "old")]


@pytest.mark.parametrize(
    ("size", "fine"),
    [((340, 920), 2.0), ((8_000, 20), 2.0), ((20, 8_001), 2.0), ((32_000, 9), 0.5)],
)
def test_a_browser_is_asked_for_as_many_pixels_as_it_can_make(tmp_path, monkeypatch, size, fine):
    asked = []

    def run(command, **options):
        asked.extend(command)
        assert Path(unquote(urlparse(command[-1]).path)).read_text() == picture
        [target] = [one for one in command if one.startswith("--screenshot=")]
        Path(target.partition("=")[2]).write_bytes(b"pixels")
        assert options == {"capture_output": True, "timeout": 120, "check": True}

    found = {"google-chrome": "/opt/chrome", "chrome": "/opt/other"}
    monkeypatch.setattr("shutil.which", found.get)
    monkeypatch.setattr("subprocess.run", run)
    width, height = size
    picture = f'<svg width="{width}" height="{height}" role="img"/>'

    write_picture(picture, tmp_path / "tea.PNG")

    assert (tmp_path / "tea.PNG").read_bytes() == b"pixels"
    assert asked[0] == "/opt/chrome"
    assert f"--window-size={width},{height}" in asked
    [scale] = [float(one.partition("=")[2]) for one in asked if "scale-factor" in one]
    assert scale == pytest.approx(fine, abs=0.001)
    assert asked[-1].endswith("picture.svg")


@pytest.mark.parametrize("user", [0, 1000])
def test_only_root_goes_without_the_sandbox(tmp_path, monkeypatch, user):
    monkeypatch.setattr("os.geteuid", lambda: user)
    monkeypatch.setattr("shutil.which", lambda name: "/opt/chrome")
    monkeypatch.setattr("subprocess.run", lambda command, **_: pytest.fail(" ".join(command[:3])))

    with pytest.raises(pytest.fail.Exception) as asked:
        write_picture('<svg width="9" height="9"/>', tmp_path / "tea.png")

    first = "--no-sandbox --headless" if user == 0 else "--headless --disable-gpu"
    assert str(asked.value) == f"/opt/chrome {first}"


@pytest.mark.browser
def test_png_has_twice_the_pixels(tmp_path, browser):  # noqa: F811
    picture = draw_task(make_map(chain(5)))
    width, height = map(int, re.findall(r' (?:width|height)="(\d+)"', picture)[:2])

    write_picture(picture, tmp_path / "tea.png")

    data = (tmp_path / "tea.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    size = int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
    assert size == (2 * width, 2 * height)


FITS = """() => {
  const svg = document.documentElement, room = svg.getBoundingClientRect(), wrong = [];
  const inside = (one, box) => one.left >= box.left - 1 && one.right <= box.right + 1
    && one.top >= box.top - 1 && one.bottom <= box.bottom + 1;
  for (const text of svg.querySelectorAll("text"))
    if (!inside(text.getBoundingClientRect(), room)) wrong.push(`cut off: ${text.textContent}`);
  for (const node of svg.querySelectorAll(".node")) {
    const box = node.querySelector("rect").getBoundingClientRect();
    for (const text of node.querySelectorAll("text"))
      if (!inside(text.getBoundingClientRect(), box)) wrong.push(`spills: ${text.textContent}`);
  }
  return wrong;
}"""


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "picture",
    [
        draw_task(random_map(12)),
        draw_task(random_map(60)),
        draw_task(make_map(chain(1), names=("a", "b"))),
        draw_task(make_map(chain(len(ODD)), names=ODD, videos=12_345, task="y" * 200)),
        draw_next([make_map([(0, at, 5) for at in range(1, 6)], names=ODD, task=ODD[-1])], 0),
        draw_heat([make_map(chain(len(ODD)), names=ODD, task=task) for task in ODD]),
        of_rows(draw_transitions, make_map([], names=ODD, task=ODD[-1])),
        of_rows(draw_circle, make_map([], names=ODD, task=ODD[-1])),
    ],
    ids=["12", "60", "1", "odd", "next", "heat", "transitions", "circle"],
)
def test_no_text_is_cut_off(tmp_path, browser, picture, scheme):  # noqa: F811
    (tmp_path / "one.svg").write_text(picture, encoding="utf-8")
    context = browser.new_context(viewport={"width": 3000, "height": 900}, color_scheme=scheme)
    context.set_default_timeout(120_000)
    page = context.new_page()
    page.goto((tmp_path / "one.svg").as_uri())

    assert page.evaluate(FITS) == []
    ground = page.evaluate("getComputedStyle(document.querySelector('.ground')).fill")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(26, 28, 32)"}[scheme]
    context.close()


def test_a_browser_is_told_how_large_the_picture_is(tmp_path, monkeypatch):
    told = []

    def run(command, **_):
        told.extend(command)
        [target] = [one.partition("=")[2] for one in command if one.startswith("--screenshot=")]
        Path(target).write_bytes(b"pixels")

    monkeypatch.setattr(svg.subprocess, "run", run)
    picture = '<svg width="300" height="200"><rect width="5" height="6"/></svg>'

    assert svg._pixels(picture, "browser", tmp_path / "a.png") == b"pixels"
    assert "--window-size=300,200" in told
