"""A picture and a page that stay what they were: every place, colour and number of one example."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from reference import make_scores
from stepgraph.core import Dataset, Labels, Timeline, Video, Vocabulary
from stepgraph.export.report import (
    MeasuredMethod,
    _bars,
    _hex,
    _next_line,
    _video,
    keystep_colors,
)
from stepgraph.export.terminal import describe_vocabulary
from stepgraph.export.timeline import to_json, to_text, to_youtube
from stepgraph.graph import TaskGraph
from stepgraph.graph.maps import END, START
from stepgraph.problems import Problems
from task_maps import make_map
from test_export_report import embedded, kitchen, omelette, write


def test_colours_stay_what_they_were():
    assert keystep_colors(8, [(0, 1, 2), (2, 3, 4, 0, 5)]) == [
        *("#dd7c9b", "#778b27", "#68c5ff", "#77b061"),
        *("#7575c9", "#f1a95e", "#aaa239", "#4fa7e5"),
    ]


def test_light_and_dark_are_told_as_screens_have_them():
    assert [_hex(lightness, 0.0, 0.0) for lightness in (0.0, 0.1, 0.5, 1.0)] == [
        *("#000000", "#030303", "#636363", "#ffffff")
    ]


def test_four_are_named_of_what_comes_next():
    arrows = [(0, other, 9 - other) for other in (1, 2, 3, 4, END)]
    found = make_map([(START, 0, 9), *arrows])

    told = _next_line(found, found.steps[0])

    assert told.count("<li ") == 4
    assert "stir" in told
    assert "pour" not in told


def test_a_bar_is_as_long_as_what_is_said_of_the_video_in_seconds():
    vocabulary = omelette()
    labels = Labels("v", np.zeros(50, np.int64), vocabulary, hop=0.5)
    dataset = Dataset("kitchen", [Video("v", 20.0)], vocabulary)

    shown = _video(dataset.videos[0], dataset, [MeasuredMethod("m", None, {"v": labels})])

    assert shown["duration"] == 25


def hue(color):
    """Angle of a colour in OKLab, by Ottosson's matrices the other way round."""
    encoded = np.array([int(color[at : at + 2], 16) for at in (1, 3, 5)]) / 255
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

    hues = [hue(color) for color in keystep_colors(20, tasks)]

    for task in tasks:
        apart = [
            abs((hues[one] - hues[other] + 180) % 360 - 180)
            for at, one in enumerate(task)
            for other in task[:at]
        ]
        assert min(apart) > 180 / len(task)  # half of what an even spread would give


def test_the_page_says_which_tasks_are_left_out(tmp_path):
    names = tuple(f"k{n}" for n in range(320))
    tasks = {f"task {n}": tuple(range(20 * n, 20 * n + 20)) for n in range(16)}
    counts = csr_array(np.eye(320, k=1, dtype=np.int64))
    dataset, methods = kitchen(omelette())
    content = {"dataset": dataset, "methods": methods}

    page = write(tmp_path / "r.html", graph=TaskGraph(Vocabulary(names, tasks), counts), **content)

    assert page.count("<figure class=panel>") == 15
    assert "Shown: the 15 of 16 tasks with the most videos" in page
    assert "Shown: the" not in write(tmp_path / "r.html")


def test_a_task_too_large_for_a_page_is_drawn_alone(tmp_path):
    names = tuple(f"k{n}" for n in range(602))
    tasks = {"one": tuple(range(301)), "other": tuple(range(301, 602))}
    graph = TaskGraph(Vocabulary(names, tasks), csr_array(np.eye(602, k=1, dtype=np.int64)))
    dataset, methods = kitchen(omelette())

    page = write(tmp_path / "r.html", graph=graph, dataset=dataset, methods=methods)

    assert page.count("<figure class=panel>") == 1


def test_a_video_lasts_as_long_as_anything_that_is_known_of_it(tmp_path):
    dataset, methods = kitchen(omelette())
    videos = [Video("v1", 30.0), Video("quiet", 7.004), Video("unknown", 3.0)]

    page = write(tmp_path / "r.html", dataset=replace(dataset, videos=videos), methods=methods[:1])

    shown = {one["id"]: one for one in embedded(page)["videos"]}
    assert [one["duration"] for one in shown.values()] == [30, 20, 3]
    assert shown["unknown"]["tracks"] == [None, None]
    assert "<bdi>3 videos</bdi>" in page
    assert "<bdi>40 rows, 8 of them" in page


def test_the_heat_map_is_there_where_there_are_tasks_to_compare(tmp_path):
    names = ("boil", "pour", "stir")
    graph = TaskGraph(
        Vocabulary(names, {"tea": (0, 1), "soup": (0, 2)}),
        csr_array(np.array([[0, 1, 1], [0, 0, 0], [0, 0, 0]])),
    )

    assert "Which task uses which keystep" in write(tmp_path / "r.html", graph=graph)
    assert "Which task uses which keystep" not in write(tmp_path / "r.html")


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


def test_a_bar_ends_where_an_anchor_touches_what_was_filled_with_the_next():
    labels = Labels("v1", np.array([0, 1]), omelette(), 1.0, np.array([True, False]))

    assert _bars(labels) == [0, 1, 0, 1, 1, 2, 1, 0]


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


def test_a_hue_that_one_of_a_hundred_has_already_is_given_to_no_other():
    colors = keystep_colors(100, [(0,), (*range(1, 100), 0)])

    # The hue nearest to that of the first keystep, in any of the three lightnesses.
    nearest = {_hex(light, 0.125, 137.5 + 3.6 * 62) for light in (0.70, 0.60, 0.79)}
    assert not nearest & {*colors}
