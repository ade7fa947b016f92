"""Every artefact is saved and loaded again; the file says what it is."""

import json
import math
from dataclasses import fields, replace

import numpy as np
import pytest

import stepgraph as sg
from reference import make_graph
from stepgraph.errors import DataError
from stepgraph.export.artefacts import load_report
from stepgraph.files.saved_arrays import read_fields, write_arrays

TEA = sg.Vocabulary(("boil", "pöur", "stir"), {"make tea": (0, 1)})
VALUES = np.array([[0.5, -np.inf, 0.25], [0, 0, 0]], np.float32)
LABELS = sg.Labels("v", np.array([0, -1, 2]), TEA, 0.5)
ARTEFACTS = {
    "vocabulary.json": TEA,
    "graph.json": make_graph([[6, 2, 0], [0, 0, 3], [0, 0, 0]], TEA, mined_on=("v1",)),
    "labels.json": LABELS,
    "sure.json": replace(
        LABELS,
        anchors=np.array([True, False, False]),
        confidence=np.array([0.1, 1 / 3, 1.0]),
        tasks={"make tea": 0.7},
    ),
    "report.json": sg.evaluate([LABELS], {"v": LABELS}, decoder="argmax"),
    "scores.npz": sg.Scores("ünï/v", VALUES, np.array([True, False]), TEA, 0.5),
    "features.npz": sg.Features(
        "v", 2.5, np.eye(2, dtype=np.float32), np.array([[0, 1], [1, 2.5]])
    ),
    "nothing.npz": sg.Features("v", 0.0, np.zeros((0, 4), np.float32), np.zeros((0, 2))),
}


def same(one, other):
    """Whether two values are equal, arrays and what is not a number included."""
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(other)
    if hasattr(one, "toarray"):
        return np.array_equal(one.toarray(), other.toarray())
    return one == other


@pytest.mark.parametrize("name", ARTEFACTS)
def test_what_is_saved_is_loaded_as_it_was(name, tmp_path):
    artefact = ARTEFACTS[name]

    sg.save(artefact, tmp_path / name)
    loaded = sg.load(str(tmp_path / name))

    assert type(loaded) is type(artefact)
    for field in fields(artefact):
        assert same(getattr(artefact, field.name), getattr(loaded, field.name)), field.name


@pytest.mark.parametrize("name", ARTEFACTS)
def test_saving_what_was_loaded_writes_the_same_file(name, tmp_path):
    sg.save(ARTEFACTS[name], tmp_path / name)
    sg.save(sg.load(tmp_path / name), tmp_path / f"again-{name}")

    assert (tmp_path / name).read_bytes() == (tmp_path / f"again-{name}").read_bytes()


def test_of_a_timeline_the_labels_are_saved(tmp_path):
    scores = sg.Scores("v", np.zeros((3, 3), np.float32), np.ones(3, bool), TEA, 0.5)

    sg.save(sg.Timeline(sg.Video("v", 1.5), LABELS, scores), tmp_path / "v.json")

    assert sg.load(tmp_path / "v.json").keysteps.tolist() == [0, -1, 2]


def test_a_report_is_loaded_from_what_evaluate_prints(tmp_path):
    report = ARTEFACTS["report.json"]
    printed = {"format": "stepgraph-evaluation", "version": 1, **report.to_json(), "split": "val"}
    (tmp_path / "report.json").write_text(json.dumps(printed))

    assert sg.load(tmp_path / "report.json").accuracy == report.accuracy


def test_a_value_that_is_no_artefact_is_not_saved(tmp_path):
    with pytest.raises(DataError, match=r"^what is saved must be a vocabulary, .*, got a dict$"):
        sg.save({}, tmp_path / "x.json")


def test_arrays_of_others_are_refused(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.zeros(3))

    with pytest.raises(DataError, match=r"x\.npz: must be saved by stepgraph, got arrays without"):
        sg.load(tmp_path / "x.npz")


@pytest.mark.parametrize("name", [name for name in ARTEFACTS if name.endswith(".npz")])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_arrays_cut_off_are_refused(name, share, tmp_path):
    sg.save(ARTEFACTS[name], tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: int(share * len(whole))])

    with pytest.raises(DataError, match=rf"{name}: must be a whole npz file"):
        sg.load(tmp_path / name)


def edit(path, **changed):
    content = json.loads(path.read_text("utf-8")) | changed
    content = {key: value for key, value in content.items() if value is not ...}
    path.write_text(json.dumps(content), "utf-8")


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("labels.json", {"rows": [0, 3]}),
        ("labels.json", {"rows": [0.5]}),
        ("labels.json", {"rows": ...}),
        ("labels.json", {"keysteps": ["boil"]}),
        ("labels.json", {"hop": "long"}),
        ("sure.json", {"anchors": [1]}),
        ("sure.json", {"confidence": ["high", "low", "low"]}),
        ("sure.json", {"probable_tasks": []}),
        ("report.json", {"accuracy": "good"}),
        ("report.json", {"videos": None}),
        ("report.json", {"videos": ...}),
        ("report.json", {"decoder": 3}),
    ],
    ids=str,
)
def test_what_was_edited_into_nonsense_is_refused_in_one_line(name, changed, tmp_path):
    path = tmp_path / name
    sg.save(ARTEFACTS[name], path)
    edit(path, **changed)

    with pytest.raises(
        DataError, match=rf"{name}: must be a .* as stepgraph saves it, got"
    ) as said:
        sg.load(path)

    assert "\n" not in str(said.value)


@pytest.mark.parametrize("name", [name for name in ARTEFACTS if name.endswith(".json")])
def test_a_file_of_a_later_version_is_refused(name, tmp_path):
    sg.save(ARTEFACTS[name], tmp_path / name)
    edit(tmp_path / name, version=99)

    with pytest.raises(DataError, match=rf"{name}: format version must be"):
        sg.load(tmp_path / name)


@pytest.mark.parametrize("changed", [{"format": "stepgraph-graph"}, {"version": 99}], ids=str)
def test_a_report_that_says_it_is_something_else_is_refused(changed, tmp_path):
    sg.save(ARTEFACTS["report.json"], tmp_path / "report.json")
    edit(tmp_path / "report.json", **changed)

    with pytest.raises(DataError, match=r"report.json: (must be|format version must be)"):
        load_report(tmp_path / "report.json")


def test_counts_that_only_add_up_to_something_are_refused(tmp_path):
    [name] = [name for name, one in ARTEFACTS.items() if isinstance(one, sg.TaskGraph)]
    sg.save(ARTEFACTS[name], tmp_path / name)
    edit(tmp_path / name, counts=[[0, 1, -1], [0, 1, 3]])

    with pytest.raises(DataError, match="counts must be at least 0, got -1"):
        sg.load(tmp_path / name)


def test_labels_of_an_edited_vocabulary_are_refused(tmp_path):
    sg.save(LABELS, tmp_path / "labels.json")
    edit(tmp_path / "labels.json", keysteps=["boil", "shake", "stir"])

    with pytest.raises(DataError, match=r"labels\.json: must hold the keysteps it was saved with"):
        sg.load(tmp_path / "labels.json")


def test_scores_of_another_shape_than_their_vocabulary_are_refused(tmp_path):
    sg.save(ARTEFACTS["scores.npz"], tmp_path / "scores.npz")
    with np.load(tmp_path / "scores.npz") as archive:
        header = json.loads(archive["header"].tobytes())
    write_arrays(tmp_path / "scores.npz", header, values=np.zeros((2, 2)), observed=np.ones(2))

    with pytest.raises(DataError, match=r"must be a file of scores .* shape \(2, 3\)"):
        sg.load(tmp_path / "scores.npz")


@pytest.mark.parametrize(
    ("values", "observed"),
    [
        (np.array([[0.5, np.nan, 0.25], [0, 0, 0]], np.float32), np.array([1, 0], np.uint8)),
        (VALUES, np.array([[1, 0], [1, 0]], np.uint8)),
    ],
    ids=["no number", "two columns"],
)
def test_scores_that_are_none_are_refused(values, observed, tmp_path):
    path = tmp_path / "scores.npz"
    sg.save(ARTEFACTS["scores.npz"], path)
    write_arrays(path, read_fields(path), values=values, observed=observed)

    with pytest.raises(DataError, match=r"scores\.npz: must be .* as stepgraph saves it, got"):
        sg.load(path)


@pytest.mark.parametrize("name", ["labels.json", "scores.npz"])
def test_rows_of_a_thousandth_of_a_second_are_the_shortest(name, tmp_path):
    sg.save(replace(ARTEFACTS[name], hop=0.001), tmp_path / name)

    assert sg.load(tmp_path / name).hop == 0.001


def test_scores_of_an_edited_vocabulary_are_refused(tmp_path):
    one = ARTEFACTS["scores.npz"]
    sg.save(one, tmp_path / "scores.npz")
    with np.load(tmp_path / "scores.npz") as archive:
        header = json.loads(archive["header"].tobytes()) | {"fingerprint": "another"}
    arrays = {"values": one.values, "observed": one.observed.astype(np.uint8)}
    write_arrays(tmp_path / "scores.npz", header, **arrays)

    with pytest.raises(DataError, match=r"must hold the keysteps it was saved with .*another"):
        sg.load(tmp_path / "scores.npz")


@pytest.mark.parametrize("name", ARTEFACTS)
def test_every_file_is_of_the_current_version_of_its_format(name, tmp_path):
    path = tmp_path / name
    sg.save(ARTEFACTS[name], path)

    if path.suffix == ".npz":
        with np.load(path) as archive:
            header = json.loads(archive["header"].tobytes())
    else:
        header = json.loads(path.read_text("utf-8"))

    second = ("graph", "vocabulary")
    assert header["version"] == (2 if path.stem in second else 1)
