"""The CrossTask release: a miniature made by hand, and the real one."""

import json

import numpy as np
import pytest

from stepgraph.core import BACKGROUND
from stepgraph.datasets import open_source
from stepgraph.errors import DataError

TASKS = """\
111
Make Tea
http://example.org/tea
2
boil water,pour water

222
Make Soup
http://example.org/soup
3
chop,boil water,stir

"""


@pytest.fixture
def release(tmp_path):
    """Two narrated videos, one without narration, and one of a related task."""
    for name in ("annotations", "narration"):
        (tmp_path / name).mkdir()
    (tmp_path / "tasks_primary.txt").write_text(TASKS)
    annotations = {
        "111__a_b": "1,0.5,2.0\n2,2.0,4.25\n",
        "222_soup": "3,1,2\n2,5,6\n",
        "222_silent": "1,0,1\n",
        "333_related": "1,0,1\n",
    }
    for name, text in annotations.items():
        (tmp_path / "annotations" / f"{name}.csv").write_text(text)
    for name in ("_a_b", "soup", "related"):
        said = {"start": [0.0, 1.0], "end": [1.5, 3.0], "text": ["so boil", "the water"]}
        (tmp_path / "narration" / f"{name}.json").write_text(json.dumps(said))
    return tmp_path


def opened(folder):
    return open_source(f"crosstask:{folder}")


def test_vocabulary_is_the_unique_keysteps_in_the_order_of_the_file(release):
    vocabulary = opened(release).vocabulary

    assert vocabulary.keysteps == ("boil water", "pour water", "chop", "stir")
    assert vocabulary.tasks == {"Make Tea": (0, 1), "Make Soup": (2, 0, 3)}


def test_narrated_videos_of_primary_tasks_are_taken(release):
    dataset = opened(release)

    assert [(video.id, video.task) for video in dataset.videos] == [
        ("_a_b", "Make Tea"),
        ("soup", "Make Soup"),
    ]


def test_step_numbers_are_those_of_the_task(release):
    truth = opened(release).truth

    assert truth["soup"].keysteps.tolist() == [BACKGROUND, 3, -1, -1, -1, 0]


def test_a_video_lasts_until_speech_and_keysteps_have_ended(release):
    durations = {video.id: video.duration for video in opened(release).videos}

    assert durations == {"_a_b": 4.25, "soup": 6.0}


def test_a_blank_line_in_an_annotation_is_ignored(release):
    path = release / "annotations" / "222_soup.csv"
    path.write_text("\n" + path.read_text() + "\n")

    assert "soup" in opened(release).truth


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("stir,1,2", "must be 'step,start,end', got 'stir,1,2'"),
        ("1,1", "must be 'step,start,end', got '1,1'"),
        ("1,one,2", "must be 'step,start,end', got '1,one,2'"),
        ("0,1,2", "step must be between 1 and 3, got 0"),
        ("4,1,2", "step must be between 1 and 3, got 4"),
        ("1,2,2", "end must be after start, got start 2.0 and end 2.0"),
        ("1,3,2", "end must be after start, got start 3.0 and end 2.0"),
        ("1,-1,2", "end must be after start, got start -1.0 and end 2.0"),
        ("1,nan,2", "end must be after start, got start nan"),
        ("1,1,inf", "end must be after start, got start 1.0 and end inf"),
        ("1,1,1e15", ""),
    ],
)
def test_bad_annotations_are_refused_with_their_line(release, line, message):
    (release / "annotations" / "222_soup.csv").write_text(f"1,0,1\n{line}\n")

    with pytest.raises(DataError, match=rf"222_soup\.csv:2: {message}"):
        opened(release)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("111\nMake Tea\n", 1, "a task must have 5 lines"),
        ("111\nMake Tea\nhttp\ntwo\na,b\n", 1, "a task must have 5 lines"),
        ("111\nMake Tea\nhttp\n²\na,b\n", 1, "a task must have 5 lines"),
        (TASKS + "333\nMake\nhttp\n2\na,b,c\n", 13, "must list 2 keysteps, got 3"),
    ],
)
def test_bad_task_files_are_refused_with_their_line(release, text, line, message):
    (release / "tasks_primary.txt").write_text(text, "utf-8")

    with pytest.raises(DataError, match=rf"tasks_primary\.txt:{line}: {message}"):
        opened(release)


def test_an_empty_task_file_is_refused(release):
    (release / "tasks_primary.txt").write_text("\n\n")

    with pytest.raises(DataError, match=r"tasks_primary\.txt: must list tasks, got none"):
        opened(release)


def test_a_video_annotated_for_two_tasks_is_refused(release):
    (release / "annotations" / "111_soup.csv").write_text("1,0,1\n")

    with pytest.raises(DataError, match=r"222_soup\.csv: video 'soup' must be annotated once"):
        opened(release)


def test_a_folder_without_the_release_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"tasks_primary\.txt: must be a file, got no such file"):
        opened(tmp_path)


def test_a_release_without_narration_is_refused(release):
    for path in (release / "narration").iterdir():
        path.unlink()

    with pytest.raises(DataError, match="got 4 annotations and none with narration"):
        opened(release)


def test_bad_narration_is_refused_with_its_file(release):
    (release / "narration" / "soup.json").write_text('{"start": [0')

    with pytest.raises(DataError, match=r"soup\.json: must be complete JSON"):
        opened(release)


@pytest.mark.data
def test_the_real_release_is_read(real_data):
    dataset = opened(real_data / "crosstask")

    assert len(dataset.videos) == len(dataset.truth) == 349
    assert (len(dataset.vocabulary), len(dataset.vocabulary.tasks)) == (105, 18)
    assert {video.task for video in dataset.videos} == {"Make French Toast", "Change a Tire"}
    assert all(video.transcript for video in dataset.videos)


@pytest.mark.data
def test_the_truth_of_a_real_video_is_of_its_task(real_data):
    dataset = opened(real_data / "crosstask")

    for video in dataset.videos:
        done = set(np.unique(dataset.truth[video.id].keysteps).tolist()) - {BACKGROUND}
        assert done <= set(dataset.vocabulary.tasks[video.task])
