"""Comparison of decoders and reproduction of the paper, as a person asks for them."""

import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from stepgraph.cli import main
from stepgraph.experiments import OF_THE_PAPER, methods
from stepgraph.experiments.figures import Figure
from stepgraph.experiments.page import count_beside, write_page
from stepgraph.experiments.table import Cell, Column, Row, Table
from test_cli import failed


@pytest.fixture(autouse=True)
def _untrained(monkeypatch):
    """Training takes seconds."""
    from stepgraph.decoders import Argmax

    monkeypatch.setattr(methods, "train_auto_regressive", lambda *_, **__: Argmax())


def run(capsys, *arguments):
    code = main(list(map(str, arguments)))
    said = capsys.readouterr()
    assert code == 0, said.err
    return said.out


# --- evaluate --compare, --rows


def test_two_decoders_are_compared_with_intervals(omelette_folder, capsys, tmp_path):
    common = ("evaluate", omelette_folder, "--decoder", "path-search", "--compare", "halved-gaps")

    text = run(capsys, *common, "--report", tmp_path / "report.html")
    found = json.loads(run(capsys, *common, "--json"))

    assert "PathSearch(threshold=0.4) minus HalvedGaps(threshold=0.4)." in text
    assert "95% interval" in text
    compared = found["compared"]
    assert (compared["decoder"], compared["resamples"]) == ("halved-gaps", 1000)
    assert compared["accuracy"]["low"] <= compared["accuracy"]["difference"]
    assert compared["accuracy"]["difference"] <= compared["accuracy"]["high"]


@pytest.mark.parametrize("name", ["argmax", "anchors-only"])
def test_a_decoder_that_is_measured_anyway_can_be_compared_with(name, omelette_folder, capsys):
    found = run(capsys, "evaluate", omelette_folder, "--compare", name, "--json")

    assert json.loads(found)["compared"]["decoder"] == name


def test_a_decoder_is_not_compared_with_itself(omelette_folder, capsys):
    said = failed(capsys, "evaluate", omelette_folder, "--compare", "task-markov", "--json")

    assert (
        "--compare must be another decoder, or have other options (--compare-option), got" in said
    )


def test_options_reach_both_decoders_of_a_comparison(omelette_folder, capsys):
    common = ("evaluate", omelette_folder, "--threshold", "0.7", "--json")

    found = json.loads(run(capsys, *common, "--compare", "halved-gaps"))
    alone = json.loads(run(capsys, *common, "--decoder", "halved-gaps"))

    assert found["compared"]["options"] == {"threshold": 0.7}
    difference = found["accuracy"] - alone["accuracy"]
    assert found["compared"]["accuracy"]["difference"] == pytest.approx(difference)


def test_a_decoder_is_compared_with_itself_under_other_options(omelette_folder, capsys):
    common = ("evaluate", omelette_folder, "--decoder", "path-search", "--json")
    other = ("--compare", "path-search", "--compare-option", "threshold=2")

    found = json.loads(run(capsys, *common, *other))["compared"]

    assert found["options"] == {"threshold": 2.0}
    # Nothing reaches a threshold of 2, so that there argmax is left.
    argmax = json.loads(run(capsys, *common, "--compare", "argmax"))["compared"]
    assert found["accuracy"] == argmax["accuracy"]


def test_rows_of_true_background_are_left_out_where_asked(omelette_folder, capsys, tmp_path):
    report = tmp_path / "report.html"
    common = ("evaluate", omelette_folder, "--decoder", "path-search")
    every, some = (
        json.loads(run(capsys, *common, "--rows", rows, "--json")) for rows in ("all", "keystep")
    )

    assert (every["background_rows"], some["background_rows"]) == (True, False)
    assert some["iou"] > every["iou"]
    assert some["accuracy"] == every["accuracy"]
    text = run(capsys, *common, "--rows", "keystep", "--report", report)
    assert "without the rows whose truth is background" in text
    page = report.read_text("utf-8")
    assert f"{100 * some['iou']:.1f}" in page
    assert f"{100 * every['iou']:.1f}" in page  # the other protocol, folded away
    assert page.count("<summary>The same over all rows</summary>") == 1


def test_the_demo_and_its_evaluation_measure_the_same(capsys, tmp_path):
    demo = json.loads(run(capsys, "demo", "--json", "-o", tmp_path))["measured"]
    evaluated = json.loads(run(capsys, "evaluate", "demo", "--json"))

    assert demo[-1]["decoder"] == evaluated["decoder"]
    for name in ("accuracy", "iou", "accuracy_per_keystep", "segment_f1_50"):
        assert demo[-1][name] == evaluated[name], name


# --- reproduce


def test_everything_is_written_into_one_folder_with_one_page(omelette_folder, capsys, tmp_path):
    out = tmp_path / "out"
    asked = ("reproduce", "all", omelette_folder, "-o", out, "--format", "json")

    found = json.loads(run(capsys, *asked))

    assert {*OF_THE_PAPER} - {*found["tables"]} == {*found["missing"]} == {"table4"}
    assert "--model" in found["missing"]["table4"]
    for name in found["tables"]:
        assert json.loads((out / f"{name}.json").read_text("utf-8"))["name"] == name
    drawn = [one["file"] for one in found["figures"] if one["file"]]
    assert drawn
    assert all(Path(one).is_file() for one in drawn)
    page = (out / "index.html").read_text("utf-8")
    assert "What cannot be had" in page
    assert found["missing"]["table4"] in page


def test_everything_goes_on_after_an_interruption(omelette_folder, capsys, tmp_path, monkeypatch):
    out = tmp_path / "out"
    first = run(capsys, "reproduce", "all", omelette_folder, "-o", out)
    labelled = []
    label = methods.Method.label_and_choose

    def counted(method, setting, modality):
        found = label(method, setting, modality)  # rows that are n/a stay so
        labelled.append(method.name)
        return found

    monkeypatch.setattr(methods.Method, "label_and_choose", counted)
    again = run(capsys, "reproduce", "all", omelette_folder, "-o", out)

    assert again == first
    assert set(labelled) == {"DistantSup.", "Ours"}  # for figure 4


def test_figures_alone_are_written(omelette_folder, capsys, tmp_path):
    out = tmp_path / "figures"

    text = run(capsys, "reproduce", "figures", omelette_folder, "-o", out)

    assert "figure 1: none: a sketch of the method" in text
    assert f"figure 5: {out / 'figure-5.svg'}" in text
    assert (out / "figure-5.svg").read_text("utf-8").startswith("<svg")


@pytest.mark.parametrize("name", ["figures", "all"])
def test_what_is_many_files_needs_a_folder(name, capsys):
    said = failed(capsys, "reproduce", name, "demo")

    assert f"{name} requires -o DIR, the folder to write to" in said


def test_a_table_of_another_name_is_answered_with_all_names(capsys):
    said = failed(capsys, "reproduce", "table9", "demo")

    for name in ("table3", "table4", "figures", "all", "planning"):
        assert name in said


def test_table_4_is_probed_from_stored_features(omelette_folder, capsys, tmp_path):
    features = tmp_path / "features"
    run(capsys, "encode", omelette_folder, "--encoder", "text:minilm", "-o", features)
    probing = ("--heads", "mlp", "--probes", "keystep", "--epochs", "1", "--seeds", "1")
    asked = ("reproduce", "table4", omelette_folder, "--model", f"words={features}", *probing)

    found = json.loads(run(capsys, *asked, "--format", "json"))

    [row] = [row for row in found["rows"] if row["name"] == "words"]
    assert 0 <= row["measured here"]["keystep"]["value"] <= 100


@pytest.mark.parametrize(
    ("table", "options", "problem"),
    [
        ("table4", ("--graph", "nope.json"), "--graph does not apply to table4"),
        ("table4", ("--video", "clip:nope"), "--video does not apply to table4"),
        ("table1", ("--allow-shared",), "--allow-shared requires table3 or table4, got table1"),
        ("table1", ("--heads", "mlp"), "--heads requires table4, got table1"),
        ("table3", ("--pretrained-on", "Ours=x"), "--allow-shared require --model"),
        ("table3", ("--model", "Ours=text:minilm"), "--model must encode video, got 'text:mini"),
        ("table3", ("--model", "="), "a model must be given as NAME=SOURCE, got '='"),
    ],
)
def test_options_that_would_be_ignored_are_refused(table, options, problem, capsys):
    assert problem in failed(capsys, "reproduce", table, "demo", *options)


@pytest.fixture
def without_truth(omelette_folder):
    (omelette_folder / "truth.csv").unlink()
    return omelette_folder


def test_figures_need_no_truth(without_truth, capsys, tmp_path):
    text = run(capsys, "reproduce", "figures", without_truth, "-o", tmp_path / "out")

    assert f"figure 5: {tmp_path / 'out' / 'figure-5.svg'}" in text
    assert "figure 4: none: " in text


def test_everything_without_truth_is_figures_alone(without_truth, capsys, tmp_path):
    out = tmp_path / "out"

    found = json.loads(run(capsys, "reproduce", "all", without_truth, "-o", out, "--json"))

    assert found["tables"] == []
    assert "must hold a truth" in found["missing"]["table1"]
    assert any(one["file"] for one in found["figures"])


def test_a_wrong_option_of_everything_is_an_error_and_no_page(omelette_folder, capsys, tmp_path):
    graph = tmp_path / "graph.json"
    run(capsys, "mine", "demo", "-o", graph)

    said = failed(
        *(capsys, "reproduce", "all", omelette_folder, "--graph", graph),
        *("-o", tmp_path / "out"),
    )

    assert "must share one vocabulary" in said or "vocabulary" in said
    assert not (tmp_path / "out" / "index.html").exists()


@pytest.mark.parametrize("table", ["table1", "noise"])
def test_models_are_refused_where_they_would_be_ignored(table, capsys):
    said = failed(capsys, "reproduce", table, "demo", "--model", "Ours=text:minilm")

    assert f"--model requires table3 or table4, got {table}; remove it" in said


# --- the page


class Words(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)


def small_table(name="table1", row="<b>Ours</b>"):
    columns = (
        Column("accuracy", "Acc"),
        Column("iou", "IoU"),
        Column("acc", "Acc", group="paper, CrossTask"),
        Column("acc", "Acc", group="paper, COIN"),
        Column("f1", "F1", group="paper, CrossTask"),
    )
    cells = (Cell(20.0, text="20.0"), Cell(None, reason="why"), *[Cell(19.0, text="19.0")] * 3)
    return Table(name, "A & B", columns, (Row("Text-only", row, cells),), ("a note",))


def test_only_numbers_of_the_same_data_and_metric_count_as_measured():
    assert count_beside([small_table()], "crosstask") == 1
    assert count_beside([small_table(), small_table("ablations")], "coin") == 2
    assert count_beside([small_table()], "demo") == 0


def test_a_number_that_stands_in_two_tables_counts_once():
    twice = [small_table("table1-expanded"), small_table("thresholds"), small_table("compat")]

    assert count_beside(twice, "crosstask") == 1


def test_the_page_shows_text_as_text_and_names_no_other_place(tmp_path):
    figures = [Figure("5", tmp_path / "figure-5.svg", "<i>all</i>"), Figure("1", None, "a sketch")]

    page = write_page("On <x>", "crosstask", {"table1": small_table()}, figures, {"noise": "<n>"})

    words = Words()
    words.feed(page)
    tags = [tag for tag, _ in words.tags]
    assert not {"b", "i", "n", "x", "script"} & set(tags)
    assert [attrs["src"] for tag, attrs in words.tags if tag == "img"] == ["figure-5.svg"]
    text = "".join(words.text)
    for part in ("On <x>", "<b>Ours</b>", "n/a [1]: why", "noise: <n>", "figure 1: a sketch"):
        assert part in text
    assert "://" not in page


def test_a_random_label_is_given_to_rows_without_narration_where_asked():
    from reference import make_graph
    from stepgraph.core import Scores, Vocabulary
    from stepgraph.decoders import load_decoder

    names = Vocabulary(tuple("abcd"))
    observed = np.arange(40) % 4 == 0
    scores = Scores("v", np.zeros((40, 4), np.float32), observed, names).restrict([1, 2])
    graph = make_graph(np.eye(4), names)

    found = load_decoder("random", silence=True).decode(scores, graph).keysteps

    assert set(found.tolist()) == {1, 2}
    plain = load_decoder("random").decode(scores, graph).keysteps
    assert (plain[~observed] == -1).all()
    assert (plain[observed] == found[observed]).all()
