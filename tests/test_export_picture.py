"""A picture and a page that stay what they were: every place, colour and number of one example."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from reference import make_scores
from stepgraph.core import Labels, Timeline, Video, Vocabulary
from stepgraph.export.layout import draw_graph
from stepgraph.export.report import STRONGEST, keystep_colours
from stepgraph.export.terminal import describe_vocabulary
from stepgraph.export.timeline import to_json, to_text, to_youtube
from stepgraph.graph import TaskGraph
from stepgraph.problems import Problems
from test_export_report import embedded, kitchen, omelette, write

NAMES = (
    *("boil", "pour the water in", "steep for four minutes or more", "STIR", "茶を注ぐ"),
    *("serve", "grind", "wait", "wash up"),
)


def tea_graph(tasks=True):
    rng = np.random.default_rng(4)
    counts = rng.integers(0, 9, (9, 9)) * (rng.random((9, 9)) < 0.45)
    vocabulary = Vocabulary(NAMES, {"tea": tuple(range(9))} if tasks else {})
    return TaskGraph(vocabulary, csr_array(counts))


def test_every_box_stays_where_it_was():
    [panel] = draw_graph(tea_graph()).panels

    assert (panel.title, round(panel.width), round(panel.height)) == ("tea", 362, 462)
    assert [(n.keystep, *(round(number) for number in n[1:5])) for n in panel.nodes] == [
        (0, 217, 38, 72, 28),
        (1, 96, 112, 143, 28),
        (4, 249, 112, 80, 28),
        (5, 177, 186, 72, 28),
        (3, 151, 260, 72, 28),
        (7, 257, 260, 72, 28),
        (2, 229, 342, 129, 44),
        (6, 65, 342, 72, 28),
        (8, 196, 424, 73, 28),
    ]


def test_every_arrow_stays_where_it_was():
    [panel] = draw_graph(tea_graph()).panels

    arrows = {
        (edge.link.start, edge.link.end): [(round(x), round(y)) for x, y in edge.points]
        for edge in panel.edges
    }
    # One of a layer, one past a layer, one upwards, one past many.
    assert arrows[0, 1] == [(196, 52), (96, 98)]
    assert arrows[0, 5] == [(210, 52), (188, 98), (188, 126), (170, 172)]
    assert arrows[5, 4] == [(199, 172), (233, 126)]
    assert arrows[8, 7] == [(208, 410), (315, 364), (315, 320), (279, 274)]
    every = np.array([point for edge in panel.edges for point in edge.points])
    assert (len(arrows), len(every)) == (26, 88)
    assert every.sum(axis=0) == pytest.approx([17620.4, 20400.0], abs=1)


def test_a_keystep_has_at_most_its_strongest_transitions():
    graph = tea_graph()
    picture = draw_graph(graph)

    for keystep in range(len(NAMES)):
        drawn = [
            (edge.link.end, edge.link.count)
            for edge in picture.panels[0].edges
            if edge.link.start == keystep
        ]
        expected = graph.following(keystep, STRONGEST)
        assert drawn == [(one.keystep, one.count) for one in expected]
    assert picture.keysteps == (3, 5, 7, 4, 0, 2, 8, 1, 6)


def test_colours_stay_what_they_were():
    assert keystep_colours(8, [(0, 1, 2), (2, 3, 4, 0, 5)]) == [
        *("#dd7c9b", "#778b27", "#68c5ff", "#77b061"),
        *("#7575c9", "#f1a95e", "#aaa239", "#4fa7e5"),
    ]


def hue(colour):
    """Angle of a colour in OKLab, by Ottosson's matrices the other way round."""
    encoded = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    linear = np.where(encoded > 0.04045, ((encoded + 0.055) / 1.055) ** 2.4, encoded / 12.92)
    to_cone = [[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]
    _, a, b = [
        [0.2105, 0.7936, -0.0041],
        [1.9780, -2.4286, 0.4506],
        [0.0259, 0.7828, -0.8087],
    ] @ np.cbrt(to_cone @ linear)
    return np.degrees(np.arctan2(b, a))


@pytest.mark.parametrize("size", [2, 3, 4, 5, 7])
@pytest.mark.parametrize("shared", range(7))
def test_a_keystep_of_two_tasks_has_a_hue_of_its_own_in_both(size, shared):
    tasks = [tuple(range(7)), (shared, *range(7, 6 + size))]

    hues = [hue(colour) for colour in keystep_colours(20, tasks)]

    for task in tasks:
        apart = [
            abs((hues[one] - hues[other] + 180) % 360 - 180)
            for at, one in enumerate(task)
            for other in task[:at]
        ]
        assert min(apart) > 180 / len(task)  # half of what an even spread would give


@pytest.mark.parametrize(("tasks", "panels"), [(True, "task"), (False, "community of keysteps")])
def test_the_page_says_what_a_panel_is_and_what_is_left_out(tmp_path, tasks, panels):
    vocabulary = omelette()
    counts = np.zeros((4, 4), np.int64)
    counts[[0, 1, 2], [1, 2, 3]] = 5
    if not tasks:
        vocabulary = Vocabulary(vocabulary.keysteps)
    dataset, methods = kitchen(omelette())

    page = write(
        tmp_path / "report.html",
        dataset=dataset,
        methods=methods,
        graph=TaskGraph(vocabulary, csr_array(counts)),
    )

    assert f"One panel per {panels}; each keystep" in page
    assert "Shown are the most used" not in page


def test_rows_are_said_to_be_judged_only_where_a_method_was(tmp_path):
    with_methods = write(tmp_path / "report.html")
    without = write(tmp_path / "report.html", methods=[])

    assert "of them with a true keystep" in with_methods
    assert "of them with a true keystep" not in without


def test_one_method_alone_is_not_the_best(tmp_path):
    _, methods = kitchen(omelette())

    assert "<td class=best>" in write(tmp_path / "report.html")
    assert "<td class=best>" not in write(tmp_path / "report.html", methods=methods[:1])


def test_bars_and_certainty_are_embedded_by_segment(tmp_path):
    dataset, methods = kitchen(omelette())
    keysteps = np.array([0, 0, 1, 1, -1, 2])
    labels = Labels(
        "v1",
        keysteps,
        dataset.vocabulary,
        1 / 3,
        np.array([True, False, False, True, True, True]),
        np.array([0.5, 0.7, 0.9, 0.2, 0.0, 0.335]),
    )
    one = replace(dataset, videos=[Video("v1", 2.0)], truth={})
    measured = [replace(methods[0], labels={"v1": labels})]

    [video] = embedded(write(tmp_path / "report.html", dataset=one, methods=measured))["videos"]

    # Where an anchor of one keystep touches what was filled with the next, a bar ends.
    bars = [0, 0.33, 0, 1, 0.33, 0.67, 0, 0, 0.67, 1, 1, 0, 1, 1.33, 1, 1, 1.67, 2, 2, 1]
    assert video["tracks"][1] == bars
    assert video["sure"][1] == [0.67, 60, 1.33, 55, 1.67, 0, 2, 34]


def timeline(keysteps, *, duration, names=("boil", "pour", "stir"), **fields):
    vocabulary = Vocabulary(names)
    labels = Labels("v", np.array(keysteps), vocabulary, **fields)
    values = np.full((len(labels), 3), 0.123456)
    return Timeline(Video("v", duration), labels, make_scores(values, vocabulary=vocabulary))


def test_numbers_of_a_timeline_have_four_digits_and_probabilities_add_up():
    sure = {"tea": 0.61234, "soup": 0.2, "eggs": 0.1}
    confidence = np.full(2, 0.98763)

    content = json.loads(
        to_json(timeline([0, 0], duration=2.0, tasks=sure, confidence=confidence))
    )

    text = json.dumps(content)
    assert '"score": 0.1235' in text
    assert '"confidence": 0.9876' in text
    assert '"tea": 0.6123, "soup": 0.2, "eggs": 0.1, "none of them": 0.0877' in text


def test_the_five_most_probable_tasks_are_named():
    tasks = dict.fromkeys("abcdefg", 0.1)

    content = json.loads(to_json(timeline([0, 0], duration=2.0, tasks=tasks)))

    assert content["tasks"] == dict.fromkeys("abcde", 0.1) | {"none of them": 0.3}


def test_a_keystep_that_comes_again_after_a_pause_goes_on_with_its_chapter():
    rows = [0] * 3 + [1] * 12 + [-1] * 3 + [1] * 12 + [2] * 12

    first, second = to_youtube(timeline(rows, duration=42.0)).splitlines()

    assert (first[:9], first[-4:], second) == ("0:00 boil", "pour", "0:30 stir")


def test_the_most_travelled_task_comes_first():
    counts = np.zeros((9, 9), np.int64)
    counts[[0, 1, 4, 5], [1, 2, 5, 6]] = [1, 2, 3, 4]
    vocabulary = Vocabulary(NAMES, {"seldom": (0, 1, 2), "often": (4, 5, 6), "never": (7, 8)})

    picture = draw_graph(TaskGraph(vocabulary, csr_array(counts)))

    assert [panel.title for panel in picture.panels] == ["often", "seldom"]


def test_boxes_are_embedded_to_a_tenth_of_a_pixel(tmp_path):
    data = embedded(write(tmp_path / "report.html"))

    # Position in the list of keysteps, centre, size, lines.
    assert data["panels"][0]["nodes"][1] == [1, 71.0, 112.0, 94.0, 28.0, ["whisk eggs"]]
    assert data["panels"][0]["edges"][0][:4] == [0, 1, 1.0, 5]


def test_a_vocabulary_is_described_by_its_first_tasks():
    tasks = {f"task {n}": tuple(range(n, n + 5)) for n in range(5)} | {"short": (0, 1, 2, 3)}
    vocabulary = Vocabulary(tuple(f"k{n}" for n in range(11)), tasks)

    lines = describe_vocabulary(vocabulary, Problems(), output=None, as_json=False).splitlines()

    assert lines[0].startswith("11 keysteps of 6 tasks (29 steps; 8 keysteps in several tasks)")
    assert lines[1:] == [
        "  task 0: k0, k1, k2, k3, …",
        "  task 1: k1, k2, k3, k4, …",
        "  task 2: k2, k3, k4, k5, …",
        "  … and 3 tasks more",
    ]


@pytest.mark.parametrize(("sure", "shown"), [(0.5, True), (0.49, False)])
def test_a_task_is_named_from_even_odds_on(sure, shown):
    text = to_text(timeline([0, 0], duration=2.0, tasks={"make tea": sure}))

    assert ("make tea" in text) == shown


@pytest.mark.parametrize(("letters", "whole"), [(100, True), (101, False)])
def test_a_title_of_a_hundred_letters_fits(letters, whole):
    name = "x" * letters

    text = to_youtube(timeline([0] * 12, duration=12.0, names=(name, "pour", "stir")))

    assert (name in text) == whole
