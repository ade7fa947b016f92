"""Names until 0.2.0: none works any more, and every error names the new one."""

import importlib
import json
import re
from inspect import signature
from pathlib import Path

import pytest

import stepgraph as sg
from stepgraph.cli import main
from stepgraph.errors import ConfigError
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
            names = {
                *dir(owner),
                *getattr(owner, "__annotations__", {}),
                *signature(owner).parameters,
            }
            assert new in names
            assert old not in names
        else:
            assert new in vars(found)
            with pytest.raises(ImportError, match=f"{old!r} of {module!r} is now {new!r}"):
                getattr(found, old)


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
