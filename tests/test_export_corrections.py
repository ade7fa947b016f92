"""What people corrected elsewhere comes back as a truth."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from stepgraph.cli import main
from stepgraph.core import Chapter, Result, Video
from stepgraph.errors import DataError
from stepgraph.export.corrections import AnnotatedStep, read_corrections
from stepgraph.export.formats import write_results

TEA = Result(
    Video("monday/tea", 60.0, path=Path("tea.mp4")),
    (
        Chapter(1.0, 20.0, "boil <water>", 0.5, "anchor", 0.75),
        Chapter(20.0, 45.52, "=pour", None, "path"),
    ),
)
STEPS = [
    AnnotatedStep("monday/tea", 1.0, 20.0, "boil <water>"),
    AnnotatedStep("monday/tea", 20.0, 45.52, "=pour"),
]


def test_what_elan_saved_comes_back(tmp_path):
    elan = pytest.importorskip("pympi.Elan")
    write_results([TEA], tmp_path, ["elan"])
    path = tmp_path / "monday" / "tea.eaf"

    document = elan.Eaf(str(path))
    document.remove_annotation("keysteps", 2000)
    document.add_annotation("keysteps", 2500, 19_000, "boil milk")
    document.to_file(str(path))

    assert read_corrections(path) == [
        AnnotatedStep("tea", 2.5, 19.0, "boil milk"),
        AnnotatedStep("tea", 20.0, 45.52, "=pour"),
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
        ("", "must be valid XML, got no element found"),
        ("<a", "must be valid XML"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><x/>', "XML without type declarations"),
        ("<x><TIER TIER_ID='other'/></x>", "a tier 'keysteps' was expected, got tiers 'other'"),
        ("7", "a list was expected, got 7"),
        ("[7]", "got something else"),
        ('[{"data": {"id": "a"}, "annotations": {}}]', "a list was expected, got {}"),
        ('{"metadata": {"1": {}}, "attribute": {}}', "got one without 'view'"),
        ('{"metadata": [], "attribute": []}', "got something else"),
    ],
)
def test_another_file_is_refused_in_one_line(tmp_path, text, message):
    path = tmp_path / ("x.eaf" if text[:1] in ("", "<") else "x.json")
    path.write_text(text)

    with pytest.raises(DataError, match=message) as error:
        read_corrections(path)

    assert "\n" not in str(error.value)


def test_only_some_tiers_and_the_beginning_of_what_was_found_are_said(tmp_path):
    (path := tmp_path / "x.eaf").write_text(
        "<x>" + "".join(f"<TIER TIER_ID='t{number}'/>" for number in range(7)) + "</x>"
    )
    content = {"metadata": {"1": {"vid": "y" * 500}}, "attribute": {}, "view": {}}
    (other := tmp_path / "x.json").write_text(json.dumps(content))
    (broken := tmp_path / "y.eaf").write_text("<" + "é" * 3)

    with pytest.raises(DataError, match=r"got tiers 't0, t1, t2, t3, t4'$"):
        read_corrections(path)
    with pytest.raises(DataError, match=r"got one without 'y{200}'…$"):
        read_corrections(other)
    with pytest.raises(DataError, match=r"y\.eaf: must be valid XML, got unclosed token: line 1"):
        read_corrections(broken)


def test_what_label_studio_has_beside_steps_is_passed_over(tmp_path):
    def region(kind, start, end, name="stir"):
        ranges = [{"start": start, "end": end}]
        return {"type": kind, "value": {"ranges": ranges, "timelinelabels": [name]}}

    regions = [region("choices", 1, 2), region("timelinelabels", 26, 50), region("other", 1, 2)]
    regions += [region("timelinelabels", 1, 25, "add")]
    tasks = [
        {"data": {"video": "a.mp4"}, "annotations": [{"result": regions}]},
        {"data": {"id": "b", "video": "b.mp4"}},
        {"data": {"id": "c"}, "annotations": [{"result": regions[1:2]}]},
    ]
    (path := tmp_path / "x.json").write_text("\n " + json.dumps(tasks))

    assert read_corrections(path) == [
        AnnotatedStep("a.mp4", 0.0, 1.0, "add"),
        AnnotatedStep("a.mp4", 1.0, 2.0, "stir"),
        AnnotatedStep("c", 1.0, 2.0, "stir"),
    ]


@pytest.mark.parametrize(("old", "new"), [("45.52", "20.0"), ('"=pour"', '""')])
def test_a_step_has_a_length_and_a_name(tmp_path, old, new):
    write_results([TEA], tmp_path, ["via"])
    path = tmp_path / "via.json"
    path.write_text(path.read_text().replace(old, new))

    with pytest.raises(DataError, match="a step must end after its start and have a name"):
        read_corrections(path)


@pytest.mark.parametrize("text", ["<!DOCTYPE x><x/>", "<x/><!ENTITY a>"])
def test_any_declaration_is_refused(tmp_path, text):
    (path := tmp_path / "x.eaf").write_text(text)

    with pytest.raises(DataError, match="XML without type declarations, got some"):
        read_corrections(path)


def test_a_step_shorter_than_a_picture_comes_back_from_every_program(tmp_path):
    short = Chapter(59.996, 60.0, "=pour", None, "path")
    write_results([replace(TEA, chapters=(short,))], tmp_path, ["via", "elan", "label-studio"])
    [task] = json.loads((path := tmp_path / "label-studio.json").read_text())
    path.write_text(json.dumps([task | {"annotations": task["predictions"]}]))

    found = [read_corrections(one) for one in (tmp_path / "via.json", path)]
    found += [read_corrections(tmp_path / "monday" / "tea.eaf")]

    assert [(one.start, one.end) for [one] in found] == [(59.996, 60), (60, 60.04), (59.996, 60)]


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
