"""Cheapest paths: against all paths, against scipy, in plain Python and compiled."""

import math
import pickle
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import dijkstra

import reference
from reference import make_graph, random_graph
from stepgraph.graph import compiling
from stepgraph.graph import shortest_paths as paths
from stepgraph.graph.shortest_paths import cheapest_path, make_network


@pytest.fixture
def everything_compiled(monkeypatch):
    monkeypatch.setattr(paths, "COMPILED_FROM", 0)


def costs_of(entries, size):
    """A matrix of costs from (source, target, cost); zeros stay stored."""
    source, target, cost = zip(*entries, strict=True)
    return csr_array(coo_array((np.array(cost, float), (source, target)), shape=(size, size)))


def random_costs(rng, size, edges, *, whole=False):
    """Sparse costs without duplicate edges; whole ones are small, with many zeros and ties."""
    cells = rng.choice(size * size, edges, replace=False)
    cost = rng.integers(0, 3, edges).astype(float) if whole else rng.exponential(1, edges)
    return csr_array(coo_array((cost, np.divmod(cells, size)), shape=(size, size)))


def cost_of(costs, path):
    """Sum of the costs along a path; fails on an edge that is not stored."""
    stored = {
        (int(i), int(j)): c for i, j, c in zip(*coo_array(costs).coords, costs.data, strict=True)
    }
    return sum(stored[edge] for edge in pairwise(path))


def random_small_problem(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 8))
    costs = random_costs(rng, size, int(rng.integers(1, size * size)), whole=seed % 2 == 1)
    start, end = rng.integers(0, size, 2).tolist()
    return costs, start, end


def least_cost(costs, start, end):
    """By enumeration of all paths that meet no keystep twice."""
    ones = csr_array((np.ones(costs.nnz, int), costs.indices, costs.indptr), costs.shape)
    every = reference.simple_paths(make_graph(ones.toarray()), start, end)
    return min((cost_of(costs, path) for path in every), default=None)


def test_path_is_the_cheapest_of_all_paths():
    for seed in range(300):
        costs, start, end = random_small_problem(seed)

        found = cheapest_path(make_network(costs), start, end)

        least = least_cost(costs, start, end)
        assert (found is None) == (least is None)
        if found is not None:
            assert (found[0], found[-1]) == (start, end)
            assert len(set(found)) == len(found)
            assert cost_of(costs, found) == pytest.approx(least)


def test_path_of_a_graph_is_the_most_probable_of_all():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(2, 7))
        graph = random_graph(rng, size, density=rng.uniform(0.1, 0.9))
        start, end = rng.integers(0, size, 2).tolist()

        assert graph.path(start, end) == reference.best_path(graph, start, end)


@pytest.mark.usefixtures("everything_compiled")
def test_compiled_search_finds_the_same_paths():
    for seed in range(300):
        costs, start, end = random_small_problem(seed)
        compiled = make_network(costs)
        plain = paths.Network(*((a.tolist(), b.tolist()) for a, b in compiled))

        found = cheapest_path(compiled, start, end)

        assert compiled.compiled
        assert not plain.compiled
        assert found == cheapest_path(plain, start, end)


@pytest.mark.parametrize("size", [60, 700, 3000])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("edges_each", [1, 3, 20])
def test_costs_of_paths_are_those_of_scipy(size, whole, edges_each):
    rng = np.random.default_rng(size)
    costs = random_costs(rng, size, size * edges_each, whole=whole)
    network = make_network(costs)

    for start, end in rng.integers(0, size, (20, 2)).tolist():
        found = cheapest_path(network, start, end)

        least = dijkstra(costs, indices=start)[end]
        cost = math.inf if found is None else cost_of(costs, found)
        assert cost == pytest.approx(least)


def test_hubs_and_grids_agree_with_scipy():
    """Shapes unlike random ones: everything leads over one keystep; only neighbours are joined."""
    rng = np.random.default_rng(0)
    star = [(0, n, rng.random()) for n in range(1, 200)] + [
        (n, 0, rng.random()) for n in range(1, 200)
    ]
    line = [(n, n + step, rng.random()) for step in (1, -1) for n in range(1, 199)]
    for entries in (star, line):
        costs = costs_of(entries, 200)
        network, distances = make_network(costs), dijkstra(costs)

        for start, end in rng.integers(1, 199, (50, 2)).tolist():
            found = cheapest_path(network, start, end)

            assert cost_of(costs, found) == pytest.approx(distances[start, end])


def test_a_single_edge_dearer_than_both_trees_is_not_overlooked():
    """Both trees grow past 5 before the direct edge of 9 has its turn; the way round costs 11."""
    costs = costs_of([(0, 1, 9), (0, 2, 5), (2, 3, 1), (3, 1, 5)], 4)

    assert cheapest_path(make_network(costs), 0, 1) == (0, 1)


@pytest.mark.parametrize("turned", [False, True])
def test_one_tree_goes_on_while_the_other_waits_at_a_dear_edge(turned):
    """Twenty cheap edges and one of 10 are cheaper than the direct edge of 15."""
    entries = [(n, n + 1, 0.1) for n in range(20)] + [(20, 21, 10), (0, 21, 15)]
    if turned:
        entries = [(target, source, cost) for source, target, cost in entries]
    way = tuple(range(22))

    found = cheapest_path(make_network(costs_of(entries, 22)), *((21, 0) if turned else (0, 21)))

    assert found == (way[::-1] if turned else way)


def test_edges_that_cost_nothing_are_edges():
    costs = costs_of([(0, 1, 0), (1, 2, 0), (2, 0, 0), (0, 3, 1), (2, 3, 0)], 4)

    assert cheapest_path(make_network(costs), 0, 3) == (0, 1, 2, 3)


def test_a_cycle_that_costs_nothing_is_not_walked():
    costs = costs_of([(0, 1, 0), (1, 0, 0), (1, 2, 0), (2, 1, 0), (2, 2, 0)], 3)

    assert cheapest_path(make_network(costs), 0, 2) == (0, 1, 2)


def test_between_equal_paths_the_choice_is_always_the_same():
    entries = [(0, n, 1) for n in range(1, 9)] + [(n, 9, 1) for n in range(1, 9)]
    shuffled = [entries[n] for n in np.random.default_rng(0).permutation(len(entries))]

    found = {cheapest_path(make_network(costs_of(e, 10)), 0, 9) for e in (entries, shuffled)}

    assert len(found) == 1


def test_order_of_stored_edges_does_not_matter():
    costs = csr_array((np.ones(4), [2, 1, 3, 3], [0, 2, 3, 4, 4]), shape=(4, 4))
    in_order = costs.copy()
    in_order.sort_indices()

    found = [cheapest_path(make_network(one), 0, 3) for one in (costs, in_order)]

    assert found[0] == found[1]


def test_positions_may_be_numpy_integers():
    network = make_network(costs_of([(0, 1, 1)], 2))

    found = cheapest_path(network, np.int64(0), np.int32(1))

    assert found == (0, 1)
    assert all(type(keystep) is int for keystep in found)


@pytest.mark.usefixtures("everything_compiled")
def test_a_graph_that_was_searched_compiled_can_be_pickled():
    graph = make_graph([[0, 1], [0, 0]])
    graph.path(0, 1)

    again = pickle.loads(pickle.dumps(graph))

    assert again.path(0, 1) == (0, 1)


def test_small_graphs_do_without_the_compiler():
    code = (
        "import numpy as np, sys; from scipy.sparse import csr_array;"
        "from stepgraph.graph.shortest_paths import cheapest_path, make_network;"
        "cheapest_path(make_network(csr_array(np.eye(9, k=1))), 0, 8);"
        "print('numba' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"


@pytest.mark.usefixtures("everything_compiled")
def test_where_nothing_can_be_kept_on_disk_the_search_is_compiled_anew(monkeypatch):
    import numba

    def refuse(cache=False):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(numba, "njit", refuse)
    compiling.compiled.cache_clear()
    try:
        assert cheapest_path(make_network(costs_of([(0, 1, 1)], 2)), 0, 1) == (0, 1)
    finally:
        compiling.compiled.cache_clear()


@pytest.mark.parametrize(("edges", "pays"), [(19_999, False), (20_000, True)])
def test_twenty_thousand_edges_are_worth_the_compiler(edges, pays):
    first, second = np.divmod(np.arange(edges), 200)
    costs = csr_array((np.ones(edges), (first, second)), shape=(200, 200))

    assert make_network(costs).compiled is pays
