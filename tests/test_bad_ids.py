"""An id that cannot name a file costs its own video, in every source, and nothing else."""

import json
import os

import pytest

from stepgraph.datasets import open_source
from stepgraph.errors import DataError
from stepgraph.files.ids import check_id

SAID = {"start": [0.0], "end": [2.0], "text": ["boil the water"]}
VTT = "WEBVTT\n\n00:00.000 --> 00:04.000\nboil\n"
HOSTILE = ["/etc/passwd", "../../a", "a/../../../b", "..\\a", "a\0b", "a\x1b[2Jb", "x" * 300, " "]
LINE = r"id of a video must be usable as a file name, got '.*'…?, "


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def howto100m(folder, id):
    write(folder, {"raw_caption.json": json.dumps({"good": SAID, id: SAID})})
    return f"howto100m:{folder}"


def coin(folder, id):
    fields = {"class": "MakeTea", "subset": "testing", "duration": 9}
    steps = [{"id": str(n), "label": name, "segment": [n, n + 1]} for n, name in enumerate("ab")]
    database = {name: {**fields, "annotation": steps} for name in ("good", id)}
    write(folder, {"COIN.json": json.dumps({"database": database}), "narration/good.vtt": VTT})
    return f"coin:{folder}"


def crosstask(folder, id):
    files = {
        "tasks_primary.txt": "111\nMake Tea\nurl\n2\nboil,pour\n",
        "videos.csv": f"111,good,u\n111,{id},u\n",
        "annotations/111_good.csv": "1,0,2\n",
        "narration/good.json": json.dumps(SAID),
    }
    write(folder, files)
    return f"crosstask:{folder}"


def manifest(folder, id):
    rows = [{"id": name, "transcript": "said.vtt"} for name in ("good", id)]
    write(folder, {"said.vtt": VTT, "videos.jsonl": "\n".join(map(json.dumps, rows))})
    return folder / "videos.jsonl"


@pytest.mark.parametrize("id", HOSTILE)
@pytest.mark.parametrize("source", [howto100m, coin, crosstask, manifest])
def test_a_hostile_id_is_one_problem_and_the_rest_goes_on(tmp_path, source, id):
    if source is crosstask and "\0" in id:
        pytest.skip("a zero byte makes a list of CrossTask no text at all")
    dataset = open_source(source(tmp_path, id), strict=False)

    assert [video.id for video in dataset.videos] == ["good"]
    [found] = dataset.problems.found
    assert found.kind == "bad id"
    assert found.fatal
    with pytest.raises(DataError, match=LINE):
        raise DataError(found.what)
    assert len(str(found)) < 600
    assert "\n" not in str(found)


def test_the_name_of_a_file_is_an_id_like_any_other(tmp_path):
    for name in ("good", "a\nb", "a\x1b[2Jb", "x" * 240):
        (tmp_path / f"{name}.vtt").write_text(VTT)
    (tmp_path / "sub\x07folder").mkdir()
    (tmp_path / "sub\x07folder" / "deep.vtt").write_text(VTT)
    dataset = open_source(tmp_path, strict=False)

    assert [video.id for video in dataset.videos] == ["good"]
    assert dict(dataset.problems.counts) == {"bad id": 4}
    assert all("\n" not in str(one) and "\x1b" not in str(one) for one in dataset.problems.found)
    with pytest.raises(DataError, match=LINE):
        open_source(tmp_path)


def test_annotations_of_crosstask_are_named_by_ids(tmp_path):
    source = crosstask(tmp_path, "fine")
    (tmp_path / "annotations" / "111_a\x1bb.csv").write_text("1,0,2\n")
    dataset = open_source(source)

    assert [video.id for video in dataset.videos] == ["good"]
    assert dataset.problems.counts["bad id"] == 1


def test_one_file_of_a_hostile_name_is_refused(tmp_path):
    (tmp_path / "a\x1bb.vtt").write_text(VTT)

    with pytest.raises(DataError, match=LINE):
        open_source(tmp_path / "a\x1bb.vtt")


@pytest.mark.skipif(os.name == "nt", reason="such names cannot be there")
@pytest.mark.parametrize("name", ["talk ", "t alk", "ta\\lk", "talk.."])
def test_odd_names_that_lead_nowhere_else_are_opened(tmp_path, name):
    (tmp_path / f"{name}.vtt").write_text(VTT)

    assert [video.id for video in open_source(tmp_path).videos] == [name]
    assert check_id(name) == name
