"""The assistant as a user meets it: questions, plans, measured figures, and bad input."""

import json

import pytest

from stepgraph.assistant import Execution, learn_order, open_executions
from stepgraph.assistant.executions import write_executions
from stepgraph.cli import main
from stepgraph.core import Chapter, Result, Video
from stepgraph.export.formats import write_results
from stepgraph.graph.saving import save_graph
from task_maps import tea_graph

GRAPH = {
    "steps": ["START", "boil", "leaves", "pour", "END"],
    "edges": [
        *(["START", "boil"], ["START", "leaves"], ["boil", "pour"], ["leaves", "pour"]),
        ["pour", "END"],
    ],
}


@pytest.fixture
def source(tmp_path):
    ways = [("boil", "leaves", "pour"), ("leaves", "boil", "pour")]
    done = [Execution(f"e{n}", "tea", "train", ways[n % 2]) for n in range(8)]
    done += [
        Execution("right", "tea", "test", ways[0]),
        Execution("early", "tea", "test", ("pour", "boil"), (True, False)),
        Execution("strange", "tea", "test", ("boil", "juggle", "pour"), (False, True, False)),
    ]
    write_executions(done, tmp_path)
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "tea.json").write_text(json.dumps(GRAPH))
    return f"executions:{tmp_path}"


def answer(capsys, *words):
    assert main([*words]) == 0
    return json.loads(capsys.readouterr().out)


def refusal(capsys, *words):
    assert main([*words]) == 1
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    return text


def test_next_missing_mistakes_and_plans_are_asked(source, capsys):
    done = ("--done", "boil", "--done", "pour", "--json")

    following = answer(capsys, "ask", "next", source, "--done", "boil", "--json")
    missing = answer(capsys, "ask", "missing", source, *done)
    mistakes = answer(capsys, "ask", "mistakes", source, *done)
    ways = ("--from", "boil", "--to", "pour", "--json")
    plans = answer(capsys, "ask", "plan", source, *ways)

    assert following["answers"][0]["step"] == "leaves"
    assert "boil" not in {one["step"] for one in following["answers"]}
    assert [one["step"] for one in missing["answers"]] == ["leaves"]
    assert [(one["step"], one["kind"]) for one in mistakes["answers"]] == [("pour", "too early")]
    assert "executions 'leaves' comes before 'pour'" in mistakes["answers"][0]["why"]
    assert plans["plans"][0]["keysteps"] == ["boil", "pour"]
    assert answer(capsys, "plan", source, *ways) == plans
    longer = answer(capsys, "plan", source, *ways, "--steps", "3")
    assert longer["plans"][0]["keysteps"] == ["boil", "leaves", "pour"]


def test_a_step_that_nobody_knows_is_named(source, capsys):
    assert main(["ask", "next", source, "--done", "boils"]) == 0

    told = capsys.readouterr()
    assert "'boils' must be a step of the executions, so it is ignored; the nearest is 'boil'" in (
        told.err
    )
    assert "next: boil" in told.out


def test_answers_are_told_in_words(source, capsys):
    assert main(["ask", "mistakes", source, "--done", "pour"]) == 0
    assert "too early: pour" in capsys.readouterr().out
    assert main(["ask", "mistakes", source, "--done", "boil"]) == 0
    assert capsys.readouterr().out.strip() == "no mistake"


def test_a_mined_graph_is_asked_alike(tmp_path, capsys):
    save_graph(tea_graph(), tmp_path / "graph.json")

    found = answer(
        capsys, "ask", "next", str(tmp_path / "graph.json"), "--done", "boil water", "--json"
    )

    assert found["answers"][0]["step"] == "add leaves"


def test_the_order_of_a_graph_is_the_one_that_is_learned(tmp_path, capsys):
    save_graph(tea_graph(), tmp_path / "graph.json")
    runs = [one.steps for one in open_executions(tmp_path / "graph.json").done]

    found = answer(capsys, "graph", "order", str(tmp_path / "graph.json"), "Make tea", "--json")

    order = learn_order(runs, noise=0.1)
    assert order.edges
    for one in found["order"]:
        assert one["needs"] == order.prerequisites(one["keystep"])


def test_orders_are_measured(source, capsys):
    found = answer(capsys, "reproduce", "order", source, "--format", "json")

    assert {"precision", "recall", "f1"} <= {*found}
    assert found["f1"] == 100
    row = found["tasks"]["tea"]
    assert {"precision", "recall", "f1"} <= {*row}
    assert row["executions"] == 9


def test_mistakes_are_measured(source, capsys):
    found = answer(capsys, "reproduce", "mistakes", source, "--format", "json")

    # boil, leaves, pour; pour; boil, juggle: what comes after a mistake does not count.
    assert found["segments"] == 6
    assert found["mistakes"] == 2
    assert found["mistake_f1"] == found["correct_f1"] == found["macro_f1"] == 100
    assert found["average_precision"] == 100


def test_next_steps_and_plans_are_measured(source, capsys):
    following = answer(capsys, "reproduce", "next", source, "--format", "json")
    plans = answer(capsys, "reproduce", "planning", source, "--format", "json")

    assert following["@5"] == 100
    assert plans["tasks"]["T3"]["success"] == 100
    assert plans["tasks"]["T6"]["success"] is None


def test_figures_are_also_printed_as_text_and_a_table(source, capsys):
    assert main(["reproduce", "order", source]) == 0
    assert "tea: precision 100.0" in capsys.readouterr().out
    assert main(["reproduce", "order", source, "--format", "markdown"]) == 0
    assert "| tea | 100.0 |" in capsys.readouterr().out


def test_bad_input_is_told_in_one_line(source, tmp_path, capsys):
    assert "no such file" in refusal(capsys, "ask", "next", f"executions:{tmp_path / 'no'}")
    assert "got 'coffee'" in refusal(capsys, "ask", "next", source, "--task", "coffee")
    words = ("plan", source, "--from", "boil", "--to", "fly")
    assert "fly" in refusal(capsys, *words)
    for steps in ("0", "1"):
        words = ("plan", source, "--from", "boil", "--to", "pour", "--steps", steps)
        assert "steps must be at least 2, since both ends count" in refusal(capsys, *words)
    (tmp_path / "graphs" / "tea.json").write_text('{"steps": ["a"], "edges": [["a", "a"]]}')
    assert "no cycle" in refusal(capsys, "reproduce", "order", source)


@pytest.mark.parametrize(
    "steps", [(), ("boil",), ("fly",), ("fly", "swim"), ("boil", "fly"), ("pour",) * 5]
)
def test_an_odd_execution_spoils_no_other(source, tmp_path, capsys, steps):
    done = list(open_executions(source).done)
    odd = [Execution(f"odd {split}", "tea", split, steps) for split in ("train", "test")]
    write_executions([*done, *odd, Execution("odd", "another task", "test", steps)], tmp_path)
    asked = [word for step in steps or ("",) for word in ("--done", step)]

    for what in ("next", "missing", "mistakes"):
        assert main(["ask", what, source, *asked, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["answers"] is not None
    for what in ("order", "mistakes", "next", "planning"):
        found = answer(capsys, "reproduce", what, source, "--format", "json")
        assert found["name"] == what


def test_executions_of_one_step_alone_teach_nothing(tmp_path, capsys):
    write_executions([Execution("a", "tea", "train", ("boil",))], tmp_path)

    told = refusal(capsys, "ask", "next", f"executions:{tmp_path}", "--done", "boil")
    assert "executions must show at least 2 steps, got 1" in told


def test_steps_of_a_true_order_that_nobody_does_are_missed(source, tmp_path, capsys):
    more = {"steps": [*GRAPH["steps"], "rest"], "edges": [*GRAPH["edges"][:-1]]}
    more["edges"] += [["pour", "rest"], ["rest", "END"]]
    (tmp_path / "graphs" / "tea.json").write_text(json.dumps(more))

    found = answer(capsys, "reproduce", "order", source, "--format", "json")

    assert found["precision"] == pytest.approx(80)  # not from pour to END
    assert found["recall"] == pytest.approx(100 * 4 / 6)


def test_without_splits_or_true_orders_nothing_is_measured(tmp_path, capsys):
    write_executions([Execution("a", "tea", "", ("boil", "pour"))], tmp_path)
    source = f"executions:{tmp_path}"

    assert "true orders in graphs" in refusal(capsys, "reproduce", "order", source)
    assert "splits must be train and test" in refusal(capsys, "reproduce", "mistakes", source)


def test_results_become_executions(tmp_path):
    chapters = (Chapter(0, 1, "boil", None, "label"), Chapter(1, 2, "=pour\n", None, "label"))
    results = [Result(Video("v", 2.0), chapters, {"tea": 0.9}), Result(Video("idle", 2.0), ())]

    [path] = write_results(results, tmp_path, ["executions"])

    assert path.name == "executions.csv"
    found = open_executions(f"executions:{tmp_path}").done
    assert [(one.id, one.task, one.steps) for one in found] == [
        ("v", "tea", ("boil", "=pour")),
        ("idle", "", ()),
    ]


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "done"), [("crosstask", "brake on"), ("coin", "unscrew the screw")]
)
def test_published_truth_is_asked(real_data, capsys, name, done):
    place = f"{name}:{real_data / name}"

    found = answer(capsys, "ask", "next", place, "--done", done, "--json")

    assert sum(one["score"] for one in found["answers"]) > 0.5
