"""What is learned from a corpus: against loops, in any order, in parts, and what it is for."""

import math
from dataclasses import replace

import numpy as np
import pytest

from reference import keysteps, make_graph, make_scores
from spoken import random_lazy, random_unit, sentences
from stepgraph.core import Vocabulary
from stepgraph.decoders import TaskMarkov
from stepgraph.decoders.learning import ParameterFit, learn_graph
from stepgraph.decoders.observations import observe
from stepgraph.encoders.vectors import unit
from stepgraph.graph import mine_graph
from stepgraph.graph.parameters import RecognizerParameters, SentenceClassifier, listed_tasks
from stepgraph.scoring.lazy import LazyScores

# The last keystep is of no task.
VOCABULARY = Vocabulary(keysteps(7).keysteps, {"tea": (0, 1, 2), "soup": (4, 3), "boil": (5,)})
LISTED = listed_tasks(VOCABULARY)
KEYSTEPS = random_unit(np.random.default_rng(99), 7, 16)


def weigh(observations, close, task, graph):
    decoder = TaskMarkov()
    words = decoder.log_classifier(observations.vectors(), task, graph.parameters)
    return decoder.weigh(observations, close, decoder.expect(task, graph), words)


def spoken_video(rng, task, name):
    """A video whose sentences are about the keysteps of a task, in its order."""
    members = np.repeat(LISTED[task], rng.integers(1, 4, len(LISTED[task])))
    vectors = unit(KEYSTEPS[members] + 0.2 * rng.normal(size=(len(members), 16)))
    return LazyScores(sentences(vectors, video=name), KEYSTEPS, VOCABULARY)


def spoken_corpus(rng, videos):
    chosen = rng.choice([*LISTED], videos).tolist()
    return [spoken_video(rng, task, f"{n}") for n, task in enumerate(chosen)]


def random_corpus(seed):
    """Products with and without titles, and dense scores, some restricted."""
    rng, videos = np.random.default_rng(seed), []
    for n in range(6):
        scores = random_lazy(
            rng, VOCABULARY, parts=int(rng.integers(1, 9)), titles=n % 2 == 0, video=f"{n}"
        )
        videos.append(scores if n % 3 else scores.with_values(scores.values))
    return [*videos, videos[2].restrict([0, 2, 3, 4, 5])]


def learned(videos, vocabulary=VOCABULARY):
    learner = ParameterFit(vocabulary)
    graph = mine_graph(learner.watch(videos), vocabulary)
    return learner.parameters(graph)


def assert_same(found, expected, *, words=True):
    """Equal, but for the order of additions."""
    assert found.tasks == expected.tasks
    assert [*found.log_evidence] == [*expected.log_evidence]
    for video, one in expected.log_evidence.items():
        assert found.log_evidence[video].tolist() == one.tolist()
    assert dict(found.videos) == pytest.approx(dict(expected.videos), abs=1e-12)
    assert {*found.timing} == {*expected.timing}
    for task, one in expected.timing.items():
        assert found.timing[task] == pytest.approx(one, abs=1e-12)
    assert not words or {*found.classifiers} == {*expected.classifiers}
    for task, one in expected.classifiers.items() if words else ():
        assert found.classifiers[task].vectors == pytest.approx(one.vectors, abs=1e-3)
        assert found.classifiers[task].bias == pytest.approx(one.bias, abs=1e-3)


# --- Evidence, videos and times


def slow_posterior(scores):
    """Shares of the tasks of one video by what speaks for them."""
    evidence = (observe(scores).task_similarity(LISTED) / 0.03).tolist()
    shares = [math.exp(one - max(evidence)) for one in evidence]
    return dict(zip(LISTED, (one / sum(shares) for one in shares), strict=True))


def slow_times(scores, task):
    """When keysteps are said clearly, one row at a time."""
    members, observations = LISTED[task], observe(scores)
    close = observations.similarity(task, members).keysteps
    counts = np.zeros((len(members), 20))
    if len(members) < 2 or np.isinf(close).any():
        return counts
    rows = [(t, close[m]) for t, m in enumerate(observations.index.tolist()) if m >= 0]
    for t, values in rows:
        soft = []
        for place in range(len(members)):
            mean = sum(of_row[place] for _, of_row in rows) / len(rows)
            soft.append((values[place] - 0.5 * mean) / 0.1)
        ranked = sorted(soft)
        counts[soft.index(ranked[-1]), t * 20 // len(scores)] += (ranked[-1] - ranked[-2]) ** 2
    shares = [one / counts.sum() for one in counts.sum(axis=1).tolist()]
    spoken_of = math.exp(-sum(one * math.log(one) for one in shares if one))
    return counts * spoken_of / counts.sum()


def test_evidence_of_each_video_is_that_of_its_hearing():
    for seed in range(10):
        videos = random_corpus(seed)[:-1]

        found = learned(videos).log_evidence

        for scores in videos:
            expected = observe(scores).task_similarity(LISTED) / 0.03
            assert found[scores.video] == pytest.approx(expected, rel=1e-6)


def test_videos_and_times_of_a_task_are_those_of_the_videos_that_probably_show_it():
    for seed in range(20):
        videos = random_corpus(seed)
        expected = {task: np.zeros((len(members), 20)) for task, members in LISTED.items()}
        number = dict.fromkeys(LISTED, 0.0)
        for scores in videos:
            shares = slow_posterior(scores)
            task = max(shares, key=shares.get)
            number[task] += shares[task]
            expected[task] += shares[task] * slow_times(scores, task)

        found = learned(videos)

        assert dict(found.videos) == pytest.approx({t: n for t, n in number.items() if n})
        for task, times in found.timing.items():
            assert times == pytest.approx(expected[task], rel=1e-6, abs=1e-9)


def test_a_video_counts_once_for_each_keystep_that_it_speaks_of():
    """Evenly of two of the three keysteps of tea: two are added, however long the list."""
    confident = np.eye(7)[[0] * 5 + [1] * 5]

    found = learned([make_scores(confident, vocabulary=VOCABULARY)])

    assert found.timing["tea"].sum() == pytest.approx(2 * found.videos["tea"])


def test_keysteps_are_timed_in_the_order_in_which_they_are_spoken_of():
    rng = np.random.default_rng(0)
    videos = [spoken_video(rng, "soup", f"{n}") for n in range(10)]

    first, second = learned(videos).timing["soup"] @ np.arange(20)

    assert first < second


def test_a_task_of_one_keystep_has_no_times_to_tell():
    rng = np.random.default_rng(0)
    found = learned([spoken_video(rng, "boil", f"{n}") for n in range(3)])

    assert found.videos["boil"] == pytest.approx(3, abs=0.1)
    assert not found.timing["boil"].any()
    assert "boil" not in found.classifiers


# --- One pass, in any order, in parts


def test_the_order_of_videos_does_not_matter():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        videos = spoken_corpus(rng, 12)

        turned = [videos[n] for n in rng.permutation(12)]

        assert_same(learned(turned), learned(videos))


def test_the_same_videos_tell_the_same():
    one, again = (learned(spoken_corpus(np.random.default_rng(1), 8)) for _ in range(2))

    assert_same(one, again)


def test_halves_merged_are_the_whole():
    for seed in range(5):
        videos = spoken_corpus(np.random.default_rng(seed), 12)

        found = learned(videos[:5]).merge(learned(videos[5:]))

        assert_same(found, learned(videos), words=False)


def test_graphs_of_halves_merged_have_the_parameters_of_the_whole():
    videos = spoken_corpus(np.random.default_rng(0), 12)
    one, other = (learn_graph(part, VOCABULARY) for part in (videos[:5], videos[5:]))

    found = one.merge(other).parameters

    assert_same(found, learn_graph(videos, VOCABULARY).parameters, words=False)


def test_a_learned_graph_is_the_mined_one_with_parameters():
    for seed in range(5):
        videos = random_corpus(seed)[:-1]
        options = {"min_score": 0.1, "max_gap": 2.0}

        found = learn_graph(iter(videos), VOCABULARY, **options)

        expected = mine_graph(videos, VOCABULARY, **options)
        assert found.counts.toarray().tolist() == expected.counts.toarray().tolist()
        assert found.timing.tolist() == expected.timing.tolist()
        assert (found.mined_on, found.mining) == (expected.mined_on, expected.mining)
        assert_same(found.parameters, learned(videos), words=False)


def test_videos_are_given_on_one_by_one_as_they_came():
    videos = random_corpus(0)
    taken = []

    def coming():
        for scores in videos:
            taken.append(scores)
            yield scores

    for number, scores in enumerate(ParameterFit(VOCABULARY).watch(coming())):
        assert scores is videos[number]
        assert len(taken) == number + 1


# --- Nothing, and little


def test_nothing_is_learned_from_no_videos():
    found = learned([])

    assert found.tasks == tuple(LISTED)
    assert (found.log_evidence, found.videos, found.timing, found.classifiers) == ({}, {}, {}, {})


@pytest.mark.parametrize("rows", [0, 1, 9])
def test_nothing_is_learned_from_videos_in_which_nothing_is_said(rows):
    silent = make_scores(np.ones((rows, 7)), [False] * rows, vocabulary=VOCABULARY)

    assert_same(learned([silent] * 2), learned([]))


def test_nothing_is_learned_from_videos_in_which_nothing_may_be():
    videos = [scores.restrict([]) for scores in spoken_corpus(np.random.default_rng(0), 3)]

    assert_same(learned(videos), learned([]))


def test_one_row_is_enough_to_learn_from():
    scores = make_scores([[0.9, 0.1, 0.1, 0, 0, 0, 0]], vocabulary=VOCABULARY)

    found = learned([scores])

    assert [*found.videos] == ["tea"]
    assert found.timing["tea"].sum(axis=1) == pytest.approx([1, 0, 0])


def test_a_vocabulary_without_tasks_has_times_but_no_words():
    vocabulary = keysteps(7)
    videos = [
        LazyScores(one.features, KEYSTEPS, vocabulary)
        for one in spoken_corpus(np.random.default_rng(0), 6)
    ]

    found = learned(videos, vocabulary)

    assert (found.tasks, dict(found.videos), found.classifiers) == (
        ("everything",),
        pytest.approx({"everything": 6}),
        {},
    )
    assert 6 <= found.timing["everything"].sum() <= 7 * 6


# --- Words


def test_there_are_no_words_from_one_video_and_some_from_two():
    rng = np.random.default_rng(0)
    videos = [spoken_video(rng, "tea", f"{n}") for n in range(2)]

    assert learned(videos[:1]).classifiers == {}
    assert [*learned(videos).classifiers] == ["tea"]


def test_there_are_no_words_where_there_are_no_vectors():
    videos = [one.with_values(one.values) for one in spoken_corpus(np.random.default_rng(0), 6)]

    assert learned(videos).classifiers == {}


def test_words_have_a_vector_and_a_bias_for_each_keystep():
    words = learned(spoken_corpus(np.random.default_rng(0), 12)).classifiers

    for task, (vectors, bias) in words.items():
        assert vectors.shape == (len(LISTED[task]), 16)
        assert bias.shape == (len(LISTED[task]),)


def slow_words(videos, graph):
    """Fisher's discriminants of the sentences of each task, one sentence at a time."""
    said = {}
    for scores in sorted(videos, key=lambda one: one.video):
        shares = slow_posterior(scores)
        task, observations = max(shares, key=shares.get), observe(scores)
        close = observations.similarity(task, LISTED[task]).keysteps
        rows = weigh(observations, close, task, graph)
        for sentence, vector in enumerate(observations.vectors().astype(float)):
            said.setdefault(task, []).append(
                (vector, rows[observations.index == sentence].mean(axis=0))
            )
    scatter, number = np.zeros((16, 16)), 0
    for sentences_of_task in said.values():
        middle = np.mean([vector for vector, _ in sentences_of_task], axis=0)
        for vector, _ in sentences_of_task:
            scatter += np.outer(vector - middle, vector - middle)
            number += 1
    scatter /= number
    inverse = np.linalg.inv(0.9 * scatter + 0.1 * (np.trace(scatter) / 16 + 1e-9) * np.eye(16))
    found = {}
    for task, pairs in said.items():
        middle = np.mean([vector for vector, _ in pairs], axis=0)
        for place in range(len(LISTED[task])):
            total = sum(share[place] for _, share in pairs)
            mean = sum(share[place] * vector for vector, share in pairs) / total - middle
            direction = inverse @ mean
            bias = -direction @ middle - 0.5 * mean @ direction
            found.setdefault(task, []).append((direction, bias))
    return found


def test_words_are_the_linear_discriminants_of_what_was_said():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        tasks = ["tea", "soup", "tea", "tea", "soup"]
        videos = [spoken_video(rng, task, f"{n}") for n, task in enumerate(tasks)]

        graph = learn_graph(videos, VOCABULARY)

        plain = replace(graph, parameters=replace(graph.parameters, classifiers={}))
        expected = slow_words(videos, plain)
        assert {*graph.parameters.classifiers} == {*expected} == {"tea", "soup"}
        for task, (vectors, bias) in graph.parameters.classifiers.items():
            assert vectors == pytest.approx(np.array([one for one, _ in expected[task]]), abs=1e-4)
            assert bias == pytest.approx([one for _, one in expected[task]], abs=1e-6)


def secret_video(rng, name, *, open_share):
    """Sentences of tea in any order, each with a word that the vocabulary does not know.

    ``open_share`` of a sentence is what the vocabulary does know.
    """
    members = np.repeat(rng.permutation([0, 1, 2, 0, 1, 2]), 2)
    hidden = np.zeros((12, 32))
    hidden[np.arange(12), 20 + members] = 1.0
    known = np.pad(KEYSTEPS[members], ((0, 0), (0, 16)))
    said = open_share * known + hidden + 0.1 * rng.normal(size=(12, 32))
    own = np.pad(KEYSTEPS, ((0, 0), (0, 16)))
    return LazyScores(sentences(unit(said), video=name), own, VOCABULARY), members


@pytest.fixture(scope="module")
def secret_graph():
    """Learned where the secret words are heard beside what the vocabulary knows."""
    rng = np.random.default_rng(0)
    corpus = [secret_video(rng, f"{n}", open_share=1.0)[0] for n in range(60)]
    return learn_graph(corpus, VOCABULARY)


def test_words_that_separate_keysteps_are_found(secret_graph):
    vectors, bias = secret_graph.parameters.classifiers["tea"]
    for seed in range(10):
        scores, members = secret_video(np.random.default_rng(seed), "next", open_share=0.0)

        speaks = scores.vectors @ vectors.T + bias

        assert speaks.argmax(axis=1).tolist() == members.tolist()


def test_words_make_the_right_keystep_more_probable(secret_graph):
    """In a video in which there is nothing else to go by."""
    plain = replace(secret_graph, parameters=replace(secret_graph.parameters, classifiers={}))
    for seed in range(10):
        scores, members = secret_video(np.random.default_rng(seed), "next", open_share=0.0)
        observations = observe(scores)
        close = observations.similarity("tea", (0, 1, 2)).keysteps
        rows = np.flatnonzero(observations.index >= 0)
        right = members[observations.index[rows]]

        informed, uninformed = (
            weigh(observations, close, "tea", graph)[rows, right].mean()
            for graph in (secret_graph, plain)
        )

        assert informed > uninformed + 0.03


# --- What habits are good for


def graph_with(**fields):
    empty = {"log_evidence": {}, "videos": {}, "timing": {}, "classifiers": {}}
    parameters = RecognizerParameters(tuple(LISTED), **(empty | fields))
    return make_graph(np.zeros((7, 7), np.int64), VOCABULARY, parameters=parameters)


def slow_due(times, size, order_videos=10.0, spread=0.25):
    """Log of how much more each keystep is due in each twentieth than in the mean."""
    table = np.zeros((size, 20))
    for place in range(size):
        written = [
            math.exp(-((((b + 0.5) / 20 - (place + 0.5) / size) / spread) ** 2) / 2)
            for b in range(20)
        ]
        smooth = [math.exp(-(n**2) / 2) for n in range(-4, 5)]
        for b in range(20):
            near = [times[place, min(19, max(0, b + n))] for n in range(-4, 5)]
            observed = sum(s * one for s, one in zip(smooth, near, strict=True)) / sum(smooth)
            table[place, b] = order_videos * written[b] / sum(written) + observed
    return np.log(20 * table / table.sum(axis=1, keepdims=True))


def test_keysteps_are_due_when_the_list_and_the_corpus_say():
    for seed in range(10):
        times = np.random.default_rng(seed).exponential(3, (3, 20))

        found = TaskMarkov().log_timing("tea", 3, graph_with(timing={"tea": times}))

        assert found == pytest.approx(slow_due(times, 3))


def test_without_times_keysteps_are_due_when_the_list_says():
    expected = pytest.approx(slow_due(np.zeros((3, 20)), 3))

    assert TaskMarkov().log_timing("tea", 3, graph_with()) == expected
    assert TaskMarkov().log_timing("tea", 3, replace(graph_with(), parameters=None)) == expected


def test_without_a_listed_order_keysteps_are_due_at_any_time():
    graph = make_graph(np.zeros((4, 4), np.int64))

    assert TaskMarkov().log_timing("everything", 4, graph) == pytest.approx(0, abs=1e-12)


def test_words_of_more_videos_weigh_more():
    rng = np.random.default_rng(0)
    scores = spoken_video(rng, "tea", "video")
    observations = observe(scores)
    close = np.zeros((len(observations.sources), 3))
    words = SentenceClassifier(np.zeros((3, 16), np.float32), np.array([0.0, 0.0, 5.0]))

    shares = [
        weigh(
            observations, close, "tea", graph_with(videos={"tea": n}, classifiers={"tea": words})
        ).mean(axis=0)[2]
        for n in (1.0, 10.0, 1000.0)
    ]

    assert shares == sorted(shares)
    assert shares[-1] > shares[0] + 0.1


def test_words_of_another_encoder_are_not_used():
    scores = spoken_video(np.random.default_rng(0), "tea", "video")
    observations = observe(scores)
    close = observations.similarity("tea", (0, 1, 2)).keysteps
    words = {"tea": SentenceClassifier(np.ones((3, 5), np.float32), np.array([0.0, 0.0, 9.0]))}

    one, other = (
        weigh(observations, close, "tea", graph)
        for graph in (graph_with(videos={"tea": 9.0}, classifiers=words), graph_with())
    )

    assert one.tolist() == other.tolist()


def test_parameters_help_to_label_the_corpus_they_were_learned_from():
    """Keysteps are done in the opposite order of the list."""
    rng, videos = np.random.default_rng(0), []
    for n in range(60):
        vectors = unit(KEYSTEPS[[2, 2, 1, 1, 0, 0]] + 0.3 * rng.normal(size=(6, 16)))
        videos.append(LazyScores(sentences(vectors, video=f"{n}"), KEYSTEPS, VOCABULARY))
    graph = learn_graph(videos, VOCABULARY)
    plain = replace(graph, parameters=None)
    truth = np.repeat([2, 2, 1, 1, 0, 0], 4)

    right, without = (
        np.mean([TaskMarkov().decode(one, g).keysteps == truth for one in videos])
        for g in (graph, plain)
    )

    assert right > without
