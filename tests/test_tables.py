"""Tables and sentences for a terminal."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from reference import make_graph, make_traces
from stepgraph.core import Labels, Vocabulary
from stepgraph.errors import DataError
from stepgraph.evaluation.order import OrderCheck
from stepgraph.evaluation.report import Report
from stepgraph.export.answers import (
    VideoDeviations,
    describe_check,
    describe_deviations,
    describe_differences,
    describe_next,
    describe_order,
    describe_path,
    describe_relation,
    directional_pairs,
)
from stepgraph.export.answers import describe_graph as describe_graph_and_maps
from stepgraph.export.drawing import task_maps
from stepgraph.export.terminal import metrics_table
from stepgraph.graph.comparing import Deviation, Difference
from stepgraph.graph.order_statistics import END
from task_maps import NAMES as TEA
from task_maps import make_map

NAMES = Vocabulary(("boil", "pour", "stir", "drink"), {"tea": (0, 1)})
GRAPH = make_graph(
    [[5, 6, 2, 0], [1, 5, 3, 0], [0, 3, 5, 4], [0, 0, 0, 0]], NAMES, mined_on=("a", "b")
)
EMPTY = make_graph(np.zeros((4, 4), np.int64), NAMES)


def report(decoder, *values):
    return Report(decoder, 3, 12_345, 6_789, *values, graph_mined_on="2 other videos")


def test_metrics_are_percentages_one_line_a_decoder():
    table = metrics_table([report("argmax", 0.1, 0.2, 0.3, 0.4), report("path", 1, 0.5, 0, 0.05)])

    assert [line.split() for line in table.splitlines()[1:3]] == [
        ["argmax", "10.0", "20.0", "30.0", "40.0"],
        ["path", "100.0", "50.0", "0.0", "5.0"],
    ]


def test_columns_of_figures_end_together():
    table = metrics_table([report("argmax", 0.1, 0.2, 0.3, 0.4), report("path", 1, 0.5, 0, 0.05)])

    assert len({len(line) for line in table.splitlines()[:3]}) == 1


def test_table_says_what_was_measured():
    table = metrics_table([report("argmax", 0.1, 0.2, 0.3, 0.4)])

    assert table.endswith(
        "3 videos, 12,345 rows, 6,789 of them with a true keystep; measured over all "
        "rows.\nGraph mined on 2 other videos."
    )


def test_letters_of_all_scripts_are_written_as_they_are():
    graph = make_graph([[0, 3], [0, 0]], Vocabulary(("boil", "茶を注ぐ")))

    assert '"keystep": "茶を注ぐ"' in describe_next(graph, 0, top=1, as_json=True)


def describe_graph(graph, **options):
    maps = [one for one in task_maps(graph) if one.videos]
    return describe_graph_and_maps(graph, maps, **options)


def recognised_graph():
    names = Vocabulary(NAMES.keysteps, {"soup": (3,), "tea": (0, 1, 2)})
    rows = [[0] * 9 + [1] * 9 + [2] * 9, [0] * 9 + [2] * 9]
    tea = [Labels(f"{n}", np.array(one), names) for n, one in enumerate(rows)]
    soup = [Labels("c", np.array([3]), names)]
    traces = make_traces({"tea": tea, "soup": soup}, names)
    return replace(make_graph(GRAPH.counts.toarray(), names), traces=traces)


def test_tasks_are_shown_as_recognised_videos_do_them_the_most_frequent_first():
    text = describe_graph(recognised_graph(), top=1, as_json=False)

    title = "tea, estimated from 2 recognised videos:\n"
    table = text.partition(title)[2].splitlines()[:4]
    assert [line.split() for line in table[1:]] == [
        ["boil", "2", "21", "%", "9", "s", "pour", "46", "%"],
        ["pour", "1", "50", "%", "9", "s", "stir", "80", "%"],
        ["stir", "2", "79", "%", "9", "s", "(the", "end)", "85", "%"],
    ]
    assert "soup, estimated" not in text
    assert "… and 1 more task (--top, --task)" in text


def test_a_task_without_recognised_videos_is_shown_without_their_numbers():
    found = [one for one in task_maps(GRAPH) if one.task == "tea"]
    text = describe_graph_and_maps(GRAPH, found, top=1, as_json=False)

    assert "tea, estimated from neighbouring rows; no video of this task was recognised:\n" in text
    [line] = [line.split() for line in text.splitlines() if line.startswith("boil  ")][:1]
    assert line[:2] == ["boil", "–"]


def test_every_recognised_task_is_written_for_programs():
    content = json.loads(describe_graph(recognised_graph(), top=1, as_json=True))

    tea, soup = content["orders"]
    assert (tea["task"], tea["videos"], soup["task"], soup["videos"]) == ("tea", 2, "soup", 1)
    first, second, *_ = tea["keysteps"][0]["next"]
    assert [(one["second"], one["seen"]) for one in (first, second)] == [("pour", 1), ("stir", 1)]
    assert first["low"] < first["share"] < first["high"]
    assert [step["seconds"] for step in tea["keysteps"]] == [9.0] * 3
    assert soup["keysteps"][0]["next"][0]["second"] == "(the end)"


def test_what_follows_in_recognised_videos_is_told_first():
    text = describe_next(recognised_graph(), 0, top=1, as_json=False)

    lines = [line.split() for line in text.splitlines()[:3]]
    assert lines[0] == ["After", "'boil',", "in", "recognised", "videos:"]
    assert (lines[2][0], lines[2][-1]) == ("pour", "1")
    assert "After 'boil', in neighbouring rows:" in text


def test_what_was_recognised_is_said_where_no_neighbouring_rows_were_counted():
    graph = replace(recognised_graph(), counts=EMPTY.counts)

    text = describe_next(graph, 0, top=4, as_json=False)

    assert text.splitlines()[-1] == "After 'boil', in neighbouring rows: none was seen."


def test_a_relation_says_what_recognised_videos_do():
    text = describe_relation(recognised_graph(), 0, 2, as_json=False)
    content = json.loads(describe_relation(recognised_graph(), 0, 2, as_json=True))

    line, by_rows = text.splitlines()
    assert line.startswith("tea: 'boil' is done before 'stir' in 9")
    assert line.endswith("recognised in this order in 2, in the other in 0.")
    assert content["orders"][0]["tasks"] == ["tea"]
    assert by_rows.startswith("In neighbouring rows: directional: ")
    assert describe_relation(recognised_graph(), 0, 3, as_json=False).startswith(
        "No task with both has a recognised video."
    )


def test_an_order_is_told_with_the_places_it_may_have():
    [found] = [one for one in task_maps(recognised_graph()) if one.task == "tea"]
    places = [(1.0, 2.0), (1.0, 3.0), (3.0, 3.0)]

    needs = {"stir": ["boil", "pour"]}
    lines = describe_order(found, places, needs, as_json=False).splitlines()
    content = json.loads(describe_order(found, places, needs, as_json=True))

    assert lines[0] == "tea, estimated from 2 recognised videos:"
    assert [line.split() for line in lines[2:]] == [
        ["1", "boil", "1", "–", "2"],
        ["2", "pour", "1", "–", "3"],
        ["3", "stir", "3", "–", "3", "1,", "2"],
    ]
    assert content["order"][1] == {"keystep": "pour", "earliest": 1.0, "latest": 3.0, "needs": []}
    assert content["order"][2]["needs"] == ["boil", "pour"]


def test_differences_are_listed_so_many_as_asked_for():
    found = [Difference("tea", f"'a' before {n}", 0.9, 0.1) for n in range(3)]

    text = describe_differences(found, top=2, as_json=False)

    assert [line.split()[-4:] for line in text.splitlines()[1:3]] == [["90", "%", "10", "%"]] * 2
    assert len(text.splitlines()) == 4
    assert text.endswith("… and 1 more (--top)")
    assert "more" not in describe_differences(found, top=3, as_json=False)
    assert len(json.loads(describe_differences(found, top=2, as_json=True))["differences"]) == 2
    assert describe_differences([], top=2, as_json=False).endswith("no significant difference.")


def test_departures_are_told_video_by_video():
    odd = Deviation(63.0, "order", "'pour' before 'boil'", "never so")
    told = [VideoDeviations("monday", "tea", [odd]), VideoDeviations("friday", "tea", [])]

    text = describe_deviations(told, as_json=False)
    content = json.loads(describe_deviations(told, as_json=True))

    assert text.splitlines()[0] == "monday (tea):"
    assert text.splitlines()[2].split() == ["1:03", "'pour'", "before", "'boil'", "never", "so"]
    assert text.endswith("friday does not deviate from the norm of tea.")
    assert content["videos"][0]["deviations"][0]["kind"] == "order"
    assert describe_deviations([], as_json=False) == "No video shows a task of the graph."


def test_an_order_is_shown_beside_the_truth_with_the_mean_at_the_end():
    tea = OrderCheck("tea", 12, 6, 1.0, 0.75, 0.8, 0.9, 0.3, 0.95, 0.5, math.nan)
    mean = tea._replace(task="mean of the tasks", strongest=math.nan)

    lines = [line.split() for line in describe_check([tea, mean], as_json=False).splitlines()]
    soup = tea._replace(task="soup")
    content = json.loads(describe_check([tea, soup, mean], as_json=True))

    assert lines[0][:2] == ["videos", "pairs"]
    tail = ["100.0", "75.0", "80.0", "90.0", "30.0", "95.0", "50.0", "–"]
    assert lines[1] == ["tea", "12", "6", *tail]
    assert lines[2][-5:] == ["90.0", "–", "95.0", "50.0", "–"]
    assert [one["task"] for one in content["tasks"]] == ["tea", "soup"]
    assert (content["tasks"][0]["strongest"], content["tasks"][0]["next_held"]) == (0.3, None)
    assert (content["mean"]["task"], content["mean"]["strongest"]) == ("mean of the tasks", None)


def test_an_order_that_many_tasks_agree_about_names_three_of_them():
    tasks = ("tea", "soup", "milk", "cocoa")
    for count, ending in ((3, "tea, soup, milk: 'boil'"), (4, "tea, soup, milk and 1 more task")):
        names = Vocabulary(NAMES.keysteps, dict.fromkeys(tasks[:count], (0, 1)))
        videos = {one: [Labels(one, np.repeat([0, 1], 9), names)] for one in names.tasks}
        graph = make_graph(GRAPH.counts.toarray(), names, traces=make_traces(videos, names))

        assert describe_relation(graph, 0, 1, as_json=False).startswith(ending)


def test_what_comes_next_is_named_up_to_four_times_and_so_are_its_numbers():
    many = make_map([(0, 1, 40), (0, 2, 30), (0, 3, 20), (0, 4, 6), (0, END, 4)])
    content = json.loads(describe_graph_and_maps(EMPTY, [many], top=1, as_json=True))
    text = describe_graph_and_maps(EMPTY, [many] * 3, top=2, as_json=False)

    [order] = content["orders"]
    assert [one["second"] for one in order["keysteps"][0]["next"]] == list(TEA[1:])
    assert order["keysteps"][1]["next"] == []
    [first, second, *_] = [line.split() for line in text.splitlines()[4:]]
    assert first[-4:] == ["add", "leaves", "40", "%"]
    assert second[-4:] == ["20", "%", "20", "s"]
    assert "… and 1 more task (" in text
    assert "more task" not in describe_graph_and_maps(EMPTY, [many], top=1, as_json=False)


def test_so_many_next_keysteps_are_told_as_asked_for():
    said = describe_next(GRAPH, 1, top=1, as_json=False).splitlines()

    assert [line.split()[0] for line in said] == ["After", "next", "stir"]
    recognised = json.loads(describe_next(recognised_graph(), 0, top=2, as_json=True))
    assert [one["keystep"] for one in recognised["recognised"]] == ["pour", "stir"]
    last = json.loads(describe_next(recognised_graph(), 3, top=1, as_json=True))
    assert [one["keystep"] for one in last["recognised"]] == ["(the end)"]


def test_undefined_metrics_are_dashes():
    table = metrics_table([report("argmax", *[math.nan] * 4)])

    assert table.splitlines()[1].split() == ["argmax", "–", "–", "–", "–"]


def test_graph_is_described_by_size_and_directions():
    lines = describe_graph(GRAPH, top=10, as_json=False).splitlines()

    assert lines[0] == ("4 keysteps of 1 tasks, 9 transitions between them, mined from 2 videos.")
    # Of "boil" and "stir", which no task shares, two transitions to none are no direction.
    assert [line.split() for line in lines[3:6]] == [
        ["first", "then", "there", "back"],
        ["boil", "pour", "6", "1"],
        ["stir", "drink", "4", "0"],
    ]
    assert lines[7].startswith("Ties across tasks: 42 % of 19 transitions between different")
    assert lines[10:] == ["No two tasks are connected 1.5 times as often as by chance."]


def tied_graph():
    names = Vocabulary(tuple("abcd"), {f"task {name}": (at,) for at, name in enumerate("abcd")})
    counts = 5 * (1 - np.eye(4, dtype=np.int64))
    counts[0, 2], counts[1, 3] = 90, 80
    return make_graph(counts, names)


def test_tasks_that_are_joined_are_told_with_the_keysteps_that_join_them():
    graph = tied_graph()
    content = json.loads(describe_graph(graph, top=1, as_json=True))["ties"]

    lines = describe_graph(graph, top=10, as_json=False).splitlines()[-3:]
    assert [line.split() for line in lines[1:]] == [
        [*("task", "b", "task", "d"), "2.7", *("b", "→", "d")],
        [*("task", "a", "task", "c"), "2.3", *("a", "→", "c")],
    ]
    [tie] = content["tasks"]
    assert (content["changes"], content["across"]) == (220, 220)
    assert (tie["first"], tie["second"], tie["seen"]) == ("task b", "task d", 85)
    assert tie["pairs"] == [["b", "d", 80], ["d", "b", 5]]


def test_a_graph_of_one_task_has_no_ties_to_tell():
    graph = make_graph(GRAPH.counts.toarray(), Vocabulary(NAMES.keysteps))

    text = describe_graph(graph, top=10, as_json=False)

    assert "Ties across tasks" not in text
    assert text.splitlines()[-1].split() == ["boil", "stir", "2", "0"]


def test_strongest_directions_come_first_and_are_limited():
    pairs = directional_pairs(GRAPH, 2)

    assert [(pair.first, pair.second) for pair in pairs] == [(0, 1), (2, 3)]


def test_description_of_a_graph_as_json():
    content = json.loads(describe_graph(GRAPH, top=1, as_json=True))

    assert (content["keysteps"], content["transitions"], content["videos"]) == (4, 9, 2)
    [pair] = content["directional"]
    assert (pair["first"], pair["second"], pair["forward"]) == ("boil", "pour", 6)


def test_an_empty_graph_has_no_directions():
    text = describe_graph(EMPTY, top=10, as_json=False)

    assert "0 transitions" in text
    assert text.endswith("No pair of keysteps is directional.")
    assert "Ties" not in text


def test_next_keysteps_have_their_chance_among_changes():
    lines = describe_next(GRAPH, 0, top=4, as_json=False).splitlines()

    assert lines[0] == "After 'boil', in neighbouring rows:"
    assert [line.split() for line in lines[1:]] == [
        ["next", "proportion", "seen"],
        ["pour", "75", "%", "6"],
        ["stir", "25", "%", "2"],
    ]


def test_chance_is_among_all_changes_even_when_few_are_listed():
    [only] = json.loads(describe_next(GRAPH, 0, top=1, as_json=True))["next"]

    assert only == {
        "keystep": "pour",
        "proportion": 0.75,
        "probability": pytest.approx(6 / 13),
        "count": 6,
    }


@pytest.mark.parametrize("graph", [GRAPH, EMPTY])
def test_nothing_follows_the_last_keystep(graph):
    assert describe_next(graph, 3, top=4, as_json=False) == ("No keystep was seen after 'drink'.")
    assert json.loads(describe_next(graph, 3, top=4, as_json=True))["next"] == []


def test_names_with_figures_in_them_stay_on_the_left():
    names = Vocabulary(("crack them", "whisk them well", "add 2 eggs"))
    graph = make_graph([[0, 2, 1], [0, 0, 0], [0, 0, 0]], names)

    lines = describe_next(graph, 0, top=4, as_json=False).splitlines()

    assert [line[0] for line in lines[1:]] == ["n", "w", "a"]


def test_path_is_drawn_with_arrows():
    assert describe_path(GRAPH, 0, 3, as_json=False) in (
        "boil → stir → drink",
        "boil → pour → stir → drink",
    )


def test_path_as_json_has_its_probability():
    content = json.loads(describe_path(GRAPH, 2, 3, as_json=True))

    assert content == {"path": ["stir", "drink"], "probability": pytest.approx(4 / 12)}


def test_missing_path_is_said_in_words():
    assert describe_path(GRAPH, 3, 0, as_json=False) == "No path leads from 'drink' to 'boil'."
    assert json.loads(describe_path(GRAPH, 3, 0, as_json=True)) == {
        "path": None,
        "probability": None,
    }


@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        (0, 1, "directional: 'boil' comes before 'pour' ('boil' → 'pour' was seen 6 times"),
        (1, 0, "directional: 'boil' comes before 'pour' ('pour' → 'boil' was seen 1 times"),
        (1, 2, "connected: either may come first ('pour' → 'stir' was seen 3 times, the reverse"),
        (0, 3, "unconnected: 'boil' and 'drink' never follow one another."),
    ],
)
def test_relation_is_said_in_a_sentence(first, second, sentence):
    assert describe_relation(GRAPH, first, second, as_json=False).startswith(sentence)


def test_relation_as_json_names_both():
    content = json.loads(describe_relation(GRAPH, 0, 1, as_json=True))

    assert (content["kind"], content["first"], content["second"]) == (
        "directional",
        "boil",
        "pour",
    )


def test_relation_of_a_keystep_with_itself_is_refused():
    with pytest.raises(DataError, match="between two different keysteps, got 'boil' twice"):
        describe_relation(GRAPH, 0, 0, as_json=False)
