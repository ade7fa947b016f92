"""The prior of tasks, number by number: the search is coarse, and always the same."""

import math

import numpy as np
import pytest

from stepgraph.graph.parameters import RecognizerParameters, learn_prior


def slow_imagined(counts):
    """Three searches among 25 numbers each, every one between the neighbours of the last best."""
    low, high = 0.001, 1000.0
    for _ in range(3):
        tried = [low * (high / low) ** (step / 24) for step in range(25)]
        likely = [
            math.lgamma(each * len(counts))
            - math.lgamma(each * len(counts) + sum(counts))
            + sum(math.lgamma(count + each) - math.lgamma(each) for count in counts)
            for each in tried
        ]
        best = likely.index(max(likely))
        low, high = tried[max(best - 1, 0)], tried[min(best + 1, 24)]
    return tried[best]


def finest_imagined(counts):
    """Videos a task to imagine: what makes the counts most probable, of a fine grid."""
    best, most = None, -math.inf
    for step in range(4001):
        each = 1e-3 * 1e6 ** (step / 4000)
        likely = math.lgamma(each * len(counts)) - math.lgamma(each * len(counts) + sum(counts))
        likely += sum(math.lgamma(count + each) - math.lgamma(each) for count in counts)
        if likely > most:
            best, most = each, likely
    return best


def slow_prior(evidence, find_imagined):
    """Thirty rounds of expectation maximisation."""
    tasks = len(evidence[0])
    prior = [1 / tasks] * tasks
    for _ in range(30):
        counts = [0.0] * tasks
        for speaks in evidence:
            highest = max(speaks)
            shares = [p * math.exp(s - highest) for p, s in zip(prior, speaks, strict=True)]
            for task, share in enumerate(shares):
                counts[task] += share / sum(shares)
        imagined = find_imagined(counts)
        prior = [(one + imagined) / (len(evidence) + imagined * tasks) for one in counts]
    return prior


@pytest.mark.parametrize("spread", [0.2, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("favoured", [0.0, 1.0, 3.0])
def test_the_prior_is_that_of_thirty_rounds_of_three_searches(spread, favoured):
    evidence = np.random.default_rng(0).normal(0, spread, (12, 3))
    evidence[:, 0] += favoured

    found = np.exp(learn_prior(evidence))

    assert found == pytest.approx(slow_prior(evidence.tolist(), slow_imagined), rel=1e-6)


def test_one_task_of_all_videos_leaves_hardly_anything_to_the_others():
    evidence = np.zeros((1000, 2))
    evidence[:, 0] = 700.0

    # A thousandth of a video is imagined of each, and no less.
    assert np.exp(learn_prior(evidence))[1] == pytest.approx(0.001 / 1000.002)


def test_tasks_that_are_all_alike_are_a_little_less_so_where_one_has_more_to_say():
    evidence = np.array([[700.0, 0.0], [0.0, 700.0]] * 4 + [[700.0, 0.0]])

    # Counted were 5 and 4; a thousand are imagined of each, and no more.
    assert np.exp(learn_prior(evidence))[0] == pytest.approx(1005 / 2009)


def test_the_prior_is_that_of_expectation_maximisation():
    for seed in range(12):
        rng = np.random.default_rng(seed)
        videos, tasks = int(rng.integers(1, 20)), int(rng.integers(1, 6))
        evidence = rng.normal(0, float(rng.choice([0.1, 2, 20])), (videos, tasks))
        evidence[:, 0] += float(rng.choice([0.0, 4.0]))

        found = np.exp(learn_prior(evidence))

        assert found == pytest.approx(slow_prior(evidence.tolist(), finest_imagined), abs=2e-3)


def test_the_prior_adds_up_to_one_and_leaves_every_task_possible():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        evidence = rng.normal(0, 20, (int(rng.integers(1, 60)), int(rng.integers(1, 90))))

        prior = learn_prior(evidence)

        assert np.exp(prior).sum() == pytest.approx(1)
        assert np.isfinite(prior).all()


def test_two_tasks_among_many_are_told_from_each_task_once():
    few, every = np.zeros((60, 60)), 30 * np.eye(60)
    few[np.arange(60), np.arange(60) % 2] = 30

    common, even = (np.exp(learn_prior(one)) for one in (few, every))

    assert common[:2].sum() > 0.95
    assert even.max() < 1.2 * even.min()


def test_a_task_that_may_not_be_in_some_videos_does_no_harm():
    evidence = np.array([[3.0, -np.inf, 0.0], [-np.inf, 3.0, 0.0], [3.0, 0.0, -np.inf]])

    prior = np.exp(learn_prior(evidence))

    assert prior.sum() == pytest.approx(1)
    assert prior.argmax() == 0


def test_the_prior_of_one_task_is_certain():
    assert learn_prior(np.array([[3.0], [-70.0]])) == pytest.approx([0.0])


def test_the_prior_does_not_depend_on_the_order_of_videos():
    evidence = np.random.default_rng(0).normal(0, 3, (30, 4))

    assert learn_prior(evidence[::-1]) == pytest.approx(learn_prior(evidence), abs=1e-6)


@pytest.mark.parametrize("tasks", [("a",), ("a", "b", "c", "d")])
def test_without_videos_all_tasks_are_equally_common(tasks):
    prior = RecognizerParameters(tasks, {}, {}, {}, {}).log_prior

    assert np.exp(prior) == pytest.approx([1 / len(tasks)] * len(tasks))


def test_evidence_of_two_thousand_videos_is_kept_together():
    evidence = {str(number): np.zeros(1, np.float32) for number in range(2002)}
    parts = dict([*evidence.items()][:1001]), dict([*evidence.items()][1001:])
    one, other = (RecognizerParameters(("tea",), part, {}, {}, {}) for part in parts)

    assert len(one.merge(other).log_evidence) == 2000
