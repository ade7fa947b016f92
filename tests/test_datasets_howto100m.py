"""HowTo100M: its videos as a stream, its tasks, and cleaning fast enough for all of it."""

import json
import random
import subprocess
import sys

import pytest

from stepgraph.core import Video
from stepgraph.datasets import Shard, open_source
from stepgraph.datasets.howto100m import read_tasks
from stepgraph.errors import DataError
from stepgraph.ingest.cleaning import checked, clean, clean_lists
from stepgraph.ingest.formats import cues_from_lists, transcript_from_lists
from stepgraph.problems import Problems

PLAIN = {"start": [0.0, 2.0], "end": [2.0, 4.5], "text": ["crack the eggs", "whisk them"]}
HEADER = "video_id,category_1,category_2,rank,task_id"
WORDS = ("add", "Add", "the", "egg", "ADD THE", "straße", "STRASSE", "ﬁne", "it's", "I", "a - b")
MARKS = (
    *("[Music]", "[", "(laughs)", "(or not)", "<i>so</i>", "<br>", "&amp;", "&nbsp;", "{x}", ">>"),
    *(
        "♪",
        "\u200b",
        "\xa0",
        "\x7f",
        "\x1f",
        "\x85",
        "\u2028",
        "\n",
        "\t",
        "  ",
        " ",
        "",
        "\ud800",
    ),
)


def open_howto100m(folder, **options):
    return open_source(f"howto100m:{folder}", **options)


@pytest.fixture
def problems():
    return Problems()


def slow(lists):
    """What cleaning gives, or the error, one cue at a time."""
    problems = Problems()
    try:
        sentences = clean(checked(cues_from_lists(lists, "x"), "x", problems))
        return sentences, problems.found
    except DataError as error:
        return str(error)


def quick(lists):
    problems = Problems()
    try:
        return transcript_from_lists(lists, origin="x", problems=problems), problems.found
    except DataError as error:
        return str(error)


def random_lists(rng):
    """A transcript in which each thing that may be unusual is, now and then."""
    size, odd = rng.randint(0, 30), rng.choice([0, 0, 0.05, 0.3])
    clock, starts, ends, texts = rng.choice([0.0, 5.5]), [], [], []
    for _ in range(size):
        clock += rng.choice([0.0, 0.0005, 0.001, -0.5, -3]) if rng.random() < odd else 2.0
        length = rng.choice([0.0, -1.0, 9.0, 0.01]) if rng.random() < odd else 1.95
        pool = MARKS if rng.random() < odd else WORDS
        again = texts[-1] if texts and rng.random() < max(odd, 0.02) else ""
        starts.append(clock)
        ends.append(clock + length)
        texts.append(again + rng.choice(["", " "]) * (again != "") + said(rng, pool))
    if rng.random() < 0.2:
        starts = [int(time) if time == int(time) else time for time in starts]
    for values in (starts, ends):
        if values and rng.random() < odd / 3:
            values[rng.randrange(size)] = rng.choice(
                [1, True, None, "2", float("nan"), float("inf"), 1e9, -1.0, 10**400]
            )
    if texts and rng.random() < odd / 3:
        texts[rng.randrange(size)] = rng.choice([None, 3, float("nan")])
    return {"start": starts, "end": ends, "text": texts}


def said(rng, pool):
    words = [*rng.choices(WORDS, k=rng.randint(0, 3)), rng.choice(pool)]
    rng.shuffle(words)
    return " ".join(words)


def test_cleaning_at_once_is_cleaning_cue_by_cue():
    for seed in range(20):
        rng = random.Random(seed)
        taken = 0

        for _ in range(150):
            lists = random_lists(rng)
            assert quick(lists) == slow(lists)
            taken += clean_lists(lists["start"], lists["end"], lists["text"]) is not None
        assert 30 < taken < 140  # both ways were gone


@pytest.mark.parametrize(
    "lists", [{}, {"start": 3}, {"start": [0.0], "end": (1.0,), "text": ["a"]}]
)
def test_lists_that_are_none_are_refused_as_before(lists):
    assert quick(lists) == slow(lists)
    assert isinstance(quick(lists), str)


@pytest.fixture
def folder(tmp_path):
    """Three videos, one of them without a task."""
    records = dict.fromkeys(("v1", "v2", "v3"), PLAIN)
    (tmp_path / "raw_caption.json").write_text(json.dumps(records), "utf-8")
    rows = [HEADER, "v1,Food,Eggs,1,7", 'v2,Food,"Eggs, fried",2,8', "v9,,,,7"]
    (tmp_path / "HowTo100M_v1.csv").write_text("\r\n".join(rows) + "\r\n", "utf-8")
    (tmp_path / "task_ids.csv").write_text("7\tHow to Boil Eggs\n8\tHow to Fry  Eggs\n", "utf-8")
    return tmp_path


def test_videos_have_their_sentences_and_the_name_of_their_task(folder):
    dataset = open_howto100m(folder)

    first, second, third = dataset.videos
    assert (dataset.name, dataset.vocabulary) == ("howto100m", None)
    assert isinstance(first, Video)
    assert (first.id, first.duration, first.task) == ("v1", 4.5, "How to Boil Eggs")
    assert [one.text for one in first.transcript] == ["crack the eggs", "whisk them"]
    assert (second.task, third.task) == ("How to Fry Eggs", None)
    assert not dataset.problems


def test_videos_can_be_iterated_again_and_problems_are_counted_once(folder):
    broken = {"start": [float("nan")], "end": [1.0], "text": ["a"]}
    partly = {"start": [0.0, 2.0], "end": [2.0, 1.0], "text": ["boil", "pour"]}
    text = json.dumps({"x": broken, "v1": PLAIN, "y": partly})
    (folder / "raw_caption.json").write_text(text, "utf-8")
    dataset = open_howto100m(folder)
    next(iter(dataset.videos))

    for _ in range(2):
        assert [(one.id, len(one.transcript)) for one in dataset.videos][1:] == [("y", 1)]
    assert dict(dataset.problems.counts) == {"broken record": 1, "unreadable cue": 1}
    assert [str(problem).split(": ", 3)[2:] for problem in dataset.problems.found] == [
        [
            "video 'x'",
            "cue 1: start must be a finite number of seconds, got nan; correct or remove this cue",
        ],
        [
            "video 'y'",
            "cue 2: end must not be before start, got start 2.0 and end 1.0; "
            "correct or remove this cue",
        ],
    ]
    with pytest.raises(DataError, match=r"byte 1: video 'x': cue 1: start must be a finite"):
        list(open_howto100m(folder, strict=True).videos)


def test_of_a_video_that_stands_twice_the_first_is_kept(folder):
    other = json.dumps({**PLAIN, "text": ["x", "y"]})
    (folder / "raw_caption.json").write_text(
        f'{{"a": {json.dumps(PLAIN)}, "a": {other}, "b": {other}}}', "utf-8"
    )
    dataset = open_howto100m(folder)

    videos = list(dataset.videos)

    assert [video.id for video in videos] == ["a", "b"]
    assert videos[0].transcript[0].text == "crack the eggs"
    assert dataset.problems.counts == {"duplicate video": 1}


def test_the_lists_of_tasks_may_be_missing(folder):
    (folder / "task_ids.csv").unlink()

    assert {video.task for video in open_howto100m(folder).videos} == {None}


def test_the_processed_captions_are_read_where_there_are_no_raw_ones(folder):
    (folder / "raw_caption.json").rename(folder / "caption.json")

    assert len(list(open_howto100m(folder).videos)) == 3


def test_without_captions_the_error_says_where_they_are_published(folder):
    (folder / "raw_caption.json").unlink()

    with pytest.raises(
        DataError,
        match=r"must contain raw_caption.json or caption.json, got no such file; the authors of "
        r"HowTo100M publish it on its project page, https://",
    ):
        open_howto100m(folder)


def test_tasks_count_the_videos_listed_for_them(folder, problems):
    assert read_tasks(folder, problems) == [
        ("How to Boil Eggs", 2),
        ("How to Fry Eggs", 1),
    ]
    assert not problems


@pytest.mark.parametrize("name", ["task_ids.csv", "HowTo100M_v1.csv"])
def test_tasks_need_both_lists(folder, problems, name):
    (folder / name).unlink()

    with pytest.raises(DataError, match=rf"must contain {name}, got no such file; the authors"):
        read_tasks(folder, problems)


def test_mistakes_in_the_lists_are_counted_with_their_lines(folder, problems):
    rows = [
        HEADER,
        "v1,,,,7",
        "v1,,,,7",
        "v1,,,,8",
        "v1,,,,8",
        "v2,,,7",
        ",,,,7",
        "v3,,,,9",
        "v4,,,,",
    ]
    lines = "\ufeff" + "\r\n".join(rows[:5]) + "\n" + "\n".join(rows[5:])
    (folder / "HowTo100M_v1.csv").write_bytes(lines.encode() + b"\n\nv\xff,,,,7\nv5,,,,7\n")
    names = "7\tHow to Boil Eggs\n8 How to\n8\tHow to Fry Eggs\n7\tagain\nx\tHow to\n9\t\n"
    (folder / "task_ids.csv").write_text(names, "utf-8")

    tasks = read_tasks(folder, problems)

    assert [videos for _, videos in tasks] == [2, 1]
    assert [(one.where.rpartition("/")[2], one.kind) for one in problems.found] == [
        ("task_ids.csv:2", "malformed line"),
        ("task_ids.csv:4", "duplicate task"),
        ("task_ids.csv:5", "malformed line"),
        ("task_ids.csv:6", "malformed line"),
        ("HowTo100M_v1.csv:3", "duplicate video"),
        ("HowTo100M_v1.csv:5", "duplicate video"),
        ("HowTo100M_v1.csv:6", "malformed line"),
        ("HowTo100M_v1.csv:7", "malformed line"),
        ("HowTo100M_v1.csv:8", "unknown task"),
        ("HowTo100M_v1.csv:9", "malformed line"),
        ("HowTo100M_v1.csv:11", "not UTF-8"),
    ]


def test_other_columns_are_refused(folder, problems):
    (folder / "HowTo100M_v1.csv").write_text("id,task\nv1,7\n", "utf-8")

    with pytest.raises(
        DataError, match=r"HowTo100M_v1.csv:1: columns must be video_id,.*'id,task'"
    ):
        read_tasks(folder, problems)


@pytest.mark.slow
def test_memory_stays_flat(tmp_path):
    pytest.importorskip("resource")
    lists = {"start": [i * 1.0 for i in range(99)], "end": [i + 0.9 for i in range(99)]}
    lists["text"] = [f"{i} is what they said here" for i in range(99)]
    body = json.dumps(lists)
    with (tmp_path / "raw_caption.json").open("w") as file:
        file.write("{")
        for i in range(60_000_000 // len(body)):
            file.write(f'"{i:011d}": {body}, ')
        file.write(f'"last": {body}' + "}")
    code = (
        "import resource, sys\n"
        "from stepgraph.datasets import open_source\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024\n"
        "videos = open_source(f'howto100m:{sys.argv[1]}').videos; before = peak()\n"
        "print(sum(1 for _ in videos), peak() - before)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True
    )

    count, more = map(int, done.stdout.split())
    assert count == 60_000_000 // len(body) + 1
    assert more < 40


@pytest.mark.data
def test_all_words_of_the_real_sample_survive_and_shards_are_the_whole(real_data):
    folder = real_data / "howto100m"
    if not folder.is_dir():
        pytest.skip(f"no HowTo100M in {real_data}")
    published = json.loads((folder / "raw_caption.json").read_text("utf-8"))

    dataset = open_howto100m(folder)
    videos = list(dataset.videos)

    assert [video.id for video in videos] == list(published)
    assert len(videos) == 771
    assert not dataset.problems
    assert all(video.task for video in videos)
    for video in videos:
        assert (video.transcript, []) == slow(published[video.id])
    for count in (2, 7):
        shards = [Shard(part, count) for part in range(1, count + 1)]
        parts = [open_howto100m(folder, shard=shard).videos for shard in shards]
        assert {video.id: video for part in parts for video in part} == {
            video.id: video for video in videos
        }
        assert sum(len(list(part)) for part in parts) == len(videos)


@pytest.mark.data
def test_the_tasks_of_the_real_sample_are_counted(real_data, problems):
    if not (real_data / "howto100m").is_dir():
        pytest.skip(f"no HowTo100M in {real_data}")

    tasks = read_tasks(real_data / "howto100m", problems)

    assert len(tasks) == 15
    assert sum(videos for _, videos in tasks) == 771
    assert not problems
