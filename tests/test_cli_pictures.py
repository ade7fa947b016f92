"""Drawing and exporting a graph from the command line, as a user does it."""

from xml.etree import ElementTree

import networkx as nx
import pytest

from stepgraph.cli import main
from stepgraph.graph.saving import save_graph
from task_maps import tea_graph


@pytest.fixture
def graph(tmp_path):
    tasks = {"Make tea": (0, 1, 2, 3, 4), "Make iced tea": (0, 1, 4)}
    save_graph(tea_graph(tasks=tasks), tmp_path / "graph.json")
    return tmp_path / "graph.json"


def run(capsys, *words):
    code = main([*map(str, words)])
    said = capsys.readouterr()
    return code, said.out.strip(), said.err.strip()


@pytest.mark.parametrize(
    ("asked", "said", "title"),
    [
        ((), "'Make tea', estimated from 3 recognised videos; 1 other task: --task", "Make tea"),
        (("--task", "Make iced tea"), "'Make iced tea', estimated from neigh", "Make iced tea"),
        (("--heat",), "heat map of the keysteps of 2 tasks", "Which task uses which keystep"),
        (
            ("--next", "boil water"),
            "successors of 'boil water'",
            "What comes next after “boil water”",
        ),
        (("--transitions",), "transitions between keysteps", "Which keystep follows which"),
        (
            ("--keysteps", "4", "--top", "2"),
            "the keysteps with most transitions",
            "The 4 keysteps with most transitions, of 5",
        ),
    ],
    ids=["task", "another", "heat", "next", "transitions", "circle"],
)
def test_a_picture_is_drawn(graph, tmp_path, capsys, asked, said, title):
    code, out, err = run(capsys, "graph", "draw", graph, *asked, "-o", tmp_path / "new" / "a.svg")

    assert (code, err) == (0, "")
    assert out.startswith(f"{tmp_path / 'new' / 'a.svg'}: {said}")
    picture = ElementTree.parse(tmp_path / "new" / "a.svg").getroot()
    assert picture[0].text == title


def test_a_graph_without_recognised_videos_is_drawn_too(tmp_path, capsys):
    save_graph(tea_graph(statistics=False), tmp_path / "graph.json")

    code, out, _ = run(capsys, "graph", "draw", tmp_path / "graph.json", "-o", tmp_path / "a.svg")

    assert code == 0
    assert "estimated from neighbouring rows; no video of this task was recognised" in out
    assert "START" in (tmp_path / "a.svg").read_text("utf-8")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            ("--task", "Make tee", "-o", "a.svg"),
            "task must be one of the 2 of the graph, got 'Make tee'; "
            "did you mean 'Make tea' or 'Make iced tea'?",
        ),
        (
            ("--next", "boil whater", "-o", "a.svg"),
            "of the 5 of the vocabulary, got 'boil whater'; did you mean 'boil water'?",
        ),
        (("--top", "3", "-o", "a.svg"), "--top requires --keysteps; remove it"),
        (
            ("--keysteps", "1", "-o", "a.svg"),
            "at least 2 keysteps and 1 transition of each, got 1",
        ),
        (("-o", "a.jpg"), "a.jpg: must end in .svg or .png, got .jpg; rename it"),
        (("-o", "graph.json/a.svg"), "must be a folder that can be"),
        (("-o", "."), "must be a file to write, got a folder"),
    ],
    ids=["task", "keystep", "top", "circle", "ending", "unwritable", "folder"],
)
def test_what_cannot_be_drawn_is_said_in_one_line(graph, capsys, monkeypatch, asked, message):
    monkeypatch.chdir(graph.parent)

    code, out, err = run(capsys, "graph", "draw", graph, *asked)

    assert (code, out) == (1, "")
    assert err.startswith("stepgraph: error: ")
    assert message in err
    assert len(err.splitlines()) == 1
    assert [one.name for one in graph.parent.iterdir()] == ["graph.json"]


def test_one_thing_is_drawn_at_a_time(graph, capsys):
    with pytest.raises(SystemExit, match="2"):
        run(capsys, "graph", "draw", graph, "--heat", "--next", "boil water", "-o", "a.svg")


def test_a_graph_is_exported_as_its_file_ends(graph, tmp_path, capsys):
    code, out, err = run(capsys, "graph", "export", graph, "-o", tmp_path / "tea.graphml")

    assert (code, out, err) == (0, f"{tmp_path / 'tea.graphml'}: 2 tasks, 8 arrows", "")
    assert len(nx.read_graphml(tmp_path / "tea.graphml").edges) == 8


def test_one_task_is_exported_in_the_format_asked_for(graph, tmp_path, capsys):
    asked = ("--task", "Make iced tea", "--format", "csv", "-o", tmp_path / "tea.txt")
    code, out, _ = run(capsys, "graph", "export", graph, *asked)

    files = f"{tmp_path / 'tea.txt'}, {tmp_path / 'tea.keysteps.csv'}"
    assert (code, out) == (0, f"{files}: 1 task, 1 arrow")
    assert len((tmp_path / "tea.txt").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("-o", "tea.xls"), "tea.xls: must end in .graphml, .gexf"),
        (("--task", "tea", "-o", "tea.dot"), "did you mean 'Make tea'"),
        (("-o", "graph.json/tea.dot"), "must be a folder that can be"),
    ],
)
def test_what_cannot_be_exported_is_said_in_one_line(graph, capsys, monkeypatch, asked, message):
    monkeypatch.chdir(graph.parent)

    code, out, err = run(capsys, "graph", "export", graph, *asked)

    assert (code, out, len(err.splitlines())) == (1, "", 1)
    assert message in err
