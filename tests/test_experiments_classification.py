"""Task classification by mapping keysteps back to tasks."""

from dataclasses import replace

import numpy as np
import pytest

from stepgraph.core import BACKGROUND, Dataset, Features, Labels, Scores, Vocabulary
from stepgraph.decoders.tasks import rank_tasks
from stepgraph.encoders import EncoderOptions
from stepgraph.errors import ConfigError, DataError
from stepgraph.experiments import run_table
from stepgraph.experiments.pretraining import Pretraining

TASKS = {"tea": (0, 1), "eggs": (0, 2, 3), "toast": (4, 5)}
KITCHEN = Vocabulary(("boil", "pour", "whisk", "fry", "slice", "toast it"), TASKS)


def ranked(*keysteps):
    return rank_tasks(Labels("v", np.array(keysteps, np.int64), KITCHEN))


def brute(keysteps):
    """Count votes one by one."""
    votes = dict.fromkeys(TASKS, 0.0)
    for keystep in keysteps:
        listing = [task for task, members in TASKS.items() if keystep in members]
        for task in listing:
            votes[task] += 1 / len(listing)
    return tuple(sorted((t for t in votes if votes[t] > 0), key=lambda t: -votes[t]))


def test_keysteps_vote_for_their_tasks_as_counted_one_by_one():
    rng = np.random.default_rng(0)
    for _ in range(200):
        keysteps = rng.integers(-1, 6, rng.integers(1, 30))

        assert rank_tasks(Labels("v", keysteps, KITCHEN)) == brute(keysteps)


def test_a_shared_keystep_decides_nothing_alone_and_background_does_not_vote():
    assert ranked(0, BACKGROUND) == ("tea", "eggs")
    assert ranked(0, 0, 2) == ("eggs", "tea")
    assert ranked(BACKGROUND) == ranked() == ()


def test_a_vocabulary_without_tasks_ranks_none():
    assert rank_tasks(Labels("v", np.array([0, 1]), Vocabulary(("a", "b")))) == ()


@pytest.fixture
def dataset(omelette, vocabulary):
    """Three videos of a task, with a rival task; no truth of keysteps."""
    more = Vocabulary(
        (*vocabulary.keysteps, "inflate the tube", "remove the wheel"),
        {**vocabulary.tasks, "Fix a puncture": (len(vocabulary), len(vocabulary) + 1)},
    )
    videos = tuple(replace(video, task="Make an omelette") for video in omelette.videos)
    return Dataset("kitchen", videos, more)


def test_the_table_needs_no_truth_of_keysteps(dataset, encoder, one_thread):
    table = run_table("tasks", dataset, encoder=encoder)

    assert table.cell("Ours", "acc1", section="Text-only").value == 100.0
    assert table.cell("DistantSup.", "acc5", section="Text-only").value == 100.0
    shown = table.to_text()
    assert "3 of 3 videos" in shown
    assert "15.5 ± 0.2" in shown


def test_scores_of_a_video_model_have_their_own_rows(dataset, encoder):
    wrong = np.zeros((60, len(dataset.vocabulary)), np.float32)
    wrong[:, -1] = 0.9
    seen = [
        Scores(video.id, wrong, np.ones(60, bool), dataset.vocabulary) for video in dataset.videos
    ]

    table = run_table("tasks", dataset, encoder=encoder, scores={"video": seen})

    section = "Video-only, one model decoded"
    assert table.cell("Path search", "acc1", section=section).value == 0.0
    assert table.cell("Ours", "acc1", section="Text-only").value == 100.0
    assert table.cell("Ours", "acc1", section="Video-only").value is None


def fixed(dataset, keystep, videos=None):
    """A model that gives every second the same keystep."""
    width = len(dataset.vocabulary)
    keysteps = np.eye(width, dtype=np.float32)

    class Fixed:
        options = EncoderOptions("clip:somewhere")

        def encode_keysteps(self, vocabulary):
            return keysteps

        def encode_videos(self, some):
            for video in some:
                if videos is not None and video.id not in videos:
                    raise DataError("cannot be seen")
                yield Features(video.id, 60.0, keysteps[[keystep]], np.array([[0.0, 60.0]]))

    return Fixed()


def test_each_model_has_a_row_beside_the_papers_of_its_name(dataset, encoder):
    models = {"Ours": fixed(dataset, 0), "DistantSup.": fixed(dataset, -1)}
    models |= {"MIL-NCE": fixed(dataset, 1), "mine": fixed(dataset, -1)}

    table = run_table("tasks", dataset, encoder=encoder, models=models)

    rows = {row.name: row.cells for row in table.rows if row.section == "Video-only"}
    assert list(rows) == ["MIL-NCE", "VideoCLIP", "DistantSup.", "Ours", "mine"]
    assert [rows[name][0].value for name in models] == [100.0, 0.0, 100.0, 0.0]
    assert rows["DistantSup."][2].text == "+100.0 [100.0, 100.0]"
    assert rows["MIL-NCE"][2].text == "+0.0 [0.0, 0.0]"
    assert [rows[name][-2].text for name in rows] == ["6.2", "7.9", "9.5", "14.0 ± 0.3", "–"]
    assert "published weights" in rows["VideoCLIP"][0].reason
    assert "No full list of training videos" in table.to_text()


def test_decodings_of_one_model_are_compared_with_its_path_search(dataset, encoder):
    values = np.zeros((60, len(dataset.vocabulary)), np.float32)
    values[:, -1] = 0.2  # doubtful, and wrong
    values[:5, 0] = 0.9
    seen = [Scores(v.id, values, np.ones(60, bool), dataset.vocabulary) for v in dataset.videos]

    table = run_table("tasks", dataset, encoder=encoder, scores={"video": seen})

    rows = {row.name: row.cells for row in table.rows if row.section.endswith("decoded")}
    assert [cells[0].value for cells in rows.values()] == [0.0, 100.0, 100.0, 100.0, 0.0]
    assert rows["Argmax"][2].interval == (100.0, 100.0)
    assert [cells[2].value for cells in rows.values()] == [100.0, None, 0.0, 0.0, 100.0]


def test_rows_without_a_model_have_the_reason(dataset, encoder):
    table = run_table("tasks", dataset, encoder=encoder)

    reasons = {r.name: r.cells[0].reason for r in table.rows if r.section == "Video-only"}
    assert "--model NAME=ENCODER" in reasons["MIL-NCE"] == reasons["VideoCLIP"]
    assert "labels of argmax (DistantSup.)" in reasons["Ours"] == reasons["DistantSup."]


def test_models_are_compared_on_the_videos_that_all_could_look_at(dataset, encoder):
    first = dataset.videos[0].id
    models = {"Ours": fixed(dataset, 0), "DistantSup.": fixed(dataset, 0, {first})}

    table = run_table("tasks", dataset, encoder=encoder, models=models)

    assert "Video-only: measured on 1 videos." in table.notes
    assert dataset.problems
    models["DistantSup."] = fixed(dataset, 0, {})
    with pytest.raises(DataError, match=r"^models must have scores of the same videos, got none"):
        run_table("tasks", dataset, encoder=encoder, models=models)


def test_a_model_that_was_trained_on_measured_videos_is_refused(dataset, encoder):
    models = {"mine": fixed(dataset, 0)}
    given = Pretraining({"mine": ("elsewhere", dataset.videos[1].id)})

    with pytest.raises(DataError, match=r"mine: .* test video of kitchen, got 1 of 3, such as"):
        run_table("tasks", dataset, encoder=encoder, models=models, pretraining=given)

    allowed = replace(given, allow_shared=True)
    table = run_table("tasks", dataset, encoder=encoder, models=models, pretraining=allowed)
    assert "mine was trained on test videos of kitchen: 1 of 3" in table.to_text()


def test_models_are_of_this_table_alone(dataset, encoder):
    with pytest.raises(ConfigError, match="models require table 'table3', got 'table1'"):
        run_table("table1", dataset, encoder=encoder, models={"mine": fixed(dataset, 0)})


def test_controls_without_a_graph_are_compared_with_ours(dataset, encoder):
    table = run_table("tasks", dataset, encoder=encoder)

    text = {row.name: row.cells[2].text for row in table.rows if row.section == "Text-only"}
    assert text["Ours"] == "–"
    assert text["No graph: gaps halved"] == text["No graph: anchors only"]
    assert text["No graph: argmax held"] == "+0.0 [0.0, 0.0]"


def test_text_is_measured_where_somebody_speaks(dataset, encoder):
    silent = replace(dataset.videos[0], id="silent", transcript=())
    both = replace(dataset, videos=(*dataset.videos, silent))

    table = run_table("tasks", both, encoder=encoder)

    assert table.cell("Ours", "acc1").value == 100.0
    assert "Text-only: measured on 3 videos." in table.notes


def test_videos_of_other_tasks_are_left_out_and_said(dataset, encoder):
    first, *rest = dataset.videos
    other = replace(dataset, videos=(replace(first, task="Knit a hat"), *rest))

    assert "2 of 3 videos" in run_table("tasks", other, encoder=encoder).to_text()


def test_without_any_known_task_there_is_nothing_to_measure(omelette, encoder):
    with pytest.raises(DataError, match=r"must hold videos whose task is known .*, got none of 3"):
        run_table("tasks", omelette, encoder=encoder)


@pytest.mark.data
def test_graph_labels_tell_the_task_of_real_narration_better_than_argmax(real_data, one_thread):
    from stepgraph import load_encoder, open_source

    dataset = open_source(f"crosstask:{real_data / 'crosstask'}")
    some = replace(dataset, videos=tuple(v for v in dataset.videos if v.transcript)[::30])

    table = run_table("tasks", some, encoder=load_encoder())

    assert table.cell("Ours", "acc1").value > table.cell("DistantSup.", "acc1").value
