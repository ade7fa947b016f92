"""How common tasks are, number by number: the search is coarse, and always the same."""

import math

import numpy as np
import pytest

from stepgraph.graph.habits import Habits, learn_prior, sample


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


def slow_prior(evidence):
    """Thirty rounds of expectation maximisation."""
    tasks = len(evidence[0])
    prior = [1 / tasks] * tasks
    for _ in range(30):
        counts = [0.0] * tasks
        for speaks in evidence:
            shares = [p * math.exp(s) for p, s in zip(prior, speaks, strict=True)]
            for task, share in enumerate(shares):
                counts[task] += share / sum(shares)
        imagined = slow_imagined(counts)
        prior = [(one + imagined) / (len(evidence) + imagined * tasks) for one in counts]
    return prior


@pytest.mark.parametrize("clear", [0.2, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("favoured", [0.0, 1.0, 3.0])
def test_the_prior_is_that_of_thirty_rounds_of_three_searches(clear, favoured):
    evidence = np.random.default_rng(0).normal(0, clear, (12, 3))
    evidence[:, 0] += favoured

    found = np.exp(learn_prior(evidence))

    assert found == pytest.approx(slow_prior(evidence.tolist()), rel=1e-6)


def test_one_task_of_all_videos_leaves_hardly_anything_to_the_others():
    evidence = np.zeros((1000, 2))
    evidence[:, 0] = 700.0

    # A thousandth of a video is imagined of each, and no less.
    assert np.exp(learn_prior(evidence))[1] == pytest.approx(0.001 / 1000.002)


def test_tasks_that_are_all_alike_are_a_little_less_so_where_one_has_more_to_say():
    evidence = np.array([[700.0, 0.0], [0.0, 700.0]] * 4 + [[700.0, 0.0]])

    # Counted were 5 and 4; a thousand are imagined of each, and no more.
    assert np.exp(learn_prior(evidence))[0] == pytest.approx(1005 / 2009)


def test_without_videos_no_task_is_more_common():
    assert Habits(("a", "b"), {}, {}, {}, {}).log_prior == pytest.approx([math.log(0.5)] * 2)


def test_a_sample_is_of_two_thousand_videos():
    evidence = {str(number): np.zeros(1, np.float32) for number in range(2002)}

    assert len(sample(evidence)) == 2000
    assert len(sample(dict([*evidence.items()][:2000]))) == 2000
