"""Ids name files below a folder, or nothing at all."""

import numpy as np
import pytest

from stepgraph.core import Features
from stepgraph.encoders.stored_features import FeatureStore
from stepgraph.errors import DataError
from stepgraph.files.ids import check_id, file_in

HOSTILE = (
    *("", ".", "..", "../a", "../../a", "a/../../b", "/etc/passwd", "/", "a//b", "a/", "./a"),
    *("a\0b", "a\nb", "a\x1b[2Jb", "a\x9bb", "\ud800", "x" * 201, "é" * 101, "a/" * 600 + "a"),
)


@pytest.mark.parametrize("id", HOSTILE)
def test_ids_that_lead_elsewhere_are_refused_in_one_short_line(tmp_path, id):
    with pytest.raises(
        DataError, match=r"id of a video must be usable as a file name, got "
    ) as found:
        file_in(tmp_path, id, ".json")

    assert str(found.value).isprintable()
    assert len(str(found.value)) < 300


@pytest.mark.parametrize("id", ["a", "-_x", "deep/er/a", "..a", "a..", "grün", "a b", "é" * 100])
def test_plain_names_lie_in_their_folder(tmp_path, id):
    check_id(id)

    assert file_in(tmp_path, id, ".json").resolve().is_relative_to(tmp_path)
    assert file_in(str(tmp_path), id, ".json") == tmp_path / f"{id}.json"


@pytest.mark.parametrize("id", ["../out", "{tmp_path}/out", "x" * 300])
def test_features_are_not_written_elsewhere(tmp_path, id):
    id = id.format(tmp_path=tmp_path)
    store = FeatureStore(tmp_path / "features")

    with pytest.raises(DataError, match="id of a video must be usable as a file name"):
        store.write(Features(id, 3.0, np.ones((1, 2), np.float32), np.array([[0.0, 1.0]])))

    assert not store.has(id)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
