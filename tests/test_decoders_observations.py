"""Observations of a video against loops: their similarity and the log-evidence of tasks."""

import math

import numpy as np
import pytest

from reference import keysteps, make_graph, make_scores
from spoken import (
    random_lazy,
    random_sentences,
    random_task_vectors,
    random_unit,
    sentences,
)
from stepgraph.core import BACKGROUND, Scores, Vocabulary
from stepgraph.decoders import TaskMarkov
from stepgraph.decoders.observations import observe
from stepgraph.encoders.vectors import TaskVectors
from stepgraph.graph.parameters import listed_tasks
from stepgraph.scoring.lazy import LazyScores

# Keystep 1 is of two tasks, 6 of none.
TASKS = {"tea": (0, 1, 2), "soup": (4, 3, 5), "boil": (1,)}
VOCABULARY = Vocabulary(keysteps(7).keysteps, TASKS)
LISTED = listed_tasks(VOCABULARY)


def random_dense(rng, rows):
    values = rng.uniform(-0.3, 0.9, (rows, 7))
    return make_scores(values, rng.random(rows) < 0.7, vocabulary=VOCABULARY)


def some_scores(seed):
    """Dense scores, products and products with titles in turn; every second one is restricted."""
    rng = np.random.default_rng(seed)
    if seed % 3 == 0:
        scores = random_dense(rng, int(rng.integers(1, 20)))
        scores.observed[0] = True
    else:
        scores = random_lazy(rng, VOCABULARY, parts=int(rng.integers(1, 9)), titles=seed % 3 == 2)
    allowed = np.flatnonzero(rng.random(7) < 0.6).tolist()
    return scores.restrict(allowed) if seed % 2 else scores


# --- Observations


def test_every_observed_row_has_one_observation_and_every_other_none():
    for seed in range(30):
        scores = some_scores(seed)

        observations = observe(scores)

        assert (observations.index >= 0).tolist() == scores.observed.tolist()
        assert sorted({*observations.index.tolist()} - {-1}) == list(
            range(len(observations.sources))
        )


def test_an_observation_weighs_as_many_rows_as_it_lasts():
    for seed in range(30):
        observations = observe(some_scores(seed))

        rows = observations.index.tolist()
        assert observations.weight.tolist() == [
            rows.count(one) for one in range(len(observations.sources))
        ]


def test_a_sentence_is_one_observation_however_long_it_lasts():
    lazy_scores = LazyScores(sentences(np.eye(3, 8)), np.eye(7, 8, dtype=np.float32), VOCABULARY)

    observations = observe(lazy_scores)

    assert observations.index.tolist() == [0, 0, 0, -1, 1, 1, 1, -1, 2, 2, 2, -1]
    assert observations.weight.tolist() == [3, 3, 3]


def test_a_sentence_that_fills_no_row_is_no_observation():
    """Each row is that of the sentence which covers most of it."""
    features = random_sentences(np.random.default_rng(0), 2)
    features.intervals[:] = [[0.0, 0.4], [0.4, 2.0]]

    observations = observe(LazyScores(features, np.eye(7, 8, dtype=np.float32), VOCABULARY))

    assert observations.sources.tolist() == [1]


def test_of_scores_without_vectors_each_observed_row_is_an_observation():
    observations = observe(
        make_scores(np.ones((4, 7)), [True, False, True, True], vocabulary=VOCABULARY)
    )

    assert observations.index.tolist() == [0, -1, 1, 2]
    assert observations.sources.tolist() == [0, 2, 3]
    assert observations.vectors() is None


def test_vectors_are_those_of_what_was_said():
    for seed in range(10):
        lazy_scores = random_lazy(np.random.default_rng(seed), VOCABULARY, parts=6, titles=False)

        observations = observe(lazy_scores)

        for row in np.flatnonzero(lazy_scores.observed):
            own = observations.vectors()[observations.index[row]]
            assert np.array_equal(own, lazy_scores.vectors[lazy_scores.part[row]])


def test_some_rows_are_observed_as_if_there_were_no_others():
    for seed in range(30):
        scores = some_scores(seed)
        middle = len(scores) // 2

        observations = observe(scores, slice(middle, None))

        whole = observe(scores)
        rows = observations.index.tolist()
        assert len(rows) == len(scores) - middle
        for row, sentence in enumerate(rows):
            said = whole.index[middle + row]
            assert (sentence < 0) == (said < 0)
            assert sentence < 0 or observations.sources[sentence] == whole.sources[said]
        assert observations.weight.tolist() == [
            rows.count(one) for one in range(len(observations.sources))
        ]


@pytest.mark.parametrize("rows", [0, 1, 6])
def test_where_nothing_is_said_there_is_no_observation(rows):
    observations = observe(make_scores(np.ones((rows, 7)), [False] * rows, vocabulary=VOCABULARY))

    assert observations.index.tolist() == [-1] * rows
    assert len(observations.sources) == len(observations.weight) == 0


# --- Similarity to one task


def slow_target(scores, task, keystep):
    """The vector of a keystep within a task, or of its title (-1), where there are such."""
    if scores.tasks is not None and task in scores.tasks.blocks:
        block = range(len(scores.tasks.keysteps))[scores.tasks.blocks[task]]
        [place] = [n for n in block if scores.tasks.keysteps[n] == keystep]
        return scores.tasks.vectors[place]
    return scores.keysteps[keystep]


def slow_similarity(scores, row, task, keystep):
    """How close one row is to one keystep of a task."""
    if not isinstance(scores, LazyScores):
        return float(scores.values[row, keystep])
    if keystep >= 0 and not scores.allowed[keystep]:
        return -math.inf
    said = scores.vectors[scores.part[row]]
    return float(said @ slow_target(scores, task, keystep))


def has_title(scores, task):
    return (
        isinstance(scores, LazyScores) and scores.tasks is not None and task in scores.tasks.blocks
    )


def test_similarity_is_that_of_each_row_to_each_keystep_of_the_task():
    for seed in range(30):
        scores = some_scores(seed)
        observations = observe(scores)
        for task, members in LISTED.items():
            found = observations.similarity(task, members)

            for row in np.flatnonzero(scores.observed):
                expected = [slow_similarity(scores, row, task, k) for k in members]
                assert found.keysteps[observations.index[row]] == pytest.approx(expected, abs=1e-6)


def test_similarity_to_the_title_is_known_where_there_is_one():
    for seed in range(30):
        scores = some_scores(seed)
        observations = observe(scores)
        for task, members in LISTED.items():
            found = observations.similarity(task, members).title

            assert (found is not None) == has_title(scores, task)
            for row in np.flatnonzero(scores.observed if found is not None else []):
                expected = slow_similarity(scores, row, task, -1)
                assert found[observations.index[row]] == pytest.approx(expected, abs=1e-6)


# --- Evidence for all tasks


def slow_mean(values):
    possible = [value for value in values if value > -math.inf]
    return sum(possible) / len(possible) if possible else -math.inf


def slow_evidence(scores, task, members):
    """Closest keystep of a row in the mean, and closest row of a keystep in the mean."""
    rows = np.flatnonzero(scores.observed).tolist()
    close = [[slow_similarity(scores, row, task, k) for row in rows] for k in members]
    if max(max(one) for one in close) == -math.inf:
        return -math.inf
    if has_title(scores, task):
        close.append([slow_similarity(scores, row, task, -1) for row in rows])
    explained = slow_mean([max(of_row) for of_row in zip(*close, strict=True)])
    return explained + slow_mean([max(one) for one in close])


def test_evidence_is_how_list_and_video_explain_each_other():
    """With and without vectors, titles and keysteps that may not be."""
    for seed in range(90):
        scores = some_scores(seed)

        found = observe(scores).task_similarity(LISTED)

        expected = [slow_evidence(scores, task, members) for task, members in LISTED.items()]
        assert found == pytest.approx(expected, abs=1e-5)


def test_a_row_on_which_no_keystep_of_a_task_may_be_says_nothing_about_it():
    values = np.full((2, 7), -np.inf)
    values[0, [0, 3]], values[1, 0] = (0.5, 0.75), 0.25

    found = observe(make_scores(values, vocabulary=VOCABULARY)).task_similarity(LISTED)

    assert found[:2] == pytest.approx([(0.5 + 0.25) / 2 + 0.5, 0.75 + 0.75])


def test_evidence_of_some_rows_is_that_of_a_video_of_these():
    for seed in range(30):
        scores = random_dense(np.random.default_rng(seed), 12)
        scores.observed[5] = True

        found = observe(scores, slice(4, 9)).task_similarity(LISTED)

        cut = Scores("cut", scores.values[4:9], scores.observed[4:9], VOCABULARY)
        assert found.tolist() == observe(cut).task_similarity(LISTED).tolist()


def test_where_there_are_no_titles_lazy_scores_and_dense_scores_give_the_same_evidence():
    for seed in range(30):
        lazy_scores = random_lazy(np.random.default_rng(seed), VOCABULARY, parts=5, titles=False)
        dense = lazy_scores.with_values(lazy_scores.values)

        one, other = (observe(scores).task_similarity(LISTED) for scores in (lazy_scores, dense))

        assert one == pytest.approx(other, abs=1e-6)


@pytest.mark.parametrize("piece", [1, 20, 50])
def test_pieces_change_nothing(piece, monkeypatch):
    whole = [observe(some_scores(seed)).task_similarity(LISTED) for seed in range(24)]
    monkeypatch.setattr("stepgraph.scoring.lazy._PIECE", piece)

    for seed, expected in enumerate(whole):
        assert observe(some_scores(seed)).task_similarity(LISTED) == pytest.approx(
            expected, abs=1e-5
        )


def test_evidence_of_tasks_in_another_order_is_the_same():
    turned = dict([*LISTED.items()][::-1])
    for seed in range(24):
        observations = observe(some_scores(seed))

        found = dict(zip(turned, observations.task_similarity(turned).tolist(), strict=True))

        expected = dict(zip(LISTED, observations.task_similarity(LISTED).tolist(), strict=True))
        assert found == pytest.approx(expected, abs=1e-5)


def test_evidence_of_a_task_does_not_depend_on_the_other_tasks():
    for seed in range(24):
        observations = observe(some_scores(seed))

        alone = [
            observations.task_similarity({task: members})[0] for task, members in LISTED.items()
        ]

        assert alone == pytest.approx(observations.task_similarity(LISTED).tolist(), abs=1e-5)


def test_a_title_that_is_spoken_of_speaks_for_its_task():
    """What is said is close to the title of tea alone."""
    tasks = TaskVectors(
        {"tea": slice(0, 4), "soup": slice(4, 8), "boil": slice(8, 10)},
        np.zeros((10, 8), np.float32),
        np.array([0, 1, 2, -1, 4, 3, 5, -1, 1, -1]),
    )
    tasks.vectors[3, 0] = 1.0
    lazy_scores = LazyScores(
        sentences(np.eye(1, 8)), np.zeros((7, 8), np.float32), VOCABULARY, tasks=tasks
    )

    assert observe(lazy_scores).task_similarity(TASKS) == pytest.approx([1 + 1 / 4, 0, 0])


def test_the_title_of_a_task_whose_keysteps_may_not_be_does_not_speak_for_it():
    rng = np.random.default_rng(0)
    lazy_scores = random_lazy(rng, VOCABULARY, parts=4, titles=True).restrict([3])

    found = observe(lazy_scores).task_similarity(LISTED)

    assert np.isneginf(found).tolist() == [True, False, True, True]


def test_a_task_without_keysteps_does_not_disturb_the_titles_of_the_others():
    named = [*TASKS.items()]
    for place in range(4):
        vocabulary = Vocabulary(
            VOCABULARY.keysteps, dict([*named[:place], ("nothing", ()), *named[place:]])
        )
        rng = np.random.default_rng(0)
        features, own = random_sentences(rng, 6), random_unit(rng, 7)
        tasks = random_task_vectors(rng, vocabulary)
        lazy_scores = LazyScores(features, own, vocabulary, tasks=tasks)

        found = observe(lazy_scores).task_similarity(listed_tasks(vocabulary))

        expected = [slow_evidence(lazy_scores, task, members) for task, members in LISTED.items()]
        assert found == pytest.approx(expected, abs=1e-5)


def test_one_row_of_one_task_of_one_keystep_counts_twice():
    scores = make_scores([[0.25, 0.5]])

    assert observe(scores).task_similarity({"task": (1,)}).tolist() == [1.0]


# --- Labels from observations


def test_lazy_scores_are_labelled_as_the_same_scores_at_once_where_there_are_no_titles():
    graph = make_graph(np.eye(7, k=1, dtype=np.int64), VOCABULARY)
    for seed in range(20):
        lazy_scores = random_lazy(np.random.default_rng(seed), VOCABULARY, parts=9, titles=False)

        one, other = (
            TaskMarkov().decode(scores, graph)
            for scores in (lazy_scores, lazy_scores.with_values(lazy_scores.values))
        )

        assert one.keysteps.tolist() == other.keysteps.tolist()
        assert one.confidence == pytest.approx(other.confidence, abs=1e-5)
        assert one.tasks == pytest.approx(other.tasks, abs=1e-5)


def test_a_keystep_that_may_not_be_is_never_predicted_from_vectors_of_tasks():
    graph = make_graph(np.eye(7, k=1, dtype=np.int64), VOCABULARY)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        allowed = rng.choice(7, int(rng.integers(0, 6)), replace=False).tolist()
        scores = random_lazy(rng, VOCABULARY, parts=9, titles=True).restrict(allowed)

        labels = TaskMarkov().decode(scores, graph)

        assert set(labels.keysteps.tolist()) <= {BACKGROUND, *allowed}
        assert np.isfinite(labels.confidence).all()


def slow_background(scores, task, members, background):
    """How probable it is that a row is introduction or farewell, one row at a time."""
    rows, observed = len(scores), np.flatnonzero(scores.observed).tolist()
    ahead = {
        row: slow_similarity(scores, row, task, -1)
        - max(slow_similarity(scores, row, task, k) for k in members)
        for row in observed
    }
    mean = sum(ahead.values()) / len(ahead)
    spread = math.sqrt(sum((one - mean) ** 2 for one in ahead.values()) / len(ahead))
    talk = []
    for row in range(rows):
        end = min(row + 0.5, rows - row - 0.5) / rows
        odds = 1 / (math.exp(2 * end / background) - 1)
        odds *= math.exp((ahead[row] - mean) / spread) if row in ahead else 1.0
        talk.append(odds / (1 + odds))
    return talk


def test_rows_are_left_empty_as_far_from_the_middle_and_as_close_to_the_title_as_they_are():
    """Confidence of a row left empty is how probable that is."""
    decoder = TaskMarkov(
        background=1.0, change_cost=0.0, background_slope=1, background_intercept=0
    )
    vocabulary = Vocabulary(keysteps(3).keysteps, {"tea": (0, 1, 2)})
    graph, empty = make_graph(np.eye(3, k=1, dtype=np.int64), vocabulary), 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        scores = random_lazy(rng, vocabulary, parts=6, titles=True)

        labels = decoder.decode(scores, graph)

        talk = slow_background(scores, "tea", (0, 1, 2), 1.0)
        for row in np.flatnonzero(labels.keysteps == BACKGROUND):
            assert labels.confidence[row] == pytest.approx(talk[row], abs=1e-5)
            empty += 1
    assert empty > 50


def test_a_row_closer_to_the_title_than_to_any_keystep_is_rather_left_empty():
    """Title and keysteps are directions; the first rows are of the one or of the other."""
    vocabulary = Vocabulary(keysteps(2).keysteps, {"tea": (0, 1)})
    tasks = TaskVectors({"tea": slice(0, 3)}, np.eye(3, dtype=np.float32), np.array([0, 1, -1]))
    graph = make_graph(np.zeros((2, 2)), vocabulary)
    empty = {}
    for first in (2, 0):
        said = np.eye(3)[[first] * 2 + [0] * 8 + [1] * 8 + [first] * 2]
        lazy_scores = LazyScores(
            sentences(said, pause=0), np.eye(2, 3, dtype=np.float32), vocabulary, tasks=tasks
        )
        labels = TaskMarkov().decode(lazy_scores, graph).keysteps
        empty[first] = int((labels == BACKGROUND).sum())

    assert empty[2] > empty[0]
