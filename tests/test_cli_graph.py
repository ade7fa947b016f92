"""The questions that are asked of a graph, as a user asks them."""

import json

import numpy as np
import pytest

import stepgraph as sg
from reference import make_graph
from stepgraph.cli import main


@pytest.fixture(scope="module")
def demo_graph(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "graph.json"
    sg.save(sg.mine("demo"), path)
    return path


@pytest.fixture
def ask(capsys):
    def ask(*words, code=0):
        capsys.readouterr()
        assert main(["graph", *map(str, words)]) == code
        printed = capsys.readouterr()
        return printed.err if code else printed.out

    return ask


def test_a_graph_is_checked_against_the_truth_of_its_source(demo_graph, ask):
    found = json.loads(ask("check", demo_graph, "demo", "--json"))

    assert [one["videos"] for one in found["tasks"]] == [6] * 6
    assert found["mean"]["next_share"] > 0.4
    assert found["mean"]["right_directions"] is None  # no pair is in ten videos
    assert "before in interval" in ask("check", demo_graph, "demo")
    found = json.loads(ask("check", demo_graph, "demo", "--least", 3, "--json"))
    assert found["mean"]["right_directions"] > 0.93


def test_one_task_is_shown(demo_graph, ask):
    text = ask("show", demo_graph, "--task", "Make pancakes")

    assert "Make pancakes, estimated from 6 recognised videos:" in text
    assert "Make spiced milk tea" not in text
    assert text.index("sift the flour") < text.index("flip the pancake")
    assert "as 6 recognised" not in ask("show", demo_graph, "--min-videos", 7)
    assert "did you mean 'Make pancakes'" in ask(
        "show", demo_graph, "--task", "Make pancake", code=1
    )


def test_an_order_is_told_with_its_uncertainty(demo_graph, ask):
    found = json.loads(ask("order", demo_graph, "Make pancakes", "--json"))

    assert found["videos"] == 6
    assert [one["keystep"] for one in found["order"]][-1] == "drizzle with syrup"
    assert all(
        1 <= one["earliest"] <= one["latest"] <= len(found["order"]) for one in found["order"]
    )
    assert "1 – " in ask("order", demo_graph, "Make pancakes")


def test_graphs_are_compared(demo_graph, ask, tmp_path):
    assert "no significant difference" in ask("compare", demo_graph, demo_graph)
    assert json.loads(ask("compare", demo_graph, demo_graph, "--json")) == {"differences": []}
    other = tmp_path / "other.json"
    sg.save(sg.mine("demo", ["whisk", "pour"]), other)
    assert "must hold recognised videos of a task of" in ask("compare", demo_graph, other, code=1)


def test_how_videos_depart_from_the_map_is_told(demo_graph, ask):
    found = json.loads(ask("video", demo_graph, "demo", "--json"))["videos"]

    assert len(found) == 36
    kinds = {one["kind"] for video in found for one in video["deviations"]}
    assert kinds <= {"missing", "order", "repeated"}
    assert "missing" in kinds


@pytest.mark.parametrize("question", [("check", "demo"), ("order", "tea"), ("video", "demo")])
def test_a_graph_without_recognised_videos_cannot_answer(question, ask, tmp_path):
    verb, *rest = question
    sg.save(make_graph(np.zeros((5, 5), np.int64)), tmp_path / "graph.json")

    text = ask(verb, tmp_path / "graph.json", *rest, code=1)

    assert "must hold recognised videos for this question, got none" in text


@pytest.mark.parametrize("top", ["-3", "some"])
def test_how_many_are_told_is_a_number_from_0_on(demo_graph, capsys, top):
    with pytest.raises(SystemExit):
        main(["graph", "show", str(demo_graph), "--top", top])

    assert f"must be a whole number from 0 on, got '{top}'" in capsys.readouterr().err


def test_a_graph_is_not_added_to_itself(demo_graph, ask, tmp_path):
    told = ask("merge", demo_graph, demo_graph, "-o", tmp_path / "sum.json", code=1)

    assert "must be mined on different videos, got 36 in both" in told
