"""How tasks are done, as the page tells it: by a graph, or by the results alone."""
# ruff: noqa: F811

import json

import pytest

import stepgraph as sg
from stepgraph.core import Chapter, Result, Video
from stepgraph.errors import DataError
from stepgraph.export.maps import load_maps, save_maps
from stepgraph.graph.comparing import norm_of
from stepgraph.graph.maps import END, START, procedure_of
from stepgraph.problems import Problems
from stepgraph.viewer.maps import norm_in, picture
from stepgraph.viewer.server import Shown
from test_graph_comparing import graph_of
from test_viewer_server import HOSTILE, folder, get, server, serving  # noqa: F401


def test_without_a_graph_the_results_tell_how_a_task_is_done(server):
    found = json.loads(get(server, "map?of=Make%20tea")[1])

    assert [one["name"] for one in found["nodes"]] == ["START", "boil the water", HOSTILE, "END"]
    assert [one["ends"] for one in found["edges"] if "rare" in one["kind"]] == []
    assert {"boil the water", HOSTILE} in [{*one["ends"]} for one in found["edges"]]
    assert found["made"] == "estimated from 1 recognised video"


def test_a_graph_tells_how_a_task_is_done_and_what_is_missing(folder):
    graph = graph_of(*[(0, 1, 2, 3)] * 20)
    boil, pour, stir, serve = graph.vocabulary.keysteps
    chapters = (Chapter(0, 9, pour, 0.4, "path"), Chapter(9, 20, boil, 0.4, "path"))
    sg.write_timeline(Result(Video("odd", 30.0), chapters, {"tea": 0.9}), folder)
    save_maps(graph, ["tea", None, "unknown"], folder)

    with serving(folder) as server:
        lines = {one["id"]: one for one in json.loads(get(server, "overview")[1])["videos"]}
        found = json.loads(get(server, "map?of=tea")[1])

    assert found["made"] == "estimated from 20 recognised videos"
    assert [one["name"] for one in found["nodes"]] == ["START", boil, pour, stir, serve, "END"]
    assert [one[:3] for one in lines["odd"]["deviations"]] == [
        [None, "missing", f"no {stir!r}"],
        [None, "missing", f"no {serve!r}"],
        [0.0, "order", f"{pour!r} before {boil!r}"],
    ]


def test_maps_are_kept_as_they_were_and_others_beside_them(tmp_path):
    graph = graph_of(*[(0, 1, 2, 3)] * 20)
    known = norm_of(graph.statistics, procedure_of(graph, "tea"))
    save_maps(graph, ["tea"], tmp_path)
    save_maps(graph_of((0, 1)), [], tmp_path)

    [kept] = load_maps(tmp_path).values()

    names = graph.vocabulary.keysteps
    assert [kept.procedure.vocabulary.keysteps[one.keystep] for one in kept.procedure.steps] == [
        names[one.keystep] for one in known.procedure.steps
    ]
    assert [one[2:] for one in kept.procedure.successions] == [
        (one.seen, *(pytest.approx(part, abs=1e-4) for part in one[3:]))
        for one in known.procedure.successions
    ]
    assert len(kept.before) == len(known.before) > 0


@pytest.mark.parametrize(
    "change",
    [
        {"steps": [[9, 1, 1.0, 0.0, 1.0, 0.5, 3.0]]},
        {"successions": [[0, -1, 1, 1.0, 0.0, 1.0]]},
        {"videos": "many"},
        {"videos": 10**400},
        {"successions": [[0, 1, 10**400, 1.0, 0.0, 1.0]]},
        {"notes": {"fry": ["said"]}},
        {"keysteps": ["a", "a"]},
        {"repetitions": [[0, float("nan")]]},
    ],
)
def test_maps_that_somebody_changed_are_one_line(tmp_path, change):
    save_maps(graph_of((0, 1, 2)), ["tea"], tmp_path)
    content = json.loads((tmp_path / "maps.json").read_text())
    content["tasks"][0] |= change
    (tmp_path / "maps.json").write_text(json.dumps(content))

    with pytest.raises(DataError, match=r"maps.json: must be a file of maps"):
        load_maps(tmp_path)


def line(*names, duration=10.0):
    steps = [[float(at), at + 1.0, name, None] for at, name in enumerate(names)]
    return {"task": "tea", "duration": duration, "steps": steps}


def test_what_is_usual_is_counted_in_results():
    norm = norm_in("tea", [line("boil", "pour", "stir"), line("boil", "pour", "boil")])

    names = norm.procedure.vocabulary.keysteps
    boil, pour, stir = (names.index(name) for name in ("boil", "pour", "stir"))
    assert [(names[one.keystep], one.videos) for one in norm.procedure.steps] == [
        ("boil", 2),
        ("pour", 2),
        ("stir", 1),
    ]
    seen = {arrow[:2]: arrow.seen for arrow in norm.procedure.successions}
    assert seen == {
        (START, boil): 2,
        (boil, pour): 2,
        (pour, stir): 1,
        (pour, boil): 1,
        (stir, END): 1,
        (boil, END): 1,
    }
    assert norm.times == {boil: 1.5, pour: 1.0, stir: 1.0}
    assert (boil, pour) in norm.before
    assert (pour, boil) not in norm.before


@pytest.mark.parametrize("lines", [[], [line()], [line("boil")]])
def test_few_results_and_none_have_a_picture(lines):
    found = picture(norm_in("tea", lines))

    assert [one["name"] for one in found["nodes"] if one["end"]] == ["START", "END"]


def test_damaged_maps_stop_nothing_and_are_told(folder, capsys):
    (folder / "maps.json").write_text("{")
    problems = Problems()

    shown = Shown(folder, problems)

    assert shown.map("Make tea")["nodes"]
    assert "maps.json" in problems.summary()


def test_an_unknown_task_is_not_found(server):
    assert get(server, "map?of=other")[0].status == 404
