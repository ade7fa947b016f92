"""Every formula of the recogniser, written once more with loops and small numbers."""

from dataclasses import asdict, replace
from math import exp, expm1, log, sqrt

import numpy as np
import pytest

from reference import keysteps, make_graph
from spoken import random_lazy, random_unit
from stepgraph.core import UNANNOTATED, Alternatives, Labels, Scores, Segment, Vocabulary
from stepgraph.decoders import TaskMarkov
from stepgraph.decoders.learning import learn_graph
from stepgraph.decoders.observations import observe
from stepgraph.decoders.task_markov import _Decoded
from stepgraph.decoders.tasks import rank_tasks
from stepgraph.encoders import EncoderOptions
from stepgraph.graph.parameters import RecognizerParameters, SentenceClassifier, listed_tasks

TASKS = {"tea": (0, 1, 2), "soup": (4, 3), "boil": (5,), "long": (0, 2, 4, 6, 1)}
VOCABULARY = Vocabulary(keysteps(7).keysteps, TASKS)
LISTED = listed_tasks(VOCABULARY)


def random_counts(seed):
    return np.random.default_rng(seed).integers(0, 30, (7, 7))


def logistic(odds):
    return 1 / (1 + exp(-odds))


def test_options_stay_those_that_were_published():
    assert asdict(TaskMarkov()) == {
        **{
            "background": 0.13,
            "temperature": 0.1,
            "mean_subtraction": 0.5,
            "self_transition": 0.9,
            "order_sigma": 0.25,
        },
        **{
            "order_weight": 1.0,
            "order_prior_videos": 10.0,
            "order_prior_transitions": 100.0,
            "change_cost": 1.0,
        },
        **{
            "calibration_slope": 0.4,
            "calibration_intercept": -1.6,
            "background_slope": 0.55,
            "background_intercept": 2.0,
        },
    }
    assert TaskMarkov.encoder == EncoderOptions(context=1, task_names=True, blend=True)


def slow_transitions(decoder, members, counts, order):
    """Going on to the next keystep is likeliest, far ones less, and back half as much."""
    size, rows = len(members), []
    for start in range(size):
        ahead = [
            exp(-min(abs(end - start - 1), 40) / 2) * (1 if end > start else 0.5)
            for end in range(size)
            if end != start
        ]
        votes = [
            decoder.order_prior_transitions
            * (order * vote / sum(ahead) + (1 - order) / (size - 1))
            for vote in ahead
        ]
        others = [end for end in range(size) if end != start]
        for at, end in enumerate(others):
            votes[at] += counts[members[start], members[end]]
        row = [(1 - decoder.self_transition) * vote / sum(votes) for vote in votes]
        row.insert(start, decoder.self_transition)
        rows.append(row)
    return rows


@pytest.mark.parametrize("order", [1.0, 0.6, 0.0])
@pytest.mark.parametrize("task", ["tea", "soup", "long"])
def test_transitions_are_counts_beside_imagined_ones(task, order):
    decoder = TaskMarkov(order_weight=order, self_transition=0.8, order_prior_transitions=20.0)
    counts = random_counts(3)

    found = decoder.transitions(TASKS[task], make_graph(counts, VOCABULARY))

    assert found == pytest.approx(np.array(slow_transitions(decoder, TASKS[task], counts, order)))


def test_without_headings_there_is_no_order():
    found = TaskMarkov(self_transition=0.7).transitions(
        (0, 1, 2, 3), make_graph(np.zeros((4, 4), int))
    )

    assert found == pytest.approx(np.where(np.eye(4), 0.7, 0.1))


def test_a_task_of_one_keystep_never_changes():
    assert TaskMarkov().transitions((5,), make_graph(random_counts(0), VOCABULARY)).tolist() == [
        [1.0]
    ]


@pytest.mark.parametrize("order", [1.0, 0.6, 0.0])
def test_a_keystep_is_due_around_its_place_in_the_order(order):
    decoder = TaskMarkov(order_weight=order, order_sigma=0.3)

    found = decoder.log_timing("tea", 3, make_graph(random_counts(0), VOCABULARY))

    for place in range(3):
        near = [exp(-(((n + 0.5) / 20 - (place + 0.5) / 3) ** 2) / 0.3**2 / 2) for n in range(20)]
        due = [order * one / sum(near) + (1 - order) / 20 for one in near]
        assert found[place] == pytest.approx([log(20 * one) for one in due])


def slow_smoothed(times):
    """Each twentieth spread over those near it; beyond the ends it goes on as they are."""
    weights = [exp(-(shift**2) / 2) for shift in range(-4, 5)]
    return [
        sum(
            weight * times[min(max(place + shift, 0), 19)]
            for shift, weight in zip(range(-4, 5), weights, strict=True)
        )
        / sum(weights)
        for place in range(20)
    ]


def test_a_keystep_is_due_when_the_corpus_speaks_of_it():
    decoder = TaskMarkov(order_sigma=0.3, order_prior_videos=5.0)
    timing = np.random.default_rng(0).exponential(2, (3, 20))
    parameters = RecognizerParameters(tuple(LISTED), {}, {"tea": 9.0}, {"tea": timing}, {})
    graph = make_graph(random_counts(0), VOCABULARY)

    found = decoder.log_timing("tea", 3, replace(graph, parameters=parameters))

    alone = np.exp(decoder.log_timing("tea", 3, graph)) / 20
    for place in range(3):
        spoken = slow_smoothed(timing[place].tolist())
        due = [5 * one + other for one, other in zip(alone[place], spoken, strict=True)]
        assert found[place] == pytest.approx([log(20 * one / sum(due)) for one in due])


def test_keysteps_far_away_are_all_as_improbable():
    vocabulary = Vocabulary(keysteps(50).keysteps, {"all": tuple(range(50))})
    decoder, counts = TaskMarkov(), np.zeros((50, 50), int)

    found = decoder.transitions(range(50), make_graph(counts, vocabulary))

    expected = slow_transitions(decoder, range(50), counts, 1.0)
    assert found == pytest.approx(np.array(expected), rel=1e-9, abs=0)


def test_a_sentence_is_emitted_by_the_keysteps_that_may_be_there():
    never = -np.inf
    values = np.array([[0.5, 0.1, never], [0.2, never, never], [never] * 3, [0.4, 0.3, never]])
    weight = np.array([3.0, 1.0, 5.0, 2.0])

    found = TaskMarkov(temperature=0.2, mean_subtraction=0.5).log_emission(values, weight)

    means = [(3 * 0.5 + 0.2 + 2 * 0.4) / 6, (3 * 0.1 + 2 * 0.3) / 5]
    for sentence in (0, 3):
        near = [exp((values[sentence, k] - 0.5 * means[k]) / 0.2) for k in (0, 1)]
        assert found[sentence, :2] == pytest.approx([log(one / sum(near)) for one in near])
        assert found[sentence, 2] < -700
    assert found[1, 0] == pytest.approx(0)
    assert max(found[1, 1:]) < -700
    assert found[2] == pytest.approx([log(1 / 3)] * 3)


@pytest.mark.parametrize("turned", [False, True])
def test_what_may_not_be_on_one_row_may_be_on_silent_ones(turned):
    values = np.full((9, 7), 0.1)
    values[:, 0] = 0.9
    values[0 if turned else -1, 0] = -np.inf
    observed = np.array([True] * 3 + [False] * 3 + [True] * 3)
    scores = Scores("v", values.astype(np.float32), observed, VOCABULARY)

    found = (
        TaskMarkov(background=0.0, order_weight=0.0)
        ._decode_task(
            observe(scores), "tea", TASKS["tea"], make_graph(np.zeros((7, 7), int), VOCABULARY)
        )
        .keysteps
    )

    assert (found == 0).tolist() == [not turned, *[True] * 7, turned]


def test_a_row_that_just_reaches_four_tenths_is_observed_confidently():
    values = np.zeros((4, 7), np.float32)
    values[:2, 5], values[2:, 5] = 0.4, 0.39
    scores = Scores("v", values, np.ones(4, bool), VOCABULARY)

    labels = TaskMarkov(background=0.0).decode(scores, make_graph(random_counts(0), VOCABULARY))

    assert labels.keysteps.tolist() == [5] * 4
    assert labels.anchors.tolist() == [True, True, False, False]


def observed_with_titles(seed, parts=6):
    rng = np.random.default_rng(seed)
    return observe(random_lazy(rng, VOCABULARY, parts=parts, titles=True))


@pytest.mark.parametrize("seed", range(5))
def test_background_is_at_the_ends_and_closer_to_the_title_than_to_any_keystep(seed):
    heard = observed_with_titles(seed)
    close = heard.similarity("tea", TASKS["tea"])
    rows = len(heard.index)
    ahead = [title - max(own) for title, own in zip(close.title, close.keysteps, strict=True)]
    of_rows = [ahead[sentence] for sentence in heard.index if sentence >= 0]
    mean = sum(of_rows) / len(of_rows)
    spread = sqrt(sum((one - mean) ** 2 for one in of_rows) / len(of_rows))

    found = TaskMarkov(background=0.2)._background(heard, close)

    for row, sentence in enumerate(heard.index):
        when = (row + 0.5) / rows
        odds = -log(expm1(min(when, 1 - when) / 0.1))
        odds += (ahead[sentence] - mean) / spread if sentence >= 0 else 0
        assert found[row] == pytest.approx(logistic(odds))


@pytest.mark.parametrize("seed", range(5))
def test_what_was_annotated_does_not_tell_how_background_sounds(seed):
    """Only the rows that nobody decided are compared with each other."""
    scores = random_lazy(np.random.default_rng(seed), VOCABULARY, parts=9, titles=True)
    heard = observe(scores.annotate([Segment(0.0, 0.4 * len(scores), 1)]))
    close = heard.similarity("tea", TASKS["tea"])
    ahead = close.title - close.keysteps.max(axis=1)
    free = [
        ahead[m] for m in heard.index.tolist() if m >= 0 and heard.annotation[m] == UNANNOTATED
    ]
    mean = sum(free) / len(free)
    spread = sqrt(sum((one - mean) ** 2 for one in free) / len(free))

    found = TaskMarkov(background=0.2)._background(heard, close)

    rows = len(heard.index)
    for row, sentence in enumerate(heard.index.tolist()):
        if sentence >= 0 and heard.annotation[sentence] == UNANNOTATED:
            odds = -log(expm1(min((row + 0.5) / rows, 1 - (row + 0.5) / rows) / 0.1))
            assert found[row] == pytest.approx(logistic(odds + (ahead[sentence] - mean) / spread))


@pytest.mark.parametrize("videos", [1.0, 50.0, 1000.0])
def test_words_weigh_up_to_about_a_third_and_half_of_it_from_fifty_videos_on(videos):
    heard, rng = observed_with_titles(0), np.random.default_rng(1)
    words = SentenceClassifier(random_unit(rng, 3), rng.normal(size=3))
    parameters = RecognizerParameters(
        tuple(LISTED), {}, {"tea": videos}, {"tea": np.ones((3, 20))}, {"tea": words}
    )

    found = TaskMarkov().log_classifier(heard.vectors(), "tea", parameters)

    share = 0.35 * videos / (videos + 50)
    expected = share * (heard.vectors().astype(float) @ words.vectors.T + words.bias)
    assert found == pytest.approx(expected, abs=1e-6)


def test_words_of_another_encoder_say_nothing():
    heard, rng = observed_with_titles(0), np.random.default_rng(1)
    words = SentenceClassifier(random_unit(rng, 3, 9), rng.normal(size=3))
    parameters = RecognizerParameters(
        tuple(LISTED), {}, {"tea": 9.0}, {"tea": np.ones((3, 20))}, {"tea": words}
    )

    assert TaskMarkov().log_classifier(heard.vectors(), "tea", parameters).tolist() == [0.0]
    assert TaskMarkov().log_classifier(heard.vectors(), "soup", parameters).tolist() == [0.0]
    assert TaskMarkov().log_classifier(heard.vectors(), "tea", None).tolist() == [0.0]


def test_words_speak_for_the_keysteps_that_they_were_learned_for():
    """Also in the labels: what is spoken of with a word of one keystep is that keystep."""
    heard = observed_with_titles(2)
    vectors = np.stack([5 * heard.vectors().sum(axis=0), *np.zeros((2, 8))]).astype(np.float32)
    graph = make_graph(np.zeros((7, 7), int), VOCABULARY)
    words = SentenceClassifier(40 * vectors, np.array([50.0, 0.0, 0.0]))
    timing = {"tea": np.ones((3, 20))}
    parameters = RecognizerParameters(tuple(LISTED), {}, {"tea": 1e6}, timing, {"tea": words})
    decoder = TaskMarkov(background=0.0)

    without, spoken = (
        decoder._decode_task(heard, "tea", TASKS["tea"], replace(graph, parameters=one)).keysteps
        for one in (replace(parameters, classifiers={}), parameters)
    )

    assert (spoken == 0).sum() > (without == 0).sum()


def test_confidence_is_calibrated_on_the_scale_of_log_odds():
    decoder = TaskMarkov(
        calibration_slope=0.5,
        calibration_intercept=-1.0,
        background_slope=0.25,
        background_intercept=1.5,
    )
    probability = [0.9, 0.2, 0.0, 1.0, 0.9, 0.2, 1.0]
    found = decoder._confidence(
        _Decoded(np.array([2, 2, 2, 2, -1, -1, -1]), np.array(probability), Alternatives.none(7)),
        0.5,
    )

    def odds(one):
        return log(one / (1 - one))

    expected = [logistic(-1.0 + 0.5 * odds(0.5 * one)) for one in (0.9, 0.2)]
    expected += [0.0, logistic(-1.0 + 0.5 * odds(0.5))]
    expected += [logistic(1.5 + 0.25 * odds(one)) for one in (0.9, 0.2, 1 - 1e-6)]
    assert found == pytest.approx(expected)


def test_certainty_is_as_certain_as_a_number_can_say():
    decoded = _Decoded(np.array([2, 2]), np.array([1.0, 1e-9]), Alternatives.none(2))
    found = TaskMarkov()._confidence(decoded, 1.0)

    odds = log((1 - 1e-6) / 1e-6)
    assert found == pytest.approx([logistic(-1.6 + 0.4 * odds), logistic(-1.6 - 0.4 * odds)])


def test_where_a_label_is_wrong_it_is_one_of_the_others():
    others = Alternatives(np.array([[2, 5, -1], [5, 2, 1]]), np.array([[0.6, 0.3, 0.1]] * 2))

    _, found = others.besides(np.array([2, 5]), np.array([0.6, 0.6]), np.array([0.2, 0.9]))

    # Three of the four parts that are left, and one of them, as they are of one another.
    assert found == pytest.approx(np.array([[0.2, 0.6, 0.2], [0.9, 0.075, 0.025]]))


def test_what_else_a_row_may_show_is_told_with_its_label_among_it():
    lazy_scores = random_lazy(np.random.default_rng(3), VOCABULARY, parts=4, titles=True)

    labels = TaskMarkov().decode(lazy_scores, make_graph(random_counts(0), VOCABULARY))

    keysteps, sure = labels.alternatives
    own = keysteps == labels.keysteps[:, None]
    assert own.any(axis=1)[labels.keysteps >= 0].all()
    assert sure.sum(axis=1).max() <= 1 + 1e-9
    assert sure[own & (labels.keysteps >= 0)[:, None]] == pytest.approx(
        labels.confidence[labels.keysteps >= 0]
    )


def test_there_is_no_confidence_where_no_keystep_may_be():
    lazy_scores = random_lazy(np.random.default_rng(0), VOCABULARY, parts=4, titles=True)

    labels = TaskMarkov().decode(
        lazy_scores.restrict([]), make_graph(random_counts(0), VOCABULARY)
    )

    assert {*labels.keysteps.tolist()} == {-1}
    assert {*labels.confidence.tolist()} == {0.0}


@pytest.mark.parametrize("seed", range(12))
def test_the_closest_of_a_task_is_its_closest_keystep_or_its_title(seed):
    rng = np.random.default_rng(seed)
    heard = observe(random_lazy(rng, VOCABULARY, parts=5, titles=seed % 2 == 0))

    found = heard.closest(LISTED)

    for place, (task, members) in enumerate(LISTED.items()):
        close = heard.similarity(task, members)
        columns = [close.keysteps] + ([] if close.title is None else [close.title[:, None]])
        assert found[:, place] == pytest.approx(np.hstack(columns).max(axis=1), abs=1e-6)


def test_a_graph_remembers_how_far_the_order_is_trusted():
    rng = np.random.default_rng(0)
    videos = [random_lazy(rng, VOCABULARY, parts=6, titles=True, video=f"{n}") for n in "abc"]

    graph = learn_graph(
        videos, VOCABULARY, decoder=TaskMarkov(order_weight=0.5, order_prior_videos=8.0)
    )

    assert graph.traces.order == 0.5


def test_a_keystep_of_several_tasks_votes_for_each_in_part():
    vocabulary = Vocabulary(tuple("abc"), {"tea": (0,), "eggs": (0,), "soup": (1,)})

    def ranked(*rows):
        return rank_tasks(Labels("v", np.array(rows), vocabulary))

    assert ranked(0, 0, 0, 1, 1) == ("soup", "tea", "eggs")
    assert ranked(2, 2, 2, 0) == ("tea", "eggs")
