"""Results are read back as they were written, and nothing in them is believed unseen."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import stepgraph as sg
from stepgraph.core import Chapter, Result, Sentence, Video
from stepgraph.errors import DataError
from stepgraph.export.results import (
    as_steps,
    load_result,
    read_results,
    save_corrections,
    seen_from,
)
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


def test_in_brief_a_result_says_what_is_done_and_no_more(tmp_path):
    others = (("pour", 0.2),)
    chapters = (replace(TEA.chapters[0], alternatives=others), TEA.chapters[1])
    write_timeline(replace(TEA, chapters=chapters), tmp_path)

    [file] = tmp_path.rglob("*.steps.json")
    assert load_result(file).chapters == chapters
    brief = load_result(file, brief=True)

    assert brief.video.transcript == ()
    assert brief.chapters == TEA.chapters
    assert (brief.tasks, brief.video.duration) == (TEA.tasks, 60.5)


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
        ("video", "../../x", "id of a video must be usable as a file name"),
        ("duration", -1, "0.0 seconds to a week were expected, got -1"),
        ("duration", 1e9, "seconds to a week"),
        ("tasks", {"tea": 7}, "a probability was expected, got 7"),
        ("tasks", [1], r"got something else \("),
        ("chapters", {}, "a list was expected"),
        ("chapters", [{"start": 5, "end": 2}], "got one without 'origin'"),
        ("transcript", [[5, 2, "x"]], "an end after its start was expected, got 5.0 and 2.0"),
        ("transcript", [[1, 2]], r"got something else \("),
        ("media", 7, "text was expected, got 7"),
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


# --- What a person corrected


def corrected(tmp_path, result, steps):
    """A result as it is read with these corrections beside it."""
    write_timeline(result, tmp_path)
    [path] = tmp_path.rglob("*.steps.json")
    save_corrections(path, steps)
    return load_result(path)


def test_what_was_corrected_is_certain_and_of_the_same_task(tmp_path):
    found = corrected(tmp_path, TEA, [(30.0, 40.0, "wait"), (1.0, 20.0, "boil")])

    assert found.corrected
    assert found.chapters == (
        TEA.chapters[0],
        Chapter(30.0, 40.0, "wait", None, "corrected", 1.0, None, "Make tea"),
    )
    layer = json.loads((tmp_path / "monday" / "tea.corrected.json").read_text())
    assert (layer["format"], layer["version"]) == ("stepgraph-corrections", 2)
    assert layer["steps"] == [[1.0, 20.0, "boil"], [30.0, 40.0, "wait"]]


def test_what_was_decided_before_stays_until_it_is_said_anew(tmp_path):
    path, layer = tmp_path / "tea.steps.json", tmp_path / "tea.corrected.json"

    def kept():
        return json.loads(layer.read_text())["annotated"]

    save_corrections(path, [])
    assert kept() == []
    save_corrections(path, [], [(7.0, 9.0), (1.0, 2.0)])
    save_corrections(path, [(1.0, 20.0, "boil")])
    assert kept() == [[1.0, 2.0], [7.0, 9.0]]
    save_corrections(path, [], [])
    assert kept() == []


def test_a_video_in_which_nothing_was_found_can_be_corrected(tmp_path):
    found = corrected(tmp_path, replace(TEA, chapters=()), [(1.0, 2.0, "boil")])

    assert found.chapters == (Chapter(1.0, 2.0, "boil", None, "corrected", 1.0, None, None),)


def test_a_correction_that_was_never_made_is_taken_back(tmp_path):
    assert not corrected(tmp_path, TEA, None).corrected


def test_corrections_of_a_newer_release_are_refused(tmp_path):
    corrected(tmp_path, TEA, [])
    [layer] = tmp_path.rglob("*.corrected.json")
    layer.write_text(layer.read_text().replace('"version": 2', '"version": 3'))

    with pytest.raises(DataError, match="format version must be at most 2, got 3"):
        load_result(tmp_path / "monday" / "tea.steps.json")


def test_names_and_numbers_of_steps_are_bounded():
    assert as_steps([[0, 1, " a "], [0, 1, "b" * 1000]]) == [(0, 1, "a"), (0, 1, "b" * 1000)]
    assert len(as_steps([[0, 1, "a"]] * 100_000)) == 100_000
    with pytest.raises(TypeError, match="a step with a length and a name was expected, got 'bb"):
        as_steps([[0, 1, "a"], [0, 1, "b" * 1001]])
    with pytest.raises(TypeError, match="at most 100,000 steps were expected, got 100,001"):
        as_steps([[0, 1, "a"]] * 100_001)


def test_all_that_a_result_may_say_is_read(tmp_path):
    said = {"transcript": [[2, 2, "x"]], "tasks": {"a": 1, "b": 0, "none of them": 0.5}}
    chapters = [
        {"start": 1, "end": 1, "keystep": "a", "origin": origin, "confidence": at, "score": at}
        for at, origin in enumerate(("anchor", "corrected"))
    ]
    path = tmp_path / "tea.steps.json"
    path.write_text(json.dumps(json.loads(to_json(TEA)) | said | {"chapters": chapters}))

    found = load_result(path)

    assert found.video.transcript == (Sentence(2.0, 2.0, "x"),)
    assert found.tasks == {"a": 1.0, "b": 0.0}
    assert [(one.origin, one.confidence, one.score) for one in found] == [
        ("anchor", 0.0, 0.0),
        ("corrected", 1.0, 1.0),
    ]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("confidence", 1.01, "a probability was expected, got 1.01"),
        ("confidence", -0.01, "a probability was expected, got -0.01"),
        ("confidence", True, "a probability was expected, got True"),
        ("origin", "guess", "origin must be one of anchor, path, label, corrected, got 'guess'"),
        ("start", 2.5, "an end after its start was expected, got 2.5 and 2.0"),
        ("words", 7, "text was expected, got 7"),
        ("task", 7, "text was expected, got 7"),
    ],
)
def test_a_wrong_chapter_is_refused(tmp_path, field, value, message):
    chapter = {"start": 1, "end": 2, "keystep": "a", "origin": "path", field: value}
    path = tmp_path / "tea.steps.json"
    path.write_text(json.dumps(json.loads(to_json(TEA)) | {"chapters": [chapter]}))

    with pytest.raises(DataError, match=message):
        load_result(path)


def test_tasks_that_were_not_asked_for_are_none(tmp_path):
    write_timeline(replace(TEA, tasks=None), tmp_path)

    [found] = read_results(tmp_path)

    assert found.tasks is None


@pytest.mark.parametrize(
    ("path", "folder", "expected"),
    [("/a/b/c.mp4", "/a/d", "../b/c.mp4"), ("/a/c.mp4", "/a", "c.mp4"), ("/b/c", "/a", "/b/c")],
)
def test_a_file_is_seen_from_a_folder_where_both_lie_in_one(path, folder, expected):
    assert seen_from(Path(path), folder).as_posix() == expected


def test_a_file_on_another_drive_is_named_wholly(monkeypatch):
    def commonpath(paths):
        raise ValueError("Paths don't have the same drive")

    monkeypatch.setattr("os.path.commonpath", commonpath)

    assert seen_from(Path("/a/b"), "/a").as_posix() == "/a/b"
