"""What a list says of its steps comes along: to the graph, beside the results, to the pages."""
# ruff: noqa: F811

import html
import json
from dataclasses import replace

import numpy as np
import pytest

import stepgraph as sg
from reference import make_graph
from stepgraph.cli import main
from stepgraph.export.maps import load_maps, save_maps
from stepgraph.vocabulary import add_noise
from stepgraph.vocabulary.notes import LONGEST, MOST
from test_cli_steps import TOLD, omelettes  # noqa: F401
from test_export_report import HOSTILE, browser, omelette, visit, write  # noqa: F401
from test_graph_comparing import WORDS, graph_of
from test_viewer_page import page  # noqa: F401
from test_viewer_server import get, serving

LIST = """\
// Proposed from what is said in 6 videos.
# Make tea
// 6 videos
boil water
    // said in 5 of 6 videos, also: heat the water
    // a 0:03: so boil the water
pour
# Make soup
boil water
  // said in 2 of 3 videos
chop it

    // nothing stands above this
"""


def read(text):
    return sg.make_vocabulary(text.split("\n"))


def told(text):
    """What a list says of each of its keysteps, by name."""
    words = read(text)
    return {words.keysteps[at]: [*said] for at, said in words.notes.items()}


def test_comments_indented_below_a_step_are_of_it():
    assert told("boil\n    // said in 2 of 3 videos\n    // a 0:03: so boil it\npour\n") == {
        "boil": ["said in 2 of 3 videos", "a 0:03: so boil it"]
    }
    assert told("- boil\r\n  //said\r\n  //\r\n- pour\r\n") == {"boil": ["said"]}


def test_a_step_of_several_tasks_says_of_which_its_evidence_is():
    assert told(LIST) == {
        "boil water": [
            "Make tea: said in 5 of 6 videos, also: heat the water",
            "Make tea: a 0:03: so boil the water",
            "Make soup: said in 2 of 3 videos",
        ]
    }


@pytest.mark.parametrize(
    "text",
    [
        "boil\npour\n",
        "// a list\n    // of mine\nboil\npour\n",
        "boil\n// pour\n    // said in 2 of 3 videos\nserve\n",  # struck out
        "boil\n\n    // apart\npour\n",
        "# Tea\n    // 3 videos\nboil\npour\n",
        "  boil\n  // beside it\n  pour\n",
    ],
)
def test_other_comments_are_of_no_step(text):
    assert told(text) == {}


def test_what_is_left_of_a_step_that_was_deleted_is_not_of_the_one_above():
    left = "crack\n    // said in 3 of 6 videos\n    // a 0:01: crack\n"
    left += "    // optional, said in 2 of 6 videos\n    // a 0:09: whisk\npour\n"

    assert told(left) == {"crack": ["said in 3 of 6 videos", "a 0:01: crack"]}


def test_evidence_makes_no_other_vocabulary():
    plain = read("\n".join(line for line in LIST.split("\n") if "//" not in line))
    words = read(LIST)

    assert words.notes
    assert not plain.notes
    assert (words, words.fingerprint, hash(words)) == (plain, plain.fingerprint, hash(plain))
    assert repr(words) == repr(plain)
    assert add_noise(words, ["mow the lawn"], factor=0.3).notes == words.notes


def test_a_strangers_comments_are_few_short_and_harmless(tmp_path):
    lines = ["boil", f"  // {HOSTILE}", "  // \x1b[2J\x00\u202eevil\ud800", f"  // {'x ' * 10**5}"]
    lines += ["  // again"] * 100
    words = sg.make_vocabulary([*lines, "pour"])
    [said] = words.notes.values()

    assert len(said) == MOST
    assert max(map(len, said)) <= LONGEST
    assert said[0] == HOSTILE
    assert said[1] == "\\u001b[2J\\u0000\\u202eevil\\ud800"
    assert said[2].startswith("x x x")
    for value in (words, make_graph(np.eye(2, dtype=np.int64), words)):
        sg.save(value, tmp_path / "saved.json")
        again = sg.load(tmp_path / "saved.json")
        assert getattr(again, "vocabulary", again).notes == words.notes


def test_maps_keep_evidence_beside_maps_without(tmp_path):
    words = replace(WORDS, notes={2: (HOSTILE,)})
    save_maps(graph_of((0, 1, 2, 3), vocabulary=words), ["tea"], tmp_path)
    save_maps(graph_of((0, 1)), [], tmp_path)

    [kept] = load_maps(tmp_path).values()

    words = kept.procedure.vocabulary
    assert {words.keysteps[at]: said for at, said in words.notes.items()} == {"stir": (HOSTILE,)}


def test_a_report_shows_evidence_as_text(tmp_path):
    plain = write(tmp_path / "plain.html")
    page = write(
        tmp_path / "r.html", vocabulary=replace(omelette(), notes={1: (HOSTILE, "{{script}}")})
    )

    shown = f"<li><bdi>{html.escape(HOSTILE)}</bdi></li><li><bdi>{{{{script}}}}</bdi></li>"
    assert page.count(f"<ul class=notes>{shown}</ul>") == 1
    assert page.replace(f"<ul class=notes>{shown}</ul>", "") == plain


@pytest.fixture
def recognised(omelettes, tmp_path, monkeypatch):
    """What a person has who proposes a list, mines with it and recognises."""
    monkeypatch.chdir(tmp_path)
    assert main(["steps", "suggest", "videos", "-o", "steps.txt"]) == 0
    assert main(["mine", "videos", "--vocabulary", "steps.txt", "-o", "graph.json"]) == 0
    assert main(["recognize", "videos", "--graph", "graph.json", "-o", "chapters"]) == 0
    return tmp_path


def test_a_proposed_list_tells_where_its_steps_come_from(recognised, capsys):
    graph = json.loads((recognised / "graph.json").read_text())
    name = next(one for one in graph["keysteps"] if one.startswith("whisk the eggs"))
    first, *sentences = graph["notes"][name]
    assert "mentioned in 6 of 6 videos" in first
    assert any(TOLD["whisk"] in one for one in sentences)

    [one] = json.loads((recognised / "chapters/maps.json").read_text())["tasks"]
    assert one["notes"] == graph["notes"]
    with serving(recognised / "chapters") as server:
        shown = json.loads(get(server, f"map?of={one['task'].replace(' ', '%20')}")[1])["nodes"]
    assert {node["name"]: node["notes"] for node in shown if node["notes"]} == one["notes"]

    truth = "video,start,end,keystep\n" + f"x0q,10,20,{name}\n"
    (recognised / "videos/truth.csv").write_text(truth)
    (recognised / "videos/steps.txt").write_text((recognised / "steps.txt").read_text())
    assert main(["evaluate", "videos", "--report", "report.html"]) == 0
    assert TOLD["whisk"] in (recognised / "report.html").read_text().split("class=notes")[2]


def test_a_list_without_comments_is_saved_as_ever(recognised):
    lines = (recognised / "steps.txt").read_text().split("\n")
    bare = [line for line in lines if not line.strip().startswith("//")]
    (recognised / "bare.txt").write_text("\n".join(bare))
    assert main(["mine", "videos", "--vocabulary", "bare.txt", "-o", "bare.json"]) == 0

    plain, full = (recognised / one for one in ("bare.json", "graph.json"))

    kept = [one for one in full.read_text().split("\n") if not one.startswith('"notes"')]
    assert "notes" not in json.loads(plain.read_text())
    assert len(kept) == len(full.read_text().split("\n")) - 1
    assert plain.read_text() == "\n".join(kept)


@pytest.mark.browser
def test_choosing_a_step_shows_what_the_list_says_of_it(recognised, page):
    name = json.loads((recognised / "graph.json").read_text())["keysteps"][0]
    with serving(recognised / "chapters") as server:
        page.goto(f"{server.address}#graph")
        page.click(f".node[data-name='{name}']")
        shown = page.inner_text(".side")

    assert "mentioned in 6 of 6 videos" in shown
    assert TOLD["crack"] in shown


@pytest.mark.browser
def test_hostile_evidence_does_nothing_in_a_report(tmp_path, visit):
    write(tmp_path / "r.html", vocabulary=replace(omelette(), notes={1: (HOSTILE, "x" * 300)}))
    report = visit(tmp_path / "r.html", width=380)
    report.locator('.node[data-k="1"]').focus()

    assert f"notes:\n{HOSTILE}" in report.locator(".panel-note").inner_text()
    assert report.evaluate("typeof window.broken") == "undefined"
    assert report.evaluate("document.documentElement.scrollWidth") <= 380
