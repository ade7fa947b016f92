"""Saved files that somebody wrote by hand or damaged: loaded, or refused in one short line."""

import copy
import io
import json
import math
import random
import zipfile

import numpy as np
import pytest

from reference import make_scores
from stepgraph.core import Features, Labels, Timeline, Video, Vocabulary
from stepgraph.errors import DataError, StepgraphError
from stepgraph.evaluation.report import evaluate
from stepgraph.export.answers import describe_graph, describe_next, describe_path
from stepgraph.export.artefacts import load, save
from stepgraph.export.drawing import task_maps
from stepgraph.export.timeline import FORMATS
from stepgraph.graph import TaskGraph, mine_graph
from stepgraph.vocabulary.lists import vocabulary_of

VOCABULARY = Vocabulary(("boil", "pour", "stir", "drink"), {"tea": (0, 1, 2, 3)})
SCORES = make_scores(np.random.default_rng(3).random((30, 4)), vocabulary=VOCABULARY)
LABELS = Labels(
    "v",
    np.array([-1, 0, 0, 1, 2]),
    VOCABULARY,
    1.0,
    np.eye(5, dtype=bool)[1],
    np.linspace(0, 1, 5),
)
INTERVALS = np.array([[0, 1], [1, 2], [2, 3]], np.float64)
ARTEFACTS = {
    "graph.json": mine_graph([SCORES], VOCABULARY),
    "vocabulary.json": VOCABULARY,
    "labels.json": LABELS,
    "report.json": evaluate([LABELS], {"v": LABELS}),
    "scores.npz": SCORES,
    "features.npz": Features("v", 3.0, np.ones((3, 5), np.float32), INTERVALS),
}
VALUES = (
    *(None, True, 0, -1, 2**31, 2**63, 10**400, 1e308, 1e-320, 0.5, math.nan, -math.inf),
    *("", "x", "1", "\0", "\ud800", "a" * 10_000, [], {}, [[]], [None], {"a": 1}, [1] * 1000),
    *([[0, 0, 2**62]] * 2, [[2**40, 0, 1]], [0.5, "x"], [True]),
)


def places(value, path=()):
    """Every place in a JSON value; of a long list the first few."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else ()
    for key, inside in enumerate(value[:8]) if isinstance(value, list) else items:
        yield from places(inside, (*path, key))


def mutated(content, rng):
    content = copy.deepcopy(content)
    for _ in range(rng.choice([1, 1, 2, 4])):
        *path, last = rng.choice(list(places(content)) or [("x",)])
        holder = content
        for key in path:
            holder = holder[key]
        if rng.random() < 0.8 or last not in holder:
            holder[last] = copy.deepcopy(rng.choice(VALUES))
        else:
            del holder[last]
    return with_fingerprint(content) if rng.random() < 0.8 else content


def with_fingerprint(content):
    """So that what comes after the check of the vocabulary is reached, too."""
    try:
        return content | {"fingerprint": vocabulary_of(content).fingerprint}
    except Exception:
        return content


def flipped(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice([1, 2, 8, 64])):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data[: rng.choice([len(data), len(data), rng.randrange(len(data))])])


def mutated_archive(data, rng):
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            array, file = np.load(io.BytesIO(old.read(name))), io.BytesIO()
            if name == "header.npy":
                text = json.dumps(mutated(json.loads(array.tobytes()), rng)).encode()
                array = np.frombuffer(text, np.uint8)
            elif rng.random() < 0.5:
                array = rng.choice([array[:0], array.ravel(), array[..., None], array * math.nan])
            np.save(file, array)
            new.writestr(name, file.getvalue())
    return out.getvalue()


def use(loaded):
    if isinstance(loaded, TaskGraph) and len(loaded.vocabulary) > 1:
        describe_graph(loaded, task_maps(loaded), top=3, as_json=True)
        describe_next(loaded, 0, top=3, as_json=False)
        describe_path(loaded, 0, 1, as_json=False)
    if isinstance(loaded, Labels):
        scores = make_scores(np.zeros((len(loaded), len(loaded.vocabulary))), hop=loaded.hop)
        timeline = Timeline(Video("v", len(loaded) * loaded.hop), loaded, scores)
        for _, convert in FORMATS.values():
            convert(timeline)
    if type(loaded) is type(SCORES):
        mine_graph([loaded], loaded.vocabulary)


@pytest.mark.parametrize("how", ["meaning", "bytes"])
@pytest.mark.parametrize("name", ARTEFACTS)
def test_a_mutated_file_is_loaded_or_refused_in_one_short_line(tmp_path, name, how):
    rng, path = random.Random(f"{name} {how}"), tmp_path / name
    save(ARTEFACTS[name], path)
    whole, said = path.read_bytes(), []

    for _ in range(300):
        if how == "bytes":
            path.write_bytes(flipped(whole, rng))
        elif path.suffix == ".json":
            path.write_text(json.dumps(mutated(json.loads(whole), rng)))
        else:
            path.write_bytes(mutated_archive(whole, rng))
        try:
            loaded = load(path)
            use(loaded)
            save(loaded, tmp_path / f"again{path.suffix}")
        except StepgraphError as error:
            said.append(str(error))

    assert len(said) > 100
    assert max(map(len, said)) < 1000
    assert not any("\n" in line for line in said)


@pytest.mark.parametrize("hop", [0, -1, 1e-320, math.nan, math.inf, True, "1", None])
def test_labels_of_rows_that_last_no_time_are_refused(tmp_path, hop):
    save(LABELS, tmp_path / "labels.json")
    content = json.loads((tmp_path / "labels.json").read_text()) | {"hop": hop}
    (tmp_path / "labels.json").write_text(json.dumps(content))

    with pytest.raises(DataError, match=r"labels\.json: must be a file of a video's labels as "):
        load(tmp_path / "labels.json")


def test_counts_of_a_graph_take_no_memory_by_their_numbers(tmp_path):
    save(ARTEFACTS["graph.json"], tmp_path / "graph.json")
    content = json.loads((tmp_path / "graph.json").read_text())
    for field in ("counts", "timing"):
        for triple in ([2**40, 0, 1], [0, 2**40, 1], [0, 0, 2**63], [0, -1, 1], [0, 0, -1]):
            (tmp_path / "graph.json").write_text(json.dumps(content | {field: [triple]}))
            with pytest.raises(DataError, match=r"graph\.json: must be a task graph as stepgraph"):
                load(tmp_path / "graph.json")
