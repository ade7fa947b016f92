"""Sentence classifiers: how few sentences are treated, and which of many are kept."""

import math

import numpy as np
import pytest

from stepgraph.decoders.learning import ParameterFit, _whitening
from stepgraph.decoders.observations import observe
from test_decoders_learning import LISTED, VOCABULARY, random_corpus


@pytest.mark.parametrize("sentences", [3, 5, 9, 40])
def test_few_sentences_are_divided_by_the_same_scatter_as_many(sentences):
    rng = np.random.default_rng(sentences)
    tasks = [rng.normal(size=(sentences - 1, 9)), rng.normal(size=(1, 9))]
    means = rng.normal(size=(2, 9))

    found = _whitening([one.astype(np.float32) for one in tasks])(means)

    around = [one - one.mean(axis=0) for one in tasks]
    scatter = sum(one.T @ one for one in around) / sentences
    shrunk = 0.9 * scatter + 0.1 * (np.trace(scatter) / 9) * np.eye(9)
    assert found == pytest.approx(means @ np.linalg.inv(shrunk), rel=1e-4, abs=1e-4)


def test_classifiers_are_fitted_on_a_hundred_videos_of_a_task_and_a_thousand_of_all():
    one, many = ParameterFit(VOCABULARY), ParameterFit(VOCABULARY)
    for n in range(101):
        one._sentences.add("tea", f"{n}", None)
    for n in range(1100):
        many._sentences.add(f"task {n % 11}", f"{n}", None)

    assert len(one._sentences.chosen()["tea"]) == 100
    assert {len(kept) for kept in many._sentences.chosen().values()} == {1000 // 11}


def test_what_reaches_the_top_decile_is_salient():
    for seed in range(10):
        learner, videos = ParameterFit(VOCABULARY), random_corpus(seed)[:-1]
        [*learner.watch(videos)]
        kept = learner.traces().tasks

        for scores in videos:
            [task] = [task for task, traces in kept.items() if scores.video in traces]
            close = observe(scores).similarity(task, LISTED[task]).keysteps
            best = sorted(close.max(axis=1).tolist())
            tenth = best[math.ceil(0.9 * (len(best) - 1))]
            expected = [max(close[:, place]) >= tenth for place in range(close.shape[1])]
            assert kept[task][scores.video].salient.tolist() == expected
