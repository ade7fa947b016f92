"""Options from the fields of a dataclass: named, typed and explained there."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from stepgraph.cli.arguments import (
    add_fields,
    describe_fields,
    given_fields,
    list_fields,
    parse_option,
    parse_value,
)
from stepgraph.decoders import PathSearch, Viterbi
from stepgraph.decoders.baselines import Random
from stepgraph.errors import ConfigError


@dataclass(frozen=True)
class Kettle:
    """How water is boiled.

    Attributes
    ----------
    litres
        How much water.  More takes longer.
    lid
        Whether the ``lid`` is on; see :class:`~kitchen.Lid`.
    heat, until
        What is set.
    """

    litres: float = 1.0
    cups: int = 2
    lid: bool = False
    heat: Literal["low", "high"] = "low"
    until: float | None = None
    names: tuple[str, ...] = ("a", "b")
    place: Path | None = None


@pytest.fixture
def parse():
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_fields(parser, Kettle)
    return lambda *arguments: given_fields(parser.parse_args(arguments), Kettle)


def test_only_what_is_given_is_parsed(parse):
    assert parse() == {}
    assert parse("--cups", "3", "--no-lid") == {"cups": 3, "lid": False}


def test_values_have_the_types_of_the_fields(parse):
    found = parse("--litres", "2", "--heat", "high", "--until", "none", "--names", "x, y")

    assert found == {"litres": 2.0, "heat": "high", "until": None, "names": ("x", "y")}
    assert parse("--place", "shelf") == {"place": Path("shelf")}


def test_a_wrong_value_is_answered_with_what_was_expected(parse):
    with pytest.raises(argparse.ArgumentError, match=r"must be a whole number, got '2\.5'"):
        parse("--cups", "2.5")
    with pytest.raises(argparse.ArgumentError, match="must be one of low, high, got 'hot'"):
        parse("--heat", "hot")


def test_the_help_is_the_first_sentence_of_the_docstring():
    assert describe_fields(Kettle) == {
        "litres": "how much water",
        "lid": "whether the lid is on",
        "heat": "what is set",
        "until": "what is set",
    }


def test_fields_are_listed_with_default_type_and_meaning():
    first, second, *_ = list_fields(Kettle)

    assert first == {
        "name": "litres",
        "default": 1.0,
        "type": "a number",
        "about": "how much water",
    }
    assert (second["type"], second["about"]) == ("a whole number", "")


def test_options_of_a_decoder_have_the_types_of_its_fields():
    assert parse_option("seed=3", Random) == ("seed", 3)
    assert parse_option("self-transition=none", Viterbi) == ("self_transition", None)
    assert isinstance(parse_option("threshold=1", PathSearch)[1], float)


def test_a_wrong_option_of_a_decoder_is_refused():
    with pytest.raises(ConfigError, match=r"--option seed must be a whole number, got '1\.5'"):
        parse_option("seed=1.5", Random)
    with pytest.raises(ConfigError, match="PathSearch has no option 'stay'; it has threshold"):
        parse_option("stay=1", PathSearch)
    with pytest.raises(ConfigError, match=r"--option must be NAME=VALUE, .*got 'stay'"):
        parse_option("stay", PathSearch)


def test_a_class_without_fields_gets_literals():
    assert parse_option("n=3", object) == ("n", 3)
    assert parse_option("word=plain", object) == ("word", "plain")
    assert parse_option("off=None", object) == ("off", None)


def test_words_of_yes_and_no():
    assert parse_value("yes", bool, "it") is True
    assert parse_value("False", bool, "it") is False
    with pytest.raises(ConfigError, match="it must be yes or no, got 'maybe'"):
        parse_value("maybe", bool, "it")
