"""Task classification by mapping keysteps back to tasks."""

from dataclasses import replace

import numpy as np
import pytest

from stepgraph.core import BACKGROUND, Dataset, Labels, Scores, Vocabulary
from stepgraph.decoders.tasks import rank_tasks
from stepgraph.errors import DataError
from stepgraph.experiments import run_table

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

    assert table.cell("Ours", "acc1", section="Video-only").value == 0.0
    assert table.cell("Ours", "acc1", section="Text-only").value == 100.0


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
