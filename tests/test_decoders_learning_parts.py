"""A corpus learned from in parts: the same videos are chosen, and the same words are learned."""

from dataclasses import replace

import numpy as np
import pytest

from stepgraph.decoders import TaskMarkov, learning
from stepgraph.decoders.learning import ParameterFit, SentenceSample, fit_classifiers
from stepgraph.graph import mine_graph
from test_decoders_learning import VOCABULARY, spoken_corpus, spoken_video


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(learning, "_VIDEOS", 4)
    monkeypatch.setattr(learning, "_ALL_VIDEOS", 9)


def watched(videos):
    learner = ParameterFit(VOCABULARY)
    return learner, mine_graph(learner.watch(videos), VOCABULARY)


def test_videos_are_chosen_from_parts_as_from_the_whole():
    for seed in range(8):
        videos = spoken_corpus(np.random.default_rng(seed), 24)
        whole = watched(videos)[0].sampled()

        for place in (0, 1, 9, 24):
            parts = [watched(some)[0].sampled() for some in (videos[:place], videos[place:])]

            assert parts[0].merge(parts[1]) == parts[1].merge(parts[0]) == whole
        assert sum(whole.population.values()) == 24


def test_a_task_of_one_part_alone_keeps_its_number():
    tea, soup = (
        SentenceSample({"tea": ["a", "b"]}, {"tea": 2}),
        SentenceSample({"soup": ["c"]}, {"soup": 1}),
    )

    found = tea.merge(soup)

    assert found.population == {"soup": 1, "tea": 2}
    assert [*found.population] == [*found.tasks] == ["soup", "tea"]
    assert {task: {*videos} for task, videos in found.tasks.items()} == {
        "tea": {"a", "b"},
        "soup": {"c"},
    }


def test_words_learned_afterwards_are_those_learned_at_once():
    rng = np.random.default_rng(3)
    videos = [spoken_video(rng, task, f"{n}-{task}") for n in range(4) for task in ("tea", "soup")]
    learner, graph = watched(videos)
    expected = learner.parameters(graph).classifiers
    without = replace(graph, parameters=learner.parameters(graph, classifiers=False))
    scores = {one.video: one for one in videos}
    chosen = {
        task: {video: scores[video] for video in those}
        for task, those in learner.sampled().tasks.items()
    }

    found = fit_classifiers(without, chosen, TaskMarkov()).parameters.classifiers

    assert without.parameters.classifiers == {}
    assert {*found} == {*expected} == {"tea", "soup"}
    for task, one in expected.items():
        assert (found[task].vectors == one.vectors).all()
        assert (found[task].bias == one.bias).all()
