"""Which task a video shows: against loops, against every sequence, and at the edges."""

import math
from itertools import pairwise, product

import numpy as np
import pytest

from reference import keysteps, make_graph, make_scores
from stepgraph.core import Vocabulary
from stepgraph.decoders.tasks import (
    SWITCH_COST,
    task_evidence,
    task_posterior,
    task_sequence,
    tasks_of,
)
from stepgraph.graph import TIMING_BINS

# Two tasks of three keysteps and one of one, which shares its keystep with the first.
TASKS = {"tea": (0, 1, 2), "soup": (3, 4, 5), "boil": (1,)}


def random_scored(rng, rows, *, low=0.0, high=0.8, spoken=0.7):
    return make_scores(rng.uniform(low, high, (rows, 6)), rng.random(rows) < spoken)


def clear_scores(keysteps_of_rows, *, size=6, high=0.8, low=0.1):
    """One keystep of each row scores well, all others badly."""
    values = np.full((len(keysteps_of_rows), size), low)
    values[np.arange(len(values)), keysteps_of_rows] = high
    return make_scores(values)


def posterior_of(scores, tasks=TASKS):
    return task_posterior(scores, tasks, task_evidence(scores, tasks, 0.1))


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


def slow_evidence(scores, tasks, temperature):
    rows = []
    for values, observed in zip(scores.values.tolist(), scores.observed, strict=True):
        shares = [math.exp(value / temperature) for value in values]
        within = {task: sum(shares[k] for k in members) for task, members in tasks.items()}
        rows.append(
            [math.log(1e-3 + one / sum(shares)) if observed else 0.0 for one in within.values()]
        )
    return np.array(rows).reshape(len(scores), len(tasks))


def test_evidence_is_the_share_of_each_task_in_each_row():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        scores = random_scored(rng, int(rng.integers(0, 12)), low=-0.5)
        temperature = float(rng.uniform(0.03, 1))

        found = task_evidence(scores, TASKS, temperature)

        assert found == pytest.approx(
            slow_evidence(scores, TASKS, temperature), rel=1e-4, abs=1e-4
        )


def test_rows_without_speech_say_nothing():
    scores = make_scores([[0.9] + [0.1] * 5, [0.9] + [0.1] * 5], [False, True])

    evidence = task_evidence(scores, TASKS, 0.1)

    assert not evidence[0].any()
    assert evidence[1, 0] > -0.1 > -2 > evidence[1, 1]


def test_no_row_speaks_against_a_task_without_limit():
    evidence = task_evidence(clear_scores([0], high=1.0, low=-1.0), TASKS, 0.01)

    assert evidence[0].tolist() == pytest.approx(
        [math.log(1.001), *[math.log(1e-3)] * 2], abs=1e-6
    )


def test_large_scores_do_not_overflow():
    scores = make_scores([[1e6, 0, 0, 0, 0, 0], [-1e6] * 6])

    assert np.isfinite(task_evidence(scores, TASKS, 0.001)).all()


def test_a_keystep_that_may_not_be_speaks_for_no_task():
    scores = clear_scores([0, 1]).restrict([3, 4, 5])

    evidence = task_evidence(scores, TASKS, 0.1)

    assert evidence[:, 1] == pytest.approx(math.log(1.001), abs=1e-6)
    assert evidence[:, 0] == pytest.approx(math.log(1e-3))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_task_without_keysteps_has_no_evidence_and_harms_no_other(place):
    sound = {"tea": (0, 1, 2), "soup": (3, 4, 5)}
    named = [*sound.items()]
    named.insert(place, ("nothing", ()))
    scores = clear_scores([0, 3])

    evidence = task_evidence(scores, dict(named), 0.1)

    assert evidence[:, place] == pytest.approx(math.log(1e-3))
    others = np.delete(evidence, place, axis=1)
    assert others == pytest.approx(task_evidence(scores, sound, 0.1))


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


def test_the_task_whose_keysteps_are_heard_is_probable():
    posterior = posterior_of(clear_scores([3, 3, 4, 4, 5, 5]))

    assert next(iter(posterior)) == "soup"
    assert posterior["soup"] > 0.95


def test_a_row_heard_once_does_not_outvote_a_video():
    posterior = posterior_of(clear_scores([0] * 10 + [3] + [1] * 10 + [2] * 10))

    assert next(iter(posterior)) == "tea"


def test_a_video_that_scores_low_is_about_no_task():
    related = sum(posterior_of(clear_scores([0, 1, 2] * 10, high=0.8, low=0.1)).values())
    unrelated = sum(posterior_of(clear_scores([0, 1, 2] * 10, high=0.25, low=0.1)).values())

    assert related > 0.99
    assert unrelated < 0.01


def test_better_scores_never_make_a_video_less_related():
    highs = np.linspace(0.1, 1, 19)

    related = [sum(posterior_of(clear_scores([0] * 9, high=high)).values()) for high in highs]

    assert related == sorted(related)


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_a_video_without_speech_is_about_no_task(rows):
    posterior = posterior_of(make_scores(np.ones((rows, 6)), [False] * rows))

    assert posterior == dict.fromkeys(TASKS, 0.0)


def test_silence_does_not_alter_the_task():
    heard = clear_scores([0, 1, 2, 3])
    values = np.repeat(heard.values, 3, axis=0)
    with_silence = make_scores(values, [True, False, False] * 4)

    assert posterior_of(with_silence) == pytest.approx(posterior_of(heard))


def test_equal_evidence_is_shared_equally():
    posterior = posterior_of(clear_scores([0, 3] * 10), {"tea": (0, 1, 2), "soup": (3, 4, 5)})

    assert posterior["tea"] == pytest.approx(posterior["soup"], rel=1e-4)


@pytest.mark.parametrize("worst", [-1.0, -30.0, -1e6])
def test_scores_on_any_scale_have_a_probability(worst):
    scores = make_scores(np.full((5, 6), worst))

    assert sum(posterior_of(scores).values()) == pytest.approx(0, abs=1e-9)


# --- The task of each row


def sequence_worth(sequence, evidence, switch_cost):
    switches = sum(first != second for first, second in pairwise(sequence))
    return sum(evidence[t, z] for t, z in enumerate(sequence)) - switch_cost * switches


def test_sequence_is_the_best_of_all_sequences():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        rows, tasks = int(rng.integers(1, 7)), int(rng.integers(1, 4))
        evidence = -rng.exponential(2, (rows, tasks))
        evidence[rng.random(rows) < 0.2] = 0  # as where nothing is said
        switch_cost = float(rng.choice([0.0, 0.5, 2, 4, 100]))

        found = task_sequence(evidence, switch_cost)

        every = product(range(tasks), repeat=rows)
        best = max(sequence_worth(one, evidence, switch_cost) for one in every)
        assert found.shape == (rows,)
        assert sequence_worth(found.tolist(), evidence, switch_cost) == pytest.approx(best)


def test_a_change_that_costs_too_much_never_happens():
    for seed in range(20):
        evidence = -np.random.default_rng(seed).exponential(3, (20, 4))

        found = task_sequence(evidence, 1e9)

        assert set(found.tolist()) == {int(evidence.sum(axis=0).argmax())}


def test_changes_that_cost_nothing_follow_every_row():
    evidence = -np.random.default_rng(0).exponential(3, (30, 4))

    assert task_sequence(evidence, 0.0).tolist() == evidence.argmax(axis=1).tolist()


def test_a_video_of_one_task_stays_one_in_spite_of_a_few_rows_of_another():
    scores = clear_scores([0] * 40 + [3] * 5 + [1] * 40)

    assert set(task_sequence(task_evidence(scores, TASKS, 0.1), SWITCH_COST).tolist()) == {0}


@pytest.mark.parametrize("border", [20, 30, 45])
def test_two_videos_joined_are_cut_where_they_were_joined(border):
    scores = clear_scores([0] * border + [3] * (65 - border))

    found = task_sequence(task_evidence(scores, TASKS, 0.1), SWITCH_COST)

    assert found.tolist() == [0] * border + [1] * (65 - border)


def test_rows_without_speech_between_two_tasks_belong_to_one_of_them():
    scores = clear_scores([0] * 30 + [2] * 10 + [3] * 30)
    observed = np.ones(70, bool)
    observed[30:40] = False
    evidence = task_evidence(make_scores(scores.values, observed), TASKS, 0.1)

    found = task_sequence(evidence, SWITCH_COST).tolist()

    assert (found[:30], found[40:]) == ([0] * 30, [1] * 30)
    assert found == sorted(found)


def test_no_rows_have_no_sequence():
    found = task_sequence(np.zeros((0, 3)), SWITCH_COST)

    assert (found.tolist(), found.dtype) == ([], np.int64)
