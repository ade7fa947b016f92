"""Bayes filter and Viterbi, against the recursion and against every sequence."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from reference import dense, make_graph, make_scores, random_graph, random_scores, sequence_score
from stepgraph.core import BACKGROUND, Vocabulary
from stepgraph.decoders.markov import BayesFilter, Viterbi, make_chain
from stepgraph.errors import ConfigError, DataError

CHAIN = make_graph(np.diag([5] * 4 + [0]) + np.eye(5, k=1, dtype=np.int64))
BOTH = pytest.mark.parametrize("decoder", [BayesFilter(), Viterbi()])


def labels_of(decoder, scores, graph=CHAIN):
    return decoder.decode(scores, graph).keysteps.tolist()


def transitions(graph, stay=None):
    """Probabilities, one at a time: what has no other way out stays for good."""
    counts = graph.counts.toarray().tolist()
    size = len(counts)
    table = [[Fraction(0)] * size for _ in range(size)]
    for i in range(size):
        out = sum(counts[i]) - counts[i][i]
        loop = Fraction(counts[i][i], sum(counts[i])) if stay is None and out else Fraction(1)
        loop = Fraction(stay) if stay is not None and out else loop
        for j in range(size):
            table[i][j] = loop if i == j else (1 - loop) * Fraction(counts[i][j], out or 1)
    return table


def bayes(scores, graph, epsilon):
    """The recursion in exact numbers, row by row and keystep by keystep."""
    size, table = len(graph.vocabulary), transitions(graph)
    belief, labels = [Fraction(0)] * size, []
    for values, observed in zip(scores.values.tolist(), scores.observed, strict=True):
        s = [Fraction(max(v, 0)) if observed else Fraction(0) for v in values]
        expected = [sum(table[i][k] * belief[i] for i in range(size)) for k in range(size)]
        new = [s[k] * expected[k] + Fraction(epsilon) * s[k] for k in range(size)]
        if not any(s):
            new = expected
        elif not any(new):
            new = s
        new = [0 if values[k] == -math.inf else new[k] for k in range(size)]
        if not any(new):
            new = [0 if values[k] == -math.inf else belief[k] for k in range(size)]
        if any(new):
            belief = [b / sum(new) for b in new]
        labels.append(belief.index(max(belief)) if any(new) else BACKGROUND)
    return labels


def random_restricted(rng, rows, size):
    """Scores between -0.5 and 0.5 with gaps, some of them of a few keysteps only."""
    scores = make_scores(rng.random((rows, size)) - 0.5, rng.random(rows) < 0.7)
    if rng.random() < 0.5:
        scores = scores.restrict(rng.choice(size, int(rng.integers(1, size + 1)), replace=False))
    return scores


def test_filter_is_the_recursion_of_the_supplement():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(2, 6))
        graph = random_graph(rng, size, density=rng.uniform(0.1, 0.8))
        scores = random_restricted(rng, int(rng.integers(0, 12)), size)
        epsilon = float(rng.choice([0, 0.01, 0.1, 1]))

        assert labels_of(BayesFilter(epsilon), scores, graph) == bayes(scores, graph, epsilon)


def test_filter_of_a_worked_example():
    """Two keysteps, the first always followed by the second; epsilon a half.

    B(0) = (.8, .2) gives A.T B = (.2, .8) and B(1) = s * (.2, .8) + s / 2 = (.42, .52) for
    s = (.6, .4), where argmax alone says the first.
    """
    graph = make_graph([[0, 1], [1, 0]])

    assert labels_of(BayesFilter(0.5), make_scores([[0.8, 0.2], [0.6, 0.4]]), graph) == [0, 1]


def test_filter_does_not_look_ahead():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        scores, graph = random_restricted(rng, 30, 6), random_graph(rng, 6)
        whole = labels_of(BayesFilter(), scores, graph)

        for rows in range(31):
            begun = make_scores(scores.values[:rows], scores.observed[:rows])
            assert labels_of(BayesFilter(), begun, graph) == whole[:rows]


def test_much_epsilon_believes_the_measurement_only():
    rng = np.random.default_rng(0)
    scores = make_scores(rng.random((40, 6)))

    labels = labels_of(BayesFilter(1e9), scores, random_graph(rng, 6))

    assert labels == scores.values.argmax(axis=1).tolist()


def test_belief_moves_along_the_graph_in_silence():
    graph = make_graph([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    scores = make_scores([[1, 0, 0]] + [[0, 0, 0]] * 3, [True, False, False, False])

    assert labels_of(BayesFilter(), scores, graph) == [0, 1, 2, 2]


def test_filter_says_nothing_before_the_first_measurement():
    scores = make_scores([[9.0, 0, 0, 0, 0], [-1, -1, -1, -1, -1], [0, 0, 0.5, 0, 0]], [0, 1, 1])

    assert labels_of(BayesFilter(), scores) == [BACKGROUND, BACKGROUND, 2]


def test_belief_begins_anew_where_the_graph_contradicts_the_measurement():
    scores = make_scores([[0, 0, 0, 0, 0.5], [0.5, 0, 0, 0, 0]])

    assert labels_of(BayesFilter(epsilon=0), scores) == [4, 0]


def test_belief_survives_thousands_of_small_scores():
    values = np.full((5000, 5), 1e-30)
    values[:, 2] = 2e-30

    assert set(labels_of(BayesFilter(epsilon=0), make_scores(values))) <= {2, 3, 4}


def test_viterbi_is_the_most_probable_of_all_sequences():
    """From scores and counts on: emissions, self-loops and the floor by their definitions."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        rows, size = int(rng.integers(1, 5)), int(rng.integers(2, 5))
        graph = random_graph(rng, size, density=rng.uniform(0.1, 0.8))
        scores = random_restricted(rng, rows, size)
        stay = [None, 0.0, 0.5, 0.97, 1.0][seed % 5]
        floor = float(rng.choice([1e-3, 0.2, 1.0]))

        labels = labels_of(Viterbi(0.2, stay, floor), scores, graph)

        table = np.array(transitions(graph, stay), dtype=float)
        transition = np.log((1 - floor) * table + floor / size)
        emission = np.zeros((rows, size))
        for t in range(rows):
            weights = np.exp(scores.values[t] / 0.2)
            allowed = np.where(scores.values[t] > -np.inf, 1.0, 0.0)
            with np.errstate(divide="ignore"):
                emission[t] = np.log(weights / weights.sum() if scores.observed[t] else allowed)
        if not scores.observed.any():
            assert labels == [BACKGROUND] * rows
            continue
        every = product(range(size), repeat=rows)
        best = max(sequence_score(path, emission, transition) for path in every)
        assert sequence_score(labels, emission, transition) == pytest.approx(best, rel=1e-5)


def test_rows_of_a_chain_sum_to_one():
    graph = random_graph(np.random.default_rng(0), 6, density=0.3)
    for stay in (None, 0.9):
        assert np.exp(dense(make_chain(graph, stay, 0.2))).sum(axis=1) == pytest.approx(1)


def test_viterbi_smooths_one_stray_row():
    values = np.full((9, 5), 0.1)
    values[:, 1] = 0.5
    values[4] = [0.1, 0.4, 0.1, 0.1, 0.5]

    assert labels_of(Viterbi(), make_scores(values)) == [1] * 9


def test_viterbi_fills_silence_from_both_sides():
    scores = make_scores([[1, 0, 0, 0, 0]] + [[0] * 5] * 6 + [[0, 0, 1, 0, 0]], [1, *[0] * 6, 1])

    labels = labels_of(Viterbi(), scores)

    assert (labels[0], labels[-1]) == (0, 2)
    assert labels == sorted(labels)
    assert 1 in labels


def test_viterbi_reaches_keysteps_that_the_graph_does_not():
    values = np.zeros((20, 5))
    values[:10, 4] = values[10:, 0] = 1

    assert labels_of(Viterbi(), make_scores(values)) == [4] * 10 + [0] * 10


@BOTH
def test_a_video_of_no_rows_has_no_labels(decoder):
    assert labels_of(decoder, make_scores(np.zeros((0, 5)))) == []


@BOTH
@pytest.mark.parametrize(("observed", "label"), [(True, 3), (False, BACKGROUND)])
def test_one_row_is_labelled_by_its_score(decoder, observed, label):
    assert labels_of(decoder, make_scores([[0, 0.1, 0, 0.6, 0.2]], [observed])) == [label]


@BOTH
def test_a_video_without_speech_is_all_background(decoder):
    scores = make_scores(np.ones((4, 5)), [False] * 4)

    assert labels_of(decoder, scores) == [BACKGROUND] * 4


@BOTH
def test_values_of_unobserved_rows_are_ignored(decoder):
    observed = [[0, 1, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0.9, 0, 0, 0]]
    noisy = [observed[0], [np.nan, 0, np.inf, 0, 9], observed[2]]

    labels = [labels_of(decoder, make_scores(v, [1, 0, 1])) for v in (observed, noisy)]

    assert labels[0] == labels[1]


@BOTH
def test_forbidden_keysteps_are_never_predicted(decoder):
    """The graph leads out of the allowed ones, and silence tempts to follow it."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        allowed = rng.choice(6, int(rng.integers(1, 4)), replace=False).tolist()
        scores = random_scores(rng, 40, 6, spoken=0.3).restrict(allowed)

        labels = labels_of(decoder, scores, random_graph(rng, 6, density=0.4))

        assert set(labels) <= {BACKGROUND, *allowed}
        assert BACKGROUND not in labels[int(np.flatnonzero(scores.observed)[0]) :]


@BOTH
def test_a_row_that_forbids_every_keystep_is_background(decoder):
    values = [[0, 0, 1, 0, 0], [-np.inf] * 5, [0, 0, 1, 0, 0]]

    assert labels_of(decoder, make_scores(values)) == [2, BACKGROUND, 2]


@BOTH
def test_scores_that_forbid_everything_are_background(decoder):
    assert labels_of(decoder, make_scores(np.full((3, 5), -np.inf))) == [BACKGROUND] * 3


@BOTH
def test_an_empty_graph_lets_keysteps_go_on(decoder):
    empty = make_graph(np.zeros((5, 5), np.int64))
    scores = make_scores([[0, 0, 0, 1, 0]] + [[0] * 5] * 3, [1, 0, 0, 0])

    assert labels_of(decoder, scores, empty) == [3] * 4


@BOTH
def test_labels_belong_to_the_video_of_the_scores(decoder):
    scores = make_scores(np.ones((4, 5)), video="v", hop=0.5)

    labels = decoder.decode(scores, CHAIN)

    assert (labels.video, labels.hop, labels.vocabulary) == ("v", 0.5, scores.vocabulary)
    assert labels.anchors is None


@BOTH
def test_a_graph_of_another_vocabulary_is_refused(decoder):
    other = make_graph(np.eye(5, k=1, dtype=np.int64), Vocabulary(tuple("abcde")))

    with pytest.raises(DataError, match="video 'video' and the graph must share one vocabulary"):
        decoder.decode(make_scores(np.ones((2, 5))), other)


@BOTH
def test_decoding_twice_gives_the_same_labels(decoder):
    rng = np.random.default_rng(0)
    scores, graph = random_scores(rng, 30, 5), random_graph(rng, 5)

    assert labels_of(decoder, scores, graph) == labels_of(decoder, scores, graph)


@pytest.mark.parametrize("epsilon", [-0.1, math.nan, math.inf])
def test_epsilon_must_be_a_number_from_zero_on(epsilon):
    with pytest.raises(ConfigError, match=f"epsilon must be a number from 0 on, got {epsilon}"):
        BayesFilter(epsilon)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0}, "temperature must be a number above 0, got 0"),
        ({"temperature": math.inf}, "temperature must be a number above 0, got inf"),
        ({"temperature": math.nan}, "temperature must be a number above 0, got nan"),
        ({"self_transition": 1.5}, "self_transition must be between 0 and 1 or None, got 1.5"),
        ({"self_transition": -0.5}, "self_transition must be between 0 and 1 or None, got -0.5"),
        (
            {"self_transition": math.nan},
            "self_transition must be between 0 and 1 or None, got nan",
        ),
        ({"floor": 0}, "floor must be above 0 and at most 1, got 0; without it some keysteps"),
        ({"floor": 2}, "floor must be above 0 and at most 1, got 2"),
    ],
)
def test_options_of_viterbi_must_be_probabilities_and_a_temperature(options, message):
    with pytest.raises(ConfigError, match=message):
        Viterbi(**options)
