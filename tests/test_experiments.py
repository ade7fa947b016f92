import json
from dataclasses import replace

import numpy as np
import pytest

from conftest import WordEncoder
from stepgraph.core import Dataset, Vocabulary
from stepgraph.datasets import open_source
from stepgraph.decoders import Argmax, PathSearch
from stepgraph.decoders.controls import HalvedGaps
from stepgraph.errors import ConfigError, DataError
from stepgraph.evaluation.report import evaluate
from stepgraph.experiments import TABLES, methods, run_table
from stepgraph.experiments.plans import PLANS
from stepgraph.experiments.setting import NotAvailableError, Options, enlarge, prepare
from stepgraph.graph import mine_graph
from stepgraph.pipeline import run_evaluation
from stepgraph.scoring import score

TASK = "Make an omelette"
# The others have tests of their own: one needs no truth of keysteps, one needs video files.
OF_KEYSTEPS = [name for name in TABLES if name not in ("table3", "transfer")]
OTHERS = [f"{verb} the {noun}" for verb in ("mow", "saw", "dig") for noun in "abcdefghijklmnopq"]


@pytest.fixture(autouse=True)
def _untrained(monkeypatch):
    """Training takes seconds; all but one test do without."""
    monkeypatch.setattr(methods, "train_auto_regressive", lambda *_, **__: Argmax())


@pytest.fixture
def told(omelette):
    """The omelette with the task of each video."""
    return replace(omelette, videos=tuple(replace(v, task=TASK) for v in omelette.videos))


@pytest.fixture
def setting(told, encoder):
    return prepare(told, encoder, Options())


def measured(table, row, **where):
    return [table.cell(row, column.key, **where) for column in table.columns if column.is_measured]


# The rows are what the library measures.


def test_argmax_and_ours_are_what_evaluation_gives(omelette, encoder):
    table = run_table("table1", omelette, encoder=encoder, threshold=0.6)

    expected = run_evaluation(
        omelette, {"DistantSup.": Argmax(), "Ours": PathSearch(0.6)}, encoder=encoder
    )
    for one in expected.measured:
        for metric in ("accuracy", "iou", "accuracy_per_keystep", "iou_per_keystep"):
            found = table.cell(one.name, metric).value
            assert found == pytest.approx(100 * getattr(one.report, metric))


class SmallEncoder(WordEncoder):
    """Few enough directions for the 26,000 sentences of the real data."""

    size = 256


@pytest.mark.data
def test_argmax_and_ours_on_the_real_data_are_what_evaluation_gives(real_data):
    dataset, encoder = open_source(f"crosstask:{real_data / 'crosstask'}"), SmallEncoder()
    table = run_table("table1", dataset, encoder=encoder)

    expected = run_evaluation(
        dataset, {"DistantSup.": Argmax(), "Ours": PathSearch()}, encoder=encoder
    )
    for one in expected.measured:
        for metric in ("accuracy", "iou", "accuracy_per_keystep", "iou_per_keystep"):
            found = table.cell(one.name, metric).value
            assert found == pytest.approx(100 * getattr(one.report, metric))


def test_linear_steps_go_along_the_order_of_the_vocabulary(setting):
    labels = methods.METHODS["linear"].label(setting, "text")

    assert set(labels) == {"plain", "chatty", "hurried"}
    assert labels["plain"].anchors is not None


def test_task_methods_use_only_keysteps_of_the_task(omelette, encoder):
    vocabulary = Vocabulary(
        (*omelette.vocabulary.keysteps, "heat a pan first", "whisk them well"),
        {TASK: (0, 1, 2, 3, 4), "Other": (5, 6)},
    )
    truth = {name: replace(one, vocabulary=vocabulary) for name, one in omelette.truth.items()}
    videos = tuple(replace(video, task=TASK) for video in omelette.videos)
    setting = prepare(Dataset("two", videos, vocabulary, truth), encoder, Options())

    for method in PLANS["table2"].methods:
        if method.choices:  # there is one task only
            with pytest.raises(NotAvailableError, match="videos of 1 task"):
                method.label(setting, "text")
            continue
        for labels in method.label(setting, "text").values():
            assert labels.keysteps.max() < 5, method.name


def test_random_is_the_same_with_the_same_seed(told, encoder):
    first, again, other = (prepare(told, encoder, Options(seed=seed)) for seed in (0, 0, 1))

    labels = [
        np.concatenate(
            [one.keysteps for one in methods.METHODS["random"].label(s, "text").values()]
        )
        for s in (first, again, other)
    ]
    assert (labels[0] == labels[1]).all()
    assert (labels[0] != labels[2]).any()


def test_video_scores_fill_the_video_and_video_text_rows(told, encoder):
    text = list(score(told.videos, told.vocabulary, encoder))
    video = [replace(one, values=one.values[:, ::-1].copy()) for one in text]

    table = run_table("table1-expanded", told, encoder=encoder, scores={"video": video})

    for name in ("VideoCLIP", "Ours", "Video-Text Fusion", "Weighted Fusion"):
        assert 0 <= table.cell(name, "accuracy", section="Video-Text").value <= 100
    assert 0 <= table.cell("Ours", "accuracy", section="Video-only").value <= 100


@pytest.mark.slow
def test_the_transformer_is_trained_and_measured(told, encoder, monkeypatch, one_thread):
    monkeypatch.undo()
    table = run_table("table1", told, encoder=encoder)

    assert 0 <= table.cell("Auto-Reg", "accuracy").value <= 100


# What a source cannot give.


@pytest.mark.parametrize("name", OF_KEYSTEPS)
def test_every_table_is_whole_on_text_alone(name, told, encoder):
    table = run_table(name, told, encoder=encoder)

    for row in table.rows:
        for cell, column in zip(row.cells, table.columns, strict=True):
            if column.is_measured:
                itself = row.name == "Ours" and column.key.startswith("difference/")
                assert (cell.value is None) == (bool(cell.reason) or itself), row.name


def test_video_rows_are_n_a_without_video_scores(omelette, encoder):
    table = run_table("table1", omelette, encoder=encoder)

    cells = measured(table, "Ours", section="Video-only")
    assert {cell.value for cell in cells} == {None}
    assert all(cell.reason.startswith("no video scores") for cell in cells)
    assert "VideoCLIP reads video and video-text scores only" in table.reasons


def test_video_rows_are_measured_where_there_are_scores(omelette, encoder):
    video = tuple(score(omelette.videos, omelette.vocabulary, encoder))
    table = run_table("table1", omelette, encoder=encoder, scores={"video": video})

    seen = table.cell("VideoCLIP", "accuracy", section="Video-only").value
    assert seen == table.cell("DistantSup.", "accuracy", section="Text-only").value


def test_task_rows_are_n_a_where_the_task_is_unknown(omelette, encoder):
    table = run_table("table2", omelette, encoder=encoder)

    unknown = "task unknown: the source does not have the tasks of its videos"
    assert table.reasons == (unknown,)


def test_videos_of_unknown_task_are_left_out_and_counted(told, encoder):
    first, *others = told.videos
    partly = replace(told, videos=(replace(first, task=None), *others))
    table = run_table("table2", partly, encoder=encoder)

    assert "The task of 1 videos is unknown; they are left out." in table.notes
    assert table.cell("Bag of Steps", "accuracy").value is not None


def test_rows_that_need_an_order_are_n_a_without_tasks(omelette, encoder):
    vocabulary = Vocabulary(omelette.vocabulary.keysteps)
    truth = {name: replace(one, vocabulary=vocabulary) for name, one in omelette.truth.items()}
    dataset = replace(omelette, vocabulary=vocabulary, truth=truth)

    linear = run_table("table1", dataset, encoder=encoder).cell("Linear Steps", "accuracy")
    assert linear.reason.startswith("no order of keysteps")
    [reason] = run_table("table2", dataset, encoder=encoder).reasons
    assert reason.startswith("no tasks")


def test_a_task_with_too_many_orders_is_n_a(setting, monkeypatch):
    class Refusing:
        def decode(self, scores, graph):
            raise DataError("a graph of 30 keysteps must have fewer states")

    labeler = methods.on_task(Refusing(), setting, "text")

    with pytest.raises(NotAvailableError, match="task 'Make an omelette' cannot be aligned: a gr"):
        labeler(next(iter(setting.scored("text"))))


def test_noise_is_n_a_without_irrelevant_keysteps(omelette, encoder):
    table = run_table("noise", omelette, encoder=encoder)

    assert table.cell("1 x N", "ours").value is not None
    assert table.cell("1.5 x N", "ours").reason.startswith("no irrelevant keysteps")


def test_noise_beyond_what_was_given_is_n_a(omelette, encoder):
    table = run_table("noise", omelette, encoder=encoder, noise=OTHERS[:20])

    assert table.cell("5 x N", "argmax").value is not None
    assert table.cell("10 x N", "argmax").reason.startswith("too few irrelevant keysteps")


def test_noise_is_measured_with_the_larger_vocabulary(omelette, encoder):
    table = run_table("noise", omelette, encoder=encoder, noise=OTHERS, seed=3, seeds=1)

    from stepgraph.vocabulary import add_noise

    noisy = add_noise(omelette.vocabulary, OTHERS, factor=9, seed=3)
    truth = {name: replace(one, vocabulary=noisy) for name, one in omelette.truth.items()}
    scores = list(score(omelette.videos, noisy, encoder))
    graph = mine_graph(scores, noisy)
    for name, decoder in {"ours": PathSearch(), "halved": HalvedGaps()}.items():
        labels = [decoder.decode(one, graph) for one in scores]
        expected = evaluate(labels, truth).accuracy_per_keystep
        assert table.cell("10 x N", name).value == pytest.approx(100 * expected)


def test_noise_is_drawn_several_times(omelette, encoder):
    table = run_table("noise", omelette, encoder=encoder, noise=OTHERS, seeds=3)

    draws = [
        run_table("noise", omelette, encoder=encoder, noise=OTHERS, seeds=1, seed=seed)
        for seed in range(3)
    ]
    values = [one.cell("10 x N", "ours").value for one in draws]
    assert table.cell("10 x N", "ours").value == pytest.approx(np.mean(values))
    assert table.cell("10 x N", "ours").error == pytest.approx(np.std(values, ddof=1) / 3**0.5)
    assert table.cell("1 x N", "ours").error is None


def test_an_enlarged_setting_keeps_the_truth_where_it_was(setting, encoder):
    noisy = Vocabulary((*setting.vocabulary.keysteps, "mow the lawn"))

    larger = enlarge(setting, noisy, encoder)

    for video, labels in larger.truth.items():
        assert (labels.keysteps == setting.truth[video].keysteps).all()
    assert {len(one.vocabulary) for one in larger.scored("text")} == {6}


# What is said about the measurement.


def test_notes_state_the_protocol(told, encoder):
    table = run_table("table1", told, encoder=encoder, seed=7, split="val")
    notes = "\n".join(table.notes)

    assert "omelette (split: val), 3 videos of 1 of 1 tasks (Make an omelette), 59 rows" in notes
    assert "Encoder: text:words" in notes
    assert "Seed 7" in notes
    assert "on the 3 evaluated videos, without their truth (transductive)" in notes
    assert "over 3 random parts of the videos (seed 7)" in notes
    assert "Ours: path search, threshold 0.4." in notes


def test_notes_state_a_graph_mined_elsewhere(omelette, encoder):
    scores = [replace(s, video="x") for s in score(omelette.videos, omelette.vocabulary, encoder)]
    graph = mine_graph(scores[:1], omelette.vocabulary)
    table = run_table("ablations", omelette, encoder=encoder, graph=graph)

    assert "Graph (text) mined on 1 other videos (inductive)." in table.notes


def test_the_paper_stands_beside_with_both_data_sets(omelette, encoder):
    table = run_table("table1", omelette, encoder=encoder)
    groups = {column.group for column in table.columns}

    assert groups == {"measured here", "paper, COIN", "paper, CrossTask"}


def test_the_paper_stands_beside_with_the_same_data_set_alone(omelette, encoder):
    table = run_table("table1", replace(omelette, name="crosstask"), encoder=encoder)

    assert {column.group for column in table.columns} == {"measured here", "paper, CrossTask"}
    ours = next(row for row in table.rows if row.name == "Ours")
    assert [cell.text for cell in ours.cells[-2:]] == ["20.0 ± 0.2", "4.9 ± 0.1"]


def test_thresholds_stand_beside_the_paper_where_it_prints_them(omelette, encoder):
    table = run_table("thresholds", replace(omelette, name="coin"), encoder=encoder)
    printed = {row.name: row.cells[-2].text for row in table.rows}

    assert printed["Ours w/ γ=0.3"] == "15.9"
    assert printed["Ours w/ γ=0.35"] == "–"


def test_every_table_renders(told, encoder):
    for name in OF_KEYSTEPS:
        table = run_table(name, told, encoder=encoder, noise=OTHERS)
        assert table.to_text().startswith(table.title)
        assert table.to_markdown().startswith(f"## {table.title}")
        assert json.loads(table.to_json())["name"] == name


def test_the_behaviours_of_the_filter_are_priced_against_the_filter(told, encoder):
    table = run_table("compat", told, encoder=encoder)

    papers = [row for row in table.rows if row.name == "as in the paper"]
    assert [row.section for row in papers] == ["Text-only, path search", "Text-only, Bayes filter"]
    brf = run_table("table1-expanded", told, encoder=encoder).cell("BRF", "accuracy")
    assert papers[1].cells[2].value == brf.value


def test_the_first_row_of_the_behaviours_is_ours(told, encoder):
    table = run_table("compat", told, encoder=encoder)

    ours = run_table("table1", told, encoder=encoder).cell("Ours", "accuracy")
    assert table.cell("as in the paper", "accuracy").value == ours.value
    assert table.cell("as in the paper", "accuracy_change").value == 0


def test_limits_by_cluster_are_measured(told, encoder):
    table = run_table("compat", replace(told, name="coin"), encoder=encoder)

    assert table.cell("limit", "accuracy").value is not None
    assert any(note.endswith("those for COIN.") for note in table.notes)


def test_the_behaviours_are_measured_on_video_scores_too(told, encoder):
    video = tuple(score(told.videos, told.vocabulary, encoder))
    table = run_table("compat", told, encoder=encoder, scores={"video": video})

    sections = dict.fromkeys(row.section for row in table.rows)
    assert list(sections)[2:] == ["Video-only, path search", "Video-only, Bayes filter"]


def test_counting_the_first_twice_is_n_a_with_a_given_graph(told, encoder):
    graph = mine_graph(score(told.videos, told.vocabulary, encoder), told.vocabulary)
    table = run_table("compat", told, encoder=encoder, graph=graph)

    assert table.cell("first_counted_twice", "accuracy").reason.startswith("the graph was given")
    assert table.cell("raw_costs", "accuracy").value is not None


def test_the_scripts_encoder_is_n_a_with_another(told, encoder):
    table = run_table("compat", told, encoder=encoder)

    cell = table.cell("text:all-mpnet-base-v2", "accuracy")
    assert cell.reason.startswith("another encoder")


# What is refused.


def test_an_unknown_table_is_answered_with_those_there_are(omelette, encoder):
    with pytest.raises(ConfigError, match=r"one of table1, .*transfer, got 'table9'"):
        run_table("table9", omelette, encoder=encoder)


def test_an_unknown_option_is_answered_with_those_there_are(omelette, encoder):
    with pytest.raises(ConfigError, match="no option 'gamma'; it has seed, seeds, threshold"):
        run_table("table1", omelette, encoder=encoder, gamma=0.3)


def test_bad_options_are_refused(omelette, encoder):
    with pytest.raises(ConfigError, match="parts must be at least 2, got 1"):
        run_table("table1", omelette, encoder=encoder, parts=1)
    with pytest.raises(ConfigError, match="threshold must be a number, got nan"):
        run_table("table1", omelette, encoder=encoder, threshold=float("nan"))
    with pytest.raises(
        ConfigError, match=r"modality of scores must be one of text, .*got 'smell'"
    ):
        run_table("table1", omelette, encoder=encoder, scores={"smell": ()})


def test_a_source_without_truth_is_refused(omelette, encoder):
    with pytest.raises(DataError, match=r"omelette: must hold a truth \(truth.csv .*, got none"):
        run_table("table1", replace(omelette, truth={}), encoder=encoder)
