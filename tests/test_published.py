"""Every published number has a recipe; the quick ones are made here and compared.

A recipe is a TOML file: the ``command`` that makes the numbers; the ``numbers`` as they are
printed (``percent`` where the answer is a fraction); or a file of committed ``results`` that all
of a new answer must agree with; and the places where they are ``printed``.  What cannot be had
here is ``unmeasured``, with the reason.  Those that take minutes (``slow``) are made by ``make
published``.  Speed belongs to a machine: a recipe with ``machine`` is never run here, its pages
are compared with what was committed.  ``python -m benchmarks.published`` writes new numbers.

Processors round in other places, so that a number may differ by ``TOLERANCE``.  What is cached in
the home folder is not used: it depends on nothing but the machine which tests run, and how.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from benchmarks.published import by_row, is_table, numbers_of, read_answer, value_at

from stepgraph.cli import main
from stepgraph.cli.parser import make_parser

ROOT = Path(__file__).parent.parent
RECIPES = {
    path.stem: tomllib.loads(path.read_text("utf-8"))
    for path in sorted((ROOT / "recipes").glob("*.toml"))
}
ALL = os.environ.get("STEPGRAPH_PUBLISHED") == "all"
"""Whether also those are made that take minutes."""
TOLERANCE = 0.15
"""By how much a percentage may differ on another processor, unless a recipe allows it more."""

KEYS = {
    *("what", "command", "before", "needs", "extra", "slow", "machine", "tolerance", "results"),
    *("numbers", "percent", "printed", "unmeasured"),
}


def those(wanted):
    return pytest.mark.parametrize("name", [n for n, one in RECIPES.items() if wanted(one)])


def half_a_digit(printed):
    """By how much a number may be off that is printed so."""
    decimals = len(printed.partition(".")[2])
    return 0.5 * 10**-decimals


def check_numbers(recipe, answer, tolerance):
    for key, printed in numbers_of(recipe).items():
        factor = 100 if key in recipe.get("percent", {}) else 1
        plain = printed.replace(",", "")
        found = factor * value_at(answer, key)
        allowed = max(tolerance, half_a_digit(plain)) + 1e-9
        assert abs(found - float(plain)) <= allowed, f"{key}: {found}, printed {printed}"


def measured_in(table):
    """Every measured cell of a table, by section, row, column and whether it is an error."""
    return {
        (row["section"], row["name"], column, part): number
        for row in table["rows"]
        for column, cell in row["measured here"].items()
        for part, number in cell.items()
        if part in ("value", "standard_error", "low", "high") and number is not None
    }


def check_table(answer, committed, tolerance):
    found, expected = measured_in(answer), measured_in(committed)
    assert set(found) == set(expected)
    for cell, number in expected.items():
        # Edit distances are fractions, all others percent.
        allowed = tolerance / 10 if abs(number) < 1 and "edit" in cell[2] else tolerance
        assert abs(found[cell] - number) <= allowed, f"{cell}: {found[cell]}, committed {number}"


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_are_whole_and_their_commands_exist(name):
    recipe = RECIPES[name]

    assert set(recipe) <= KEYS
    assert recipe["what"]
    assert numbers_of(recipe) or recipe.get("results") or recipe.get("unmeasured")
    for command in [*recipe.get("before", []), recipe["command"]]:
        program, *words = shlex.split(command)
        if program == "stepgraph":
            make_parser(words).parse_args(words)
        elif program == "python":
            assert (ROOT / (words[1].replace(".", "/") + ".py")).is_file()
        else:
            assert program == "paper"


@those(lambda one: one.get("printed"))
def test_pages_print_what_the_recipe_says(name):
    numbers = numbers_of(RECIPES[name])
    for place in RECIPES[name]["printed"]:
        page = " ".join((ROOT / place["page"]).read_text("utf-8").split())
        text = re.sub(r"\{([^}]+)\}", lambda found: numbers[found[1]], place["text"])

        assert " ".join(text.split()) in page, f"{place['page']}: {text}"


@those(lambda one: one.get("results") and numbers_of(one))
def test_printed_numbers_are_those_that_were_committed(name):
    committed = read_answer((ROOT / RECIPES[name]["results"]).read_text("utf-8"))

    check_numbers(RECIPES[name], by_row(committed), 0)


def test_every_number_of_the_readme_has_a_recipe():
    left = " ".join((ROOT / "README.md").read_text("utf-8").split())
    left = left.partition("## Results")[2].partition("## Where")[0]
    for recipe in RECIPES.values():
        for place in recipe.get("printed", []):
            if place["page"] == "README.md":
                numbers = numbers_of(recipe)
                text = re.sub(r"\{([^}]+)\}", lambda f, n=numbers: n[f[1]], place["text"])
                left = left.replace(" ".join(text.split()), "")

    found = set(re.findall(r"\b\d+\.\d+\b", left))
    assert found <= {"0.4", "0.15"}  # the threshold; by how much processors differ


@pytest.fixture
def answer_of(tmp_path, capsys, request):
    """Run the commands of a recipe and read what the last one answers."""

    def run(recipe):
        if "video" in recipe.get("extra", ""):
            pytest.importorskip("av", reason="needs the extra video")
        places = {"out": tmp_path}
        if recipe.get("needs"):
            places["data"] = request.getfixturevalue("real_data")
            for part in recipe["needs"]:
                if not (places["data"] / part).exists():
                    pytest.skip(f"no {part} among the real data")
        for command in recipe.get("before", []):
            run_command(command.format(**places))
            capsys.readouterr()
        return read_answer(run_command(recipe["command"].format(**places)) or captured(capsys))

    return run


def captured(capsys):
    return capsys.readouterr().out


def run_command(command):
    """Run the command line in this process, a benchmark in one of its own."""
    program, *words = shlex.split(command)
    if program == "stepgraph":
        assert main(words) == 0, command
        return ""
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


def compare(recipe, answer):
    tolerance = recipe.get("tolerance", TOLERANCE)
    if is_table(answer) and "results" in recipe:
        committed = json.loads((ROOT / recipe["results"]).read_text("utf-8"))
        check_table(answer, committed, tolerance)
    check_numbers(recipe, by_row(answer), tolerance)


def is_quick(recipe):
    elsewhere = recipe.get("machine") or recipe.get("unmeasured")
    return not (recipe.get("slow") or elsewhere or recipe["command"] == "paper")


@those(lambda one: is_quick(one) and not one.get("needs"))
def test_numbers_of_the_embedded_corpus_are_made_anew(name, answer_of):
    compare(RECIPES[name], answer_of(RECIPES[name]))


@pytest.mark.data
@those(lambda one: is_quick(one) and one.get("needs"))
def test_numbers_of_real_data_are_made_anew(name, answer_of):
    compare(RECIPES[name], answer_of(RECIPES[name]))


@pytest.mark.slow
@pytest.mark.skipif(not ALL, reason="takes minutes: make published")
@those(lambda one: one.get("slow"))
def test_numbers_that_take_minutes_are_made_anew(name, answer_of):
    compare(RECIPES[name], answer_of(RECIPES[name]))
