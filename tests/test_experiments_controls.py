"""Controls, intervals, seeds, choices on other tasks, and sections by modality."""
# ruff: noqa: F811

from dataclasses import replace

import numpy as np
import pytest

from stepgraph.core import Dataset, Labels, Sentence, Video, Vocabulary
from stepgraph.errors import DataError
from stepgraph.evaluation.comparison import paired_bootstrap
from stepgraph.evaluation.counts import Counts
from stepgraph.evaluation.report import evaluate
from stepgraph.experiments import methods, run_table
from stepgraph.experiments.plans import COLUMNS, PLANS
from stepgraph.experiments.setting import NotAvailableError, Options, prepare
from stepgraph.scoring import score
from test_experiments import OF_KEYSTEPS, TASK, _untrained, told  # noqa: F401

TWO = Vocabulary(("stir", "pour"))


def test_every_row_has_a_standard_error(omelette, encoder):
    table = run_table("table1", omelette, encoder=encoder, parts=3)

    for row in table.rows:
        cell = table.cell(row.name, "accuracy", section=row.section)
        assert (cell.error is None) == (cell.value is None), row.name


def test_a_row_with_chance_is_the_mean_over_seeds_with_its_error(told, encoder):
    table = run_table("table1", told, encoder=encoder, seeds=3, seed=2)

    accuracies = []
    for seed in (2, 3, 4):
        setting = prepare(told, encoder, Options(seed=seed))
        labels = methods.METHODS["random"].label(setting, "text").values()
        accuracies.append(100 * evaluate(labels, told.truth).accuracy)
    cell = table.cell("Random", "accuracy")
    assert cell.value == pytest.approx(np.mean(accuracies))
    assert cell.error == pytest.approx(np.std(accuracies, ddof=1) / 3**0.5)
    assert any(note.startswith("± of Random, Auto-Reg, Pruning") for note in table.notes)


def test_differences_are_those_of_the_paired_bootstrap(told, encoder):
    table = run_table("table1", told, encoder=encoder)

    setting = prepare(told, encoder, Options())
    both = [methods.METHODS[name].label(setting, "text") for name in ("ours", "distant")]
    found = paired_bootstrap(*both, told.truth, "accuracy_per_keystep")
    cell = table.cell("DistantSup.", "difference/accuracy_per_keystep")
    assert (cell.value, *cell.interval) == pytest.approx(tuple(100 * one for one in found))
    assert f"[{cell.interval[0]:.1f}, {cell.interval[1]:.1f}]" in cell.text
    assert table.cell("Ours", "difference/accuracy_per_keystep").value is None


def test_controls_stand_in_every_table_with_ours():
    for plan in PLANS.values():
        names = [method.name for method in plan.methods]
        controls = [name for name in names if name.startswith("No graph: ")]
        assert any(name.startswith("Ours") for name in names)
        assert [one.removeprefix("No graph: ") for one in controls] == [
            *("gaps halved", "anchors only", "argmax held")
        ]
    columns = {column.name for column in COLUMNS["gains"]}
    assert {"No graph: gaps halved", "No graph: anchors only", "No graph: argmax held"} <= columns


def two_tasks():
    """Videos of two tasks; a threshold of 0.6 suits the one, 0.3 the other."""
    counts = {}
    for value, right in {0.3: {"a": 1, "b": 3}, 0.6: {"a": 4, "b": 0}}.items():
        counts[value] = {
            video: Counts.of(
                Labels(video, np.zeros(4, np.int64), TWO),
                Labels(video, np.array([0] * hits + [-1] * (4 - hits)), TWO),
            )
            for video, hits in right.items()
        }
    return counts


def test_an_option_is_chosen_on_the_videos_of_the_other_tasks():
    chosen = methods.choose(two_tasks(), {"a": "first", "b": "second"})

    assert chosen == {"first": 0.3, "second": 0.6}


def test_an_option_cannot_be_chosen_on_the_task_that_it_is_reported_on():
    with pytest.raises(NotAvailableError, match="videos of 1 task: an option cannot be chosen"):
        methods.choose(two_tasks(), {"a": "first", "b": "first"})


def test_table_2_shows_both_protocols(told, encoder):
    table = run_table("table2", told, encoder=encoder)

    setting = prepare(told, encoder, Options())
    labels = methods.METHODS["task-ours"].label(setting, "text").values()
    for key, background_rows in (("iou", True), ("keystep_rows/iou", False)):
        expected = evaluate(labels, told.truth, background_rows=background_rows).iou
        assert table.cell("Ours", key).value == pytest.approx(100 * expected)


def test_sections_are_measured_on_the_videos_of_their_modality(told, encoder):
    first, second, third = told.videos
    silent = replace(told, videos=(replace(first, transcript=()), second, third))
    scores = list(score(told.videos, told.vocabulary, encoder))
    seen = [one for one in scores if one.video != second.id]

    table = run_table("table1", silent, encoder=encoder, scores={"video": seen})
    heard = run_table("table1", replace(told, videos=(second, third)), encoder=encoder)
    notes = "\n".join(table.notes)

    assert table.cell("Ours", "accuracy", section="Text-only").value == pytest.approx(
        heard.cell("Ours", "accuracy").value
    )
    for modality, videos in (("text", 2), ("video", 2), ("video-text", 1)):
        assert f"(split: all, {modality}), {videos} videos" in notes


@pytest.mark.parametrize("name", OF_KEYSTEPS)
def test_every_table_takes_silent_videos_beside_narrated_ones(name, told, encoder):
    first, second, third = told.videos
    silent = replace(told, videos=(replace(first, transcript=()), second, third))
    seen = list(score(told.videos, told.vocabulary, encoder))

    table = run_table(name, silent, encoder=encoder, scores={"video": seen}, seeds=1)

    assert any(cell.value is not None for row in table.rows for cell in row.cells)


@pytest.fixture
def partly_known():
    """Two tasks, and a video whose task is unknown."""
    names = Vocabulary(
        ("boil water", "pour tea", "crack egg", "fry egg"), {"t": (0, 1), "e": (2, 3)}
    )
    shown = {"a": "t", "b": "t", "c": "e", "d": "e", "x": None}
    said = {"t": ("boil water", "now pour tea"), "e": ("crack egg", "and fry egg")}
    videos, truth = [], {}
    for name, task in shown.items():
        first, second = said[task or "t"]
        sentences = (Sentence(0.0, 4.0, first), Sentence(4.0, 9.0, second))
        videos.append(Video(name, 9.0, sentences, task=task))
        start = 2 * (task == "e")
        rows = np.array([start] * 4 + [start + 1] * 4 + [-1])
        truth[name] = Labels(name, rows, names)
    return Dataset("partly", tuple(videos), names, truth)


@pytest.mark.parametrize("name", ["table1", "entropy", "thresholds", "metrics"])
def test_a_video_of_unknown_task_is_left_out_where_the_task_must_be_known(
    name, partly_known, encoder
):
    table = run_table(name, partly_known, encoder=encoder, seeds=2)

    chosen = [note for note in table.notes if "chosen with each seed" in note]
    assert chosen
    for note in chosen:
        assert note.count("t: ") == note.count("e: ") == 1
        values = note.partition("t: ")[2].partition(";")[0].rstrip(".").split(", ")
        assert len(values) == (2 if note.startswith("Pruning") else 1)
    assert any("on the 4 of 5 videos whose task is known" in note for note in table.notes)


def test_tables_need_a_truth(omelette, encoder):
    with pytest.raises(DataError, match="omelette: must hold a truth"):
        run_table("table1", replace(omelette, truth={}), encoder=encoder)
