"""The COIN release: a miniature made by hand, every mistake it may have, and the real one."""

import json
import math
import time

import pytest

from stepgraph.core import BACKGROUND
from stepgraph.datasets import open_source
from stepgraph.datasets.coin import PUBLISHED, task_name
from stepgraph.errors import DataError

VTT = "WEBVTT\n\n00:00.000 --> 00:02.000\nboil\n"


def step(number, label, start, end):
    return {"id": str(number), "label": label, "segment": [start, end]}


def entry(task, subset, duration, *steps):
    return {"class": task, "subset": subset, "duration": duration, "annotation": list(steps)}


@pytest.fixture
def database():
    return {
        "soup": entry("MakeSoup", "training", 6.5, step(2, "chop", 0, 1), step(3, "boil", 2, 4.0)),
        "tea": entry("MakeTea", "testing", 3, step(0, "boil", 0, 2.0), step(1, "pour", 2, 3)),
    }


@pytest.fixture
def release(tmp_path, database):
    """Two narrated videos; tasks share a keystep that has an id in each."""
    (tmp_path / "narration").mkdir()
    for name in ("tea", "soup"):
        (tmp_path / "narration" / f"{name}.vtt").write_text(VTT)
    write(tmp_path, database)
    return tmp_path


def write(folder, database):
    (folder / "COIN.json").write_text(json.dumps({"database": database}))


def opened(folder, **options):
    return open_source(f"coin:{folder}", **options)


def ids(dataset):
    return [video.id for video in dataset.videos]


# --- What is read


def test_vocabulary_is_the_unique_labels_in_order_of_step_id(release):
    vocabulary = opened(release, strict=True).vocabulary

    assert vocabulary.keysteps == ("boil", "pour", "chop")
    assert vocabulary.tasks == {"Make Tea": (0, 1), "Make Soup": (2, 0)}


def test_videos_have_their_task_duration_narration_and_truth(release):
    dataset = opened(release, strict=True)

    soup, tea = dataset.videos
    assert (soup.id, soup.task, soup.duration) == ("soup", "Make Soup", 6.5)
    assert tea.transcript[0].text == "boil"
    assert dataset.truth["soup"].keysteps.tolist() == [2, -1, 0, 0, -1, -1, -1]


def test_the_file_itself_may_be_named(release):
    assert ids(opened(release / "COIN.json", strict=True)) == ["soup", "tea"]


@pytest.mark.parametrize(("split", "expected"), [("training", ["soup"]), ("testing", ["tea"])])
def test_splits_are_those_of_the_release(release, split, expected):
    dataset = opened(release, split=split, strict=True)

    assert ids(dataset) == list(dataset.truth) == expected
    assert len(dataset.vocabulary) == 3


@pytest.mark.parametrize("folder", ["captions", "coin_processed"])
def test_narration_may_lie_in_other_folders(release, folder):
    (release / "narration").rename(release / folder)

    assert all(video.transcript for video in opened(release, strict=True).videos)


def test_a_byte_order_mark_and_line_ends_do_not_matter(release, database):
    text = json.dumps({"database": database}, indent=1).replace("\n", "\r\n", 5)
    (release / "COIN.json").write_bytes(text.encode("utf-8-sig"))

    assert ids(opened(release, strict=True)) == ["soup", "tea"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ReplaceABulb", "Replace A Bulb"),
        ("OpenALockWithPaperclips", "Open A Lock With Paperclips"),
        ("AttendNBASkillsChallenge", "Attend NBA Skills Challenge"),
        ("ReplaceBatteryOnTVControl", "Replace Battery On TV Control"),
        ("AssembleDesktopPC", "Assemble Desktop PC"),
        ("UseEpinephrineAuto-injector", "Use Epinephrine Auto-injector"),
        ("MakeRJ45Cable", "Make RJ45 Cable"),
        ("Sow", "Sow"),
        ("46", "46"),
    ],
)
def test_names_of_tasks_are_written_in_words(name, words):
    assert task_name(name) == words


# --- Mistakes: counted with their place, the rest is read; strictly, the first is an error


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (step(0, "boil", 3, 2), "reversed segment", "end must be after start, got start 3.0 and"),
        (step(0, "boil", 2, 2), "reversed segment", "end must be after start"),
        (step(0, "boil", -1, 2), "impossible time", "a time must be .* at least 0 .*, got -1.0"),
        (step(0, "boil", math.nan, 2), "impossible time", "a time must be .*, got nan"),
        (step(0, "boil", 0, math.inf), "impossible time", "a time must be .*, got inf"),
        (step(0, "boil", 4, 5), "segment past the end", "end must be within the 3 seconds of"),
        (step("x", "boil", 0, 1), "unknown step number", "'id' must be the number of a step, got"),
        (step(1, "stir", 0, 1), "unknown step number", "step 1 must be 'pour' as before, got 'st"),
        (step(0, "", 0, 1), "unreadable annotation", "must have 'label' and 'segment'"),
        (step(0, "\ud800", 0, 1), "unreadable annotation", "must have 'label' and 'segment'"),
        (step(0, "boil", "0", 1), "unreadable annotation", "must have 'label' and 'segment'"),
        ({"id": "0", "label": "boil"}, "unreadable annotation", "must have 'label' and 'segment'"),
        ({"id": "0", "label": "a", "segment": [1]}, "unreadable annotation", "must have 'label'"),
        ("boil", "unknown step number", "'id' must be the number of a step, got None"),
    ],
)
def test_a_bad_step_is_left_out(release, database, wrong, kind, message):
    database["tea"]["annotation"].append(wrong)
    write(release, database)

    dataset = opened(release)

    [problem] = dataset.problems.found
    assert problem.kind == kind
    assert problem.where == f"{release}/COIN.json: video 'tea', step 3"
    assert dataset.truth["tea"].keysteps.tolist() == [0, 0, 1]
    with pytest.raises(DataError, match=rf"COIN\.json: video 'tea', step 3: {message}"):
        opened(release, strict=True)


def test_a_segment_that_goes_on_after_the_end_is_cut_there(release, database):
    database["tea"]["annotation"] = [step(0, "boil", 1, 9)]
    write(release, database)

    dataset = opened(release)

    assert dataset.truth["tea"].keysteps.tolist() == [BACKGROUND, 0, 0]
    assert dataset.problems.counts == {"segment past the end": 1}


@pytest.mark.parametrize(
    ("field", "value", "kind"),
    [
        ("class", None, "missing task"),
        ("class", 7, "missing task"),
        ("subset", "validation", "unknown split"),
        ("subset", ["testing"], "unknown split"),
        ("duration", None, "impossible time"),
        ("duration", -3, "impossible time"),
        ("duration", math.nan, "impossible time"),
        ("duration", 1e12, "impossible time"),
        ("duration", 10**400, "impossible time"),
        ("annotation", {}, "unreadable annotation"),
    ],
)
def test_a_video_with_a_bad_field_is_read_without_it(release, database, field, value, kind):
    database["tea"][field] = value
    write(release, database)

    dataset = opened(release)

    assert kind in dataset.problems.counts
    assert dataset.problems.found[0].where == f"{release}/COIN.json: video 'tea'"
    assert ids(dataset) == ["soup", "tea"]
    assert dataset.videos[1].duration == 3.0
    with pytest.raises(DataError, match=rf"COIN\.json: video 'tea': '{field}' must "):
        opened(release, strict=True)


def test_an_empty_annotation_leaves_a_narrated_video_without_truth(release, database):
    database["tea"]["annotation"] = []
    write(release, database)

    dataset = opened(release)

    assert dataset.problems.counts == {"empty annotation": 1, "video without truth": 1}
    assert set(dataset.truth) == {"soup"}
    assert len(dataset.videos) == 2


@pytest.mark.parametrize("name", ["../tea", "/tea", ""])
def test_a_name_that_leads_out_of_a_folder_is_no_video(release, database, name):
    database[name] = database["tea"]
    write(release, database)

    dataset = opened(release)

    assert ids(dataset) == ["soup", "tea"]
    assert dataset.problems.counts == {"bad id": 1}


def test_a_video_listed_twice_is_taken_once(release, database):
    both = [json.dumps({"tea": database["tea"]})[1:-1]] * 2
    (release / "COIN.json").write_text('{"database": {' + ",".join(both) + "}}")
    (release / "narration" / "soup.vtt").unlink()

    dataset = opened(release)

    assert ids(dataset) == ["tea"]
    assert dataset.problems.counts == {"duplicate video": 1}
    with pytest.raises(DataError, match=r"COIN\.json: video 'tea' must be listed once, got it tw"):
        opened(release, strict=True)


def test_videos_without_narration_are_videos_and_one_problem(release, database):
    database |= {f"silent{i}": database["tea"] for i in range(1500)}
    write(release, database)

    dataset = opened(release)

    assert dataset.problems.counts == {"without narration": 1}
    said = dataset.problems.summary()
    assert said.startswith(f"1,500 of 1,502 videos without narration ({release}/COIN.json: a vid")
    assert "captions or coin_processed, got nothing for 'silent0' and 1,499 others" in said
    assert len(dataset.videos) == len(dataset.truth) == 1502
    assert (dataset.videos[-1].transcript, dataset.videos[-1].duration) == ((), 3)
    with pytest.raises(
        DataError, match=r"COIN\.json: a video must be narrated in narration or capt"
    ):
        opened(release, strict=True)


@pytest.mark.parametrize("content", [b"caf\xe9", b"", b"no transcript"])
def test_narration_that_cannot_be_read_is_left_out_with_its_reason(release, content):
    (release / "narration" / "tea.vtt").write_bytes(content)

    dataset = opened(release)

    [problem] = dataset.problems.found
    assert (problem.kind, problem.where) == (
        "unreadable narration",
        f"{release}/narration/tea.vtt",
    )
    assert dataset.videos[1].transcript == ()
    assert set(dataset.truth) == {"soup", "tea"}


def test_narration_of_other_videos_is_one_problem(release):
    for name in ("x", "y"):
        (release / "narration" / f"{name}.vtt").write_text(VTT)

    dataset = opened(release)

    assert ids(dataset) == ["soup", "tea"]
    assert dataset.problems.counts == {"with narration of unlisted videos": 1}


# --- Nothing to read


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"COIN\.json: must be complete JSON"),
        (b'{"database": {"a": ', r"COIN\.json: must be complete JSON"),
        (b"[]", "must hold an object 'database' of videos"),
        (b'{"database": {}}', "must hold an object 'database' of videos"),
        (b'{"database": {"a": 1}}', "must list videos that can be read, got none"),
        (b'{"database": {"a": {}}}', r"COIN\.json: a vocabulary must have at least 2 keysteps"),
        (b"caf\xe9", r"COIN\.json: must be UTF-8 text"),
    ],
)
def test_a_file_without_videos_is_refused(release, content, message):
    (release / "COIN.json").write_bytes(content)

    with pytest.raises(DataError, match=message):
        opened(release)


def test_a_folder_without_the_release_is_refused(tmp_path):
    with pytest.raises(
        DataError, match=r"must be the folder of COIN, which contains COIN\.json, got n"
    ):
        opened(tmp_path)


# --- Counts, and the real release


def test_a_survey_counts_what_is_there(release):
    (release / "narration" / "soup.vtt").unlink()
    (release / "narration" / "stranger.vtt").write_text(VTT)

    assert PUBLISHED.survey(release)[0] == {
        "videos": 2,
        "training": 1,
        "testing": 1,
        "steps": 4,
        "unique_keysteps": 3,
        "tasks": 2,
        "narrated_videos": 1,
    }


@pytest.mark.data
def test_the_real_release_is_counted(real_data):
    assert PUBLISHED.survey(real_data / "coin")[0] == {
        "videos": 11006,
        "training": 8412,
        "testing": 2594,
        "steps": 778,
        "unique_keysteps": 749,
        "tasks": 180,
        "narrated_videos": 0,
    }


@pytest.mark.data
def test_the_real_release_is_read_in_seconds(real_data):
    began = time.process_time()

    dataset = open_source(f"coin:{real_data / 'coin'}")

    # Under one second on an idle machine.
    assert time.process_time() - began < 15
    assert len(dataset.videos) == len(dataset.truth) == 11006
    assert (len(dataset.vocabulary), len(dataset.vocabulary.tasks)) == (749, 180)
    assert dataset.problems.counts == {"without narration": 1, "segment past the end": 1}


@pytest.mark.data
def test_the_truth_of_a_real_video_is_what_the_file_says(real_data):
    dataset = open_source(f"coin:{real_data / 'coin'}", split="training")

    labels = dataset.truth["eD6NEcqcCyc"]
    keysteps = [dataset.vocabulary.keysteps[segment.keystep] for segment in labels.segments()]
    assert keysteps == [
        "remove the light shell/housing/support",
        "take out the old bulb",
        "install the new bulb",
        "install the light shell/housing/support",
    ]
    assert [round(segment.start) for segment in labels.segments()] == [17, 41, 71, 127]
