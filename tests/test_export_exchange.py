"""Graphs for other programs: each format is read back by a library that is not ours."""

from __future__ import annotations

import csv
import json
import warnings
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array

from stepgraph.errors import ConfigError
from stepgraph.export.drawing import task_maps
from stepgraph.export.exchange import FORMATS, to_networkx, write_network
from stepgraph.files.cells import read_cell
from stepgraph.graph.maps import END, START
from task_maps import NAMES, tea_graph

ODD = ('=HYPERLINK("evil")', 'say "hi" \\ & <b>', "湯\x08を沸かす", "two\nlines\t", "-1+1")


def written(tmp_path, ending, names=NAMES, **options):
    graph = tea_graph(names)
    files = write_network(graph, task_maps(graph), tmp_path / f"tea{ending}", **options)
    assert all(file.is_file() for file in files)
    return files


def expected():
    """Edges of the example by the names of their ends."""
    graph = tea_graph()
    names = {START: "START", END: "END"} | dict(enumerate(NAMES))
    [found] = task_maps(graph)
    return {(names[one.first], names[one.second]): one for one in found.successions}


def check(network):
    """A network that was read back has all keysteps and all arrows with their numbers."""
    assert network.is_directed()
    names = dict(network.nodes(data="name"))
    assert sorted(names.values()) == sorted(["START", "END", *NAMES])
    nodes = {fields["name"]: fields for _, fields in network.nodes(data=True)}
    assert (nodes["add milk"]["videos"], nodes["add milk"]["tasks"]) == (2, "Make tea")
    assert nodes["add milk"]["share"] == pytest.approx(2 / 3)
    edges = {(names[a], names[b]): fields for a, b, fields in network.edges(data=True)}
    arrows = expected()
    assert edges.keys() == arrows.keys()
    for ends, arrow in arrows.items():
        assert edges[ends]["task"] == "Make tea"
        assert edges[ends]["seen"] == arrow.seen
        for number in ("share", "low", "high"):
            assert edges[ends][number] == pytest.approx(getattr(arrow, number))
    assert edges["boil water", "add leaves"]["probability"] == pytest.approx(0.25)
    assert edges["START", "boil water"]["probability"] == 0


def test_graphml_is_read_by_networkx(tmp_path):
    [file] = written(tmp_path, ".graphml")

    check(nx.read_graphml(file))


def test_gexf_is_read_by_networkx(tmp_path):
    [file] = written(tmp_path, ".gexf")

    network = nx.read_gexf(file)
    check(network)
    assert {fields["label"] for _, fields in network.nodes(data=True)} >= set(NAMES)


def test_json_is_read_by_networkx(tmp_path):
    [file] = written(tmp_path, ".json")

    content = json.loads(file.read_text("utf-8"))
    check(nx.node_link_graph(content, edges="edges"))


def test_names_in_json_can_be_read_by_people(tmp_path):
    [file] = written(tmp_path, ".json", names=("Wasser übergießen", *NAMES[1:]))

    assert '"name": "Wasser übergießen"' in file.read_text("utf-8")


def test_dot_is_read_by_pydot(tmp_path):
    pydot = pytest.importorskip("pydot", reason="reads DOT")
    [file] = written(tmp_path, ".dot")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its parser, about itself
        [graph] = pydot.graph_from_dot_file(str(file))

    network = nx.MultiDiGraph()
    for node in graph.get_nodes():
        if node.get_name() != "node":
            fields = unquoted(node.get_attributes())
            network.add_node(node.get_name(), name=fields.pop("label"), **fields)
    for edge in graph.get_edges():
        ends = edge.get_source(), edge.get_destination()
        network.add_edge(*ends, **unquoted(edge.get_attributes()))
    check(network)


def unquoted(fields):
    plain = {key: value.strip('"') for key, value in fields.items()}
    numbers = {"videos": int, "seen": int, "share": float, "low": float, "high": float}
    numbers["probability"] = float
    return {key: numbers.get(key, str)(value) for key, value in plain.items()}


def rows_of(file):
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def test_csv_is_two_tables(tmp_path):
    edges, nodes = written(tmp_path, ".csv")

    assert (edges.name, nodes.name) == ("tea.csv", "tea.keysteps.csv")
    network = nx.MultiDiGraph()
    for row in rows_of(nodes):
        network.add_node(row["name"], **unquoted(row))
    for row in rows_of(edges):
        network.add_edge(row.pop("first"), row.pop("second"), **unquoted(row))
    check(network)


@pytest.mark.parametrize("kind", FORMATS)
def test_odd_names_do_no_harm(tmp_path, kind):
    files = written(tmp_path, ".out", ODD, format=kind)

    if kind == "csv":
        rows = rows_of(files[1])
        assert [read_cell(row["name"]) for row in rows][1:-1] == list(ODD)
        assert not [row for row in rows if row["name"].startswith(("=", "-"))]
        return
    if kind == "dot":
        pydot = pytest.importorskip("pydot", reason="reads DOT")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            [graph] = pydot.graph_from_dot_file(str(files[0]))
        labels = [node.get("label") for node in graph.get_nodes() if node.get("label")]
        assert labels[2] == r'"say \"hi\" \\ & <b>"'
        assert len(labels) == 7
        return
    if kind == "networkx-json":
        network = nx.node_link_graph(json.loads(files[0].read_text("utf-8")), edges="edges")
        assert list(dict(network.nodes(data="name")).values())[1:-1] == list(ODD)
        return
    read = nx.read_graphml if kind == "graphml" else nx.read_gexf
    names = [fields["name"] for _, fields in read(files[0]).nodes(data=True)]
    assert {ODD[0], ODD[1], "湯\ufffdを沸かす"} <= set(names)


def test_names_in_dot_are_one_line_without_control_characters(tmp_path):
    [file] = written(tmp_path, ".dot", ODD)

    text = file.read_text()
    assert 'label="two lines"' in text
    assert 'label="湯�を沸かす"' in text
    assert len(text.splitlines()) == text.count(";") + 2
    ovals = [line.split()[0] for line in text.splitlines() if 'shape="oval"' in line]
    assert sorted(ovals) == ["END", "START"]


def test_neighbouring_rows_know_neither_a_beginning_nor_an_end():
    graph = replace(tea_graph(), counts=csr_array(np.ones((5, 5), np.int64)))

    edges = to_networkx(graph, task_maps(graph)).edges(data=True)

    for first, second, fields in edges:
        assert (fields["probability"] == 0) == (first == "START" or second == "END")


def test_tasks_that_share_keysteps_have_edges_of_their_own():
    graph = tea_graph(tasks={"Make tea": (0, 1, 2, 3, 4), "Make soup": (0, 1)})

    network = to_networkx(graph, task_maps(graph))

    tasks = [fields["task"] for *_, fields in network.edges(data=True) if _ == ["k0", "k1"]]
    assert tasks == ["Make tea", "Make soup"]
    assert network.nodes["k0"]["tasks"] == "Make tea; Make soup"
    assert network.nodes["k0"]["videos"] == 3


def test_of_a_task_of_no_video_no_share_is_known():
    graph = tea_graph(tasks={"Make tea": (0, 1, 2, 3), "Make soup": (4,)})
    unseen = replace(task_maps(graph)[0], videos=0)
    unseen = replace(unseen, steps=tuple(one._replace(videos=0) for one in unseen.steps))

    nodes = to_networkx(graph, [unseen]).nodes(data=True)

    assert {(fields["videos"], fields["share"]) for _, fields in nodes} == {(0, 0.0)}


def test_an_unknown_ending_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"tea.xls: must end in .graphml.*got .xls.*--format"):
        written(tmp_path, ".xls")
    assert not list(tmp_path.iterdir())
