"""What every saved file begins with, and how its kind is told without reading all of it."""

import json

import pytest

from reference import make_graph
from stepgraph.core import Vocabulary
from stepgraph.errors import DataError
from stepgraph.export.artefacts import save
from stepgraph.files import headers
from stepgraph.files.headers import read_format


def test_the_kind_of_a_saved_file_is_read_from_its_beginning(tmp_path, monkeypatch):
    save(make_graph([[0, 1], [0, 0]]), tmp_path / "graph.json")
    save(Vocabulary(("boil", "pour")), tmp_path / "vocabulary.json")
    (tmp_path / "huge.json").write_bytes(b'\xef\xbb\xbf{\n "format" : "a b",' + b"x" * (1 << 20))
    monkeypatch.setattr(headers, "read_json", None)  # the rest is not even parsed

    assert read_format(tmp_path / "graph.json") == "stepgraph-graph"
    assert read_format(tmp_path / "vocabulary.json") == "stepgraph-vocabulary"
    assert read_format(tmp_path / "huge.json") == "a b"


def test_the_kind_is_found_wherever_it_stands(tmp_path):
    content = {"counts": [0] * 5000, "format": 'odd "name"', "version": 1}
    (tmp_path / "sorted.json").write_text(json.dumps(content))

    assert read_format(tmp_path / "sorted.json") == 'odd "name"'


@pytest.mark.parametrize(
    ("content", "got"),
    [
        (b"[1, 2]", "must be a file that stepgraph saved, with its format, got no JSON object"),
        (b'{"a": 1}', "with its format, got format None"),
        (b'{"format": 7}', "with its format, got format 7"),
        (b'{"format": "stepg', "must be complete JSON"),
        (b"\x89PNG\x00", "must be UTF-8 text"),
        (b"", "must be complete JSON"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path, content, got):
    (tmp_path / "a.json").write_bytes(content)

    with pytest.raises(DataError, match=rf"a\.json: .*{got}"):
        read_format(tmp_path / "a.json")


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(DataError, match="must be a file, got no such file"):
        read_format(tmp_path / "gone.json")
    with pytest.raises(DataError, match="must be a file, got a folder"):
        read_format(tmp_path)
