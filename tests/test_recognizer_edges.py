"""Edges of the recogniser, of what it learns, and of the files that keep it."""

import json
from base64 import b64encode
from dataclasses import replace

import numpy as np
import pytest

import stepgraph as sg
from reference import make_graph, make_scores
from spoken import sentences
from stepgraph.core import Features, Vocabulary
from stepgraph.decoders import TaskMarkov
from stepgraph.decoders.learning import learn_graph
from stepgraph.encoders.vectors import unit
from stepgraph.errors import DataError
from stepgraph.graph.parameters import RecognizerParameters, listed_tasks
from stepgraph.graph.traces import Sample
from stepgraph.scoring.lazy import LazyScores

VOCABULARY = Vocabulary(tuple("abcdefg"), {"tea": (0, 1, 2), "soup": (3, 4, 5)})
GRAPH = make_graph(np.eye(7, k=1, dtype=np.int64), VOCABULARY)


def confident_scores(keysteps_of_rows):
    """One keystep of each row scores well, all others badly."""
    values = np.full((len(keysteps_of_rows), 7), 0.1)
    values[np.arange(len(values)), keysteps_of_rows] = 0.9
    return make_scores(values, vocabulary=VOCABULARY)


def test_a_keystep_that_may_not_be_on_one_row_is_not_predicted_there():
    scores = confident_scores([0] * 10 + [1] * 10 + [2] * 10)
    scores.values[14:16, 1] = -np.inf

    labels = TaskMarkov().decode(scores, GRAPH)

    assert 1 not in labels.keysteps[14:16]
    assert {*labels.keysteps[10:14]} == {*labels.keysteps[16:20]} == {1}
    assert np.isfinite(labels.confidence).all()


def test_lazy_scores_are_saved_as_the_scores_they_are(tmp_path):
    features = Features("v", 2.0, np.eye(2, 7, dtype=np.float32), np.array([[0, 1], [1, 2.0]]))
    lazy_scores = LazyScores(features, np.eye(7, dtype=np.float32), VOCABULARY)

    sg.save(lazy_scores, tmp_path / "scores.npz")
    loaded = sg.load(tmp_path / "scores.npz")

    assert np.array_equal(loaded.values, lazy_scores.values)
    assert np.array_equal(loaded.observed, lazy_scores.observed)


def test_scores_too_large_to_be_computed_can_be_printed(monkeypatch):
    features = Features("v", 2.0, np.eye(2, 7, dtype=np.float32), np.array([[0, 1], [1, 2.0]]))
    monkeypatch.setattr("stepgraph.scoring.lazy.LARGEST", 1)

    assert "'v'" in repr(LazyScores(features, np.eye(7, dtype=np.float32), VOCABULARY))


def sentences_of(rng, name, parts=3):
    """A video that speaks of tea, as products of vectors."""
    vectors = unit(np.eye(7)[:parts] + 0.3 * rng.normal(size=(parts, 7)))
    return LazyScores(sentences(vectors, video=name), np.eye(7, dtype=np.float32), VOCABULARY)


def test_words_of_many_videos_do_not_depend_on_their_order(monkeypatch):
    """At the end, only as many as are allowed may be learned from: those of the least hashes."""
    monkeypatch.setattr("stepgraph.decoders.learning._ALL_VIDEOS", 3)
    rng = np.random.default_rng(0)
    videos = [sentences_of(rng, f"{n}") for n in range(20)]

    one, other = (
        learn_graph(v, VOCABULARY).parameters.classifiers for v in (videos, videos[::-1])
    )

    assert one["tea"].vectors == pytest.approx(other["tea"].vectors, abs=1e-3)


def test_a_corpus_in_which_every_video_has_one_possible_task_has_probabilities():
    """As where the task of each video is known, and all else may not be."""
    rng = np.random.default_rng(0)
    videos = [sentences_of(rng, f"{n}").restrict([0, 1, 2]) for n in range(20)]
    graph = learn_graph(videos, VOCABULARY)

    labels = TaskMarkov().decode(sentences_of(rng, "next"), graph)

    assert 0 < sum(labels.tasks.values()) <= 1


def loaded_with(tmp_path, **changed):
    """A graph with habits of tea, of which some were edited on disk."""
    parameters = RecognizerParameters(
        tuple(listed_tasks(VOCABULARY)),
        {"v": np.array([1.0, 2.0, 3.0], np.float32)},
        {"tea": 1.0},
        {"tea": np.ones((3, 20))},
        {},
    )
    sg.save(replace(GRAPH, parameters=parameters), tmp_path / "graph.json")
    content = json.loads((tmp_path / "graph.json").read_text("utf-8"))
    content["parameters"] |= changed
    (tmp_path / "graph.json").write_text(json.dumps(content), "utf-8")
    return sg.load(tmp_path / "graph.json")


def packed(*numbers, kind):
    return b64encode(np.array(numbers, kind).tobytes()).decode()


@pytest.mark.parametrize("rows", [0, 2, 4])
def test_times_of_another_number_of_keysteps_than_the_task_has_are_refused(rows, tmp_path):
    with pytest.raises(DataError, match=r"graph\.json: must be a task graph as"):
        loaded_with(tmp_path, timing={"tea": packed(*[1.0] * 20 * rows, kind="f8")})


@pytest.mark.parametrize("evidence", [[1, np.inf, 1], [-np.inf] * 3])
def test_evidence_that_leaves_no_probabilities_is_refused(evidence, tmp_path):
    with pytest.raises(DataError, match=r"graph\.json: must be a task graph as"):
        loaded_with(tmp_path, log_evidence={"v": packed(*evidence, kind="f4")})


@pytest.mark.parametrize("tasks", [["tea", "cake", "other keysteps"], ["tea"] * 3])
def test_parameters_of_other_tasks_than_those_of_the_graph_are_refused(tasks, tmp_path):
    with pytest.raises(DataError, match=r"graph\.json: must be a task graph as"):
        loaded_with(tmp_path, tasks=tasks)


def test_a_task_may_have_the_name_that_loose_keysteps_are_given():
    tasks = listed_tasks(Vocabulary(tuple("abc"), {"other keysteps": (0, 1)}))

    assert sorted(keystep for members in tasks.values() for keystep in members) == [0, 1, 2]


@pytest.mark.parametrize(
    ("population", "of_one", "of_all", "kept"),
    [
        ({"tea": 20, "soup": 2}, 7, 8, {"tea": 6, "soup": 2}),  # what is rare is kept whole
        ({"tea": 20, "soup": 2}, 7, 10, {"tea": 7, "soup": 2}),
        ({"tea": 3, "soup": 3}, 7, 8, {"tea": 3, "soup": 3}),
        ({"tea": 20, "soup": 20}, 7, 8, {"tea": 4, "soup": 4}),
        ({"tea": 9, "soup": 9, "pie": 9}, 7, 3, {"tea": 1, "soup": 1, "pie": 1}),
    ],
)
def test_as_many_videos_are_kept_as_may_be_of_one_task_and_of_all(
    population, of_one, of_all, kept
):
    found = Sample(of_one, of_all)
    for number in range(max(population.values())):
        for task in population:
            if number < population[task]:
                found.add(task, f"{task} {number}", number)

    assert {task: len(videos) for task, videos in found.chosen().items()} == kept
    assert found.population == population


def test_a_long_list_without_headings_can_be_mined():
    """More keysteps than one model can hold are cut into groups once the graph is there."""
    vocabulary = Vocabulary(tuple(f"keystep {n}" for n in range(450)))
    own = unit(np.random.default_rng(0).normal(size=(450, 8)))
    videos = [LazyScores(sentences(own[:5], video=f"{n}"), own, vocabulary) for n in range(3)]

    graph = learn_graph(videos, vocabulary)
    labels = TaskMarkov().decode(videos[0], graph)

    assert len(labels) == len(videos[0])


def test_a_heading_may_be_called_everything():
    tasks = {"everything": (0, 1, 2), "soup": (3, 4, 5)}
    vocabulary = Vocabulary(tuple("abcdefg"), tasks)
    own = np.eye(7, dtype=np.float32)
    videos = [LazyScores(sentences(own[:3], video=f"{n}"), own, vocabulary) for n in range(3)]

    graph = learn_graph(videos, vocabulary)

    assert {*graph.statistics.videos} == {"everything"}


def test_times_without_end_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"graph\.json: must be a task graph as"):
        loaded_with(tmp_path, timing={"tea": packed(*[1e308] * 60, kind="f8")})
