"""What people corrected elsewhere comes back as a truth."""

import json
from pathlib import Path

import pytest

from stepgraph.cli import main
from stepgraph.core import Chapter, Result, Video
from stepgraph.errors import DataError
from stepgraph.export.corrections import Step, read_corrections
from stepgraph.export.formats import write_results

TEA = Result(
    Video("monday/tea", 60.0, path=Path("tea.mp4")),
    (
        Chapter(1.0, 20.0, "boil <water>", 0.5, "anchor", 0.75),
        Chapter(20.0, 45.52, "=pour", None, "path"),
    ),
)
STEPS = [Step("monday/tea", 1.0, 20.0, "boil <water>"), Step("monday/tea", 20.0, 45.52, "=pour")]


def test_what_elan_saved_comes_back(tmp_path):
    elan = pytest.importorskip("pympi.Elan")
    write_results([TEA], tmp_path, ["elan"])
    path = tmp_path / "monday" / "tea.eaf"

    document = elan.Eaf(str(path))
    document.remove_annotation("keysteps", 2000)
    document.add_annotation("keysteps", 2500, 19_000, "boil milk")
    document.to_file(str(path))

    assert read_corrections(path) == [
        Step("tea", 2.5, 19.0, "boil milk"),
        Step("tea", 20.0, 45.52, "=pour"),
    ]


def test_a_project_of_via_comes_back(tmp_path):
    write_results([TEA], tmp_path, ["via"])

    assert read_corrections(tmp_path / "via.json") == STEPS


def test_annotations_of_label_studio_come_back_and_predictions_do_not(tmp_path):
    write_results([TEA], tmp_path, ["label-studio"])
    path = tmp_path / "label-studio.json"
    [task] = json.loads(path.read_text())

    assert read_corrections(path) == []

    path.write_text(json.dumps([task | {"annotations": [{"result": []}, *task["predictions"]]}]))
    assert read_corrections(path) == STEPS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be complete JSON"),
        ("<a", "must be whole XML"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><x/>', "XML without declarations of types"),
        ("<x><TIER TIER_ID='other'/></x>", "a tier 'keysteps' was expected, got: other"),
        ("7", "a list was expected, got 7"),
        ("[7]", "TypeError"),
        ('[{"data": {"id": "a"}, "annotations": {}}]', "a list was expected, got {}"),
        ('{"metadata": {"1": {}}, "attribute": {}}', "KeyError"),
        ('{"metadata": [], "attribute": []}', "AttributeError"),
    ],
)
def test_another_file_is_refused_in_one_line(tmp_path, text, message):
    path = tmp_path / "x.eaf"
    path.write_text(text)

    with pytest.raises(DataError, match=message) as error:
        read_corrections(path)

    assert "\n" not in str(error.value)


def test_a_step_that_ends_before_it_starts_is_refused(tmp_path):
    write_results([TEA], tmp_path, ["via"])
    path = tmp_path / "via.json"
    path.write_text(path.read_text().replace("45.52", "4.5"))

    with pytest.raises(DataError, match=r"via\.json: a step must end after its start"):
        read_corrections(path)


def test_corrections_are_a_truth_to_measure_with(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("videos").mkdir()
    Path("videos", "steps.txt").write_text("# Make tea\nboil <water>\n=pour\n")
    Path("videos", "tea.srt").write_text("1\n00:00:02,000 --> 00:00:50,000\nboil the water\n")
    write_results([TEA], Path("out"), ["elan"])

    assert main(["truth", "out/monday/tea.eaf", "-o", "videos/truth.csv"]) == 0
    assert capsys.readouterr().out == "videos/truth.csv: 2 steps of 1 video\n"
    assert main(["evaluate", "videos", "--decoder", "argmax", "--json"]) == 0

    measured = json.loads(capsys.readouterr().out)
    assert (measured["videos_with_truth"], measured["problems"]) == (1, 0)
