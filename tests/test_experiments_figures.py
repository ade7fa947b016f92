"""All figures of the paper that a graph and labels allow."""

import numpy as np
import pytest

from reference import make_graph
from stepgraph.core import Labels, Vocabulary
from stepgraph.experiments.figures import write_figures

NAMES = Vocabulary(("boil", "pour", "whisk", "fry"), {"tea": (0, 1), "eggs": (2, 3)})
GRAPH = make_graph([[5, 8, 2, 0], [1, 5, 3, 0], [0, 3, 5, 9], [0, 1, 0, 0]], NAMES)
TRUTH = {f"v{at}": Labels(f"v{at}", np.array([0, 0, 1, 1, -1]), NAMES) for at in range(6)}


def labels(*right):
    """Labels that are right in so many of the four rows of each video."""
    rows = [[0, 0, 1, 1][:n] + [3] * (4 - n) + [3] for n in right]
    return {f"v{at}": Labels(f"v{at}", np.array(one), NAMES) for at, one in enumerate(rows)}


def drawn(folder, *given):
    return {one.number: one for one in write_figures(folder, *given)}


def test_every_figure_is_written_or_has_a_reason(tmp_path):
    found = drawn(tmp_path / "new", GRAPH, {"a": labels(*[1] * 6), "b": labels(*[2] * 6)}, TRUTH)

    assert list(found) == ["1", "2", "3 left", "3 centre", "3 right", "4", "5"]
    assert [one.file for one in found.values() if one.number in "12"] == [None, None]
    written = {one.file.name for one in found.values() if one.file}
    assert written == {one.name for one in (tmp_path / "new").iterdir()}
    assert "figure-3-left.svg" in written
    assert len(written) == 5
    assert all(one.caption for one in found.values())


def test_directions_are_those_of_one_task(tmp_path):
    path = drawn(tmp_path, GRAPH, {}, {})["3 left"].file

    text = path.read_text("utf-8")
    assert "boil → pour: 89\u00a0%, 8×" in text
    assert "whisk → fry: 100\u00a0%, 9×" in text
    assert "boil → whisk" not in text


def test_next_keysteps_are_of_the_most_frequent_keystep_of_different_tasks(tmp_path):
    text = drawn(tmp_path, GRAPH, {}, {})["3 centre"].file.read_text("utf-8")

    # whisk has 17 transitions, pour 16, fry and boil fewer.
    assert "whisk → fry: 75\u00a0%, 9×" in text
    assert "pour → whisk: 75\u00a0%, 3×" in text
    assert "boil →" not in text


def test_the_videos_that_gain_most_and_least_are_shown(tmp_path):
    methods = {"before": labels(2, 2, 2, 2, 2, 4), "between": labels(*[0] * 6)}
    methods["after"] = labels(2, 3, 4, 1, 2, 1)

    text = drawn(tmp_path, GRAPH, methods, TRUTH)["4"].file.read_text("utf-8")

    heads = [f"{v} (tea): {gain} points" for v, gain in (("v2", "+50"), ("v1", "+25"))]
    heads += [f"{v} (tea): {gain} points" for v, gain in (("v3", "-25"), ("v5", "-75"))]
    places = [text.find(head) for head in heads]
    assert places == sorted(places)
    assert -1 not in places
    assert text.count("points of accuracy") == 4
    assert "after gains most beside before" in text


@pytest.mark.parametrize(
    ("methods", "truth"),
    [({"a": labels(1), "b": labels(1)}, {}), ({"a": labels(1)}, TRUTH), ({}, TRUTH)],
)
def test_without_truth_or_two_methods_there_is_a_reason(tmp_path, methods, truth):
    found = drawn(tmp_path, GRAPH, methods, truth)["4"]

    assert found.file is None
    assert found.caption.startswith("figure 4 must have labels of two methods and a truth")


def test_an_empty_graph_gives_reasons_only(tmp_path):
    found = drawn(tmp_path, make_graph(np.zeros((4, 4), np.int64), NAMES), {}, {})

    assert [one.file for one in found.values()] == [None] * 7
    assert found["3 left"].caption.startswith("directional keysteps must be in the graph")
    assert not list(tmp_path.iterdir())
