"""A saved graph, field by field: what may stand in it, and what may not."""

import json
import math

import numpy as np
import pytest

from reference import make_graph
from stepgraph.errors import DataError
from stepgraph.graph import MiningOptions
from stepgraph.graph.saving import load_graph, mining_fields, save_graph
from stepgraph.vocabulary.notes import LONGEST, MOST

COUNTS = [[0, 3], [1, 0]]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "graph.json"


def edit(path, **fields):
    save_graph(make_graph(COUNTS, timing=np.ones((2, 20), np.int64)), path)
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | fields), "utf-8")
    return path


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        (None, None),
        (MiningOptions(), {"min_score": None, "max_gap": None}),
        (MiningOptions(0.25, math.inf), {"min_score": 0.25, "max_gap": None}),
        (MiningOptions(-math.inf, 2.0), {"min_score": None, "max_gap": 2.0}),
        (MiningOptions(0.25, 2.0), {"min_score": 0.25, "max_gap": 2.0}),
    ],
)
def test_how_a_graph_was_mined_is_saved_with_it(options, fields, path):
    save_graph(make_graph(COUNTS, mining=options), path)

    assert mining_fields(options) == json.loads(path.read_text("utf-8"))["mining"] == fields
    assert load_graph(path).mining == options


@pytest.mark.parametrize("value", ["much", [1], {}, 10**400])
@pytest.mark.parametrize("name", ["min_score", "max_gap"])
def test_options_that_are_no_numbers_are_refused(name, value, path):
    edit(path, mining={"min_score": 1, "max_gap": 2.0, name: value})

    with pytest.raises(DataError, match=r"graph\.json: must be a task graph as"):
        load_graph(path)


def test_a_count_of_nothing_is_none(path):
    edit(path, counts=[[0, 1, 3], [1, 1, 0]], timing=[[0, 0, 0], [1, 19, 2]])

    found = load_graph(path)

    assert found.counts.toarray().tolist() == [[0, 3], [0, 0]]
    assert found.timing.sum(axis=1).tolist() == [0, 2]


@pytest.mark.parametrize("name", ["counts", "timing"])
@pytest.mark.parametrize(
    "triple", [[0, 1, -1], [0, 20, 1], [2, 0, 1], [-1, 0, 1], [0, 1], [0.0, 1, 1]]
)
def test_triples_that_count_nothing_there_is_are_refused(name, triple, path):
    edit(path, **{name: [[0, 1, 1], triple]})

    with pytest.raises(DataError, match=r"graph\.json: must be a task graph as"):
        load_graph(path)


def test_a_graph_of_no_transitions_is_loaded(path):
    save_graph(make_graph(np.zeros((2, 2), np.int64)), path)

    assert load_graph(path).counts.nnz == 0


@pytest.mark.parametrize(
    "evidence",
    [[], {"fry": ["said"]}, {"keystep 0": "said"}, {"keystep 0": [1]}, {"keystep 0": None}, 7],
)
def test_evidence_that_is_none_is_refused(evidence, path):
    with pytest.raises(DataError, match="must be a task graph as stepgraph saves it, got"):
        load_graph(edit(path, notes=evidence))


def test_evidence_is_saved_and_of_much_of_it_a_little(path):
    first, second = make_graph(COUNTS).vocabulary.keysteps
    many = {second: ["\x07" * 10**4, *["said"] * 50], first: ["", " "]}
    graph = load_graph(edit(path, notes=many))

    save_graph(graph, path)
    [said] = load_graph(path).vocabulary.notes.values()

    assert graph.vocabulary.notes == {1: said}
    assert (len(said), said[1]) == (MOST, "said")
    assert len(said[0]) <= LONGEST
