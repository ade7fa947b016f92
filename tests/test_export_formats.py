"""Results in the formats of other programs, each read back by a program that is not ours."""

import errno
import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pysubs2
import pytest

import stepgraph as sg
from stepgraph.cli import main
from stepgraph.core import Chapter, Result, Sentence, Video
from stepgraph.errors import ConfigError, DataError, DiskError
from stepgraph.export.formats import EACH, FROM_MEDIA, NAMES, write_results
from stepgraph.problems import Problems

HOSTILE = "=a; #b \\ <c> & \"d\" 'e' crème\n[CHAPTER] | -->"
TEA = Result(
    Video("tea", 60.0, (Sentence(1.0, 2.5, "Boil <b>water</b>."),), Path("tea.mp4")),
    (
        Chapter(1.0, 20.0, "boil", 0.5, "anchor", 0.75, "Boil water.", "Make tea"),
        Chapter(20.0, 45.5, HOSTILE, None, "path"),
    ),
    {"Make tea": 0.9},
    "f" * 16,
)
NONE = Result(Video("nothing", 5.0), ())
ON_ONE_LINE = " ".join(HOSTILE.split())


def written(result, name, folder):
    """The text of the file that a format makes of one result."""
    [path, *_] = write_results([result], folder, [name])
    return path


# --- Players


def test_ffmpeg_reads_its_chapters(tmp_path):
    av = pytest.importorskip("av")

    with av.open(str(written(TEA, "ffmetadata", tmp_path)), format="ffmetadata") as found:
        chapters = found.chapters()

    assert [
        (one["start"] * one["time_base"], one["end"] * one["time_base"]) for one in chapters
    ] == [
        (1, 20),
        (20, 45.5),
    ]
    assert [one["metadata"]["title"] for one in chapters] == ["boil", ON_ONE_LINE]


def test_keysteps_are_subtitles(tmp_path):
    found = pysubs2.load(str(written(TEA, "srt", tmp_path)))

    assert [(one.start, one.end) for one in found] == [(1000, 20_000), (20_000, 45_500)]
    assert found[0].text == "boil"


def test_podcasts_have_chapters(tmp_path):
    found = json.loads(written(TEA, "podcast", tmp_path).read_text())

    assert found["version"] == "1.2.0"
    assert found["chapters"][0] == {"startTime": 1.0, "endTime": 20.0, "title": "boil"}


# --- Annotators


def test_elan_reads_steps_and_transcript(tmp_path):
    elan = pytest.importorskip("pympi.Elan")

    found = elan.Eaf(str(written(TEA, "elan", tmp_path)))

    assert found.get_annotation_data_for_tier("keysteps") == [
        (1000, 20_000, "boil"),
        (20_000, 45_500, ON_ONE_LINE),
    ]
    assert found.get_annotation_data_for_tier("transcript") == [(1000, 2500, "Boil <b>water</b>.")]


def test_elan_finds_the_video_beside_it(tmp_path, monkeypatch):
    elan = pytest.importorskip("pympi.Elan")
    monkeypatch.chdir(tmp_path)

    found = elan.Eaf(str(written(TEA, "elan", Path("out"))))

    assert [one["MEDIA_URL"] for one in found.media_descriptors] == ["../tea.mp4"]


def test_label_studio_has_a_region_for_each_step(tmp_path):
    write_results([TEA, NONE], tmp_path, ["label-studio"])

    first, second = json.loads((tmp_path / "label-studio.json").read_text())
    interface = ElementTree.parse(tmp_path / "label-studio.xml")

    [prediction] = first["predictions"]
    region = prediction["result"][0]
    [control], [shown] = interface.findall("TimelineLabels"), interface.findall("Video")
    assert (region["from_name"], region["to_name"]) == (control.get("name"), shown.get("name"))
    assert control.get("toName") == shown.get("name")
    assert region["value"] == {
        "ranges": [{"start": 26, "end": 500}],
        "timelinelabels": ["boil"],
    }
    assert [one.get("value") for one in control] == ["boil", HOSTILE]
    assert float(shown.get("frameRate")) == 25
    assert second["predictions"][0]["result"] == []


def test_via_names_every_step(tmp_path):
    write_results([TEA, NONE], tmp_path, ["via"])

    found = json.loads((tmp_path / "via.json").read_text())

    options = found["attribute"]["1"]["options"]
    steps = [(one["z"], options[one["av"]["1"]]) for one in found["metadata"].values()]
    assert steps == [([1.0, 20.0], "boil"), ([20.0, 45.5], HOSTILE)]
    assert found["project"]["vid_list"] == list(found["view"])
    assert {one["fid_list"][0] for one in found["view"].values()} == set(found["file"])


def test_activitynet_has_segments_and_a_taxonomy(tmp_path):
    write_results([TEA, NONE], tmp_path, ["activitynet"])

    found = json.loads((tmp_path / "activitynet.json").read_text())

    assert list(found["database"]) == ["tea", "nothing"]
    assert found["database"]["tea"]["annotations"][0] == {
        "segment": [1.0, 20.0],
        "label": "boil",
        "score": 0.75,
    }
    labels = {one["label"] for video in found["database"].values() for one in video["annotations"]}
    assert labels == {one["nodeName"] for one in found["taxonomy"]} - {"Root"}


def test_labelformat_reads_segments(tmp_path):
    reader = pytest.importorskip("labelformat.formats.activitynet")
    write_results([TEA, NONE], tmp_path, ["activitynet"])

    found = reader.ActivityNetTemporalClassificationInput(tmp_path / "activitynet.json")

    assert [
        (video.video_id, one.start_time_s, one.end_time_s, one.category.name)
        for video in found.get_labels()
        for one in video.events
    ] == [("tea", 1.0, 20.0, "boil"), ("tea", 20.0, 45.5, HOSTILE)]


def test_an_event_log_has_a_trace_for_each_video(tmp_path):
    write_results([TEA, NONE], tmp_path, ["xes"])

    log = ElementTree.parse(tmp_path / "keysteps.xes").getroot()

    # The rules of the standard: typed attributes with key and value, times in ISO 8601.
    prefixes = {one.get("prefix") for one in log.findall("extension")}
    for event in log.iter("event"):
        assert {one.tag for one in event} <= {"string", "date"}
        assert all(one.get("key") and one.get("value") for one in event)
        assert {one.get("key").split(":")[0] for one in event} <= prefixes | {"task"}
    first, second = log.findall("trace")
    events = [{one.get("key"): one.get("value") for one in event} for event in first.iter("event")]
    assert [one["lifecycle:transition"] for one in events] == ["start", "complete"] * 2
    assert [one["concept:name"] for one in events[::2]] == ["boil", HOSTILE]
    times = [datetime.fromisoformat(one["time:timestamp"]).timestamp() for one in events]
    assert times == [1.0, 20.0, 20.0, 45.5]
    assert not second.findall("event")


# --- Editors


def test_opentimelineio_reads_markers(tmp_path):
    otio = pytest.importorskip("opentimelineio")

    found = otio.adapters.read_from_file(str(written(TEA, "otio", tmp_path)))

    [clip] = found.find_clips()
    ranges = [one.marked_range for one in clip.markers]
    assert [one.name for one in clip.markers] == ["boil", HOSTILE]
    assert [one.start_time.to_seconds() for one in ranges] == [1, 20]
    assert ranges[0].duration.to_seconds() == 19
    assert clip.source_range.duration.to_seconds() == 60
    assert clip.markers[0].metadata["stepgraph"]["words"] == "Boil water."


def test_an_edit_decision_list_has_an_event_for_each_step(tmp_path):
    otio = pytest.importorskip("opentimelineio")
    pytest.importorskip("otio_cmx3600_adapter")

    path = written(TEA, "edl", tmp_path)
    found = otio.adapters.read_from_file(str(path), rate=25)

    clips = list(found.find_clips())
    assert [one.source_range.start_time.to_seconds() for one in clips] == [1, 20]
    assert [one.source_range.duration.to_seconds() for one in clips] == pytest.approx(
        [19, 25.5], abs=0.04
    )
    assert [one.markers[0].name for one in clips] == ["boil", ON_ONE_LINE]


# --- All of them


@pytest.mark.parametrize("name", sorted(EACH))
def test_every_format_holds_a_video_without_chapters(name, tmp_path):
    assert written(NONE, name, tmp_path).exists()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in FROM_MEDIA])
def test_every_format_is_written_where_names_are_hostile(name, tmp_path):
    odd = replace(TEA.chapters[0], keystep="a\x08b", words="\x1b[31m", task="\x00")

    paths = write_results([replace(TEA, chapters=(odd,))], tmp_path, [name])

    assert all(path.read_bytes() for path in paths)


def test_an_unknown_format_is_answered_with_the_known_ones(tmp_path):
    with pytest.raises(ConfigError, match=r"^format must be one of activitynet, .*, got 'avi'$"):
        write_results([TEA], tmp_path, ["avi"])


def test_a_video_without_a_file_is_not_muxed_and_stops_no_other(tmp_path):
    problems = Problems()

    paths = write_results([NONE, TEA], tmp_path, ["mux", "via"], problems)

    assert [path.name for path in paths] == ["via.json"]
    assert problems.counts == {"video not written": 2}
    assert "must have a file to be copied, got none; recognise the video file" in str(
        problems.found[0]
    )


def test_a_video_that_cannot_be_written_is_in_no_file_and_stops_those_after_it_not(tmp_path):
    bad, problems = replace(NONE, video=Video("../x", 5.0)), Problems()

    paths = write_results([TEA, bad, NONE], tmp_path, ["srt", "activitynet", "edl"], problems)

    assert [path.name for path in paths] == [
        *("tea.steps.srt", "tea.edl", "nothing.steps.srt", "nothing.edl", "activitynet.json")
    ]
    found = json.loads((tmp_path / "activitynet.json").read_text())
    assert list(found["database"]) == ["tea", "nothing"]
    assert problems.failed
    with pytest.raises(DataError, match="id of a video must be usable as a file name"):
        write_results([bad], tmp_path, ["srt"])


def test_a_second_result_of_a_video_does_not_replace_the_first(tmp_path):
    problems = Problems()
    other = replace(TEA, chapters=())

    paths = write_results([TEA, other, NONE], tmp_path, ["csv"], problems)

    assert [path.name for path in paths] == ["tea.steps.csv", "nothing.steps.csv"]
    assert "boil" in paths[0].read_text()
    assert str(problems.failed.found[0]) == (
        "tea: results must be of different videos, got two of 'tea'"
    )


def test_a_full_disk_stops_everything(tmp_path, monkeypatch):
    def write(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", write)

    with pytest.raises(DiskError, match="No space left"):
        write_results([TEA], tmp_path, ["srt"], Problems())


# --- As a user


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sg.write_timeline(TEA, "out")
    return Path("out")


def test_results_are_exported_beside_them(results, capsys):
    assert main(["export", "out", "--format", "elan", "--format", "xes"]) == 0

    assert capsys.readouterr().out == "2 files written to out\n"
    assert (results / "tea.eaf").exists()
    assert (results / "keysteps.xes").exists()


def test_results_are_exported_elsewhere(results, capsys):
    assert main(["export", "out", "--format", "otio", "-o", "edit", "--json"]) == 0

    assert json.loads(capsys.readouterr().out)["files"] == ["edit/tea.otio"]


def test_a_folder_without_results_is_one_line(results, capsys):
    Path("empty").mkdir()

    assert main(["export", "empty", "--format", "otio"]) == 1

    assert "empty: must hold results (.steps.json), got none" in capsys.readouterr().err


def test_a_damaged_result_is_named_and_the_rest_is_written(results, capsys):
    (results / "a.steps.json").write_text('{"format": "stepgraph-timeline"')

    assert main(["export", "out", "--format", "edl"]) == 1

    shown = capsys.readouterr()
    assert "1 file written to out" in shown.out
    assert "a.steps.json" in shown.err


def test_recognize_writes_other_formats_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sg.save(sg.mine("demo"), "graph.json")

    assert main(["recognize", "demo", "--graph", "graph.json", "--format", "xes"]) == 0

    log = ElementTree.parse("keysteps/keysteps.xes")
    assert len(log.findall("trace")) == 36
    assert len(log.findall("trace/event")) > 300
