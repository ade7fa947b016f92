"""Names until 0.2.0: none works any more, and every error names the new one."""

import copy
import importlib
import inspect
import json
import pickle
import re
from dataclasses import replace
from pathlib import Path

import pytest

import stepgraph as sg
from stepgraph.cli import main
from stepgraph.errors import ConfigError
from stepgraph.graph.shares import DirichletPrior
from stepgraph.renamed import KEYS, NAMES, OPTIONS, PRINTED, with_new_keys

CHANGELOG = (Path(__file__).parent.parent / "CHANGELOG.md").read_text("utf-8")


def table():
    """Module, new module, and pairs of an old and a new name."""
    pairs = []
    for word in NAMES.split():
        old, equals, new = word.partition("=")
        if equals:
            pairs.append((old, new))
        else:
            pairs, (module, _, moved) = [], word.partition(">")
            yield f"stepgraph.{module}", f"stepgraph.{moved or module}", pairs


TABLE = list(table())

BEFORE = Path(__file__).parent / "data" / "public_names_0.2.0.txt"
"""Public names of 0.2.0: of each module, its classes with their attributes and the arguments of
their constructors, its functions with their arguments, and its constants."""

GONE = {
    "stepgraph.cli.asked.decisions",  # annotations_in of cli.results
    "stepgraph.cli.learning.reproduce",  # in cli.reproducing
    "stepgraph.encoders.sentence_models.SentenceModel.bfloat16",  # precision, of other values
    "stepgraph.encoders.visual.running",
    "stepgraph.experiments.methods.Method.spread",
    "stepgraph.graph.courses.videos_each.met",  # population, given by position only
    "stepgraph.training.loop.is_half",
}
"""Names of 0.2.0 that were removed or moved by themselves, and have no other name."""


def parts(owner):
    """Attributes of a class and the arguments of its constructor, or arguments of a function."""
    try:
        arguments = inspect.signature(owner).parameters
    except (TypeError, ValueError):
        arguments = {}
    found = {*dir(owner), *arguments}
    for kind in getattr(owner, "__mro__", ())[:-1]:
        found.update(getattr(kind, "__annotations__", {}))
        if kind.__module__.startswith("stepgraph."):
            found.update(re.findall(r"\bself\.(\w+)", inspect.getsource(kind)))
    return found


def lost_names():
    """Names of 0.2.0 that neither exist nor are in the table."""
    modules = {old: (new, dict(pairs)) for old, new, pairs in TABLE}
    changed = {new: dict(pairs) for _, new, pairs in TABLE}
    for line in BEFORE.read_text("utf-8").splitlines():
        module, *names = line.split()
        new, pairs = modules.get(module, (module, {}))
        found = vars(importlib.import_module(new))
        for one in names:
            name, *members = re.findall(r"\w+", one)
            kind = pairs.get(name, name)
            if kind not in found:
                yield f"{module}.{name}"
                continue
            owner = found[kind]
            there = parts(owner)
            known = changed.get(getattr(owner, "__module__", ""), {})
            for member in members:
                if not there & {member, "kwargs"} and f"{kind}.{member}" not in known:
                    yield f"{module}.{name}.{member}"


@pytest.mark.parametrize(("old", "new"), [(a, b) for a, b, _ in TABLE if a != b])
def test_a_module_that_moved_is_named(old, new):
    with pytest.raises(ModuleNotFoundError, match=f"{old!r} is now {new!r}"):
        importlib.import_module(old)


@pytest.mark.parametrize(("module", "pairs"), [one[1:] for one in TABLE])
def test_old_names_are_gone_and_new_ones_exist(module, pairs):
    found = importlib.import_module(module)
    for old, new in pairs:
        kind, _, old = old.rpartition(".")
        if kind:
            owner = getattr(found, kind)
            assert owner.__module__ == module
            assert not getattr(owner, "_is_protocol", False)  # another attribute changes those
            assert new in parts(owner)
            assert old not in parts(owner)
        else:
            assert new in vars(found)
            with pytest.raises(ImportError, match=f"{old!r} of {module!r} is now {new!r}"):
                getattr(found, old)


def test_every_name_of_the_release_exists_or_is_in_the_table():
    assert set(lost_names()) == GONE


@pytest.mark.parametrize("one", [sg.TaskMarkov(order_weight=0.5), DirichletPrior(0.03, 0.65)])
def test_a_class_with_old_attributes_is_copied_and_stored(one):
    for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert other == one
        assert type(other) is type(one)


def test_an_old_argument_is_no_field_to_replace():
    assert replace(sg.TaskMarkov(), order_weight=0.5) == sg.TaskMarkov(order_weight=0.5)
    with pytest.raises(TypeError, match="it is now 'order_weight'"):
        replace(sg.TaskMarkov(), order=0.5)


def test_an_import_of_an_old_name_gives_the_new_one():
    with pytest.raises(ImportError, match=r"'task_map' of .* is now 'procedure_of'"):
        exec("from stepgraph.graph.maps import task_map")


def test_an_old_attribute_gives_the_new_one():
    with pytest.raises(AttributeError, match="no attribute 'stay'; it is now 'self_transition'"):
        sg.TaskMarkov().stay  # noqa: B018
    with pytest.raises(TypeError, match="no argument 'order'; it is now 'order_weight'"):
        sg.TaskMarkov(order=0)
    with pytest.raises(
        TypeError, match="mine has no argument 'decisions'; it is now 'annotations'"
    ):
        sg.mine("demo", decisions={})
    with pytest.raises(AttributeError, match=r"no attribute 'fancy'$"):
        sg.TaskMarkov().fancy  # noqa: B018


def test_an_old_option_of_a_decoder_gives_the_new_one(capsys):
    with pytest.raises(ConfigError, match="no option 'slope'; that is now 'calibration_slope'"):
        sg.load_decoder("task-markov", slope=1.0)
    assert main(["evaluate", "demo", "--option", "stay=0.9"]) == 1
    assert "no option 'stay'; that is now 'self_transition'" in capsys.readouterr().err


@pytest.mark.parametrize("verb", [["recognize", "demo", "--graph", "g"], ["mine", "demo"]])
@pytest.mark.parametrize("old", ["--order", "--order=0"])
def test_an_old_option_is_no_abbreviation(verb, old, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([*verb, old, "0"])
    assert stopped.value.code == 2
    assert f"--order is now {OPTIONS['--order']}" in capsys.readouterr().err


def test_keys_of_version_1_become_those_of_version_2():
    old = {
        "keysteps": ["heard"],
        "evidence": {"heard": ["clear"]},
        "habits": {"tasks": ["words"], "evidence": {"v": "x"}, "words": {"words": {}}},
        "courses": {"met": {"t": 1}, "tasks": {"met": {"order": {"heard": "a", "clear": "b"}}}},
    }

    assert with_new_keys(old, KEYS["stepgraph-graph"]) == {
        "keysteps": ["heard"],
        "notes": {"heard": ["clear"]},
        "parameters": {
            "tasks": ["words"],
            "log_evidence": {"v": "x"},
            "classifiers": {"words": {}},
        },
        "traces": {
            "videos": {"t": 1},
            "tasks": {"met": {"order": {"emissions": "a", "salient": "b"}}},
        },
    }


def test_content_of_another_shape_stays_as_it_is():
    for odd in (None, 3, "habits", [], {}, {"habits": None}, {"courses": [1, {"met": 2}]}):
        new = with_new_keys(odd, KEYS["stepgraph-graph"])
        assert json.dumps(new).replace("parameters", "habits") == json.dumps(odd).replace(
            "courses", "traces"
        ).replace("met", "videos")


def test_the_changelog_shows_every_name():
    assert NAMES.strip("\n") in CHANGELOG
    for old, new in {
        **OPTIONS,
        **{a: b for one in PRINTED.values() for a, b in one.items()},
    }.items():
        assert f"| `{old}` | `{new}` |" in CHANGELOG
    for name in KEYS:
        assert re.search(rf"\| `[\w.*]+` \| `\w+` \| `{name}` \|", CHANGELOG)
