"""What the terminal shows of checks, vocabularies, data sets and reports, line by line."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np

import stepgraph as sg
from reference import make_graph
from stepgraph.core import Vocabulary
from stepgraph.datasets import FoundDataset
from stepgraph.evaluation.order import OrderCheck
from stepgraph.export.answers import describe_check, describe_path, directional_pairs
from stepgraph.export.terminal import describe_survey, describe_vocabulary, metrics_table
from stepgraph.problems import Problems

CHECKED = [
    OrderCheck("tea", 3, 4, 0.75, 0.5, 0.625, 1.0, 0.5, 0.25, 0.9, 0.85),
    OrderCheck("soup", 1, 0, math.nan, 0.25, 0.5, 0.125, 1.0, 0.5, math.nan, 0.95),
    OrderCheck("mean", 4, 4, 0.75, 0.375, 0.5625, 0.5625, 0.75, 0.375, 0.9, 0.9),
]


def test_a_check_is_a_line_a_task_in_percent():
    lines = [line.split() for line in describe_check(CHECKED, as_json=False).splitlines()]

    heads = "videos pairs right direction next best possible covered strongest precision"
    assert lines[0] == [*heads.split(), *["before", "in", "interval", "next", "in", "interval"]]
    assert lines[1] == [
        "tea",
        "3",
        "4",
        "75.0",
        *["50.0", "62.5", "100.0", "50.0", "25.0", "90.0", "85.0"],
    ]
    assert lines[2] == [
        "soup",
        "1",
        "0",
        "–",
        *["25.0", "50.0", "12.5", "100.0", "50.0", "–", "95.0"],
    ]
    assert len(lines) == 4


def test_a_check_as_json_has_the_mean_apart_and_null_for_what_is_undefined():
    found = json.loads(describe_check(CHECKED, as_json=True))

    assert [one["task"] for one in found["tasks"]] == ["tea", "soup"]
    assert found["mean"] == CHECKED[2]._asdict()
    assert found["tasks"][1]["right_directions"] is None
    assert found["tasks"][1]["covered"] == 0.125


def test_a_survey_is_a_paragraph_a_data_set():
    found = [
        FoundDataset(
            "CrossTask", "crosstask:a", {"videos": 2750, "true_labels": 3}, ("features", "all")
        ),
        FoundDataset("COIN", "coin:b", {"videos": 1}, ()),
    ]

    assert describe_survey(found) == (
        "CrossTask (crosstask:a)\n  2,750 videos, 3 true labels\n  missing: features\n"
        "  missing: all\n\nCOIN (coin:b)\n  1 videos"
    )


def shown(tasks, problems=None, output=None):
    vocabulary = Vocabulary(("a", "b"), {f"{number}": (0,) for number in range(tasks)})
    text = describe_vocabulary(vocabulary, problems or Problems(), output=output, as_json=False)
    return text.splitlines()[1:]


def test_three_tasks_of_a_vocabulary_are_shown_and_the_others_counted():
    assert shown(3) == ["  0: a", "  1: a", "  2: a"]
    assert shown(4)[3:] == ["  … and 1 tasks more"]


def test_a_vocabulary_says_what_was_wrong_and_where_it_is():
    problems = Problems()
    problems.add("steps.txt:3", "line without a name", "must have one")

    assert shown(0, problems, Path("vocabulary.json")) == [
        f"1 problems: {problems.summary()}",
        "Saved as vocabulary.json",
    ]


def test_what_was_measured_is_that_of_the_first_report():
    labels = sg.Labels("v", np.array([0, 1]), Vocabulary(("a", "b")))
    report = sg.evaluate([labels], {"v": labels}, decoder="one", graph_mined_on="itself")

    table = metrics_table([report, replace(report, decoder="other", videos=9)])

    assert table.splitlines()[-2].startswith("1 videos, 2 rows, 2 of them")


def test_two_sightings_make_a_pair_directional_and_equal_ones_do_not():
    graph = make_graph([[0, 2, 0], [0, 0, 4], [0, 4, 0]])

    assert [(one.first, one.second) for one in directional_pairs(graph, 9)] == [(0, 1)]


def test_json_is_indented_by_one_and_keeps_its_letters():
    graph = make_graph([[0, 1], [0, 0]], Vocabulary(("é", "b")))

    assert '\n "' in (text := describe_path(graph, 0, 1, as_json=True))
    assert '\n  "é"' in text
