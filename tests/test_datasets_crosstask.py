"""The CrossTask release: a miniature made by hand, every mistake it may have, and the real one."""

import json

import numpy as np
import pytest

from stepgraph.core import BACKGROUND
from stepgraph.datasets import Shard, open_source
from stepgraph.datasets.crosstask import PUBLISHED
from stepgraph.errors import DataError
from stepgraph.ingest import Listening

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
RELATED = "333\nMake Stock\nhttp://example.org/stock\n3\nchop,simmer,chop\n"
LISTED = "222,soup,u\n111,_a_b,u\n333,stock,u\n333,soup,u\n"
SAID = {"start": [0.0, 1.0], "end": [1.5, 3.0], "text": ["so boil", "the water"]}


@pytest.fixture
def release(tmp_path):
    """Two narrated and annotated videos of primary tasks, and one of a related task."""
    for name in ("annotations", "narration"):
        (tmp_path / name).mkdir()
    files = {
        "tasks_primary.txt": TASKS,
        "tasks_related.txt": RELATED,
        "videos.csv": LISTED,
        "videos_val.csv": "222,soup,u\n",
        "annotations/111__a_b.csv": "1,0.5,2.0\n2,2.0,4.25\n",
        "annotations/222_soup.csv": "3,1,2\n2,5,6\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    for video in ("_a_b", "soup", "stock"):
        narrate(tmp_path, video)
    return tmp_path


def narrate(folder, video, said=SAID):
    (folder / "narration" / f"{video}.json").write_text(json.dumps(said))


def append(path, text):
    path.write_text(path.read_text() + text)


def opened(folder, **options):
    return open_source(f"crosstask:{folder}", **options)


def ids(dataset):
    return [video.id for video in dataset.videos]


def only_problem(folder, dataset):
    """The kind of the one mistake that was found, and where it is within the folder."""
    [problem] = dataset.problems.found
    return problem.kind, problem.where.removeprefix(f"{folder}/")


# --- What is read


def test_a_sound_release_has_no_problems(release):
    assert len(opened(release, strict=True).problems) == 0


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


@pytest.mark.parametrize(("split", "expected"), [("train", ["_a_b"]), ("val", ["soup"])])
def test_splits_are_those_of_the_release(release, split, expected):
    dataset = opened(release, split=split, strict=True)

    assert ids(dataset) == list(dataset.truth) == expected
    assert len(dataset.vocabulary) == 4


def test_a_split_needs_its_file(release):
    (release / "videos_val.csv").unlink()

    assert len(opened(release, strict=True).videos) == 2
    with pytest.raises(DataError, match=r"videos_val\.csv: must list the videos of the split"):
        opened(release, split="val")


def test_a_split_without_narration_is_refused(release):
    (release / "narration" / "soup.json").unlink()

    with pytest.raises(
        DataError, match=r"\(split 'val'\), got 2 annotations and none with narration"
    ):
        opened(release, split="val")


def test_narration_may_lie_where_the_authors_put_it(release):
    (release / "narration").rename(release / "crosstask_processed")

    assert ids(opened(release, strict=True)) == ["_a_b", "soup"]


def test_narration_may_be_any_transcript(release):
    (release / "narration" / "soup.json").unlink()
    (release / "narration" / "soup.en.vtt").write_text("WEBVTT\n\n00:00.000 --> 00:04.000\nstir\n")

    assert opened(release, strict=True).videos[1].transcript[0].text == "stir"


def test_line_ends_blank_lines_and_byte_order_marks_do_not_matter(release):
    expected = opened(release)
    for path in [*release.glob("*.*"), *release.glob("annotations/*")]:
        mixed = path.read_text().replace("\n", "\r\n", 2) + "\r\n\n"
        path.write_bytes(mixed.encode("utf-8-sig"))

    dataset = opened(release, strict=True)

    assert dataset.vocabulary == expected.vocabulary
    assert dataset.videos == expected.videos
    assert dataset.truth["soup"].keysteps.tolist() == expected.truth["soup"].keysteps.tolist()


def test_a_shard_holds_the_same_videos_whichever_are_narrated(release):
    """Who looks opens annotated videos without narration, too; their shards are still the same."""
    for number in range(20):
        append(release / "videos.csv", f"111,v{number},u\n")
        (release / "annotations" / f"111_v{number}.csv").write_text("1,0.5,2.0\n")
        if number % 3 == 0:
            narrate(release, f"v{number}")

    for part in (1, 2, 3):
        shard = Shard(part, 3)
        heard = ids(opened(release, shard=shard))
        seen = ids(
            opened(release, shard=shard, listening=Listening(needed=False, uses_speech=False))
        )
        assert heard == [video for video in seen if video in heard]
        assert len(seen) > len(heard) > 0


# --- Mistakes: counted with their place, the rest is read; strictly, the first is an error


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        ("1,1", "wrong column count", "must be 'step,start,end', got '1,1'"),
        ("1,1,2,3", "wrong column count", "must be 'step,start,end', got '1,1,2,3'"),
        ("stir,1,2", "bad number", "must be 'step,start,end', got 'stir,1,2'"),
        ("1,one,2", "bad number", "must be 'step,start,end', got '1,one,2'"),
        ("0,1,2", "unknown step number", "step must be between 1 and 3, got 0"),
        ("4,1,2", "unknown step number", "step must be between 1 and 3, got 4"),
        ("1.5,1,2", "unknown step number", "step must be between 1 and 3, got 1.5"),
        ("nan,1,2", "unknown step number", "step must be between 1 and 3, got nan"),
        ("1,2,2", "reversed segment", "end must be after start, got start 2.0 and end 2.0"),
        ("1,3,2", "reversed segment", "end must be after start, got start 3.0 and end 2.0"),
        ("1,-1,2", "impossible time", "a time must be .* of at least 0 .*, got -1.0"),
        ("1,nan,2", "impossible time", "a time must be .*, got nan"),
        ("1,1,inf", "impossible time", "a time must be .*, got inf"),
        ("1,1,1e15", "impossible time", "a time must be .* at most a week, got 1000"),
    ],
)
def test_a_bad_line_of_an_annotation_is_left_out(release, line, kind, message):
    (release / "annotations" / "222_soup.csv").write_text(f"1,0,1\n{line}\n3,2,3\n")

    dataset = opened(release)

    assert only_problem(release, dataset) == (kind, "annotations/222_soup.csv:2")
    assert dataset.truth["soup"].keysteps.tolist() == [2, BACKGROUND, 3]
    with pytest.raises(DataError, match=rf"222_soup\.csv:2: {message}"):
        opened(release, strict=True)


@pytest.mark.parametrize(
    ("content", "kind"),
    [(b"", "empty annotation"), (b"\n", "empty annotation"), (b"1,0,\xe9", "unreadable file")],
)
def test_an_annotation_that_cannot_be_read_leaves_its_video_without_truth(release, content, kind):
    (release / "annotations" / "222_soup.csv").write_bytes(content)

    dataset = opened(release)

    assert only_problem(release, dataset) == (kind, "annotations/222_soup.csv")
    assert (ids(dataset), set(dataset.truth)) == (["_a_b", "soup"], {"_a_b"})
    with pytest.raises(DataError, match=r"222_soup\.csv: must "):
        opened(release, strict=True)


def test_a_narrated_video_without_annotation_comes_last_and_without_truth(release):
    (release / "annotations" / "111__a_b.csv").unlink()

    dataset = opened(release)

    assert only_problem(release, dataset) == ("video without truth", "videos.csv:2")
    assert (ids(dataset), set(dataset.truth)) == (["soup", "_a_b"], {"soup"})
    with pytest.raises(DataError, match=r"csv:2: narrated video '_a_b' must have annotations/111"):
        opened(release, strict=True)


def test_videos_without_narration_are_one_problem(release):
    append(release / "videos.csv", "".join(f"111,silent{i},u\n" for i in range(1500)))

    dataset = opened(release)

    assert only_problem(release, dataset) == ("without narration", "videos.csv")
    assert len(dataset.videos) == 2
    with pytest.raises(DataError, match="got nothing for 'silent0' and 1,499 others"):
        opened(release, strict=True)


def test_narration_that_cannot_be_read_is_left_out_with_its_reason(release):
    (release / "narration" / "soup.json").write_text('{"start": [0')

    dataset = opened(release)

    assert only_problem(release, dataset) == ("unreadable narration", "narration/soup.json")
    assert dataset.problems.found[0].what.startswith("must be complete JSON")
    assert ids(dataset) == list(dataset.truth) == ["_a_b"]
    with pytest.raises(DataError, match=r"soup\.json: must be complete JSON"):
        opened(release, strict=True)


def test_nothing_but_bad_narration_is_refused(release):
    for video in ("soup", "_a_b"):
        (release / "narration" / f"{video}.json").write_text("{")

    with pytest.raises(DataError, match=r"got none in 2 files; .*_a_b\.json: must be complete"):
        opened(release)


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        ("111,x", "wrong column count", "must be 'task,video,address', got 2 columns in '111,x'"),
        ("111,soup,u,v", "wrong column count", "must be .*, got 4 columns"),
        ("111,_a_b,u", "duplicate video", "must be listed once .*, got '_a_b' of 111 again"),
        ("444,x,u", "missing task", "task of video 'x' must be in a task file, got '444'"),
    ],
)
def test_a_bad_line_of_the_list_is_left_out(release, line, kind, message):
    append(release / "videos.csv", f"{line}\n")

    dataset = opened(release)

    assert only_problem(release, dataset) == (kind, "videos.csv:5")
    assert ids(dataset) == ["_a_b", "soup"]
    with pytest.raises(DataError, match=rf"videos\.csv:5: .*{message}"):
        opened(release, strict=True)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda path: path.unlink(), "missing file"),
        (lambda path: path.write_bytes(b"111,\xe9,u\n"), "unreadable file"),
    ],
)
def test_a_list_that_cannot_be_read_leaves_the_annotated_videos(release, change, kind):
    change(release / "videos.csv")
    (release / "narration" / "stock.json").unlink()

    dataset = opened(release)

    assert only_problem(release, dataset) == (kind, "videos.csv")
    assert ids(dataset) == ["_a_b", "soup"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("111_other", "unlisted video"), ("999_stock", "missing task"), ("notes", "missing task")],
)
def test_an_annotation_that_fits_no_list_is_counted(release, name, kind):
    (release / "annotations" / f"{name}.csv").write_text("1,0,1\n")

    dataset = opened(release)

    found = {(problem.kind, problem.where) for problem in dataset.problems.found}
    assert (kind, f"{release}/annotations/{name}.csv") in found
    assert ids(dataset) == ["_a_b", "soup"]


def test_a_video_annotated_for_two_tasks_is_taken_for_the_first(release):
    (release / "annotations" / "111_soup.csv").write_text("1,0,1\n")
    append(release / "videos.csv", "111,soup,u\n")

    dataset = opened(release)

    assert only_problem(release, dataset) == ("duplicate video", "annotations/222_soup.csv")
    assert [video.task for video in dataset.videos] == ["Make Tea", "Make Tea"]
    with pytest.raises(DataError, match=r"222_soup\.csv: video 'soup' must be annotated once"):
        opened(release, strict=True)


def test_a_validation_video_that_is_not_listed_is_counted(release):
    append(release / "videos_val.csv", "111,other,u\n")

    assert only_problem(release, opened(release)) == ("unlisted video", "videos_val.csv:2")


def test_narration_of_other_videos_is_one_problem(release):
    for name in ("x", "y"):
        narrate(release, name)

    dataset = opened(release)

    assert only_problem(release, dataset) == (
        "with narration of unlisted videos",
        "narration/x.json",
    )
    assert dataset.problems.summary().startswith("2 files with narration of unlisted videos (")


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("444\nMake Tea\n", "a task must have 5 lines"),
        ("444\nMake\nhttp\ntwo\na,b\n", "a task must have 5 lines"),
        ("444\nMake\nhttp\n²\na,b\n", "a task must have 5 lines"),
        ("444\nMake\nhttp\n2\na,b,c\n", "must list 2 keysteps, got 3"),
        ("444\nMake\nhttp\n2\na,\n", "must list 2 keysteps, got 1"),
        ("111\nMake\nhttp\n2\na,b\n", "tasks must differ, got '111' again"),
    ],
)
def test_a_bad_task_is_left_out(release, block, message):
    (release / "tasks_primary.txt").write_text(TASKS + block, "utf-8")

    dataset = opened(release)

    assert only_problem(release, dataset) == ("bad task", "tasks_primary.txt:13")
    assert list(dataset.vocabulary.tasks) == ["Make Tea", "Make Soup"]
    with pytest.raises(DataError, match=rf"tasks_primary\.txt:13: {message}"):
        opened(release, strict=True)


# --- Nothing to read


@pytest.mark.parametrize("text", ["\n\n", "111\nMake Tea\n"])
def test_a_task_file_without_tasks_is_refused(release, text):
    (release / "tasks_primary.txt").write_text(text)

    with pytest.raises(DataError, match=r"tasks_primary\.txt: must list tasks, got none"):
        opened(release)


def test_a_vocabulary_of_one_keystep_is_refused_with_its_folder(release):
    (release / "tasks_primary.txt").write_text("111\nMake Tea\nhttp\n1\nboil\n")

    with pytest.raises(DataError, match=rf"^{release}: a vocabulary must have at least 2"):
        opened(release)


def test_a_folder_without_the_release_is_refused(tmp_path):
    with pytest.raises(
        DataError, match=r"^/.* must be the folder of CrossTask, which contains tasks_pri"
    ):
        opened(tmp_path)


def test_a_release_without_narration_is_refused(release):
    for path in (release / "narration").iterdir():
        path.unlink()

    with pytest.raises(DataError, match="got 2 annotations and none with narration"):
        opened(release)


# --- Counts, and the real release


def test_a_survey_counts_what_is_there(release):
    append(release / "videos.csv", "111,silent,u\n")
    narrate(release, "stranger")

    assert PUBLISHED.survey(release)[0] == {
        "tasks": 2,
        "related_tasks": 1,
        "steps": 5,
        "unique_keysteps": 4,
        "listed_videos": 5,
        "annotated_videos": 2,
        "narrated_videos": 3,
    }


@pytest.mark.data
def test_the_real_release_is_counted(real_data):
    assert PUBLISHED.survey(real_data / "crosstask")[0] == {
        "tasks": 18,
        "related_tasks": 65,
        "steps": 133,
        "unique_keysteps": 105,
        "listed_videos": 4700,
        "annotated_videos": 2412,
        "narrated_videos": 349,
    }


@pytest.mark.data
def test_the_real_release_is_read(real_data):
    dataset = opened(real_data / "crosstask")

    assert len(dataset.videos) == len(dataset.truth) == 349
    assert (len(dataset.vocabulary), len(dataset.vocabulary.tasks)) == (105, 18)
    assert {video.task for video in dataset.videos} == {"Make French Toast", "Change a Tire"}
    assert all(video.transcript for video in dataset.videos)
    assert dataset.problems.counts == {"without narration": 1}
    assert dataset.problems.summary().startswith("2,401 of 2,750 videos without narration (")


@pytest.mark.data
def test_the_splits_of_the_real_release_are_all_of_it(real_data):
    folder = real_data / "crosstask"

    train, val = (ids(opened(folder, split=split)) for split in ("train", "val"))

    assert (len(train), len(val)) == (309, 40)
    assert sorted(train + val) == sorted(ids(opened(folder)))


@pytest.mark.data
def test_the_truth_of_a_real_video_is_of_its_task(real_data):
    dataset = opened(real_data / "crosstask")

    for video in dataset.videos:
        done = set(np.unique(dataset.truth[video.id].keysteps).tolist()) - {BACKGROUND}
        assert done <= set(dataset.vocabulary.tasks[video.task])
