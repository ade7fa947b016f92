"""The picture of the graph: what is drawn, in which order, and that it can be read."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
from scipy.sparse import csr_array

from stepgraph.core import Vocabulary
from stepgraph.export.layout import assign_layers, draw_graph, strongest_links
from stepgraph.graph import TaskGraph

OMELETTE = Vocabulary(
    ("crack eggs", "whisk eggs", "heat pan", "pour eggs"), {"Omelette": (0, 1, 2, 3)}
)


def chain_graph(order):
    counts = np.eye(len(OMELETTE), dtype=np.int64)
    for start, end in pairwise(order):
        counts[start, end] = 5
    return TaskGraph(OMELETTE, csr_array(counts))


def test_a_chain_is_drawn_from_top_to_bottom():
    graph = chain_graph((2, 0, 1, 3))

    (panel,) = draw_graph(graph).panels

    assert [node.keystep for node in sorted(panel.nodes, key=lambda n: n.y)] == [2, 0, 1, 3]


def test_boxes_do_not_overlap_and_arrows_end_at_them():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        names = tuple(" ".join(["keystep"] * rng.integers(1, 6)) + f" {at}" for at in range(30))
        vocabulary = Vocabulary(names, {"a": tuple(range(9)), "b": tuple(range(7, 30))})
        counts = rng.integers(0, 9, (30, 30)) * (rng.random((30, 30)) < 0.15)
        picture = draw_graph(TaskGraph(vocabulary, csr_array(counts)))

        for panel in picture.panels:
            boxes = {node.keystep: node for node in panel.nodes}
            for one, two in combinations(panel.nodes, 2):
                apart_x = abs(one.x - two.x) >= (one.width + two.width) / 2
                apart_y = abs(one.y - two.y) >= (one.height + two.height) / 2
                assert apart_x or apart_y
            for node in panel.nodes:
                assert node.x - node.width / 2 >= 0
                assert node.x + node.width / 2 <= panel.width
                assert node.y + node.height / 2 <= panel.height
            for edge in panel.edges:
                assert on_border(edge.points[0], boxes[edge.link.start])
                assert on_border(edge.points[-1], boxes[edge.link.end])


def on_border(point, node):
    inside = abs(point[0] - node.x) <= node.width / 2
    return inside and abs(abs(point[1] - node.y) - node.height / 2) < 1e-6


def test_layout_is_deterministic():
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 3, (40, 40))
    vocabulary = Vocabulary(tuple(f"keystep {number}" for number in range(40)))

    first, second = (draw_graph(TaskGraph(vocabulary, csr_array(counts))) for _ in range(2))

    assert first == second


def test_communities_are_the_panels_where_there_are_no_tasks():
    vocabulary = Vocabulary(tuple("abcdef"))
    counts = np.zeros((6, 6), np.int64)
    counts[[0, 1, 3, 4], [1, 2, 4, 5]] = 9
    counts[2, 3] = 1

    panels = draw_graph(TaskGraph(vocabulary, csr_array(counts))).panels

    assert [sorted(node.keystep for node in panel.nodes) for panel in panels] == [
        [0, 1, 2],
        [3, 4, 5],
    ]
    assert [(link.start, link.end) for link in panels[0].leaving] == [(2, 3)]


def test_probabilities_leave_the_self_loop_out():
    counts = csr_array(np.array([[90, 3, 1], [0, 0, 0], [0, 0, 4]]))
    graph = TaskGraph(Vocabulary(("boil", "pour", "stir")), counts)

    links = strongest_links(graph, 0, 3)

    assert [(link.end, link.probability) for link in links] == [(1, 0.75), (2, 0.25)]
    assert strongest_links(graph, 2, 3) == []


def test_only_the_most_used_keysteps_of_a_large_vocabulary_are_drawn():
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 10_588, (2, 60_000)) // rng.integers(1, 200, 60_000)
    counts = csr_array((np.ones(60_000, np.int64), tuple(pairs)), shape=(10_588, 10_588))
    vocabulary = Vocabulary(tuple(f"keystep {number}" for number in range(10_588)))

    picture = draw_graph(TaskGraph(vocabulary, counts))

    assert 200 < len(picture.keysteps) <= 300
    assert max(len(panel.nodes) for panel in picture.panels) <= 24


def ring(size, tasks):
    """Each keystep is followed by the next, the last one by the first."""
    counts = np.roll(9 * np.eye(size, dtype=np.int64), 1, axis=1)
    return TaskGraph(Vocabulary(tuple(f"k{n}" for n in range(size)), tasks), csr_array(counts))


def test_three_hundred_keysteps_are_drawn_and_no_more():
    tasks = {f"task {n}": tuple(range(20 * n, 20 * n + 20)) for n in range(16)}

    assert len(draw_graph(ring(320, tasks)).keysteps) == 300


def test_a_panel_holds_24_keysteps_and_is_cut_in_two_from_25_on():
    [whole] = draw_graph(ring(24, {"tea": tuple(range(24))})).panels
    halves = draw_graph(ring(25, {"tea": tuple(range(25))})).panels

    assert (whole.title, len(whole.nodes)) == ("tea", 24)
    assert sorted((panel.title, len(panel.nodes)) for panel in halves) == [
        ("tea (1 of 2)", 13),
        ("tea (2 of 2)", 12),
    ]


def test_what_forks_and_meets_again_is_drawn_as_a_diamond():
    counts = np.zeros((4, 4), np.int64)
    counts[[0, 0, 1, 2], [1, 2, 3, 3]] = 9

    [panel] = draw_graph(TaskGraph(OMELETTE, csr_array(counts))).panels

    top, left, right, bottom = sorted(panel.nodes, key=lambda node: (node.y, node.x))
    assert left.y == right.y
    assert top.x == bottom.x == (left.x + right.x) / 2


def test_capitals_take_a_quarter_more_room():
    names = ("abcdefghijklmnop", "ABCDEFGHIJKLMNOP")
    graph = TaskGraph(Vocabulary(names), csr_array(np.array([[0, 1], [0, 0]])))

    [panel] = draw_graph(graph).panels

    # Beside the letters there is as much as always: 12 pixels to the left and to the right.
    assert {node.keystep: node.width - 24 for node in panel.nodes} == {0: 16 * 7, 1: 20 * 7}


def test_layers_hold_few_keysteps_and_follow_the_order():
    links = strongest_links(chain_graph((0, 1)), 0, 1)

    assert assign_layers([0, 1, 2, 3], links) == [0, 1, 2, 2]
    assert assign_layers([0, 1, 2, 3], []) == [0, 0, 0, 1]
    # What nothing leads to stands beside what comes before it.
    links += strongest_links(chain_graph((2, 3)), 2, 1)
    assert assign_layers([0, 1, 2, 3], links) == [0, 1, 1, 2]


def test_a_keystep_that_a_task_lists_twice_is_drawn_once():
    vocabulary = Vocabulary(("boil", "pour"), {"tea": (0, 1, 0)})

    (panel,) = draw_graph(TaskGraph(vocabulary, csr_array(np.ones((2, 2), np.int64)))).panels

    assert sorted(node.keystep for node in panel.nodes) == [0, 1]
