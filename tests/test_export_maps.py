"""Maps of tasks that are kept beside results, read back number by number."""

import json

import pytest

from stepgraph.core import Vocabulary
from stepgraph.errors import DataError
from stepgraph.export.maps import load_maps, of_names, save_maps
from stepgraph.graph.comparing import norm_of
from stepgraph.graph.maps import END, START, procedure_of
from test_graph_comparing import graph_of

# The keysteps of the task are not the first ones of the vocabulary, nor in its order.
MANY = Vocabulary(("wash", "boil", "dry", "pour", "stir"), {"tea": (4, 1, 3), "dishes": (0, 2)})
TEA = [(1, 3, 4)] * 12 + [(1, 4, 3), (3, 1, 1)]


def named(norm):
    """All that is kept of a task, by the names of its keysteps."""
    known = norm.procedure
    name = {START: "START", END: "END"} | dict(enumerate(known.vocabulary.keysteps))
    return {
        "task": (known.task, known.videos),
        "steps": [(name[one.keystep], *one[1:]) for one in known.steps],
        "successions": [
            (name[one.first], name[one.second], *one[2:]) for one in known.successions
        ],
        "precedences": [(name[a], name[b], *share) for (a, b), share in norm.before.items()],
        "repetitions": [(name[one], mean) for one, mean in norm.times.items()],
    }


def near(rows, digits):
    """The same rows, their fractions as they are after rounding."""
    half = 0.51 * 10**-digits
    return [
        tuple(pytest.approx(one, abs=half) if isinstance(one, float) else one for one in row)
        for row in rows
    ]


def test_all_that_is_known_of_a_task_is_read_back(tmp_path):
    graph = graph_of(*TEA, vocabulary=MANY)
    expected = named(norm_of(graph.statistics, procedure_of(graph, "tea")))
    save_maps(graph, ["tea"], tmp_path)

    found = {task: named(one) for task, one in load_maps(tmp_path).items()}

    assert [*found] == ["tea"]
    assert found["tea"]["task"] == expected["task"] == ("tea", len(TEA))
    for part, digits in (("steps", 4), ("successions", 4), ("precedences", 4), ("repetitions", 3)):
        assert expected[part]
        assert found["tea"][part] == near(expected[part], digits)


def test_how_often_a_keystep_is_done_is_kept_to_the_thousandth(tmp_path):
    graph = graph_of(*[(1, 3, 4)] * 7, (1, 3, 1, 4), vocabulary=MANY)
    save_maps(graph, ["tea"], tmp_path)

    [found] = load_maps(tmp_path).values()

    assert dict(named(found)["repetitions"]) == {"boil": 1.125, "pour": 1.0, "stir": 1.0}


def test_tasks_are_kept_beside_those_of_other_graphs_and_made_anew(tmp_path):
    save_maps(graph_of(*TEA, vocabulary=MANY), ["tea"], tmp_path)
    save_maps(graph_of((0, 2), vocabulary=MANY, task="dishes"), ["dishes", None], tmp_path)

    assert {task: one.procedure.videos for task, one in load_maps(tmp_path).items()} == {
        "tea": len(TEA),
        "dishes": 1,
    }
    save_maps(graph_of((1, 3), vocabulary=MANY), ["tea", "unknown"], tmp_path)

    assert {task: one.procedure.videos for task, one in load_maps(tmp_path).items()} == {
        "tea": 1,
        "dishes": 1,
    }


def test_a_task_of_no_video_has_its_keysteps_and_nothing_usual(tmp_path):
    save_maps(graph_of((1, 3), vocabulary=MANY), ["dishes"], tmp_path)

    [found] = load_maps(tmp_path).values()

    assert (found.procedure.videos, found.before, found.times) == (0, {}, {})
    assert found.procedure.vocabulary.keysteps == ("wash", "dry")


def test_what_cannot_be_read_is_made_anew(tmp_path):
    (tmp_path / "maps.json").write_text("{")

    save_maps(graph_of(*TEA, vocabulary=MANY), ["tea"], tmp_path)

    assert [*load_maps(tmp_path)] == ["tea"]


def test_without_a_task_nothing_is_written(tmp_path):
    save_maps(graph_of(*TEA, vocabulary=MANY), [None, "unknown"], tmp_path)

    assert not list(tmp_path.iterdir())
    assert load_maps(tmp_path) == {}


@pytest.mark.parametrize("change", [{"version": 3}, {"format": "stepgraph-graph"}])
def test_a_file_of_another_kind_or_a_later_version_is_refused(tmp_path, change):
    save_maps(graph_of(*TEA, vocabulary=MANY), ["tea"], tmp_path)
    content = json.loads((tmp_path / "maps.json").read_text())
    (tmp_path / "maps.json").write_text(json.dumps(content | change))

    with pytest.raises(DataError, match=r"maps.json: (must be|format version must be)"):
        load_maps(tmp_path)


@pytest.mark.parametrize("names", [(), ("boil",), ("boil", "pour"), ("boil", "pour", "stir")])
def test_few_names_are_filled_up_to_a_vocabulary(names):
    found = of_names(names).keysteps

    assert found[: len(names)] == names
    assert len(found) == max(2, len(names))
    assert not "".join(found[len(names) :]).strip()


@pytest.mark.parametrize(
    ("change", "good"),
    [
        ({"repetitions": [[2, 999_999_999]]}, True),
        ({"repetitions": [[2, 1e9]]}, False),
        ({"repetitions": [[2, -1e9]]}, False),
        ({"repetitions": [[2, True]]}, False),
        ({"repetitions": [[3, 1.0]]}, False),
        ({"repetitions": [[-1, 1.0]]}, False),
        ({"successions": [[START, 0, 1, 0.5, 0.1, 0.9], [2, END, 1, 0.5, 0.1, 0.9]]}, True),
        ({"successions": [[END, 0, 1, 0.5, 0.1, 0.9]]}, False),
        ({"successions": [[0, START, 1, 0.5, 0.1, 0.9]]}, False),
        ({"successions": [[0, 1, 1.5, 0.5, 0.1, 0.9]]}, False),
    ],
)
def test_places_and_numbers_of_a_file_are_checked(tmp_path, change, good):
    save_maps(graph_of(*TEA, vocabulary=MANY), ["tea"], tmp_path)
    content = json.loads((tmp_path / "maps.json").read_text())
    assert (content["format"], content["version"]) == ("stepgraph-maps", 2)
    content["tasks"][0] |= change
    (tmp_path / "maps.json").write_text(json.dumps(content))

    if good:
        [found] = load_maps(tmp_path).values()
        assert found.procedure.task == "tea"
    else:
        with pytest.raises(DataError, match=r"maps.json: must be a file of maps"):
            load_maps(tmp_path)
