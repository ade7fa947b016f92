"""Results are read back as they were written, and nothing in them is believed unseen."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import stepgraph as sg
from stepgraph.core import Chapter, Result, Sentence, Video
from stepgraph.errors import DataError
from stepgraph.export.results import load_result, read_results
from stepgraph.export.timeline import to_csv, to_json, write_timeline
from stepgraph.problems import Problems

TEA = Result(
    Video("monday/tea", 60.5, (Sentence(1.0, 2.5, "Boil <b>water</b>, crème."),), Path("tea.mp4")),
    (
        Chapter(1.0, 20.0, "boil", 0.51, "anchor", 0.7, "Boil water.", "Make tea"),
        Chapter(20.0, 60.5, "pour", None, "path", None, None, None),
    ),
    {"Make tea": 0.9, "Make coffee": 0.05},
    "f" * 16,
)


def test_what_is_written_is_read_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    write_timeline(TEA, "out")
    [found] = read_results("out")

    assert found.video.path.resolve() == tmp_path / "tea.mp4"
    assert replace(found, video=replace(found.video, path=TEA.video.path)) == TEA


def test_folders_can_be_moved_together(tmp_path, monkeypatch):
    (tmp_path / "old").mkdir()
    monkeypatch.chdir(tmp_path / "old")
    Path("tea.mp4").touch()
    write_timeline(TEA, "out")

    monkeypatch.chdir(tmp_path)
    Path("old").rename("new")
    [found] = read_results("new/out")

    assert found.video.path.is_file()


def test_what_was_read_is_written_in_other_formats(tmp_path):
    write_timeline(TEA, tmp_path)

    [found] = read_results(tmp_path)

    assert to_csv(found) == to_csv(TEA)


def test_the_demo_reads_back_what_its_timelines_say(tmp_path):
    graph = sg.mine("demo")
    timeline = sg.recognize(next(iter(sg.open_source("demo").videos)), graph)

    sg.write_timeline(timeline, tmp_path)
    [found] = read_results(tmp_path)

    assert [one.keystep for one in found] == [one.keystep for one in timeline]
    assert found.chapters[0].task == timeline.task
    assert found.video.transcript == timeline.video.transcript
    assert found.fingerprint == graph.vocabulary.fingerprint


def test_a_timeline_of_release_0_1_has_no_transcript(tmp_path):
    old = json.loads(to_json(TEA)) | {"version": 1}
    for name in ("media", "transcript"):
        del old[name]
    for chapter in old["chapters"]:
        del chapter["task"]
    (tmp_path / "tea.steps.json").write_text(json.dumps(old))

    found = load_result(tmp_path / "tea.steps.json")

    assert (found.video.transcript, found.video.path) == ((), None)
    assert [one.keystep for one in found] == ["boil", "pour"]


def test_results_are_saved_and_loaded_like_every_artefact(tmp_path):
    sg.save(TEA, tmp_path / "x.json")

    assert sg.load(tmp_path / "x.json").chapters == TEA.chapters


def test_a_folder_without_results_says_how_to_make_them(tmp_path):
    with pytest.raises(DataError, match=r"must hold results \(\.steps\.json\), got none; make"):
        list(read_results(tmp_path))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("video", "../../x", "id of a video must be a name"),
        ("duration", -1, "0.0 seconds to a week were expected, got -1"),
        ("duration", 1e9, "seconds to a week"),
        ("tasks", {"tea": 7}, "a probability was expected, got 7"),
        ("tasks", [1], "AttributeError"),
        ("chapters", {}, "a list was expected"),
        ("chapters", [{"start": 5, "end": 2}], "KeyError"),
        ("transcript", [[5, 2, "x"]], "an end after its start was expected, got 5.0 and 2.0"),
        ("transcript", [[1, 2]], "TypeError"),
        ("media", 7, "names must be text, got 7"),
        ("format", "other", "must be a timeline"),
        ("version", 3, "saved by a newer stepgraph"),
    ],
)
def test_a_wrong_result_is_refused_in_one_line(tmp_path, field, value, message):
    path = tmp_path / "tea.steps.json"
    path.write_text(json.dumps(json.loads(to_json(TEA)) | {field: value}))

    with pytest.raises(DataError, match=message) as error:
        load_result(path)

    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_an_unreadable_result_stops_no_other(tmp_path):
    write_timeline(TEA, tmp_path)
    (tmp_path / "a.steps.json").write_text("{")
    problems = Problems()

    found = list(read_results(tmp_path, problems))

    assert [one.video.id for one in found] == ["monday/tea"]
    assert "1 unreadable result" in problems.summary()
    assert len(problems.failed) == 1
