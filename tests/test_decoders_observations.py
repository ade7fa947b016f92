"""What is said, held against tasks: moments, closeness and evidence against loops."""

import math

import numpy as np
import pytest

from reference import keysteps, make_graph, make_scores
from spoken import random_products, random_sentences, random_task_vectors, random_unit, sentences
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
        scores = random_products(
            rng, VOCABULARY, parts=int(rng.integers(1, 9)), titles=seed % 3 == 2
        )
    allowed = np.flatnonzero(rng.random(7) < 0.6).tolist()
    return scores.restrict(allowed) if seed % 2 else scores


# --- Moments


def test_every_observed_row_shows_one_moment_and_every_other_none():
    for seed in range(30):
        scores = some_scores(seed)

        heard = observe(scores)

        assert (heard.index >= 0).tolist() == scores.observed.tolist()
        assert sorted({*heard.index.tolist()} - {-1}) == list(range(len(heard.said)))


def test_a_moment_weighs_as_many_rows_as_it_lasts():
    for seed in range(30):
        heard = observe(some_scores(seed))

        rows = heard.index.tolist()
        assert heard.weight.tolist() == [rows.count(one) for one in range(len(heard.said))]


def test_a_sentence_is_one_moment_however_long_it_lasts():
    products = LazyScores(sentences(np.eye(3, 8)), np.eye(7, 8, dtype=np.float32), VOCABULARY)

    heard = observe(products)

    assert heard.index.tolist() == [0, 0, 0, -1, 1, 1, 1, -1, 2, 2, 2, -1]
    assert heard.weight.tolist() == [3, 3, 3]


def test_a_sentence_that_fills_no_row_is_no_moment():
    """Each row is that of the sentence which covers most of it."""
    features = random_sentences(np.random.default_rng(0), 2)
    features.intervals[:] = [[0.0, 0.4], [0.4, 2.0]]

    heard = observe(LazyScores(features, np.eye(7, 8, dtype=np.float32), VOCABULARY))

    assert heard.said.tolist() == [1]


def test_of_scores_without_vectors_each_observed_row_is_a_moment():
    heard = observe(make_scores(np.ones((4, 7)), [True, False, True, True], vocabulary=VOCABULARY))

    assert heard.index.tolist() == [0, -1, 1, 2]
    assert heard.said.tolist() == [0, 2, 3]
    assert heard.vectors() is None


def test_vectors_are_those_of_what_was_said():
    for seed in range(10):
        products = random_products(np.random.default_rng(seed), VOCABULARY, parts=6, titles=False)

        heard = observe(products)

        for row in np.flatnonzero(products.observed):
            own = heard.vectors()[heard.index[row]]
            assert np.array_equal(own, products.vectors[products.part[row]])


def test_some_rows_are_heard_as_if_there_were_no_others():
    for seed in range(30):
        scores = some_scores(seed)
        middle = len(scores) // 2

        heard = observe(scores, slice(middle, None))

        whole = observe(scores)
        rows = heard.index.tolist()
        assert len(rows) == len(scores) - middle
        for row, moment in enumerate(rows):
            said = whole.index[middle + row]
            assert (moment < 0) == (said < 0)
            assert moment < 0 or heard.said[moment] == whole.said[said]
        assert heard.weight.tolist() == [rows.count(one) for one in range(len(heard.said))]


@pytest.mark.parametrize("rows", [0, 1, 6])
def test_where_nothing_is_said_there_is_no_moment(rows):
    heard = observe(make_scores(np.ones((rows, 7)), [False] * rows, vocabulary=VOCABULARY))

    assert heard.index.tolist() == [-1] * rows
    assert len(heard.said) == len(heard.weight) == 0


# --- Closeness to one task


def slow_target(scores, task, keystep):
    """The vector of a keystep within a task, or of its title (-1), where there are such."""
    if scores.tasks is not None and task in scores.tasks.blocks:
        block = range(len(scores.tasks.keysteps))[scores.tasks.blocks[task]]
        [place] = [n for n in block if scores.tasks.keysteps[n] == keystep]
        return scores.tasks.vectors[place]
    return scores.keysteps[keystep]


def slow_closeness(scores, row, task, keystep):
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


def test_closeness_is_that_of_each_row_to_each_keystep_of_the_task():
    for seed in range(30):
        scores = some_scores(seed)
        heard = observe(scores)
        for task, members in LISTED.items():
            found = heard.similarity(task, members)

            for row in np.flatnonzero(scores.observed):
                expected = [slow_closeness(scores, row, task, k) for k in members]
                assert found.keysteps[heard.index[row]] == pytest.approx(expected, abs=1e-6)


def test_closeness_to_the_title_is_known_where_there_is_one():
    for seed in range(30):
        scores = some_scores(seed)
        heard = observe(scores)
        for task, members in LISTED.items():
            found = heard.similarity(task, members).title

            assert (found is not None) == has_title(scores, task)
            for row in np.flatnonzero(scores.observed if found is not None else []):
                expected = slow_closeness(scores, row, task, -1)
                assert found[heard.index[row]] == pytest.approx(expected, abs=1e-6)


# --- Evidence for all tasks


def slow_mean(values):
    possible = [value for value in values if value > -math.inf]
    return sum(possible) / len(possible) if possible else -math.inf


def slow_evidence(scores, task, members):
    """Closest keystep of a row in the mean, and closest row of a keystep in the mean."""
    rows = np.flatnonzero(scores.observed).tolist()
    close = [[slow_closeness(scores, row, task, k) for row in rows] for k in members]
    if max(max(one) for one in close) == -math.inf:
        return -math.inf
    if has_title(scores, task):
        close.append([slow_closeness(scores, row, task, -1) for row in rows])
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


def test_where_there_are_no_titles_products_and_dense_scores_give_the_same_evidence():
    for seed in range(30):
        products = random_products(np.random.default_rng(seed), VOCABULARY, parts=5, titles=False)
        dense = products.with_values(products.values)

        one, other = (observe(scores).task_similarity(LISTED) for scores in (products, dense))

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
        heard = observe(some_scores(seed))

        found = dict(zip(turned, heard.task_similarity(turned).tolist(), strict=True))

        expected = dict(zip(LISTED, heard.task_similarity(LISTED).tolist(), strict=True))
        assert found == pytest.approx(expected, abs=1e-5)


def test_evidence_of_a_task_does_not_depend_on_the_other_tasks():
    for seed in range(24):
        heard = observe(some_scores(seed))

        alone = [heard.task_similarity({task: members})[0] for task, members in LISTED.items()]

        assert alone == pytest.approx(heard.task_similarity(LISTED).tolist(), abs=1e-5)


def test_a_title_that_is_spoken_of_speaks_for_its_task():
    """What is said is close to the title of tea alone."""
    tasks = TaskVectors(
        {"tea": slice(0, 4), "soup": slice(4, 8), "boil": slice(8, 10)},
        np.zeros((10, 8), np.float32),
        np.array([0, 1, 2, -1, 4, 3, 5, -1, 1, -1]),
    )
    tasks.vectors[3, 0] = 1.0
    products = LazyScores(
        sentences(np.eye(1, 8)), np.zeros((7, 8), np.float32), VOCABULARY, tasks=tasks
    )

    assert observe(products).task_similarity(TASKS) == pytest.approx([1 + 1 / 4, 0, 0])


def test_the_title_of_a_task_whose_keysteps_may_not_be_does_not_speak_for_it():
    rng = np.random.default_rng(0)
    products = random_products(rng, VOCABULARY, parts=4, titles=True).restrict([3])

    found = observe(products).task_similarity(LISTED)

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
        products = LazyScores(features, own, vocabulary, tasks=tasks)

        found = observe(products).task_similarity(listed_tasks(vocabulary))

        expected = [slow_evidence(products, task, members) for task, members in LISTED.items()]
        assert found == pytest.approx(expected, abs=1e-5)


def test_one_row_of_one_task_of_one_keystep_counts_twice():
    scores = make_scores([[0.25, 0.5]])

    assert observe(scores).task_similarity({"task": (1,)}).tolist() == [1.0]


# --- Labels from what was heard


def test_products_are_labelled_as_the_same_scores_at_once_where_there_are_no_titles():
    graph = make_graph(np.eye(7, k=1, dtype=np.int64), VOCABULARY)
    for seed in range(20):
        products = random_products(np.random.default_rng(seed), VOCABULARY, parts=9, titles=False)

        one, other = (
            TaskMarkov().decode(scores, graph)
            for scores in (products, products.with_values(products.values))
        )

        assert one.keysteps.tolist() == other.keysteps.tolist()
        assert one.confidence == pytest.approx(other.confidence, abs=1e-5)
        assert one.tasks == pytest.approx(other.tasks, abs=1e-5)


def test_a_keystep_that_may_not_be_is_never_predicted_from_vectors_of_tasks():
    graph = make_graph(np.eye(7, k=1, dtype=np.int64), VOCABULARY)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        allowed = rng.choice(7, int(rng.integers(0, 6)), replace=False).tolist()
        scores = random_products(rng, VOCABULARY, parts=9, titles=True).restrict(allowed)

        labels = TaskMarkov().decode(scores, graph)

        assert set(labels.keysteps.tolist()) <= {BACKGROUND, *allowed}
        assert np.isfinite(labels.confidence).all()


def slow_talk(scores, task, members, background):
    """How probable it is that a row is introduction or farewell, one row at a time."""
    rows, heard = len(scores), np.flatnonzero(scores.observed).tolist()
    ahead = {
        row: slow_closeness(scores, row, task, -1)
        - max(slow_closeness(scores, row, task, k) for k in members)
        for row in heard
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
        scores = random_products(rng, vocabulary, parts=6, titles=True)

        labels = decoder.decode(scores, graph)

        talk = slow_talk(scores, "tea", (0, 1, 2), 1.0)
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
        products = LazyScores(
            sentences(said, pause=0), np.eye(2, 3, dtype=np.float32), vocabulary, tasks=tasks
        )
        labels = TaskMarkov().decode(products, graph).keysteps
        empty[first] = int((labels == BACKGROUND).sum())

    assert empty[2] > empty[0]
