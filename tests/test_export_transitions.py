"""Pictures of transitions across all tasks: the heat map, the circle, labels beside the truth."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from reference import make_graph
from stepgraph.core import Labels, Vocabulary
from stepgraph.errors import ConfigError, DataError
from stepgraph.export.tracks import VideoTracks, draw_tracks
from stepgraph.export.transitions import draw_circle, draw_transitions, most_used_keysteps

SVG = "{http://www.w3.org/2000/svg}"
NAMES = ("raise <jack>", "lower jack", "unscrew", "screw", "boil", "pour & " * 12)
TASKS = {"Jack up": (0, 1), "Change a tire": (2, 3), "Make tea": (4, 5)}
COUNTS = np.array(
    [
        [70, 8, 12, 0, 0, 0],
        [0, 0, 2, 38, 0, 0],
        [1, 30, 0, 9, 0, 0],
        [0, 12, 0, 0, 1, 0],
        [0, 0, 0, 2, 40, 8],
        [0, 0, 0, 0, 98, 0],
    ]
)
GRAPH = make_graph(COUNTS, Vocabulary(NAMES, TASKS), mined_on=("a", "b"))


def words(picture):
    return [one.text for one in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def squares(picture):
    """Cells by how dark they are: row and column in cells from the corner."""
    found = {}
    for path in ElementTree.fromstring(picture).iter(f"{SVG}path"):
        if path.get("fill-opacity"):
            places = re.findall(r"M([\d.]+) ([\d.]+)h", path.get("d"))
            found[float(path.get("fill-opacity"))] = [(float(y), float(x)) for x, y in places]
    return found


def nodes(picture, tag, kind=""):
    found = ElementTree.fromstring(picture).iter(f"{SVG}{tag}")
    return [one for one in found if kind in one.get("class", "")]


def test_cells_are_as_dark_as_their_share_of_what_follows():
    step, gap = 11, 3
    at = [0, step, 2 * step + gap, 3 * step + gap, 4 * step + 2 * gap, 5 * step + 2 * gap]

    drawn = squares(draw_transitions(GRAPH))

    surely = [(0, 1), (0, 2), (1, 3), (2, 1), (3, 1), (4, 5), (5, 4)]
    assert sorted(drawn[1.0]) == [(at[row], at[column]) for row, column in surely]
    assert drawn[0.72] == [(at[2], at[3]), (at[4], at[3])]
    # 2 of 40; what was seen once is not drawn, though 1 of 13 is more.
    assert (drawn[0.48], drawn[0.28], drawn[0.12]) == ([], [(at[1], at[2])], [])


def test_tasks_that_are_joined_more_than_by_chance_are_framed():
    names = Vocabulary(tuple("abcd"), {name * 2: (at,) for at, name in enumerate("abcd")})
    counts = 5 * (1 - np.eye(4, dtype=np.int64))
    counts[0, 2] = counts[1, 3] = 90

    picture = draw_transitions(make_graph(counts, names))

    places = {(one.get("x"), one.get("y")) for one in nodes(picture, "rect", "block tied")}
    # On both sides of the diagonal, and in the legend.
    frames = {("0.0", "14.0"), ("14.0", "0.0"), ("28.0", "42.0"), ("42.0", "28.0")}
    assert places == frames | {("10", "1")}
    assert len(nodes(picture, "rect", "block")) == 4 + 5


def test_what_a_heat_map_was_made_of_is_written_above_it():
    told = " ".join(words(draw_transitions(GRAPH)))

    assert "neighbouring rows of 2 videos" in told
    assert "44 % of 221 transitions" in told
    assert "most transitions" not in told
    assert "of several tasks" not in told
    few = " ".join(words(draw_transitions(GRAPH, most=3)))
    assert "Shown are the 3 keysteps with most transitions." in few
    assert "unscrew" not in few


def test_a_keystep_of_several_tasks_stands_once_and_the_picture_says_so():
    shared = Vocabulary(NAMES, TASKS | {"Jack up": (0, 1, 3)})

    told = words(draw_transitions(make_graph(COUNTS, shared)))

    assert told.count("screw") == 2  # a row and a column
    assert "A keystep of several tasks stands in the first of them." in " ".join(told)


def test_the_most_used_keysteps_do_not_count_their_self_loops():
    assert most_used_keysteps(GRAPH, 3) == [4, 5, 1]
    assert most_used_keysteps(make_graph([[9, 0, 0], [0, 0, 1], [0, 0, 0]]), 3) == [1, 2]


def test_the_circle_has_the_arrows_of_highest_count_within_and_between_tasks():
    edges = nodes(draw_circle(GRAPH, keysteps=4, top=1), "g", "edge")

    told = {one[0].text: one.get("class") for one in edges if one[0].tag == f"{SVG}title"}
    assert told == {
        "lower jack → screw: 95\u00a0%, 38×": "edge rare",
        "screw → lower jack: 92\u00a0%, 12×": "edge rare",
        "boil → pour & pour & pour & pour & pour & pour &…: 80\u00a0%, 8×": "edge sure",
        "pour & pour & pour & pour & pour & pour &… → boil: 100\u00a0%, 98×": "edge sure",
    }
    # Those within a task are drawn above the others.
    assert [one.get("class") for one in edges][:4] == ["edge rare"] * 2 + ["edge sure"] * 2


def test_so_many_arrows_leave_each_keystep_of_the_circle_as_asked_for():
    edges = nodes(draw_circle(GRAPH, keysteps=6, top=2), "g", "edge")

    first = [one[0].text for one in edges if (one[0].text or "").startswith("raise <jack> →")]
    assert sorted(first) == [
        "raise <jack> → lower jack: 40\u00a0%, 8×",
        "raise <jack> → unscrew: 60\u00a0%, 12×",
    ]


@pytest.mark.parametrize(("keysteps", "top"), [(1, 5), (35, 0)])
def test_a_circle_needs_two_keysteps_and_an_arrow(keysteps, top):
    with pytest.raises(ConfigError, match=f"1 transition of each, got {keysteps} and {top}"):
        draw_circle(GRAPH, keysteps, top)


@pytest.mark.parametrize("draw", [draw_transitions, draw_circle])
def test_a_graph_without_transitions_is_refused(draw):
    with pytest.raises(DataError, match="must have transitions between keysteps to be drawn"):
        draw(make_graph(np.eye(6, dtype=np.int64), GRAPH.vocabulary))


def labels(*rows):
    return Labels("v", np.array(rows), GRAPH.vocabulary)


def test_tracks_show_where_labels_are_right_and_where_wrong():
    shown = VideoTracks("one video", labels(-1, 0, 0, 2), {"best": labels(3, 0, 1, -1)})

    picture = draw_tracks("Labels", [], [shown])

    bars = [
        (one[0].text if len(one) else "", float(one.get("width")), one.get("style"))
        for one in nodes(picture, "rect")
        if one.get("height") in ("16.0", "4.0")
    ]
    told = [(text, width) for text, width, _ in bars if text]
    assert told == [
        *(("raise <jack>, 0:01", 380), ("unscrew, 0:03", 190)),
        *(("another, 0:00", 190), ("raise <jack>, 0:01", 190), ("another, 0:02", 190)),
    ]
    strips = [(width, style) for text, width, style in bars if not text]
    assert strips == [(190, "fill:#2f9e62"), (380, "fill:#d6504a")]
    assert {"one video", "truth", "best", "unscrew"} <= set(words(picture))
