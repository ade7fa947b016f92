"""The most likely path through a chain, and how probable states are, against every sequence."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array

import reference
from reference import dense, make_graph, random_scores, sequence_score
from stepgraph.decoders.markov import make_chain
from stepgraph.graph import compiling
from stepgraph.graph.chains import Chain, marginals, most_likely_path


def random_emission(rng, *, forbidden):
    rows, size = int(rng.integers(1, 6)), int(rng.integers(1, 5))
    emission = rng.normal(0, 3, (rows, size))
    emission[rng.random((rows, size)) < forbidden] = -np.inf
    emission[np.arange(rows), rng.integers(0, size, rows)] = rng.normal(0, 3, rows)
    emission[rng.random(rows) < 0.2] = 0.0
    return emission


def random_chain(rng, size):
    """Some edges and a floor for the others; every edge is above the floor."""
    floor = float(rng.choice([-8.0, -3.0, -1.0]))
    table = floor + rng.exponential(2, (size, size))
    stored = np.where((rng.random((size, size)) < 0.5) & ~np.eye(size, dtype=bool), table, 0)
    return Chain.of_edges(table.diagonal(), csr_array(stored), floor)


def random_problem(rng, *, forbidden=0.0):
    emission = random_emission(rng, forbidden=forbidden)
    size = emission.shape[1]
    return emission, rng.dirichlet(np.ones(size), size)


def best_of_all(emission, transition):
    rows, size = emission.shape
    every = product(range(size), repeat=rows)
    return max(every, key=lambda one: sequence_score(one, emission, transition))


def test_path_is_the_best_of_all_sequences():
    """With forbidden states, silent rows, edges and any floor."""
    for seed in range(300):
        rng = np.random.default_rng(seed)
        emission = random_emission(rng, forbidden=0.3)
        chain = random_chain(rng, emission.shape[1])

        found = most_likely_path(emission, chain)

        best = sequence_score(best_of_all(emission, dense(chain)), emission, dense(chain))
        assert sequence_score(found.tolist(), emission, dense(chain)) == pytest.approx(best)
        assert np.isfinite(best)


def test_path_through_a_full_matrix_is_the_best_of_all_sequences():
    for seed in range(150):
        emission, transition = random_problem(
            np.random.default_rng(seed), forbidden=0.3 * (seed % 2)
        )

        path = most_likely_path(emission, Chain.of_all(np.log(transition)))

        assert tuple(path.tolist()) == best_of_all(emission, np.log(transition))


def test_passing_over_edges_changes_nothing():
    """At a size where most edges are passed over."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        counts = rng.integers(1, 50, (200, 200)) * (rng.random((200, 200)) < 0.05)
        chain = make_chain(make_graph(counts), 0.97, 1e-3)
        scores = random_scores(rng, 120, 200)
        emission = np.where(scores.observed[:, None], scores.values / 0.1, 0.0)

        found = most_likely_path(emission, chain).tolist()

        slow = reference.most_likely_path(emission, dense(chain))
        assert sequence_score(found, emission, dense(chain)) == pytest.approx(
            sequence_score(slow, emission, dense(chain))
        )


def test_of_equally_likely_ways_staying_comes_first_then_an_edge_then_the_floor():
    level = np.zeros((2, 3))
    edges = csr_array(np.array([[0, 0, -1.0], [0, 0, -1.0], [0, 0, 0]]))
    last = np.array([[0, 0, 0], [-9, -9, 0.0]])

    def into_the_last_state(stay, floor, edges=edges):
        return most_likely_path(last, Chain.of_edges(np.full(3, stay), edges, floor)).tolist()

    assert into_the_last_state(-1.0, -1.0) == [2, 2]
    assert into_the_last_state(-2.0, -1.0) == [0, 2]
    assert into_the_last_state(-2.0, -2.0, csr_array((3, 3))) == [2, 2]
    assert into_the_last_state(-2.0, -1.5, csr_array((3, 3))) == [0, 2]
    assert most_likely_path(level, Chain.of_all(np.zeros((3, 3)))).tolist() == [0, 0]


def test_emissions_are_left_as_they_are():
    emission = np.array([[0.5, 0.1], [0.2, 0.4]])

    most_likely_path(emission, Chain.of_all(np.log(np.full((2, 2), 0.5))))

    assert emission.tolist() == [[0.5, 0.1], [0.2, 0.4]]


def test_a_transition_of_probability_one_is_a_way():
    assert most_likely_path(np.zeros((3, 1)), Chain.of_all(np.zeros((1, 1)))).tolist() == [0] * 3


def test_no_rows_have_no_path():
    transition = np.full((3, 3), 1 / 3)

    path = most_likely_path(np.zeros((0, 3)), Chain.of_all(np.log(transition)))

    assert (path.tolist(), path.dtype) == ([], np.int64)


def test_no_rows_have_no_probabilities():
    assert marginals(np.zeros((0, 3)), np.full((3, 3), 1 / 3)).shape == (0, 3)


def test_probability_of_a_state_is_that_of_all_sequences_through_it():
    """With and without states that may not be."""
    for seed in range(150):
        rng = np.random.default_rng(seed)
        emission, transition = random_problem(rng, forbidden=0.3 * (seed % 2))
        rows, size = emission.shape

        found = marginals(emission, transition)

        through = np.zeros((rows, size))
        for one in product(range(size), repeat=rows):
            weight = math.exp(sequence_score(one, emission, np.log(transition)))
            through[np.arange(rows), one] += weight
        assert found == pytest.approx(through / through.sum(axis=1, keepdims=True))


def test_states_of_one_row_are_as_probable_as_their_emission():
    emission = np.log([[0.2, 0.5, 0.3]])

    assert marginals(emission, np.full((3, 3), 1 / 3)) == pytest.approx(np.exp(emission))


def test_one_state_is_certain():
    assert marginals(np.zeros((4, 1)), np.ones((1, 1))).tolist() == [[1.0]] * 4


def test_a_state_that_may_not_be_has_no_probability():
    emission = np.zeros((5, 3))
    emission[2, 1] = -np.inf

    assert marginals(emission, np.full((3, 3), 1 / 3))[2, 1] == 0


def test_probabilities_of_thousands_of_rows_add_up_to_one():
    emission = 0.07 * np.random.default_rng(0).normal(-50, 5, (3000, 3))

    found = marginals(emission, np.full((3, 3), 1 / 3))

    assert ((found > 0) & (found <= 1)).all()
    assert found.sum(axis=1) == pytest.approx(1)


def test_probabilities_are_defined_where_rows_contradict_each_other():
    """Every row is certain of another state, beyond what a number can say."""
    emission = np.full((6, 3), -1e3)
    emission[np.arange(6), [0, 2, 1, 0, 2, 1]] = 0.0

    found = marginals(emission, np.full((3, 3), 0.05) + 0.85 * np.eye(3))

    assert found.argmax(axis=1).tolist() == [0, 2, 1, 0, 2, 1]
    assert found.sum(axis=1) == pytest.approx(1)


def test_probabilities_do_not_depend_on_what_all_states_of_a_row_have_in_common():
    """As where a row is far from the place of every keystep."""
    emission, transition = random_problem(np.random.default_rng(5))

    far, near = (marginals(one, transition) for one in (emission - 1e5, emission))

    assert far == pytest.approx(near, abs=1e-6)


def test_emissions_are_left_as_they_are_by_probabilities():
    emission = np.array([[0.5, 0.1], [0.2, 0.4]])

    marginals(emission, np.full((2, 2), 0.5))

    assert emission.tolist() == [[0.5, 0.1], [0.2, 0.4]]


def test_paths_and_probabilities_are_the_same_compiled_and_not(monkeypatch):
    rng = np.random.default_rng(5)
    emission, chain = rng.normal(0, 3, (60, 9)), random_chain(rng, 9)
    transition = rng.dirichlet(np.ones(9), 9)
    found = []
    for steps in (10**9, 0):
        monkeypatch.setattr(compiling, "FEW_STEPS", steps)
        found.append((most_likely_path(emission, chain), marginals(emission, transition)))

    (plain_path, plain), (compiled_path, compiled) = found

    assert plain_path.tolist() == compiled_path.tolist()
    assert plain.tolist() == compiled.tolist()


def test_only_many_steps_are_compiled(monkeypatch):
    monkeypatch.setattr(compiling, "compiled", lambda function: "compiled")

    def loop():
        pass

    plain = [compiling.compiled_later(loop, compiling.FEW_STEPS // 2) for _ in range(2)]

    assert plain == [loop, loop]
    assert compiling.compiled_later(loop, 1) == "compiled"
