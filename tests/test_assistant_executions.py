"""Executions as data: the layout, what is wrong with it, and other sources read as executions."""

import json
from dataclasses import replace

import pytest

from stepgraph.assistant import Execution, open_executions
from stepgraph.assistant.executions import executions_of_graph, read_executions, write_executions
from stepgraph.errors import ConfigError, DataError
from stepgraph.graph.saving import save_graph
from task_maps import NAMES, tea_graph

HEADER = "execution,task,split,step,mistake\n"
TEA = HEADER + "a,tea,train,boil,0\na,tea,train,pour,0\nb,tea,test,pour,1\n"


def folder_of(place, text=TEA, **graphs):
    (place / "executions.csv").write_text(text)
    for task, graph in graphs.items():
        (place / "graphs").mkdir(exist_ok=True)
        text = graph if isinstance(graph, str) else json.dumps(graph)
        (place / "graphs" / f"{task}.json").write_text(text)
    return place


def test_rows_become_executions_in_order(tmp_path):
    found = open_executions(f"executions:{folder_of(tmp_path)}")

    assert found.done == (
        Execution("a", "tea", "train", ("boil", "pour"), (False, False)),
        Execution("b", "tea", "test", ("pour",), (True,)),
    )
    assert [one.is_correct for one in found.done] == [True, False]
    assert [one.id for one in found.of_split("test")] == ["b"]


def test_splits_and_tasks_may_number_their_executions_alike(tmp_path):
    text = HEADER + "1,tea,train,boil,\n1,tea,test,pour,\n1,soup,test,stir,\n1,tea,Training,sip,\n"

    found = read_executions(folder_of(tmp_path, text))

    assert [(one.task, one.split, one.steps) for one in found.done] == [
        ("tea", "train", ("boil", "sip")),
        ("tea", "test", ("pour",)),
        ("soup", "test", ("stir",)),
    ]


def test_what_is_written_is_read_again(tmp_path):
    done = (
        Execution("=a", "tea, hot", "train", ("-boil", 'say "now"'), (False, True)),
        Execution("idle", "tea, hot", "test", ()),
    )

    write_executions(done, tmp_path)

    found = read_executions(tmp_path).done
    assert found[0] == done[0]
    assert found[1].steps == ()


def test_a_true_order_is_read_by_the_name_of_its_task(tmp_path):
    graph = {"steps": ["START", "Boil", "pour", "end"]}
    graph["edges"] = [["START", "Boil"], ["Boil", "pour"], ["pour", "end"]]

    found = read_executions(folder_of(tmp_path, Tea=graph))

    assert found.graphs["tea"] == {("START", "boil"), ("boil", "pour"), ("pour", "END")}


def test_names_that_differ_in_marks_alone_stay_apart(tmp_path):
    text = HEADER + "a,tea,,stir,0\na,tea,,stir!,0\n"

    found = read_executions(
        folder_of(tmp_path, text, tea={"steps": ["stir", "stir!"], "edges": [["stir", "stir!"]]})
    )

    assert found.graphs["tea"] == {("stir", "stir!")}


def test_true_orders_that_match_nothing_are_noted(tmp_path):
    strange = {"steps": ["boil", "poor"], "edges": [["START", "boil"], ["boil", "poor"]]}
    strange["steps"].append("START")

    found = read_executions(folder_of(tmp_path, tea=strange, coffee=strange))

    assert {*found.graphs} == {"tea"}
    assert [str(one).replace(str(tmp_path), "") for one in found.problems.found] == [
        "/graphs/tea.json: a true step must occur in an execution of its task, got 'poor'",
        "/graphs/coffee.json: a true order must be named after a task of the executions, got "
        "'coffee'; it is left out",
    ]


def test_steps_may_be_numbered(tmp_path):
    graph = {"steps": {"0": "START", "1": "boil", "2": "END"}, "edges": [[0, 1], [1, 2]]}

    found = read_executions(folder_of(tmp_path, tea=graph))

    assert found.graphs["tea"] == {("START", "boil"), ("boil", "END")}


def test_a_cycle_is_refused(tmp_path):
    graph = {"steps": ["boil", "pour"], "edges": [["boil", "pour"], ["pour", "boil"]]}

    with pytest.raises(DataError, match=r"tea\.json: edges must have no cycle, got .*→"):
        read_executions(folder_of(tmp_path, tea=graph))


@pytest.mark.parametrize(
    "graph",
    [
        {"steps": ["boil"]},
        {"steps": 3, "edges": []},
        {"steps": ["boil"], "edges": [["boil", "fly"]]},
        {"steps": ["boil"], "edges": [["boil"]]},
        {"steps": [["boil"]], "edges": []},
        [1, 2],
    ],
)
def test_a_graph_of_another_shape_is_refused(tmp_path, graph):
    with pytest.raises(DataError, match=r"tea\.json: must hold 'steps', a list of names"):
        read_executions(folder_of(tmp_path, tea=graph))


def test_a_damaged_graph_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"tea\.json"):
        read_executions(folder_of(tmp_path, tea='{"steps": ['))


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "execution,task\na,tea\n"])
def test_missing_columns_are_named(tmp_path, text):
    with pytest.raises(DataError, match=r"executions\.csv:1: columns must be execution, task"):
        read_executions(folder_of(tmp_path, text))


def test_no_execution_is_an_error(tmp_path):
    with pytest.raises(DataError, match="must list executions, got none"):
        read_executions(folder_of(tmp_path, HEADER))


def test_bad_rows_are_noted_and_stop_no_other(tmp_path):
    text = TEA + "c,tea,test\n,tea,test,boil,0\nd,tea,test,boil,perhaps\n"

    found = read_executions(folder_of(tmp_path, text))

    assert [one.id for one in found.done] == ["a", "b"]
    assert dict(found.problems.counts) == {
        "wrong column count": 1,
        "row without execution": 1,
        "bad mistake": 1,
    }
    with pytest.raises(DataError, match="must have 5 columns, got 3"):
        read_executions(tmp_path, strict=True)


def test_a_file_that_is_no_text_is_an_error(tmp_path):
    (tmp_path / "executions.csv").write_bytes(b"\xff\xfe\x00\x00execution\x00")

    with pytest.raises(DataError, match=r"executions\.csv"):
        read_executions(tmp_path)


def test_what_is_not_there_is_an_error(tmp_path):
    with pytest.raises(DataError, match="nothing"):
        open_executions(f"executions:{tmp_path / 'nothing'}")
    with pytest.raises(ConfigError, match="must name a path after the colon"):
        open_executions("executions:")


def test_only_columns_that_are_needed_must_be_there(tmp_path):
    [one] = read_executions(folder_of(tmp_path, "step,execution\nboil,a\npour,a\n")).done

    assert one == Execution("a", "", "", ("boil", "pour"), (False, False))


def test_a_mined_graph_holds_executions(tmp_path):
    save_graph(tea_graph(), tmp_path / "graph.json")

    found = open_executions(tmp_path / "graph.json")

    assert {one.task for one in found.done} == {"Make tea"}
    assert found.done[0].steps[0] == "boil water"
    assert [one.id for one in found.done if not one.written] == ["v0", "v1", "v2"]


@pytest.mark.parametrize(("believed", "executions"), [(1.0, 2), (0.5, 1), (0.0, 0)])
def test_the_listed_order_counts_as_half_as_many_executions(believed, executions):
    graph = tea_graph()
    graph = replace(graph, traces=replace(graph.traces, order=believed))

    found = [one for one in executions_of_graph(graph, "graph.json").done if one.written]

    assert len(found) == executions
    assert all(one.steps == NAMES for one in found)


def test_a_graph_without_videos_cannot_be_asked():
    with pytest.raises(ConfigError, match="must hold recognised videos for this question"):
        executions_of_graph(tea_graph(statistics=False), "graph.json")


def test_a_source_without_truth_is_refused(tmp_path):
    (tmp_path / "tea.vtt").write_text("WEBVTT\n\n00:00.000 --> 00:02.000\nboil water\n")

    with pytest.raises(DataError, match="must have a truth or be executions:PATH"):
        open_executions(str(tmp_path))


@pytest.mark.data
@pytest.mark.parametrize("name", ["crosstask", "coin"])
def test_published_truth_is_read_with_its_splits(real_data, name):
    found = open_executions(f"{name}:{real_data / name}")

    assert len(found.of_split("train")) > 2 * len(found.of_split("test")) > 500
    assert len(found.done) == len(found.of_split("train")) + len(found.of_split("test"))
    assert not {one.id for one in found.of_split("train")} & {
        one.id for one in found.of_split("test")
    }
    assert all(one.task and one.steps for one in found.done)
