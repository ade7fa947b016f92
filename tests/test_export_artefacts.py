"""Saved graphs and vocabularies: round trips, and what is refused rather than misread."""

import json

import numpy as np
import pytest

from reference import keysteps, make_graph, random_graph
from stepgraph.core import Vocabulary
from stepgraph.encoders import EncoderOptions
from stepgraph.errors import DataError
from stepgraph.export.artefacts import load, save
from stepgraph.graph.saving import load_graph, same_vocabulary
from stepgraph.vocabulary import read_vocabulary
from stepgraph.vocabulary.lists import load_vocabulary, save_vocabulary


@pytest.fixture
def saved(tmp_path):
    """A saved graph of three keysteps."""
    path = tmp_path / "graph.json"
    vocabulary = Vocabulary(("boil", "pour", "stir"), {"tea": (0, 1)})
    save(make_graph([[6, 2, 0], [0, 0, 3], [0, 0, 0]], vocabulary, mined_on=("v1",)), path)
    return path


def edit(path, **fields):
    """Change some fields of a saved graph; ``...`` removes one."""
    content = json.loads(path.read_text("utf-8")) | fields
    content = {key: value for key, value in content.items() if value is not ...}
    path.write_text(json.dumps(content), "utf-8")


def assert_same(one, other):
    assert one.vocabulary == other.vocabulary
    assert one.counts.toarray().tolist() == other.counts.toarray().tolist()
    assert one.mined_on == other.mined_on
    assert one.encoder == other.encoder


@pytest.mark.parametrize(
    "graph",
    [
        random_graph(np.random.default_rng(0), 20, density=0.2),
        make_graph(np.zeros((3, 3), np.int64)),
        make_graph(
            [[0, 1], [2**40, 0]],
            Vocabulary(('crème "brûlée"', "卵を割る\n🥚\u2028"), {"日本 \\": (1,), "": (0, 1)}),
            mined_on=("ünï/1", "2"),
            encoder=EncoderOptions("text:minilm", 2, True),
        ),
    ],
    ids=["random", "empty", "unicode"],
)
def test_a_saved_graph_is_loaded_equal(tmp_path, graph):
    save(graph, tmp_path / "graph.json")

    assert_same(load(str(tmp_path / "graph.json")), graph)


def test_saving_twice_writes_the_same_bytes(tmp_path):
    graph = random_graph(np.random.default_rng(0), 20)
    save(graph, tmp_path / "one.json")
    save(load(tmp_path / "one.json"), tmp_path / "two.json")

    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()


def test_file_begins_with_format_version_and_fingerprint(saved):
    content = json.loads(saved.read_text())

    assert list(content)[:4] == ["format", "version", "stepgraph", "fingerprint"]
    assert saved.read_text().startswith('{"format": "stepgraph-graph",\n"version": 2,\n')


def test_saving_over_a_graph_replaces_it(saved):
    graph = make_graph([[0, 1], [0, 0]])

    save(graph, saved)

    assert_same(load(saved), graph)


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"graph\.json: must be a file, got no such file"):
        load(tmp_path / "graph.json")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_file_cut_off_is_refused(saved, share):
    whole = saved.read_bytes().rstrip()
    saved.write_bytes(whole[: int(share * len(whole))])

    with pytest.raises(DataError, match=r"graph\.json: must be complete JSON, got .*cut off"):
        load(saved)


def test_binary_data_is_refused(saved):
    saved.write_bytes(b"\x89PNG\r\n\x00\x00")

    with pytest.raises(DataError, match="must be UTF-8 text, got a zero byte"):
        load(saved)


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("[1, 2]", "no JSON object"),
        ("7", "no JSON object"),
        ("null", "no JSON object"),
        ("{}", "format None"),
        ('{"format": "of others"}', "'of others'"),
    ],
)
def test_foreign_json_is_refused(saved, text, got):
    saved.write_text(text)

    with pytest.raises(
        DataError, match=rf"graph\.json: must be .* that stepgraph saved.*, got {got}$"
    ):
        load(saved)


def test_another_format_of_ours_is_refused(saved):
    edit(saved, format="stepgraph-timeline")

    with pytest.raises(DataError, match=r"'stepgraph-graph'.*, got 'stepgraph-timeline'"):
        load_graph(saved)


def test_a_newer_version_is_refused_with_a_remedy(saved):
    edit(saved, version=3, stepgraph="9.9.9")

    with pytest.raises(DataError, match=r"at most 2, got 3; .* newer stepgraph \(9\.9\.9\), so"):
        load(saved)


@pytest.mark.parametrize("version", [0, -1, "1", 1.0, None, [1]])
def test_a_version_that_is_none_is_refused(saved, version):
    edit(saved, version=version)

    with pytest.raises(DataError, match="version must be a number of at least 1, got "):
        load(saved)


@pytest.mark.parametrize(
    "fields",
    [
        {"keysteps": ["boil", "pour", "shake"]},
        {"keysteps": ["pour", "boil", "stir"]},
        {"keysteps": ["boil", "pour", "stir", "drink"]},
        {"tasks": {"tea": [0, 2]}},
        {"tasks": {}},
        {"fingerprint": "0" * 16},
        {"fingerprint": ...},
    ],
)
def test_an_edited_vocabulary_is_refused(saved, fields):
    edit(saved, **fields)

    with pytest.raises(DataError, match=r"vocabulary it was saved with .* was it edited"):
        load(saved)


@pytest.mark.parametrize("triple", [[0, 3, 1], [3, 0, 1], [-1, 0, 1], [0, -1, 1]])
def test_counts_of_unknown_keysteps_are_refused(saved, triple):
    edit(saved, counts=[[0, 1, 2], triple])

    with pytest.raises(DataError, match="got counts of keysteps that are not among the 3"):
        load(saved)


def test_negative_counts_are_refused(saved):
    edit(saved, counts=[[0, 1, 2], [1, 2, -3]])

    with pytest.raises(DataError, match="got counts must be at least 0, got -3"):
        load(saved)


@pytest.mark.parametrize(
    "counts",
    [
        [[0, 1, 2.5]],
        [[0, 1.5, 2]],
        [[0, 1, float("nan")]],
        [[0, 1, float("inf")]],
        [["0", "1", "2"]],
        [[0, 1, None]],
        [[0, 1, True]],
    ],
    ids=str,
)
def test_counts_that_are_no_whole_numbers_are_refused(saved, counts):
    edit(saved, counts=counts)

    with pytest.raises(DataError, match=r"graph\.json: must be a task graph as stepgraph saves"):
        load(saved)


@pytest.mark.parametrize(
    "counts",
    [
        None,
        7,
        "many",
        {"0": 1},
        [0, 1, 2],
        [[0, 1], [1, 2], [2, 0]],
        [[0, 1, 2, 1, 2, 3]],
        [[0, 1, 2], [0, 1]],
        [[[0, 1, 2]]],
        ...,
    ],
    ids=str,
)
def test_counts_that_are_no_triples_are_refused(saved, counts):
    edit(saved, counts=counts)

    with pytest.raises(DataError, match=r"graph\.json: must be a task graph as stepgraph saves"):
        load(saved)


@pytest.mark.parametrize(
    "counts",
    [
        [[0, 1, 2**63]],
        [[0, 1, 10**40]],
        [[0, 1, 2**62], [0, 2, 2**62]],  # more than fits once a row is added up
        [[0, 1, 2**63 - 1], [0, 1, 2]],
    ],
    ids=["no int64", "no integer of any machine", "row", "twice"],
)
def test_counts_too_large_to_add_up_are_refused(saved, counts):
    edit(saved, counts=counts)

    with pytest.raises(DataError, match=r"graph\.json: must be a task graph as stepgraph saves"):
        load(saved)


@pytest.mark.parametrize(
    "fields",
    [
        {"keysteps": None},
        {"keysteps": "abc"},
        {"keysteps": ["boil", 7, "stir"]},
        {"keysteps": ["boil", "boil", "stir"]},
        {"keysteps": ["boil"]},
        {"keysteps": ["boil", "pour", "\ud800"]},
        {"keysteps": ...},
        {"tasks": []},
        {"tasks": {"tea": 0}},
        {"tasks": {"tea": [0, 9]}},
        {"tasks": {"tea": [0, 1.5]}},
        {"tasks": ...},
        {"mined_on": 3},
        {"mined_on": [3]},
        {"mined_on": "v1"},
        {"mined_on": ...},
        {"encoder": "text:minilm"},
        {"encoder": {"name": "text:minilm", "colour": "red"}},
        {"encoder": {"name": "video clip"}},
        {"encoder": {"name": 7}},
        {"encoder": {"context": -1}},
        {"encoder": {"context": "many"}},
        {"encoder": {"context": 1.5}},
        {"encoder": ...},
    ],
    ids=str,
)
def test_fields_of_the_wrong_kind_are_refused(saved, fields):
    edit(saved, **fields)

    with pytest.raises(DataError, match=r"graph\.json: must be a "):
        load(saved)


@pytest.mark.parametrize("bracket", ["[", '{"format":'])
def test_deep_nesting_is_refused(saved, bracket):
    saved.write_text(bracket * 100_000)

    with pytest.raises(DataError, match="must be JSON nested a few levels deep"):
        load(saved)


def test_nothing_is_written_when_a_graph_cannot_be_saved(tmp_path):
    folder = tmp_path / "graph.json"
    folder.mkdir()

    with pytest.raises(DataError, match=r"graph\.json: cannot be written: Is a directory"):
        save(make_graph([[0, 1], [0, 0]]), folder)

    assert list(tmp_path.iterdir()) == [folder]


def test_a_graph_of_the_vocabulary_in_use_is_let_pass(vocabulary):
    same_vocabulary(make_graph(np.zeros((5, 5), np.int64), vocabulary), vocabulary, "graph.json")


def test_a_graph_of_another_vocabulary_than_the_one_in_use_is_refused(vocabulary):
    graph = make_graph([[0, 1], [0, 0]])

    with pytest.raises(
        DataError,
        match=rf"^graph\.json: .*\(5 keysteps, fingerprint {vocabulary.fingerprint}\), "
        rf"got one of 2 keysteps, fingerprint {keysteps(2).fingerprint}; mine it again",
    ):
        same_vocabulary(graph, vocabulary, "graph.json")


@pytest.fixture
def saved_vocabulary(tmp_path):
    """A saved vocabulary of three keysteps."""
    path = tmp_path / "vocabulary.json"
    save_vocabulary(Vocabulary(("boil", "pour", "stir"), {"tea": (0, 1), "soup": (0, 2)}), path)
    return path


@pytest.mark.parametrize("reading", [load_vocabulary, read_vocabulary])
@pytest.mark.parametrize(
    "vocabulary",
    [
        Vocabulary(("boil", "pour", "stir"), {"tea": (0, 1), "soup": (2, 0)}),
        Vocabulary(("boil", "pour")),
        Vocabulary(('crème "brûlée"', "卵を割る\n🥚\u2028"), {"日本 \\": (1,), "": (0, 1)}),
    ],
    ids=["tasks", "no tasks", "unicode"],
)
def test_a_saved_vocabulary_is_loaded_equal(tmp_path, vocabulary, reading):
    save_vocabulary(vocabulary, tmp_path / "vocabulary.json")

    loaded = reading(str(tmp_path / "vocabulary.json"))

    assert loaded == vocabulary
    assert list(loaded.tasks) == list(vocabulary.tasks)


def test_saving_a_loaded_vocabulary_writes_the_same_bytes(saved_vocabulary, tmp_path):
    save_vocabulary(load_vocabulary(saved_vocabulary), tmp_path / "two.json")

    assert (tmp_path / "two.json").read_bytes() == saved_vocabulary.read_bytes()


def test_a_vocabulary_file_has_a_header_and_a_field_a_line(saved_vocabulary):
    text = saved_vocabulary.read_text()

    assert text.startswith('{"format": "stepgraph-vocabulary",\n"version": 2,\n"stepgraph": ')
    assert list(json.loads(text)) == [
        *("format", "version", "stepgraph", "fingerprint", "keysteps", "tasks")
    ]


@pytest.mark.parametrize("reading", [load_vocabulary, read_vocabulary])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_vocabulary_cut_off_is_refused(saved_vocabulary, share, reading):
    whole = saved_vocabulary.read_bytes().rstrip()
    saved_vocabulary.write_bytes(whole[: int(share * len(whole))])

    with pytest.raises(DataError, match=r"vocabulary\.json: must be complete JSON, .*cut off"):
        reading(saved_vocabulary)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"version": 3, "stepgraph": "9.9"}, r"at most 2, got 3; .* newer stepgraph \(9\.9\), so"),
        ({"version": "1"}, r"version must be a number of at least 1, got '1'"),
        ({"version": ...}, r"version must be a number of at least 1, got None"),
        ({"format": "stepgraph-graph"}, r"must be a vocabulary .*, got 'stepgraph-graph'; make"),
        ({"format": ...}, r"must be a vocabulary \(format 'stepgraph-vocabulary'\), got None; "),
        ({"keysteps": ["boil", "pour", "mix"]}, r"keysteps it was saved with .* was it edited\?"),
        ({"tasks": {}}, r"must hold the keysteps it was saved with .* was it edited\?"),
        ({"fingerprint": ...}, r"saved with \(fingerprint None\), got others .* was it edited\?"),
        ({"keysteps": "boil"}, r"must be a vocabulary as stepgraph saves it, got one where a li"),
        ({"keysteps": ["boil", 7]}, r"must be a vocabulary as .* text was expected, got 7"),
        (
            {"keysteps": ["boil"]},
            r"must be a vocabulary as .* got a vocabulary must have at least",
        ),
        ({"keysteps": ...}, r"must be a vocabulary as .* got one without .keysteps."),
        ({"tasks": []}, r"must be a vocabulary as stepgraph saves it, got something else"),
        ({"tasks": {"tea": [0, 9]}}, r"must be a vocabulary as .* between 0 and 2, got \[0, 9\]"),
        ({"tasks": {"tea": [0.5]}}, r"must be a vocabulary as .* whole numbers were expected"),
    ],
    ids=str,
)
def test_a_vocabulary_that_was_changed_is_refused(saved_vocabulary, fields, message):
    edit(saved_vocabulary, **fields)

    with pytest.raises(DataError, match=rf"vocabulary\.json: .*{message}"):
        load_vocabulary(saved_vocabulary)


def test_a_graph_and_a_vocabulary_are_not_mistaken_for_each_other(saved, saved_vocabulary):
    with pytest.raises(DataError, match=r"must be a vocabulary .*, got 'stepgraph-graph'"):
        load_vocabulary(saved)
    with pytest.raises(DataError, match=r"must be a task graph .*, got 'stepgraph-vocabulary'"):
        load_graph(saved_vocabulary)


def test_a_missing_vocabulary_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"vocabulary\.json: must be a file, got no such file"):
        load_vocabulary(tmp_path / "vocabulary.json")
