"""How videos go through their tasks: what is kept of them, how it adds up, how it is saved."""

import json
from base64 import b64encode

import numpy as np
import pytest

import stepgraph as sg
from reference import keysteps, make_graph, make_traces
from stepgraph.core import Labels, Vocabulary
from stepgraph.errors import DataError
from stepgraph.graph.traces import (
    EmissionTrace,
    EmissionTraces,
    Sample,
    first_by_hash,
    is_traceable,
    margin_timing,
    videos_each,
)

WORDS = Vocabulary(keysteps(3).keysteps, {"tea": (0, 1, 2)})


def trace(rows, emission, hop=1.0):
    emission = np.asarray(emission, float)
    return EmissionTrace.of_runs(np.array(rows), emission, np.zeros(emission.shape[1], bool), hop)


def test_a_trace_keeps_what_is_said_in_tenths():
    found = trace([2, 1], [[-0.04, -3.26], [-20.0, -0.06]])

    assert found.log_emission().tolist() == [[0, -3.3], [0, -3.3], [-12.7, -0.1]]


def test_the_sentences_of_a_long_video_are_put_together(monkeypatch):
    monkeypatch.setattr("stepgraph.graph.traces._NUMBERS", 4)
    monkeypatch.setattr("stepgraph.graph.traces._RUNS", 2)

    found = trace([1, 3, 2, 2, 5], [[-1, 0], [-2, 0], [0, -4], [0, -2], [-3, -3]])

    assert found.rows.tolist() == [6, 7]
    assert found.emissions.tolist() == [[-12, -13], [-21, -27]]
    assert len(found.log_emission()) == 13


@pytest.mark.parametrize(
    ("keysteps", "runs", "kept"),
    [(1000, 49, 49), (1000, 50, 50), (1000, 51, 26), (100, 400, 400), (100, 401, 201)],
)
def test_forty_thousand_numbers_are_kept_and_at_least_fifty_runs(keysteps, runs, kept):
    said = np.zeros((runs, keysteps))

    trace = EmissionTrace.of_runs(np.full(runs, 2), said, np.zeros(keysteps, bool), 1.0)

    assert len(trace.rows) == len(trace.emissions) == kept
    assert trace.rows.sum() == 2 * runs


@pytest.mark.parametrize("tasks", [1, 30])
def test_never_more_than_twice_as_many_are_held_as_are_kept(tasks):
    sample, most = Sample(40, 30) if tasks > 1 else Sample(4, 1000), 60 if tasks > 1 else 8
    for video in range(200):
        sample.add(f"task {video % tasks}", f"{video}", video)

        assert sum(map(len, sample._items.values())) <= most


def test_a_video_without_rows_has_a_trace():
    found = trace(np.zeros(0, int), np.zeros((0, 3)))

    assert found.log_emission().shape == (0, 3)
    assert found.margin_timing().tolist() == np.zeros((3, 20)).tolist()


@pytest.mark.parametrize(
    ("rows", "size", "follows"),
    [(10, 400, True), (10, 401, False), (25_000, 400, True), (25_001, 400, False)],
)
def test_what_is_too_large_is_not_followed(rows, size, follows):
    assert is_traceable(rows, size) is follows


def slow_margin_timing(rows, emission):
    counts = np.zeros((len(emission[0]), 20))
    said = [one for one, many in zip(emission, rows, strict=True) for _ in range(many)]
    for row, values in enumerate(said):
        second, first = sorted(values)[-2:]
        counts[int(np.argmax(values)), row * 20 // len(said)] += (first - second) ** 2
    shares = counts.sum(axis=1) / counts.sum()
    spoken = np.exp(-sum(one * np.log(one) for one in shares if one))
    return counts / counts.sum() * spoken


def test_margin_timing_is_that_of_a_loop_over_rows():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows, emission = rng.integers(1, 9, 7), rng.normal(size=(7, 3))

        assert margin_timing(rows, emission) == pytest.approx(slow_margin_timing(rows, emission))


def test_one_keystep_alone_leads_nothing():
    assert not margin_timing(np.array([3]), np.array([[0.0]])).any()
    assert not margin_timing(np.array([3]), np.zeros((1, 2))).any()


def test_among_more_keysteps_nothing_is_said_of_the_others():
    said = EmissionTrace.of_runs(
        np.array([2, 1]), np.array([[-0.5, -1.0], [-2.0, -0.2]]), np.array([True, False]), 0.5
    )

    found = said.among([3, 1], 4)

    assert found.emissions.tolist() == [[-127, -10, -127, -5], [-127, -2, -127, -20]]
    assert found.salient.tolist() == [False, False, False, True]
    assert (found.rows.tolist(), found.hop) == ([2, 1], 0.5)


def test_of_each_task_400_videos_are_kept_and_10_000_of_all():
    sample = Sample()
    for video in range(1000):
        sample.add("tea", f"{video}", video)

    assert len(sample.chosen()["tea"]) == 400
    assert videos_each([1000]) == videos_each([400] * 25) == 400
    assert videos_each([1000] * 100) == 100


def test_tasks_share_what_can_be_kept():
    assert videos_each([5, 5], most=9, of_all=100) == 9
    assert videos_each([50, 50], most=9, of_all=10) == 5
    assert videos_each([1, 50, 50], most=90, of_all=11) == 5
    assert videos_each([50] * 30, most=9, of_all=10) == 1
    assert videos_each([], most=9, of_all=10) == 9


def test_the_same_videos_are_kept_in_whatever_order_and_parts_they_come(monkeypatch):
    monkeypatch.setattr("stepgraph.graph.traces.videos_each.__defaults__", (4, 10))
    empty = trace([1], [[0.0, 0.0]])
    tasks = {"tea": 7, "soup": 5, "stew": 2, "eggs": 1}
    videos = [(task, f"{task} {n}") for task, many in tasks.items() for n in range(many)]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        parts = [Sample(4, 10) for _ in range(3)]
        whole = Sample(4, 10)
        for place in rng.permutation(len(videos)):
            whole.add(*videos[place], empty)
            parts[rng.integers(3)].add(*videos[place], empty)

        one, other, third = (
            EmissionTraces(part.chosen(), dict(part.population)) for part in parts
        )
        merged = third.merge(one).merge(other)

        expected = {task: [*found] for task, found in whole.chosen().items()}
        assert {task: [*found] for task, found in merged.tasks.items()} == expected
        assert merged.population == whole.population == tasks


def test_a_listed_order_is_trusted_unless_it_is_said_otherwise():
    assert EmissionTraces({}, {}).order == 1.0


def test_an_order_that_was_not_trusted_once_is_not_trusted_together():
    assert EmissionTraces({}, {}, 0.0).merge(EmissionTraces({}, {}, 1.0)).order == 0.0


def test_first_by_hash_are_in_the_order_of_their_names():
    assert [*first_by_hash(dict.fromkeys("dcba"), 9)] == [*"abcd"]
    assert len(first_by_hash(dict.fromkeys("dcba"), 2)) == 2


def graph_with_traces():
    videos = [Labels(f"{n}", np.array([2, 2, 0]), WORDS, 0.5) for n in range(3)]
    return make_graph(
        np.zeros((3, 3), np.int64), WORDS, traces=make_traces({"tea": videos}, WORDS, 0.5)
    )


def test_traces_are_saved_and_loaded(tmp_path):
    graph = graph_with_traces()

    sg.save(graph, tmp_path / "graph.json")
    found = sg.load(tmp_path / "graph.json").traces

    assert (found.population, found.order) == ({"tea": 3}, 0.5)
    for video, one in graph.traces.tasks["tea"].items():
        for mine, other in zip(one, found.tasks["tea"][video], strict=True):
            assert np.array_equal(mine, other)


def packed(*numbers, kind=np.uint32):
    return b64encode(np.array(numbers, kind).tobytes()).decode()


@pytest.mark.parametrize(
    "damage",
    [
        {"rows": packed(1, 1)},
        {"rows": packed(1, 0, 1)},
        {"rows": packed(1, 1, 2**32 - 1)},
        {"rows": "no base 64!"},
        {"emissions": packed(*[0] * 8, kind=np.int8)},
        {"salient": packed(1, 1, kind=np.uint8)},
        {"hop": 0},
        {"hop": "1"},
    ],
)
def test_damaged_traces_are_refused(damage, tmp_path):
    sg.save(graph_with_traces(), tmp_path / "graph.json")
    content = json.loads((tmp_path / "graph.json").read_text("utf-8"))
    content["traces"]["tasks"]["tea"]["0"] |= damage
    (tmp_path / "graph.json").write_text(json.dumps(content), "utf-8")

    with pytest.raises(DataError, match=r"graph\.json: must be a task graph as"):
        sg.load(tmp_path / "graph.json")


@pytest.mark.parametrize(
    "damage",
    [
        {"videos": {"tea": 2}},
        {"videos": {}},
        {"order_weight": -1},
        {"order_weight": 2},
        {"order_weight": 1.1},
        {"order_weight": 1e308},
        {"videos": {"nope": 1}},
        {"tasks": 3},
    ],
)
def test_damaged_fields_of_traces_are_refused(damage, tmp_path):
    sg.save(graph_with_traces(), tmp_path / "graph.json")
    content = json.loads((tmp_path / "graph.json").read_text("utf-8"))
    content["traces"] |= damage
    (tmp_path / "graph.json").write_text(json.dumps(content), "utf-8")

    with pytest.raises(DataError, match=r"graph\.json: must be a task graph as"):
        sg.load(tmp_path / "graph.json")


def test_a_listed_order_may_be_trusted_wholly(tmp_path):
    sg.save(graph_with_traces(), tmp_path / "graph.json")
    content = json.loads((tmp_path / "graph.json").read_text("utf-8"))
    content["traces"]["order_weight"] = 1
    (tmp_path / "graph.json").write_text(json.dumps(content), "utf-8")

    assert sg.load(tmp_path / "graph.json").traces.order == 1


def test_no_more_traces_are_loaded_than_are_kept(tmp_path):
    sg.save(graph_with_traces(), tmp_path / "graph.json")
    content = json.loads((tmp_path / "graph.json").read_text("utf-8"))
    one = content["traces"]["tasks"]["tea"]["0"]
    content["traces"] |= {
        "videos": {"tea": 500},
        "tasks": {"tea": {f"{n}": one for n in range(401)}},
    }
    (tmp_path / "graph.json").write_text(json.dumps(content), "utf-8")

    with pytest.raises(DataError, match=r"traces must be of no more videos"):
        sg.load(tmp_path / "graph.json")
