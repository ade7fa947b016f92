"""The mistakes that ``make mutants`` makes."""

import ast
from pathlib import Path

import pytest
from fuzz import mistakes, mutants

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", {"(a <= b)"}),
        ("0 <= a < b", {"(0 < a < b)", "(0 <= a <= b)", "1 <= a < b", "-1 <= a < b"}),
        ("a + b", {"(a - b)"}),
        ("a and b", {"(a or b)"}),
        ("f(not a)", {"f((a))"}),
        ("x.argmax(axis=1)", {"(x.argmin)(axis=1)", "x.argmax(axis=2)", "x.argmax(axis=0)"}),
        ("max(a, b)", {"(min(a, b))"}),
        ("a[b:]", {"a[b + 1:]"}),
        ("a[:b]", {"a[:b + 1]", "a[1:b]"}),
        ("a if b else c", {"(c if b else a)"}),
        ("'ä' * b", {"('ä' / b)"}),
    ],
)
def test_mistakes_are_small_ones(source, expected):
    whole = f"y = {source}"

    found = {one.apply(whole.encode()).decode() for one in mistakes.find_mutants(whole)}

    assert found == {f"y = {mistake}" for mistake in expected}


def test_another_variable_is_returned_and_what_is_said_is_left_alone():
    source = "def f(a, b):\n    if a:\n        raise ValueError(1 + b)\n    return a\n"

    [found] = mistakes.find_mutants(source)

    assert found.apply(source.encode()).decode().endswith("return b\n")


def test_every_mutant_is_a_program_that_differs():
    source = (ROOT / "src/stepgraph/graph/order.py").read_text("utf-8")
    tree = ast.dump(ast.parse(source))

    for one in mistakes.find_mutants(source):
        assert ast.dump(ast.parse(one.apply(source.encode()))) != tree


def test_a_seed_decides_which_are_drawn(monkeypatch):
    few = ["graph/order", "graph/shares", "scoring/fusion", "evaluation/order"]
    assert {*few} < {*mutants._modules()}
    monkeypatch.setattr(mutants, "_modules", lambda: few)
    drawn = [mutants.choose(["scoring", "graph/order"], 9, seed) for seed in (1, 1, 2)]

    assert drawn[0] == drawn[1] != drawn[2]
    assert {module for module, _ in drawn[0]} == {"graph/order", "scoring/fusion"}


def test_the_tests_of_every_module_are_there():
    for module in (*mutants.TESTS, *(f"{room}/new" for room in mutants.ROOMS)):
        for test in mutants.tests_of(module):
            assert (ROOT / test).is_file(), test
