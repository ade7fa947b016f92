"""Which task a video shows: against loops, against every sequence, and at the edges."""

import math
from itertools import pairwise, product

import numpy as np
import pytest

from reference import keysteps, make_graph, make_scores
from stepgraph.core import Vocabulary
from stepgraph.decoders.observations import observe
from stepgraph.decoders.tasks import (
    cheapest_changes,
    listed_tasks,
    task_log_evidence,
    task_posterior,
    task_segments,
    tasks_of,
)
from stepgraph.graph import TIMING_BINS
from stepgraph.graph.parameters import RecognizerParameters

# Two tasks of three keysteps and one of one, which shares its keystep with the first.
TASKS = {"tea": (0, 1, 2), "soup": (3, 4, 5), "boil": (1,)}


def random_scored(rng, rows, *, low=0.0, high=0.8, spoken=0.7):
    return make_scores(rng.uniform(low, high, (rows, 6)), rng.random(rows) < spoken)


def confident_scores(keysteps_of_rows, *, size=6, high=0.8, low=0.1):
    """One keystep of each row scores well, all others badly."""
    values = np.full((len(keysteps_of_rows), size), low)
    values[np.arange(len(values)), keysteps_of_rows] = high
    return make_scores(values)


def posterior_of(scores, tasks=TASKS, parameters=None):
    return task_posterior(tasks, task_log_evidence(observe(scores), tasks), parameters)


def segments_of(scores, tasks=TASKS):
    observed = observe(scores)
    found = task_segments(observed, tasks, task_log_evidence(observed, tasks))
    return [(rows.start, rows.stop) for rows in found]


def parameters_of(evidence, tasks=TASKS):
    """Habits of a corpus in whose videos so much speaks for each task."""
    sampled = {f"{n}": np.array(one, np.float32) for n, one in enumerate(evidence)}
    return RecognizerParameters(tuple(tasks), sampled, {}, {}, {})


# --- What the tasks are


@pytest.fixture
def many(monkeypatch):
    """Make a handful of keysteps without tasks count as too many for one model."""
    monkeypatch.setattr("stepgraph.decoders.tasks._ONE_TASK", 1)


def test_keysteps_without_tasks_are_one_task():
    assert tasks_of(two_communities()) == {"everything": (0, 1, 2, 3, 4, 5)}


def test_tasks_are_those_of_the_vocabulary():
    graph = make_graph(np.eye(6, k=1, dtype=np.int64), Vocabulary(keysteps(6).keysteps, TASKS))

    assert tasks_of(graph) == TASKS


def test_keysteps_under_no_heading_are_a_task_of_their_own():
    vocabulary = Vocabulary(keysteps(6).keysteps, {"tea": (1, 0), "soup": (4,)})

    assert listed_tasks(vocabulary) == {"tea": (1, 0), "soup": (4,), "other keysteps": (2, 3, 5)}


def test_tasks_without_keysteps_are_not_listed():
    vocabulary = Vocabulary(keysteps(3).keysteps, {"tea": (), "soup": (0, 1, 2)})

    assert listed_tasks(vocabulary) == {"soup": (0, 1, 2)}


def two_communities(**fields):
    """Keysteps 0, 2 and 4 follow one another, and so do 1, 3 and 5; nothing goes between."""
    counts = np.zeros((6, 6), np.int64)
    for first, second in [(4, 0), (0, 2), (1, 5), (5, 3)]:
        counts[first, second] = 5
    return make_graph(counts, **fields)


def timing_of(order, size=6):
    timing = np.zeros((size, TIMING_BINS), np.int64)
    for place, keystep in enumerate(order):
        timing[keystep, 3 * place : 3 * place + 2] = 7
    return timing


def test_without_tasks_they_are_the_communities_in_the_order_of_their_timing(many):
    graph = two_communities(timing=timing_of([4, 1, 0, 5, 2, 3]))

    assert tasks_of(graph) == {
        "around 'keystep 4'": (4, 0, 2),
        "around 'keystep 1'": (1, 5, 3),
    }


def test_keysteps_that_were_never_timed_come_last_in_their_community(many):
    timing = timing_of([4, 1, 0, 5, 2, 3])
    timing[4] = 0

    assert (0, 2, 4) in tasks_of(two_communities(timing=timing)).values()


def test_communities_without_timing_keep_the_order_of_the_vocabulary(many):
    assert set(tasks_of(two_communities()).values()) == {(0, 2, 4), (1, 3, 5)}


@pytest.mark.parametrize("counts", [np.zeros((3, 3), np.int64), 9 * np.eye(3, dtype=np.int64)])
def test_without_tasks_and_transitions_everything_is_one_task(counts):
    assert tasks_of(make_graph(counts)) == {"everything": (0, 1, 2)}


def test_a_community_is_that_of_the_transitions_of_both_directions(many):
    """0 and 1, and 2 and 3, are neighbours 101 times each, and all others 20 times."""
    counts = np.zeros((4, 4), np.int64)
    counts[0, 1] = counts[2, 3] = 100
    counts[1, 0] = counts[3, 2] = 1
    counts[0, 2] = counts[1, 3] = 20

    assert set(tasks_of(make_graph(counts)).values()) == {(0, 1), (2, 3)}


def test_tasks_found_in_a_graph_do_not_alter_it():
    graph = two_communities()

    tasks_of(graph)

    assert graph.counts.sum() == 20


# --- Evidence


def slow_evidence(scores, tasks):
    """Closest keystep of a row, in the mean; closest row of a keystep, in the mean; in nats."""
    observed = [
        row for row, seen in zip(scores.values.tolist(), scores.observed, strict=True) if seen
    ]
    found = []
    for members in tasks.values():
        rows = [max(row[k] for k in members) for row in observed]
        ever = [max(row[k] for row in observed) for k in members]
        found.append((sum(rows) / len(rows) + sum(ever) / len(ever)) / 0.03)
    return found


def test_evidence_is_how_list_and_video_explain_each_other():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        scores = random_scored(rng, int(rng.integers(1, 12)), low=-0.5)
        scores.observed[0] = True

        found = task_log_evidence(observe(scores), TASKS)

        assert found == pytest.approx(slow_evidence(scores, TASKS), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_a_video_without_speech_speaks_for_no_task(rows):
    scores = make_scores(np.ones((rows, 6)), [False] * rows)

    assert task_log_evidence(observe(scores), TASKS).tolist() == [-math.inf] * 3


def test_large_scores_do_not_overflow():
    scores = make_scores([[1e6, 0, 0, 0, 0, 0], [-1e6] * 6])

    assert np.isfinite(task_log_evidence(observe(scores), TASKS)).all()


def test_a_task_whose_keysteps_may_not_be_has_no_evidence():
    scores = confident_scores([0, 1]).restrict([3, 4, 5])

    assert np.isneginf(task_log_evidence(observe(scores), TASKS)).tolist() == [True, False, True]


@pytest.mark.parametrize("order", [1, -1])
def test_neither_a_short_nor_a_long_list_is_preferred_where_both_match_equally(order):
    """Each row matches one keystep of either list equally well, and each keystep some row."""
    tasks = {"short": (0, 1, 2), "long": tuple(range(3, 14))}
    values = np.full((33, 14), 0.1)
    for row in range(33):
        values[row, [row % 3, 3 + row % 11]] = 0.7

    posterior = posterior_of(make_scores(values), dict([*tasks.items()][::order]))

    assert posterior["short"] == pytest.approx(posterior["long"], rel=1e-3)


@pytest.mark.parametrize("match", [0.0, 0.4])
def test_noise_prefers_neither_a_short_nor_a_long_list_by_much(match):
    """Alone it prefers the long one, on matches the short one: by 1.2 and 1.0 nats were seen."""
    tasks = {"short": (0, 1, 2), "long": tuple(range(3, 14))}
    ahead = []
    for seed in range(100):
        values = np.random.default_rng(seed).normal(0.15, 0.05, (66, 14))
        for row in range(66):
            values[row, [row % 3, 3 + row % 11]] += match
        short, long = task_log_evidence(observe(make_scores(values)), tasks)
        ahead.append(short - long)

    assert abs(np.mean(ahead)) < 1.5


# --- The task of a whole video


def test_probabilities_of_tasks_add_up_to_at_most_one_the_best_first():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        scores = random_scored(rng, int(rng.integers(0, 40)), high=rng.uniform(0.2, 1))

        posterior = posterior_of(scores)

        values = list(posterior.values())
        assert set(posterior) == set(TASKS)
        assert all(0 <= value <= 1 for value in values)
        assert sum(values) <= 1 + 1e-9
        assert values == sorted(values, reverse=True)


def test_the_task_whose_keysteps_are_observed_is_probable():
    posterior = posterior_of(confident_scores([3, 3, 4, 4, 5, 5]))

    assert next(iter(posterior)) == "soup"
    assert posterior["soup"] > 0.95 * sum(posterior.values())


def test_a_row_observed_once_does_not_outvote_a_video():
    posterior = posterior_of(confident_scores([0] * 10 + [3] + [1] * 10 + [2] * 10))

    assert next(iter(posterior)) == "tea"


def corpus(rng, videos=40):
    """One task of each video is spoken for far more than the others."""
    evidence = rng.normal(10, 1, (videos, 3))
    evidence[np.arange(videos), rng.integers(0, 3, videos)] += 10
    return parameters_of(evidence)


def test_a_video_for_which_little_speaks_is_probably_about_no_task_of_the_corpus():
    parameters = corpus(np.random.default_rng(0))

    related, doubtful, unrelated = (
        sum(task_posterior(TASKS, np.array([most, 5.0, 5.0]), parameters).values())
        for most in (20.0, 14.0, 8.0)
    )

    assert related > 0.99
    assert related > doubtful > unrelated
    assert unrelated < 0.01


@pytest.mark.parametrize("few", [0, 1, 19])
def test_few_videos_say_nothing_about_what_is_related(few):
    parameters = corpus(np.random.default_rng(0), few)

    for most in (20.0, 8.0):
        posterior = task_posterior(TASKS, np.array([most, 5.0, 5.0]), parameters)

        assert sum(posterior.values()) == pytest.approx(0.9)


def test_more_evidence_never_makes_a_video_less_related():
    parameters = corpus(np.random.default_rng(1))

    related = [
        sum(task_posterior(TASKS, np.array([most, 0.0, 0.0]), parameters).values())
        for most in np.linspace(0, 40, 41)
    ]

    assert (np.diff(related) >= -1e-12).all()


def test_a_task_that_is_common_in_the_corpus_is_more_probable():
    evidence = np.array([3.0, 3.0, 0.0])
    common = parameters_of([[20.0, 0, 0]] * 15 + [[0.0, 20, 0]])

    posterior = task_posterior(TASKS, evidence, common)

    assert posterior["tea"] > 5 * posterior["soup"]


def test_parameters_of_other_tasks_say_nothing():
    evidence = np.array([3.0, 3.0, 0.0])
    others = parameters_of([[20.0, 0, 0]] * 30, ["a", "b", "c"])

    assert task_posterior(TASKS, evidence, others) == task_posterior(TASKS, evidence, None)


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_a_video_without_speech_is_about_no_task(rows):
    posterior = posterior_of(make_scores(np.ones((rows, 6)), [False] * rows))

    assert posterior == dict.fromkeys(TASKS, 0.0)


def test_silence_does_not_alter_the_task():
    observed = confident_scores([0, 1, 2, 3])
    values = np.repeat(observed.values, 3, axis=0)
    with_silence = make_scores(values, [True, False, False] * 4)

    assert posterior_of(with_silence) == pytest.approx(posterior_of(observed))


def test_equal_evidence_is_shared_equally():
    posterior = posterior_of(confident_scores([0, 3] * 10), {"tea": (0, 1, 2), "soup": (3, 4, 5)})

    assert posterior["tea"] == pytest.approx(posterior["soup"], rel=1e-4)


@pytest.mark.parametrize("worst", [-1.0, -30.0, -1e6])
def test_scores_on_any_scale_have_a_probability(worst):
    posterior = posterior_of(make_scores(np.full((5, 6), worst)))

    assert sum(posterior.values()) == pytest.approx(0.9)


def test_a_task_that_may_not_be_has_no_probability():
    posterior = posterior_of(confident_scores([0, 1]).restrict([3, 4, 5]))

    assert (posterior["tea"], posterior["boil"]) == (0, 0)
    assert posterior["soup"] > 0


def test_where_no_task_may_be_all_have_no_probability():
    assert posterior_of(confident_scores([0, 1]).restrict([])) == dict.fromkeys(TASKS, 0.0)


# --- Changes that cost something


def sequence_worth(sequence, worth, cost):
    changes = sum(first != second for first, second in pairwise(sequence))
    return sum(worth[t, z] for t, z in enumerate(sequence)) - cost * changes


def test_changes_are_those_of_the_best_of_all_sequences():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        rows, columns = int(rng.integers(1, 7)), int(rng.integers(1, 4))
        worth = -rng.exponential(2, (rows, columns))
        worth[rng.random(rows) < 0.2] = 0  # as where nothing is said
        cost = float(rng.choice([0.0, 0.5, 2, 4, 100]))

        found = cheapest_changes(worth, cost)

        every = product(range(columns), repeat=rows)
        best = max(sequence_worth(one, worth, cost) for one in every)
        assert found.shape == (rows,)
        assert sequence_worth(found.tolist(), worth, cost) == pytest.approx(best)


def test_a_change_that_costs_too_much_never_happens():
    for seed in range(20):
        worth = -np.random.default_rng(seed).exponential(3, (20, 4))

        found = cheapest_changes(worth, 1e9)

        assert set(found.tolist()) == {int(worth.sum(axis=0).argmax())}


def test_changes_that_cost_nothing_follow_every_row():
    worth = -np.random.default_rng(0).exponential(3, (30, 4))

    assert cheapest_changes(worth, 0.0).tolist() == worth.argmax(axis=1).tolist()


def test_no_rows_have_no_sequence():
    found = cheapest_changes(np.zeros((0, 3)), 1.0)

    assert (found.tolist(), found.dtype) == ([], np.int64)


# --- Where a video turns to another task


def test_a_video_of_one_task_stays_one_in_spite_of_a_few_rows_of_another():
    assert segments_of(confident_scores([0] * 40 + [3] * 5 + [1] * 40)) == [(0, 85)]


@pytest.mark.parametrize("border", [25, 60, 105])
def test_two_videos_joined_are_cut_where_they_were_joined(border):
    found = segments_of(confident_scores([0] * border + [3] * (130 - border)))

    assert found == [(0, border), (border, 130)]


def test_rows_without_speech_between_two_tasks_belong_to_one_of_them():
    observed = np.ones(70, bool)
    observed[30:40] = False
    scores = confident_scores([0] * 30 + [2] * 10 + [3] * 30)

    [first, second] = segments_of(make_scores(scores.values, observed))

    assert (first[0], second[1]) == (0, 70)
    assert 30 <= first[1] == second[0] <= 40


def test_segments_follow_one_another_without_gap():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        observed = np.repeat(rng.integers(0, 6, 6), rng.integers(1, 40, 6))
        scores = make_scores(confident_scores(observed).values, rng.random(len(observed)) < 0.8)

        found = segments_of(scores)

        assert (found[0][0], found[-1][1]) == (0, len(observed))
        assert all(first[1] == second[0] for first, second in pairwise(found))


def test_a_segment_is_of_the_closer_task_however_many_keysteps_the_other_has():
    """On the first rows the short list is a little closer, then the long one by much."""
    tasks = {"short": (0, 1, 2), "long": tuple(range(3, 14))}
    values = np.full((460, 14), 0.45)
    values[:400, :3] = 0.5
    values[400:, 3:] = 0.9

    assert segments_of(make_scores(values), tasks) == [(0, 400), (400, 460)]


@pytest.mark.parametrize("rows", [1, 9])
def test_one_task_is_one_segment(rows):
    scores = confident_scores([0] * rows)

    assert segments_of(scores, {"everything": tuple(range(6))}) == [(0, rows)]


@pytest.mark.parametrize("rows", [0, 1, 9])
def test_a_video_without_speech_is_one_segment(rows):
    assert segments_of(make_scores(np.ones((rows, 6)), [False] * rows)) == [(0, rows)]
